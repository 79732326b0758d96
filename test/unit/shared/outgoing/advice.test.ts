// Tests an operator's message about an upstream that gives no answer: each kind has its sentence,
// and none contains a secret.

import assert from "node:assert/strict";
import { test } from "node:test";
import { advice, type Symptom, systemCode } from "../../../../shared/outgoing/advice.ts";

const CASES: readonly (readonly [Symptom, RegExp | null])[] = [
	[{ status: 401 }, /^HTTP 401: .*key or password in X_URL$/],
	[{ status: 403, type: "text/html" }, /^HTTP 403: .*key in X_URL.*allowed addresses$/],
	[{ status: 404 }, /^HTTP 404: .*path of X_URL$/],
	[{ status: 418 }, /^HTTP 418: not JSON-RPC/],
	[{ status: 429 }, /^HTTP 429: the quota/],
	[{ status: 502, type: "text/html" }, /^HTTP 502: it, or a proxy in front of it, has failed$/],
	[{ status: 508 }, /^HTTP 508: .*X_URL leads back to boost itself$/],
	[{ status: 301, location: "https://a.example/v3/key" }, /^HTTP 301: a redirect to https:\/\/a\.example, /],
	[{ status: 302, location: "https://me:key@a.example/?key" }, /a redirect to https:\/\/a\.example, /],
	[{ status: 308, location: "/v3/key" }, /^HTTP 308: a redirect, which is not followed/],
	[{ status: 307 }, /^HTTP 307: a redirect, which is not followed/],
	[{ status: 302, location: "mailto:key@a.example" }, /^HTTP 302: a redirect, which/],
	[{ status: 200, type: "text/html; charset=utf-8" }, /^HTTP 200: a web page, .*host and path of X_URL$/],
	[{ status: 200, type: "application/json" }, /^HTTP 200: not JSON-RPC: .* X_URL$/],
	[{ status: 200, encoding: "zstd" }, /^HTTP 200: it compresses its answers/],
	[{ reason: "ECONNREFUSED" }, /^nothing listens there: .*port of X_URL right/],
	[{ reason: "ENOTFOUND" }, /^no such name: .*X_URL$/],
	[{ reason: "ETIMEOUT" }, /^no name server answers for the host of X_URL$/],
	[{ reason: "CERT_HAS_EXPIRED" }, /^its certificate has expired$/],
	[{ reason: "ESOMETHING" }, null],
	[{}, null],
];

for (const [symptom, expected] of CASES) {
	test(`advises the operator on ${JSON.stringify(symptom)}`, () => {
		const said = advice("X_URL", symptom);
		if (expected === null) assert.equal(said, null);
		else assert.match(said ?? "", expected);
		assert.doesNotMatch(said ?? "", /v3|me:key|\?key|SETTING/);
	});
}

const THROWN: readonly (readonly [unknown, string | undefined])[] = [
	[Object.assign(new Error("secret"), { code: "ECONNRESET" }), "ECONNRESET"],
	[new AggregateError([Object.assign(new Error("secret"), { code: "ECONNREFUSED" })]), "ECONNREFUSED"],
	[Object.assign(new Error("secret"), { code: 7 }), undefined],
	[new Error("secret"), undefined],
	["secret", undefined],
	[null, undefined],
];

test("reports only the system's code of a thrown value", () => {
	for (const [thrown, expected] of THROWN) assert.equal(systemCode(thrown), expected, String(thrown));
});
