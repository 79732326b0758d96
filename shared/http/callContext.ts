// Identifies the client of a request, and makes the context that methods get: path, query, client and connection. A context has
// no headers and no body, so it holds no secrets.

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isIP, SocketAddress } from "node:net";
import { parseAddress } from "../ethereum/hex.ts";
import type { BodyVerification } from "../ethereum/signatures.ts";
import { RpcError } from "../jsonrpc/errors.ts";
import type { LaterMessages } from "./laterMessages.ts";

export interface Client {
	/**
	 * IP address in its shortest form, IPv4 if possible; "unknown" if the connection has closed. Where another's web page has
	 * the visitor's browser send the request, the address as {@link pageAddress} marks it.
	 */
	readonly address: string;
	/**
	 * Lower-case address whose key signed the body (`X-Flashbots-Signature`, verified here or by a proxy that vouches), or null.
	 */
	readonly signer: string | null;
	/** Whether the address comes from the proxy that knows the shared secret. */
	readonly vouched: boolean;
	/** Set if the address is a proxy's, which names a client but is not believed: it may be that of many clients. */
	readonly isProxy?: true | undefined;
	/** The boosts that the request came through, as their entries in `Via`; only boost reads them. */
	readonly via?: string | undefined;
}

/** A websocket connection, as far as methods may use it. */
export interface Connection {
	/** Its client, see {@link clientOf}. */
	readonly client: string;
	/** Sends one message, or closes a client that has left too much unread with 1013. Does nothing after the close. */
	send(text: string): void;
	/**
	 * Sends messages behind all that was sent before. They are unread bytes at once: where they are too many, none is made, and
	 * the client is closed with 1013.
	 */
	sendLater(messages: LaterMessages): void;
	/** Counts bytes that are kept for the client as unread, or closes it with 1013. Returns what ends that. */
	hold(bytes: number): () => void;
	/** Closes it with a code and a reason of at most 123 bytes. */
	close(code: number, reason: string): void;
	/** Calls `listener` once, when the connection has ended; at once if it already has. */
	onClose(listener: () => void): void;
}

/** One message of a websocket and its answer. */
export interface WebsocketMessage {
	/** Calls `listener` once, when the answer was sent or there is none; at once if it already was. */
	onAnswered(listener: () => void): void;
}

/** What a method gets besides its parameters. */
export interface CallContext {
	readonly transport: "http" | "ws";
	/** The pathname without a trailing slash: "/", "/fast". On a websocket that of the upgrade. */
	readonly path: string;
	/** The query, percent-decoded. */
	readonly query: URLSearchParams;
	readonly client: Client;
	/** The `Origin` header, which names the web page or extension; null if absent. */
	readonly origin: string | null;
	readonly life: RequestLife;
	/** Null over HTTP. */
	readonly connection: Connection | null;
	/** The message of the call; null over HTTP. */
	readonly message: WebsocketMessage | null;
}

/** For a request whose client never disconnects. */
const LASTING: RequestLife = { bytes: 0, onGone: () => {} };

/** The context of a request; on a websocket with its connection and message. */
export function callContext(
	target: RequestTarget,
	client: Client,
	origin: string | null,
	connection: Connection | null,
	message: WebsocketMessage | null = null,
	life: RequestLife = LASTING,
): CallContext {
	return new RequestContext(target, client, origin, connection, message, life);
}

/** Parses the query only when a method reads it: a websocket's would be parsed with each of its messages. */
class RequestContext implements CallContext {
	readonly transport: "http" | "ws";
	readonly path: string;
	readonly client: Client;
	readonly origin: string | null;
	readonly life: RequestLife;
	readonly connection: Connection | null;
	readonly message: WebsocketMessage | null;
	readonly #search: string;
	#query: URLSearchParams | undefined;

	constructor(
		target: RequestTarget,
		client: Client,
		origin: string | null,
		connection: Connection | null,
		message: WebsocketMessage | null,
		life: RequestLife,
	) {
		this.transport = connection === null ? "http" : "ws";
		this.path = target.path;
		this.client = client;
		this.origin = origin;
		this.life = life;
		this.connection = connection;
		this.message = message;
		this.#search = target.search;
	}

	get query(): URLSearchParams {
		this.#query ??= new URLSearchParams(this.#search);
		return this.#query;
	}
}

/** The request or message of a call, until it is answered. */
export interface RequestLife {
	/** Size of its body, which is held until it is answered. */
	readonly bytes: number;
	/** Calls `listener` once, when its client has disconnected; at once if it already has. */
	onGone(listener: () => void): void;
}

/** Something that ends once, with listeners. */
export class Ending {
	#listeners: (() => void)[] = [];
	#isOver = false;

	get isOver(): boolean {
		return this.#isOver;
	}

	/** Calls `listener` once, at the end; at once if it is over. */
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
 * Reports the end of one request; `bytes` is the size of its body. The owner of the connection ends it when the client has disconnected or was answered; listeners are
 * called in both cases, since after an answer they have nothing left to end.
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
	 * Number of proxies in front, each of which appends its client's address to `X-Forwarded-For`: 0 trusts the connection
	 * alone, n the n-th entry from the right.
	 */
	readonly trustProxy: number;
	/** If set, a sender with the same `X-Boost-Auth` names the client, as its only entry. */
	readonly boostSecret?: string;
}

export interface ClientAddress {
	/** Like {@link Client.address}. */
	readonly address: string;
	readonly vouched: boolean;
	/** As {@link Client.isProxy}. */
	readonly isProxy?: true | undefined;
	/** Like {@link Client.via}. */
	readonly via?: string | undefined;
}

/**
 * Before the address of a visitor whose browser sends what another's web page wants. A client with it has shares of its own
 * beside the address's, so that no page uses up its visitor's; and it is not the address that owns and may cancel.
 */
const PAGE = "web ";

/** `address` as that of the web pages which are open there. */
export function pageAddress(address: string): string {
	return address === UNKNOWN_ADDRESS || address.startsWith(PAGE) ? address : PAGE + address;
}

/** The address on the network, with or without the mark of web pages. */
export function networkAddress(address: string): string {
	return address.startsWith(PAGE) ? address.slice(PAGE.length) : address;
}

/** The headers by which boost names a client to the relay, which believes them beside the secret. */
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
		// Boost has seen the host that the page was asked for, and may send without a page's headers what one has sent before.
		const isPage = from.vouched ? headers["x-boost-page"] !== undefined : isOthersPage(headers);
		if (!isPage) return from;
		const { address, vouched, isProxy } = from;
		return { address: pageAddress(address), vouched, isProxy };
	};
}

function networkReader(options: AddressOptions): ReadAddress {
	const { trustProxy, boostSecret } = options;
	const secret = boostSecret === undefined || boostSecret === "" ? undefined : digest(boostSecret);
	return (headers, socketAddress) => {
		const direct = socketAddress === undefined ? UNKNOWN_ADDRESS : directAddress(socketAddress);
		const forwarded = headers["x-forwarded-for"];
		if (forwarded === undefined) return { address: direct, vouched: false };
		const entries = String(forwarded).split(",");
		const auth = headers["x-boost-auth"];
		if (secret !== undefined && typeof auth === "string" && timingSafeEqual(digest(auth), secret)) {
			// Boost overwrites the header, so its entry is the only one, or comes before those of `trustProxy` proxies.
			const named =
				entries.length === 1 || entries.length === 1 + trustProxy
					? normalAddress(entries[0] ?? "")
					: undefined;
			if (named !== undefined) return { address: named, vouched: true };
		}
		const forwardedFor =
			trustProxy === 0 ? undefined : normalAddress(entries[entries.length - trustProxy] ?? "");
		if (forwardedFor === undefined) return { address: direct, vouched: false, isProxy: true };
		return { address: forwardedFor, vouched: false };
	};
}

/** Node gives addresses in their shortest form, but may give IPv4 addresses as IPv4-mapped. */
function directAddress(address: string): string {
	return address.includes(":") ? (normalAddress(address) ?? UNKNOWN_ADDRESS) : address;
}

/**
 * The normal form of an IP address: IPv4 also for IPv4-mapped ones, IPv6 in lower case and shortest form, without port,
 * brackets and zone. Undefined for anything else.
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
 * The client to whom limits apply: an IPv4 address, or the /56 network of an IPv6 address, since one subscriber has all of its
 * addresses. The web pages that are open there are a client of their own. Takes {@link Client.address}.
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

/** Checks an `Authorization` header for `token`; null if no token is set, so that access is refused. */
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
 * Whether the origin is a web page. Our own pages count too, since they send nothing that needs trust. A page in a sandboxed
 * frame has the origin "null"; extensions have other schemes.
 * https://fetch.spec.whatwg.org/#origin-header
 */
export function isWebPage(origin: string | null): boolean {
	return origin !== null && /^\s*(?:https?:|null\s*$)/i.test(origin);
}

/**
 * Whether a web page that is not of this server has the browser send the request. Without an `Origin`, as of images and links,
 * browsers tell by `Sec-Fetch-Site`; who follows a link opens the page himself.
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
 * Whether the page has come from the host that the request is for. Anybody can point a name of his own to our address, so over
 * http, which has no certificate, only an address or `localhost` shows that.
 */
function isOwnOrigin(origin: string, host: string | undefined): boolean {
	const [, scheme, authority] = /^(https?):\/\/([^/?#@\s]+)$/i.exec(origin.trim()) ?? [];
	if (scheme === undefined || authority?.toLowerCase() !== host?.toLowerCase()) return false;
	const name = new URL(origin.trim()).hostname.replace(/^\[|\]$/g, "");
	return scheme.toLowerCase() === "https" || name === "localhost" || isIP(name) !== 0;
}

const UNVERIFIED = "invalid request: X-Flashbots-Signature does not verify";

/**
 * The client of `body` by its address and signature, and an error if the signature does not verify. Without a signature, a
 * proxy that vouches may name the signer in `X-Boost-Signer`: it has verified the original body, and may have rewritten it.
 * From anyone else that header is ignored.
 */
export function identify(
	headers: IncomingHttpHeaders,
	from: ClientAddress,
	body: Uint8Array,
	verifySignature: VerifySignature | undefined,
): { readonly client: Client; readonly signatureError: RpcError | null } {
	const signature = headers["x-flashbots-signature"];
	if (signature === undefined) {
		const named = headers["x-boost-signer"];
		const signer = from.vouched && typeof named === "string" ? parseAddress(named) : null;
		return { client: clientFrom(from, signer), signatureError: null };
	}
	const check = verifySignature?.(String(signature), body);
	if (check?.ok) return { client: clientFrom(from, check.address), signatureError: null };
	const text = `${UNVERIFIED}: ${check?.reason ?? "not taken here"}`;
	const signatureError = new RpcError("invalidRequest", text);
	return { client: clientFrom(from, null), signatureError };
}

/** No spread: this runs for each request. */
function clientFrom({ address, vouched, isProxy, via }: ClientAddress, signer: string | null): Client {
	return { address, signer, vouched, isProxy, via };
}

export interface RequestTarget {
	/** Without query, trailing slashes, except "/" itself, and with one slash for each row of them. */
	readonly path: string;
	/** After the first "?", or "". */
	readonly search: string;
}

/**
 * Reads a request target: origin form (`/fast?a=b`) or absolute form (`http://host/fast`, as proxies send). `//fast`, as of a
 * base URL with a slash at its end, is `/fast`.
 */
export function readTarget(target: string): RequestTarget {
	const origin = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?#]*\/?/i, "/");
	const mark = origin.indexOf("?");
	let end = mark === -1 ? origin.length : mark;
	while (end > 1 && origin.charCodeAt(end - 1) === 0x2f) end--;
	const path = origin.slice(0, end);
	return {
		path: path.includes("//") ? path.replace(/\/{2,}/g, "/") : path,
		search: mark === -1 ? "" : origin.slice(mark + 1),
	};
}
