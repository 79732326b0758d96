// What relay and boost are told behind one port.

import assert from "node:assert/strict";
import { test } from "node:test";
import { pairEnvironments } from "../../../boost-proxy/supervisor.ts";

const MADE = { relayPort: 12_345, secret: "made up" };

test("boost has the one port and all that the world sees; the relay is on loopback, and each finds the other", () => {
	const given = {
		PORT: "5000",
		HOST: "::",
		TRUST_PROXY: "1",
		ETH_RPC_URL: "http://n",
		DATA_DIR: "/d",
		OTHER: "x",
	};
	assert.deepEqual(pairEnvironments(given, MADE), {
		relay: { ...given, PORT: "12345", HOST: "127.0.0.1", TRUST_PROXY: "0", BOOST_SECRET: "made up" },
		boost: { ...given, RELAY_URL: "http://127.0.0.1:12345", BOOST_SECRET: "made up" },
		unused: [],
	});
});

test("a secret that is given is kept; an empty one is none", () => {
	for (const [given, secret] of [
		["own", "own"],
		["", "made up"],
		["  ", "made up"],
	] as const) {
		const { relay, boost } = pairEnvironments({ BOOST_SECRET: given }, MADE);
		assert.deepEqual([relay.BOOST_SECRET, boost.BOOST_SECRET], [secret, secret]);
	}
});

test("the relay's metrics are on the port behind boost's, and on none where there is none", () => {
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

test("what has no effect is named, and not passed on", () => {
	const given = { SEARCHER_PORT: "8090", RELAY_URL: "https://elsewhere.example" };
	const { relay, boost, unused } = pairEnvironments(given, MADE);
	assert.deepEqual(unused, ["SEARCHER_PORT", "RELAY_URL"]);
	assert.ok(!("SEARCHER_PORT" in relay), "the relay would listen elsewhere");
	assert.equal(boost.RELAY_URL, "http://127.0.0.1:12345");
	assert.deepEqual(pairEnvironments({ SEARCHER_PORT: "", RELAY_URL: " " }, MADE).unused, []);
});
