// Tests where other relays find one whose INTERNAL_URL is not set, by host.

import assert from "node:assert/strict";
import { test } from "node:test";
import { internalUrl } from "../../../shared/internalUrl.ts";

const address = (value: string, internal = false) => ({
	address: value,
	family: value.includes(":") ? ("IPv6" as const) : ("IPv4" as const),
	internal,
});
const LOOPBACK = { lo: [address("127.0.0.1", true), address("::1", true)] };
const FLY = "fdaa:0:18:a7b:7d:f066:f83b:2";
const HEROKU = "1.relay.leeward.app.localspace";

for (const [what, sources, expected] of [
	["Fly", { env: { FLY_PRIVATE_IP: FLY } }, `http://[${FLY}]:8080`],
	["a Private Space of Heroku", { env: { HEROKU_DNS_DYNO_NAME: HEROKU } }, `http://${HEROKU}:8080`],
	["a container", { interfaces: { ...LOOPBACK, eth0: [address("172.18.0.5")] } }, "http://172.18.0.5:8080"],
	[
		"a machine with a public address first",
		{ interfaces: { ...LOOPBACK, eth0: [address("203.0.113.9"), address("fd00::9"), address("10.1.2.3")] } },
		"http://10.1.2.3:8080",
	],
	[
		"a machine behind a carrier's addresses",
		{ interfaces: { ...LOOPBACK, eth0: [address("100.64.3.4")] } },
		"http://100.64.3.4:8080",
	],
	[
		"a public address alone is not told",
		{ interfaces: { ...LOOPBACK, eth0: [address("203.0.113.9"), address("172.32.0.1")] } },
		"http://127.0.0.1:8080",
	],
	["one that listens on one address", { host: "10.9.8.7", interfaces: LOOPBACK }, "http://10.9.8.7:8080"],
	["one that listens on IPv6", { host: "::1", interfaces: LOOPBACK }, "http://[::1]:8080"],
] as const) {
	test(`${what}: ${expected}`, () => {
		assert.equal(
			internalUrl({ env: {}, host: "0.0.0.0", port: 8080, interfaces: LOOPBACK, ...sources }),
			expected,
		);
	});
}
