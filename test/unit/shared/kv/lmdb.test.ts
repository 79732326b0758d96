// The memory that LMDB's mapped file takes. A full disk under LMDB: the writes that are not tried
// then, and the operator's messages.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { DATA_FILE } from "../../../../shared/kv/dataFolder.ts";
import { DiskRoom, openLmdb } from "../../../../shared/kv/lmdb.ts";

const KIB = 1024;
/** Large values, and how many are written at once, each with a small one. */
const [VALUES, AT_ONCE, LARGE_BYTES, SMALL_BYTES] = [400, 5, 128 * KIB, 300];
/** The part of the file that may be in memory: each small value's page, and 64 KiB around it. */
const MAPPED_PART = 0.2;

test("a store of large values takes little memory", {
	skip: process.platform === "linux" ? false : "needs /proc",
}, async () => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-mapped-"));
	const kv = await openLmdb(folder);
	const [large, small] = [Buffer.alloc(LARGE_BYTES, 1), Buffer.alloc(SMALL_BYTES, 1)];
	for (let n = 0; n < VALUES; n += AT_ONCE) {
		const names = Array.from({ length: AT_ONCE }, (_, i) => String(n + i).padStart(3, "0"));
		await kv.write(
			names.flatMap((name) => [
				{ key: `a/${name}`, value: large },
				{ key: `b/${name}`, value: small },
			]),
		);
	}
	const part = mappedBytes(join(folder, DATA_FILE)) / statSync(join(folder, DATA_FILE)).size;
	await kv.close();
	rmSync(folder, { recursive: true });
	assert.ok(part < MAPPED_PART, `${Math.round(100 * part)} % of the file`);
});

/**
 * Memory that a mapped file takes in this process, in bytes.
 * https://docs.kernel.org/filesystems/proc.html, `smaps`
 */
function mappedBytes(path: string): number {
	const maps = readFileSync("/proc/self/smaps", "utf8").split(/\n(?=[0-9a-f]+-)/);
	return maps
		.filter((map) => map.split("\n", 1)[0]?.endsWith(path))
		.reduce((sum, map) => sum + Number(/^Rss:\s+(\d+) kB$/m.exec(map)?.[1]) * KIB, 0);
}

// LMDB must not see a write fail: its error message overruns the heap.
test("after a failed write nothing is written until a trial write succeeds", async () => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-room-"));
	const room = new DiskRoom(folder, () => 0);
	await room.check();
	room.failed();
	for (let i = 0; i < 2; i++) await assert.rejects(room.check(), { code: "ENOENT" });
	assert.deepEqual(readdirSync(folder), []);
	rmSync(folder, { recursive: true });
});

/**
 * The messages about a small volume: one that is written to until it is full and then gets more
 * room, and one that is too small from the beginning.
 */
const FILLED = `
	const texts = [];
	const log = createLogger("info", "relay", { write: (text) => void texts.push(JSON.parse(text)) });
	const kv = await openLmdb(process.env.PLACE + "/relay", log);
	let i = 0;
	const write = () => kv.write([{ key: "k" + i++, value: Buffer.alloc(200_000) }]).then(() => null, ({ code }) => code);
	while ((await write()) === null);
	const { trouble } = kv;
	execFileSync("mount", ["-o", "remount,size=64m", process.env.PLACE]);
	await pause(systemClock, 150);
	const again = [await write(), kv.trouble];
	console.log(JSON.stringify({ trouble, again, texts }));
	process.exit(0);`;
/** Another program takes all that is free between two writes, and gives it back later. */
const TAKEN = `
	const kv = await openLmdb(process.env.PLACE + "/relay");
	let i = 0;
	const write = () => kv.write([{ key: "k" + i++, value: Buffer.alloc(20_000, 1) }]).then(() => null, ({ code }) => code);
	const codes = [await write()];
	const other = openSync(process.env.PLACE + "/other", "w");
	for (const size of [1 << 20, 4_096]) {
		try {
			while (writeSync(other, Buffer.alloc(size)) === size);
		} catch {}
	}
	while (codes.length < 400) codes.push(await write());
	rmSync(process.env.PLACE + "/other");
	closeSync(other);
	await pause(systemClock, 150);
	codes.push(await write());
	const found = [];
	for await (const [key] of kv.range("", "~")) found.push(key);
	const stored = codes.flatMap((code, n) => (code === null ? ["k" + n] : []));
	console.log(JSON.stringify({ codes: [...new Set(codes)], last: codes.at(-1), isKept: found.sort().join() === stored.sort().join() }));
	process.exit(0);`;
const TOO_SMALL = `
	const told = await openLmdb(process.env.PLACE + "/relay").catch(({ message }) => message);
	console.log(JSON.stringify(told));
	process.exit(0);`;

const MOUNTS = spawnSync("unshare", ["-rm", "true"]).status === 0;
const skip = MOUNTS ? false : "this machine gives no namespace to mount a small volume in";

test("reports a small volume that becomes full with its path, its size, the free space and the needed space", {
	skip,
}, () => {
	const { place, said } = onVolume("20m", FILLED);
	const { trouble, again, texts } = said as {
		readonly trouble: string;
		readonly again: readonly unknown[];
		readonly texts: readonly { readonly msg: string; readonly reason?: string }[];
	};
	const full =
		/^the disk of DATA_DIR is full \(a volume of 20 MiB, of which 1[3456](\.\d)? MiB are free\): expected 16 MiB of free space besides what is written$/;
	assert.match(trouble, full);
	assert.deepEqual(again, [null, null]);
	assert.deepEqual(
		texts.map(({ msg, reason }) => [msg, reason]),
		[
			["DATA_DIR can't be written", `${place}/relay: ${trouble}`],
			["DATA_DIR can be written again", undefined],
		],
	);
});

test("a volume that another program fills between two writes is full, and what was acknowledged is there", {
	skip,
}, () => {
	const { said } = onVolume("64m", TAKEN);
	assert.deepEqual(said, { codes: [null, "DISK_FULL"], last: null, isKept: true });
});

test("a volume that is too small for a new store is refused with its size and what is needed", {
	skip,
}, () => {
	const { place, said } = onVolume("8m", TOO_SMALL);
	assert.equal(
		said,
		`DATA_DIR can't be used: the disk of ${place}/relay is full (a volume of 8 MiB, of which 8 MiB are free): expected 16 MiB of free space, for example on a bigger volume`,
	);
});

/** Runs `code` with a new volume of `size` at PLACE, and parses what it prints. */
function onVolume(size: string, code: string): { readonly place: string; readonly said: unknown } {
	const place = mkdtempSync(join(tmpdir(), "leeward-volume-"));
	const at = (path: string) => JSON.stringify(new URL(`../../../../shared/${path}`, import.meta.url).href);
	const whole = `
		import { execFileSync } from "node:child_process";
		import { closeSync, openSync, rmSync, writeSync } from "node:fs";
		import { pause, systemClock } from ${at("clock.ts")};
		import { openLmdb } from ${at("kv/lmdb.ts")};
		import { createLogger } from ${at("log.ts")};
		setInterval(() => {}, 1_000);
		${code}`;
	const node = [process.execPath, ...process.execArgv, "--input-type=module", "--eval", whole];
	const mounted = `mount -t tmpfs -o size=${size} none "$PLACE" && exec "$@"`;
	try {
		const printed = execFileSync("unshare", ["-rm", "sh", "-ec", mounted, "sh", ...node], {
			cwd: fileURLToPath(new URL("../../../..", import.meta.url)),
			...{ encoding: "utf8" as const, timeout: 60_000, env: { ...process.env, PLACE: place } },
		});
		return { place, said: JSON.parse(printed.trim()) };
	} finally {
		rmSync(place, { recursive: true });
	}
}
