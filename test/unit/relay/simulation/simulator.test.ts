// The simulator on a node that is a block behind, and on one that refuses.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Recoveries } from "../../../../relay/domain/recoveries.ts";
import type { SimulationRequest } from "../../../../relay/domain/simulation.ts";
import { createSimulator, type SimulatorOptions } from "../../../../relay/simulation/simulator.ts";
import { type Answer, NodeError, ScriptedNode } from "../../../support/nodes.ts";
import { FakeClock, fakeRequest, fakeTransaction } from "../../../support/simulationFakes.ts";

const ABLE = { simulates: true, gasCap: 50_000_000n };
const three = [0n, 1n, 2n].map((nonce) => fakeTransaction({ nonce, hash: `0x0${nonce}` }));
const passed = { status: "0x1", gasUsed: "0x5208", returnData: "0x", logs: [] };
const balances = (coinbase: number, sender: number) => ({
	...passed,
	returnData: `0x${[coinbase, sender].map((wei) => wei.toString(16).padStart(64, "0")).join("")}`,
});

interface Simulated {
	readonly blockStateCalls: readonly {
		readonly blockOverrides: Readonly<Record<string, string>>;
		readonly stateOverrides?: object;
		readonly calls: readonly { readonly nonce?: string; readonly gas?: string }[];
	}[];
	readonly validation: boolean;
}
const simulatedOf = (params: readonly unknown[]) => params[0] as Simulated;

/** Passes everything; the coinbase holds 1,000 wei more for each transaction. */
const passes: Answer = (params) =>
	simulatedOf(params).blockStateCalls.map(({ calls }, i, all) => ({
		calls:
			i === all.length - 1
				? [balances(1_000 * all.slice(0, -1).reduce((sum, block) => sum + block.calls.length, 0), 0)]
				: calls.map(() => passed),
	}));

async function run(
	answers: Record<string, Answer>,
	request: Partial<SimulationRequest> = {},
	options: Partial<SimulatorOptions> = {},
) {
	const node = new ScriptedNode(answers);
	const clock = new FakeClock();
	const runs: string[] = [];
	const simulator = createSimulator(
		{ ...ABLE, ...options },
		{ node, clock, recoveries: new Recoveries(), onRun: ({ engine }) => runs.push(engine) },
	);
	const running = simulator.simulate(fakeRequest({ transactions: three, ...request }));
	let over = false;
	void running.finally(() => {
		over = true;
	});
	while (!over) {
		await new Promise((resolve) => setImmediate(resolve));
		clock.advance(5);
	}
	const outcomes = await running;
	const told = outcomes.map((outcome) =>
		outcome.ok ? "ok" : `${outcome.error.code}: ${outcome.error.message}`,
	);
	return { node, outcomes, told, runs, asked: node.calls.map(({ params }) => simulatedOf(params)) };
}

describe("a node that does not have the block yet", () => {
	const missing = new NodeError(-32000, "header not found");

	it("is asked again until it has it", async () => {
		let asked = 0;
		const late: Answer = (params) => {
			asked += 1;
			if (asked < 5) throw missing;
			return passes(params);
		};
		assert.deepEqual((await run({ eth_simulateV1: late })).told, ["ok", "ok", "ok"]);
		assert.equal(asked, 5);
	});

	it("has given no verdict when it takes too long", async () => {
		const never: Answer = () => {
			throw missing;
		};
		const { told, node } = await run({ eth_simulateV1: never });
		assert.deepEqual(told, ["NODE_UNAVAILABLE: the node gave no verdict"]);
		assert.ok(node.calls.length > 5 && node.calls.length < 30, `${node.calls.length} calls`);
	});
});

describe("a node that refuses a transaction", () => {
	const refuses: Answer = () => {
		throw new NodeError(-32000, "upstream hiccup");
	};
	const request = fakeRequest({ transactions: three.slice(0, 1) });
	const asking = (options: Partial<SimulatorOptions> = {}) => {
		const node = new ScriptedNode({ eth_simulateV1: refuses, debug_traceCall: refuses });
		const clock = new FakeClock();
		const simulator = createSimulator(
			{ ...ABLE, ...options },
			{ node, clock, recoveries: new Recoveries(), onRun: () => {} },
		);
		const againMs = async (asked = request): Promise<number | undefined> => {
			const [outcome] = await simulator.simulate(asked);
			assert.ok(outcome?.ok === false && outcome.isImpossible);
			return outcome.againMs;
		};
		return { againMs, clock };
	};

	it("is asked some times more for the same block, each time after as long as it has refused", async () => {
		const { againMs, clock } = asking();
		const next = { ...request, block: { ...request.block, stateBlock: request.block.stateBlock + 1 } };
		for (const asked of [request, next]) {
			const pauses: number[] = [];
			for (let ms = await againMs(asked); ms !== undefined; ms = await againMs(asked)) {
				pauses.push(ms);
				clock.advance(ms);
			}
			assert.deepEqual(pauses, [500, 500, 1_000, 2_000]);
		}
	});

	it("is not asked more often because others ask meanwhile", async () => {
		const { againMs, clock } = asking();
		const pauses: (number | undefined)[] = [];
		for (let ms = 0; ms <= 4_000; ms += 1_000) {
			pauses.push(await againMs());
			clock.advance(1_000);
		}
		assert.deepEqual(pauses, [500, 1_000, 2_000, 3_000, undefined]);
	});

	it("is not asked again if it is known to simulate nothing", async () => {
		const { againMs } = asking({ simulates: false, traces: false });
		assert.equal(await againMs(), undefined);
		assert.equal(await asking({ simulates: false, traces: true }).againMs(), 500);
	});
});
