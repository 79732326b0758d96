// Chains of one sender that need more gas than go-ethereum gives to one request (`--rpc.gascap`):
// they are simulated in parts, or not at all, and are never told as failing because of the cap.
// geth mines them all. Without GETH on recorded answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { eth_callBundle } from "../../relay/ingress/methods/eth_callBundle.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { askAlone, askMethod, callManyOn, type Entry } from "../support/callManyFixture.ts";
import { PAYS_COINBASE, REVERTS } from "../support/contracts.ts";
import { GethSimulation } from "../support/gethSimulation.ts";
import { startRecordedGeth } from "../support/recordedGeth.ts";
import {
	abilitiesOf,
	addressOf,
	backrunRequest,
	ETHER,
	messages,
	requestFor,
	signed,
} from "../support/simulationFixture.ts";

/**
 * Uses 11,382,852 gas, whatever it is given: PUSH3 437000, JUMPDEST PUSH1 1 SWAP1 SUB DUP1 PUSH1 4
 * JUMPI, STOP.
 */
const WORKS = addressOf(1);
/** The same, but reverts if it is given too little. */
const CHECKS = addressOf(2);
const PAYS = addressOf(3);
const FAILS = addressOf(4);
const ALLOC = Object.fromEntries(
	[
		[WORKS, "0x6206ab085b600190038060045700"],
		// GAS PUSH3 11,000,000 LT PUSH1 JUMPI PUSH0 PUSH0 REVERT, JUMPDEST and the loop.
		[CHECKS, "0x5a62a7d8c010600c575f5ffd5b6206ab085b600190038060115700"],
		[PAYS, PAYS_COINBASE],
		[FAILS, REVERTS],
	].map(([address = "", code = ""]) => [address.slice(2), { code, balance: "0x0" }]),
);
const GAS = 11_500_000n;
const BID = 1_234_567_890_123_457n;
const MUCH = 10_000n * ETHER;

const above = (cap: number) => `simulation not possible: the node runs ${cap} gas at most`;

interface Row {
	readonly cap: number;
	/** The outcomes of five such transactions: on a node that traces, and on one that does not. */
	readonly traced: readonly string[];
	readonly untraced: readonly string[];
}

const FIVE = ["ok", "ok", "ok", "ok", "ok"];
const ROWS: readonly Row[] = [
	{ cap: 50_000_000, traced: FIVE, untraced: ["ok", "ok", "ok", "ok", above(50_000_000)] },
	{ cap: 20_000_000, traced: FIVE, untraced: ["ok", above(20_000_000)] },
	{ cap: 10_000_000, traced: [above(10_000_000)], untraced: [above(10_000_000)] },
	{ cap: 0, traced: FIVE, untraced: FIVE },
];

for (const { cap, traced, untraced } of ROWS) {
	describe(`with a cap of ${cap}, five transactions of one sender with 11.5 million gas each`, () => {
		let geth: GethSimulation;
		let plain: GethSimulation;
		let mined: boolean;
		before(async () => {
			const args = ["--rpc.gascap", String(cap)];
			const node = await startRecordedGeth(`simulationGasCap${cap}`, { alloc: ALLOC, args });
			geth = new GethSimulation(node);
			plain = new GethSimulation(node, "debug_traceCall");
			await node.mine({ txs: [] });
			mined = (await geth.mined(await chain([WORKS, WORKS, WORKS, WORKS, WORKS]))).passed;
		});
		after(() => geth.geth.stop());

		function chain(targets: readonly string[]): Promise<DecodedTransaction[]> {
			return Promise.all(
				targets.map((to, nonce) =>
					signed(geth.wallet(0), { to, nonce, gasLimit: to === FAILS ? 100_000n : GAS }),
				),
			);
		}

		it("are all mined", () => assert.equal(mined, true));

		it("know the cap", async () => {
			assert.equal((await abilitiesOf(geth.node)).report.gasCap, cap === 0 ? null : cap);
		});

		for (const [how, last] of [
			["run out of gas", WORKS],
			["revert", CHECKS],
		] as const) {
			it(`never fail because of the cap, where too little gas makes the last one ${how}`, async () => {
				const txs = await chain([WORKS, WORKS, WORKS, WORKS, last]);
				const request = { ...requestFor(await geth.block(), MUCH, txs), mayWait: true };
				for (const [node, told] of [
					[geth, traced],
					[plain, untraced],
				] as const) {
					const outcomes = await node.run(request);
					assert.deepEqual(messages(outcomes), told);
					assert.ok(!outcomes.some((one) => "againMs" in one), "it is of no use to ask again: a cap stays");
				}
			});
		}

		it("fail where they fail, behind as many as run", async () => {
			const txs = await chain([WORKS, FAILS, WORKS]);
			const request = requestFor(await geth.block(), MUCH, txs);
			const expected = cap === 10_000_000 ? traced : ["ok", "execution reverted"];
			assert.deepEqual(messages(await geth.run(request)), expected);
			assert.deepEqual(messages(await plain.run(request)), expected);
		});

		it("are simulated by eth_callBundle and eth_callMany as well, or it is said why not", async () => {
			const txs = (await chain([WORKS, WORKS, WORKS, WORKS, CHECKS])).map(({ raw }) => bytesToHex(raw));
			const params = [{ txs, blockNumber: "0x2", stateBlockNumber: "0x1" }];
			const short = `out of gas: the node runs ${cap} at most`;
			const callMany = callManyOn(geth.node, new Map(), {
				randaoOf: () => `0x${"5a".repeat(32)}`,
				timeoutMs: 60_000,
			});
			const bundle = (await askMethod(callMany, params, eth_callBundle)) as { results: Entry[] };
			const [many = []] = await askAlone(callMany, params);
			// Those behind one that could not run have another nonce.
			const expected = untraced.map((one) => (one === "ok" ? one : short));
			for (const entries of [bundle.results, many])
				assert.deepEqual(
					entries.slice(0, expected.length).map(({ error = "ok" }) => error),
					expected,
				);
		});

		it("take a bid behind them, to the wei, or report why not", async () => {
			const targets = await chain([WORKS, WORKS]);
			const backrun = await signed(geth.wallet(1), { to: PAYS, value: BID, gasLimit: GAS });
			const request = backrunRequest(requestFor(await geth.block(), MUCH, targets), backrun, MUCH);
			for (const [node, told] of [
				[geth, traced],
				[plain, untraced],
			] as const) {
				const outcomes = await node.run(request);
				const last = outcomes.at(-1);
				if (told.length > 2) assert.equal(last?.ok === true && last.paid, BID);
				else assert.equal(messages(outcomes).at(-1), above(cap));
			}
		});
	});
}
