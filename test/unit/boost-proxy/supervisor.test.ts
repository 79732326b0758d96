// Two processes behind one port: the relay is started again with growing pauses, boost's end is the end, settings that
// one of them refuses end both, and a stop goes in order and within its time. Processes and time are moved by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
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

test("asked to stop, boost goes first, the relay when boost has gone, and the code is 0", async () => {
	const { up, told, relay, boost, clock, ending, ask, code, fresh } = pairFixture();
	await up();
	await clock.advance(1_000);
	fresh();
	ask();
	await clock.advance(3_000);
	assert.deepEqual(told, ["boost is asked to stop"]);
	boost().exit(0);
	await clock.advance(0);
	assert.deepEqual(told, ["boost is asked to stop", "boost ends", "relay 1 is asked to stop"]);
	assert.equal(code(), undefined);
	relay().exit(0);
	await ending;
	assert.equal(code(), 0);
});

test("asked to stop while the relay still starts, boost is not started at all", async () => {
	const { told, boosts, relay, clock, ending, ask, code } = pairFixture();
	await clock.advance(100);
	ask();
	await clock.advance(0);
	relay().exit(0);
	await ending;
	assert.deepEqual([code(), boosts.length], [0, 0]);
	assert.deepEqual(told, ["relay 1 begins", "relay 1 is asked to stop", "relay 1 ends"]);
});

test("asked to stop while boost still starts, it is the same as later", async () => {
	const { told, relay, boost, clock, ending, ask, code, fresh } = pairFixture();
	relay().start();
	await clock.advance(0);
	fresh();
	ask();
	await clock.advance(0);
	boost().exit(0);
	await clock.advance(0);
	relay().exit(0);
	await ending;
	assert.equal(code(), 0);
	assert.deepEqual(told, [
		...["boost is asked to stop", "boost ends"],
		...["relay 1 is asked to stop", "relay 1 ends"],
	]);
});

test("a boost that does not end keeps nobody from it: the relay is asked all the same, and at last both are killed", async () => {
	const { up, told, clock, ending, ask, code, fresh } = pairFixture();
	await up();
	fresh();
	ask();
	await clock.advance(16_999);
	assert.deepEqual(told, ["boost is asked to stop"]);
	await clock.advance(1);
	assert.deepEqual(told, ["boost is asked to stop", "relay 1 is asked to stop"]);
	await clock.advance(10_999);
	assert.equal(told.length, 2);
	await clock.advance(1);
	await ending;
	assert.deepEqual(told.slice(2), ["boost is killed", "boost ends", "relay 1 is killed", "relay 1 ends"]);
	assert.equal(code(), 1);
});

for (const [who, boostCode, relayCode] of [
	["boost", 1, 0],
	["the relay", 0, 1],
] as const) {
	test(`where ${who} stops with a failure, the code says so`, async () => {
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

test("a relay that ends is started again, each time later, and sooner again when it was up for long", async () => {
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

test("asked to stop while the relay waits to be started again, none is started", async () => {
	const { up, relays, relay, boost, clock, ending, ask, code } = pairFixture();
	await up();
	relay().exit(null, "SIGSEGV");
	await clock.advance(100);
	ask();
	await clock.advance(0);
	boost().exit(0);
	await clock.advance(0);
	await ending;
	assert.deepEqual([code(), relays.length], [0, 1]);
	await clock.advance(60_000);
	assert.equal(relays.length, 1);
});

test("a relay that ends by a signal before it ever served is started again; it is no refusal", async () => {
	const { relays, relay, clock, code } = pairFixture();
	relay().exit(null, "SIGKILL");
	await clock.advance(250);
	assert.deepEqual([relays.length, code()], [2, undefined]);
	relay().exit(1);
	await clock.advance(5_000);
	assert.equal(relays.length, 2);
});

test("a relay that refuses its settings is not started again: all ends with 1, once boost has said its own", async () => {
	const { told, relay, boost, clock, ending, code } = pairFixture();
	relay().exit(1);
	await clock.advance(2_000);
	assert.deepEqual(told, ["relay 1 begins", "relay 1 ends", "boost begins"]);
	boost().exit(1);
	await ending;
	assert.deepEqual(told.slice(3), ["boost ends", "boost is asked to stop"]);
	assert.equal(code(), 1);
});

test("where boost's settings are good, it is stopped as soon as that is known, or after five seconds", async () => {
	for (const known of [true, false]) {
		const { told, relay, boost, clock, ending, code, fresh } = pairFixture();
		relay().exit(1);
		await clock.advance(1_000);
		fresh();
		if (known) boost().start();
		await clock.advance(known ? 0 : 3_999);
		assert.deepEqual(told, known ? ["boost is asked to stop"] : []);
		await clock.advance(1);
		assert.deepEqual(told, ["boost is asked to stop"]);
		boost().exit(0);
		await ending;
		assert.equal(code(), 1);
	}
});

test("a boost that refuses its settings ends all with its code, once the relay has said its own", async () => {
	const { told, relay, boost, clock, ending, code, fresh } = pairFixture();
	await clock.advance(5_000);
	fresh();
	boost().exit(1);
	await clock.advance(1_000);
	assert.deepEqual(told, ["boost ends"]);
	relay().exit(1);
	await ending;
	assert.deepEqual(told, ["boost ends", "relay 1 ends", "boost is asked to stop"]);
	assert.equal(code(), 1);
});

test("boost's end is the end of the relay, whatever its code", async () => {
	for (const [code, signal, expected] of [
		[3, null, 3],
		[null, "SIGKILL", 1],
	] as const) {
		const { up, told, relay, boost, clock, ending, code: ended, fresh } = pairFixture();
		await up();
		fresh();
		boost().exit(code, signal);
		await clock.advance(0);
		assert.deepEqual(told, ["boost ends", "boost is asked to stop", "relay 1 is asked to stop"]);
		relay().exit(0);
		await ending;
		assert.equal(ended(), expected);
	}
});

test("a stop that is asked for while one waits for the other's word is not put off", async () => {
	const { told, relay, boost, clock, ending, ask, code } = pairFixture();
	relay().exit(1);
	await clock.advance(1_000);
	ask();
	await clock.advance(0);
	assert.equal(told.at(-1), "boost is asked to stop");
	boost().exit(0);
	await ending;
	assert.equal(code(), 1);
});
