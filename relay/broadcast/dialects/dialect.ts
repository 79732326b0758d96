// What a dialect is: how one kind of builder spells a bundle. Pure types; private transactions and cancels are the
// same for all kinds, see wire.ts.

import type { BuilderRow } from "../../domain/builder.ts";
import type { OutgoingBundle } from "../../domain/bundle.ts";

/** A JSON-RPC call to a builder, without envelope. */
export interface BuilderCall {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** How builders of one kind are spoken to. */
export interface Dialect {
	/**
	 * The call that hands over `bundle` under `uuid` (UUIDv4), in the place of what went out under it before. A refund
	 * is asked for as far as the row pays it; one of 0 percent is left out.
	 */
	bundle(row: BuilderRow, bundle: OutgoingBundle, uuid: string): BuilderCall;
}
