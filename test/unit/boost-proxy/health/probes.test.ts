// The requests and results of the probes for the relay and a third party, and the head that the relay's is compared with.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Transport } from "../../../../boost-proxy/domain/ports.ts";
import { FAULTS, type TransportResult } from "../../../../boost-proxy/domain/request.ts";
import { createHeadReference, fallbackProbe, relayProbe } from "../../../../boost-proxy/health/probes.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const answered = (status: number, body: unknown): TransportResult => ({
	kind: "answered",
	status,
	retryAfterS: undefined,
	body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
});
const result = (value: unknown, status = 200) => answered(status, { jsonrpc: "2.0", id: 1, result: value });
const error = (code: number, status = 200) =>
	answered(status, { jsonrpc: "2.0", id: 1, error: { code, message: "no" } });
const CUT: TransportResult = { kind: "aborted", sent: false };

/** A transport that answers each method, and /readyz, with what is set for it, each after `tookMs`. */
class FakeTransport implements Transport {
	readonly asked: string[] = [];
	readonly deadlines: number[] = [];
	readonly answers: Record<string, TransportResult> = {
		readyz: answered(200, { ready: true }),
		eth_blockNumber: result("0x64"),
		eth_chainId: result("0x1"),
		eth_sendRawTransaction: error(-32000),
	};
	tookMs = 0;
	readonly #clock: ManualClock;

	constructor(clock: ManualClock) {
		this.#clock = clock;
	}

	post({ target, body, deadlineMs }: Parameters<Transport["post"]>[0]): Promise<TransportResult> {
		const { method } = JSON.parse(body.toString()) as { method: string };
		return this.#answer(method, `${method}${target}`, deadlineMs);
	}

	get(target: string, deadlineMs: number): Promise<TransportResult> {
		return this.#answer("readyz", target, deadlineMs);
	}

	async close(): Promise<void> {}

	async #answer(key: string, asked: string, deadlineMs: number): Promise<TransportResult> {
		this.asked.push(asked);
		this.deadlines.push(deadlineMs);
		if (this.tookMs > 0) await new Promise<void>((resolve) => this.#clock.after(this.tookMs, resolve));
		return this.answers[key] ?? CUT;
	}
}

/** A relay's probe with a reference at `head`. */
function relayFixture(head: bigint | null = null, chainId = 1n) {
	const clock = new ManualClock();
	const transport = new FakeTransport(clock);
	const set = { head, isThirdParty: false };
	const reference = {
		get isThirdParty() {
			return set.isThirdParty;
		},
		get head() {
			return set.head;
		},
		headOf: (asked: bigint) => (asked === chainId ? set.head : null),
	};
	const options = { timeoutMs: 500, maxHeadLag: 3, slot: { ms: 1_000 } };
	const probe = relayProbe(options, { transport, reference, clock });
	return { clock, transport, set, probe };
}

test("the relay is asked whether it is ready, then for its head, all within the probe's deadline", async () => {
	const { clock, transport, probe } = relayFixture();
	transport.tookMs = 100;
	const word = probe(false);
	await clock.advance(200);
	assert.equal(await word, "ok");
	assert.deepEqual(transport.asked, ["/readyz", "eth_blockNumber"]);
	assert.deepEqual(transport.deadlines, [500, 400]);
});

test("a thorough probe submits an invalid transaction: any verdict or rate limit is a success", async () => {
	for (const [answer, word] of [
		[error(-32000), "ok"],
		[error(-32602, 400), "ok"],
		[result("0x"), "ok"],
		[error(-32603), "internal"],
		[answered(502, "bad gateway"), "httpStatus"],
		[answered(200, "<html>"), "notJsonRpc"],
		[{ kind: "failed", fault: "timeout", sent: true }, "timeout"],
		[CUT, "reset"],
		...LIMITED.map((limited) => [limited, "ok"] as const),
	] as const) {
		const { transport, probe } = relayFixture();
		transport.answers.eth_sendRawTransaction = answer;
		assert.equal(await probe(true), word);
		assert.deepEqual(transport.asked, ["/readyz", "eth_blockNumber", "eth_sendRawTransaction"]);
		assert.equal(await probe(false), "ok");
	}
});

test("the result by the relay's answer to /readyz", async () => {
	for (const [answer, word] of [
		[answered(503, { ready: false }), "notReady"],
		[answered(500, ""), "httpStatus"],
		[answered(404, "<html>"), "httpStatus"],
		[answered(302, ""), "httpStatus"],
		[CUT, "reset"],
		...FAULTS.map((fault) => [{ kind: "failed", fault, sent: true } as TransportResult, fault] as const),
	] as const) {
		const { transport, probe } = relayFixture();
		transport.answers.readyz = answer;
		assert.equal(await probe(false), word);
		assert.equal(transport.asked.length, 1);
	}
});

/** Answers to a question for a number, and what a probe makes of them. */
const WORDS = [
	[result("0x64"), "ok"],
	[answered(200, "<html>"), "notJsonRpc"],
	[answered(200, '{"jsonrpc":"2.0","id":1,"resu'), "notJsonRpc"],
	[answered(200, { jsonrpc: "2.0", id: 2, result: "0x64" }), "notJsonRpc"],
	[result({}), "notJsonRpc"],
	[result("latest"), "notJsonRpc"],
	[answered(502, "<html>"), "httpStatus"],
	[result("0x64", 500), "httpStatus"],
	[error(-32000, 401), "httpStatus"],
	[error(-32603), "internal"],
	[error(-32601), "notReady"],
	[CUT, "reset"],
	[{ kind: "failed", fault: "timeout", sent: true }, "timeout"],
] as const satisfies readonly (readonly [TransportResult, string])[];
const LIMITED = [answered(429, ""), error(-32005), error(-32005, 429)];

test("the result by the relay's answer for its head; a rate limit is ignored", async () => {
	for (const [answer, word] of [...WORDS, ...LIMITED.map((limited) => [limited, "ok"] as const)]) {
		const { transport, probe } = relayFixture();
		transport.answers.eth_blockNumber = answer;
		assert.equal(await probe(false), word, JSON.stringify(answer));
	}
});

test("a head too far behind the reference is stale; without a reference none is", async () => {
	const { transport, set, probe } = relayFixture(103n);
	assert.equal(await probe(false), "ok");
	set.head = 104n;
	assert.equal(await probe(false), "staleHead");
	set.head = null;
	assert.equal(await probe(false), "ok");
	set.head = 50n;
	assert.equal(await probe(false), "ok", "it may be ahead");
	transport.answers.eth_chainId = result("0x5");
	set.head = 200n;
	assert.equal(await probe(false), "staleHead", "the chain it is known to be on");
	assert.equal(await probe(false), "ok", "asked anew after a bad word: another chain is not compared");
});

test("by a fallback's word alone no relay is stale while its head moves", async () => {
	const { clock, transport, set, probe } = relayFixture(10n ** 9n);
	set.isThirdParty = true;
	for (const head of ["0x64", "0x65", "0x66"]) {
		transport.answers.eth_blockNumber = result(head);
		assert.equal(await probe(false), "ok");
		await clock.advance(3_000);
		assert.equal(await probe(false), "ok");
	}
	await clock.advance(1);
	assert.equal(await probe(false), "staleHead", "it stands still");
	transport.answers.eth_blockNumber = result("0x67");
	assert.equal(await probe(false), "ok");
});

test("a third party must answer its chain id, and the expected one if known", async () => {
	const transport = new FakeTransport(new ManualClock());
	const probe = fallbackProbe({ timeoutMs: 500 }, { transport });
	for (const [answer, word] of [...WORDS, ...LIMITED.map((limited) => [limited, "limited"] as const)]) {
		transport.answers.eth_chainId = answer;
		assert.equal(await probe(false), word, JSON.stringify(answer));
	}
	transport.answers.eth_chainId = result("0x5");
	let expected: bigint | null = null;
	const strict = fallbackProbe({ timeoutMs: 500, expectedChainId: () => expected }, { transport });
	assert.equal(await strict(false), "ok");
	expected = 5n;
	assert.equal(await strict(false), "ok");
	expected = 1n;
	assert.equal(await strict(false), "notReady");
	assert.ok(
		transport.asked.every((asked) => asked === "eth_chainId"),
		"asked at its address itself",
	);
});

/** A reference that asks a node that is set, or a fallback. */
async function referenceFixture(t: TestContext, of: "node" | "fallback") {
	const clock = new ManualClock();
	const transport = new FakeTransport(clock);
	const warned: string[] = [];
	const log: Logger = { ...silentLogger, warn: (message) => warned.push(message) };
	const set = { head: "0x64", chainId: "0x1", isUp: true };
	let calls = 0;
	const node = {
		async call({ method }: { readonly method: string }) {
			calls++;
			if (!set.isUp) throw new UpstreamError("timeout");
			return { ok: true, result: method === "eth_chainId" ? set.chainId : set.head } as const;
		},
	};
	const reference = createHeadReference(
		{ slot: { ms: 12_000 } },
		{ node: of === "node" ? node : null, fallback: transport, clock, log },
	);
	assert.equal(reference.head, null);
	await reference.start();
	t.after(() => reference.stop());
	await clock.advance(0);
	return { clock, transport, set, reference, warned, calls: () => calls };
}

test("the reference is the independent node's head, read once a slot, and nothing once it is old", async (t) => {
	const { clock, transport, set, reference, calls } = await referenceFixture(t, "node");
	assert.equal(reference.head, 100n);
	assert.equal(reference.headOf(1n), 100n);
	set.head = "0x65";
	await clock.advance(11_999);
	assert.equal(reference.head, 100n);
	await clock.advance(1);
	assert.equal(reference.head, 101n);
	assert.equal(calls(), 3, "its chain id was asked once");
	set.isUp = false;
	await clock.advance(36_000);
	assert.equal(reference.head, 101n);
	await clock.advance(1);
	assert.equal(reference.head, null);
	assert.equal(reference.headOf(1n), null);
	set.isUp = true;
	await clock.advance(12_000);
	assert.equal(reference.head, 101n);
	assert.deepEqual(transport.asked, [], "with a node of one's own nobody else is asked");
	await reference.stop();
	assert.equal(clock.timers, 0);
});

test("a reference of another chain is not used, which is logged once", async (t) => {
	const { clock, set, reference, warned } = await referenceFixture(t, "node");
	for (const _ of [1, 2, 3]) {
		assert.equal(reference.headOf(5n), null);
		await clock.advance(12_000);
	}
	assert.equal(warned.length, 1);
	// It turns out that it was put right.
	set.chainId = "0x5";
	assert.equal(reference.headOf(5n), null);
	await clock.advance(12_000);
	assert.equal(reference.headOf(5n), 100n);
});
