// Traces in geth's form come in; what is read from them goes out. What anvil says is in the contract test.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Ask, EngineAnswer, StateOverrides } from "../../../../../relay/simulation/engines/engine.ts";
import { traceCall } from "../../../../../relay/simulation/engines/traceCall.ts";
import { errorString } from "../../../../support/simulationContracts.ts";
import { BLOCK, fakeTransaction, SENDER } from "../../../../support/simulationFakes.ts";

const log = { address: SENDER, topics: [], data: "0x" };
const frame = (fields: object = {}) => ({ type: "CALL", gasUsed: "0x5208", output: "0x", ...fields });

/** Runs `length` transactions on a node that answers these traces and changes, one after another. */
async function run(length: number, traces: readonly unknown[], changes: readonly unknown[] = []) {
	const overrides: StateOverrides[] = [];
	const chain = Array.from({ length }, (_, i) => fakeTransaction({ nonce: BigInt(i) }));
	let [traced, changed] = [0, 0];
	const ask: Ask = async ({ params }) => {
		const config = params[2] as { tracer: string; stateOverrides: StateOverrides };
		if (config.tracer === "prestateTracer") return { kind: "result", value: changes[changed++] };
		overrides.push(config.stateOverrides);
		return { kind: "result", value: traces[traced++] };
	};
	const request = {
		block: BLOCK,
		chain,
		measured: false,
		overrides: { [BLOCK.feeRecipient]: { balance: "0x1" } },
	};
	return { answer: await traceCall.run(request, ask), overrides, changed };
}

const outcomesOf = (answer: EngineAnswer) =>
	answer.kind === "ran" ? answer.steps.map(({ outcome }) => outcome) : answer.kind;

describe("debug_traceCall", () => {
	const rows: readonly (readonly [title: string, fields: object, emits: boolean])[] = [
		["no call and no log", {}, false],
		["an empty list of logs", { logs: [], calls: [] }, false],
		["a log", { logs: [log] }, true],
		["a log of a call's call", { calls: [frame(), frame({ calls: [frame({ logs: [log] })] })] }, true],
		["a log of a call that failed", { calls: [frame({ logs: [log], error: "out of gas" })] }, false],
		[
			"a log of a call within one that failed",
			{ calls: [frame({ error: "execution reverted", calls: [frame({ logs: [log] })] })] },
			false,
		],
		["logs and calls of an unknown form", { logs: {}, calls: "no" }, false],
	];
	for (const [title, fields, emitsEvents] of rows) {
		it(`sees ${emitsEvents ? "an" : "no"} event in ${title}`, async () => {
			const { answer } = await run(1, [frame(fields)]);
			assert.deepEqual(outcomesOf(answer), [{ ok: true, gasUsed: 21_000n, emitsEvents, paid: 0n }]);
		});
	}

	it("asks for changes between transactions, and for none behind the last", async () => {
		const change = (balance: string, nonce: number) => ({
			pre: { [SENDER]: { balance: "0x99" } },
			post: { [SENDER]: { balance, nonce } },
		});
		const { answer, overrides, changed } = await run(
			3,
			[frame(), frame(), frame()],
			[change("0x50", 1), change("0x40", 2)],
		);
		assert.equal(changed, 2);
		const coinbase = { [BLOCK.feeRecipient]: { balance: "0x1" } };
		assert.deepEqual(overrides, [
			coinbase,
			{ ...coinbase, [SENDER]: { balance: "0x50", nonce: "0x1" } },
			{ ...coinbase, [SENDER]: { balance: "0x40", nonce: "0x2" } },
		]);
		assert.deepEqual(answer.kind === "ran" && answer.steps.map((step) => step.balance), [0x50n, 0x40n, null]);
	});

	const data = errorString("no");
	const failures: readonly (readonly [title: string, fields: object, code: string, vague: boolean])[] = [
		["a revert", { error: "execution reverted", output: data }, "EXECUTION_REVERTED", false],
		["a halt", { error: "out of gas" }, "OUT_OF_GAS", false],
		["a halt of an unknown kind", { error: "something new" }, "EXECUTION_FAILED", true],
	];
	for (const [title, fields, code, vague] of failures) {
		it(`tells ${title}`, async () => {
			const { answer } = await run(2, [frame(fields)], [{ pre: {}, post: {} }]);
			assert.equal(answer.kind === "ran" && answer.vague, vague);
			const [outcome] = outcomesOf(answer);
			assert.equal(typeof outcome === "object" && !outcome.ok && outcome.error.code, code);
		});
	}

	for (const nonsense of [null, [], {}, { gasUsed: 1 }, { gasUsed: "0xzz" }]) {
		it(`takes ${JSON.stringify(nonsense)} for no verdict`, async () => {
			const [outcome] = outcomesOf((await run(1, [nonsense])).answer);
			assert.equal(typeof outcome === "object" && !outcome.ok && outcome.error.code, "NODE_UNAVAILABLE");
		});
	}

	it("takes changes of an unknown form for no verdict", async () => {
		const [outcome] = outcomesOf((await run(2, [frame()], [{ post: {} }])).answer);
		assert.equal(typeof outcome === "object" && !outcome.ok && outcome.error.code, "NODE_UNAVAILABLE");
	});

	it("passes on a refusal of either tracer", async () => {
		for (const refusing of ["callTracer", "prestateTracer"]) {
			const ask: Ask = async ({ params }) => {
				const { tracer } = params[2] as { tracer: string };
				return tracer === refusing ? { kind: "refused" } : { kind: "result", value: frame() };
			};
			const chain = [fakeTransaction(), fakeTransaction({ nonce: 1n })];
			const request = { block: BLOCK, chain, measured: false, overrides: {} };
			assert.deepEqual(await traceCall.run(request, ask), { kind: "refused" });
		}
	});
});
