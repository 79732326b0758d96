// The dialects of fallbacks by name: what is registered here may stand in `FALLBACK_DIALECT`. What one holds is in its own
// file.

import type { Dialect, DialectName } from "../domain/dialect.ts";
import { flashbots } from "./flashbots.ts";
import { mevblocker } from "./mevblocker.ts";
import { plain } from "./plain.ts";

/** `hasStatusUrl`: statuses are told at an address of their own, to which the hash alone is added. */
export interface DialectOptions {
	readonly hasStatusUrl: boolean;
}

const BY_NAME: Readonly<Record<DialectName, (options: DialectOptions) => Dialect>> = {
	mevblocker,
	flashbots,
	plain,
};

/** How a fallback of this kind is spoken to. */
export function dialectOf(name: DialectName, options: DialectOptions = { hasStatusUrl: false }): Dialect {
	return BY_NAME[name](options);
}
