// Bad input over a websocket, as rows: messages with their exact answers, frames that end the connection with the
// code, and upgrades that are refused with the answer.

import { frame, upgradeHead } from "./frames.ts";
import { type BytesRow, failure, success } from "./rows.ts";

/** A message and its answer; undefined where nothing is answered. The connection goes on. */
export interface MessageRow {
	readonly name: string;
	readonly message: string | Buffer;
	readonly answer: unknown;
}

/** Frames behind the upgrade, and the code with which the connection is closed; null: cut. */
export interface FrameRow {
	readonly name: string;
	readonly frames: Uint8Array;
	readonly code: number | null;
}

const GOOD = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}';
const CHAIN = success(1, "0x7a69");
const NOT_JSON = failure(null, -32700, "parse error: not JSON");
const NO_OBJECT = failure(
	null,
	-32600,
	"invalid request: expected an object with jsonrpc, id, method and params",
);

function notServed(method: string): unknown {
	return failure(7, -32601, `the method ${method} does not exist/is not available`);
}

function refused(method: string, params: string): MessageRow {
	const message = `{"jsonrpc":"2.0","id":7,"method":"${method}","params":${params}}`;
	return { name: `${method} ${params} is refused`, message, answer: notServed(method) };
}

function noSubscription(params: string): MessageRow {
	const names = [
		...["service_partialPendingTransactions", "newHeads", "logs"],
		...["service_transactionStatus", "service_bundleStatus"],
		"mevblocker_partialPendingTransactions",
	];
	const message = `{"jsonrpc":"2.0","id":7,"method":"eth_subscribe","params":${params}}`;
	const answer = failure(7, -32602, `invalid params: name: expected one of ${names.join(", ")}`);
	return { name: `a subscription to ${params}`, message, answer };
}

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
		name: "a batch of 101",
		message: `[${Array(101).fill(GOOD).join(",")}]`,
		answer: failure(null, -32600, "invalid request: a batch has at most 100 entries"),
	},
	{ name: "a nested batch", message: `[[${GOOD}],${GOOD}]`, answer: [NO_OBJECT, CHAIN] },
	{ name: "a notification is not answered", message: '{"method":"eth_chainId"}', answer: undefined },
	{ name: "a batch of notifications is not answered", message: '[{"method":"nope"}]', answer: undefined },
	{
		name: "params that are 4,000 levels deep",
		message: `{"id":7,"method":"eth_call","params":${"[".repeat(4_000)}${"]".repeat(4_000)}}`,
		answer: failure(7, -32602, "invalid params: params: expected at most 64 levels of nesting"),
	},
	...["[]", '["nope"]', '["newPendingTransactions"]', '["syncing"]', "[1]", "[[]]"].map(noSubscription),
	{
		name: "a subscription to the status of no hash",
		message: '{"id":7,"method":"eth_subscribe","params":["service_bundleStatus","0x12"]}',
		answer: failure(7, -32602, "invalid params: bundleHash: expected a hash of 32 bytes as 0x hex"),
	},
	{
		name: "the end of a subscription that there is not",
		message: '{"id":7,"method":"eth_unsubscribe","params":["0x1"]}',
		answer: success(7, false),
	},
	refused("anvil_mine", '["0x1"]'),
	refused("admin_nodeInfo", "[]"),
	refused("debug_traceCall", "[{}]"),
	{
		name: "eth_sendRawTransaction with nothing",
		message: '{"id":7,"method":"eth_sendRawTransaction","params":["0x"]}',
		answer: failure(7, -32000, "rlp: empty input", { reason: "UNDECODABLE", detail: "rlp" }),
	},
	{ name: "a good call as binary is answered", message: Buffer.from(GOOD), answer: CHAIN },
	{ name: "a good call of 1 MiB is answered", message: GOOD.padEnd(1 << 20, " "), answer: CHAIN },
];

const LIMIT = 2n * 1024n * 1024n;
const pong = frame({ opcode: 10, payload: "unasked" });

export const FRAME_ROWS: readonly FrameRow[] = [
	{ name: "a frame without a mask", frames: frame({ payload: GOOD, masked: false }), code: 1002 },
	{ name: "the first reserved bit", frames: frame({ payload: GOOD, reserved: 0x40 }), code: 1002 },
	{ name: "the second reserved bit", frames: frame({ payload: GOOD, reserved: 0x20 }), code: 1002 },
	{ name: "opcode 3", frames: frame({ payload: GOOD, opcode: 3 }), code: 1002 },
	{ name: "opcode 15", frames: frame({ payload: GOOD, opcode: 15 }), code: 1002 },
	{ name: "a continuation of nothing", frames: frame({ payload: GOOD, opcode: 0 }), code: 1002 },
	{ name: "a ping in pieces", frames: frame({ opcode: 9, final: false }), code: 1002 },
	{ name: "a ping of 126 bytes", frames: frame({ opcode: 9, payload: "x".repeat(126) }), code: 1002 },
	{ name: "a close of one byte", frames: frame({ opcode: 8, payload: "x" }), code: 1002 },
	{
		name: "a close with the code 1005",
		frames: frame({ opcode: 8, payload: Buffer.from([3, 0xed]) }),
		code: 1002,
	},
	{ name: "a close with the code 0", frames: frame({ opcode: 8, payload: Buffer.from([0, 0]) }), code: 1002 },
	{
		name: "a text in pieces, and another text in it",
		frames: Buffer.concat([frame({ payload: "{", final: false }), frame({ payload: GOOD })]),
		code: 1002,
	},
	{ name: "text that is no UTF-8", frames: frame({ payload: Buffer.from([0x22, 0xff, 0x22]) }), code: 1007 },
	{
		name: "text in pieces that is no UTF-8",
		frames: Buffer.concat([
			frame({ payload: '"', final: false }),
			frame({ payload: Buffer.from([0xc0, 0x80]), opcode: 0 }),
		]),
		code: 1007,
	},
	{
		name: "a close whose reason is no UTF-8",
		frames: frame({ opcode: 8, payload: Buffer.from([3, 0xe8, 0xff]) }),
		code: 1007,
	},
	{ name: "a frame that says it is a byte too long", frames: frame({ claims: LIMIT + 1n }), code: 1009 },
	{ name: "a frame that says it is 2^53 bytes long", frames: frame({ claims: 2n ** 53n }), code: 1009 },
	{ name: "a frame that says it is 2^63 bytes long", frames: frame({ claims: 2n ** 63n }), code: 1009 },
	{
		name: "pieces that are too long together",
		frames: Buffer.concat([
			frame({ payload: " ".repeat(1 << 20), final: false }),
			frame({ payload: " ".repeat(1 << 20), final: false, opcode: 0 }),
			frame({ payload: " ", opcode: 0 }),
		]),
		code: 1009,
	},
	{
		name: "a goodbye behind an unasked pong is answered in kind",
		frames: Buffer.concat([pong, frame({ opcode: 8, payload: Buffer.from([3, 0xe8]) })]),
		code: 1000,
	},
];

const NO_PATH = { status: 404, answer: failure(null, -32600, "invalid request: unknown path") } as const;
const SIGNED = {
	status: 400,
	answer: failure(null, -32600, "invalid request: X-Flashbots-Signature is not taken on a websocket"),
} as const;

export const UPGRADE_ROWS: readonly BytesRow[] = [
	{ name: "an upgrade on an unknown path", bytes: upgradeHead("/nope"), ...NO_PATH },
	{ name: "an upgrade on a status page", bytes: upgradeHead(`/tx/0x${"ab".repeat(32)}`), ...NO_PATH },
	{ name: "an upgrade on /metrics", bytes: upgradeHead("/metrics"), ...NO_PATH },
	{
		name: "an upgrade with a signature",
		bytes: upgradeHead("/ws", ["X-Flashbots-Signature: 0x"]),
		...SIGNED,
	},
	{
		name: "an upgrade to something else is answered as a request",
		bytes: "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: tls/1.3\r\n\r\n",
		...{
			status: 405,
			answer: { error: "expected one of POST, OPTIONS" },
			headers: { allow: "POST, OPTIONS" },
		},
	},
];

/** Upgrades that break RFC 6455 itself; the words are those of the websocket library, so the status alone counts. */
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
