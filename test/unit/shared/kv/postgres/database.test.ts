// The TLS required by a database URL, read as libpq does.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { databaseAddress } from "../../../../../shared/kv/postgres/database.ts";

const URL = "postgres://user:secretsecret@db.example:5432/relay";

/** The TLS requirement, in short. */
function rule(text: string, verify = false): string {
	const { ssl, mayBeClear, isExposed } = databaseAddress(text, verify);
	if (ssl === null) return isExposed ? "exposed" : "clear";
	const names = ssl.checkServerIdentity === undefined ? "valid for its name" : "valid";
	return `${ssl.rejectUnauthorized === false ? "any" : names}${mayBeClear ? ", or clear" : ""}`;
}

/** URLs by location of the database; each can be extended by a parameter. */
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

/** By sslmode (null: absent): on a network, on loopback. Sockets have no TLS. */
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

test("clear text over a network needs sslmode=disable", () => {
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

test("a root certificate is read, makes require verify it, and pg gets no TLS parameters", () => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-tls-"));
	const file = join(folder, "root.crt");
	writeFileSync(file, "a certificate");
	const { url, ssl } = databaseAddress(`${URL}?sslmode=require&sslrootcert=${file}&options=x`, false);
	rmSync(folder, { recursive: true });
	assert.equal(ssl?.ca, "a certificate");
	assert.equal(ssl?.rejectUnauthorized, true);
	assert.equal(url, `${URL}?options=x`);
});
