// Tests the requests that boost sends and how it treats anything that comes back in the place of an
// answer. Covers its name on each request, answers that are compressed all the same, upstreams that
// refuse it, redirect it or are web pages, requests that come back to it, and names that no server
// answers for.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import {
	createServer,
	type IncomingMessage,
	type Server,
	type ServerResponse,
	request as sendRequest,
} from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { WebSocket } from "ws";
import { readBoostConfig } from "../../../boost-proxy/config.ts";
import type { BreakerStatus } from "../../../boost-proxy/domain/ports.ts";
import { createProxy } from "../../../boost-proxy/proxy.ts";
import { systemClock } from "../../../shared/clock.ts";
import { type Logger, silentLogger } from "../../../shared/log.ts";
import { createLookup } from "../../../shared/outgoing/lookup.ts";
import { VERSION } from "../../../shared/version.ts";
import { freePort } from "../../devnet/freePort.ts";
import { boostEnv } from "../../faults/boostHere.ts";
import { BoostClient } from "../../support/boostFixture.ts";
import { type NameServer, startNameServer } from "../../support/nameServer.ts";
import { ADMIN_TOKEN } from "../../support/relayClient.ts";
import { signedTransaction } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

type Answering = (request: IncomingMessage, response: ServerResponse, body: string) => void;

let folder: string;
let names: NameServer;
const stops: (() => Promise<void>)[] = [];
before(async () => {
	folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	names = await startNameServer();
});
afterEach(async () => {
	for (const stop of stops.splice(0).reverse()) await stop();
});
after(async () => {
	await names.stop();
	rmSync(folder, { recursive: true, force: true });
});

/** Starts an upstream. */
async function upstream(answer: Answering): Promise<string> {
	const server: Server = createServer(async (request, response) => {
		let body = "";
		for await (const chunk of request) body += String(chunk);
		answer(request, response, body);
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	stops.push(async () => {
		server.closeAllConnections();
		await new Promise((resolve) => server.close(resolve));
	});
	return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A relay that answers every probe and read, and takes every transaction with `hash`. */
const well =
	(
		encode: (text: string) => { body: Buffer; encoding?: string } = (text) => ({ body: Buffer.from(text) }),
	): Answering =>
	(request, response, body) => {
		const { body: bytes, encoding } = encode(request.method === "POST" ? answerTo(body) : '{"ready":true}');
		if (encoding !== undefined) response.setHeader("content-encoding", encoding);
		response.setHeader("content-type", "application/json").end(bytes);
	};

const HASHES = new Map<string, string>();

function answerTo(body: string): string {
	const call = JSON.parse(body) as { id: unknown; method: string; params: string[] };
	const results: Record<string, unknown> = {
		eth_chainId: "0x7a69",
		eth_blockNumber: "0x10",
		eth_sendRawTransaction: HASHES.get(call.params?.[0] ?? ""),
	};
	const result = results[call.method];
	return JSON.stringify({
		...{ jsonrpc: "2.0", id: call.id },
		...(result === undefined ? { error: { code: -32000, message: "no" } } : { result }),
	});
}

async function startBoost(
	env: Readonly<Record<string, string>>,
	{ log = silentLogger, lookup }: { readonly log?: Logger; readonly lookup?: LookupFunction } = {},
): Promise<BoostClient> {
	const DATA_DIR = mkdtempSync(join(folder, "boost-"));
	const { FALLBACK_DIALECT: _, ...base } = boostEnv({ relayUrl: "", fallbackUrl: "none", folder: DATA_DIR });
	const config = readBoostConfig({ ...base, ADMIN_TOKEN, ...env });
	const proxy = createProxy(config, { log, drainMs: 0, ...(lookup === undefined ? {} : { lookup }) });
	await proxy.start();
	const client = new BoostClient(proxy.port);
	stops.push(async () => {
		client.close();
		await proxy.stop();
	});
	return client;
}

/** A logger that keeps the fields of its warnings. */
function keeping(): { readonly log: Logger; readonly warnings: Record<string, unknown>[] } {
	const warnings: Record<string, unknown>[] = [];
	const log: Logger = {
		...silentLogger,
		warn: (message, fields) => void warnings.push({ message, ...fields }),
		child: () => log,
	};
	return { log, warnings };
}

test("each request that leaves boost has its name, asks for no encoding and takes no client's headers along", async () => {
	const seen: IncomingMessage[] = [];
	const relay = await upstream((request, response, body) => {
		seen.push(request);
		well()(request, response, body);
	});
	const fallback = await upstream((request, response, body) => {
		seen.push(request);
		well()(request, response, body);
	});
	const boost = await startBoost({ RELAY_URL: relay, FALLBACK_URL: fallback });
	await boost.isWell();
	const headers = {
		"user-agent": "a wallet/1.0",
		"accept-encoding": "gzip, br",
		via: "1.0 proxy.of.the.client",
	};
	await boost.call("eth_gasPrice", [], { headers });
	await boost.call("eth_gasPrice", [], { path: "/fullprivacy", headers });
	await boost.force("open");
	await boost.call("eth_chainId", [], { headers });
	await boost.force("auto");
	await boost.isWell();
	const socket = new WebSocket(boost.url.replace("http", "ws"));
	await once(socket, "open");
	socket.send('{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}');
	await until("the websocket's upgrade", () => seen.some((one) => one.url === "/ws"));
	socket.terminate();
	assert.ok(seen.some(({ url }) => url === "/fullprivacy"));
	for (const { url, headers: sent } of seen) {
		assert.equal(sent["user-agent"], `leeward/${VERSION}`, url);
		assert.equal(sent["accept-encoding"], "identity", url);
		assert.match(sent.via ?? "", /^1\.1 boost-[0-9a-f]{16}$/, url);
	}
});

const ENCODINGS: readonly (readonly [string, (bytes: Buffer) => Buffer])[] = [
	["gzip", gzipSync],
	["GZIP", gzipSync],
	["deflate", deflateSync],
	["deflate", deflateRawSync],
	["br", brotliCompressSync],
	["gzip, br", (bytes) => brotliCompressSync(gzipSync(bytes))],
];

for (const [encoding, encode] of ENCODINGS) {
	test(`a relay whose answers are compressed by ${encoding} all the same is used`, async () => {
		const compressed = (text: string) => ({ body: encode(Buffer.from(text)), encoding });
		const boost = await startBoost({ RELAY_URL: await upstream(well(compressed)), FALLBACK_URL: "none" });
		await boost.isWell();
		assert.equal(await boost.result("eth_chainId"), "0x7a69");
	});
}

const HTML = "<!doctype html><title>s3cret</title>";
/**
 * An upstream's behaviour on all requests: name, answer, and boost's hint (SETTING: its setting).
 */
const UNUSABLE: readonly (readonly [string, Answering, RegExp])[] = [
	["refuses the key", (_, response) => response.writeHead(403).end(HTML), /^HTTP 403: .*SETTING/],
	["wants a key", (_, response) => response.writeHead(401).end('{"error":"s3cret"}'), /^HTTP 401: .*SETTING/],
	[
		"redirects",
		(_, response) => response.writeHead(301, { location: "https://other.example/v3/s3cret?k=s3cret" }).end(),
		/^HTTP 301: a redirect to https:\/\/other\.example, .*SETTING/,
	],
	[
		"redirects within",
		(_, response) => response.writeHead(308, { location: "/s3cret" }).end(),
		/^HTTP 308: a redirect, /,
	],
	[
		"is a web page",
		(_, response) => response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(HTML),
		/^HTTP 200: a web page, .*SETTING/,
	],
	["knows no such path", (_, response) => response.writeHead(404).end(HTML), /^HTTP 404: .*path of SETTING/],
	["fails", (_, response) => response.writeHead(502).end(HTML), /^HTTP 502: /],
	[
		"compresses in its own way",
		(_, response) => response.writeHead(200, { "content-encoding": "zstd" }).end("s3cret"),
		/^HTTP 200: it compresses/,
	],
	[
		"names an encoding that its bytes are not in",
		(_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end("s3cret"),
		/^HTTP 200: it compresses/,
	],
];

for (const [what, answer, expected] of UNUSABLE) {
	test(`an upstream that ${what} is logged and shown in /status from the first probe on, with a hint`, async () => {
		const { log, warnings } = keeping();
		const url = await upstream(answer);
		const boost = await startBoost(
			{ RELAY_URL: `${url}/v3/s3cret`, FALLBACK_URL: `${url}/s3cret/` },
			{ log },
		);
		const assertHint = (status: BreakerStatus | null, setting: string) => {
			assert.match(status?.hint ?? "", new RegExp(expected.source.replaceAll("SETTING", setting)));
		};
		await boost.reaches(
			"both are down",
			({ relay, fallback }) => relay.state === "open" && fallback?.state === "open",
		);
		const status = await boost.status();
		assertHint(status.relay, "RELAY_URL");
		assertHint(status.fallback, "FALLBACK_URL");
		const opened = warnings.filter(({ message }) => message === "breaker opened");
		assert.deepEqual(
			opened.map(({ hint }) => hint).sort(),
			[status.fallback?.hint, status.relay.hint].sort(),
		);
		assert.doesNotMatch(JSON.stringify([status, warnings]), /s3cret/);
	});
}

test("reports a port that nothing listens on, and a name that does not exist, too", async () => {
	const lookup = createLookup({ servers: [names.address] }, { clock: systemClock });
	const env = { RELAY_URL: "http://127.0.0.1:1", FALLBACK_URL: "https://nobody.test" };
	const boost = await startBoost(env, { lookup });
	await boost.reaches(
		"both are down",
		({ relay, fallback }) => relay.state === "open" && fallback?.state === "open",
	);
	const { relay, fallback } = await boost.status();
	assert.match(relay.hint ?? "", /^nothing listens there: .*RELAY_URL/);
	assert.match(fallback?.hint ?? "", /^no such name: .*FALLBACK_URL/);
});

test("a boost instance whose relay is itself says so, and answers", async () => {
	const { log, warnings } = keeping();
	const port = await freePort();
	const boost = await startBoost({ PORT: String(port), RELAY_URL: `http://127.0.0.1:${port}` }, { log });
	const hint = "HTTP 508: requests come back: RELAY_URL leads back to boost itself";
	// Its first probe may have come before it listened, and opened the breaker for that.
	await boost.force("close");
	await boost.force("auto");
	await boost.reaches("the loop is found", ({ relay }) => relay.state === "open" && relay.hint === hint);
	const { relay } = await boost.status();
	assert.ok(warnings.some((line) => line.reason === "loop" && line.hint === hint));
	assert.equal((await boost.get("/readyz")).status, 503);
	assert.match((await boost.call("eth_chainId")).body, /no relay available/);
	// It stays down: the probes find the same, again and again.
	const next = Date.parse(relay.nextProbeAt ?? "") + 500;
	await boost.reaches("more probes", ({ relay }) => Date.parse(relay.nextProbeAt ?? "") > next);
	assert.equal((await boost.status()).relay.since, relay.since);
});

test("boost instances that lead to each other multiply nothing: each request ends where it was", async () => {
	let hops = 0;
	const ports = [await freePort(), await freePort()] as const;
	const between = (to: number) =>
		upstream((request, response, body) => {
			// Probes go round as well.
			if (body.includes("eth_gasPrice")) hops += 1;
			const { method, url, headers } = request;
			const sent = sendRequest({ port: to, host: "127.0.0.1", method, path: url, headers }, (answer) => {
				response.writeHead(answer.statusCode ?? 500, answer.headers);
				answer.pipe(response);
			});
			sent.on("error", () => response.writeHead(503).end());
			sent.end(body);
		});
	const [toFirst, toSecond] = [await between(ports[0]), await between(ports[1])];
	const first = await startBoost({ PORT: String(ports[0]), RELAY_URL: toSecond });
	const second = await startBoost({ PORT: String(ports[1]), RELAY_URL: toFirst });
	// Both forward their requests, whatever their probes find.
	await first.force("close");
	await second.force("close");
	assert.match((await first.call("eth_gasPrice")).body, /no relay available/);
	assert.equal(hops, 2);
	assert.match((await first.call("eth_gasPrice", [], { path: "/fullprivacy" })).body, /no relay available/);
	assert.equal(hops, 4);
});

test("a fallback whose name no server answers for costs a healthy relay nothing", async () => {
	names.knows("relay.test", ["127.0.0.1"]);
	const relay = new URL(await upstream(well()));
	const lookup = createLookup({ servers: [names.address] }, { clock: systemClock });
	const env = { RELAY_URL: `http://relay.test:${relay.port}`, FALLBACK_URL: "https://mute.test" };
	const boost = await startBoost(env, { lookup });
	await boost.reaches("the fallback is down", ({ fallback }) => fallback?.state === "open");
	await boost.reaches("the relay is healthy", ({ relay }) => relay.state === "closed");
	const sends = Array.from({ length: 64 }, (_, i) => {
		const { raw: bytes, hash } = signedTransaction({ nonce: BigInt(i) });
		const raw = `0x${Buffer.from(bytes).toString("hex")}`;
		HASHES.set(raw, hash);
		return boost
			.call("eth_sendRawTransaction", [raw])
			.then(({ json }) => assert.deepEqual(json, { jsonrpc: "2.0", id: 1, result: hash }));
	});
	await Promise.all(sends);
	assert.equal((await boost.status()).relay.state, "closed");
});
