// Transactions of Amsterdam that need more gas than go-ethereum gives one request as it comes (50
// million), most of it for new state (EIP-8037): they are simulated in parts, or not at all, and
// are never told as failing because of the cap. geth mines them all. Without GETH on recorded
// answers: see recordedGeth.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { eth_callBundle } from "../../relay/ingress/methods/eth_callBundle.ts";
import { bytesToHex } from "../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { askAlone, askMethod, callManyOn, type Entry } from "../support/callManyFixture.ts";
import { PAYS_COINBASE } from "../support/contracts.ts";
import { AMSTERDAM, always } from "../support/forks.ts";
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

/** Writes new slots: as many as its second word says, from its first on. */
const FILLS = addressOf(1);
const PAYS = addressOf(3);
/** Burns gas until none is left: JUMPDEST PUSH0 JUMP. */
const BURNS = addressOf(4);
const ALLOC = Object.fromEntries(
	[
		// PUSH1 32 CALLDATALOAD; JUMPDEST DUP1 DUP1 PUSH0 CALLDATALOAD ADD SSTORE PUSH1 1 SWAP1 SUB
		// DUP1 PUSH1 3 JUMPI STOP.
		[FILLS, "0x6020355b80805f3501556001900380600357" + "00"],
		[PAYS, PAYS_COINBASE],
		[BURNS, "0x5b5f56"],
	].map(([address = "", code = ""]) => [address.slice(2), { code, balance: "0x0" }]),
);
const MUCH = 100_000n * ETHER;
const BID = 1_234_567_890_123_457n;
const word = (value: number) => value.toString(16).padStart(64, "0");

let geth: GethSimulation;
let plain: GethSimulation;
before(async () => {
	const node = await startRecordedGeth("simulationLargeAmsterdam", {
		...{ amsterdam: true, alloc: ALLOC, gasLimit: 200_000_000 },
	});
	geth = new GethSimulation(node);
	plain = new GethSimulation(node, "debug_traceCall");
	await node.mine({ txs: [] });
});
after(() => geth?.geth.stop());

/** Uses 110,055 gas for each slot, nine tenths of it for state. */
function fills(nonce: number, slots: number, gasLimit: bigint): Promise<DecodedTransaction> {
	const data = `0x${word(10_000 * (nonce + 1))}${word(slots)}`;
	return signed(geth.wallet(0), { to: FILLS, nonce, gasLimit, data });
}

const three = () => Promise.all([0, 1, 2].map((nonce) => fills(nonce, 360, 40_000_000n)));
const large = async () => [await fills(0, 810, 90_000_000n)];
const above = "simulation not possible: the node runs 50000000 gas at most";

const ROWS = [
	{
		name: "three transactions of 40 million gas",
		txs: three,
		traced: ["ok", "ok", "ok"],
		untraced: ["ok", above],
	},
	{ name: "one of 90 million", txs: large, traced: [above], untraced: [above] },
];

for (const { name, txs, traced, untraced } of ROWS) {
	describe(name, () => {
		const ways = () => [[geth, traced] as const, [plain, untraced] as const];

		it("is mined", async () => assert.equal((await geth.mined(await txs())).passed, true));

		it("never fails because of the cap", async () => {
			const block = { ...(await geth.block()), gasLimit: 200_000_000n };
			const request = { ...requestFor(block, MUCH, await txs()), mayWait: true };
			for (const [node, told] of ways()) assert.deepEqual(messages(await node.run(request)), told);
		});

		it("is simulated by eth_callBundle and eth_callMany as well, or it is said why not", async () => {
			const raws = (await txs()).map(({ raw }) => bytesToHex(raw));
			const params = [{ txs: raws, blockNumber: "0x2", stateBlockNumber: "0x1" }];
			const callMany = callManyOn(
				geth.node,
				new Map(),
				{ randaoOf: () => `0x${"5a".repeat(32)}`, timeoutMs: 60_000 },
				always(AMSTERDAM),
			);
			const bundle = (await askMethod(callMany, params, eth_callBundle)) as { results: Entry[] };
			const [many = []] = await askAlone(callMany, params);
			const expected = untraced.map((one) =>
				one === "ok" ? one : "out of gas: the node runs 50000000 at most",
			);
			for (const entries of [bundle.results, many]) {
				const errors = entries.slice(0, expected.length).map(({ error = "ok" }) => error);
				assert.deepEqual(errors, expected);
			}
		});

		it("takes a bid behind it, to the wei, or reports why not", async () => {
			const backrun = await signed(geth.wallet(1), { to: PAYS, value: BID, gasLimit: 1_000_000n });
			const block = { ...(await geth.block()), gasLimit: 200_000_000n };
			const request = backrunRequest(requestFor(block, MUCH, await txs()), backrun, MUCH);
			for (const [node, told] of ways()) {
				const outcomes = await node.run(request);
				const last = outcomes.at(-1);
				if (told.includes(above)) assert.equal(messages(outcomes).at(-1), above);
				else assert.equal(last?.ok === true && last.paid, BID);
			}
		});
	});
}

it("what burns more than 2^24 gas fails as it does in the block", async () => {
	const burning = [await signed(geth.wallet(0), { to: BURNS, nonce: 0, gasLimit: 40_000_000n })];
	assert.equal((await geth.mined(burning)).passed, false);
	const block = { ...(await geth.block()), gasLimit: 200_000_000n };
	for (const node of [geth, plain])
		assert.deepEqual(messages(await node.run(requestFor(block, MUCH, burning))), ["out of gas"]);
});

it("the node's cap is known", async () => {
	assert.equal((await abilitiesOf(geth.node)).report.gasCap, 50_000_000);
});
