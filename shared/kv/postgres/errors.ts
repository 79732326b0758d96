// What goes wrong with a database, as values: what pg throws comes in, errors of ours go out. No text of the database's
// is in them, for it may name hosts and users.

/** The database can't be reached, or does not answer in time. `cause` is a code: a SQLSTATE, or the system's. */
export class DatabaseDownError extends Error {
	readonly code = "DATABASE_DOWN";
	constructor(why: string) {
		super(`the database of DATABASE_URL does not answer (${why})`);
		this.name = "DatabaseDownError";
	}
}

/** Another process has the store. */
export class StoreInUseError extends Error {
	readonly code = "STORE_IN_USE";
	constructor(store: string) {
		super(
			`another process uses the ${store}'s store in the database of DATABASE_URL: stop it, or set another DATABASE_URL`,
		);
		this.name = "StoreInUseError";
	}
}

/** Another process has taken the store over: what this one has in memory is not the truth any more. */
export class StoreLostError extends Error {
	readonly code = "STORE_LOST";
	constructor(store: string) {
		super(`another process has taken over the ${store}'s store`);
		this.name = "StoreLostError";
	}
}

/** SQLSTATE classes and codes of a server that is not to be had now (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const DOWN_STATES = /^(08|57P0[123]$|53300$|25006$)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** The SQLSTATE or the system's code of what pg threw, null where it has none. */
export function codeOf(thrown: unknown): string | null {
	const code = typeof thrown === "object" && thrown !== null && "code" in thrown ? thrown.code : null;
	return typeof code === "string" ? code : null;
}

/** Whether the connection is at fault, not what was asked: the same may succeed later. */
export function isDown(thrown: unknown): boolean {
	const code = codeOf(thrown);
	if (thrown instanceof DatabaseDownError) return true;
	// pg has no code for a connection that ended, and for its own time-outs.
	return code === null || !SQLSTATE.test(code) || DOWN_STATES.test(code);
}

/** The same for those who must not see texts of the database's. */
export function downError(thrown: unknown): DatabaseDownError {
	return thrown instanceof DatabaseDownError
		? thrown
		: new DatabaseDownError(codeOf(thrown) ?? "connection ended");
}
