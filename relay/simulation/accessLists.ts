// Makes the answer of `eth_createAccessList` from traces, for nodes whose own method accepts no
// state overrides (anvil). The list has the accounts and slots that the call touches, without those
// that cost nothing. The answer also has the gas that the call uses with the list.
// https://github.com/ethereum/go-ethereum/blob/v1.17.8/internal/ethapi/api.go (AccessList)

import { parseQuantity } from "../../shared/ethereum/hex.ts";
import type { AccessListEntry } from "../../shared/ethereum/transactionFields.ts";
import { fieldsOf } from "../domain/nodeJson.ts";
import type { Ask } from "./engines/engine.ts";
import { DELEGATION_PREFIX } from "./engines/nodeObjects.ts";
import { type TracedCall, traceCall, traceTouched } from "./engines/traces.ts";

/** The answer of `eth_createAccessList`. */
export interface AccessListResult {
	readonly accessList: readonly AccessListEntry[];
	/** 0x hex. */
	readonly gasUsed: string;
	/** Why the call failed, in the node's words; absent if it did not. */
	readonly error?: string;
}

/**
 * Precompiled contracts are at 0x1 to 0x1ff, and the block's coinbase is the zero address here.
 * They are warm from the start, like the sender, the receiver, and the code to which the receiver
 * delegates.
 */
const LAST_PRECOMPILE = 0x1ffn;
const COINBASE = `0x${"0".repeat(40)}`;

/** The list of `call`; null if the node can't trace it. */
export async function accessListOf(call: TracedCall, ask: Ask): Promise<AccessListResult | null> {
	const within = { ...call, blockOverrides: { ...call.blockOverrides, feeRecipient: COINBASE } };
	const [touched] = await traceTouched(within, ask);
	const accounts = touched?.kind === "result" ? fieldsOf(touched.value) : null;
	if (accounts === null) return null;
	const [from, to] = [call.object.from, call.object.to].map((one) => String(one).toLowerCase());
	const { code } =
		fieldsOf(Object.entries(accounts).find(([address]) => address.toLowerCase() === to)?.[1]) ?? {};
	const isDelegated = typeof code === "string" && code.startsWith(DELEGATION_PREFIX);
	const warm = new Set([from, to, isDelegated ? code.replace(DELEGATION_PREFIX, "0x") : null]);
	const accessList: AccessListEntry[] = [];
	for (const [address, account] of Object.entries(accounts)) {
		const storageKeys = Object.keys(fieldsOf(fieldsOf(account)?.storage) ?? {});
		const key = address.toLowerCase();
		if (
			storageKeys.length === 0 &&
			(warm.has(key) || (parseQuantity(shortened(key)) ?? 0n) <= LAST_PRECOMPILE)
		)
			continue;
		accessList.push({ address: key, storageKeys });
	}
	const listed = { ...within, object: { ...call.object, accessList } };
	const [called] = await traceCall(listed, { changes: false, logs: false }, ask);
	const { gasUsed, error } = (called?.kind === "result" ? fieldsOf(called.value) : null) ?? {};
	if (typeof gasUsed !== "string") return null;
	return { accessList, gasUsed, ...(typeof error === "string" ? { error } : {}) };
}

/** An address as a quantity, without leading zeros. */
function shortened(address: string): string {
	return address.replace(/^0x0+(?=.)/, "0x");
}
