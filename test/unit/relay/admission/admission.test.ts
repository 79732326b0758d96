// Admission as a whole: in which order it judges, what it asks the node for, and what it says when that is silent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { admit } from "../../../../relay/admission/admission.ts";
import type { AccountState, NextBlock } from "../../../../relay/domain/chain.ts";
import type { Accounts, Tip } from "../../../../relay/domain/ports.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { signedTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

const CHAIN = { chainId: 31_337n, maxTxGas: null };
const NEXT: NextBlock = {
	...{ number: 101, timestamp: 1_700_000_000, baseFee: 1n, blobBaseFee: 1n, gasLimit: 30_000_000n },
};
const STATE: AccountState = {
	...{ address: testAccount(0).address, block: 100, nonce: 10n, balance: 10n ** 18n, code: "none" },
};

/** Dependencies, and the addresses that were asked for. */
function scene(options: { next?: NextBlock | null; get?: Accounts["get"] } = {}) {
	const asked: string[] = [];
	const accounts: Accounts = {
		get(address) {
			asked.push(address);
			return options.get?.(address) ?? Promise.resolve(STATE);
		},
		setHead() {},
	};
	const tip: Tip = { head: () => null, next: () => (options.next === undefined ? NEXT : options.next) };
	const ask = (tx: TxOptions = {}) =>
		admit(signedTransaction({ nonce: 10, ...tx }), CHAIN, { accounts, tip });
	return { asked, ask };
}

test("what is admitted comes with its sender's account", async () => {
	const { asked, ask } = scene();
	assert.deepEqual(await ask(), { ok: true, account: STATE });
	assert.deepEqual(asked, [testAccount(0).address]);
});

test("what is wrong in itself is refused without asking the node", async () => {
	const { asked, ask } = scene();
	const verdict = await ask({ chainId: 1n, nonce: 0 });
	assert.deepEqual(verdict, {
		ok: false,
		rejection: { code: "WRONG_CHAIN", message: "invalid chain id for signer: have 1 want 31337" },
	});
	assert.deepEqual(asked, []);
});

test("what its account does not allow is refused", async () => {
	const { ask } = scene();
	assert.deepEqual(await ask({ nonce: 9 }), {
		ok: false,
		rejection: { code: "NONCE_TOO_LOW", message: "nonce too low: next nonce 10, tx nonce 9" },
	});
});

for (const [name, options] of [
	["before the first head", { next: null }],
	["where the node is silent", { get: () => Promise.reject(new UpstreamError("timeout")) }],
	["where the node can't be reached", { get: () => Promise.reject(new UpstreamError("unreachable")) }],
] as const) {
	test(`${name} it says so, and nothing of why`, async () => {
		const { ask } = scene(options);
		await assert.rejects(ask(), (thrown: unknown) => {
			assert.ok(thrown instanceof RpcError);
			assert.equal(thrown.code, -32603);
			assert.match(thrown.message, /^internal error/);
			assert.deepEqual(thrown.data, { reason: "node unavailable" });
			return true;
		});
	});
}
