// The routes for readiness and metrics: checks that hang, their log lines, and who may read.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpAnswer } from "../../../../shared/http/messages.ts";
import {
	type CheckResult,
	guardedMetricsRoute,
	opsRoutes,
	type ReadinessCheck,
} from "../../../../shared/http/opsRoutes.ts";
import type { Route } from "../../../../shared/http/routes.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { Metrics } from "../../../../shared/metrics.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const REQUEST = { path: "", params: {}, query: new URLSearchParams(), headers: {}, address: "192.0.2.1" };

function start(checks: readonly ReadinessCheck[], draining = () => false, log: Logger = silentLogger) {
	const clock = new ManualClock();
	const routes = opsRoutes({ checks, draining }, { clock, log });
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

test("a check that begins to fail is logged once, in the words of the answer, and its end too", async () => {
	const lines: unknown[] = [];
	const note = (message: string, fields?: object) => void lines.push([message, fields]);
	let isFailing = true;
	const reason = "the node does not answer";
	const check = (): CheckResult => (isFailing ? { ok: false, reason } : { ok: true });
	const log = { ...silentLogger, warn: note, info: note };
	const { get } = start([{ name: "node", check }], undefined, log);
	for (const now of [true, false, true, true, false, false]) {
		isFailing = now;
		await get("/readyz");
	}
	assert.deepEqual(lines, [
		["not ready", { task: "node", reason }],
		["ready again", { task: "node" }],
	]);
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
