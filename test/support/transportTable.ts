// Runs a table of requests and exact answers against one server, a test per row, which also sees that a connection
// that stays open still works. Limits: 4096 bytes, 5 entries a batch.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { postText, RawConnection } from "./rawHttp.ts";
import { startTransport, type Transport } from "./transportServer.ts";

/** A request and its answer. */
export interface Row {
	readonly name: string;
	readonly send: string | Buffer;
	readonly status: number;
	/** The JSON of the body; undefined: no body. */
	readonly body?: unknown;
	readonly headers?: Readonly<Record<string, string | undefined>>;
	/** The server closes behind its answer. */
	readonly closes?: boolean;
	readonly head?: boolean;
}

/** A good call and its answer. */
export const CALL = '{"jsonrpc":"2.0","id":1,"method":"test_echo","params":["ok"]}';
export const OK = { jsonrpc: "2.0", id: 1, result: "ok" };

/** An error answer. */
export function error(code: number, message: string, id: unknown = null): unknown {
	return { jsonrpc: "2.0", id, error: { code, message } };
}

/** Makes a test of each row, against a server of their own. */
export function testRows(rows: readonly Row[]): void {
	let transport: Transport;
	before(async () => {
		transport = await startTransport();
	});
	after(() => transport.stop());
	for (const row of rows) test(`input: ${row.name}`, () => check(transport.port, row));
	test("the server is well after all of them", () =>
		check(transport.port, { name: "", send: postText("/fast", CALL), status: 200, body: OK }));
}

async function check(port: number, row: Row): Promise<void> {
	const connection = await RawConnection.open(port);
	connection.write(row.send);
	const answer = await connection.answer(row.head);
	assert.equal(answer.status, row.status);
	assert.deepEqual(answer.body === "" ? undefined : JSON.parse(answer.body), row.body);
	assert.equal(answer.headers["access-control-allow-origin"], "*");
	if (row.body !== undefined) assert.equal(answer.headers["content-type"], "application/json");
	for (const [name, value] of Object.entries(row.headers ?? {})) {
		assert.equal(answer.headers[name], value, name);
	}
	if (row.closes === true) assert.equal(await connection.closed(), "");
	else if (answer.headers.connection !== "close") {
		connection.write(postText("/", CALL));
		assert.deepEqual(JSON.parse((await connection.answer()).body), OK, "the connection goes on");
	}
	connection.destroy();
}
