// Calls over a real connection of an edge with the core: results and errors come as the method gave
// them; a fault of the core's own is in its log, and tells the client nothing.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { CoreLink } from "../../../../relay/edge/coreLink.ts";
import { EdgeServer } from "../../../../relay/edge/edgeServer.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { callContext } from "../../../../shared/http/callContext.ts";
import { ForeignRpcError, RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { createLogger } from "../../../../shared/log.ts";

const SECRET = "of a test";
const PATIENCE_MS = 20_000;
const CONTEXT = callContext(
	{ path: "/", search: "" },
	{ address: "192.0.2.1", signer: null, vouched: false },
	null,
	null,
);

const lines: string[] = [];
let server: Server;
let edges: EdgeServer;
let link: CoreLink;

before(async () => {
	const log = createLogger("error", "relay", { write: (line) => void lines.push(line) });
	edges = new EdgeServer({ secret: SECRET }, { clock: systemClock, timeoutMs: PATIENCE_MS, log });
	edges.open({
		async call(method, [what]) {
			if (method === "gives") return what;
			if (method === "rejects") throw new RpcError("rejected", "nonce too low", { reason: "NONCE_TOO_LOW" });
			if (method === "passes on") throw new ForeignRpcError(3, "execution reverted", "0x08");
			throw new TypeError("a fault with details");
		},
		follow: async () => () => {},
		shared: () => [],
	});
	server = createServer().on("upgrade", (request, socket, head) => edges.upgrade(request, socket, head));
	await once(server.listen(0, "127.0.0.1"), "listening");
	const { port } = server.address() as AddressInfo;
	const opened = await CoreLink.open(
		{ address: `http://127.0.0.1:${port}`, secret: SECRET, term: 1 },
		{ clock: systemClock, timeoutMs: PATIENCE_MS, onShared() {}, onNews() {}, charge() {}, onEnd() {} },
	);
	assert.ok(opened !== null);
	link = opened;
});
after(async () => {
	link.close();
	await edges.stop();
	server.close();
});

const ROWS = [
	{ method: "rejects", error: { kind: "rejected", message: "nonce too low", code: -32000 } },
	{ method: "passes on", error: { message: "execution reverted", code: 3, data: "0x08" } },
] as const;

test("a result comes as it is", async () => {
	const result = { list: [1, "two", null] };
	assert.deepEqual(await link.call("gives", [result], CONTEXT), result);
});

for (const { method, error } of ROWS) {
	test(`an error of a method that ${method} is the client's, and no fault`, async () => {
		await assert.rejects(link.call(method, [], CONTEXT), error);
		assert.deepEqual(lines, []);
	});
}

test("a fault of the core's own is an internal error, and in its log", async () => {
	const fails = { kind: "internal", message: "internal error", code: -32603 };
	await assert.rejects(link.call("fails", [], CONTEXT), fails);
	const [line = "", ...others] = lines;
	assert.deepEqual(others, []);
	assert.match(line, /"msg":"call failed"/);
	assert.match(line, /TypeError/);
});
