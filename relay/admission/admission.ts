// Decides whether a decoded transaction is admitted. It asks the node only for the sender's account, and keeps
// nothing.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { AccountState, Tip } from "../domain/chain.ts";
import type { Accounts } from "../domain/ports.ts";
import type { Rejection } from "../domain/rejection.ts";
import {
	ACCOUNT_RULES,
	type ChainRules,
	firstRefusal,
	hopelessFeeCap,
	STATIC_RULES,
} from "../domain/transactionRules.ts";

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

/** What a transaction is judged by. */
export interface AdmissionOptions {
	/** Read for each transaction: a fork may come. */
	readonly rules: ChainRules;
	/** Blocks that a transaction lives. */
	readonly txTtlBlocks: number;
}

export interface AdmissionDependencies {
	readonly accounts: Accounts;
	readonly tip: Tip;
	/** The node has a later head than the tracked one: it is to be looked at now. */
	readonly onLaterHead: () => void;
}

/**
 * Judges `tx` of `client` (see clientOf) by every rule. Throws {@link nodeUnavailable} when the account's state can't be
 * had within a second.
 */
export async function admit(
	tx: DecodedTransaction,
	client: string,
	{ rules, txTtlBlocks }: AdmissionOptions,
	dependencies: AdmissionDependencies,
): Promise<AdmissionVerdict> {
	const next = dependencies.tip.next();
	if (next === null) throw nodeUnavailable();
	const refusal = firstRefusal(STATIC_RULES, tx, rules, next);
	if (refusal !== null) return { ok: false, rejection: refusal };
	const verdict = await judgeAccount(tx, client, dependencies);
	if (!verdict.ok) return verdict;
	const hopeless = hopelessFeeCap(tx, next, txTtlBlocks);
	return hopeless === null ? verdict : { ok: false, rejection: hopeless };
}

/**
 * Judges `tx` by the rules about its sender's account. Nothing is refused by a state that may be old: the node is asked
 * once more for its latest. Throws {@link nodeUnavailable}.
 */
export async function judgeAccount(
	tx: DecodedTransaction,
	client: string,
	{ accounts, onLaterHead }: Omit<AdmissionDependencies, "tip">,
): Promise<AdmissionVerdict> {
	const account = await orUnavailable(accounts.get(tx.from, client, true));
	if (firstRefusal(ACCOUNT_RULES, tx, account) === null) return { ok: true, account };
	const fresh = await orUnavailable(accounts.fresh(tx.from, client));
	const isLater = fresh.block > account.block;
	if (isLater) onLaterHead();
	const rejection = firstRefusal(ACCOUNT_RULES, tx, fresh);
	if (rejection !== null) return { ok: false, rejection };
	// Which nonces are used is told to the pool when that head is worked off, with what stands in its blocks.
	return { ok: true, account: isLater && fresh.nonce > account.nonce ? account : fresh };
}

async function orUnavailable<T>(asked: Promise<T>): Promise<T> {
	try {
		return await asked;
	} catch (thrown) {
		throw thrown instanceof UpstreamError ? nodeUnavailable() : thrown;
	}
}
