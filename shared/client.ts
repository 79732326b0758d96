// Identifies the sender of a request: the client's address, the key that signed the body, and
// whether a web page made its visitor's browser send it. Limits, ownership and visibility depend on
// that alone.

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isIP, SocketAddress } from "node:net";
import { parseAddress, parseHash } from "./ethereum/hex.ts";
import type { BodyVerification } from "./ethereum/signatures.ts";
import type { Recovered } from "./ethereum/transaction.ts";
import { RpcError } from "./jsonrpc/errors.ts";

export interface Client {
	/**
	 * IP address in its shortest form, IPv4 if possible; "unknown" if the connection has closed. If
	 * the page of another site made the visitor's browser send the request, {@link pageAddress}
	 * marks the address.
	 */
	readonly address: string;
	/**
	 * Lower-case address whose key signed the body (`X-Flashbots-Signature`, verified here or by a
	 * proxy that vouches), or null.
	 */
	readonly signer: string | null;
	/** Whether the address comes from the proxy that knows the shared secret. */
	readonly vouched: boolean;
	/**
	 * The setting that makes us ignore the client that a sender of `X-Boost-Auth` names. Undefined
	 * if it sent no such header, or if we trust it.
	 */
	readonly unbelieved?: Unbelieved | undefined;
	/**
	 * Set if the address belongs to a proxy that names a client but is not trusted. Many clients
	 * may then share the address.
	 */
	readonly isProxy?: true | undefined;
	/**
	 * The boost instances that forwarded the request, as their entries in `Via`. Only boost reads
	 * them.
	 */
	readonly via?: string | undefined;
	/**
	 * Digest of the body as its client sent it, which the signer signed. Undefined if a proxy that
	 * vouches does not report it.
	 */
	readonly digest?: string | undefined;
	/**
	 * The header `X-Leeward-Signature` as received. The reads of the relay that require it verify
	 * it.
	 */
	readonly readSignature?: string | undefined;
	/** Only a proxy that vouches can name them. */
	readonly ends?: EndsTransactions | undefined;
}

/** How a request ends an earlier transaction of its client or of its sender. */
const WAYS = ["cancels", "replaces"] as const;

/** Transactions of one sender and nonce that a request ends. They may still be on their way. */
export interface EndsTransactions {
	readonly how: (typeof WAYS)[number];
	readonly carried: readonly CarriedTransaction[];
}

/** A transaction as boost names it. */
export interface CarriedTransaction extends Recovered {
	/** Decimal, as `gas` and `value` in wei. */
	readonly nonce: string;
	/** Empty for a creation. */
	readonly to: string;
	readonly gas: string;
	readonly value: string;
}

/** The header by which a key opens its live reads, in Node's spelling. */
export const READ_SIGNATURE = "x-leeward-signature";

/**
 * `BOOST_SECRET`: it differs, or is not set here. `TRUST_PROXY`: that number of proxies would send
 * other entries.
 */
export const UNBELIEVED = ["BOOST_SECRET", "TRUST_PROXY"] as const;
export type Unbelieved = (typeof UNBELIEVED)[number];

interface AddressOptions {
	/**
	 * Number of proxies in front, each of which appends its client's address to `X-Forwarded-For`: 0
	 * trusts the connection alone, n the n-th entry from the right.
	 */
	readonly trustProxy: number;
	/** If set, a sender with the same `X-Boost-Auth` names the client, as its only entry. */
	readonly boostSecret?: string;
	/** Like `boostSecret`, for another secret, which may change. Null if there is none. */
	readonly ownSecret?: () => string | null;
}

export interface ClientAddress {
	/** Like {@link Client.address}. */
	readonly address: string;
	readonly vouched: boolean;
	/** As {@link Client.unbelieved}. */
	readonly unbelieved?: Unbelieved | undefined;
	/** As {@link Client.isProxy}. */
	readonly isProxy?: true | undefined;
	/** Like {@link Client.via}. */
	readonly via?: string | undefined;
}

/**
 * Prefix for the address of a visitor whose browser sends requests for a page of another site. Such
 * a client has its own quota beside that of the address, so that no page uses up its visitor's
 * quota. It does not count as the address that owns and may cancel.
 */
const PAGE = "web ";

/** `address` with the mark of the web pages that are open there. */
export function pageAddress(address: string): string {
	return address === UNKNOWN_ADDRESS || address.startsWith(PAGE) ? address : PAGE + address;
}

/** The address on the network, with or without the mark of web pages. */
export function networkAddress(address: string): string {
	return address.startsWith(PAGE) ? address.slice(PAGE.length) : address;
}

/**
 * The headers by which boost names a client to the relay. The relay trusts them if the secret comes
 * with them.
 */
export function clientHeaders(address: string): Readonly<Record<string, string>> {
	const named = { "x-forwarded-for": networkAddress(address) };
	return address.startsWith(PAGE) ? { ...named, "x-boost-page": "1" } : named;
}

export type ReadAddress = (headers: IncomingHttpHeaders, socketAddress: string | undefined) => ClientAddress;

/** Checks `X-Flashbots-Signature` against the body. */
export type VerifySignature = (header: string, body: Uint8Array | string) => BodyVerification;

/** The address of a connection that has closed. */
export const UNKNOWN_ADDRESS = "unknown";

/** The reader for `options`. If an entry is not an address, the connection's own address counts. */
export function addressReader(options: AddressOptions): ReadAddress {
	const readNetwork = networkReader(options);
	return (headers, socketAddress) => {
		const from = readNetwork(headers, socketAddress);
		// Boost has seen the host that the browser requested the page from. Boost may also resend a
		// page's request without the page's headers.
		const isPage = from.vouched ? headers["x-boost-page"] !== undefined : isOthersPage(headers);
		return isPage ? { ...from, address: pageAddress(from.address) } : from;
	};
}

function networkReader(options: AddressOptions): ReadAddress {
	const { trustProxy, boostSecret, ownSecret = () => null } = options;
	const secret = boostSecret === undefined || boostSecret === "" ? undefined : digest(boostSecret);
	return (headers, socketAddress) => {
		const direct = socketAddress === undefined ? UNKNOWN_ADDRESS : directAddress(socketAddress);
		const forwarded = headers["x-forwarded-for"];
		if (forwarded === undefined) return { address: direct, vouched: false };
		const entries = String(forwarded).split(",");
		const auth = headers["x-boost-auth"];
		let unbelieved: Unbelieved | undefined;
		if (typeof auth === "string") {
			const isBoosts = isSecret(auth, secret) || isSecret(auth, digestOf(ownSecret()));
			// Boost overwrites the header, so its entry is the only one, or comes before those of
			// `trustProxy` proxies.
			const isOnly = entries.length === 1 || entries.length === 1 + trustProxy;
			const named = isBoosts && isOnly ? normalAddress(entries[0] ?? "") : undefined;
			if (named !== undefined) return { address: named, vouched: true };
			unbelieved = isBoosts ? "TRUST_PROXY" : "BOOST_SECRET";
		}
		const forwardedFor =
			trustProxy === 0 ? undefined : normalAddress(entries[entries.length - trustProxy] ?? "");
		if (forwardedFor === undefined) return { address: direct, vouched: false, unbelieved, isProxy: true };
		return {
			address: forwardedFor,
			vouched: false,
			unbelieved,
			isProxy: unbelieved === undefined ? undefined : true,
		};
	};
}

/** Node gives addresses in their shortest form, but may give IPv4 addresses as IPv4-mapped. */
function directAddress(address: string): string {
	return address.includes(":") ? (normalAddress(address) ?? UNKNOWN_ADDRESS) : address;
}

/**
 * The normal form of an IP address: IPv4, also for IPv4-mapped and translated addresses; IPv6 in
 * lower case and shortest form, without port, brackets and zone. Undefined for anything else.
 */
export function normalAddress(text: string): string | undefined {
	let address = text.trim();
	if (address.startsWith("::ffff:") && isIP(address.slice(7)) === 4) return address.slice(7);
	const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(address)?.[1];
	if (bracketed !== undefined) address = bracketed;
	else if (/^[\d.]+:\d+$/.test(address)) address = address.slice(0, address.indexOf(":"));
	const zone = address.indexOf("%");
	if (zone !== -1) address = address.slice(0, zone);
	const family = isIP(address);
	if (family === 4) return address;
	if (family !== 6) return undefined;
	const { address: shortest } = new SocketAddress({ address, family: "ipv6" });
	const last = shortest.slice("::ffff:".length);
	return shortest.startsWith("::ffff:") && isIP(last) === 4 ? last : (translated(shortest) ?? shortest);
}

/**
 * The IPv4 address in an address of 64:ff9b::/96. A network that speaks only IPv6 gives such
 * addresses to clients of IPv4, and all of them are in one /56. Expects the shortest form.
 * https://www.rfc-editor.org/rfc/rfc6052#section-2.1
 */
function translated(address: string): string | undefined {
	const found = /^64:ff9b::(?:(?:([0-9a-f]+):)?([0-9a-f]+))?$/.exec(address);
	if (found === null) return undefined;
	const [high, low] = [found[1], found[2]].map((group) => Number.parseInt(group ?? "0", 16)) as [
		number,
		number,
	];
	return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/**
 * The client to whom limits apply: an IPv4 address, or the /56 network of an IPv6 address, since
 * one subscriber has all addresses of such a network. The web pages that are open there are a
 * separate client. Expects {@link Client.address}.
 */
export function clientOf(address: string): string {
	if (!address.includes(":")) return address;
	if (address.startsWith(PAGE)) return PAGE + clientOf(address.slice(PAGE.length));
	const [before = "", after] = address.split("::");
	const groups = before === "" ? [] : before.split(":");
	const missing = after === undefined ? 0 : 8 - groups.length - (after === "" ? 0 : after.split(":").length);
	const first = [...groups, ...Array<string>(missing).fill("0"), ...(after ?? "").split(":")].slice(0, 4);
	const fourth = Number.parseInt(first[3] ?? "0", 16) & 0xff00;
	return `${[...first.slice(0, 3), fourth.toString(16)].join(":")}::/56`;
}

/** The network of a {@link clientOf}: /24 of IPv4, /48 of IPv6. Often one owner has all of it. */
export function networkOf(client: string): string {
	const address = networkAddress(client);
	const [separator, suffix] = address.includes(":") ? [":", "::/48"] : [".", ".0/24"];
	return address.split(separator).slice(0, 3).join(separator) + suffix;
}

/**
 * Checks an `Authorization` header for `token`. Null if no token is set, so that access is refused.
 */
export function bearerCheck(token: string | undefined): ((header: string | undefined) => boolean) | null {
	if (token === undefined || token === "") return null;
	const expected = digest(token);
	return (header) => {
		const given = /^bearer +(.*)$/i.exec(header ?? "")?.[1] ?? "";
		return timingSafeEqual(digest(given.trim()), expected);
	};
}

function isSecret(given: string, secret: Buffer | undefined): boolean {
	return secret !== undefined && timingSafeEqual(digest(given), secret);
}

function digestOf(secret: string | null): Buffer | undefined {
	return secret === null ? undefined : digest(secret);
}

function digest(text: string): Buffer {
	return createHash("sha256").update(text).digest();
}

/**
 * Whether the origin is a web page. Our own pages count too, since they send nothing that needs
 * trust. A page in a sandboxed frame has the origin "null"; extensions have other schemes.
 * https://fetch.spec.whatwg.org/#origin-header
 */
export function isWebPage(origin: string | null): boolean {
	return origin !== null && /^\s*(?:https?:|null\s*$)/i.test(origin);
}

/**
 * Whether a web page of another site makes the browser send the request. Images and links have no
 * `Origin`; for them browsers send `Sec-Fetch-Site`. A user who follows a link opens the page
 * himself.
 * https://w3c.github.io/webappsec-fetch-metadata/#sec-fetch-site-header
 */
export function isOthersPage(headers: IncomingHttpHeaders): boolean {
	const { origin } = headers;
	if (origin !== undefined) return isWebPage(origin) && !isOwnOrigin(origin, headers.host);
	const site = headers["sec-fetch-site"];
	if (site !== "cross-site" && site !== "same-site") return false;
	return headers["sec-fetch-mode"] !== "navigate" || headers["sec-fetch-dest"] !== "document";
}

/**
 * Whether the page came from the host that the request is for. Anybody can point a name of his own
 * to our address. Plain http has no certificate, so there only an address or `localhost` proves it.
 */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
	const [, scheme, authority] = /^(https?):\/\/([^/?#@\s]+)$/i.exec(origin.trim()) ?? [];
	if (scheme === undefined || authority?.toLowerCase() !== host?.toLowerCase()) return false;
	const name = new URL(origin.trim()).hostname.replace(/^\[|\]$/g, "");
	return scheme.toLowerCase() === "https" || name === "localhost" || isIP(name) !== 0;
}

const UNVERIFIED = "invalid request: X-Flashbots-Signature does not verify";

/**
 * The client of `body` by its address and signature, and an error if the signature does not verify.
 * Without a signature, a proxy that vouches may name the signer in `X-Boost-Signer` and the signed
 * digest in `X-Boost-Digest`. That proxy has verified the original body and may have rewritten it.
 * From any other sender these headers are ignored.
 */
export function identify(
	headers: IncomingHttpHeaders,
	from: ClientAddress,
	body: Uint8Array,
	verifySignature: VerifySignature | undefined,
): { readonly client: Client; readonly signatureError: RpcError | null } {
	const signature = headers["x-flashbots-signature"];
	const given = headers[READ_SIGNATURE];
	const readSignature = given === undefined ? undefined : String(given);
	if (signature === undefined) {
		const signer = from.vouched ? parseAddress(String(headers["x-boost-signer"])) : null;
		const digest = signer === null ? null : parseHash(String(headers["x-boost-digest"]));
		const ends = from.vouched ? endsBy(headers[ENDS]) : undefined;
		const client = clientFrom(from, signer, readSignature, digest ?? undefined, ends);
		return { client, signatureError: null };
	}
	const check = verifySignature?.(String(signature), body);
	if (check?.ok) {
		const client = clientFrom(from, check.address, readSignature, check.digest);
		return { client, signatureError: null };
	}
	const text = `${UNVERIFIED}: ${check?.reason ?? "not taken here"}`;
	const signatureError = new RpcError("invalidRequest", text);
	return { client: clientFrom(from, null, readSignature), signatureError };
}

/** The header in which boost gives hash and sender of the transaction that its request submits. */
export const TRANSACTION = "x-boost-transaction";

/** The value of {@link TRANSACTION}. */
export function transactionHeader({ hash, from }: Recovered): string {
	return `${hash} ${from}`;
}

/**
 * Hash and sender of the transaction that the request submits, from a process that vouches: it has
 * recovered them, so that we need not. Undefined from any other sender.
 */
export function recoveredBy(headers: IncomingHttpHeaders, { vouched }: ClientAddress): Recovered | undefined {
	const value = vouched ? headers[TRANSACTION] : undefined;
	if (typeof value !== "string") return undefined;
	const [, hash, from] = /^(0x[0-9a-f]{64}) (0x[0-9a-f]{40})$/.exec(value) ?? [];
	return hash === undefined || from === undefined ? undefined : { hash, from };
}

/** The header in which boost gives the transactions that its request ends. */
export const ENDS = "x-boost-ends";

/** The value of {@link ENDS}. */
export function endsHeader({ how, carried }: EndsTransactions): string {
	const texts = carried.map(({ hash, from, nonce, to, gas, value }) =>
		[hash, from, nonce, to || NO_ADDRESS, gas, value].join(" "),
	);
	return `${how} ${texts.slice(0, MAX_ENDED).join(", ")}`;
}

/** More transactions of one nonce are never under way. */
const MAX_ENDED = 16;

const NO_ADDRESS = "-";
const CARRIED = /^(0x[0-9a-f]{64}) (0x[0-9a-f]{40}) (\d{1,20}) (0x[0-9a-f]{40}|-) (\d{1,20}) (\d{1,78})$/;

function endsBy(header: string | readonly string[] | undefined): EndsTransactions | undefined {
	const [, way, list] = typeof header === "string" ? (/^(\w+) (.+)$/.exec(header) ?? []) : [];
	const how = WAYS.find((one) => one === way);
	if (how === undefined || list === undefined) return undefined;
	const carried = list.split(", ").map(carriedIn);
	return carried.every((one) => one !== null) && carried.length <= MAX_ENDED ? { how, carried } : undefined;
}

function carriedIn(text: string): CarriedTransaction | null {
	const [, hash, from, nonce, to, gas, value] = CARRIED.exec(text) ?? [];
	if (!hash || !from || !nonce || !to || !gas || !value) return null;
	return { hash, from, nonce, to: to === NO_ADDRESS ? "" : to, gas, value };
}

/** No spread: this runs for each request. */
function clientFrom(
	{ address, vouched, unbelieved, isProxy, via }: ClientAddress,
	signer: string | null,
	readSignature: string | undefined,
	digest?: string,
	ends?: EndsTransactions,
): Client {
	return { address, signer, vouched, unbelieved, isProxy, via, digest, readSignature, ends };
}
