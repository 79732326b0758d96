// Reading traces: prestateTracer's changes as overrides, which logs are a contract's, and what an
// address received by frames.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Wallet } from "ethers";
import type { StateOverrides } from "../../../../../relay/simulation/engines/engine.ts";
import { applyDiff, emitsEvents } from "../../../../../relay/simulation/engines/nodeObjects.ts";
import { receivedByFrames } from "../../../../../relay/simulation/engines/traces.ts";
import { fakeTransaction } from "../../../../support/simulationFakes.ts";

const A = "0x00000000000000000000000000000000000000aa";
const B = "0x00000000000000000000000000000000000000bb";
const slot = (n: number) => `0x${n.toString(16).padStart(64, "0")}`;
const tx = fakeTransaction();

describe("changes become overrides", () => {
	const rows: readonly (readonly [
		title: string,
		before: StateOverrides,
		diff: object,
		after: StateOverrides,
	])[] = [
		["nothing changed", { [A]: { balance: "0x1" } }, { pre: {}, post: {} }, { [A]: { balance: "0x1" } }],
		[
			"balance and nonce",
			{},
			{ pre: { [A]: { balance: "0x9", nonce: 1 } }, post: { [A]: { balance: "0x5", nonce: 2 } } },
			{ [A]: { balance: "0x5", nonce: "0x2" } },
		],
		[
			"what did not change stays as it was overridden",
			{ [A]: { balance: "0x5", code: "0xfe", stateDiff: { [slot(1)]: slot(7) } }, [B]: { balance: "0x1" } },
			{ pre: { [A]: { balance: "0x5" } }, post: { [A]: { balance: "0x4" } } },
			{ [A]: { balance: "0x4", code: "0xfe", stateDiff: { [slot(1)]: slot(7) } }, [B]: { balance: "0x1" } },
		],
		[
			"storage set, set again and cleared",
			{ [A]: { stateDiff: { [slot(1)]: slot(7), [slot(2)]: slot(8) } } },
			{
				pre: { [A]: { balance: "0x0", code: "0x01", storage: { [slot(1)]: slot(7), [slot(3)]: slot(1) } } },
				post: { [A]: { storage: { [slot(3)]: slot(2), [slot(4)]: slot(4) } } },
			},
			{
				[A]: {
					balance: "0x0",
					stateDiff: { [slot(1)]: slot(0), [slot(2)]: slot(8), [slot(3)]: slot(2), [slot(4)]: slot(4) },
				},
			},
		],
		[
			"a new contract",
			{},
			{ pre: {}, post: { [B]: { balance: "0x1", nonce: 1, code: "0x5f", storage: { [slot(0)]: slot(1) } } } },
			{ [B]: { balance: "0x1", nonce: "0x1", code: "0x5f", stateDiff: { [slot(0)]: slot(1) } } },
		],
		[
			"an account that is gone",
			{ [A]: { nonce: "0x1" } },
			{ pre: { [A]: { balance: "0x5" } }, post: {} },
			{ [A]: { balance: "0x0" } },
		],
	];
	for (const [title, before, diff, after] of rows) {
		it(title, () => {
			const kept = structuredClone(before);
			assert.deepEqual(applyDiff(before, diff, tx), after);
			assert.deepEqual(before, kept, "what came in was changed");
		});
	}

	for (const nonsense of [null, [], {}, { pre: {} }, { post: {} }, { pre: [], post: {} }, "0x"]) {
		it(`are not to be had from ${JSON.stringify(nonsense)}`, () => {
			assert.equal(applyDiff({}, nonsense, tx), null);
		});
	}
});

describe("code of a delegated account that is in no tracer's answer", () => {
	const wallet = new Wallet(`0x${"11".repeat(32)}`);
	const authority = wallet.address.toLowerCase();
	const zero = `0x${"0".repeat(40)}`;
	const delegated = `0xef0100${"ab".repeat(20)}`;
	const { yParity, r, s } = wallet.authorizeSync({ address: zero, nonce: 1, chainId: 1 }).signature;
	const authorization = { chainId: 1n, address: zero, nonce: 1n, yParity, r: BigInt(r), s: BigInt(s) };
	const diff = {
		pre: { [authority]: { balance: "0x0", nonce: 1, code: delegated } },
		post: { [authority]: { nonce: 2 } },
	};

	const giving = fakeTransaction({ type: 4, authorizationList: [authorization] });

	it("is gone where its owner has signed for that", () => {
		assert.equal(applyDiff({}, diff, giving)?.[authority]?.code, "0x");
	});

	it("has stayed where nobody has, or for a nonce that is over", () => {
		assert.equal(applyDiff({}, diff, tx)?.[authority]?.code, undefined);
		const late = { ...diff, pre: { [authority]: { balance: "0x0", nonce: 2, code: delegated } } };
		assert.equal(applyDiff({}, late, giving)?.[authority]?.code, undefined);
	});
});

const HERE = "0x00000000000000000000000000000000facade01";
const UPPER = "0x00000000000000000000000000000000FACADE01";
const THERE = "0x00000000000000000000000000000000000005e4";

describe("an event of a contract's", () => {
	const system = { address: "0xffffFFFfFFffffffffffffffFfFFFfffFFFfFFfE", topics: [], data: "0x" };
	const own = { address: HERE, topics: [], data: "0x" };
	const rows: readonly (readonly [title: string, logs: unknown, emits: boolean])[] = [
		["is a log", [own], true],
		["is none of the system's, which are for transfers (EIP-7708)", [system, system], false],
		["may stand behind those", [system, own], true],
		["is not what is no log", [null, 7, "0x"], false],
		["is not what is no list", undefined, false],
	];
	for (const [title, logs, emits] of rows) it(title, () => assert.equal(emitsEvents(logs), emits));
});

describe("what an address got by frames", () => {
	const frame = (fields: object = {}) => ({ type: "CALL", from: THERE, to: HERE, value: "0x7", ...fields });
	const nothing = { value: "0x0" };
	const rows: readonly (readonly [title: string, root: unknown, wei: bigint])[] = [
		["the outermost call", frame(), 7n],
		["the outermost call, in capitals", frame({ to: UPPER }), 7n],
		["a call of a call's call", frame({ ...nothing, calls: [frame({ ...nothing, calls: [frame()] })] }), 7n],
		["all of them", frame({ calls: [frame(), frame({ calls: [frame()] })] }), 28n],
		["a creation", frame({ type: "CREATE" }), 7n],
		["a selfdestruct", frame({ type: "SELFDESTRUCT" }), 7n],
		["a delegatecall", frame({ type: "DELEGATECALL" }), 0n],
		["a callcode", frame({ type: "CALLCODE" }), 0n],
		["a call in a delegatecall", frame({ type: "DELEGATECALL", calls: [frame()] }), 7n],
		["what failed", frame({ error: "execution reverted" }), 0n],
		["what failed in it", frame({ ...nothing, calls: [frame({ error: "out of gas" }), frame()] }), 7n],
		[
			"what stands in what failed",
			frame({ ...nothing, calls: [frame({ error: "x", calls: [frame()] })] }),
			0n,
		],
		["what it gave back", frame({ calls: [frame({ from: HERE, to: THERE, value: "0x3" })] }), 4n],
		["more that it gave", frame({ calls: [frame({ from: HERE, to: THERE, value: "0x30" })] }), 0n],
		["somebody else's", frame({ to: THERE }), 0n],
		["a value of no form", frame({ value: 7 }), 0n],
		["calls of no form", frame({ calls: "no" }), 7n],
	];
	for (const [title, root, wei] of rows) {
		it(`${title}: ${wei} wei`, () => assert.equal(receivedByFrames(root, HERE), wei));
	}
});
