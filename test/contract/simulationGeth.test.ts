// Simulation on go-ethereum where it is unlike anvil: gas caps, blocks ahead, forks. Transactions
// that pass here are those that geth mines. Without GETH on recorded answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ForkReader } from "../../relay/chain/forkReader.ts";
import { silentLogger } from "../../shared/log.ts";
import * as contracts from "../support/contracts.ts";
import { AMSTERDAM } from "../support/forks.ts";
import { COINBASE, GethSimulation } from "../support/gethSimulation.ts";
import { startRecordedGeth } from "../support/recordedGeth.ts";
import {
	abilitiesOf,
	addressOf,
	backrunRequest,
	codes,
	ETHER,
	messages,
	requestFor,
	signed,
} from "../support/simulationFixture.ts";

const SINK = addressOf(99);
const BURNS = addressOf(1);
const NEEDS_MUCH = addressOf(2);
const PAYS = addressOf(3);
const EMITS = addressOf(4);
const ALLOC = Object.fromEntries(
	[
		// Uses gas until less than 100,000 is left: JUMPDEST GAS PUSH3 LT PUSH0 JUMPI STOP.
		[BURNS, "0x5b5a620186a0105f5700"],
		// The same, but reverts unless it begins with more than ten million.
		[NEEDS_MUCH, "0x5a6298968010600c575f5ffd5b5b5a620186a010600d5700"],
		[PAYS, contracts.PAYS_COINBASE],
		[EMITS, contracts.EMITS],
		[addressOf(10), contracts.DESTROYS_ITSELF],
	].map(([address = "", code = ""]) => [address.slice(2), { code, balance: "0x0" }]),
);
const BID = 1_234_567_890_123_457n;
const MUCH = 10_000n * ETHER;

describe("simulation on go-ethereum", () => {
	let fixture: GethSimulation;
	let untraced: GethSimulation;
	before(async () => {
		const geth = await startRecordedGeth("simulation", { alloc: ALLOC });
		fixture = new GethSimulation(geth);
		untraced = new GethSimulation(geth, "debug_traceCall");
		await geth.mine({ txs: [], coinbase: COINBASE });
	});
	after(() => fixture.geth.stop());

	it("finds the gas that the node gives to one request", async () => {
		const { report } = await abilitiesOf(fixture.node);
		const expected = { method: "eth_simulateV1", gasCap: 50_000_000, missing: [] };
		assert.deepEqual(report, expected);
	});

	describe("of five transactions with more gas together than the node gives to one request", () => {
		const five = () =>
			Promise.all(
				[0, 1, 2, 3, 4].map((nonce) =>
					signed(fixture.wallet(0), { to: nonce === 4 ? NEEDS_MUCH : BURNS, nonce, gasLimit: 11_500_000n }),
				),
			);

		it("passes all, as geth mines them", async () => {
			const txs = await five();
			const outcomes = await fixture.run(requestFor(await fixture.block(), MUCH, txs));
			assert.deepEqual(codes(outcomes), ["ok", "ok", "ok", "ok", "ok"]);
			assert.equal((await fixture.mined(txs)).passed, true);
		});

		it("does not say that the last one fails where the node does not trace", async () => {
			const outcomes = await untraced.run(requestFor(await fixture.block(), MUCH, await five()));
			assert.deepEqual(codes(outcomes), ["ok", "ok", "ok", "ok", "NODE_UNAVAILABLE"]);
		});

		it("measures a backrun behind four of them", async () => {
			const targets = (await five()).slice(0, 4);
			const backrun = await signed(fixture.wallet(1), { to: PAYS, value: BID, gasLimit: 10_000_000n });
			const request = backrunRequest(requestFor(await fixture.block(), MUCH, targets), backrun, MUCH);
			const outcomes = await fixture.run(request);
			const last = outcomes.at(-1);
			assert.deepEqual([codes(outcomes).length, last?.ok === true && last.paid], [5, BID]);
			const unknown = messages(await untraced.run(request)).at(-1);
			assert.equal(unknown, "simulation not possible: the node runs 50000000 gas at most");
		});

		it("holds that a sixth has no room in the block, unless it may wait for the next one", async () => {
			const sixth = await signed(fixture.wallet(0), { to: BURNS, nonce: 5, gasLimit: 11_500_000n });
			const request = requestFor(await fixture.block(), MUCH, [...(await five()).slice(0, 4), sixth]);
			const small = { ...request, block: { ...request.block, gasLimit: 34_500_000n } };
			const chain = small.transactions.slice(0, 4);
			assert.deepEqual(codes(await fixture.run({ ...small, transactions: chain })), [
				...["ok", "ok", "ok"],
				"GAS_LIMIT_TOO_HIGH",
			]);
			const waiting = await fixture.run({ ...small, transactions: chain, mayWait: true });
			assert.deepEqual(codes(waiting), ["ok", "ok", "ok", "ok"]);
		});
	});

	for (const [ahead, slotSeconds] of [
		[2, 12],
		[30, 12],
		[2, 1],
		[30, 2],
	] as const) {
		it(`measures a bid for ${ahead} blocks ahead, ${slotSeconds} s from one to the next`, async () => {
			const target = await signed(fixture.wallet(0), { to: SINK, value: 5n });
			const backrun = await signed(fixture.wallet(1), { to: PAYS, value: BID });
			const block = await fixture.block(ahead, slotSeconds);
			const outcomes = await fixture.run(backrunRequest(requestFor(block, MUCH, [target]), backrun, MUCH));
			assert.deepEqual(codes(outcomes), ["ok", "ok"]);
			assert.equal(outcomes[1]?.ok === true && outcomes[1].paid, BID);
		});
	}
});

describe("simulation on go-ethereum with Amsterdam", () => {
	let fixture: GethSimulation;
	before(async () => {
		fixture = new GethSimulation(
			await startRecordedGeth("simulationAmsterdam", { alloc: ALLOC, amsterdam: true }),
		);
		await fixture.geth.mine({ txs: [], coinbase: COINBASE });
	});
	after(() => fixture.geth.stop());

	it("takes the log of each transfer for none of the transaction's", async () => {
		const wallet = fixture.wallet(0);
		const txs = [
			// To be made an account costs more there.
			await signed(wallet, { to: SINK, value: 5n, gasLimit: 1_000_000n }),
			await signed(wallet, { to: EMITS, value: 5n, nonce: 1 }),
		];
		const outcomes = await fixture.run(requestFor(await fixture.block(), MUCH, txs));
		assert.deepEqual(
			outcomes.map((outcome) => outcome.ok && outcome.emitsEvents),
			[false, true],
		);
	});

	it("allows what the fork allows: more than 2^24 gas, and longer init code", async () => {
		const background = { run: () => assert.fail("nothing is asked for in the background") };
		const log = silentLogger;
		const forks = new ForkReader({ chainId: 31_337n }, { node: fixture.geth.node, background, log });
		await forks.read();
		assert.equal(forks.at(0), AMSTERDAM);
		const wallet = fixture.wallet(0);
		const txs = [
			await signed(wallet, { to: SINK, gasLimit: 20_000_000n }),
			await signed(wallet, { data: `0x${"00".repeat(60_000)}`, nonce: 1, gasLimit: 8_000_000n }),
		];
		assert.deepEqual(codes(await fixture.run(requestFor(await fixture.block(), MUCH, txs))), ["ok", "ok"]);
		assert.equal((await fixture.mined(txs)).passed, true);
	});

	it("measures a payment, though each transfer is a log", async () => {
		const gasLimit = 1_000_000n;
		const target = await signed(fixture.wallet(0), { to: PAYS, value: 77n, gasLimit });
		const backrun = await signed(fixture.wallet(1), { to: addressOf(10), value: BID, gasLimit });
		const request = backrunRequest(requestFor(await fixture.block(), MUCH, [target]), backrun, MUCH);
		const last = (await fixture.run(request)).at(-1);
		assert.equal(last?.ok === true && last.paid, BID);
		assert.equal((await fixture.mined([target, backrun])).paid, 77n + BID);
	});
});
