// Lets processes share a list of files without a coordinator: the first one that creates a file of
// the name runs it.

import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

/**
 * Whether this process is the first to begin `name` in `folder`. Throws if the folder cannot be
 * written.
 */
export function begins(folder: string, name: string): boolean {
	try {
		closeSync(openSync(join(folder, encodeURIComponent(name)), "wx"));
		return true;
	} catch (thrown) {
		// Anything else would skip the file in silence.
		if ((thrown as NodeJS.ErrnoException).code === "EEXIST") return false;
		throw thrown;
	}
}
