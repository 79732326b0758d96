// Starts a relay for bad input, whose log keeps every fault, sends it the rows of the tables beside
// this file, compares the exact answers, and proves that the relay is healthy afterwards.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogFields, Logger } from "../../../../shared/log.ts";
import type { DevChain } from "../../../devnet/devChain.ts";
import { type SystemOptions, startSystem, type TestSystem } from "../../../support/systems.ts";
import { accountOf, rawTransaction, type TestAccount } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";
import { sendBytes, Wire, type WireRequest, type WireResponse } from "./wire.ts";

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

/** The refusal of a transaction or bundle. */
export function refusal(reason: string, message: string, more: object = {}): WireError {
	return { code: -32000, message, data: { reason, ...more } };
}

/** The refusal of parameters. */
export function invalid(what: string): WireError {
	return { code: -32602, message: `invalid params: ${what}` };
}

/** Calls of one method that get the same error, their params by the rows' names. */
export function refusedCalls(
	method: string,
	error: WireError,
	params: Readonly<Record<string, readonly unknown[]>>,
): CallRow[] {
	return Object.entries(params).map(([name, values]) => ({ name, method, params: values, error }));
}

/** A relay and how to talk to it. */
export interface BadInputFixture {
	readonly system: TestSystem;
	readonly wire: Wire;
	/**
	 * Fails where the relay has logged a fault since the last time: an error, or a warning about a
	 * single request.
	 */
	checkLog(): void;
	/** The relay is ready, no fault was logged, and a good transaction goes through and is mined. */
	stillWell(): Promise<void>;
	/**
	 * Waits until what happens behind the answer to a submission has happened, as far as it can
	 * before the next block.
	 */
	archived(hash: string): Promise<void>;
	stop(): Promise<void>;
}

/**
 * Starts a relay; the last of the chain's accounts is kept for {@link BadInputFixture.stillWell}.
 */
export async function startFixture(options: SystemOptions = {}): Promise<BadInputFixture> {
	const faults: string[] = [];
	// With a key of its own the relay has nothing to warn of at its start.
	const env = { SIGNING_KEY: `0x${"11".repeat(32)}`, ...options.env };
	const system = await startSystem({ ...options, env, log: faultLog("relay", faults) });
	const wire = new Wire(system.relay.port);
	const { privateKey } = system.chain.accounts.at(-1) ?? { privateKey: "" };
	const sender = accountOf(privateKey);
	const checkLog = () => assert.deepEqual(faults.splice(0), [], "the log has faults");
	let nonce = 0;
	return {
		system,
		wire,
		checkLog,
		async stillWell() {
			await checkWell(system, wire, rawTransaction({ by: sender, nonce, gasLimit: 21_000 }));
			nonce += 1;
			checkLog();
		},
		archived: (hash) => archive(system, hash),
		async stop() {
			wire.close();
			await system.stop();
			checkLog();
		},
	};
}

async function checkWell(system: TestSystem, wire: Wire, good: Buffer): Promise<void> {
	const { status, body } = await wire.send({ verb: "GET", path: "/readyz" });
	assert.equal(status, 200, body);
	const hash = await system.client.send(hex(good));
	await archive(system, hash);
	assert.equal(await system.client.stage(hash), "BROADCAST");
	await system.nextBlock();
	const record = await until("the good transaction in a block", async () => {
		const seen = await system.client.status(hash);
		return seen.status === "INCLUDED" && seen;
	});
	assert.equal(record.stage, "INCLUDED");
}

async function archive(system: TestSystem, hash: string): Promise<void> {
	await until("the transaction simulated, and delivered where it may go out", async () => {
		const { stage, state = "" } = await system.client.status(hash);
		if (stage !== "BROADCAST")
			return (
				stage !== undefined && (!["PENDING", "SHARED"].includes(stage) || state.startsWith("waiting for"))
			);
		const events = await system.client.events(hash);
		return events.some(({ type, answer }) => type === "delivered" && answer === "accepted");
	});
}

/** Keeps lines at level error, and warnings of the ingress. */
function faultLog(part: string, faults: string[]): Logger {
	const keep = (level: string) => (message: string, fields?: LogFields) => {
		faults.push(`${level} ${part}: ${message} ${JSON.stringify(fields ?? {})}`);
	};
	return {
		trace() {},
		debug() {},
		info() {},
		warn: part.includes("ingress") ? keep("warn") : () => {},
		error: keep("error"),
		child: (name) => faultLog(`${part}/${name}`, faults),
	};
}

/** How an account must stand. */
export interface Standing {
	/** Wei; 1,000 ether unless said. */
	readonly balance?: bigint;
	readonly nonce?: number;
	readonly code?: string;
}

const THOUSAND_ETHER = 10n ** 21n;

/**
 * Sets balances, nonces and code, before the relay reads the accounts: it remembers them until the
 * next head.
 */
export async function prepareAccounts(
	chain: DevChain,
	accounts: readonly { readonly account: TestAccount; readonly standing: Standing }[],
): Promise<void> {
	const calls = accounts.flatMap(
		({ account: { address }, standing: { balance = THOUSAND_ETHER, nonce, code } }) => [
			{ method: "anvil_setBalance", params: [address, quantity(balance)] },
			...(nonce === undefined ? [] : [{ method: "anvil_setNonce", params: [address, quantity(nonce)] }]),
			...(code === undefined ? [] : [{ method: "anvil_setCode", params: [address, code] }]),
		],
	);
	for (const [i, outcome] of (await chain.batch(calls)).entries()) {
		if (!outcome.ok) throw new Error(`${calls[i]?.method}: ${outcome.message}`);
	}
}

function quantity(value: bigint | number): string {
	return `0x${value.toString(16)}`;
}

/** The bytes as they go into a call. */
export function hex(bytes: Uint8Array): string {
	return `0x${Buffer.from(bytes).toString("hex")}`;
}

/** One test a row; `fixture` is asked for when they run. */
export function testHttpRows(rows: readonly HttpRow[], fixture: () => BadInputFixture): void {
	for (const row of rows) {
		test(`http: ${row.name}`, async () => {
			const { wire, checkLog } = fixture();
			checkAnswer(await wire.send(row.send), row);
			checkLog();
		});
	}
}

/** One test a row. */
export function testBytesRows(rows: readonly BytesRow[], fixture: () => BadInputFixture): void {
	for (const row of rows) {
		test(`bytes: ${row.name}`, async () => {
			const { system, checkLog } = fixture();
			const response = await sendBytes(system.relay.port, row.bytes, row.half);
			if (row.silent === true) assert.equal(response, null);
			else {
				assert.ok(response !== null, "the connection was closed without an answer");
				checkAnswer(response, row);
			}
			checkLog();
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
			const { wire, checkLog } = fixture();
			const body = JSON.stringify(requestOf(row));
			const response = await wire.send({ path: row.path ?? "/", body });
			checkAnswer(response, { status: 200, answer: expectedAnswer(row) });
			if (row.error === undefined) await then(row.result);
			checkLog();
		});
	}
}

/** In batches of at most `size` each of the calls is answered as alone, in their order. */
export function testBatches(rows: readonly CallRow[], size: number, fixture: () => BadInputFixture): void {
	test("calls in batches are answered as alone, in order", async () => {
		for (let from = 0; from < rows.length; from += size) {
			const some = rows.slice(from, from + size);
			const { status, body } = await fixture().wire.send({ body: JSON.stringify(some.map(requestOf)) });
			assert.equal(status, 200);
			assert.deepEqual(JSON.parse(body), some.map(expectedAnswer));
		}
		fixture().checkLog();
	});
}

/** A call row as it is sent; its id is its name. */
export function requestOf({ name, method, params }: CallRow): object {
	return { jsonrpc: "2.0", id: name, method, params };
}

/** The answer to a call row, as JSON. */
export function expectedAnswer({ name, error, result }: CallRow): unknown {
	return error === undefined ? success(name, result) : { jsonrpc: "2.0", id: name, error };
}

function checkAnswer({ status, body, headers }: WireResponse, expected: Expected): void {
	assert.deepEqual([status, readJson(body)], [expected.status, expected.answer], body.slice(0, 500));
	for (const [name, value] of Object.entries(expected.headers ?? {}))
		assert.equal(headers[name], value, name);
	if (expected.answer !== undefined) {
		assert.equal(headers["content-type"], "application/json");
		assert.equal(headers["access-control-allow-origin"], "*");
	}
}

function readJson(text: string): unknown {
	if (text === "") return undefined;
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}
