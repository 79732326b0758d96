// For whom tests ask the node, where it does not matter who it is.

import type { Asker } from "../../relay/domain/ports.ts";

/** A client that never goes; `name`: one of its own. */
export function asker(name = "client"): Asker {
	return { client: name, life: { onGone() {} } };
}
