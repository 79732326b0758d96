// Cheats that try to be judged by nothing, or to have others judged wrongly: they withdraw what a builder has already, call
// themselves web pages, fill their target's record, or change what is in front of it.

import assert from "node:assert/strict";
import { before, it } from "node:test";
import { until } from "../until.ts";
import { type CheatAuction, ETHER, type Searcher, type Signed } from "./auctionFixture.ts";
import { attackerAddress, resultOf } from "./wire.ts";

const CHEAT_WEI = 5n * ETHER;
const HONEST_WEI = ETHER / 10n;
/** The contract's owner tells it that this is the block. */
const OWNER = 12;
/** A record keeps so many events at most: the first quarter and the last ones. */
const EVENTS = 200;

let auction: CheatAuction;

/** Pays five ether unless its owner has named the block. */
function cheatsBackrun(cheat: Searcher): Signed {
	const data = auction.cheat.abi.encodeFunctionData("run", [OWNER, [], [], false]);
	return auction.backrun(cheat, CHEAT_WEI, data);
}

/** The owner's transaction at the top of the next block. */
async function nameBlock(owner: Searcher, cheat: Searcher): Promise<void> {
	const { account, nonce } = owner;
	owner.nonce += 1;
	const data = auction.cheat.abi.encodeFunctionData("name");
	const { raw } = auction.first(account, { to: cheat.contract, nonce, gasLimit: 60_000, data });
	await auction.sendToBuilder([raw]);
}

/** The next block as the builder has it by now: it takes nothing more. */
async function sealedBlock(meanwhile: () => Promise<unknown>): Promise<readonly string[]> {
	auction.builder.setFaults({ reject: true });
	try {
		await meanwhile();
		return (await auction.nextBlock()).transactions;
	} finally {
		auction.builder.setFaults({});
	}
}

/** How often the builder was sent a bundle with this transaction. */
function sentCount({ raw }: Signed): number {
	return auction.builder.requests((one) => JSON.stringify(one.params).includes(raw)).length;
}

/** That bids of `searcher` are refused as those of one who has bid more than it paid. */
async function assertBarred(what: string, searcher: Searcher, about: { readonly origin?: string } = {}) {
	const target = await auction.target();
	const { error } = await auction.bid(searcher, target, cheatsBackrun(searcher), about);
	assert.match(
		error?.message ?? "taken",
		/^bidder is barred until block \d+: bid \d+ wei, paid 1 wei in /,
		what,
	);
}

/** The tests of this file, on an auction that runs. */
export function judgedCheats(auctionOf: () => CheatAuction): void {
	before(() => {
		auction = auctionOf();
	});

	it("who withdraws a cheat that the builder has already is barred as if he had not, by all of his names", async () => {
		const [cheat, owner, target] = [await auction.cheater(), await auction.honest(), await auction.target()];
		const cheats = cheatsBackrun(cheat);
		assert.equal((await auction.bid(cheat, target, cheats, { uuid: "mine" })).error, undefined);
		await auction.delivered(cheats);
		await nameBlock(owner, cheat);
		const block = await sealedBlock(() => auction.withdraw(cheat, "mine"));
		assert.equal(block[block.indexOf(target.hash) + 1], cheats.hash, "it is right behind its target");
		cheat.nonce += 1;
		await until("it is judged", async () => {
			const { error } = await auction.bid(cheat, await auction.target(), cheatsBackrun(cheat));
			return error?.message.startsWith("bidder is barred");
		});
		const fresh = await auction.cheater();
		await assertBarred("its key", { ...fresh, key: cheat.key });
		await assertBarred("its account", { ...fresh, account: cheat.account, nonce: cheat.nonce });
		await assertBarred("its address", { ...fresh, from: cheat.from });
		await assertBarred(
			"its address, as a web page",
			{ ...fresh, from: cheat.from },
			{ origin: "https://page.example" },
		);
	});

	it("dearer bids that come and go take no refund out of the record, and no proof", async () => {
		const target = await auction.target();
		const flooder = { ...(await auction.honest()), from: attackerAddress(130) };
		const flood = async (count: number, from: bigint): Promise<void> => {
			for (let i = 0n; i < count; i += 1n) {
				const dearer = auction.backrun(flooder, HONEST_WEI + from + i);
				assert.equal((await auction.bid(flooder, target, dearer, { uuid: "again" })).error, undefined);
			}
		};
		await flood(EVENTS / 4, 1n);
		const searcher = await auction.honest();
		const honest = auction.backrun(searcher, HONEST_WEI);
		const { result, error } = await auction.bid(searcher, target, honest);
		assert.equal(error, undefined);
		await auction.delivered(honest);
		await flood((EVENTS * 3) / 4, 1_000n);
		await auction.withdraw(flooder, "again");
		await until("only the honest bid is left", async () => {
			const { blocks } = await auction.told(searcher, String(result));
			return blocks.at(-1)?.stage === "BEST";
		});
		await auction.onlyBehind(target, honest);
		const { transactions } = await auction.nextBlock();
		assert.equal(transactions[transactions.indexOf(target.hash) + 1], honest.hash);
		const told = await until("what was paid", async () => {
			const now = await auction.told(searcher, String(result));
			return now.provenUpTo !== undefined && now;
		});
		assert.equal(told.provenUpTo, String(8n * HONEST_WEI));
		assert.ok((await auction.relay.client.status(target.hash)).refund > 0, "the refund is in the record");
	});

	it("who changes what is in front of his target has nobody barred whose bid is in the block as it was", async () => {
		const market = await auction.place(auction.share.runtime);
		const set = (parts: number) => auction.share.abi.encodeFunctionData("set", [parts]);
		const by = await auction.account();
		await auction.target({ by, to: market, data: set(50) });
		const target = await auction.target({ by, nonce: 1 });
		const searcher = { ...(await auction.honest()), contract: market };
		const honest = auction.backrun(searcher, HONEST_WEI, auction.share.abi.encodeFunctionData("run"));
		const { result, error } = await auction.bid(searcher, target, honest);
		assert.equal(error, undefined);
		await auction.delivered(honest);
		const bid = async () => (await auction.told(searcher, String(result))).blocks.at(-1)?.bid;
		assert.equal(await bid(), String(HONEST_WEI / 2n));
		const block = await sealedBlock(async () => {
			const { raw } = auction.first(by, { to: market, data: set(100), gasLimit: 100_000 });
			await resultOf("eth_sendRawTransaction", [raw], {
				url: auction.relay.url,
				from: attackerAddress(131),
				deadlineMs: 5_000,
			});
			await until("it is sent again, behind what is in front now", () => sentCount(honest) > 1);
		});
		assert.equal(block[block.indexOf(target.hash) + 1], honest.hash);
		const told = await until("what was paid", async () => {
			const now = await auction.told(searcher, String(result));
			return (now.provenUpTo !== undefined || now.barred !== undefined) && now;
		});
		assert.ok(!told.barred, JSON.stringify(told));
		assert.equal(told.provenUpTo, String(4n * HONEST_WEI));
	});

	it("a target that no block has makes nobody spent", async () => {
		const [searcher, target] = [
			{ ...(await auction.honest()), from: attackerAddress(132) },
			await auction.target(),
		];
		let bundle = "";
		for (let block = 0; block < 4; block += 1) {
			const honest = auction.backrun(searcher, HONEST_WEI);
			const { result, error } = await auction.bid(searcher, target, honest);
			assert.equal(error, undefined);
			bundle = String(result);
			await auction.delivered(honest);
			await auction.emptyBlock();
		}
		assert.equal((await auction.told(searcher, bundle)).spentUntil ?? null, null);
	});
}
