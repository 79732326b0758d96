// How a database is to be spoken to: its URL comes in, the rules of TLS that pg is to follow go out. What sslmode means is
// libpq's (https://www.postgresql.org/docs/current/libpq-ssl.html): hosts have certificates that nobody has signed.

import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";

export const SSL_MODES = [
	"disable",
	"allow",
	"prefer",
	"require",
	"no-verify",
	"verify-ca",
	"verify-full",
] as const;
type SslMode = (typeof SSL_MODES)[number];

/** The URL says what no rule is for. */
export class DatabaseUrlError extends Error {
	readonly code = "DATABASE_URL";
	constructor(what: string) {
		super(`DATABASE_URL: ${what}`);
		this.name = "DatabaseUrlError";
	}
}

export interface DatabaseAddress {
	/** Without words about TLS, which pg would read in its own way. */
	readonly url: string;
	/** TLS as it must be; null: none. */
	readonly ssl: ConnectionOptions | null;
	/** Whether it may be in the clear where the server has no TLS. */
	readonly mayBeClear: boolean;
}

/** `verify`: the certificate must be valid, whatever the URL says. Throws {@link DatabaseUrlError}. */
export function databaseAddress(text: string, verify: boolean): DatabaseAddress {
	const url = new URL(text);
	const mode = url.searchParams.get("sslmode");
	const rootCert = url.searchParams.get("sslrootcert");
	for (const name of ["sslmode", "sslrootcert", "ssl", "uselibpqcompat"]) url.searchParams.delete(name);
	if (mode !== null && !isMode(mode)) {
		throw new DatabaseUrlError(`expected an sslmode of ${SSL_MODES.join(", ")}`);
	}
	const place = { url: url.toString(), mayBeClear: false };
	const ca = rootCert === null ? {} : { ca: readRoot(rootCert) };
	if (verify || mode === "verify-full") return { ...place, ssl: { ...ca, rejectUnauthorized: true } };
	if (mode === "verify-ca" || (mode === "require" && rootCert !== null)) {
		return { ...place, ssl: { ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined } };
	}
	if (mode === "disable") return { ...place, ssl: null };
	const isWanted = mode === "require" || mode === "no-verify";
	return { ...place, ssl: { rejectUnauthorized: false }, mayBeClear: !isWanted };
}

function isMode(text: string): text is SslMode {
	return (SSL_MODES as readonly string[]).includes(text);
}

function readRoot(path: string): string {
	try {
		return readFileSync(path, "utf8");
	} catch {
		throw new DatabaseUrlError("expected a readable file of certificates as sslrootcert");
	}
}
