// What a database's URL says of TLS, as libpq reads it, and what is refused.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { databaseAddress } from "../../../../shared/kv/postgres/tls.ts";

const URL = "postgres://user:secretsecret@db.example:5432/relay";

/** What is asked of the server, in a word. */
function rule(query: string, verify = false): string {
	const { ssl, mayBeClear } = databaseAddress(`${URL}${query}`, verify);
	if (ssl === null) return "clear";
	const names = ssl.checkServerIdentity === undefined ? "valid for its name" : "valid";
	return `${ssl.rejectUnauthorized === false ? "any" : names}${mayBeClear ? ", or clear" : ""}`;
}

test("what sslmode asks for", () => {
	for (const [query, expected] of [
		["", "any, or clear"],
		["?sslmode=disable", "clear"],
		["?sslmode=allow", "any, or clear"],
		["?sslmode=prefer", "any, or clear"],
		["?sslmode=require", "any"],
		["?sslmode=no-verify", "any"],
		["?sslmode=verify-ca", "valid"],
		["?sslmode=verify-full", "valid for its name"],
	] as const) {
		assert.equal(rule(query), expected, query);
		assert.equal(rule(query, true), "valid for its name", `${query}, verification demanded`);
	}
});

test("a root certificate is read, and makes require a check of it; pg gets no words about TLS", () => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-tls-"));
	const file = join(folder, "root.crt");
	writeFileSync(file, "a certificate");
	const { url, ssl } = databaseAddress(`${URL}?sslmode=require&sslrootcert=${file}&options=x`, false);
	rmSync(folder, { recursive: true });
	assert.equal(ssl?.ca, "a certificate");
	assert.equal(ssl?.rejectUnauthorized, true);
	assert.equal(url, `${URL}?options=x`);
});

test("what can't be done is refused, and says what was expected but not the URL", () => {
	for (const [query, expected] of [
		["?sslmode=maybe", /^DATABASE_URL: expected an sslmode of disable, allow, .*verify-full$/],
		[
			"?sslrootcert=/nowhere/root.crt",
			/^DATABASE_URL: expected a readable file of certificates as sslrootcert$/,
		],
	] as const) {
		assert.throws(
			() => databaseAddress(`${URL}${query}`, false),
			(thrown: Error) => {
				assert.match(thrown.message, expected);
				assert.doesNotMatch(thrown.message, /secret/);
				return true;
			},
		);
	}
});
