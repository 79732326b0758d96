// Builds the bundle that holds a target alone. Pure.

import { clientOf } from "../../shared/http/callContext.ts";
import type { OutgoingBundle } from "../domain/bundle.ts";
import { policyOf } from "../domain/endpoints.ts";
import type { Dispatch } from "../domain/ports.ts";

/** The name of a target's own bundle; no bundle of {@link OutgoingBundle.name} goes out under one like it. */
export function targetName(hash: string): string {
	return `target ${hash}`;
}

/** The transaction alone, without refund: what it brings is the builder's. */
export function targetBundle({ transaction, block }: Dispatch): OutgoingBundle {
	const { tx, path, origin } = transaction;
	return {
		name: targetName(tx.hash),
		transactions: [{ tx, mayRevert: policyOf(path).mayRevert, mayDrop: false }],
		client: clientOf(origin),
		isPlain: false,
		block,
		refund: null,
	};
}
