// More than one bid is out, distinct by owner, sender and contract; and who does not pay what was bid is remembered: barred,
// told so, by another process too, and only while the block that shows it is in the chain.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { PAYS_COINBASE, PAYS_LESS_AFTER_TIME, word } from "../../support/auctionContracts.ts";
import { type AuctionFixture, type Bidder, startAuction, type Target } from "../../support/bidder.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

/** The relay counts on 12 seconds to a block. */
const BUILDER_SLOT_SECONDS = 13;
const SHARE = 1_000_000n * GWEI;

let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction({ proxied: true, builder: { slotSeconds: BUILDER_SLOT_SECONDS } });
});
after(() => fixture.system.stop());

interface Placed {
	readonly bidder: Bidder;
	readonly backrun: Signed;
	readonly hash: string;
}

/** A bid of so many shares of a contract of its own, or of `to`. */
async function place(
	target: Target,
	shares: bigint,
	{ bidder, to }: { readonly bidder?: Bidder; readonly to?: string } = {},
): Promise<Placed> {
	const by = bidder ?? (await fixture.bidder());
	const backrun = by.backrun(shares * SHARE, { to: to ?? (await fixture.place(PAYS_COINBASE)) });
	return { bidder: by, backrun, hash: await by.bid(target, backrun) };
}

function stages(bids: readonly Placed[]): Promise<readonly string[]> {
	return Promise.all(bids.map(async ({ bidder, hash }) => (await bidder.stages(hash)).join()));
}

/** A bid that pays what it says, but one wei in a block that comes a second later than the relay counts on. */
async function cheat(target: Target, shares: bigint, bidder: Bidder, to: string): Promise<Placed> {
	const head = (await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as {
		timestamp: string;
	};
	const backrun = bidder.backrun(shares * SHARE, {
		to,
		data: word(Number(head.timestamp) + BUILDER_SLOT_SECONDS - 1),
	});
	return { bidder, backrun, hash: await bidder.bid(target, backrun) };
}

/** `GET /bundle/{hash}` as its owner sees it. */
async function bundle({ bidder, hash }: Placed): Promise<Record<string, unknown>> {
	const headers = { "x-forwarded-for": bidder.from };
	const response = await fetch(`${fixture.system.client.url}/bundle/${hash}`, { headers });
	return (await response.json()) as Record<string, unknown>;
}

async function metric(name: string): Promise<number> {
	const text = await metricsOf(fixture.system.client.url);
	return Number(new RegExp(`^${name.replace(/[{}]/g, "\\$&")} (\\d+)`, "m").exec(text)?.[1]);
}

describe("the bids that are out", () => {
	it("are the best three, each under its own identifier, with the target alone beside them", async () => {
		const target = await fixture.target();
		const bids = [];
		for (const shares of [4n, 1n, 3n, 2n]) bids.push(await place(target, shares));
		const [four, one, three, two] = bids as [Placed, Placed, Placed, Placed];
		await fixture.out(target, [four.backrun, three.backrun, two.backrun]);
		assert.deepEqual(await stages([four, three, two, one]), ["BEST", "RUNNER_UP", "RUNNER_UP", "OUTBID"]);
		const uuids = new Set(fixture.backrunOrders(target).map(({ uuid }) => uuid));
		assert.equal(uuids.size, 4, "one for each bidder");
		const { transactions } = await fixture.block(await fixture.system.nextBlock());
		assert.deepEqual(
			transactions.map(({ hash }) => hash).slice(0, 2),
			[target.hash, four.backrun.hash],
			"the builder keeps the one that pays the most",
		);
		for (const lost of [three, two, one]) {
			const told = await lost.bidder.told(lost.hash, "NOT_INCLUDED outbid");
			assert.deepEqual(told.winner, { backrun: four.backrun.hash, paid: String(4n * SHARE) });
		}
		assert.equal((await four.bidder.reaches(four.hash, "INCLUDED")).bid, String(4n * SHARE));
		await until(
			"what it paid",
			async () => (await four.bidder.blocks(four.hash))[0]?.paid === String(4n * SHARE),
		);
		const [first] = (await fixture.events(target)).filter(({ type }) => type === "refunded");
		assert.equal((first as Record<string, unknown> | undefined)?.backrun, four.backrun.hash);
	});

	it("are distinct by owner, by sender and by contract", async () => {
		const target = await fixture.target();
		const contract = await fixture.place(PAYS_COINBASE);
		const best = await place(target, 9n, { to: contract });
		const sameContract = await place(target, 8n, { to: contract });
		const sameOwner = await place(target, 7n, {
			bidder: Object.assign(await fixture.bidder(), { from: best.bidder.from }),
		});
		const sameSender = await place(target, 6n, {
			bidder: Object.assign(await fixture.bidder(), { actor: best.bidder.actor }),
		});
		const other = await place(target, 1n);
		await fixture.out(target, [best.backrun, other.backrun]);
		assert.deepEqual(await stages([best, sameContract, sameOwner, sameSender, other]), [
			"BEST",
			"OUTBID",
			"OUTBID",
			"OUTBID",
			"RUNNER_UP",
		]);
		await fixture.system.nextBlock();
	});
});

describe("a bidder that pays one wei where it bid more", () => {
	it("is barred and told so, across a restart, until a reorganisation takes the block away", async () => {
		const to = await fixture.place(PAYS_LESS_AFTER_TIME);
		const crook = await fixture.bidder();
		const good = await fixture.place(PAYS_COINBASE);
		const by = {
			owner: Object.assign(await fixture.bidder(), { from: crook.from }),
			sender: Object.assign(await fixture.bidder(), { actor: crook.actor, nonce: 1 }),
			contract: await fixture.bidder(),
		};
		const target = await fixture.target();
		const short = await cheat(target, 50n, crook, to);
		await fixture.out(target, short.backrun);
		const block = await fixture.system.nextBlock();
		const bar = { until: block + 32, bid: String(50n * SHARE), paid: "1", block };
		await until("the bar", async () => (await bundle(short)).barred !== undefined);
		assert.deepEqual((await bundle(short)).barred, bar);
		assert.equal((await short.bidder.blocks(short.hash))[0]?.paid, "1");
		const words = `-32000 bidder is barred until block ${bar.until}: bid ${bar.bid} wei, paid 1 wei in block ${block}`;
		assert.equal(await metric('relay_bids_in_blocks_total{fact="short"}'), 1);
		assert.equal(await metric("relay_barred_bidders"), 3, "the owner, the sender and the contract");

		const fresh = await fixture.target();
		const refusals = async () => [
			await by.owner.tryBid(fresh, by.owner.backrun(SHARE, { to: good })),
			await by.sender.tryBid(fresh, by.sender.backrun(SHARE, { to: good })),
			await by.contract.tryBid(fresh, by.contract.backrun(SHARE, { to, data: word(1) })),
		];
		const isRefused = async () =>
			assert.deepEqual(
				await refusals(),
				[words, words, words].map((error) => ({ error })),
			);
		await isRefused();
		await fixture.system.restart();
		await fixture.open(fresh);
		await isRefused();
		const honest = await place(fresh, 1n);
		await fixture.out(fresh, honest.backrun);

		const release = fixture.system.node?.hold();
		await fixture.system.chain.rpc("anvil_reorg", [1, []]).finally(release);
		// What was put on the chain behind the block that is gone has gone with it.
		const again = await fixture.target();
		await until("the bar lifted", async () => {
			const answer = await by.owner.tryBid(again, by.owner.backrun(SHARE, { to: good }));
			return "hash" in answer;
		});
	});
});
