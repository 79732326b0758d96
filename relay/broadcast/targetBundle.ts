// The bundle in which a target goes out alone: a dispatch comes in, a bundle of one transaction goes out. Pure.

import type { OutgoingBundle } from "../domain/bundle.ts";
import { policyOf } from "../domain/endpoints.ts";
import type { Dispatch } from "../domain/ports.ts";

/** The name of a target's own bundle; no bundle of {@link OutgoingBundle.name} goes out under one like it. */
export function targetName(hash: string): string {
	return `target ${hash}`;
}

/** The transaction alone, without refund: what it brings is the builder's. */
export function targetBundle({ transaction, block }: Dispatch): OutgoingBundle {
	const { tx, path } = transaction;
	return {
		name: targetName(tx.hash),
		transactions: [{ tx, mayRevert: policyOf(path).mayRevert, mayDrop: false }],
		block,
		refund: null,
	};
}
