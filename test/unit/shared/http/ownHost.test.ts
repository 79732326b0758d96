// Hosts that a stranger may own, and those that he cannot.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isOwnHost } from "../../../../shared/http/ownHost.ts";

const OWN = [
	...["127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "10.0.0.7", "203.0.113.9:80", "[2001:db8::1]"],
	...[
		"localhost",
		"LOCALHOST:8080",
		"localhost.",
		"relay",
		"relay:9090",
		"relay.internal",
		"relay.flycast:80",
	],
	...["relay.local", "relay.default.svc"],
];
const OTHERS = [
	...["page.example", "page.example:8080", "relay.local.page.example", "notlocalhost.example"],
	...["localhost.page.example", "internal.page.example", "127.0.0.1.page.example", "", "a b", "@", "[::1"],
];

for (const host of OWN) {
	test(`accepts Host: ${host}`, () => assert.equal(isOwnHost(host), true));
}
for (const host of OTHERS) {
	test(`refuses Host: ${JSON.stringify(host)}`, () => assert.equal(isOwnHost(host), false));
}
test("accepts a request without Host, which no browser sends", () => {
	assert.equal(isOwnHost(undefined), true);
});
