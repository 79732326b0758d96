// Every fault of the wire, seen by a plain client: what it meets, and whether the real server got
// the request.

import assert from "node:assert/strict";
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { systemClock } from "../../shared/clock.ts";
import { until } from "../support/until.ts";
import { type FaultyWire, startFaultyWire } from "./faultyWire.ts";
import type { WireFault } from "./wireFaults.ts";

const BODY = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "eth_sendRawTransaction", params: ["0x02"] });
const ANSWER = JSON.stringify({ jsonrpc: "2.0", id: 7, result: `0x${"ab".repeat(32)}` });
/** Wait when nothing shall come, in ms: anything that has not come by then does not come. */
const SILENCE_MS = 100;
const PATIENCE_MS = 10_000;

let got = 0;
let wire: FaultyWire;
const real = createServer((incoming, response) => {
	incoming.resume().on("end", () => {
		if (incoming.method === "POST") got += 1;
		response.writeHead(200, { "content-type": "application/json", "x-real": "1" }).end(ANSWER);
	});
});
before(async () => {
	await new Promise<void>((resolve) => real.listen(0, "127.0.0.1", resolve));
	wire = await startFaultyWire(`http://127.0.0.1:${(real.address() as AddressInfo).port}`);
});
after(async () => {
	await wire.stop();
	real.closeAllConnections();
	await new Promise((resolve) => real.close(resolve));
});
beforeEach(() => {
	got = 0;
});

interface Seen {
	readonly error?: string;
	readonly status?: number;
	readonly body?: string;
}

/** One request over a connection of its own, or over `agent`'s. */
function post(agent?: Agent, path = "/fast", patienceMs = PATIENCE_MS): Promise<Seen> {
	const used = agent ?? new Agent();
	return new Promise((resolve) => {
		const headers = { "content-type": "application/json", "content-length": BODY.length };
		const sent = request(`${wire.url}${path}`, { method: "POST", headers, agent: used }, (answer) => {
			let body = "";
			answer.on("data", (chunk: Buffer) => {
				body += String(chunk);
			});
			answer.on("end", () => done({ status: answer.statusCode ?? 0, body }));
			answer.on("error", ({ code }: NodeJS.ErrnoException) => done({ error: code ?? "" }));
		});
		const timer = systemClock.after(patienceMs, () => done({ error: "silence" }));
		const done = (seen: Seen): void => {
			timer.cancel();
			resolve(seen);
			if (seen.error !== undefined) sent.destroy();
			if (agent === undefined) used.destroy();
		};
		sent.on("error", ({ code }: NodeJS.ErrnoException) => done({ error: code ?? "" }));
		sent.end(BODY);
	});
}

/**
 * Results over a connection that existed before and over a new one, and how often the real server
 * got the request.
 */
const SEEN: readonly (readonly [WireFault, Seen, Seen, number])[] = [
	[{ kind: "refuse" }, { error: "ECONNRESET" }, { error: "ECONNREFUSED" }, 0],
	[{ kind: "blackHole" }, { error: "silence" }, { error: "silence" }, 0],
	[{ kind: "acceptHang" }, { error: "silence" }, { error: "silence" }, 0],
	[{ kind: "resetOnAccept" }, { error: "ECONNRESET" }, { error: "ECONNRESET" }, 0],
	[{ kind: "halfClose" }, { error: "ECONNRESET" }, { error: "ECONNRESET" }, 0],
	[{ kind: "resetMidway" }, { error: "ECONNRESET" }, { error: "ECONNRESET" }, 2],
	[{ kind: "headerDrip", everyMs: 10 }, { error: "silence" }, { error: "silence" }, 0],
	[{ kind: "bodyDrip", everyMs: 10 }, { error: "silence" }, { error: "silence" }, 2],
	[{ kind: "late", ms: 400 }, { error: "silence" }, { error: "silence" }, 2],
];

for (const [fault, old, fresh, reached] of SEEN) {
	test(`${fault.kind}: no answer, and the wire is healthy again afterwards`, async (t) => {
		t.after(() => wire.set(null));
		const agent = new Agent({ keepAlive: true, maxSockets: 1 });
		assert.deepEqual(await post(agent), { status: 200, body: ANSWER });
		got = 0;
		await wire.set(fault);
		const patienceMs = fresh.error === "silence" ? SILENCE_MS : PATIENCE_MS;
		const seen = await post(agent, "/fast", patienceMs);
		// A client that notices a reset before its request connects anew, and meets the fault there.
		assert.ok([old.error, fresh.error].includes(seen.error), seen.error ?? "an answer came");
		assert.deepEqual(await post(undefined, "/fast", patienceMs), fresh);
		await until("the real server got what it should", () => got === reached);
		await wire.set(null);
		agent.destroy();
		assert.deepEqual(await post(), { status: 200, body: ANSWER });
	});
}

test("answers that are none", async () => {
	await wire.set({ kind: "truncated" });
	assert.deepEqual(await post(), { status: 200, body: ANSWER.slice(0, ANSWER.length / 2) });
	assert.equal(got, 1);
	await wire.set({ kind: "html" });
	assert.match((await post()).body ?? "", /^<!doctype html>/);
	await wire.set({ kind: "status", status: 502 });
	assert.equal((await post()).status, 502);
	await wire.set({ kind: "internal" });
	const error = { code: -32603, message: "internal error" };
	assert.deepEqual(JSON.parse((await post()).body ?? ""), { jsonrpc: "2.0", id: 7, error });
	assert.equal(got, 1);
	const page = await fetch(`${wire.url}/readyz`);
	assert.equal(await page.text(), ANSWER);
	await wire.set(null);
});

test("faults of submissions alone leave the rest well", async () => {
	await wire.set({ kind: "status", status: 500 }, "submissions");
	assert.equal((await post()).status, 500);
	assert.equal((await fetch(`${wire.url}/readyz`)).status, 200);
	await assert.rejects(wire.set({ kind: "refuse" }, "submissions"), /alone/);
	await wire.set(null);
});

test("flapping alternates between healthy and not", async () => {
	await wire.set({ kind: "flapping", everyMs: 30 });
	const seen = new Set<string>();
	await until("both", async () => {
		const { status, error } = await post();
		seen.add(status === undefined ? (error ?? "") : "well");
		return seen.has("well") && seen.size > 1;
	});
	await wire.set(null);
});

test("keeps a record, and changes nothing while it is healthy", async () => {
	const before = wire.requests().length;
	assert.deepEqual(await post(undefined, "/noreverts?referrer=x"), { status: 200, body: ANSWER });
	const kept = wire.requests()[before];
	assert.equal(kept?.target, "/noreverts?referrer=x");
	assert.deepEqual(kept?.calls, [{ id: 7, method: "eth_sendRawTransaction", params: ["0x02"] }]);
	assert.equal(kept?.met, null);
});
