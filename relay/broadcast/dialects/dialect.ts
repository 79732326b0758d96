// What a dialect is: how one kind of builder spells sending and cancelling. Pure types.

import type { BuilderRow } from "../../domain/builder.ts";
import type { Dispatch } from "../../domain/ports.ts";
import type { PrivateTransaction } from "../../domain/transaction.ts";

/** A JSON-RPC call to a builder, without envelope. */
export interface BuilderCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** What a cancel is about. */
export interface Cancellation {
	readonly transaction: PrivateTransaction;
	/** The identifier that its bundle went out under (UUIDv4). */
	readonly uuid: string;
	/** The next block. */
	readonly block: number;
}

/** How builders of one kind are spoken to. */
export interface Dialect {
	/** The call that hands over a transaction, in the form its path demands. */
	send(row: BuilderRow, dispatch: Dispatch, uuid: string): BuilderCall;
	/** The calls that make such a builder forget it; none where it knows no way. */
	cancel(row: BuilderRow, cancellation: Cancellation): readonly BuilderCall[];
}
