// Admission: what comes in is a decoded transaction, what goes out is its sender's account in the head's state, or
// the refusal. It asks the node for nothing but that account, and keeps nothing.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { AccountState } from "../domain/chain.ts";
import type { Accounts, Tip } from "../domain/ports.ts";
import type { Rejection } from "../domain/rejection.ts";
import { ACCOUNT_RULES, type ChainRules, firstRefusal, STATIC_RULES } from "../domain/transactionRules.ts";

/** What admission says of a transaction. */
export type AdmissionVerdict =
	| { readonly ok: true; readonly account: AccountState }
	| { readonly ok: false; readonly rejection: Rejection };

/** Answered where the node does not tell the account's state in time: nothing is kept then. */
export function nodeUnavailable(): RpcError {
	return new RpcError("internal", "internal error: the account's state can't be had now, try again", {
		reason: "node unavailable",
	});
}

/**
 * Judges `tx` by every rule. Throws {@link nodeUnavailable} when the state of the head can't be had within a second.
 */
export async function admit(
	tx: DecodedTransaction,
	chain: ChainRules,
	dependencies: { accounts: Accounts; tip: Tip },
): Promise<AdmissionVerdict> {
	const next = dependencies.tip.next();
	if (next === null) throw nodeUnavailable();
	const refusal = firstRefusal(STATIC_RULES, tx, chain, next);
	if (refusal !== null) return { ok: false, rejection: refusal };
	let account: AccountState;
	try {
		account = await dependencies.accounts.get(tx.from);
	} catch (thrown) {
		throw thrown instanceof UpstreamError ? nodeUnavailable() : thrown;
	}
	const byAccount = firstRefusal(ACCOUNT_RULES, tx, account);
	return byAccount === null ? { ok: true, account } : { ok: false, rejection: byAccount };
}
