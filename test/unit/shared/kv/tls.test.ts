// Tests the TLS settings of a database's URL, read as libpq does; refusals.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import pg from "pg";
import { databaseAddress } from "../../../../shared/kv/postgres/database.ts";

const URL = "postgres://user:secretsecret@db.example:5432/relay";

/** What is asked of the server, in a word. */
function rule(text: string, verify = false): string {
	const { ssl, mayBeClear, isExposed } = databaseAddress(text, verify);
	if (ssl === null) return isExposed ? "exposed" : "clear";
	const names = ssl.checkServerIdentity === undefined ? "valid for its name" : "valid";
	return `${ssl.rejectUnauthorized === false ? "any" : names}${mayBeClear ? ", or clear" : ""}`;
}

/** URLs by where the database is; each takes a query behind it. */
const PLACES = {
	network: [
		"postgres://u:p@db.example:5432/relay?a=b",
		"postgres://u:p@postgres/relay?a=b",
		"postgres://u:p@10.0.0.7/relay?a=b",
		"postgres://u:p@[2001:db8::7]:5432/relay?a=b",
		"postgres://u:p@0.0.0.0/relay?a=b",
		"postgres://u:p@127.0.0.1.example/relay?a=b",
		"postgres://u:p@localhost/relay?host=db.example",
		"postgres://u:p@db.example/relay?host=localhost&host=db.example",
	],
	loopback: [
		"postgres://u:p@127.0.0.1:5432/relay?a=b",
		"postgres://u:p@127.1.2.3/relay?a=b",
		"postgres://u:p@LocalHost/relay?a=b",
		"postgres://u:p@[::1]:5432/relay?a=b",
		"postgres:///relay?a=b",
		"postgres://u:p@db.example/relay?host=localhost",
	],
	socket: [
		"postgres:///relay?host=/var/run/postgresql",
		"postgres://u:p@db.example/relay?host=/tmp",
		"postgres://%2Fvar%2Frun%2Fpostgresql/relay?a=b",
	],
} as const;

/** By sslmode (null: none is said): on a network, on loopback. Over a socket there is no TLS. */
const RULES = [
	[null, "any", "any, or clear"],
	["disable", "exposed", "clear"],
	["allow", "any", "any, or clear"],
	["prefer", "any", "any, or clear"],
	["require", "any", "any"],
	["no-verify", "any", "any"],
	["verify-ca", "valid", "valid"],
	["verify-full", "valid for its name", "valid for its name"],
] as const;

test("what sslmode asks for: over a network clear text is for disable alone", () => {
	for (const [mode, network, loopback] of RULES) {
		const expected = { network, loopback, socket: "clear" };
		for (const [place, urls] of Object.entries(PLACES) as [keyof typeof PLACES, readonly string[]][]) {
			for (const one of urls) {
				const text = mode === null ? one : `${one}&sslmode=${mode}`;
				assert.equal(rule(text), expected[place], text);
				const verified = place === "socket" ? "clear" : "valid for its name";
				assert.equal(rule(text, true), verified, `${text}, verification demanded`);
			}
		}
	}
});

test("what pg connects to is what the rule was made for", () => {
	for (const [text, host] of [
		...PLACES.network.map((one) => [one, /./] as const),
		["postgres:///relay", /^localhost$/],
		["postgres://u:p@[::1]/relay", /^::1$/],
		["postgres://u:p@localhost/relay?host=db.example", /^db\.example$/],
		["postgres://u:p@a/relay?host=localhost&host=db.example", /^db\.example$/],
		["postgres://%2Fvar%2Frun/relay", /^\/var\/run$/],
	] as const) {
		const client = new pg.Client({ connectionString: databaseAddress(text, false).url });
		assert.match(client.host, host, text);
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
