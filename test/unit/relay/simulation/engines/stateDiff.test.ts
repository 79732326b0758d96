// Tests that prestateTracer's changes, on top of earlier ones, become the exact overrides.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Wallet } from "ethers";
import type { StateOverrides } from "../../../../../relay/simulation/engines/engine.ts";
import { applyDiff } from "../../../../../relay/simulation/engines/nodeObjects.ts";
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
			"a nonce as a quantity",
			{},
			{ pre: { [A]: { balance: "0x9" } }, post: { [A]: { nonce: "0x2" } } },
			{ [A]: { balance: "0x9", nonce: "0x2" } },
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
		[
			"addresses in any case",
			{ [A]: { balance: "0x1" } },
			{ pre: {}, post: { [A.toUpperCase().replace("X", "x")]: { balance: "0x2" } } },
			{ [A]: { balance: "0x2" } },
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

	it("is the new one where there is one", () => {
		const code = `0xef0100${"cd".repeat(20)}`;
		const renewed = { ...diff, post: { [authority]: { nonce: 3, code } } };
		assert.equal(applyDiff({}, renewed, giving)?.[authority]?.code, code);
	});
});
