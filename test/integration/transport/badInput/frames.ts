// Builds websocket frames by hand and reads the code with which a server closes the connection. No client library
// would send most of them. RFC 6455, section 5.2.

import { connect } from "node:net";

/** A frame; a whole, masked text frame unless said. */
export interface FrameOptions {
	readonly payload?: string | Uint8Array;
	/** 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong. */
	readonly opcode?: number;
	readonly final?: boolean;
	/** The three reserved bits, as 0x40, 0x20 and 0x10. */
	readonly reserved?: number;
	readonly masked?: boolean;
	/** The length it says it has, in its longest form; the payload is sent as it is. */
	readonly claims?: bigint;
}

const MASK = Buffer.from([0x12, 0x34, 0x56, 0x78]);
const HANG_MS = 10_000;
const CLOSE = 8;

/** The bytes of a frame. */
export function frame(options: FrameOptions): Buffer {
	const { opcode = 1, final = true, reserved = 0, masked = true, claims } = options;
	const payload = Buffer.from(options.payload ?? "");
	const first = (final ? 0x80 : 0) | reserved | opcode;
	const bit = masked ? 0x80 : 0;
	let head: Buffer;
	if (claims !== undefined || payload.length > 0xffff) {
		head = Buffer.alloc(10);
		head.writeUInt8(bit | 127, 1);
		head.writeBigUInt64BE(claims ?? BigInt(payload.length), 2);
	} else if (payload.length > 125) {
		head = Buffer.alloc(4);
		head.writeUInt8(bit | 126, 1);
		head.writeUInt16BE(payload.length, 2);
	} else head = Buffer.from([0, bit | payload.length]);
	head.writeUInt8(first, 0);
	if (!masked) return Buffer.concat([head, payload]);
	const body = payload.map((byte, i) => byte ^ (MASK[i % 4] ?? 0));
	return Buffer.concat([head, MASK, body]);
}

/** The head of an upgrade on `path`, with `lines` behind the usual ones. */
export function upgradeHead(path: string, lines: readonly string[] = []): string {
	const usual = ["Host: x", "Connection: Upgrade", "Upgrade: websocket"];
	const key = ["Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`];
	return `${[`GET ${path} HTTP/1.1`, ...usual, ...key, ...lines].join("\r\n")}\r\n\r\n`;
}

/**
 * Upgrades, sends `bytes` and waits until the server closes: the code of its close frame, or null where it closed
 * the connection without one. Rejects when it does not close.
 */
export function closedWith(port: number, bytes: Uint8Array): Promise<number | null> {
	return new Promise((resolve, reject) => {
		const socket = connect(port, "127.0.0.1");
		let received = Buffer.alloc(0);
		socket.setTimeout(HANG_MS, () => {
			socket.destroy();
			reject(new Error("the connection was not closed"));
		});
		const read = (): number | null => {
			const head = received.indexOf("\r\n\r\n");
			return head === -1 ? null : closeCode(received.subarray(head + 4));
		};
		socket.on("data", (piece: Buffer) => {
			received = Buffer.concat([received, piece]);
			const code = read();
			if (code === null) return;
			socket.destroy();
			resolve(code);
		});
		socket.on("error", () => resolve(read()));
		socket.on("close", () => resolve(read()));
		socket.write(upgradeHead("/ws"));
		socket.write(bytes);
	});
}

/** The code in the first close frame of `bytes`; 1005 for one without, null where there is none yet. */
function closeCode(bytes: Buffer): number | null {
	let at = 0;
	while (at + 2 <= bytes.length) {
		const opcode = bytes.readUInt8(at) & 0x0f;
		const short = bytes.readUInt8(at + 1) & 0x7f;
		const start = at + (short === 126 ? 4 : 2);
		const length = short === 126 ? bytes.readUInt16BE(at + 2) : short;
		if (opcode === CLOSE) return length < 2 ? 1005 : bytes.readUInt16BE(start);
		at = start + length;
	}
	return null;
}
