// The routes for operators: what they show, who may force a breaker, and the check of /readyz.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ABSENT } from "../../../../boost-proxy/domain/deliveryState.ts";
import type { Route } from "../../../../boost-proxy/domain/request.ts";
import type { Row } from "../../../../boost-proxy/domain/row.ts";
import { operatorRoutes, upstreamCheck } from "../../../../boost-proxy/ingress/operators.ts";
import type { Rows } from "../../../../boost-proxy/rows/rows.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { History } from "../../../../shared/history.ts";
import { UNKNOWN_BUILD } from "../../../../shared/version.ts";
import { PlayedBreaker, startPassFixture } from "./passFixture.ts";

/** Only what is asked of it. */
function rowsOf(
	holders: readonly (readonly ("relay" | "fallback")[])[],
	state: Pick<Rows, "isDurable" | "isFull">,
): Rows {
	const at = (one: readonly string[], by: string) =>
		one.includes(by) ? { ...ABSENT, presence: "has" } : ABSENT;
	const all = holders.map(
		(one) => ({ at: { relay: at(one, "relay"), fallback: at(one, "fallback") } }) as Row,
	);
	return { liveCount: all.length, ...state, allLive: () => all } as unknown as Rows;
}

const WELL = { isDurable: true, isFull: false };

const INSTANCES = { own: "one of them", count: 3, takenOver: 1 };

async function fixture(
	adminToken: string | undefined,
	withFallback = true,
	state = WELL,
	metricsToken: string | undefined = undefined,
) {
	const relay = new PlayedBreaker("relay");
	const fallback = withFallback ? new PlayedBreaker("fallback") : null;
	const rows = rowsOf([["relay"], ["relay", "fallback"], []], state);
	const routes = operatorRoutes(
		{ adminToken, metricsToken },
		{
			...{
				relay,
				fallback,
				rows,
				slot: { ms: 450 },
				build: UNKNOWN_BUILD,
				homes: { ...INSTANCES, list: [] },
			},
			figures: new History({}, { clock: systemClock }),
			runChecks: async () => [],
			clock: systemClock,
		},
	);
	const server = await startPassFixture({ routes });
	const post = async (path: string, authorization?: string) => {
		const headers = authorization === undefined ? {} : { authorization };
		const answer = await fetch(`${server.url}${path}`, { method: "POST", headers, body: "ignored" });
		return { status: answer.status, body: await answer.json(), headers: answer.headers };
	};
	return { relay, fallback, server, post };
}

test("/status shows everybody states and reasons without a count, and either token the counts", async () => {
	const { relay, fallback, server } = await fixture("s3cret", true, WELL, "figures");
	relay.state = "open";
	const told = async (authorization?: string) => {
		const headers = authorization === undefined ? {} : { authorization };
		const answer = await fetch(`${server.url}/status`, { headers });
		assert.equal(answer.headers.get("x-boost-breaker"), "closed", "it is the server's own");
		return answer.json();
	};
	const shown = (breaker: typeof relay | null) => {
		const { inFlight: _, oldestInFlightMs: __, ...states } = breaker?.status() ?? relay.status();
		return states;
	};
	const open = { relay: shown(relay), fallback: shown(fallback), slotMs: 450, journal: { durable: true } };
	for (const token of [undefined, "", "Bearer", "Bearer wrong", "Basic s3cret"]) {
		const answer = await told(token);
		assert.deepEqual(answer, open, token);
		assert.doesNotMatch(JSON.stringify(answer), /depth|held|inFlight/i);
	}
	for (const token of ["Bearer s3cret", "Bearer figures"]) {
		assert.deepEqual(await told(token), {
			relay: relay.status(),
			fallback: fallback?.status(),
			slotMs: 450,
			journal: { depth: 3, durable: true, held: { relay: 2, fallback: 1 }, instances: INSTANCES },
		});
	}
	await server.stop();
	const alone = await fixture(undefined, false);
	const body = (await (await fetch(`${alone.server.url}/status`)).json()) as { fallback: unknown };
	assert.equal(body.fallback, null);
	await alone.server.stop();
});

for (const [what, state] of [
	["can't be written", { isDurable: false, isFull: false }],
	["is full", { isDurable: true, isFull: true }],
] as const) {
	test(`/status says where the journal ${what}`, async () => {
		const { server } = await fixture(undefined, true, state);
		const body = (await (await fetch(`${server.url}/status`)).json()) as { journal: { durable: unknown } };
		assert.equal(body.journal.durable, false);
		await server.stop();
	});
}

test("only the token opens, closes and frees a breaker", async () => {
	const { relay, fallback, server, post } = await fixture("s3cret");
	for (const authorization of [
		undefined,
		"",
		"Bearer",
		"Bearer ",
		"Bearer s3cre",
		"Bearer s3crets",
		"Basic s3cret",
	]) {
		const { status, headers } = await post("/admin/open", authorization);
		assert.deepEqual([status, headers.get("www-authenticate")], [401, 'Bearer realm="boost"'], authorization);
	}
	assert.deepEqual(relay.forced, []);
	assert.deepEqual((await post("/admin/open", "Bearer s3cret")).body, { relay: relay.status() });
	assert.equal((await post("/admin/close?upstream=relay", "bearer s3cret")).status, 200);
	assert.equal((await post("/admin/auto", "Bearer s3cret")).status, 200);
	assert.deepEqual(relay.forced, ["open", "closed", null]);
	assert.deepEqual((await post("/admin/open?upstream=fallback", "Bearer s3cret")).body, {
		fallback: fallback?.status(),
	});
	assert.deepEqual([relay.forced.length, fallback?.forced], [3, ["open"]]);
	for (const query of [
		"?upstream=both",
		"?upstream=",
		"?upstram=fallback",
		"?upstream=relay&upstream=fallback",
	]) {
		assert.equal((await post(`/admin/open${query}`, "Bearer s3cret")).status, 400, query);
	}
	assert.deepEqual([relay.forced.length, fallback?.forced.length], [3, 1]);
	await server.stop();
});

test("without a fallback or a token there is nothing to force", async () => {
	const alone = await fixture("s3cret", false);
	const { status, body } = await alone.post("/admin/open?upstream=fallback", "Bearer s3cret");
	assert.deepEqual([status, body], [400, { error: "there is no fallback" }]);
	await alone.server.stop();
	for (const token of [undefined, ""]) {
		const { relay, server, post } = await fixture(token);
		for (const authorization of [undefined, "Bearer ", "Bearer undefined"]) {
			assert.equal((await post("/admin/open", authorization)).status, 404);
		}
		assert.deepEqual([relay.forced, server.passed], [[], []]);
		await server.stop();
	}
});

test("ready while the relay, or a fallback that some path allows, is available", async () => {
	const rows: [boolean, "none" | "out" | "in" | "refused" | "fast alone", true | RegExp][] = [
		[false, "none", true],
		[false, "out", true],
		[true, "none", /no fallback/],
		[true, "out", /the relay and the fallback are down/],
		[true, "refused", /nothing may be sent/],
		[true, "in", true],
		[true, "fast alone", true],
	];
	for (const [relayOut, what, expected] of rows) {
		const relay = new PlayedBreaker("relay");
		if (relayOut) relay.state = "half-open";
		const breaker = new PlayedBreaker("fallback");
		if (what === "out") breaker.state = "open";
		const whyUnfit = ({ path }: Route) =>
			what === "refused" || (what === "fast alone" && path === "noreverts") ? "not private" : null;
		const check = upstreamCheck({
			relay: { breaker: relay },
			fallback: what === "none" ? null : { breaker, whyUnfit },
		});
		assert.equal(check.name, "upstream");
		const result = await check.check();
		const isAlone = !relayOut && what === "out";
		const note = isAlone
			? "the fallback is down: nothing can take over from the relay"
			: "the relay is down: the fallback serves its clients";
		const isWell = !relayOut && !isAlone;
		if (expected === true) assert.deepEqual(result, isWell ? { ok: true } : { ok: true, note }, what);
		else assert.match(result.ok ? "" : result.reason, expected);
	}
});
