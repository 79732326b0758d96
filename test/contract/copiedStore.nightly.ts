// The folder of a store that is copied file by file, by cp, while its process writes. A start from
// the copy has all that was acknowledged before the copy began, or says that the copy is damaged.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { DamagedStoreError } from "../../shared/kv/damage.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { sized } from "../support/length.ts";
import { StorePlaces } from "../support/storeEngines.ts";
import { until } from "../support/until.ts";

/** Copies of one store. */
const COPIES = sized(8, 40);
/** Two values of a leaf: pages have the same number of entries, whatever is in them. */
const [KEYS, VALUE_BYTES] = [24_000, 1_500];
/** Which key is written by which write. */
const STEP = 3_571;

const places = new StorePlaces();
after(() => places.remove());
const engine = places.engines.find(({ name }) => name === "lmdb");
assert.ok(engine);

const WRITER = `
	const value = (version) => {
		const bytes = Buffer.alloc(${VALUE_BYTES}, version % 251);
		bytes.writeUInt32BE(version);
		return bytes;
	};
	const key = (n) => "k/" + String(n).padStart(6, "0");
	for (let from = 0; from < ${KEYS}; from += 1_000)
		await kv.write(Array.from({ length: 1_000 }, (_, i) => ({ key: key(from + i), value: value(0) })));
	say("0");
	for (let version = 1; ; version += 1) {
		await kv.write([{ key: key((version * ${STEP}) % ${KEYS}), value: value(version) }]);
		say(String(version));
	}`;

/**
 * Fails unless a start from `copy` has what the first `told` writes wrote; null: it says that it is
 * damaged.
 */
async function versionsIn(copy: string, told: number): Promise<true | null> {
	const kv = await openLmdb(copy).catch((thrown: unknown) => {
		if (!(thrown instanceof DamagedStoreError)) throw thrown;
		assert.match(thrown.message, /data\.mdb is damaged: .*: expected a backup in its place, or npm run /);
		return null;
	});
	if (kv === null) return null;
	const expected = new Map<number, number>();
	for (let version = 1; version <= told; version += 1) expected.set((version * STEP) % KEYS, version);
	let n = 0;
	for await (const [key, value] of kv.range("k/", "k/~")) {
		assert.equal(key, `k/${String(n).padStart(6, "0")}`, "each entry is there once");
		const version = value.readUInt32BE();
		assert.ok(version >= (expected.get(n) ?? 0), `entry ${n} is older than its acknowledgement`);
		assert.ok(value.subarray(4).equals(Buffer.alloc(VALUE_BYTES - 4, version % 251)), `entry ${n}`);
		n += 1;
	}
	assert.equal(n, KEYS);
	await kv.close();
	return true;
}

/** Whether the process is stopped. */
function isStopped(pid: number | undefined): boolean {
	return /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
}

for (const isRunning of [true, false]) {
	const title = isRunning
		? "a copy made while the process writes has what was acknowledged, or is damaged"
		: "a copy made while the process is stopped has what was acknowledged";
	test(title, { skip: process.platform === "linux" ? false : "/proc says when it is stopped" }, async (t) => {
		const place = await engine.newPlace();
		const writer = places.another(engine, `const kv = await open(${JSON.stringify(place)});${WRITER}`);
		let told = -1;
		const reading = (async () => {
			for (let line = await writer.line(); line !== "it ended"; line = await writer.line())
				told = Number(line);
		})();
		await until("it is filled", () => told >= 0);
		let whole = 0;
		for (let i = 0; i < COPIES; i += 1) {
			const before = told;
			await until("it has written on", () => told > before);
			if (!isRunning) {
				writer.child.kill("SIGSTOP");
				await until("it is stopped", () => isStopped(writer.child.pid));
			}
			const acknowledged = told;
			const copy = join(await engine.newPlace(), "relay");
			await promisify(execFile)("cp", ["-r", place, copy]);
			if (!isRunning) writer.child.kill("SIGCONT");
			if ((await versionsIn(copy, acknowledged)) !== null) whole += 1;
			rmSync(copy, { recursive: true, force: true });
		}
		t.diagnostic(`${whole} of ${COPIES} copies are whole`);
		if (!isRunning) assert.equal(whole, COPIES);
		await writer.kill();
		await reading;
	});
}
