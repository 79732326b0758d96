// Whether the fallback is the relay itself: by its URL, or by name and port; what can't be looked up is no reason.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	readBoostConfig,
	sameUpstream,
	sameUpstreamWarning,
	startWarnings,
} from "../../../boost-proxy/config.ts";
import { ManualClock } from "../../support/manualClock.ts";

const ADDRESSES: Readonly<Record<string, readonly string[]>> = {
	"relay.example": ["192.0.2.1", "192.0.2.2"],
	"alias.example": ["192.0.2.2"],
	"other.example": ["192.0.2.9"],
	"192.0.2.1": ["192.0.2.1"],
	localhost: ["::1", "127.0.0.1"],
	"::1": ["::1"],
};

const clock = new ManualClock();
function addressesOf(name: string): Promise<readonly string[]> {
	const found = ADDRESSES[name];
	return found === undefined ? Promise.reject(new Error("ENOTFOUND")) : Promise.resolve(found);
}

const CASES: readonly (readonly [string, Readonly<Record<string, string>>, "url" | "address" | null])[] = [
	["https://relay.example", { FALLBACK_URL: "https://relay.example" }, "url"],
	["https://relay.example", { FALLBACK_URL: "HTTPS://Relay.example:443/?key=1" }, "url"],
	["https://relay.example/base", { FALLBACK_URL: "https://u:p@relay.example/base/" }, "url"],
	["https://relay.example", { FALLBACK_FAST_URL: "https://relay.example/fast" }, "url"],
	["https://relay.example", { FALLBACK_NOREVERTS_URL: "https://relay.example/noreverts?x=1" }, "url"],
	["https://relay.example", { FALLBACK_URL: "https://alias.example/rpc" }, "address"],
	["https://alias.example", { FALLBACK_URL: "https://192.0.2.1" }, null],
	["http://localhost:8080", { FALLBACK_URL: "http://[::1]:8080" }, "address"],
	["http://localhost:8080", { FALLBACK_URL: "http://[::1]:8082" }, null],
	["http://relay.example", { FALLBACK_URL: "https://alias.example" }, null],
	["https://relay.example", { FALLBACK_URL: "https://other.example" }, null],
	["https://relay.example", { FALLBACK_URL: "https://unknown.example" }, null],
	["https://relay.example", { FALLBACK_URL: "none" }, null],
];
for (const [RELAY_URL, fallback, expected] of CASES) {
	test(`${RELAY_URL} and ${JSON.stringify(fallback)}: ${expected}`, async () => {
		const config = readBoostConfig({ RELAY_URL, ...fallback });
		assert.equal(await sameUpstream(config, { clock, addressesOf }), expected);
	});
}

test("a look-up that hangs is given up", async () => {
	const config = readBoostConfig({
		RELAY_URL: "https://relay.example",
		FALLBACK_URL: "https://other.example",
	});
	const asked = sameUpstream(config, { clock, addressesOf: () => new Promise(() => {}) });
	await clock.advance(2_000);
	assert.equal(await asked, null);
});

test("what an operator is warned of at the start", () => {
	const warnings = (env: Readonly<Record<string, string>>): readonly string[] =>
		startWarnings(readBoostConfig({ RELAY_URL: "http://r", BOOST_SECRET: "s", ...env }));
	assert.deepEqual(warnings({ FALLBACK_URL: "https://f.example" }), []);
	assert.deepEqual(warnings({ FALLBACK_URL: "none" }), [
		"while the relay is out nothing of /fast can be forwarded: there is no fallback",
		"while the relay is out nothing of /noreverts can be forwarded: there is no fallback",
	]);
	assert.deepEqual(warnings({ FALLBACK_URL: "https://f.example", FALLBACK_DIALECT: "plain" }), [
		"while the relay is out nothing of /fast can be forwarded: the fallback is not private",
		"while the relay is out nothing of /noreverts can be forwarded: the fallback is not private",
	]);
	assert.match(
		warnings({ FALLBACK_URL: "https://f.example", BOOST_SECRET: "" }).join(),
		/^BOOST_SECRET is not set: the relay sees boost's address/,
	);
	assert.match(sameUpstreamWarning("url"), /is the relay itself/);
	assert.match(sameUpstreamWarning("address"), /may be the relay itself/);
});
