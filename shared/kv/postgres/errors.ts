// What goes wrong with a database, in our own words: those of the database may name hosts and users.

/** The database can't be reached, or does not answer in time. */
export class DatabaseDownError extends Error {
	override readonly name = "DatabaseDownError";
	readonly code = "DATABASE_DOWN";
	constructor(why: string) {
		super(`the database of DATABASE_URL does not answer (${why})`);
	}
}

/** The database can be reached and refuses what is asked: no later try will do better. */
export class DatabaseRefusedError extends Error {
	override readonly name = "DatabaseRefusedError";
	readonly code = "DATABASE_REFUSED";
	constructor(state: string, expected: string) {
		super(`the database of DATABASE_URL refuses (${state}): expected ${expected}`);
	}
}

/** Another process has the store. */
export class StoreInUseError extends Error {
	override readonly name = "StoreInUseError";
	readonly code = "STORE_IN_USE";
	constructor(store: string) {
		super(
			`another process uses the ${store}'s store in the database of DATABASE_URL: stop it, or set another DATABASE_URL`,
		);
	}
}

/** Another process has taken the store over: what this one has in memory is not the truth any more. */
export class StoreLostError extends Error {
	override readonly name = "StoreLostError";
	readonly code = "STORE_LOST";
	constructor(store: string) {
		super(`another process has taken over the ${store}'s store`);
	}
}

/** Our own, which say more. */
const OURS = /^(STORE_\w+|DATABASE_(URL|REFUSED)|LATER_VERSION)$/;
/** SQLSTATE classes and codes of a server that is not to be had now (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const DOWN_STATES = /^(08|57P0[123]$|53300$|25006$)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** The SQLSTATE or the system's code of what pg threw, null where it has none. */
function codeOf(thrown: unknown): string | null {
	const code = typeof thrown === "object" && thrown !== null && "code" in thrown ? thrown.code : null;
	return typeof code === "string" ? code : null;
}

/** Whether the connection is at fault, not what was asked: the same may succeed later. */
export function isDown(thrown: unknown): boolean {
	const code = codeOf(thrown);
	if (thrown instanceof DatabaseDownError) return true;
	if (refusedError(thrown) !== null || OURS.test(code ?? "")) return false;
	// pg has no code for a connection that ended, and for its own time-outs.
	return code === null || !SQLSTATE.test(code) || DOWN_STATES.test(code);
}

/** What is expected instead, by the SQLSTATE or Node's code of a fault in a certificate. */
const EXPECTED: readonly (readonly [RegExp, string])[] = [
	[/^28/, "a user and password that it knows"],
	[/^53100$/, "room on its disk"],
	[/^3D000$/, "the name of a database that exists"],
	[/^(42501|3F000)$/, "a user who may make and write tables in a schema of the search path"],
	[
		/^(.*CERT.*|UNABLE_TO_VERIFY_LEAF_SIGNATURE|HOSTNAME_MISMATCH)$/,
		"a certificate that is valid for its host, or another sslmode",
	],
];

/** A refusal in our own words; null where it is none: what was thrown says more, or a later try may do better. */
export function refusedError(thrown: unknown): DatabaseRefusedError | null {
	if (thrown instanceof DatabaseRefusedError) return thrown;
	const code = codeOf(thrown);
	if (code === null) return null;
	const expected = EXPECTED.find(([pattern]) => pattern.test(code))?.[1];
	return expected === undefined ? null : new DatabaseRefusedError(code, expected);
}

/** The same for those who must not see texts of the database's. */
export function downError(thrown: unknown): DatabaseDownError {
	return thrown instanceof DatabaseDownError
		? thrown
		: new DatabaseDownError(codeOf(thrown) ?? "connection ended");
}
