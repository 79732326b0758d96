// Where a request goes behind an address, as a table.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readUpstreamUrl } from "../../../../boost-proxy/upstream/transport.ts";

const PATHS: readonly (readonly [string, string, string])[] = [
	["http://h", "", "/"],
	["http://h", "/", "/"],
	["http://h", "/fast", "/fast"],
	["http://h/", "/fast", "/fast"],
	["http://h", "?a=b", "/?a=b"],
	["http://h/base", "/fast?a=b", "/base/fast?a=b"],
	["http://h/base/", "/fast", "/base/fast"],
	["http://h/base/", "/", "/base/"],
	["http://h/base", "/", "/base"],
	["http://h/base", "", "/base"],
	["http://h/v3/KEY", "?refund=0x1:90", "/v3/KEY?refund=0x1:90"],
	["http://h/?key=k", "/fast", "/fast?key=k"],
	["http://h/base?key=k", "/fast?a=b", "/base/fast?key=k&a=b"],
	["http://h/base?key=k", "", "/base?key=k"],
	["http://h/base?key=k", "?", "/base?key=k"],
	["https://protect.example/tx/", "/0xab", "/tx/0xab"],
	["https://protect.example/tx", "0xab", "/tx/0xab"],
	// Nothing leads elsewhere, and a query stays as it came.
	["http://h", "http://elsewhere/", "/http://elsewhere/"],
	["http://h", "/fast?a=%zz&&b=%41?c", "/fast?a=%zz&&b=%41?c"],
	["http://h", "/fast?a=\xe9", "/fast?a=\xe9"],
	["http://h", "/fast?a=b c\r\nx: y€", "/fast?a=b%20c%0D%0Ax:%20y%E2%82%AC"],
	["http://h", "/fast?a=\ud800", "/fast?a=%EF%BF%BD"],
];

test("the target's path is put behind the address's own, and queries are joined", () => {
	for (const [url, target, path] of PATHS) {
		assert.equal(readUpstreamUrl(url).pathOf(target), path, `${url} and ${JSON.stringify(target)}`);
	}
});

test("credentials are taken out of the address", () => {
	const url = readUpstreamUrl("https://user:a%3Ab@h:8443/base#part");
	assert.equal(url.origin, "https://h:8443");
	assert.equal(url.authorization, `Basic ${btoa("user:a:b")}`);
	assert.equal(url.pathOf("/fast"), "/base/fast");
	assert.equal(readUpstreamUrl("http://h").authorization, null);
	assert.equal(readUpstreamUrl("http://%zz@h").authorization, `Basic ${btoa("%zz:")}`);
});
