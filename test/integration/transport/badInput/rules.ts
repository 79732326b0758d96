// Turns rules of admission (a transaction, and why it is refused or that it is accepted) into rows of bad input with
// their exact answers. Each row has an account of its own.

import { keccak256 } from "../../../../shared/ethereum/signatures.ts";
import {
	rawTransaction,
	signedTransaction,
	type TestAccount,
	type TxOptions,
	testAccount,
} from "../../../support/txFactory.ts";
import { hex } from "./fixture.ts";
import type { CallRow } from "./rows.ts";
import type { Standing } from "./standing.ts";

/** A transaction, and why it is refused; null where it is taken. */
export interface Rule {
	readonly name: string;
	readonly tx: TxOptions;
	/** It is filled up with calldata to so many bytes. */
	readonly sizedTo?: number;
	/** SENDER stands for the sender's address. */
	readonly refusal: { readonly reason: string; readonly message: string } | null;
	readonly standing: Standing;
}

/** A rule as it goes through the wire. */
export interface RuleRow {
	readonly row: CallRow;
	readonly account: TestAccount;
	readonly standing: Standing;
}

export const GWEI = 10n ** 9n;

/** Fees under which a transaction is taken and waits, so that no block has to be built of all of them. */
const WAITING: TxOptions = { maxFeePerGas: GWEI / 10n, maxPriorityFeePerGas: 0 };

/** A rule that refuses. */
export function refused(
	reason: string,
	name: string,
	tx: TxOptions,
	message: string,
	standing: Standing = {},
): Rule {
	return { name, tx, refusal: { reason, message }, standing };
}

/** What is just within a rule; it waits for a lower base fee unless its fees are told. */
export function taken(name: string, tx: TxOptions, standing: Standing = {}): Rule {
	return { name: `${name} is taken`, tx: { ...WAITING, ...tx }, refusal: null, standing };
}

/** The rows of `rules`; their accounts are those from `first` on. */
export function ruleRows(rules: readonly Rule[], first: number): RuleRow[] {
	return rules.map(({ name, tx, sizedTo, refusal, standing }, i) => {
		const account = testAccount(first + i);
		const options = { ...tx, by: account };
		const made = sizedTo === undefined ? options : sized(sizedTo, options);
		const raw = rawTransaction(made);
		const call = { name, method: "eth_sendRawTransaction", params: [hex(raw)] };
		if (refusal === null) return { row: { ...call, result: hashOf(raw, made) }, account, standing };
		const { reason } = refusal;
		const message = refusal.message.replace("SENDER", account.address);
		return { row: { ...call, error: { code: -32000, message, data: { reason } } }, account, standing };
	});
}

/** That of a blob transaction is without its sidecar: there the decoder is believed, which its own tests check. */
function hashOf(raw: Buffer, options: TxOptions): string {
	return options.type === 3 ? signedTransaction(options).hash : hex(keccak256(raw));
}

/** A transaction of exactly this many bytes: the length of a signature is a matter of luck, so several are tried. */
function sized(bytes: number, options: TxOptions): TxOptions {
	const having = (value: number, data: number): TxOptions => ({
		...options,
		value,
		data: Buffer.alloc(data),
	});
	for (let value = 1; value < 100; value++) {
		let data = bytes - signedTransaction(having(value, 0)).size;
		// Headers grow with what they head: a few bytes less are the ones.
		for (; data > bytes - 1_000_000; data--) {
			const tx = having(value, data);
			const { size } = signedTransaction(tx);
			if (size === bytes) return tx;
			if (size < bytes) break;
		}
	}
	throw new Error(`no transaction of ${bytes} bytes was found`);
}
