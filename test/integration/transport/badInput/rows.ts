// The types of the rows of bad input, and the tests that send them and compare the exact answers. The tables are in
// the files beside this one.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BadInputFixture } from "./fixture.ts";
import { sendBytes, type WireRequest, type WireResponse } from "./wire.ts";

/** The exact answer to a row. */
export interface Expected {
	readonly status: number;
	/** The body as JSON; undefined for none. */
	readonly answer?: unknown;
	/** Headers that must be there with this value. */
	readonly headers?: Readonly<Record<string, string>>;
}

/** A request by an HTTP client. */
export interface HttpRow extends Expected {
	readonly name: string;
	readonly send: WireRequest;
}

/** Bytes that no HTTP client would send, on a connection of their own. */
export interface BytesRow extends Expected {
	readonly name: string;
	readonly bytes: string | Uint8Array;
	/** Our side is closed behind the bytes. */
	readonly half?: boolean;
	/** The server just closes the connection: there is nobody to tell. */
	readonly silent?: boolean;
}

/** A call whose envelope is right. Its id is the row's name. */
export interface CallRow {
	readonly name: string;
	readonly method: string;
	readonly params: readonly unknown[];
	/** "/" unless said. */
	readonly path?: string;
	/** The exact error; undefined where `result` is answered. */
	readonly error?: WireError;
	readonly result?: unknown;
}

export interface WireError {
	readonly code: number;
	readonly message: string;
	readonly data?: unknown;
}

/** The JSON of an error answer. */
export function failure(id: unknown, code: number, message: string, data?: unknown): unknown {
	const error = data === undefined ? { code, message } : { code, message, data };
	return { jsonrpc: "2.0", id, error };
}

/** The JSON of a good answer. */
export function success(id: unknown, result: unknown): unknown {
	return { jsonrpc: "2.0", id, result };
}

/** One test a row; `fixture` is asked for when they run. */
export function testHttpRows(rows: readonly HttpRow[], fixture: () => BadInputFixture): void {
	for (const row of rows) {
		test(`http: ${row.name}`, async () => {
			const { wire, log } = fixture();
			checkAnswer(await wire.send(row.send), row);
			log.check();
		});
	}
}

/** One test a row. */
export function testBytesRows(rows: readonly BytesRow[], fixture: () => BadInputFixture): void {
	for (const row of rows) {
		test(`bytes: ${row.name}`, async () => {
			const { system, log } = fixture();
			const response = await sendBytes(system.relay.port, row.bytes, row.half);
			if (row.silent === true) assert.equal(response, null);
			else {
				assert.ok(response !== null, "the connection was closed without an answer");
				checkAnswer(response, row);
			}
			log.check();
		});
	}
}

/** One test a row; `then` is waited for behind each that is answered with a result. */
export function testCallRows(
	rows: readonly CallRow[],
	fixture: () => BadInputFixture,
	then: (result: unknown) => Promise<void> = () => Promise.resolve(),
): void {
	for (const row of rows) {
		test(`${row.method.slice(0, 40)}: ${row.name}`, async () => {
			const { wire, log } = fixture();
			const answer = expectedAnswer(row);
			const body = JSON.stringify(requestOf(row));
			checkAnswer(await wire.send({ path: row.path ?? "/", body }), { status: 200, answer });
			if (row.error === undefined) await then(row.result);
			log.check();
		});
	}
}

/** A call row as it is sent; its id is its name. */
export function requestOf({ name, method, params }: CallRow): object {
	return { jsonrpc: "2.0", id: name, method, params };
}

/** What a call row is answered, as JSON. */
export function expectedAnswer({ name, error, result }: CallRow): unknown {
	return error === undefined ? success(name, result) : { jsonrpc: "2.0", id: name, error };
}

function checkAnswer(response: WireResponse, expected: Expected): void {
	const { status, body, headers } = response;
	assert.deepEqual([status, readJson(body)], [expected.status, expected.answer], body.slice(0, 500));
	for (const [name, value] of Object.entries(expected.headers ?? {}))
		assert.equal(headers[name], value, name);
	if (expected.answer !== undefined) {
		assert.equal(headers["content-type"], "application/json");
		assert.equal(headers["access-control-allow-origin"], "*");
	}
}

function readJson(text: string): unknown {
	if (text === "" || text === "0\r\n\r\n") return undefined;
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}
