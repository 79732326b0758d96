// Relay and boost whose node is a load balancer in front of two honest ones, each of which gets one
// request in two. One of them is up to two blocks behind, or has other blocks of the same height.
// At the end nothing that was acknowledged has ended wrongly, and nothing is reported that the
// chain does not have.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import {
	type Acknowledged,
	cancels,
	contradiction,
	minedOn,
	OVERTAKEN,
	statusAt,
	submits,
} from "../../support/agreement.ts";
import { AuctionFixture } from "../../support/bidder.ts";
import { EMITTER, prepareBidding } from "../../support/biddingFixture.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { sized } from "../../support/length.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import type { WireStatus } from "../../support/relayClient.ts";
import { type Actor, ETHER } from "../../support/relayFixture.ts";
import { SeededRandom } from "../../support/seededRandom.ts";
import { until } from "../../support/until.ts";

const BLOCKS = sized(20, 200);
const USERS_PER_BLOCK = 3;
const PATHS = ["/fast", "/noreverts", "/nochecks", "/fullprivacy"] as const;
/** The others go to our relay alone. */
const JOURNALED: ReadonlySet<string> = new Set(["/fast", "/noreverts"]);
const KINDS = { plain: 3, chain: 2, replaced: 2, cancelled: 2, overtaken: 1, target: 2 };
const TIP = 2_000_000_000n;
const FUNDS = 100n * ETHER;

const seed = Number(process.env.TWO_NODES_SEED ?? Math.floor(Math.random() * 2 ** 31));
const random = new SeededRandom(seed);
let fixture: BoostFixture;
let users: AuctionFixture;
let boost: BoostClient;
let other: OtherNode;
before(async () => {
	fixture = await startBoostFixture({ system: { proxied: true } });
	users = new AuctionFixture(fixture.system);
	await prepareBidding(fixture.system);
	const balancer = fixture.system.node as NodeProxy;
	boost = await fixture.startBoost({ env: { ETH_RPC_URL: balancer.url } });
	other = await OtherNode.start(fixture.system.chain);
	balancer.setTargets(fixture.system.chain.url, other.url);
});
after(async () => {
	await fixture?.stop();
	await other?.stop();
});

/** An honest node that is not always at the chain's head. */
class OtherNode {
	readonly #chain: DevChain;
	readonly #own: DevChain;
	/** States of the chain that it does not have yet, oldest first. */
	#ahead: unknown[] = [];
	/** How many blocks of its own it has beyond those of the chain. */
	#siblings = 0;

	private constructor(chain: DevChain, own: DevChain) {
		this.#chain = chain;
		this.#own = own;
	}

	static async start(chain: DevChain): Promise<OtherNode> {
		const node = new OtherNode(chain, await startDevChain({ slotSeconds: chain.slotSeconds }));
		await node.follow("head", []);
		return node;
	}

	get url(): string {
		return this.#own.url;
	}

	/** To be called after each block. `raws`: transactions for a block of its own. */
	async follow(how: "head" | "behind" | "sibling", raws: readonly string[]): Promise<void> {
		this.#ahead.push(await this.#chain.rpc("anvil_dumpState"));
		const mayLag = this.#ahead.length <= 2;
		if (how === "head" || !mayLag) {
			// It keeps nothing of its own blocks: a state is added to what is there.
			await this.#own.rpc("anvil_reset");
			await this.#own.rpc("anvil_loadState", [this.#ahead.at(-1)]);
			this.#ahead = [];
			this.#siblings = 0;
		} else if (how === "sibling" && this.#siblings < this.#ahead.length) {
			for (const raw of raws) await this.#own.rpc("eth_sendRawTransaction", [raw]).catch(() => null);
			await this.#own.rpc("anvil_setCoinbase", [`0x${"51".repeat(20)}`]);
			await this.#own.rpc("anvil_mine", ["0x1"]);
			this.#siblings += 1;
		}
	}

	stop(): Promise<void> {
		return this.#own.stop();
	}
}

/** One user's part of a block. */
async function acts(actor: Actor): Promise<readonly (Acknowledged | null)[]> {
	const path = random.pick(PATHS);
	const sign = (nonce: number, factor = 1n) =>
		actor.sign({ nonce, maxPriorityFeePerGas: TIP * factor, maxFeePerGas: 50n * TIP * factor });
	switch (random.weighted(KINDS)) {
		case "plain":
			return [await submits(boost, path, sign(0))];
		case "chain":
			return [await submits(boost, path, sign(0)), await submits(boost, path, sign(1))];
		case "replaced":
			return [
				await submits(boost, path, sign(0), OVERTAKEN),
				await submits(boost, path, sign(0, 2n), OVERTAKEN),
			];
		case "cancelled": {
			const sent = await submits(boost, path, sign(0));
			if (sent === null) return [];
			return (await cancels(boost, sent.tx)) ? [{ ...sent, mayEnd: ["CANCELLED"] }] : [sent];
		}
		case "overtaken": {
			const sent = await submits(boost, path, sign(0), OVERTAKEN);
			await users.publish(sign(0, 4n));
			return [sent];
		}
		case "target": {
			const tx = actor.sign({ to: EMITTER, maxPriorityFeePerGas: TIP, maxFeePerGas: 50n * TIP });
			const sent = await submits(boost, "/fast", tx);
			await users.offer(tx, 10n ** 15n).catch(() => null);
			return [sent];
		}
	}
}

/** The fault in a status; null: none. */
async function fault(one: Acknowledged, status: WireStatus): Promise<string | null> {
	const { tx } = one;
	const found = await minedOn(fixture.system.chain, tx);
	const wrong = contradiction(one, found, status);
	const { refundWei } = status;
	if (wrong !== null || found === null || refundWei === "0") return wrong;
	const balance = await users.balance(tx.from);
	const paid = balance + found.cost - FUNDS;
	return paid === BigInt(refundWei ?? 0)
		? null
		: `${tx.hash}: ${refundWei} refunded, and the chain has ${paid}`;
}

test(`${BLOCKS} blocks of submissions, replacements, cancels and bids`, async (context) => {
	context.diagnostic(`TWO_NODES_SEED=${seed}`);
	const { system } = fixture;
	const all: Acknowledged[] = [];
	let refused = 0;
	const actors: Actor[] = [];
	for (let i = 0; i < BLOCKS * USERS_PER_BLOCK; i += 1) actors.push(await users.actor(FUNDS));
	await users.passBlock();
	await other.follow("head", []);
	for (let block = 0; block < BLOCKS; block += 1) {
		const some = actors.splice(0, USERS_PER_BLOCK);
		const sent = (await Promise.all(some.map(acts))).flat();
		refused += sent.filter((one) => one === null).length;
		all.push(...sent.filter((one) => one !== null));
		const { number } = await system.builder.buildBlock();
		const raws = all.slice(-2 * USERS_PER_BLOCK).map(({ tx }) => tx.raw);
		await other.follow(random.pick(["head", "behind", "sibling"]), raws);
		await system.seesHead(number);
	}
	// From now on both have the same blocks.
	for (let i = 0; i < 5; i += 1) {
		const { number } = await system.builder.buildBlock();
		await other.follow("head", []);
		await system.seesHead(number);
	}
	await until("each is mined, cancelled, or its nonce is used", async () => {
		const left = [];
		for (const { tx, mayEnd } of all) {
			if (mayEnd.includes("CANCELLED") || (await minedOn(system.chain, tx)) !== null) continue;
			// anvil may lose the public transaction that overtakes another one, which always has nonce 0.
			const count = Number(await system.chain.rpc("eth_getTransactionCount", [tx.from, "latest"]));
			if (mayEnd.length === 0 || count === 0) left.push(tx);
		}
		if (left.length === 0) return true;
		await system.builder.buildBlock();
		await other.follow("head", []);
		return false;
	});
	const wrong: (string | null)[] = [];
	const stages: Record<string, number> = {};
	let refunds = 0;
	for (const one of all) {
		const status = await users.status(one.tx);
		wrong.push(await fault(one, status), await fault(one, await statusAt(boost, one.tx)));
		stages[String(status.stage)] = (stages[String(status.stage)] ?? 0) + 1;
		if (status.refundWei !== "0") refunds += 1;
	}
	context.diagnostic(
		`${all.length} acknowledged, ${refused} refused, ${refunds} refunds: ${JSON.stringify(stages)}`,
	);
	assert.deepEqual(
		wrong.filter((one) => one !== null),
		[],
	);
	for (const stage of ["INCLUDED", "REPLACED", "CANCELLED"])
		assert.ok((stages[stage] ?? 0) > 0, `some are ${stage}`);
	// Boost by itself, of what its journal has.
	await fixture.goesOut("relay", boost);
	for (const one of all.filter(({ path }) => JOURNALED.has(path))) {
		const found = await minedOn(system.chain, one.tx);
		const status = await statusAt(boost, one.tx);
		const may = found === null ? one.mayEnd : [found.stage];
		assert.ok(may.includes(status.stage ?? ""), `not ${may}: ${JSON.stringify(status)}`);
	}
});
