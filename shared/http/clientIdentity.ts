// Who sent a request, as far as that can be believed: the address by which everything is shared, a signer
// that a proxy vouches for, an operator by his token, a web page by its origin.

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { parseAddress } from "../ethereum/hex.ts";

interface AddressOptions {
	/**
	 * How many proxies stand in front, each of which appends the address it was reached from to `X-Forwarded-For`:
	 * 0 believes the connection alone, n the n-th entry from the right.
	 */
	readonly trustProxy: number;
	/** Where set, a sender of the same `X-Boost-Auth` names the client itself, as the only entry of its own. */
	readonly boostSecret?: string;
}

/** An address and who told it. */
export interface ClientAddress {
	/** See Client.address. */
	readonly address: string;
	readonly vouched: boolean;
}

/** Reads the client's address off a request. */
export type ReadAddress = (headers: IncomingHttpHeaders, socketAddress: string | undefined) => ClientAddress;

/** What a check of `X-Flashbots-Signature` said; `reason` is in our own words and quotes nothing. */
type SignatureCheck =
	| { readonly ok: true; readonly address: string }
	| { readonly ok: false; readonly reason: string };

/** Checks the header against the body it came with. */
export type VerifySignature = (header: string, body: Uint8Array | string) => SignatureCheck;

/** Where the connection has ended before it was asked. */
const UNKNOWN_ADDRESS = "unknown";

/** The reader for `options`. Entries that are no addresses count as absent: the connection's own is taken. */
export function addressReader(options: AddressOptions): ReadAddress {
	const { trustProxy, boostSecret } = options;
	const secret = boostSecret === undefined || boostSecret === "" ? undefined : digest(boostSecret);
	return (headers, socketAddress) => {
		const direct = socketAddress === undefined ? UNKNOWN_ADDRESS : directAddress(socketAddress);
		const forwarded = headers["x-forwarded-for"];
		if (forwarded === undefined) return { address: direct, vouched: false };
		const entries = String(forwarded).split(",");
		const auth = headers["x-boost-auth"];
		if (secret !== undefined && typeof auth === "string" && timingSafeEqual(digest(auth), secret)) {
			// It overwrites the header, so its entry stands alone, or before those of the proxies it came through.
			const named =
				entries.length === 1 || entries.length === 1 + trustProxy
					? normalAddress(entries[0] ?? "")
					: undefined;
			if (named !== undefined) return { address: named, vouched: true };
		}
		const told = trustProxy === 0 ? undefined : normalAddress(entries[entries.length - trustProxy] ?? "");
		return { address: told ?? direct, vouched: false };
	};
}

/**
 * The signer whom a vouching proxy names in `X-Boost-Signer`: it has verified the client's signature of a body that it
 * may have written anew. Lower case; null where it names none, and where nobody vouches: then it is a client's own word.
 */
export function vouchedSigner(headers: IncomingHttpHeaders, vouched: boolean): string | null {
	const named = headers["x-boost-signer"];
	return vouched && typeof named === "string" ? parseAddress(named) : null;
}

/** The system gives addresses in their shortest form already, but IPv4 ones as mapped where it listens on both. */
function directAddress(address: string): string {
	return address.includes(":") ? (normalAddress(address) ?? UNKNOWN_ADDRESS) : address;
}

/**
 * An IP address in one form: IPv4-mapped ones as IPv4, IPv6 lower-case in its shortest form; a port, brackets and a
 * zone are dropped. Undefined for anything else.
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
	const shortest = new URL(`http://[${address}]/`).hostname.slice(1, -1);
	const mapped = /^::ffff:([\da-f]+):([\da-f]+)$/.exec(shortest);
	if (mapped === null) return shortest;
	const high = Number.parseInt(mapped[1] ?? "", 16);
	const low = Number.parseInt(mapped[2] ?? "", 16);
	return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

/**
 * The client that an address belongs to, by which everything scarce is shared: an IPv4 address, or the /56 network of
 * an IPv6 one, since whoever has one address of it has them all. Takes what {@link normalAddress} answers.
 */
export function clientOf(address: string): string {
	if (!address.includes(":")) return address;
	const [before = "", after] = address.split("::");
	const groups = before === "" ? [] : before.split(":");
	const missing = after === undefined ? 0 : 8 - groups.length - (after === "" ? 0 : after.split(":").length);
	const first = [...groups, ...Array<string>(missing).fill("0"), ...(after ?? "").split(":")].slice(0, 4);
	const fourth = Number.parseInt(first[3] ?? "0", 16) & 0xff00;
	return `${[...first.slice(0, 3), fourth.toString(16)].join(":")}::/56`;
}

/** Whether an `Authorization` header has `token`; null where there is no token, and nobody may. */
export function bearerCheck(token: string | undefined): ((header: string | undefined) => boolean) | null {
	if (token === undefined || token === "") return null;
	const expected = digest(token);
	return (header) => {
		const given = /^bearer +(.*)$/i.exec(header ?? "")?.[1] ?? "";
		return timingSafeEqual(digest(given.trim()), expected);
	};
}

function digest(text: string): Buffer {
	return createHash("sha256").update(text).digest();
}

/**
 * Whether a web page has sent it. We serve none that sends anything, so each is a foreign one. A page in a sandboxed
 * frame has the origin "null"; extensions' origins have schemes of their own.
 * https://fetch.spec.whatwg.org/#origin-header
 */
export function isWebPage(origin: string | null): boolean {
	return origin !== null && /^\s*(?:https?:|null\s*$)/i.test(origin);
}
