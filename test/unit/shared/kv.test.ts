// Stores: the TLS required by a database URL, read as libpq does, a full disk, and commits of many writes.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Clock, nextTurn, systemClock } from "../../../shared/clock.ts";
import { GroupCommit } from "../../../shared/kv/groupCommit.ts";
import { DiskRoom } from "../../../shared/kv/lmdb.ts";
import { databaseAddress } from "../../../shared/kv/postgres/database.ts";

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

// LMDB must not see a write fail: its error message overruns the heap.
test("after a failed write nothing is written until a trial write succeeds", async () => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-room-"));
	const room = new DiskRoom(folder);
	await room.check();
	room.failed();
	for (let i = 0; i < 2; i++) await assert.rejects(room.check(), { code: "ENOENT" });
	assert.deepEqual(readdirSync(folder), []);
	rmSync(folder, { recursive: true });
});

test("the callers of a commit of many writes go on in their order, some in each turn of the event loop", async () => {
	for (const outcome of ["written", "failed"] as const) {
		let worked = 0;
		const clock: Clock = { ...systemClock, monotonic: () => worked };
		const group = new GroupCommit(async () => {
			if (outcome === "failed") throw new Error("the disk is full");
		}, clock);
		const told: number[] = [];
		// Each of them works for half a millisecond, some promises later.
		const goOn = async (i: number, how: string): Promise<void> => {
			for (let step = 0; step < 20; step++) await null;
			worked += 0.5;
			if (how === outcome) told.push(i);
		};
		const all = Array.from({ length: 300 }, (_, i) =>
			group.write([{ key: `key ${i}`, value: Buffer.alloc(1) }]).then(
				() => goOn(i, "written"),
				() => goOn(i, "failed"),
			),
		);
		let most = 0;
		for (let before = 0; told.length < all.length; before = told.length) {
			await nextTurn();
			most = Math.max(most, told.length - before);
		}
		assert.ok(most <= 20, `${most} in one turn`);
		assert.deepEqual(told, [...all.keys()]);
	}
});

test("a store is idle once every caller was told", async () => {
	const group = new GroupCommit(async () => {});
	let told = 0;
	for (let i = 0; i < 300; i++) void group.write([{ key: "key", value: null }]).then(() => told++);
	await group.idle();
	assert.equal(told, 300);
});
