// Who sent a request, as far as that can be believed, and what a method may know of it: path, query, client and connection. A
// context holds no headers and no body, so nothing in it has to be kept secret.

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isIP, SocketAddress } from "node:net";
import { parseAddress } from "../ethereum/hex.ts";
import type { BodyVerification } from "../ethereum/signatures.ts";
import { RpcError } from "../jsonrpc/errors.ts";

/** Who sent a request. */
export interface Client {
	/** Network address in its shortest form, IPv4 where it is one; "unknown" where the connection is gone. */
	readonly address: string;
	/**
	 * Address whose key signed the body (`X-Flashbots-Signature`, verified here or by a proxy that vouches), lower-case;
	 * null where none did.
	 */
	readonly signer: string | null;
	/** True where the address was told by the proxy that knows the shared secret. */
	readonly vouched: boolean;
}

/** A websocket connection, as far as methods may use it. */
export interface Connection {
	/** Sends one message. A reader too far behind is closed with 1013 instead; after the close it does nothing. */
	send(text: string): void;
	/** Closes it with a code and a reason of at most 123 bytes. */
	close(code: number, reason: string): void;
	/** Calls `listener` once, when the connection has ended for whatever reason; at once if it already has. */
	onClose(listener: () => void): void;
}

/** One message of a websocket and its answer. */
export interface Exchange {
	/**
	 * Calls `listener` once, when the answer was sent ahead of whatever is sent from then on, or none is due; at once if
	 * that was before.
	 */
	onAnswered(listener: () => void): void;
}

/** What a method gets beside its parameters. */
export interface CallContext {
	readonly transport: "http" | "ws";
	/** The pathname, without a slash at its end: "/", "/fast". Over a websocket that of the upgrade. */
	readonly path: string;
	/** The query, percent-decoded. */
	readonly query: URLSearchParams;
	readonly client: Client;
	/** The `Origin` header: which web page or extension sent it; null where none was sent. */
	readonly origin: string | null;
	/** How long the request lasts that the call came with. */
	readonly life: RequestLife;
	/** Null over HTTP. */
	readonly connection: Connection | null;
	/** The message that the call came with; null over HTTP. */
	readonly exchange: Exchange | null;
}

/** The life of a request whose client does not leave. */
const LASTING: RequestLife = { bytes: 0, onGone: () => {} };

/** The context of a request to `target`; over a websocket with its connection and the message. */
export function callContext(
	{ path, search }: RequestTarget,
	client: Client,
	origin: string | null,
	connection: Connection | null,
	exchange: Exchange | null = null,
	life: RequestLife = LASTING,
): CallContext {
	let query: URLSearchParams | undefined;
	return {
		...{ transport: connection === null ? "http" : "ws", path, client, origin, life, connection, exchange },
		// Read where it is asked for: a websocket's would be parsed with each of its messages.
		get query() {
			query ??= new URLSearchParams(search);
			return query;
		},
	};
}

/** A request or message that a call came with, until it is answered. */
export interface RequestLife {
	/** Of its body. They are held until it is answered. */
	readonly bytes: number;
	/** Calls `listener` once, when its client has gone; at once where it already has. */
	onGone(listener: () => void): void;
}

/** What ends once, and who is told of it. */
export class Ending {
	#listeners: (() => void)[] = [];
	#isOver = false;

	get isOver(): boolean {
		return this.#isOver;
	}

	/** Calls `listener` once, at the end; at once where that was before. */
	onEnd(listener: () => void): void {
		if (this.#isOver) listener();
		else this.#listeners.push(listener);
	}

	end(): void {
		this.#isOver = true;
		for (const listener of this.#listeners.splice(0)) listener();
	}
}

/**
 * The life of one request; whoever owns the connection ends it, when the client has gone or was answered. Listeners hear of
 * both: after an answer they have nothing left to end.
 */
export class ClientLife extends Ending implements RequestLife {
	readonly bytes: number;

	constructor(bytes: number) {
		super();
		this.bytes = bytes;
	}

	onGone(listener: () => void): void {
		this.onEnd(listener);
	}
}

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

/** Checks `X-Flashbots-Signature` against the body it came with. */
export type VerifySignature = (header: string, body: Uint8Array | string) => BodyVerification;

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
	const { address: shortest } = new SocketAddress({ address, family: "ipv6" });
	const last = shortest.slice("::ffff:".length);
	return shortest.startsWith("::ffff:") && isIP(last) === 4 ? last : shortest;
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
 * Whether a web page has sent it. Ours send nothing that their visitor has not signed, so each is taken for a foreign one. A page in a sandboxed
 * frame has the origin "null"; extensions' origins have schemes of their own.
 * https://fetch.spec.whatwg.org/#origin-header
 */
export function isWebPage(origin: string | null): boolean {
	return origin !== null && /^\s*(?:https?:|null\s*$)/i.test(origin);
}

const UNVERIFIED = "invalid request: X-Flashbots-Signature does not verify";

/**
 * Who sent `body`: `from` an address, and by a signature where one came with it; `refused` where it does not verify.
 * Without one a proxy that vouches may name the signer in `X-Boost-Signer`: it has verified the signature of a body that it
 * may have written anew. From anybody else that header is a client's own word.
 */
export function identify(
	headers: IncomingHttpHeaders,
	{ address, vouched }: ClientAddress,
	body: Uint8Array,
	verifySignature: VerifySignature | undefined,
): { readonly client: Client; readonly refused: RpcError | null } {
	const signature = headers["x-flashbots-signature"];
	// What the body itself carries counts before what is said of it.
	if (signature === undefined) {
		const named = headers["x-boost-signer"];
		const signer = vouched && typeof named === "string" ? parseAddress(named) : null;
		return { client: { address, signer, vouched }, refused: null };
	}
	const check = verifySignature?.(String(signature), body);
	if (check?.ok) return { client: { address, signer: check.address, vouched }, refused: null };
	const refused = new RpcError("invalidRequest", `${UNVERIFIED}: ${check?.reason ?? "not taken here"}`);
	return { client: { address, signer: null, vouched }, refused };
}

/** Where a request goes. */
export interface RequestTarget {
	/** Without query, and without slashes at its end unless it is "/". */
	readonly path: string;
	/** What stands behind the first "?", or "". */
	readonly search: string;
}

/** Reads a request target: origin form (`/fast?a=b`) or absolute form (`http://host/fast`, as proxies send). */
export function readTarget(target: string): RequestTarget {
	const origin = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?#]*\/?/i, "/");
	const mark = origin.indexOf("?");
	let end = mark === -1 ? origin.length : mark;
	while (end > 1 && origin.charCodeAt(end - 1) === 0x2f) end--;
	return { path: origin.slice(0, end), search: mark === -1 ? "" : origin.slice(mark + 1) };
}
