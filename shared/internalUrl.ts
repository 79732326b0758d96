// Where other processes of the same system reach this one, unless a setting says it: hosts tell it in variables, and elsewhere it is the
// machine's private address.

import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";

/** What the address follows from. */
export interface InternalUrlSources {
	readonly env: Readonly<Record<string, string | undefined>>;
	/** The address that the process listens on; one that stands for all of the machine's names none. */
	readonly host: string;
	readonly port: number;
	readonly interfaces?: NodeJS.Dict<readonly Pick<NetworkInterfaceInfo, "address" | "family" | "internal">[]>;
}

/** https://www.rfc-editor.org/rfc/rfc1918, and the addresses of carriers that some hosts use inside: rfc6598. */
const PRIVATE = /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/;
const ALL = new Set(["0.0.0.0", "::", ""]);

/** An http URL; on a machine without a private address one that only processes of this machine reach. */
export function internalUrl({
	env,
	host,
	port,
	interfaces = networkInterfaces(),
}: InternalUrlSources): string {
	// https://fly.io/docs/machines/runtime-environment/ and https://devcenter.heroku.com/articles/dyno-dns-service-discovery
	const told = env.FLY_PRIVATE_IP ?? env.HEROKU_DNS_DYNO_NAME;
	const found = Object.values(interfaces)
		.flatMap((addresses) => addresses ?? [])
		.find(({ address, family, internal }) => family === "IPv4" && !internal && PRIVATE.test(address));
	const named = told ?? (ALL.has(host) ? (found?.address ?? "127.0.0.1") : host);
	return `http://${named.includes(":") ? `[${named}]` : named}:${port}`;
}
