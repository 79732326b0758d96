// Finds the URL by which other processes of the same system reach this one, for processes whose
// settings do not name it. Hosts put the address into environment variables. Elsewhere it is the
// machine's private address.

import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";

/** The values that determine the address. */
export interface InternalUrlSources {
	readonly env: Readonly<Record<string, string | undefined>>;
	/**
	 * The address that the process listens on. A wildcard for all addresses of the machine is
	 * ignored.
	 */
	readonly host: string;
	readonly port: number;
	readonly interfaces?: NodeJS.Dict<readonly Pick<NetworkInterfaceInfo, "address" | "family" | "internal">[]>;
}

/**
 * The private addresses of https://www.rfc-editor.org/rfc/rfc1918, and the carriers' addresses of
 * rfc6598, which some hosts use internally.
 */
const PRIVATE = /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/;
const ALL = new Set(["0.0.0.0", "::", ""]);

/**
 * An http URL. On a machine without a private address, only processes of this machine can reach it.
 */
export function internalUrl({
	env,
	host,
	port,
	interfaces = networkInterfaces(),
}: InternalUrlSources): string {
	// https://fly.io/docs/machines/runtime-environment/ and
	// https://devcenter.heroku.com/articles/dyno-dns-service-discovery
	const privateName = env.FLY_PRIVATE_IP ?? env.HEROKU_DNS_DYNO_NAME;
	const found = Object.values(interfaces)
		.flatMap((addresses) => addresses ?? [])
		.find(({ address, family, internal }) => family === "IPv4" && !internal && PRIVATE.test(address));
	const named = privateName ?? (ALL.has(host) ? (found?.address ?? "127.0.0.1") : host);
	return `http://${named.includes(":") ? `[${named}]` : named}:${port}`;
}
