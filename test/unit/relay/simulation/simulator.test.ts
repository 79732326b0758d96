// Engines that say what the test wants come in; which of them was asked, and what came of it, is checked. Backruns have
// a file of their own.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Engine, NodeAnswer } from "../../../../relay/simulation/engines/engine.ts";
import { createSimulator } from "../../../../relay/simulation/simulator.ts";
import { type RpcAnswer, UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { BLOCK, fakeRequest, fakeTransaction, HandClock } from "../../../support/simulationFakes.ts";
import {
	nodeDown,
	ok,
	outOfGas,
	play,
	ran,
	refused,
	type Scene,
	three,
	unknown,
	vague,
} from "../../../support/simulationPlay.ts";

describe("the choice of an engine", () => {
	const rich = 1_000_000_000n;
	const passes = ran(ok(rich), ok(rich), ok());
	const rows: readonly (readonly [
		title: string,
		engines: Scene["engines"],
		told: string[],
		asked: string[],
	])[] = [
		["is the first one", [passes, null, null], ["ok", "ok", "ok"], ["eth_simulateV1 3"]],
		[
			"is the next one where the first refuses",
			[refused, passes, null],
			["ok", "ok", "ok"],
			["eth_simulateV1 3", "debug_traceCall 3"],
		],
		[
			"may be one that runs the first transaction alone",
			[refused, refused, ran(ok())],
			["ok"],
			["eth_simulateV1 3", "debug_traceCall 3", "eth_call 3"],
		],
		[
			"is nobody where all refuse",
			[refused, refused, refused],
			["NODE_UNAVAILABLE: the node gave no verdict"],
			["eth_simulateV1 3", "debug_traceCall 3", "eth_call 3"],
		],
		["is nobody where there is none", [], ["NODE_UNAVAILABLE: the node gave no verdict"], []],
		[
			"is not changed by a node that fails",
			[ran(nodeDown), null, null],
			["NODE_UNAVAILABLE: the node gave no verdict"],
			["eth_simulateV1 3"],
		],
	];
	for (const [title, engines, told, asked] of rows) {
		it(title, async () => {
			const played = await play({ engines });
			assert.deepEqual(played.told, told);
			assert.deepEqual(played.asked, asked);
			const last = asked.at(-1)?.split(" ")[0];
			assert.deepEqual(played.runs, engines.every((one) => one === refused) ? [] : [last]);
		});
	}
});

describe("a failure without a reason", () => {
	const rich = 1_000_000_000n;
	const rows: readonly (readonly [
		title: string,
		engines: Scene["engines"],
		told: string[],
		asked: string[],
	])[] = [
		[
			"is explained by the next engine, on the chain up to there",
			[vague(ok(rich), unknown), ran(ok(rich), outOfGas), null],
			["ok", "OUT_OF_GAS: out of gas"],
			["eth_simulateV1 3", "debug_traceCall 2"],
		],
		[
			"is explained by an engine for single transactions only where it is the first",
			[vague(unknown), refused, ran(outOfGas)],
			["OUT_OF_GAS: out of gas"],
			["eth_simulateV1 3", "debug_traceCall 1", "eth_call 1"],
		],
		[
			"stays as it is where nobody can run so far",
			[vague(ok(rich), unknown), refused, null],
			["ok", "EXECUTION_FAILED: execution failed"],
			["eth_simulateV1 3", "debug_traceCall 2"],
		],
		[
			"stays where the next one knows no more",
			[vague(unknown), vague(unknown), ran(ok())],
			["EXECUTION_FAILED: execution failed"],
			["eth_simulateV1 3", "debug_traceCall 1", "eth_call 1"],
		],
		[
			"stays where the node fails meanwhile",
			[vague(unknown), ran(nodeDown), ran(nodeDown)],
			["EXECUTION_FAILED: execution failed"],
			["eth_simulateV1 3", "debug_traceCall 1", "eth_call 1"],
		],
	];
	for (const [title, engines, told, asked] of rows) {
		it(title, async () => {
			const played = await play({ engines });
			assert.deepEqual(played.told, told);
			assert.deepEqual(played.asked, asked);
		});
	}
});

describe("the relay's own rules", () => {
	it("spare the node what can't run anyway", async () => {
		const played = await play({ request: { nonce: 1n }, engines: [null] });
		assert.deepEqual(played.told, ["NONCE_TOO_LOW: nonce too low: next nonce 1, tx nonce 0"]);
	});

	it("cut a chain, and tell of the cut only where all before it passed", async () => {
		const chain = [three[0], three[1], fakeTransaction({ nonce: 7n })].filter((tx) => tx !== undefined);
		const passes = await play({ request: { chain }, engines: [ran(ok(1_000_000_000n), ok())] });
		assert.deepEqual(passes.told, ["ok", "ok", "NONCE_GAP: nonce too high: next nonce 2, tx nonce 7"]);
		assert.deepEqual(passes.asked, ["eth_simulateV1 2"]);
		const failing = await play({ request: { chain }, engines: [ran(ok(1_000_000_000n), outOfGas)] });
		assert.deepEqual(failing.told, ["ok", "OUT_OF_GAS: out of gas"]);
		const single = await play({ request: { chain }, engines: [refused, refused, ran(ok())] });
		assert.deepEqual(single.told, ["ok"]);
	});

	it("ask for the highest cost at each step, whatever the node thinks of it", async () => {
		const played = await play({ engines: [ran(ok(2_000_000n), ok(1_999_999n), ok())] });
		const amounts = "balance 1999999, tx cost 2000000, overshot 1";
		const message = `insufficient funds for gas * price + value: ${amounts}`;
		assert.deepEqual(played.told, ["ok", "ok", `INSUFFICIENT_FUNDS: ${message}`]);
	});

	it("ask the node of nothing for an empty chain", async () => {
		assert.deepEqual((await play({ request: { chain: [] }, engines: [null] })).told, []);
	});

	it("assume some ether at a coinbase that nobody has, another amount each time, and nothing of a known one", async () => {
		const overridesOf = async (fixedFeeRecipient: boolean) =>
			(await play({ options: { fixedFeeRecipient }, engines: [ran(ok())] })).requests[0]?.overrides;
		assert.deepEqual(await overridesOf(true), {});
		const drawn = [await overridesOf(false), await overridesOf(false)].map((overrides) => {
			assert.deepEqual(Object.keys(overrides ?? {}), [BLOCK.feeRecipient]);
			return BigInt(overrides?.[BLOCK.feeRecipient]?.balance ?? 0);
		});
		for (const wei of drawn) assert.ok(wei >= 10n ** 16n && wei < 101n * 10n ** 18n, `${wei}`);
		assert.notEqual(drawn[0], drawn[1]);
	});
});

describe("the time of a simulation", () => {
	/** An engine that asks the node twice, on a clock that the node moves by `ms` with each answer. */
	async function askTwice(answer: () => RpcAnswer, ms: number) {
		const clock = new HandClock();
		const given: number[] = [];
		const answers: NodeAnswer["kind"][] = [];
		const engine: Engine = {
			name: "eth_simulateV1",
			sequences: true,
			events: true,
			probe: { method: "", params: [] },
			probed: () => true,
			async run(_, ask) {
				answers.push(
					(await ask({ method: "a", params: [] })).kind,
					(await ask({ method: "b", params: [] })).kind,
				);
				return ran(ok());
			},
		};
		const node = {
			async call(_: unknown, timeoutMs: number) {
				given.push(timeoutMs);
				clock.advance(ms);
				return answer();
			},
		};
		const dependencies = { node, engines: [engine], clock, log: silentLogger, onRun() {} };
		await createSimulator({ fixedFeeRecipient: true }, dependencies).simulate(fakeRequest());
		return { given, answers };
	}

	it("is one for all its calls", async () => {
		const { given, answers } = await askTwice(() => ({ ok: true, result: null }), 1_500);
		assert.deepEqual(given, [2_000, 500]);
		assert.deepEqual(answers, ["result", "result"]);
	});

	it("ends it: nothing is asked any more", async () => {
		const { given, answers } = await askTwice(() => ({ ok: true, result: null }), 2_000);
		assert.deepEqual(given, [2_000]);
		assert.deepEqual(answers, ["result", "fault"]);
	});

	it("is not needed to see a fault", async () => {
		const fault = () => {
			throw new UpstreamError("unreachable");
		};
		assert.deepEqual((await askTwice(fault, 1)).answers, ["fault", "fault"]);
	});

	it("does not hide a defect of ours", async () => {
		const defect = () => {
			throw new TypeError("a defect");
		};
		await assert.rejects(askTwice(defect, 1), TypeError);
	});
});
