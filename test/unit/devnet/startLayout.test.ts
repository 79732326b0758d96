// How many relays and boosts `npm start` runs by its settings, on which ports, and what it says of
// bad values.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type StartPort, startLayout } from "../../devnet/startLayout.ts";

const said = (ports: readonly StartPort[]) =>
	ports.map(({ setting, number, owner }) => `${setting}=${number} ${owner}`);

const ROWS: readonly (readonly [
	env: Readonly<Record<string, string>>,
	relays: readonly string[],
	boosts: readonly string[],
	balancer: number | null,
])[] = [
	[{}, ["RELAY_PORT=8080 the relay"], ["BOOST_PORT=8081 boost"], null],
	[{ RELAYS: "", BOOSTS: " 1 " }, ["RELAY_PORT=8080 the relay"], ["BOOST_PORT=8081 boost"], null],
	[
		{ RELAYS: "3", BOOSTS: "2", RELAY2_PORT: "9000", BALANCER_PORT: "9001" },
		["RELAY_PORT=8080 relay 1", "RELAY2_PORT=9000 relay 2", "RELAY3_PORT=8100 relay 3"],
		["BOOST_PORT=8081 boost 1", "BOOST2_PORT=8091 boost 2"],
		9001,
	],
	[
		{ BOOSTS: "2" },
		["RELAY_PORT=8080 the relay"],
		["BOOST_PORT=8081 boost 1", "BOOST2_PORT=8091 boost 2"],
		null,
	],
];

for (const [env, relays, boosts, balancer] of ROWS) {
	test(`with ${JSON.stringify(env)}`, () => {
		const layout = startLayout(env);
		assert.deepEqual(said(layout.relays), relays);
		assert.deepEqual(said(layout.boosts), boosts);
		assert.equal(layout.balancer?.number ?? null, balancer);
	});
}

test("no two ports are the same at the most of each", () => {
	const layout = startLayout({ RELAYS: "8", BOOSTS: "4" });
	const { relays, boosts, balancer, chain, fallback, builder } = layout;
	assert.deepEqual([relays.length, boosts.length], [8, 4]);
	const all = [...relays, ...boosts, balancer, chain, fallback, builder].map((one) => one?.number);
	assert.equal(new Set(all).size, 16);
});

const BAD: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
	[{ RELAYS: "0" }, "RELAYS is not valid: expected a number, 1 to 8, for example RELAYS=3"],
	[{ RELAYS: "9" }, "RELAYS is not valid: expected a number, 1 to 8, for example RELAYS=3"],
	[{ RELAYS: "2.5" }, "RELAYS is not valid: expected a number, 1 to 8, for example RELAYS=3"],
	[{ RELAYS: "0x2" }, "RELAYS is not valid: expected a number, 1 to 8, for example RELAYS=3"],
	[{ RELAYS: "many" }, "RELAYS is not valid: expected a number, 1 to 8, for example RELAYS=3"],
	[{ BOOSTS: "5" }, "BOOSTS is not valid: expected a number, 1 to 4, for example BOOSTS=3"],
	[{ BOOSTS: "-1" }, "BOOSTS is not valid: expected a number, 1 to 4, for example BOOSTS=3"],
	[
		{ BOOST_PORT: "http" },
		"BOOST_PORT is not valid: expected a port, 1 to 65535, for example BOOST_PORT=8081",
	],
	[
		{ RELAYS: "2", RELAY2_PORT: "65536" },
		"RELAY2_PORT is not valid: expected a port, 1 to 65535, for example RELAY2_PORT=8090",
	],
];

for (const [env, message] of BAD) {
	test(`${JSON.stringify(env)} is refused`, () => {
		assert.throws(() => startLayout(env), { message });
	});
}
