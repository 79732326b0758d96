// Tests what leaves and comes back over HTTP: the client's name, answers that are compressed
// without being asked, and bombs.

import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { systemClock } from "../../../../shared/clock.ts";
import { JsonRpcClient } from "../../../../shared/jsonrpc/client.ts";
import { encodingsOf } from "../../../../shared/outgoing/headers.ts";
import { VERSION } from "../../../../shared/version.ts";

const MAX_BYTES = 64 * 1024;
let reply: { readonly encoding: string; readonly body: Buffer };
let seen: IncomingHttpHeaders = {};
const server = createServer((request, response) => {
	seen = request.headers;
	request.resume().on("end", () => {
		response.writeHead(200, { "content-type": "application/json", "content-encoding": reply.encoding });
		response.end(reply.body);
	});
});
let client: JsonRpcClient;
before(async () => {
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
	client = new JsonRpcClient({ url, timeoutMs: 5_000, maxAnswerBytes: MAX_BYTES }, { clock: systemClock });
});
after(async () => {
	await client.close();
	server.closeAllConnections();
	await new Promise((resolve) => server.close(resolve));
});

const ask = () => client.post("{}", {}, 5_000);
const ANSWER = Buffer.from('{"jsonrpc":"2.0","id":1,"result":"0x1"}');
const BOMB = Buffer.alloc(MAX_BYTES * 100, " ");

/** The answer in gzip, `times` times over. */
function packed(times: number): Buffer {
	return times === 0 ? ANSWER : gzipSync(packed(times - 1));
}

const READ: readonly (readonly [string, Buffer])[] = [
	["identity", ANSWER],
	["gzip", gzipSync(ANSWER)],
	["X-GZIP", gzipSync(ANSWER)],
	["deflate", deflateSync(ANSWER)],
	["deflate", deflateRawSync(ANSWER)],
	["br", brotliCompressSync(ANSWER)],
	["gzip, br", brotliCompressSync(gzipSync(ANSWER))],
];

for (const [encoding, body] of READ) {
	test(`an answer in ${encoding} (${body.length} bytes) is read, and the request asked for none`, async () => {
		reply = { encoding, body };
		assert.deepEqual(await ask(), JSON.parse(ANSWER.toString()));
		assert.equal(seen["user-agent"], `leeward/${VERSION}`);
		assert.equal(seen["accept-encoding"], "identity");
	});
}

const REFUSED: readonly (readonly [string, string, Buffer, string])[] = [
	["a bomb in gzip", "gzip", gzipSync(BOMB), "tooLarge"],
	["a bomb in deflate", "deflate", deflateSync(BOMB), "tooLarge"],
	["a bomb in raw deflate", "deflate", deflateRawSync(BOMB), "tooLarge"],
	["a bomb in br", "br", brotliCompressSync(BOMB), "tooLarge"],
	["a bomb in a bomb", "gzip, gzip", gzipSync(gzipSync(BOMB)), "tooLarge"],
	["an unknown encoding", "zstd", ANSWER, "notJsonRpc"],
	["what is not in its encoding", "gzip", ANSWER, "notJsonRpc"],
	["a cut answer", "gzip", gzipSync(ANSWER).subarray(0, 20), "notJsonRpc"],
	["more encodings than anybody uses", Array(6).fill("gzip").join(), packed(6), "notJsonRpc"],
];

for (const [what, encoding, body, code] of REFUSED) {
	test(`${what} is ${code}`, async () => {
		reply = { encoding, body };
		await assert.rejects(ask(), { name: "UpstreamError", code });
	});
}

test("encodings are undone from the last to the first", () => {
	assert.deepEqual(encodingsOf(undefined), []);
	assert.deepEqual(encodingsOf(" identity , "), []);
	assert.deepEqual(encodingsOf("gzip, BR"), ["br", "gzip"]);
});
