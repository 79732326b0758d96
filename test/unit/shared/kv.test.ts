// Stores: the TLS that a database's URL asks for, read as libpq does; what a peer without TLS is sent; and a disk
// without room.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "../../../shared/clock.ts";
import { DiskRoom } from "../../../shared/kv/lmdb.ts";
import { Database, databaseAddress } from "../../../shared/kv/postgres/database.ts";

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

const PASSWORD = "secretsecret";
/** Length 8, and the code of SSLRequest. https://www.postgresql.org/docs/current/protocol-message-formats.html */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
/** AuthenticationCleartextPassword: what a thief would ask for. */
const ASKS_PASSWORD = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]);

/** A server that has no TLS and asks for the password in clear text; answers its port and all that it was sent. */
async function startThief(t: TestContext) {
	const sent: Buffer[] = [];
	const server = createServer((socket) => {
		socket.on("error", () => {});
		socket.on("data", (bytes) => {
			sent.push(bytes);
			if (bytes.equals(SSL_REQUEST)) socket.write("N");
			else if (Buffer.concat(sent).includes(PASSWORD)) socket.end();
			else socket.write(ASKS_PASSWORD);
		});
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	t.after(() => server.close());
	return { port: (server.address() as AddressInfo).port, sent: () => Buffer.concat(sent) };
}

/** It reaches this machine as 127.0.0.1 does, and is none of the names of loopback. */
const NETWORK = "0.0.0.0";

for (const [host, query, said] of [
	...["", "?sslmode=prefer", "?sslmode=require", "?sslmode=verify-full", "?sslmode=prefer&host=0.0.0.0"].map(
		(mode) => [NETWORK, mode, "nothing"] as const,
	),
	["127.0.0.1", "?sslmode=require", "nothing"],
	["127.0.0.1", "?host=0.0.0.0&sslmode=prefer", "nothing"],
	["127.0.0.1", "", "the password"],
	[NETWORK, "?sslmode=disable", "the password"],
] as const) {
	test(`a peer at ${host}${query} that has no TLS is told ${said}`, async (t) => {
		const thief = await startThief(t);
		const url = `postgres://user:${PASSWORD}@${host}:${thief.port}/relay${query}`;
		const database = new Database({ url, verify: false, name: "test" }, { clock: systemClock });
		t.after(() => database.close());
		const rejected = assert.rejects(database.query({ text: "SELECT 1", values: [] }), (thrown: Error) => {
			assert.ok(!thrown.message.includes(PASSWORD));
			if (said === "nothing")
				assert.match(thrown.message, /refuses \(no TLS\): expected a server that has it/);
			return true;
		});
		await rejected;
		if (said === "nothing") assert.deepEqual(thief.sent(), SSL_REQUEST);
		else assert.ok(thief.sent().includes(PASSWORD));
		// Nor does a second try.
		await assert.rejects(database.query({ text: "SELECT 1", values: [] }));
		if (said === "nothing") assert.ok(!thief.sent().includes("user"));
	});
}

// LMDB must not see a write fail: its message of that overruns the heap.
test("behind a failed write nothing is written until a trial went through", async () => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-room-"));
	const room = new DiskRoom(folder);
	await room.check();
	room.failed();
	for (let i = 0; i < 2; i++) await assert.rejects(room.check(), { code: "ENOENT" });
	assert.deepEqual(readdirSync(folder), []);
	rmSync(folder, { recursive: true });
});
