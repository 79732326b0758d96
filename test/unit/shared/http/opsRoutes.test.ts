// The operators' routes: what they say of checks that pass, fail, throw and hang.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpAnswer } from "../../../../shared/http/httpAnswer.ts";
import {
	guardedMetricsRoute,
	metricsRoute,
	opsRoutes,
	type ReadinessCheck,
} from "../../../../shared/http/opsRoutes.ts";
import type { Route } from "../../../../shared/http/routes.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { Metrics } from "../../../../shared/metrics.ts";
import { ManualClock } from "../../../support/manualClock.ts";

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

test("livez is well whatever the checks say", async () => {
	const { get } = start([{ name: "node", check: () => ({ ok: false, reason: "down" }) }], () => true);
	assert.equal((await get("/livez")).status, 200);
});

test("readyz is 200 only when every check passes", async () => {
	let store = true;
	const { get } = start([
		{ name: "node", check: async () => ({ ok: true }) },
		{ name: "store", check: () => (store ? { ok: true } : { ok: false, reason: "not open" }) },
	]);
	const well = await get("/readyz");
	assert.equal(well.status, 200);
	assert.deepEqual(well.json, {
		ready: true,
		draining: false,
		checks: { node: { ok: true }, store: { ok: true } },
	});
	store = false;
	const ill = await get("/readyz");
	assert.equal(ill.status, 503);
	assert.deepEqual(ill.json, {
		ready: false,
		draining: false,
		checks: { node: { ok: true }, store: { ok: false, reason: "not open" } },
	});
});

test("readyz is 503 while draining, though all is well", async () => {
	let draining = false;
	const { get } = start([], () => draining);
	assert.equal((await get("/readyz")).status, 200);
	draining = true;
	const answer = await get("/readyz");
	assert.equal(answer.status, 503);
	assert.deepEqual(answer.json, { ready: false, draining: true, checks: {} });
});

test("a check that throws has failed, and its words are not told", async () => {
	const { get } = start([
		{
			name: "node",
			check: async () => {
				throw new Error("http://user:secret@node");
			},
		},
		{
			name: "store",
			check: () => {
				throw new Error("secret");
			},
		},
	]);
	const answer = await get("/readyz");
	assert.equal(answer.status, 503);
	const failed = { ok: false, reason: "the check failed" };
	assert.deepEqual(answer.json, { ready: false, draining: false, checks: { node: failed, store: failed } });
});

test("a check that hangs has failed after two seconds, and is asked once for all who wait", async () => {
	let asked = 0;
	const { clock, get } = start([
		{
			name: "node",
			check: () => {
				asked++;
				return new Promise(() => {});
			},
		},
	]);
	const answers = [get("/readyz"), get("/readyz")];
	await clock.advance(2_000);
	for (const answer of await Promise.all(answers)) assert.equal(answer.status, 503);
	assert.equal(asked, 1);
	const again = get("/readyz");
	await clock.advance(2_000);
	await again;
	assert.equal(asked, 2);
});

test("metrics are Prometheus text", async () => {
	const metrics = new Metrics();
	metrics.counter("test_total", "Things.", [{ kind: "a" }])({ kind: "a" }, 3);
	const answer = await metricsRoute(metrics).handle(REQUEST);
	assert.equal(answer.status, 200);
	assert.match(answer.contentType ?? "", /^text\/plain; version=0\.0\.4/);
	assert.match(String(answer.body), /^test_total\{kind="a"\} 3$/m);
});

test("on a port that others reach, metrics are there for who has the token alone", async () => {
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
