// Token buckets, by a clock that is moved by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { callContext } from "../../../../shared/http/callContext.ts";
import { RateLimiter } from "../../../../shared/http/rateLimit.ts";
import type { RpcCall } from "../../../../shared/jsonrpc/envelope.ts";
import { ManualClock } from "../../../support/manualClock.ts";

function start(rps = 100, maxClients = 1_000) {
	const clock = new ManualClock();
	const limiter = new RateLimiter(
		{ rps, maxClients },
		{ clock, freePoll: (method, params) => (method === "poll" ? String(params[0]) : undefined) },
	);
	/** How many calls of `weight` pass at once. */
	const passing = (address: string, weight = 1): number => {
		let count = 0;
		while (count < 50_000 && limiter.takeFrom({ address }, weight) === 0) count++;
		return count;
	};
	const take = (address: string, method: string, params: readonly unknown[] | null): number => {
		const context = callContext(
			{ path: "/", search: "" },
			{ address, signer: null, vouched: false },
			null,
			null,
		);
		const call: RpcCall = { id: 1, method, params, paramsSize: 0, fault: null };
		return limiter.take(context, call, 1);
	};
	return { clock, limiter, passing, take };
}

test("ten seconds' worth at once, then as many a second as the rate says", async () => {
	const { clock, passing } = start();
	assert.equal(passing("a"), 1_000);
	assert.equal(passing("a"), 0);
	await clock.advance(1_000);
	assert.equal(passing("a"), 100);
	await clock.advance(50);
	assert.equal(passing("a"), 5);
	await clock.advance(3_600_000);
	assert.equal(passing("a"), 1_000, "nobody saves up more than ten seconds' worth");
});

test("weights count", async () => {
	const { clock, passing } = start();
	assert.equal(passing("a", 10), 100);
	await clock.advance(1_000);
	assert.equal(passing("a", 10), 10);
});

test("the wait that is told is enough, and not longer than needed", async () => {
	const { clock, limiter, passing } = start(10);
	const client = { address: "a" };
	assert.equal(passing("a"), 100);
	const wait = limiter.takeFrom(client, 10);
	assert.equal(wait, 1_000);
	await clock.advance(wait - 1);
	assert.notEqual(limiter.takeFrom(client, 10), 0);
	await clock.advance(1);
	assert.equal(limiter.takeFrom(client, 10), 0);
});

test("what does not pass costs nothing", async () => {
	const { clock, limiter, passing } = start(10);
	passing("a");
	for (let i = 0; i < 100; i++) limiter.takeFrom({ address: "a" }, 1);
	await clock.advance(1_000);
	assert.equal(passing("a"), 10);
});

test("what weighs more than a full bucket passes when it is full, and is paid off before anything else", async () => {
	const { clock, limiter, passing } = start(1);
	const client = { address: "a" };
	assert.equal(limiter.takeFrom(client, 25), 0);
	assert.equal(limiter.takeFrom(client, 1), 16_000);
	await clock.advance(16_000);
	assert.equal(passing("a"), 1);
});

test("each client has a bucket of its own, an IPv6 network has one", () => {
	const { passing } = start();
	assert.equal(passing("192.0.2.1"), 1_000);
	assert.equal(passing("192.0.2.2"), 1_000);
	assert.equal(passing("2001:db8::1"), 1_000);
	assert.equal(passing("2001:db8:0:ff::1"), 0);
	assert.equal(passing("2001:db8:0:100::1"), 1_000);
});

test("a body weighs one for each 16 KiB beside its calls, and is refused before it is looked at", () => {
	const { limiter, passing } = start(10);
	assert.equal(limiter.takeBody({ address: "a" }, 16 * 1024 - 1), null);
	assert.equal(passing("a"), 100);
	assert.equal(limiter.takeBody({ address: "a" }, 16 * 1024 - 1), null, "it weighs nothing");
	assert.equal(limiter.takeBody({ address: "b" }, 2 * 1024 * 1024 - 1), null, "more than a full bucket");
	assert.equal(passing("b"), 0);
	assert.equal(limiter.takeBody({ address: "c" }, 40 * 16 * 1024), null);
	assert.equal(passing("c"), 60);
	const { status, text, retryMs } = limiter.takeBody({ address: "c" }, 20 * 16 * 1024) ?? {};
	assert.deepEqual([status, retryMs], [429, 2_000]);
	assert.deepEqual(JSON.parse(text ?? ""), {
		jsonrpc: "2.0",
		id: null,
		error: { code: -32005, message: "limit exceeded: try again in 2 s" },
	});
});

test("what turns out dear is charged afterwards, not without end", async () => {
	const { clock, limiter, passing } = start(10);
	const client = { address: "a" };
	assert.equal(limiter.takeFrom(client, 1), 0);
	limiter.charge(client, 9);
	assert.equal(passing("a"), 90);
	for (let i = 0; i < 1_000; i++) limiter.charge(client, 9);
	await clock.advance(10_000);
	assert.equal(passing("a"), 0);
	await clock.advance(1_000);
	assert.equal(passing("a"), 10);
});

test("a poll of one's own is free once a second, for each thing and client", async () => {
	const { clock, passing, take } = start();
	passing("a");
	assert.equal(take("a", "poll", ["x"]), 0);
	assert.notEqual(take("a", "poll", ["x"]), 0, "twice within a second");
	assert.equal(take("a", "poll", ["y"]), 0, "something else");
	passing("b");
	assert.equal(take("b", "poll", ["x"]), 0, "somebody else");
	assert.notEqual(take("a", "other", ["x"]), 0);
	assert.notEqual(take("a", "poll", null), 0, "no parameters to look at");
	passing("a");
	await clock.advance(999);
	passing("a");
	assert.notEqual(take("a", "poll", ["x"]), 0);
	await clock.advance(1);
	assert.equal(take("a", "poll", ["x"]), 0);
});

test("a rate of 0 is no limit", () => {
	const { limiter, passing } = start(0);
	assert.equal(passing("a"), 50_000);
	limiter.charge({ address: "a" }, 1e9);
	assert.equal(passing("a"), 50_000);
});

test("clients are forgotten when there are too many, the one not seen for longest first", () => {
	const { passing } = start(1, 2);
	assert.equal(passing("a"), 10);
	assert.equal(passing("b"), 10);
	assert.equal(passing("a"), 0);
	assert.equal(passing("c"), 10);
	assert.equal(passing("a"), 0, "still known");
	assert.equal(passing("b"), 10, "forgotten");
});
