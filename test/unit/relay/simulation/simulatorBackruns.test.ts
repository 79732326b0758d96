// Backruns behind a chain, on engines that say what the test wants: who is asked for what, and which rules are kept.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SimulationRequest } from "../../../../relay/domain/simulation.ts";
import type { Engine } from "../../../../relay/simulation/engines/engine.ts";
import { createSimulator } from "../../../../relay/simulation/simulator.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { fakeRequest, fakeTransaction, HandClock } from "../../../support/simulationFakes.ts";
import { ok, outOfGas, play, ran, refused, three, unknown, vague } from "../../../support/simulationPlay.ts";

describe("a backrun", () => {
	const stranger = "0x0000000000000000000000000000000000000b1d";
	/** Costs two million wei at most. */
	const tx = fakeTransaction({ from: stranger });
	const rich = 1_000_000_000n;
	const behind = (balance: bigint, more: Partial<SimulationRequest> = {}): Partial<SimulationRequest> => ({
		backrun: { tx, nonce: 0n, balance },
		...more,
	});
	const poorly = "insufficient funds for gas * price + value: balance 1999999, tx cost 2000000, overshot 1";

	it("is run behind its chain, measured, with the last outcome", async () => {
		const played = await play({ request: behind(rich), engines: [ran(ok(rich), ok(rich), ok(rich), ok())] });
		assert.deepEqual(played.told, ["ok", "ok", "ok", "ok"]);
		assert.deepEqual(played.asked, ["eth_simulateV1 4"]);
		assert.equal(played.requests[0]?.chain.at(-1), tx);
		assert.equal(played.requests[0]?.measured, true);
		const without = await play({ engines: [ran(ok(rich), ok(rich), ok())] });
		assert.equal(without.requests[0]?.measured, false);
	});

	it("is never judged by an engine for single transactions", async () => {
		const down = "NODE_UNAVAILABLE: the node gave no verdict";
		const played = await play({ request: behind(rich), engines: [refused, refused, null] });
		assert.deepEqual([played.told, played.asked.length], [[down], 2]);
		const alone = await play({ request: behind(rich, { chain: [] }), engines: [refused, refused, null] });
		assert.deepEqual([alone.told, alone.asked.length], [[down], 2]);
	});

	it("is not possible where no engine runs sequences", async () => {
		let asked = 0;
		const single: Engine = {
			name: "eth_call",
			sequences: false,
			events: false,
			probe: { method: "", params: [] },
			probed: () => true,
			async run() {
				asked += 1;
				return ran(ok());
			},
		};
		const node = { call: () => assert.fail("no engine here asks the node") };
		for (const engines of [[single], []]) {
			const dependencies = { node, engines, clock: new HandClock(), log: silentLogger, onRun() {} };
			const simulator = createSimulator({ fixedFeeRecipient: false }, dependencies);
			const error = { code: "NODE_UNAVAILABLE", message: "the node runs no sequences of transactions" };
			assert.deepEqual(await simulator.simulate(fakeRequest(behind(rich))), [{ ok: false, error }]);
		}
		assert.equal(asked, 0);
	});

	it("must be able to pay with what its sender holds behind the chain", async () => {
		const [link] = three;
		const request = behind(rich, { chain: link === undefined ? [] : [link] });
		const enough = await play({ request, engines: [ran(ok(2_000_000n), ok())] });
		assert.deepEqual(enough.told, ["ok", "ok"]);
		const drained = await play({ request, engines: [ran(ok(1_999_999n), ok())] });
		assert.deepEqual(drained.told, ["ok", `INSUFFICIENT_FUNDS: ${poorly}`]);
	});

	it("has what it had before where the engine tells of no change", async () => {
		const [link] = three;
		const chain = link === undefined ? [] : [link];
		for (const [balance, told] of [
			[2_000_000n, "ok"],
			[1_999_999n, `INSUFFICIENT_FUNDS: ${poorly}`],
		] as const) {
			const played = await play({ request: behind(balance, { chain }), engines: [ran(ok(null), ok())] });
			assert.deepEqual(played.told, ["ok", told]);
		}
		// What the chain's own sender has left is then not known: the node alone judges.
		const own = { tx: fakeTransaction({ nonce: 1n }), nonce: 0n, balance: 0n };
		const played = await play({ request: { chain, backrun: own }, engines: [ran(ok(null), ok())] });
		assert.deepEqual(played.told, ["ok", "ok"]);
	});

	it("is not given to the node where the relay's own rules forbid it", async () => {
		const backrun = { tx: fakeTransaction({ from: stranger, nonce: 5n }), nonce: 0n, balance: rich };
		const played = await play({ request: { backrun }, engines: [ran(ok(rich), ok(rich), ok())] });
		const gap = "NONCE_GAP: nonce too high: next nonce 0, tx nonce 5";
		assert.deepEqual(played.told, ["ok", "ok", "ok", gap]);
		assert.deepEqual(played.asked, ["eth_simulateV1 3"]);
		assert.equal(played.requests[0]?.measured, false);
	});

	it("that failed without a reason is explained behind its chain", async () => {
		const steps = [ok(rich), ok(rich), ok(rich)];
		const engines = [vague(...steps, unknown), ran(...steps, outOfGas), null];
		const played = await play({ request: behind(rich), engines });
		assert.deepEqual(played.told, ["ok", "ok", "ok", "OUT_OF_GAS: out of gas"]);
		assert.deepEqual(played.asked, ["eth_simulateV1 4", "debug_traceCall 4"]);
	});
});
