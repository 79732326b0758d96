// The fields of a transaction object that strict clients decode, as tables of those that their own
// code requires. go-ethereum's ethclient and alloy refuse the whole object over one of them. The
// tables are here because Go and Rust do not run in these tests. All types were tried through both
// by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pendingTransaction, withoutSignature } from "../../../../shared/ethereum/rpcObjects.ts";
import { signedTransaction } from "../../../support/txFactory.ts";

type Fields = Readonly<Record<string, unknown>>;
type Form = (value: unknown) => boolean;

const QUANTITY: Form = (value) => typeof value === "string" && /^0x(?:0|[1-9a-f][0-9a-f]{0,63})$/.test(value);
const ADDRESS: Form = (value) => typeof value === "string" && /^0x[0-9a-f]{40}$/.test(value);
const HASH: Form = (value) => typeof value === "string" && /^0x[0-9a-f]{64}$/.test(value);
const DATA: Form = (value) => typeof value === "string" && /^0x(?:[0-9a-f]{2})*$/.test(value);
const ZERO: Form = (value) => value === "0x0";

function listOf(form: Form, min = 0): Form {
	return (value) => Array.isArray(value) && value.length >= min && value.every(form);
}

function objectOf(fields: Readonly<Record<string, Form>>): Form {
	return (value) =>
		typeof value === "object" &&
		value !== null &&
		Object.entries(fields).every(([name, form]) => form((value as Fields)[name]));
}

const ACCESS_LIST = listOf(objectOf({ address: ADDRESS, storageKeys: listOf(HASH) }));
/**
 * https://github.com/ethereum/go-ethereum/blob/v1.17.8/core/types/gen_authorization.go requires all
 * six. alloy takes `yParity` or `v`:
 * https://github.com/alloy-rs/eips/blob/main/crates/eip7702/src/auth_list.rs
 */
const AUTHORIZATIONS = listOf(
	objectOf({ chainId: QUANTITY, address: ADDRESS, nonce: QUANTITY, yParity: ZERO, r: ZERO, s: ZERO }),
);

/**
 * The fields of every type. go-ethereum leaves a signature unchecked only if v, r and s are all
 * zero, and requires v and yParity to be equal. alloy reads a legacy one with all three zero as one
 * without a signature, and requires `hash`, `from` and `type`.
 * https://github.com/ethereum/go-ethereum/blob/v1.17.8/core/types/transaction_marshalling.go
 * https://github.com/alloy-rs/alloy/blob/v1.8.3/crates/consensus/src/transaction/legacy.rs
 */
const COMMON: Readonly<Record<string, Form>> = {
	hash: HASH,
	from: ADDRESS,
	type: QUANTITY,
	nonce: QUANTITY,
	gas: QUANTITY,
	value: QUANTITY,
	input: DATA,
	v: ZERO,
	r: ZERO,
	s: ZERO,
	yParity: ZERO,
};
const DYNAMIC: Readonly<Record<string, Form>> = {
	chainId: QUANTITY,
	maxFeePerGas: QUANTITY,
	maxPriorityFeePerGas: QUANTITY,
	accessList: ACCESS_LIST,
};
const BY_TYPE: Readonly<Record<0 | 1 | 2 | 3 | 4, Readonly<Record<string, Form>>>> = {
	0: { gasPrice: QUANTITY },
	1: { gasPrice: QUANTITY, chainId: QUANTITY, accessList: ACCESS_LIST },
	2: DYNAMIC,
	3: { ...DYNAMIC, to: ADDRESS, maxFeePerBlobGas: QUANTITY, blobVersionedHashes: listOf(HASH, 1) },
	4: { ...DYNAMIC, to: ADDRESS, authorizationList: AUTHORIZATIONS },
};

/** The fields of `transaction` that a strict client would refuse. */
function refused(transaction: Fields, type: keyof typeof BY_TYPE): readonly string[] {
	const required = Object.entries({ ...COMMON, ...BY_TYPE[type] });
	return required.filter(([name, form]) => !form(transaction[name])).map(([name]) => name);
}

const ACCESS = [{ address: `0x${"ab".repeat(20)}`, storageKeys: [`0x${"01".repeat(32)}`] }];
/** As a node shows a signature. */
const SIGNED = { v: "0x1", yParity: "0x1", r: "0x5", s: "0x6" };

for (const type of [0, 1, 2, 3, 4] as const) {
	test(`type ${type}: go-ethereum and alloy decode what is shown while it is pending`, () => {
		const tx = signedTransaction({ type, data: "0x00ff", accessList: type === 0 ? [] : ACCESS });
		const own = pendingTransaction(tx);
		assert.deepEqual(refused(own, type), [], "the relay's, and that of boost's journal");
		const node = { ...own, ...SIGNED, gasPrice: "0x7" };
		const authorizationList = tx.authorizationList.map(({ address }) => {
			return { chainId: "0x1", address, nonce: "0x2", ...SIGNED };
		});
		const ofNode = type === 4 ? { ...node, authorizationList } : node;
		assert.deepEqual(refused(withoutSignature(ofNode, 1n), type), [], "a node's");
		const { authorizationList: _, ...ofOther } = node as Fields;
		assert.deepEqual(
			refused(withoutSignature(ofOther, 1n), type),
			[],
			"of a fallback that hides authorizations",
		);
		for (const name of Object.keys({ ...COMMON, ...BY_TYPE[type] })) {
			assert.deepEqual(refused({ ...own, [name]: undefined }, type), [name], "the table itself");
		}
	});
}
