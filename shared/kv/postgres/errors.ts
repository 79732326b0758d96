// Errors of the database with our own messages, since the database's may name hosts and users.
// Messages are public. The host is a separate property, for the log.

import { advice } from "../../outgoing/advice.ts";

/** Details of a fault for the log beside its message; see safeError. */
interface Seen {
	/** Host and port; undefined for a socket of this machine. */
	readonly host?: string | undefined;
	/** A SQLSTATE, or the system's error code. */
	readonly reason?: string | undefined;
}

export class DatabaseDownError extends Error {
	override readonly name = "DatabaseDownError";
	readonly code = "DATABASE_DOWN";
	readonly host: string | undefined;
	readonly reason: string | undefined;
	constructor(why: string, { host, reason }: Seen = {}) {
		super(`the database of DATABASE_URL does not answer (${why})`);
		this.host = host;
		this.reason = reason;
	}
}

/** The database refuses a request, and a retry would not help. */
export class DatabaseRefusedError extends Error {
	override readonly name = "DatabaseRefusedError";
	readonly code = "DATABASE_REFUSED";
	readonly host: string | undefined;
	readonly reason: string | undefined;
	constructor(state: string, expected: string, host?: string) {
		super(`the database of DATABASE_URL refuses (${state}): expected ${expected}`);
		this.host = host;
		this.reason = state;
	}
}

export class StoreInUseError extends Error {
	override readonly name = "StoreInUseError";
	readonly code = "STORE_IN_USE";
	constructor(store: string) {
		super(
			`another process uses the ${store}'s store in the database of DATABASE_URL: stop it, or set another DATABASE_URL`,
		);
	}
}

/** Another process has taken over the store, so this one's memory is out of date. */
export class StoreLostError extends Error {
	override readonly name = "StoreLostError";
	readonly code = "STORE_LOST";
	constructor(store: string) {
		super(`another process has taken over the ${store}'s store`);
	}
}

/** Codes of our own errors. */
const OURS = /^(STORE_\w+|DATABASE_(URL|REFUSED)|OTHER_FORMAT)$/;
/**
 * SQLSTATE classes and codes of a server that is temporarily unavailable
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
const DOWN_STATES = /^(08|57P0[123]$|53300$|25006$)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** The SQLSTATE or system code of an error thrown by pg, or null. */
function codeOf(thrown: unknown): string | null {
	const code = typeof thrown === "object" && thrown !== null && "code" in thrown ? thrown.code : null;
	return typeof code === "string" ? code : null;
}

/** Whether the connection failed, so that a retry may succeed. */
export function isDown(thrown: unknown): boolean {
	const code = codeOf(thrown);
	if (thrown instanceof DatabaseDownError) return true;
	if (refusedError(thrown) !== null || OURS.test(code ?? "")) return false;
	// pg's errors for closed connections and its own timeouts have no code.
	return code === null || !SQLSTATE.test(code) || DOWN_STATES.test(code);
}

/** pg's error, which has no code, if the server asks for a password and the URL has none. */
const NO_PASSWORD = /^SASL: .*password must be/;
const CREDENTIALS = "a user and password that it knows; set them in DATABASE_URL and restart";

/**
 * Expectation that the operator must fulfil, by SQLSTATE or by Node's code for a certificate error.
 */
const EXPECTED: readonly (readonly [RegExp, string])[] = [
	[/^28/, CREDENTIALS],
	[/^53100$/, "free space on its disk"],
	[/^3D000$/, "the name of a database that exists; set it in DATABASE_URL and restart"],
	[/^(42501|3F000)$/, "a user who may create and write tables in a schema of the search path"],
	[
		/^(.*CERT.*|UNABLE_TO_VERIFY_LEAF_SIGNATURE|HOSTNAME_MISMATCH)$/,
		"a certificate that is valid for its host, or another sslmode",
	],
];

/** The refusal for an error of pg. Null if it is not a refusal. */
export function refusedError(thrown: unknown, host?: string): DatabaseRefusedError | null {
	if (thrown instanceof DatabaseRefusedError) return thrown;
	if (thrown instanceof Error && NO_PASSWORD.test(thrown.message)) {
		return new DatabaseRefusedError("no password", CREDENTIALS, host);
	}
	const code = codeOf(thrown);
	if (code === null) return null;
	const expected = EXPECTED.find(([pattern]) => pattern.test(code))?.[1];
	return expected === undefined ? null : new DatabaseRefusedError(code, expected, host);
}

/** The SQLSTATE of a write to a server that only accepts reads. */
const READ_ONLY = "25006";

/**
 * The fault of a statement or login that the server refuses although it accepts others. Null for
 * any other error.
 */
export function refusalIn(thrown: unknown, host?: string): DatabaseRefusedError | DatabaseDownError | null {
	return codeOf(thrown) === READ_ONLY ? downError(thrown, host) : refusedError(thrown, host);
}

/** The state of a server that can't be used, by SQLSTATE. */
const DOES: readonly (readonly [RegExp, string])[] = [
	[/^08P01$/, "a pooler such as PgBouncer refuses the connection: its log has the reason"],
	[/^57P01$/, "it is shutting down"],
	[/^57P02$/, "it has crashed"],
	[/^57P03$/, "it is starting or shutting down"],
	[/^53300$/, "it has no free connection: raise its max_connections, or close other connections"],
	[new RegExp(`^${READ_ONLY}$`), "it is read-only: is it a replica?"],
	[/^DEADLINE$/, "no answer in time"],
];

/** The error without texts of the database. */
export function downError(thrown: unknown, host?: string): DatabaseDownError {
	if (thrown instanceof DatabaseDownError) return thrown;
	const reason = codeOf(thrown);
	if (reason === null) return new DatabaseDownError("the connection has ended", { host });
	const does = DOES.find(([pattern]) => pattern.test(reason))?.[1] ?? advice("DATABASE_URL", { reason });
	return new DatabaseDownError(does === null ? reason : `${reason}: ${does}`, { host, reason });
}
