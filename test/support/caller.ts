// For whom tests ask the node, where it does not matter who it is.

import type { Caller } from "../../relay/domain/ports.ts";

/** A client that never goes; `name`: one of its own. */
export function caller(name = "client"): Caller {
	return { client: name, life: { onGone() {} } };
}
