// Admission as a whole: in which order it judges, what it asks the node for, and what it says when
// that is silent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { admit } from "../../../../relay/admission/admission.ts";
import type { AccountState, NextBlock, Tip } from "../../../../relay/domain/chain.ts";
import type { Accounts } from "../../../../relay/domain/ports.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { PRAGUE } from "../../../support/forks.ts";
import { signedTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

const RULES = {
	rules: { chainId: 31_337n },
	txTtlBlocks: 25,
};
const NEXT: NextBlock = {
	...{ number: 101, timestamp: 1_700_000_000, baseFee: 1n, blobBaseFee: 1n, gasLimit: 30_000_000n },
	fork: PRAGUE,
};
const STATE: AccountState = {
	...{ address: testAccount(0).address, block: 100, nonce: 10n, balance: 10n ** 18n, code: "none" },
};

/** Dependencies, and the addresses that were asked for. */
function fixture(
	options: { next?: NextBlock | null; get?: Accounts["get"]; latest?: Partial<AccountState> } = {},
) {
	const asked: string[] = [];
	const seen = { laterHeads: 0 };
	const accounts: Accounts = {
		get(address) {
			asked.push(address);
			return options.get?.(address, "client") ?? Promise.resolve(STATE);
		},
		fresh(address) {
			asked.push(`${address} latest`);
			return Promise.resolve({ ...STATE, ...options.latest });
		},
		setHead() {},
	};
	const tip: Tip = { head: () => null, next: () => (options.next === undefined ? NEXT : options.next) };
	const ask = (tx: TxOptions = {}) =>
		admit(signedTransaction({ nonce: 10, ...tx }), "client", RULES, {
			...{ accounts, tip },
			onLaterHead: () => {
				seen.laterHeads += 1;
			},
		});
	return { asked, ask, seen };
}

test("what is admitted comes with its sender's account", async () => {
	const { asked, ask } = fixture();
	assert.deepEqual(await ask(), { ok: true, account: STATE });
	assert.deepEqual(asked, [testAccount(0).address]);
});

test("what is wrong in itself is refused without asking the node", async () => {
	const { asked, ask } = fixture();
	const verdict = await ask({ chainId: 1n, nonce: 0 });
	assert.deepEqual(verdict, {
		ok: false,
		rejection: { code: "WRONG_CHAIN", message: "invalid chain id for signer: have 1 want 31337" },
	});
	assert.deepEqual(asked, []);
});

test("a transaction that its account does not allow is refused after a read of the latest state", async () => {
	const { ask, asked } = fixture();
	assert.deepEqual(await ask({ nonce: 9 }), {
		ok: false,
		rejection: { code: "NONCE_TOO_LOW", message: "nonce too low: next nonce 10, tx nonce 9" },
	});
	assert.deepEqual(asked, [testAccount(0).address, `${testAccount(0).address} latest`]);
});

const POOR = { ...STATE, balance: 0n };
/**
 * The account at the tracked head, and as of the node's latest block. Then the nonce, and the
 * refusal or the account nonce that the pool receives.
 */
const FRESH: readonly (readonly [string, AccountState, Partial<AccountState>, number, string | bigint])[] = [
	["paid in a later block", POOR, { block: 101 }, 10, 10n],
	["paid at the same head", POOR, {}, 10, 10n],
	["paid too little", POOR, { block: 101, balance: 1n }, 10, "INSUFFICIENT_FUNDS"],
	["nonces used in a later block", STATE, { block: 101, nonce: 11n }, 75, 10n],
	["nonces used in another block of the same height", STATE, { nonce: 11n }, 75, 10n],
	["nonces still too few", STATE, { block: 101, nonce: 11n }, 76, "NONCE_TOO_HIGH"],
	["a nonce free again", STATE, { block: 101, nonce: 9n }, 9, 9n],
	["a nonce used in both", STATE, { block: 101, nonce: 11n }, 9, "NONCE_TOO_LOW"],
	["code that is gone", { ...STATE, code: "contract" }, {}, 10, 10n],
];

for (const [name, tracked, latest, nonce, expected] of FRESH) {
	test(`nothing is refused for a state that is old: ${name}`, async () => {
		const { ask, seen } = fixture({ get: () => Promise.resolve(tracked), latest });
		const verdict = await ask({ nonce });
		assert.equal(verdict.ok ? verdict.account.nonce : verdict.rejection.code, expected);
		assert.equal(seen.laterHeads, latest.block === undefined ? 0 : 1);
	});
}

test("a fee cap that can't be mined within its life is refused, behind what is wrong with its account", async () => {
	const { ask } = fixture({ next: { ...NEXT, baseFee: 1_000_000_000n } });
	const fees = { maxFeePerGas: 35_000_000, maxPriorityFeePerGas: 1 };
	const verdict = await ask(fees);
	assert.equal(verdict.ok || verdict.rejection.code, "FEE_CAP_TOO_LOW");
	const used = await ask({ ...fees, nonce: 9 });
	assert.equal(used.ok || used.rejection.code, "NONCE_TOO_LOW");
});

for (const [name, options] of [
	["before the first head", { next: null }],
	["where the node is silent", { get: () => Promise.reject(new UpstreamError("timeout")) }],
	["where the node can't be reached", { get: () => Promise.reject(new UpstreamError("unreachable")) }],
] as const) {
	test(`${name} it says so, and nothing of why`, async () => {
		const { ask } = fixture(options);
		await assert.rejects(ask(), (thrown: unknown) => {
			assert.ok(thrown instanceof RpcError);
			assert.equal(thrown.code, -32603);
			assert.match(thrown.message, /^internal error/);
			assert.deepEqual(thrown.data, { reason: "node unavailable" });
			return true;
		});
	});
}
