// Turns a `prestateTracer` diff into the state overrides that put the next call behind the traced transaction.
// https://geth.ethereum.org/docs/developers/evm-tracing/built-in-tracers#prestate-tracer

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import { effectiveAuthorizations, type Signer } from "../authorizations.ts";
import type { AccountOverride, StateOverrides } from "./engine.ts";
import { isObject } from "./json.ts";

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;
const ZERO_WORD = `0x${"0".repeat(64)}`;
/** How the code of a delegated account begins. https://eips.ethereum.org/EIPS/eip-7702 */
const DELEGATION_PREFIX = "0xef0100";

/** `overrides` and on top of them what `tx` changed; null where `diff` is not what the tracer answers. */
export function applyDiff(overrides: StateOverrides, diff: unknown, tx: Signer): StateOverrides | null {
	if (!isObject(diff) || !isObject(diff.pre) || !isObject(diff.post)) return null;
	const merged: Record<string, AccountOverride> = { ...overrides };
	for (const [address, account] of Object.entries(diff.post)) {
		const key = address.toLowerCase();
		const before = accountOf(diff.pre[address]);
		const after = accountOf(account);
		const cleared = Object.keys(before.stateDiff ?? {}).filter(
			(slot) => after.stateDiff?.[slot] === undefined,
		);
		const known = merged[key];
		const stateDiff = {
			...known?.stateDiff,
			...Object.fromEntries(cleared.map((slot) => [slot, ZERO_WORD])),
			...after.stateDiff,
		};
		merged[key] = {
			...known,
			...(before.balance === undefined ? {} : { balance: before.balance }),
			...after,
			...(gaveUpCode(tx, key, before, after) ? { code: "0x" } : {}),
			...(Object.keys(stateDiff).length === 0 ? {} : { stateDiff }),
		};
	}
	// Not in the state after: it was destroyed in the transaction that made it, and what it had is gone.
	for (const address of Object.keys(diff.pre)) {
		if (!(address in diff.post)) merged[address.toLowerCase()] = { balance: "0x0" };
	}
	return merged;
}

/**
 * Whether a delegation was taken back. Code that went away is not shown, and neither is code that stayed; but to take
 * it back its owner must have signed for that.
 */
function gaveUpCode(tx: Signer, address: string, before: AccountOverride, after: AccountOverride): boolean {
	if (after.code !== undefined || !before.code?.startsWith(DELEGATION_PREFIX)) return false;
	const nonce = parseQuantity(before.nonce ?? "0x0") ?? 0n;
	return effectiveAuthorizations(tx, address, nonce).at(-1)?.address === ZERO_ADDRESS;
}

/** One side of a change, as an override; fields that are not there did not change. */
function accountOf(account: unknown): AccountOverride {
	if (!isObject(account)) return {};
	const { balance, nonce, code, storage } = account;
	return {
		...(typeof balance === "string" ? { balance } : {}),
		...(typeof nonce === "number" ? { nonce: toQuantity(nonce) } : {}),
		...(typeof nonce === "string" ? { nonce } : {}),
		...(typeof code === "string" ? { code } : {}),
		...(isObject(storage) ? { stateDiff: storageOf(storage) } : {}),
	};
}

function storageOf(storage: Readonly<Record<string, unknown>>): Record<string, string> {
	const slots: Record<string, string> = {};
	for (const [slot, value] of Object.entries(storage)) if (typeof value === "string") slots[slot] = value;
	return slots;
}
