// Decides whether a decoded transaction is admitted. It asks the node only for the sender's
// account, and keeps nothing.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { AccountState, Tip } from "../domain/chain.ts";
import type { Accounts } from "../domain/ports.ts";
import type { Rejection } from "../domain/rejection.ts";
import {
	ACCOUNT_RULES,
	type ChainRules,
	firstRejection,
	hopelessFeeCap,
	STATIC_RULES,
} from "../domain/transactionRules.ts";

/** Whether a transaction is admitted, with its sender's account or the reason against it. */
export type AdmissionVerdict =
	| { readonly ok: true; readonly account: AccountState }
	| { readonly ok: false; readonly rejection: Rejection };

/**
 * The error for a node that does not answer with the account's state in time. The transaction is
 * not kept.
 */
export function nodeUnavailable(): RpcError {
	return new RpcError("internal", "internal error: could not read the account from the node, try again", {
		reason: "node unavailable",
	});
}

export interface AdmissionOptions {
	/** Read again for each transaction, because a fork may change the rules. */
	readonly rules: ChainRules;
	/** Maximum number of blocks for which a transaction stays pending. */
	readonly txTtlBlocks: number;
}

export interface AdmissionDependencies {
	readonly accounts: Accounts;
	readonly tip: Tip;
	/**
	 * Called when the node has a later head than the tracked one, which should then be read at
	 * once.
	 */
	readonly onLaterHead: () => void;
}

/**
 * Checks `tx` of `client` (see clientOf) by every rule. Throws {@link nodeUnavailable} when the
 * node does not answer with the account's state within a second.
 */
export async function admit(
	tx: DecodedTransaction,
	client: string,
	{ rules, txTtlBlocks }: AdmissionOptions,
	dependencies: AdmissionDependencies,
): Promise<AdmissionVerdict> {
	const next = dependencies.tip.next();
	if (next === null) throw nodeUnavailable();
	const rejected = firstRejection(STATIC_RULES, tx, rules, next);
	if (rejected !== null) return { ok: false, rejection: rejected };
	const verdict = await judgeAccount(tx, client, dependencies);
	if (!verdict.ok) return verdict;
	const hopeless = hopelessFeeCap(tx, next, txTtlBlocks);
	return hopeless === null ? verdict : { ok: false, rejection: hopeless };
}

/**
 * Checks `tx` by the rules about its sender's account. Before it is rejected, the account's latest
 * state is read from the node, because the known one may be old. Throws {@link nodeUnavailable}.
 */
export async function judgeAccount(
	tx: DecodedTransaction,
	client: string,
	{ accounts, onLaterHead }: Omit<AdmissionDependencies, "tip">,
): Promise<AdmissionVerdict> {
	const account = await orUnavailable(accounts.get(tx.from, client, true));
	if (firstRejection(ACCOUNT_RULES, tx, account) === null) return { ok: true, account };
	const fresh = await orUnavailable(accounts.fresh(tx.from, client));
	if (fresh.block > account.block) onLaterHead();
	const rejection = firstRejection(ACCOUNT_RULES, tx, fresh);
	if (rejection !== null) return { ok: false, rejection };
	// The pool learns of used nonces with the head that used them. So it must not see them earlier
	// here, nor the nonces of another fork.
	return { ok: true, account: fresh.nonce > account.nonce ? account : fresh };
}

async function orUnavailable<T>(reading: Promise<T>): Promise<T> {
	try {
		return await reading;
	} catch (thrown) {
		throw thrown instanceof UpstreamError ? nodeUnavailable() : thrown;
	}
}
