// Finds the addresses of upstreams by name. Node's own way blocks a thread of its pool for each
// query, two at a time, and can't cancel one. Two names that no server answers for would delay all
// others. Here a query blocks no thread, and each name has one query at a time. The last result
// stays in use until there is a newer one.

import { promises as dns, type LookupAddress, type LookupOptions } from "node:dns";
import { readFileSync } from "node:fs";
import { isIP, type LookupFunction } from "node:net";
import { type Clock, within } from "../clock.ts";

export interface LookupOptionsOf {
	/** Name servers as `address:port`. Default: the system's. */
	readonly servers?: readonly string[];
	/** The file with names that take precedence over the servers. */
	readonly hostsFile?: string;
}

const HOSTS_FILE = "/etc/hosts";
/** Timeout of one query to one server in ms, and number of tries. */
const ASK = { timeout: 800, tries: 2 };
/** Time after which we give up on an answer, in ms. */
const DEADLINE_MS = 5_000;
/**
 * How long addresses are used without a new query: their own time to live, within these bounds, in
 * ms.
 */
const LEAST_MS = 2_000;
const MOST_MS = 60_000;
/**
 * How long to wait for a query if there is an older answer, and for one kind of address after the
 * other, in ms.
 */
const PATIENCE_MS = 200;
const OTHER_KIND_MS = 50;

interface Found {
	readonly addresses: readonly LookupAddress[];
	/** Monotonic ms. */
	readonly until: number;
}

interface Name {
	found: Found | null;
	asking: Promise<Found> | null;
}

/**
 * For `lookup` of sockets and of the clients that open them. One for a process, since all of them
 * use the same names.
 */
export function createLookup(options: LookupOptionsOf, { clock }: { readonly clock: Clock }): LookupFunction {
	const names = new Map<string, Name>();
	let system: Promise<unknown> = Promise.resolve();

	const ask = async (host: string): Promise<Found> => {
		const listed = inHostsFile(host, options.hostsFile ?? HOSTS_FILE);
		if (listed.length > 0) return { addresses: listed, until: clock.monotonic() + LEAST_MS };
		try {
			return await askServers(host, options.servers, clock);
		} catch (thrown) {
			if (isMute(thrown) || options.servers !== undefined) throw thrown;
		}
		// Servers don't know the name, or there are none. The name may be short, or known to the
		// system in another way. One query at a time, so that a thread remains free for others.
		const asked = system.then(() => dns.lookup(host, { all: true }));
		system = asked.catch(() => {});
		return { addresses: await asked, until: clock.monotonic() + LEAST_MS };
	};
	const find = async (host: string): Promise<readonly LookupAddress[]> => {
		const name = names.get(host) ?? { found: null, asking: null };
		names.set(host, name);
		const { found } = name;
		if (found !== null && clock.monotonic() < found.until) return found.addresses;
		name.asking ??= within(clock, "lookup", DEADLINE_MS, ask(host))
			.then((newer) => {
				name.found = newer;
				return newer;
			})
			.finally(() => {
				name.asking = null;
			});
		if (found === null) return (await name.asking).addresses;
		const newer = await within(clock, "lookup", PATIENCE_MS, name.asking).catch(() => found);
		return newer.addresses;
	};
	return (host, wanted, callback) => {
		const family = isIP(host);
		const finding = family === 0 ? find(host) : Promise.resolve([{ address: host, family }]);
		finding.then(
			(addresses) => reply(addresses, host, wanted, callback),
			(thrown: NodeJS.ErrnoException) => callback(thrown, "", 0),
		);
	};
}

/** All addresses of a name by `lookup`; rejects if there are none. */
export function addressFinder(lookup: LookupFunction): (name: string) => Promise<readonly string[]> {
	return (name) =>
		new Promise((resolve, reject) => {
			lookup(name, { all: true }, (error, found) => {
				if (error === null) resolve((found as LookupAddress[]).map(({ address }) => address));
				else reject(error);
			});
		});
}

type Reply = Parameters<LookupFunction>[2];

function reply(
	addresses: readonly LookupAddress[],
	host: string,
	{ all, family }: LookupOptions,
	callback: Reply,
): void {
	const kind = family === "IPv4" ? 4 : family === "IPv6" ? 6 : (family ?? 0);
	const fitting = addresses.filter((one) => kind === 0 || one.family === kind);
	const [first] = fitting;
	if (first === undefined) callback(noSuchName(host), "", 0);
	else if (all === true) callback(null, fitting);
	else callback(null, first.address, first.family);
}

/**
 * Queries both kinds of address; one of them is enough. Throws the servers' error, IPv4's first.
 */
async function askServers(
	host: string,
	servers: readonly string[] | undefined,
	clock: Clock,
): Promise<Found> {
	// A new resolver for each query, so that it uses the current servers of the system.
	const resolver = new dns.Resolver(ASK);
	if (servers !== undefined) resolver.setServers(servers);
	const now = clock.monotonic();
	const of = (family: 4 | 6) => {
		const asked =
			family === 4 ? resolver.resolve4(host, { ttl: true }) : resolver.resolve6(host, { ttl: true });
		return asked.then((records) => records.map(({ address, ttl }) => ({ address, family, ttl })));
	};
	const kinds = [of(4), of(6)];
	await Promise.any(kinds).catch(() => {});
	const records = await Promise.all(
		kinds.map((kind) => within(clock, "lookup", OTHER_KIND_MS, kind).catch(() => [])),
	);
	const all = records.flat();
	resolver.cancel();
	if (all.length === 0) {
		const [failed] = await Promise.allSettled(kinds);
		throw failed?.status === "rejected" ? failed.reason : noSuchName(host);
	}
	const ttlMs = 1000 * Math.min(...all.map(({ ttl }) => ttl));
	return {
		addresses: all.map(({ address, family }) => ({ address, family })),
		until: now + Math.min(MOST_MS, Math.max(LEAST_MS, ttlMs)),
	};
}

/** Whether no server gave any answer. */
function isMute(thrown: unknown): boolean {
	const { code } = thrown as { code?: unknown };
	return code === "ETIMEOUT" || code === "ECANCELLED";
}

function noSuchName(host: string): NodeJS.ErrnoException {
	return Object.assign(new Error("no address"), { code: "ENOTFOUND", hostname: host });
}

const LOOPBACK: readonly LookupAddress[] = [
	{ address: "127.0.0.1", family: 4 },
	{ address: "::1", family: 6 },
];

/**
 * The addresses of `host` in the file; none if there is no such file.
 * https://man7.org/linux/man-pages/man5/hosts.5.html
 */
function inHostsFile(host: string, file: string): readonly LookupAddress[] {
	let text: string;
	try {
		// The file is small, and only read when a name is looked up, which is rare.
		text = readFileSync(file, "utf8");
	} catch {
		text = "";
	}
	const wanted = host.toLowerCase().replace(/\.$/, "");
	const found: LookupAddress[] = [];
	for (const line of text.split("\n")) {
		const [address = "", ...aliases] = line.replace(/#.*/, "").trim().split(/\s+/);
		const family = isIP(address);
		if (family !== 0 && aliases.some((alias) => alias.toLowerCase() === wanted))
			found.push({ address, family });
	}
	if (found.length === 0 && (wanted === "localhost" || wanted.endsWith(".localhost"))) return LOOPBACK;
	return found;
}
