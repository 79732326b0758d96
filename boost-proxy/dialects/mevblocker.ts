// The dialect that our own relay speaks as well: paths, query, cancel and status are the same on both sides.
// https://docs.cow.fi/mevblocker/orderflow-originators/endpoints

import type { Dialect } from "../domain/dialect.ts";

/** MEV Blocker, or a second relay of ours. `statusUrl`: see {@link Dialect.statusPath}. */
export function mevblocker(options: { readonly hasStatusUrl: boolean }): Dialect {
	return {
		name: "mevblocker",
		batches: true,
		knowsPrivate: true,
		takesGaps: true,
		cancelMethod: "eth_cancelTransaction",
		softCancels: true,
		target: (path, search) => ({ target: search === "" ? `/${path}` : `/${path}?${search}`, dropped: [] }),
		statusPath: (hash) => (options.hasStatusUrl ? `/${hash}` : `/tx/${hash}`),
		isVerdict: () => false,
	};
}
