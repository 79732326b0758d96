// Answers of eth_simulateV1 in geth's form, and in no form at all, come in; steps go out. What anvil says is in the
// contract test.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type {
	Ask,
	EngineAnswer,
	EngineRequest,
	NodeAnswer,
} from "../../../../../relay/simulation/engines/engine.ts";
import { simulateV1 } from "../../../../../relay/simulation/engines/simulateV1.ts";
import type { RpcCall } from "../../../../../shared/jsonrpc/client.ts";
import { errorString } from "../../../../support/simulationContracts.ts";
import { BLOCK, fakeTransaction, SENDER } from "../../../../support/simulationFakes.ts";

const passed = { status: "0x1", gasUsed: "0x5208", returnData: "0x", logs: [] };
const word = (wei: number) => wei.toString(16).padStart(64, "0");
/** What the questions between the transactions are answered. */
const balance = (wei: number, feeRecipients = 1) => ({
	...passed,
	returnData: `0x${word(wei)}${word(feeRecipients)}`,
});
const failed = (error: object, more: object = {}) => ({ ...passed, status: "0x0", error, ...more });
const transferLog = { address: "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE", topics: [], data: "0x" };
const event = { address: "0x0000000000000000000000000000000000000abc", topics: [], data: "0x" };

function requestOf(length: number, fields: Partial<EngineRequest> = {}): EngineRequest {
	const chain = Array.from({ length }, (_, i) => fakeTransaction({ nonce: BigInt(i) }));
	return { block: BLOCK, chain, measured: false, overrides: {}, ...fields };
}

/** Runs a chain of `length` on a node that answers with `calls` in one block. */
function run(length: number, calls: readonly unknown[]): Promise<EngineAnswer> {
	return simulateV1.run(requestOf(length), async () => ({ kind: "result", value: [{ calls }] }));
}

describe("eth_simulateV1", () => {
	it("asks for all transactions at once, and for the balance between them", async () => {
		const asked: RpcCall[] = [];
		const overrides = { [BLOCK.feeRecipient]: { balance: "0x1" } };
		await simulateV1.run(requestOf(2, { overrides }), async (call) => {
			asked.push(call);
			return { kind: "fault" };
		});
		const tx = {
			from: SENDER,
			to: "0x0000000000000000000000000000000000000abc",
			gas: "0x186a0",
			value: "0x0",
			input: "0x",
			maxFeePerGas: "0xb",
			maxPriorityFeePerGas: "0xb",
		};
		const prober = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b72";
		const probe = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b71";
		const input = `0x${[SENDER, BLOCK.feeRecipient].map((one) => one.slice(2).padStart(64, "0")).join("")}`;
		const blockOverrides = {
			number: "0x64",
			time: "0x6553f10c",
			gasLimit: "0x1c9c380",
			feeRecipient: BLOCK.feeRecipient,
			baseFeePerGas: "0xa",
			blobBaseFee: "0x3",
		};
		const calls = [
			{ ...tx, nonce: "0x0" },
			{ from: prober, to: probe, gas: "0x186a0", input },
			{ ...tx, nonce: "0x1" },
		];
		const stateOverrides = { ...overrides, [probe]: { code: "0x5f35315f526020353160205260405ff3" } };
		const options = {
			blockStateCalls: [{ blockOverrides, stateOverrides, calls }],
			validation: false,
			traceTransfers: true,
		};
		assert.deepEqual(asked, [{ method: "eth_simulateV1", params: [options, "0x63"] }]);
	});

	it("makes room where the gas limits add up to more than a block's", async () => {
		const rows = [
			[1, 30_000_000n, 30_000_000n],
			[2, 14_950_000n, 30_000_000n],
			[2, 14_950_001n, 30_000_002n],
			[3, 20_000_000n, 60_200_000n],
		] as const;
		for (const [length, gasLimit, wanted] of rows) {
			const chain = Array.from({ length }, (_, i) => fakeTransaction({ nonce: BigInt(i), gasLimit }));
			await simulateV1.run(requestOf(length, { chain }), async ({ params }) => {
				assert.match(JSON.stringify(params), new RegExp(`"gasLimit":"0x${wanted.toString(16)}"`));
				return { kind: "fault" };
			});
		}
	});

	it("reads gas, balances and events; a transfer of ether is none", async () => {
		const answer = await run(3, [
			{ ...passed, logs: [transferLog] },
			balance(500),
			{ ...passed, gasUsed: "0x6000", logs: [transferLog, event] },
			balance(400),
			passed,
		]);
		assert.deepEqual(answer, {
			kind: "ran",
			vague: false,
			steps: [
				{ outcome: { ok: true, gasUsed: 21_000n, emitsEvents: false, paid: 0n }, balance: 500n },
				{ outcome: { ok: true, gasUsed: 24_576n, emitsEvents: true, paid: 0n }, balance: 400n },
				{ outcome: { ok: true, gasUsed: 21_000n, emitsEvents: false, paid: 0n }, balance: null },
			],
		});
	});

	const data = errorString("no");
	const reverted = { code: "EXECUTION_REVERTED", message: "execution reverted: no", data };
	const bare = { code: "EXECUTION_REVERTED", message: "execution reverted" };
	const outOfGas = { code: "OUT_OF_GAS", message: "out of gas" };
	const unknown = { code: "EXECUTION_FAILED", message: "execution failed" };
	const spent = { gasUsed: "0x186a0" };
	const failures: readonly (readonly [title: string, call: object, error: object, vague: boolean])[] = [
		["geth's revert", failed({ code: 3, message: "execution reverted: no", data }), reverted, false],
		["geth's older revert", failed({ code: -32000, message: "execution reverted", data }), reverted, false],
		[
			"a revert with its data beside",
			failed({ code: -3200, message: "?" }, { returnData: data }),
			reverted,
			false,
		],
		["a revert without data", failed({ code: 3, message: "execution reverted" }), bare, false],
		["a failure that gives gas back", failed({ code: -3200, message: "execution failed" }), bare, false],
		["geth's halt", failed({ code: -32015, message: "out of gas" }, spent), outOfGas, false],
		["a halt of an unknown kind", failed({ code: -32015, message: "new" }), unknown, true],
		["a failure that spends all", failed({ code: -3200, message: "execution failed" }, spent), unknown, true],
		["a failure without an error", { ...passed, ...spent, status: "0x0" }, unknown, true],
	];
	for (const [title, call, error, vague] of failures) {
		it(`tells ${title}`, async () => {
			const answer = await run(2, [call, balance(1), passed]);
			assert.deepEqual(answer, {
				kind: "ran",
				vague,
				steps: [{ outcome: { ok: false, error }, balance: null }],
			});
		});
	}

	it("can't tell a revert by the gas where authorizations give some back", async () => {
		const authorization = { chainId: 1n, address: SENDER, nonce: 1n, yParity: 0, r: 1n, s: 1n };
		const tx = fakeTransaction({ type: 4, authorizationList: [authorization] });
		const calls = [failed({ code: -3200, message: "execution failed" })];
		const ask: Ask = async () => ({ kind: "result", value: [{ calls }] });
		const answer = await simulateV1.run(requestOf(1, { chain: [tx] }), ask);
		assert.equal(answer.kind === "ran" && answer.vague, true);
	});

	const nonsense: readonly unknown[] = [
		null,
		{},
		"0x",
		[],
		[null],
		[{ calls: null }],
		[{ calls: [] }],
		[{ calls: [passed, passed] }],
		[{ calls: [null] }],
		[{ calls: [{ ...passed, gasUsed: 21_000 }] }],
		[{ calls: [{ ...passed, gasUsed: "0x" }] }],
		[{ calls: [{ ...passed, returnData: "0x1" }] }],
	];
	for (const value of nonsense) {
		it(`takes ${JSON.stringify(value)} for no verdict`, async () => {
			const answer = await simulateV1.run(requestOf(1), async () => ({ kind: "result", value }));
			assert.deepEqual(codesOf(answer), ["NODE_UNAVAILABLE"]);
		});
	}

	it("passes on a refusal, and a fault as no verdict", async () => {
		assert.deepEqual(await simulateV1.run(requestOf(3), async () => ({ kind: "refused" })), {
			kind: "refused",
		});
		const answer = await simulateV1.run(requestOf(3), async () => ({ kind: "fault" }));
		assert.deepEqual(codesOf(answer), ["NODE_UNAVAILABLE"]);
	});
});

describe("eth_simulateV1 where the node rejects the whole chain", () => {
	/** A node that rejects each call with the transaction of this nonce in it. */
	function rejecting(nonce: number, length: number, asked: number[]): Ask {
		return async (call): Promise<NodeAnswer> => {
			const [{ blockStateCalls }] = call.params as [{ blockStateCalls: [{ calls: { nonce?: string }[] }] }];
			const { calls } = blockStateCalls[0];
			const nonces = calls.flatMap((one) => (one.nonce === undefined ? [] : [Number(one.nonce)]));
			asked.push(nonces.length);
			if (nonces.includes(nonce)) {
				return { kind: "failed", error: { code: "INSUFFICIENT_FUNDS", message: "insufficient funds" } };
			}
			assert.ok(nonces.length < length);
			return { kind: "result", value: [{ calls: calls.map((_, i) => (i % 2 === 0 ? passed : balance(9))) }] };
		};
	}

	for (const [length, bad] of [
		[1, 0],
		[2, 0],
		[2, 1],
		[5, 3],
		[64, 0],
		[64, 41],
		[64, 63],
	] as const) {
		it(`finds number ${bad} of ${length}`, async () => {
			const asked: number[] = [];
			const answer = await simulateV1.run(requestOf(length), rejecting(bad, length, asked));
			assert.deepEqual(codesOf(answer), [...Array(bad).fill("ok"), "INSUFFICIENT_FUNDS"]);
			assert.ok(asked.length <= 1 + Math.ceil(Math.log2(length)), `asked ${asked.length} times`);
			const balances = answer.kind === "ran" ? answer.steps.map((step) => step.balance) : [];
			assert.deepEqual(balances, [...Array(bad).fill(9n), null]);
		});
	}

	it("is done when an earlier one reverts", async () => {
		const ask: Ask = async (call) => {
			const text = JSON.stringify(call.params);
			if (text.includes('"nonce":"0x3"')) {
				return { kind: "failed", error: { code: "INSUFFICIENT_FUNDS", message: "insufficient funds" } };
			}
			const calls = [passed, balance(9), failed({ code: 3, message: "execution reverted" }), balance(8)];
			return { kind: "result", value: [{ calls }] };
		};
		assert.deepEqual(codesOf(await simulateV1.run(requestOf(4), ask)), ["ok", "EXECUTION_REVERTED"]);
	});
});

function codesOf(answer: EngineAnswer): string[] {
	if (answer.kind === "refused") return ["refused"];
	return answer.steps.map(({ outcome }) => (outcome.ok ? "ok" : outcome.error.code));
}
