// What went wrong with a copy, for its operator: something thrown comes in, one line goes out. Texts that are not ours are
// not in it: they may name hosts, users and keys.

import { safeError } from "../../log.ts";
import { refusedError } from "../postgres/errors.ts";

/** Errors whose message is ours, by their code. */
const TOLD = new Set([
	...["USAGE", "SETTING", "DATABASE_URL", "DATA_FOLDER", "DISK_FULL", "DATABASE_DOWN", "LATER_VERSION"],
	...["FOLDER_IN_USE", "STORE_IN_USE", "STORE_LOST"],
	...["STORE_MOVED", "STORE_HALF_COPIED", "STORE_NOT_EMPTY", "STORE_MISSING", "STORE_DIFFERS"],
]);

/** One line. */
export function faultLine(thrown: unknown): string {
	const { name, code } = safeError(thrown);
	if (thrown instanceof Error && TOLD.has(code ?? "")) return thrown.message;
	const refused = refusedError(thrown);
	if (refused !== null) return refused.message;
	// As LMDB says that a commit failed.
	if (thrown instanceof Error && "commitError" in thrown)
		return "the folder of DATA_DIR can't be written: expected room on its disk";
	return `can't go on (${code ?? name})`;
}
