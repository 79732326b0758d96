// The relay with a builder on a real go-ethereum with Amsterdam's rules, which the environment
// variable GETH names: large transactions on all paths and bids behind them, refunds to the wei,
// payments without `debug`, and the moment of the fork. Skipped without GETH: what the relay asks
// there is different each time.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type GethOptions, payloadAttributes, SKIP_GETH } from "../devnet/gethChain.ts";
import { AuctionFixture, type Placed, type Target } from "../support/bidder.ts";
import { EMITTER, PAYER } from "../support/biddingFixture.ts";
import { EMITS, PAYS_COINBASE } from "../support/contracts.ts";
import { type Actor, ETHER, type Signed } from "../support/relayFixture.ts";
import { type SystemOptions, startSystem, type TestSystem } from "../support/systems.ts";
import { testAccount } from "../support/txFactory.ts";

const PATHS = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"];
/** Writes new slots: as many as its second word says, from its first on; each uses 110,055 gas. */
const FILLS = `0x${"f1".repeat(20)}`;
/**
 * Pays the coinbase like PAYER, but nothing where PREVRANDAO is 0, as it is in blocks of the dev
 * builder.
 */
const LIES = `0x${"f2".repeat(20)}`;
/** The relay is only ready behind a head that is not old. */
const GENESIS = Math.floor(Date.now() / 1_000);
const BID = 12_345_678_901_234_567n;
const word = (value: number) => value.toString(16).padStart(64, "0");

const CODES: Readonly<Record<string, string>> = {
	[PAYER]: PAYS_COINBASE,
	[EMITTER]: EMITS,
	[FILLS]: "0x6020355b80805f3501556001900380600357" + "5f5fa000",
	// PREVRANDAO PUSH1 5 JUMPI STOP JUMPDEST, and as PAYER.
	[LIES]: `0x44600557005b${PAYS_COINBASE.slice(2)}`,
};
const ALLOC = Object.fromEntries([
	...Object.entries(CODES).map(([address, code]) => [address.slice(2), { code, balance: "0x0" }]),
	// The accounts of the fixture's actors, which it cannot fund here.
	...Array.from({ length: 100 }, (_, i) => [
		testAccount(1_001 + i).address.slice(2),
		{ balance: `0x${(1_000n * ETHER).toString(16)}` },
	]),
]);

async function start(geth: GethOptions = {}, options: SystemOptions = {}): Promise<AuctionFixture> {
	const chain = { amsterdam: true, gasLimit: 200_000_000, alloc: ALLOC, genesisTimestamp: GENESIS, ...geth };
	return new AuctionFixture(await startSystem({ ...options, geth: chain }));
}

/** Slots that no transaction has written yet. */
let slotsFrom = 0;
function filling(actor: Actor, nonce: number, slots: number, gasLimit: number): Signed {
	slotsFrom += 1_000;
	return actor.sign({ to: FILLS, nonce, gasLimit, data: `0x${word(slotsFrom)}${word(slots)}` });
}

/** The content of the last event of this type. */
async function told(fixture: AuctionFixture, tx: Signed, type: string): Promise<Record<string, unknown>> {
	return { ...(await fixture.event(tx, type)) };
}

describe("the relay on a real go-ethereum with Amsterdam", {
	skip: SKIP_GETH,
}, () => {
	let fixture: AuctionFixture;
	let system: TestSystem;
	before(async () => {
		fixture = await start({}, { proxied: true });
		system = fixture.system;
	});
	after(() => system?.stop());

	it("knows the fork", async () => {
		const info = (await (await fetch(`${system.client.url}/info`)).json()) as { fork: string };
		assert.equal(info.fork, "Amsterdam");
	});

	for (const path of PATHS) {
		it(`${path} has three transactions of 40 million gas mined, and is never told that one fails for the node's cap`, async () => {
			const actor = await fixture.actor();
			const three = [0, 1, 2].map((nonce) => filling(actor, nonce, 360, 40_000_000));
			await fixture.submit(path, ...three);
			for (const tx of three) await fixture.waitUntilSent(tx);
			await system.nextBlock();
			for (const tx of three) assert.deepEqual((await fixture.receipt(tx))?.ok, true);
			const large = filling(actor, 3, 810, 90_000_000);
			await fixture.submit(path, large);
			if (path === "/noreverts" || path === "/fullprivacy") {
				// No part of it fits, and these promise no revert.
				const { simulationError } = await fixture.reaches(large, "SIMULATION_FAILED");
				const message = "simulation not possible: the node runs 50000000 gas at most";
				assert.deepEqual(simulationError?.message, message);
				return;
			}
			await fixture.waitUntilSent(large);
			await system.nextBlock();
			assert.deepEqual((await fixture.receipt(large))?.ok, true);
		});
	}

	it("takes a bid behind the third of them, and it is mined there", async () => {
		const actor = await fixture.actor();
		const three = [0, 1, 2].map((nonce) => filling(actor, nonce, 360, 40_000_000));
		await fixture.submit("/fast", ...three);
		const [, , target] = three;
		assert.ok(target);
		await fixture.open(target);
		const { backrun } = await fixture.offerOut(target, BID, { gasLimit: 300_000 });
		const hashes = await fixture.blockFrom(target);
		assert.deepEqual(hashes.slice(0, 2), [target.hash, backrun.hash]);
	});

	describe("a refund", () => {
		const EMPTY = "0x00000000000000000000000000000000fee00001";
		const SHARED = "0x00000000000000000000000000000000fee00002";

		async function bidOn(recipient: string): Promise<{ readonly target: Target; readonly placed: Placed }> {
			const target = await fixture.target(`/fast?refundRecipient=${recipient}`, { gasLimit: 300_000 });
			return { target, placed: await fixture.offerOut(target, BID, { gasLimit: 300_000 }) };
		}

		/** Checks the report of a refund that took this much gas. */
		async function assertRefunded({ target, placed }: Awaited<ReturnType<typeof bidOn>>, gas: bigint) {
			const { cost, owed, paid, block } = await told(fixture, target, "refunded");
			const { baseFee } = await fixture.block(Number(block));
			const brought = await fixture.brought(placed.backrun, BID);
			assert.equal(cost, String(gas * baseFee));
			assert.deepEqual([owed, paid], Array(2).fill(String((brought * 90n) / 100n - gas * baseFee)));
			return BigInt(String(paid));
		}

		it("to an empty and to an existing address: owed equals paid", async () => {
			const first = await bidOn(EMPTY);
			await system.nextBlock();
			const paid = await assertRefunded(first, 204_600n);
			assert.equal(await fixture.balance(EMPTY), paid);
			const second = await bidOn(EMPTY);
			await system.nextBlock();
			assert.equal(await fixture.balance(EMPTY), paid + (await assertRefunded(second, 21_000n)));
		});

		it("to an address that another refund of the block has made", async () => {
			const both = [await bidOn(SHARED), await bidOn(SHARED)];
			await system.nextBlock();
			const receipts = await Promise.all(both.map(({ target }) => fixture.receipt(target)));
			const isFirst = (receipts[0]?.index ?? 0) < (receipts[1]?.index ?? 0);
			const [first, second] = isFirst ? both : both.reverse();
			assert.ok(first && second);
			const paid = (await assertRefunded(first, 204_600n)) + (await assertRefunded(second, 21_000n));
			assert.equal(await fixture.balance(SHARED), paid);
		});
	});

	it("without debug, what a backrun pays is read from the block's access list", async () => {
		const { node, chain } = system;
		assert.ok(node);
		node.setRule({
			refuse: (method) =>
				method.startsWith("debug_") ? { code: -32601, message: "the method does not exist" } : null,
			// go-ethereum 1.17.8 serves them to consensus nodes alone.
			answer: async (method, [hash]) =>
				method === "eth_getBlockAccessList" ? listOf(chain, String(hash)) : undefined,
		});
		await system.restart();
		const bidder = await fixture.bidder();
		const target = await fixture.target("/fast", { gasLimit: 300_000 });
		const { backrun, hash } = await fixture.offerOut(target, BID, { bidder, to: LIES, gasLimit: 300_000 });
		const block = await system.nextBlock();
		assert.equal((await fixture.receipt(backrun))?.block, block);
		const { bid, brought } = await told(fixture, target, "refunded");
		assert.deepEqual([bid, brought], [String(BID), String(await fixture.brought(backrun, 0n))]);
		const own = await bidder.told(hash, "INCLUDED");
		assert.deepEqual([own.bid, own.paid], [String(BID), "0"]);
		bidder.nonce += 1;
		const next = await fixture.target("/fast", { gasLimit: 300_000 });
		await fixture.offerOut(next, BID, { bidder, gasLimit: 300_000 });
		node.setRule(null);
	});
});

/**
 * A block's access list, as far as it tells the coinbase's balance, by traces of the node behind
 * the proxy.
 */
async function listOf(chain: TestSystem["chain"], hash: string): Promise<readonly object[]> {
	const block = (await chain.rpc("eth_getBlockByHash", [hash, false])) as { miner: string };
	const tracer = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };
	const traces = (await chain.rpc("debug_traceBlockByHash", [hash, tracer])) as readonly {
		readonly result: { readonly post: Readonly<Record<string, { readonly balance?: string }>> };
	}[];
	const balanceChanges = traces.flatMap(({ result: { post } }, i) => {
		const value = post[block.miner]?.balance;
		return value === undefined ? [] : [{ index: `0x${(i + 1).toString(16)}`, value }];
	});
	return [{ address: block.miner, balanceChanges }];
}

describe("the moment of the fork on a real go-ethereum", {
	skip: SKIP_GETH,
}, () => {
	const SLOTS_BEFORE = 4;
	/** Least gas until Osaka, 31,000; since Amsterdam 79,000. */
	const SHAPE = { data: new Uint8Array(1_000) };
	const WORDS = "insufficient gas for floor data gas cost: gas 40000, minimum needed 79000";
	let fixture: AuctionFixture;
	before(async () => {
		const amsterdam = GENESIS + 12 * SLOTS_BEFORE;
		fixture = await start({ amsterdam });
	});
	after(() => fixture?.system.stop());

	it("holds what the new rules do not allow, tells why, and loses nothing; what they allow is mined", async () => {
		const { system } = fixture;
		const fork = async () =>
			((await (await fetch(`${system.client.url}/info`)).json()) as { fork: string }).fork;
		assert.equal(await fork(), "Osaka");
		const actors = await Promise.all(PATHS.map(() => fixture.actor()));
		const [least, more] = [40_000, 300_000].map((gasLimit) =>
			actors.map((actor) => actor.sign({ ...SHAPE, gasLimit, nonce: gasLimit === 40_000 ? 0 : 1 })),
		);
		assert.ok(least && more);
		for (const [i, path] of PATHS.entries())
			await fixture.submit(path, ...[least[i], more[i]].flatMap((tx) => tx ?? []));
		await Promise.all([...least, ...more].map((tx) => fixture.waitUntilSent(tx)));
		// Blocks of others, up to the first with the new rules.
		for (let slot = 1; slot < SLOTS_BEFORE; slot += 1) {
			const attributes = payloadAttributes(slot, GENESIS + 12 * slot);
			await system.chain.rpc("testing_commitBlockV1", [attributes, [], "0x"]);
			await fixture.seesHead(slot);
		}
		for (const [i, tx] of least.entries()) {
			const { simulationError } = await fixture.reaches(tx, "SIMULATION_FAILED");
			assert.deepEqual(simulationError, { code: "FORK_RULES", message: WORDS }, PATHS[i]);
		}
		assert.equal(await fork(), "Amsterdam");
		// Each sender replaces what no block can hold, and what stands behind it follows.
		const fees = { maxFeePerGas: 40n * 10n ** 9n, maxPriorityFeePerGas: 2n * 10n ** 9n };
		const replaced = actors.map((actor) => actor.sign({ ...SHAPE, ...fees, gasLimit: 300_000 }));
		for (const [i, tx] of replaced.entries()) await fixture.submit(PATHS[i] ?? "", tx);
		await Promise.all([...replaced, ...more].map((tx) => fixture.waitUntilSent(tx)));
		await system.nextBlock();
		for (const tx of [...replaced, ...more]) assert.equal((await fixture.receipt(tx))?.ok, true);
	});
});
