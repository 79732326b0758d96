// The dialect of a plain JSON-RPC endpoint: one address, no paths, no parameters, nothing but `eth_sendRawTransaction`.
// Whether it keeps anything private is for the operator to say.

import type { Dialect } from "../domain/dialect.ts";
import { dropped, readParameters } from "./query.ts";

/** Any node or endpoint that takes raw transactions. */
export function plain(): Dialect {
	return {
		name: "plain",
		// Many take them; none has to, and single requests always work.
		batches: false,
		knowsPrivate: false,
		takesGaps: true,
		cancelMethod: null,
		softCancels: false,
		target: (_, search) => ({ target: "", dropped: dropped(readParameters(search).map(({ name }) => name)) }),
		statusPath: () => null,
		isVerdict: () => false,
	};
}
