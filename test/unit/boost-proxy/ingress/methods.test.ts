// Boost's table of methods against the relay's: the weights are the same, and only reads may reach
// a third party. And whose a signed cancel is.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	type BoostContext,
	type BoostMethodDependencies,
	boostMethods,
	kindOf,
	labelOf,
	RELAY_ONLY,
	weightOf,
} from "../../../../boost-proxy/ingress/methods.ts";
import { METHODS } from "../../../../relay/ingress/methods/index.ts";
import { addressOfKey } from "../../../../shared/ethereum/signatures.ts";
import { cancelSignature } from "../../../support/typedSignatures.ts";

const KEY = `0x${"a1".repeat(32)}`;

test("every method of the relay is known to boost with the same weight, and is no read", () => {
	const wrong = METHODS.filter(({ name, weight }) => {
		const kind = kindOf(name);
		const isPlaced = kind === "relay" ? RELAY_ONLY.has(name) : kind !== "read";
		return !isPlaced || weightOf(name) !== weight;
	});
	assert.deepEqual(
		wrong.map(({ name }) => name),
		[],
	);
});

test("unknown methods go to the relay only", () => {
	for (const name of ["eth_sendTransaction", "admin_peers", "eth_newThing", "", "__proto__", "toString"]) {
		assert.equal(kindOf(name), "relay", name);
		assert.equal(labelOf(name), "unknown", name);
	}
});

test("a signed cancel is its signer's; while the chain is not known it is refused, since nobody can tell", async () => {
	const hash = `0x${"ab".repeat(32)}`;
	const signature = await cancelSignature(KEY, hash);
	let chain: bigint | null = null;
	const signers: unknown[] = [];
	const dependencies = {
		chainId: () => chain,
		cancels: { cancel: (_: string, state: BoostContext["state"]) => signers.push(state.caller.signer) > 0 },
	};
	const methods = boostMethods(dependencies as unknown as BoostMethodDependencies);
	const cancel = methods.get("eth_cancelTransaction") ?? assert.fail();
	const context = { state: { caller: { signer: null } } } as unknown as BoostContext;
	const refusal =
		/^RpcError: no relay available: the chain id is not known yet, so the signature can't be checked$/;
	await assert.rejects(async () => cancel.call([hash, signature], context), refusal);
	assert.deepEqual(signers, []);
	chain = 31_337n;
	await cancel.call([hash, signature], context);
	await cancel.call([hash], context);
	assert.deepEqual(signers, [addressOfKey(KEY), null]);
});
