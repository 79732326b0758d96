// Tests how one request to an upstream ends, on real connections: how its answer may come, and the
// error for each fault.

import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { JsonRpcClient, UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { freePort } from "../../../devnet/freePort.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";

const TIMEOUT_MS = 5_000;
const MOST_BYTES = 100;
const BODY = '{"jsonrpc":"2.0","id":1,"result":"0x1"}';
const TYPE = "content-type: application/json\r\n";
const WHOLE = `HTTP/1.1 200 OK\r\n${TYPE}content-length: ${BODY.length}\r\n\r\n${BODY}`;

/** Answers a request, with bytes of its own. */
let answer: (socket: Socket) => void = () => {};
const sockets: Socket[] = [];
let requests = 0;
const server = createServer((socket) => {
	sockets.push(socket);
	socket.on("error", () => {});
	socket.on("data", (chunk) => {
		// The body may come by itself.
		if (!chunk.includes("POST ")) return;
		requests += 1;
		answer(socket);
	});
});
const clock = new ManualClock();
let client: JsonRpcClient;
before(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
beforeEach(async () => {
	await client?.close();
	requests = 0;
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
	const options = { url, connections: 1, timeoutMs: TIMEOUT_MS, maxAnswerBytes: MOST_BYTES };
	client = new JsonRpcClient(options, { clock });
});
after(async () => {
	await client.close();
	for (const socket of sockets) socket.destroy();
	await new Promise((resolve) => server.close(resolve));
});

const ask = (maxBytes?: number) => client.exchange("{}", {}, TIMEOUT_MS, { maxBytes });
/** How it fails: the code, and the HTTP status or the system's code. */
const faultOf = (asked: Promise<unknown>) =>
	asked.then(
		() => assert.fail("it was answered"),
		(thrown: unknown) => {
			assert.ok(thrown instanceof UpstreamError);
			assert.match(thrown.host ?? "", /^127\.0\.0\.1:\d+$/);
			const { status, reason } = thrown;
			return [thrown.code, status ?? reason];
		},
	);

const READ: readonly (readonly [string, (socket: Socket) => void])[] = [
	["in one piece", (socket) => socket.write(WHOLE)],
	["byte by byte", (socket) => void drip(socket, WHOLE)],
	[
		"in chunks, without a length",
		(socket) => {
			const chunks = [...BODY].map((char) => `1\r\n${char}\r\n`).join("");
			socket.write(`HTTP/1.1 200 OK\r\n${TYPE}transfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
		},
	],
	[
		"behind provisional answers",
		(socket) => socket.write(`HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${WHOLE}`),
	],
	["up to the end of the connection", (socket) => socket.end(`HTTP/1.1 200 OK\r\n${TYPE}\r\n${BODY}`)],
];

for (const [how, given] of READ) {
	test(`an answer is read that comes ${how}`, async () => {
		answer = given;
		const symptom = { status: 200, type: "application/json", location: undefined };
		assert.deepEqual(await ask(), { status: 200, text: BODY, symptom });
		assert.deepEqual(await ask(), { status: 200, text: BODY, symptom });
	});
}

test("an answer without a body is read", async () => {
	answer = (socket) => socket.write("HTTP/1.1 204 No Content\r\nlocation: /elsewhere\r\n\r\n");
	const symptom = { status: 204, type: undefined, location: "/elsewhere" };
	assert.deepEqual(await ask(), { status: 204, text: "", symptom });
});

const FAULTS: readonly (readonly [string, (socket: Socket) => void, unknown])[] = [
	["closed without an answer", (socket) => socket.end(), ["unreachable", "UND_ERR_SOCKET"]],
	["reset without an answer", (socket) => socket.resetAndDestroy(), ["unreachable", "ECONNRESET"]],
	["closed within the answer", (socket) => socket.end(WHOLE.slice(0, -1)), ["unreachable", "UND_ERR_SOCKET"]],
	["no HTTP", (socket) => socket.write("220 mail.example.org\r\n"), ["unreachable", undefined]],
	[
		"longer than an answer may be",
		(socket) => socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n${" ".repeat(MOST_BYTES + 1)}`),
		["tooLarge", 200],
	],
];

for (const [what, given, expected] of FAULTS) {
	test(`${what}: reported as such, and the next request is answered`, async () => {
		answer = given;
		assert.deepEqual(await faultOf(ask()), expected);
		answer = (socket) => socket.write(WHOLE);
		assert.equal((await ask()).text, BODY);
	});
}

test("an answer has exactly as many bytes as it may, and each request may say how many", async () => {
	answer = (socket) => socket.write(WHOLE);
	assert.equal((await ask(BODY.length)).text, BODY);
	assert.deepEqual(await faultOf(ask(BODY.length - 1)), ["tooLarge", 200]);
});

for (const [when, given] of [
	["before an answer", () => {}],
	["within the answer", (socket: Socket) => socket.write(WHOLE.slice(0, -1))],
] as const) {
	test(`the deadline ends a request ${when}, and the next request is answered`, async () => {
		answer = given;
		const asked = faultOf(ask());
		await until("the request", () => requests === 1);
		await clock.advance(TIMEOUT_MS);
		assert.deepEqual(await asked, ["timeout", undefined]);
		answer = (socket) => socket.write(WHOLE);
		assert.equal((await ask()).text, BODY);
	});
}

test("a request whose deadline passed while it waited for a connection is not written", async () => {
	answer = () => {};
	const first = faultOf(ask());
	await until("the request", () => requests === 1);
	const second = faultOf(client.exchange("{}", {}, TIMEOUT_MS - 1));
	await clock.advance(TIMEOUT_MS);
	assert.deepEqual(
		[await first, await second],
		[
			["timeout", undefined],
			["timeout", undefined],
		],
	);
	assert.equal(requests, 1);
});

test("a request that may no longer be sent when its turn comes is not written", async () => {
	const waiting: (() => void)[] = [];
	answer = (socket) => waiting.push(() => socket.write(WHOLE));
	let may = true;
	const first = ask();
	const second = faultOf(client.exchange("{}", {}, TIMEOUT_MS, { shouldSend: () => may }));
	await until("the request", () => waiting.length === 1);
	may = false;
	waiting[0]?.();
	assert.equal((await first).text, BODY);
	assert.deepEqual(await second, ["unsent", undefined]);
	assert.equal(requests, 1);
});

test("a fault says whether anything of the request was sent", async () => {
	const sentOf = (asked: Promise<unknown>) =>
		asked.then(
			() => assert.fail("it was answered"),
			(thrown: unknown) => (thrown as UpstreamError).sent,
		);
	answer = (socket) => socket.end();
	assert.equal(await sentOf(ask()), true);
	assert.equal(await sentOf(client.exchange("{}", {}, TIMEOUT_MS, { shouldSend: () => false })), false);
	answer = () => {};
	const first = sentOf(ask());
	await until("the request", () => requests === 2);
	const second = sentOf(client.exchange("{}", {}, TIMEOUT_MS - 1));
	await clock.advance(TIMEOUT_MS);
	assert.deepEqual([await first, await second], [true, false]);
	const url = `http://127.0.0.1:${await freePort()}`;
	const nowhere = new JsonRpcClient({ url, timeoutMs: TIMEOUT_MS }, { clock });
	assert.equal(await sentOf(nowhere.exchange("{}", {}, TIMEOUT_MS)), false);
	await nowhere.close();
	assert.equal(await sentOf(nowhere.exchange("{}", {}, TIMEOUT_MS)), false);
});

/** Writes `text` byte by byte, each in a turn of its own. */
async function drip(socket: Socket, text: string): Promise<void> {
	for (const char of text) {
		socket.write(char);
		await new Promise((resolve) => setImmediate(resolve));
	}
}
