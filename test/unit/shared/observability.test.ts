// What operators see: log lines without messages of errors, metrics as Prometheus text, and the routes for readiness and metrics.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpAnswer } from "../../../shared/http/messages.ts";
import { guardedMetricsRoute, opsRoutes, type ReadinessCheck } from "../../../shared/http/opsRoutes.ts";
import type { Route } from "../../../shared/http/routes.ts";
import { createLogger, type LOG_LEVELS, safeError, silentLogger } from "../../../shared/log.ts";
import { labelSets, Metrics } from "../../../shared/metrics.ts";
import { ManualClock } from "../../support/manualClock.ts";

/** Looks like a path with a line in our own sources, and like a key. */
const CANARY = "c0ffee5ecretc0ffee5ecretc0ffee5ecretc0ffee5ecretc0ffee5ecretc0ff";

function capture(level: (typeof LOG_LEVELS)[number] = "trace") {
	const lines: Record<string, unknown>[] = [];
	const log = createLogger(level, "relay", { write: (line: string) => lines.push(JSON.parse(line)) });
	return { log, lines };
}

class Coded extends Error {
	readonly code: unknown;
	constructor(message: string, code: unknown) {
		super(message);
		this.name = "Coded";
		this.code = code;
	}
}

test("an error is logged by name, code and where it was thrown", () => {
	const { name, code, at } = safeError(new Coded("x", "ECONNREFUSED"));
	assert.deepEqual([name, code], ["Coded", "ECONNREFUSED"]);
	assert.match(at ?? "", /\btest\/unit\/shared\/observability\.test\.ts:\d+$/);
});

const LEAKY: readonly unknown[] = [
	...["", "a\nb ", "https://node.example/relay/", "POST shared/", "x\n    at f (/app/relay/"].map(
		(before) => new Error(`${before}${CANARY}.ts:1:2`),
	),
	Object.assign(new Error("x"), { stack: `Error: x\n    at relay/${CANARY}` }),
	...[`${CANARY}${CANARY}`, `https://${CANARY}`, { [CANARY]: CANARY }].map((code) => new Coded("x", code)),
	Object.assign(new Error("x"), { name: `Error: ${CANARY}` }),
	new Error("x", { cause: new Error(CANARY) }),
	new AggregateError([new Error(CANARY)], CANARY),
	{ message: CANARY, name: CANARY, code: CANARY },
	CANARY,
];

test("no message or other secret of an error is logged", () => {
	for (const [row, thrown] of LEAKY.entries()) {
		const { log, lines } = capture();
		log.error("fault", { fault: safeError(thrown) });
		const text = JSON.stringify(lines);
		assert.ok(!text.includes("c0ffee"), `row ${row}: ${text}`);
		assert.match(text, /"fault":\{"name":"/);
	}
});

async function lines(metrics: Metrics): Promise<string[]> {
	return (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

test("every series exists at zero; a gauge is read at each scrape", async () => {
	const metrics = new Metrics();
	const count = metrics.counter("seen_total", "Seen", labelSets({ kind: ["a", "b"], of: ["x"] }));
	let state = "open";
	metrics.gauges("state", "State", labelSets({ state: ["open", "closed"] }), (of) =>
		of.state === state ? 1 : 0,
	);
	assert.deepEqual(await lines(metrics), [
		...['seen_total{kind="a",of="x"} 0', 'seen_total{kind="b",of="x"} 0'],
		...['state{state="open"} 1', 'state{state="closed"} 0'],
	]);
	count({ kind: "a", of: "x" });
	count({ kind: "b", of: "x" }, 5);
	count({ kind: "b", of: "x" });
	state = "closed";
	assert.deepEqual(await lines(metrics), [
		...['seen_total{kind="a",of="x"} 1', 'seen_total{kind="b",of="x"} 6'],
		...['state{state="open"} 0', 'state{state="closed"} 1'],
	]);
});

const REQUEST = { path: "", params: {}, query: new URLSearchParams(), headers: {}, address: "192.0.2.1" };

function start(checks: readonly ReadinessCheck[], draining = () => false) {
	const clock = new ManualClock();
	const routes = opsRoutes({ checks, draining }, { clock, log: silentLogger });
	const get = async (path: string): Promise<HttpAnswer & { json: unknown }> => {
		const found = routes.find((one) => one.path === path) as Route;
		const answer = await found.handle(REQUEST);
		return { ...answer, json: JSON.parse(String(answer.body)) };
	};
	return { clock, get };
}

test("a check that throws or hangs for two seconds has failed; concurrent requests share one run", async () => {
	let asked = 0;
	const check = (): Promise<never> => {
		asked++;
		return new Promise(() => {});
	};
	const fault = () => Promise.reject(new Error("http://user:secret@node"));
	const { clock, get } = start([
		{ name: "node", check },
		{ name: "store", check: fault },
	]);
	const answers = [get("/readyz"), get("/readyz")];
	await clock.advance(2_000);
	const failed = { ok: false, reason: "the check failed" };
	const json = { ready: false, draining: false, checks: { node: failed, store: failed } };
	for (const answer of await Promise.all(answers))
		assert.deepEqual([answer.status, answer.json], [503, json]);
	assert.equal(asked, 1);
});

test("metrics on the public port need the token", async () => {
	const metrics = new Metrics();
	const ask = async (token: string | undefined, authorization?: string) =>
		(
			await guardedMetricsRoute(metrics, token).handle({
				...REQUEST,
				headers: { ...(authorization && { authorization }) },
			})
		).status;
	assert.equal(await ask("s3cret", "Bearer s3cret"), 200);
	for (const wrong of [undefined, "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "s3cret", "Bearer "]) {
		assert.equal(await ask("s3cret", wrong), 404, wrong);
	}
	for (const token of [undefined, ""]) assert.equal(await ask(token, "Bearer "), 404);
});
