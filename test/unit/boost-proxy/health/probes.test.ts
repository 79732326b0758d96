// The requests and results of the probes for the relay and a third party.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FAULTS, type TransportResult } from "../../../../boost-proxy/domain/request.ts";
import { fallbackProbe, relayProbe } from "../../../../boost-proxy/health/probes.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { answered, CUT, error, FakeTransport, result } from "./probeFixture.ts";

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
	const said: (string | null)[] = [];
	const onReadiness = (text: string | null) => void said.push(text);
	const probe = relayProbe(options, { transport, reference, clock, onReadiness });
	return { clock, transport, set, probe, said };
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
		[answered(503, { checks: { node: { ok: true }, store: { ok: false, reason: "full" } } }), "notReady"],
		[answered(503, { checks: { node: { ok: false, reason: "out" } } }), "node"],
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
		// It has just answered /readyz, so who hangs is its node.
		assert.equal(await probe(false), word === "timeout" ? "node" : word, JSON.stringify(answer));
	}
});

test("a head that does not come in time is the node's fault only where /readyz came at once", async () => {
	for (const [tookMs, word] of [
		[249, "node"],
		[250, "timeout"],
	] as const) {
		const { clock, transport, probe } = relayFixture();
		transport.answers.eth_blockNumber = { kind: "failed", fault: "timeout", sent: true };
		transport.tookMs = tookMs;
		const found = probe(false);
		await clock.advance(500);
		assert.equal(await found, word);
	}
});

const NOT_OF_A_RELAY = "its /readyz is a 503 from the proxy in front of it, which has no ready relay";

test("each probe reports the relay's own reason, as short text", async () => {
	const { transport, probe, said } = relayFixture();
	const { readyz } = transport.answers;
	for (const [body, expected] of [
		[
			{ checks: { store: { ok: false, reason: "the disk is full" } } },
			"its /readyz reports store: the disk is full",
		],
		[
			{
				checks: {
					node: { ok: false, reason: "out" },
					head: { ok: false, reason: "old" },
					store: { ok: true },
				},
			},
			"its /readyz reports node: out; head: old",
		],
		[
			{ checks: { store: { ok: false, reason: `\n\u202e${"x".repeat(900)}` } } },
			`its /readyz reports store: ${"x".repeat(240)}`,
		],
		[{ checks: { "<b>": { ok: false, reason: "x" }, store: { ok: false }, head: null } }, null],
		[{ checks: [] }, null],
		["<html>", NOT_OF_A_RELAY],
		[{ error: "nobody is ready" }, NOT_OF_A_RELAY],
	] as const) {
		transport.answers.readyz = answered(503, body);
		await probe(false);
		assert.equal(said.at(-1), expected);
	}
	transport.answers.readyz = readyz as TransportResult;
	await probe(false);
	assert.equal(said.at(-1), null, "it is healthy again");
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
