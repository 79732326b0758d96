// The forks by name, and a chain that is always on one of them.

import { FORKS, type Fork } from "../../shared/ethereum/forks.ts";

export const [PRAGUE, OSAKA, AMSTERDAM] = FORKS;

/** A reader of a block's fork, on a chain that has no other. */
export function always(fork: Fork): { readonly after: () => Fork; readonly at: () => Fork } {
	return { after: () => fork, at: () => fork };
}
