// Two processes behind one port: restarts of the relay, the shutdown, and how the environment is
// divided.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pairEnvironments } from "../../../boost-proxy/supervisor.ts";
import { pairFixture } from "./pairFixture.ts";

test("boost is started when the relay serves, when it has ended, or after five seconds", async () => {
	for (const how of ["serves", "ends", "neither"]) {
		const { boosts, relay, clock } = pairFixture();
		await clock.advance(1_000);
		assert.equal(boosts.length, 0);
		if (how === "serves") relay().start();
		if (how === "ends") relay().exit(null, "SIGKILL");
		await clock.advance(how === "neither" ? 3_999 : 0);
		assert.equal(boosts.length, how === "neither" ? 0 : 1, how);
		await clock.advance(1);
		assert.equal(boosts.length, 1, how);
	}
});

for (const [drainSeconds, relayAskedMs, bothKilledMs] of [
	[0, 17_000, 28_000],
	[14, 17_000, 28_000],
	[20, 23_000, 28_000],
	[300, 303_000, 308_000],
] as const) {
	test(`if boost does not end after a drain of ${drainSeconds} s, the relay is stopped all the same and both are killed in the end`, async () => {
		const { up, events, clock, ending, ask, code, clear } = pairFixture(drainSeconds);
		await up();
		clear();
		ask();
		await clock.advance(relayAskedMs - 1);
		assert.deepEqual(events, ["boost is asked to stop"]);
		await clock.advance(1);
		assert.deepEqual(events, ["boost is asked to stop", "relay 1 is asked to stop"]);
		await clock.advance(bothKilledMs - relayAskedMs - 1);
		assert.equal(events.length, 2);
		await clock.advance(1);
		await ending;
		assert.deepEqual(events.slice(2), ["boost is killed", "boost ends", "relay 1 is killed", "relay 1 ends"]);
		assert.equal(code(), 1);
	});
}

for (const [who, boostCode, relayCode] of [
	["boost", 1, 0],
	["the relay", 0, 1],
] as const) {
	test(`the exit code is 1 if ${who} stops with a failure`, async () => {
		const { up, relay, boost, clock, ending, ask, code } = pairFixture();
		await up();
		ask();
		await clock.advance(0);
		boost().exit(boostCode);
		await clock.advance(0);
		relay().exit(relayCode);
		await ending;
		assert.equal(code(), 1);
	});
}

test("a relay that ends is restarted with growing pauses, which start again after a long run", async () => {
	const { up, warned, relays, relay, boost, clock, ending, ask, code } = pairFixture();
	await up();
	const pauses: number[] = [];
	for (let i = 0; i < 9; i++) {
		const count = relays.length;
		relay().exit(i % 2 === 0 ? null : 1, i % 2 === 0 ? "SIGKILL" : null);
		let waited = 0;
		for (await clock.advance(0); relays.length === count; waited += 250) await clock.advance(250);
		pauses.push(waited);
	}
	assert.deepEqual(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
	assert.deepEqual(warned.slice(0, 2), [
		{ signal: "SIGKILL", ms: 250 },
		{ code: 1, ms: 500 },
	]);
	await clock.advance(60_000);
	const count = relays.length;
	relay().exit(1);
	await clock.advance(250);
	assert.equal(relays.length, count + 1);
	assert.equal(code(), undefined);
	ask();
	boost().exit(0);
	await clock.advance(0);
	relay().exit(0);
	await ending;
	assert.equal(code(), 0);
});

test("the relay is stopped when boost ends, whatever its code", async () => {
	for (const [code, signal, expected] of [
		[3, null, 3],
		[null, "SIGKILL", 1],
	] as const) {
		const { up, events, relay, boost, clock, ending, code: ended, clear } = pairFixture();
		await up();
		clear();
		boost().exit(code, signal);
		await clock.advance(0);
		assert.deepEqual(events, ["boost ends", "boost is asked to stop", "relay 1 is asked to stop"]);
		relay().exit(0);
		await ending;
		assert.equal(ended(), expected);
	}
});

const MADE = { relayPort: 12_345, secret: "made up" };

test("boost has the public port, the relay is on loopback", () => {
	const given = {
		PORT: "5000",
		HOST: "::",
		TRUST_PROXY: "1",
		ETH_RPC_URL: "http://n",
		DATA_DIR: "/d",
		OTHER: "x",
	};
	assert.deepEqual(pairEnvironments(given, MADE), {
		relay: {
			...{ ...given, PORT: "12345", HOST: "127.0.0.1", TRUST_PROXY: "0", BOOST_SECRET: "made up" },
			// Boost drains.
			DRAIN_SECONDS: "0",
		},
		boost: { ...given, RELAY_URL: "http://127.0.0.1:12345", BOOST_SECRET: "made up" },
		unused: [],
	});
});

test("a given secret is kept, an empty one replaced", () => {
	for (const [given, secret] of [
		["own", "own"],
		["", "made up"],
		["  ", "made up"],
	] as const) {
		const { relay, boost } = pairEnvironments({ BOOST_SECRET: given }, MADE);
		assert.deepEqual([relay.BOOST_SECRET, boost.BOOST_SECRET], [secret, secret]);
	}
});

test("the relay's metrics port follows boost's", () => {
	for (const [given, relays] of [
		["9090", "9091"],
		["0", "0"],
		["65535", "65536"],
		["x", "x"],
		["", ""],
	] as const) {
		const { relay, boost } = pairEnvironments({ METRICS_PORT: given }, MADE);
		assert.deepEqual([boost.METRICS_PORT, relay.METRICS_PORT], [given, relays]);
	}
	assert.ok(!("METRICS_PORT" in pairEnvironments({}, MADE).relay), "it was made up");
});

test("settings without effect are named and not passed on", () => {
	const given = { SEARCHER_PORT: "8090", RELAY_URL: "https://elsewhere.example" };
	const { relay, boost, unused } = pairEnvironments(given, MADE);
	assert.deepEqual(unused, ["SEARCHER_PORT", "RELAY_URL"]);
	assert.ok(!("SEARCHER_PORT" in relay), "the relay would listen elsewhere");
	assert.equal(boost.RELAY_URL, "http://127.0.0.1:12345");
	assert.deepEqual(pairEnvironments({ SEARCHER_PORT: "", RELAY_URL: " " }, MADE).unused, []);
});
