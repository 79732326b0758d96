// LMDB maps its file into memory, and maps twice as much when a write needs more. A store grows far
// past its first map while it is read and written. If the system refuses a larger map, LMDB ends
// the process, and all acknowledged writes are there at the next start.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { StorePlaces } from "../support/storeEngines.ts";

const MIB = 1024 * 1024;
/** The map that lmdb-js makes of a new store by itself, in bytes. */
const FIRST_MAP = 128 * 1024;
const VALUE_BYTES = 200_000;
const PAGE = 4_096;
/**
 * Values before the limit, and in all; and the address space that is left then, less than the next
 * map takes.
 */
const [FILLED, WRITTEN, HEADROOM] = [200, 600, 64 * MIB];

const places = new StorePlaces();
after(() => places.remove());
const engine = places.engines.find(({ name }) => name === "lmdb");
assert.ok(engine);

const keyOf = (n: number) => `k/${String(n).padStart(6, "0")}`;
const bytesOf = (n: number) => Buffer.alloc(VALUE_BYTES, n % 251);

/** Each of these values is in the store at `place`. */
async function assertHas(place: string, numbers: readonly number[]): Promise<void> {
	const kv = await openLmdb(place);
	for (const n of numbers) assert.ok((await kv.get(keyOf(n)))?.equals(bytesOf(n)), `value ${n}`);
	await kv.close();
}

test("a store grows far past its first map while ranges over it are open", async () => {
	const place = await engine.newPlace();
	const kv = await openLmdb(place);
	const count = Math.ceil((64 * FIRST_MAP) / VALUE_BYTES);
	await kv.write([{ key: keyOf(0), value: bytesOf(0) }]);
	const kept: Buffer[] = [];
	for (let n = 1; n < count; n += 1) {
		const range = kv.range("k/", "k/~")[Symbol.asyncIterator]();
		const [, first] = (await range.next()).value;
		await kv.write([{ key: keyOf(n), value: bytesOf(n) }]);
		// The range began before the write, and the map may be another one now.
		const rest: string[] = [];
		for (let next = await range.next(); !next.done; next = await range.next()) rest.push(next.value[0]);
		assert.equal(rest.length, n - 1);
		kept.push(first);
	}
	for (const value of kept) assert.ok(value.equals(bytesOf(0)));
	await kv.close();
	await assertHas(place, [...Array(count).keys()]);
});

const HAS_PRLIMIT = spawnSync("prlimit", ["--version"]).status === 0;

const skip = HAS_PRLIMIT ? false : "prlimit is not installed";

for (const isLimited of [true, false]) {
	const title = isLimited
		? "a process that gets no larger map ends, and all that it acknowledged is there"
		: "a process that gets a larger map writes on, and all that it acknowledged is there";
	test(title, { skip }, async () => {
		const place = await engine.newPlace();
		const writer = places.another(
			engine,
			`const kv = await open(${JSON.stringify(place)});
			let n = 0;
			const write = () => {
				const own = n++;
				const value = Buffer.alloc(${VALUE_BYTES}, own % 251);
				return kv.write([{ key: "k/" + String(own).padStart(6, "0"), value }]).then(() => say("done " + own));
			};
			while (n < ${FILLED}) await write();
			say("filled");
			await new Promise((resolve) => process.stdin.once("data", resolve));
			while (n < ${WRITTEN}) await write();
			process.exit(0);`,
		);
		const ended = once(writer.child, "exit");
		const done: number[] = [];
		const read = async (last: string): Promise<void> => {
			for (let line = await writer.line(); line !== last; line = await writer.line())
				done.push(Number(line.slice("done ".length)));
		};
		await read("filled");
		if (isLimited) {
			const pages = Number(readFileSync(`/proc/${writer.child.pid}/statm`, "utf8").split(" ")[0]);
			execFileSync("prlimit", ["--pid", String(writer.child.pid), `--as=${pages * PAGE + HEADROOM}`]);
		}
		writer.child.stdin?.write("go\n");
		await read("it ended");
		const [code] = await ended;
		assert.equal(code === 0, !isLimited);
		assert.equal(done.length === WRITTEN, !isLimited);
		assert.ok(done.length >= FILLED);
		await assertHas(place, done);
	});
}
