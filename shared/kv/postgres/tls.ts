// How a database is spoken to, by its URL: no password goes over a network in clear text unless the URL says so. What
// sslmode means is libpq's (https://www.postgresql.org/docs/current/libpq-ssl.html) but for two things: over a network what
// is not said, and what may do without TLS there, means require. Hosts have certificates that nobody has signed.

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
	/** Whether it may be in the clear where the server has no TLS: on this machine alone. */
	readonly mayBeClear: boolean;
	/** Whether what is said goes over a network in clear text. */
	readonly isExposed: boolean;
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
	const host = hostOf(url);
	// Else pg would ask the environment.
	if (host === "") url.searchParams.set("host", "localhost");
	const place = { url: url.toString(), mayBeClear: false, isExposed: false };
	// There is no TLS over a socket.
	if (host.startsWith("/")) return { ...place, ssl: null };
	const ca = rootCert === null ? {} : { ca: readRoot(rootCert) };
	if (verify || mode === "verify-full") return { ...place, ssl: { ...ca, rejectUnauthorized: true } };
	if (mode === "verify-ca" || (mode === "require" && rootCert !== null)) {
		return { ...place, ssl: { ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined } };
	}
	const isHere = host === "" || LOOPBACK.test(host);
	if (mode === "disable") return { ...place, ssl: null, isExposed: !isHere };
	const isWanted = mode === "require" || mode === "no-verify";
	return { ...place, ssl: { rejectUnauthorized: false }, mayBeClear: isHere && !isWanted };
}

/** Hosts that no network lies before. */
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/** The host or the socket's folder as pg reads it: the last parameter `host` goes before the URL's own. */
function hostOf(url: URL): string {
	const named = url.searchParams.getAll("host").at(-1) ?? "";
	if (named !== "") return named;
	try {
		return decodeURIComponent(url.hostname).replace(/^\[(.+)\]$/, "$1");
	} catch {
		throw new DatabaseUrlError("expected a host's name, its address, or a socket's folder");
	}
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
