// A peer that answers "no TLS": what it is sent, by where it says it is and what sslmode asks for.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { systemClock } from "../../../../shared/clock.ts";
import { Database } from "../../../../shared/kv/postgres/database.ts";

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
	...["", "?sslmode=allow", "?sslmode=prefer", "?sslmode=require", "?sslmode=no-verify"].map(
		(mode) => [NETWORK, mode, "nothing"] as const,
	),
	...["?sslmode=verify-ca", "?sslmode=verify-full", "?host=0.0.0.0", "?sslmode=prefer&host=0.0.0.0"].map(
		(mode) => [NETWORK, mode, "nothing"] as const,
	),
	["127.0.0.1", "?sslmode=require", "nothing"],
	["127.0.0.1", "?host=0.0.0.0&sslmode=prefer", "nothing"],
	["127.0.0.1", "", "the password"],
	["127.0.0.1", "?sslmode=prefer", "the password"],
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
