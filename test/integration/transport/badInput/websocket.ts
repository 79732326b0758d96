// Bad input over a websocket, as rows: messages with their exact answers, frames (RFC 6455, section
// 5.2) that end the connection with the code, and upgrades that are refused with the answer. No
// client library would send most of them.

import { RawConnection } from "../../../support/clients.ts";
import { type BytesRow, failure, success } from "./fixture.ts";
import { GOOD, GOOD_ANSWER } from "./http.ts";

/** A message and its answer; undefined where nothing is answered. The connection goes on. */
interface MessageRow {
	readonly name: string;
	readonly message: string | Buffer;
	readonly answer: unknown;
}

const NOT_JSON = failure(null, -32700, "parse error: not JSON");
const NO_OBJECT = failure(
	null,
	-32600,
	"invalid request: expected an object with jsonrpc, id, method and params",
);

function asked(name: string, method: string, params: string, answer: unknown): MessageRow {
	return { name, message: `{"jsonrpc":"2.0","id":7,"method":"${method}","params":${params}}`, answer };
}

function refused(method: string, params: string): MessageRow {
	const answer = failure(7, -32601, `the method ${method} does not exist/is not available`);
	return asked(`${method} ${params} is refused`, method, params, answer);
}

const SUBSCRIPTIONS = [
	...["service_partialPendingTransactions", "newHeads", "logs"],
	...["service_transactionStatus", "service_bundleStatus"],
	"mevblocker_partialPendingTransactions",
].join(", ");

export const MESSAGE_ROWS: readonly MessageRow[] = [
	{ name: "an empty message", message: "", answer: NOT_JSON },
	{ name: "an empty binary message", message: Buffer.alloc(0), answer: NOT_JSON },
	{ name: "cut off", message: GOOD.slice(0, -1), answer: NOT_JSON },
	{ name: "text", message: "hello", answer: NOT_JSON },
	{ name: "a byte order mark", message: `\ufeff${GOOD}`, answer: NOT_JSON },
	{ name: "brackets, 4,000 levels deep", message: "[".repeat(4_000), answer: NOT_JSON },
	{
		name: "bytes that are no UTF-8, as binary",
		message: Buffer.from([0x22, 0xff, 0x22]),
		answer: failure(null, -32700, "parse error: not UTF-8"),
	},
	{ name: "null", message: "null", answer: NO_OBJECT },
	{ name: "an empty batch", message: "[]", answer: failure(null, -32600, "invalid request: empty batch") },
	{
		name: "a batch of 1,001",
		message: `[${Array(1_001).fill(GOOD).join(",")}]`,
		answer: failure(null, -32600, "invalid request: a batch has at most 1000 entries"),
	},
	{ name: "a nested batch", message: `[[${GOOD}],${GOOD}]`, answer: [NO_OBJECT, GOOD_ANSWER] },
	{ name: "a notification is not answered", message: '{"method":"eth_chainId"}', answer: undefined },
	{ name: "a batch of notifications is not answered", message: '[{"method":"nope"}]', answer: undefined },
	asked(
		"params that are an object",
		"eth_chainId",
		"{}",
		failure(7, -32602, "invalid params: params: expected an array"),
	),
	asked(
		"params that are 4,000 levels deep",
		"eth_call",
		"[".repeat(4_000) + "]".repeat(4_000),
		failure(7, -32602, "invalid params: params: expected at most 64 levels of nesting"),
	),
	...["[]", '["nope"]', '["syncing"]', "[1]", "[[]]"].map((params) =>
		asked(
			`a subscription to ${params}`,
			"eth_subscribe",
			params,
			failure(7, -32602, `invalid params: name: expected one of ${SUBSCRIPTIONS}`),
		),
	),
	asked(
		"a subscription to the status of no hash",
		"eth_subscribe",
		'["service_bundleStatus","0x12"]',
		failure(7, -32602, "invalid params: bundleHash: expected a hash of 32 bytes as 0x hex"),
	),
	asked("the end of a subscription that there is not", "eth_unsubscribe", '["0x1"]', success(7, false)),
	refused("anvil_mine", '["0x1"]'),
	refused("admin_nodeInfo", "[]"),
	refused("debug_traceCall", "[{}]"),
	asked(
		"eth_sendRawTransaction with nothing",
		"eth_sendRawTransaction",
		'["0x"]',
		failure(7, -32000, "rlp: empty input", { reason: "UNDECODABLE", detail: "rlp" }),
	),
	{ name: "a good call as binary is answered", message: Buffer.from(GOOD), answer: GOOD_ANSWER },
	{ name: "a good call of 1 MiB is answered", message: GOOD.padEnd(1 << 20, " "), answer: GOOD_ANSWER },
];

/** A frame; a whole, masked text frame unless said. */
interface FrameOptions {
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
const CLOSE = 8;

function frame(content: string | readonly number[], options: FrameOptions = {}): Buffer {
	const { opcode = 1, final = true, reserved = 0, masked = true, claims } = options;
	const payload = Buffer.from(content as string);
	const first = (final ? 0x80 : 0) | reserved | opcode;
	const bit = masked ? 0x80 : 0;
	let head = Buffer.from([first, bit | payload.length]);
	if (claims !== undefined || payload.length > 125) {
		head = Buffer.from([first, bit | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
		head.writeBigUInt64BE(claims ?? BigInt(payload.length), 2);
	}
	if (!masked) return Buffer.concat([head, payload]);
	return Buffer.concat([head, MASK, payload.map((byte, i) => byte ^ (MASK[i % 4] ?? 0))]);
}

const closing = (...payload: readonly number[]): Buffer => frame(payload, { opcode: CLOSE });
/** The first piece of a message, and one that goes on with it. */
const begun = (content: string): Buffer => frame(content, { final: false });
const going = (content: string | readonly number[], final = true): Buffer =>
	frame(content, { opcode: 0, final });

const LIMIT = 2n * 1024n * 1024n;
const MIB = " ".repeat(1 << 20);

/** Frames sent behind the upgrade, by the code with which the connection is closed for them. */
export const FRAME_ROWS: ReadonlyMap<number, Readonly<Record<string, readonly Buffer[]>>> = new Map([
	[
		1002,
		{
			"a frame without a mask": [frame(GOOD, { masked: false })],
			"the first reserved bit: compression that was not agreed on": [frame(GOOD, { reserved: 0x40 })],
			"the second reserved bit": [frame(GOOD, { reserved: 0x20 })],
			"opcode 3": [frame(GOOD, { opcode: 3 })],
			"opcode 15": [frame(GOOD, { opcode: 15 })],
			"a continuation of nothing": [going(GOOD)],
			"a ping in pieces": [frame("", { opcode: 9, final: false })],
			"a ping of 126 bytes": [frame("x".repeat(126), { opcode: 9 })],
			"a close of one byte": [closing(120)],
			"a close with the code 1005": [closing(3, 0xed)],
			"a close with the code 0": [closing(0, 0)],
			"a text in pieces, and another text in it": [begun("{"), frame(GOOD)],
		},
	],
	[
		1007,
		{
			"text that is no UTF-8": [frame([0x22, 0xff, 0x22])],
			"text in pieces that is no UTF-8": [begun('"'), going([0xc0, 0x80])],
			"a close whose reason is no UTF-8": [closing(3, 0xe8, 0xff)],
		},
	],
	[
		1009,
		{
			"a frame that says it is a byte too long": [frame("", { claims: LIMIT + 1n })],
			"a frame that says it is 2^53 bytes long": [frame("", { claims: 2n ** 53n })],
			"a frame that says it is 2^63 bytes long": [frame("", { claims: 2n ** 63n })],
			"pieces that are too long together": [begun(MIB), going(MIB, false), going(" ")],
		},
	],
	[
		1000,
		{
			"a goodbye behind an unasked pong is answered in kind": [
				frame("unasked", { opcode: 10 }),
				closing(3, 0xe8),
			],
		},
	],
]);

/**
 * Upgrades, sends `frames` and waits until the server closes: the code of its close frame, or null
 * without one.
 */
export async function closedWith(port: number, frames: readonly Buffer[]): Promise<number | null> {
	const connection = await RawConnection.open(port);
	connection.write(upgradeHead("/ws"));
	await connection.answer();
	connection.write(Buffer.concat(frames));
	const left = Buffer.from(await connection.closed(), "latin1");
	return left[0] === (0x80 | CLOSE) ? left.readUInt16BE(2) : null;
}

/** The head of an upgrade on `path`, with `lines` behind the usual ones. */
function upgradeHead(path: string, lines: readonly string[] = []): string {
	const usual = ["Host: x", "Connection: Upgrade", "Upgrade: websocket"];
	const key = ["Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`];
	return `${[`GET ${path} HTTP/1.1`, ...usual, ...key, ...lines].join("\r\n")}\r\n\r\n`;
}

const NO_PATH = { status: 404, answer: failure(null, -32600, "invalid request: unknown path") } as const;
const signed = (name: string): BytesRow => ({
	name: `an upgrade with ${name}`,
	bytes: upgradeHead("/ws", [`${name}: 0x`]),
	status: 400,
	answer: failure(null, -32600, `invalid request: ${name} is not accepted on a websocket`),
});

export const UPGRADE_ROWS: readonly BytesRow[] = [
	{ name: "an upgrade on an unknown path", bytes: upgradeHead("/nope"), ...NO_PATH },
	{ name: "an upgrade on a status page", bytes: upgradeHead(`/tx/0x${"ab".repeat(32)}`), ...NO_PATH },
	{ name: "an upgrade on /metrics", bytes: upgradeHead("/metrics"), ...NO_PATH },
	signed("X-Flashbots-Signature"),
	signed("X-Leeward-Signature"),
	{
		name: "an upgrade to something else is answered as a request",
		bytes: "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tls/1.3\r\n\r\n",
		status: 200,
		answer: { live: true },
	},
];

/**
 * Upgrades that break RFC 6455 itself; the words are those of the websocket library, so the status
 * alone counts.
 */
export const BROKEN_UPGRADES: readonly {
	readonly name: string;
	readonly bytes: string;
	readonly status: number;
}[] = [
	{ name: "no key", bytes: upgradeHead("/ws").replace(/Sec-WebSocket-Key.*\r\n/, ""), status: 400 },
	{ name: "a short key", bytes: upgradeHead("/ws").replace(/AAAA+==/, "AAAA"), status: 400 },
	{ name: "version 12", bytes: upgradeHead("/ws").replace("Version: 13", "Version: 12"), status: 400 },
	{ name: "no version", bytes: upgradeHead("/ws").replace(/Sec-WebSocket-Version.*\r\n/, ""), status: 400 },
	{ name: "the verb POST", bytes: upgradeHead("/ws").replace("GET", "POST"), status: 405 },
];
