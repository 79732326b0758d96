// The folder of the embedded store: what is left there by others, who may write it, and what must
// be on disk before LMDB opens.

import assert from "node:assert/strict";
import {
	chmodSync,
	existsSync,
	mkdirSync,
	mkdtempSync,
	rmSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { makeFolder } from "../../../../shared/kv/dataFolder.ts";
import { openLmdb } from "../../../../shared/kv/lmdb.ts";
import { silentLogger } from "../../../../shared/log.ts";

const root = mkdtempSync(join(tmpdir(), "leeward-folder-"));
chmodSync(root, 0o755);
after(() => rmSync(root, { recursive: true, force: true }));

/** Nobody's id on Linux. */
const NOBODY = 65_534;

/** Runs `work` as a user who is not root. */
function asUser<T>(work: (uid: number) => T): T {
	if (process.getuid?.() !== 0) return work(process.getuid?.() ?? 0);
	process.seteuid?.(NOBODY);
	try {
		// The messages name the real id, as in a process of that user.
		return work(0);
	} finally {
		process.seteuid?.(0);
	}
}

/** A folder that another user owns, or that at least this one may not change. */
function newFolder(name: string, mode: number): string {
	const folder = join(root, name);
	mkdirSync(folder);
	chmodSync(folder, mode);
	return folder;
}

test("a folder that may be written but not closed to others is taken, with a warning", () => {
	const warnings: string[] = [];
	const log = { ...silentLogger, warn: (message: string) => warnings.push(message) };
	const folder = join(root, "shared");
	// The system's folder for temporary files is root's, and everybody may write there.
	if (process.getuid?.() === 0) newFolder("shared", 0o777);
	else symlinkSync("/tmp", folder);
	asUser(() => makeFolder(folder, log));
	assert.deepEqual(warnings, ["could not close DATA_DIR to other users of this machine"]);
});

test("a folder that may not be written is refused with its path, its owner, and the command that mends it", () => {
	const folder = newFolder("closed", 0o555);
	const { uid } = statSync(folder);
	for (const [path, make] of [
		[join(folder, "relay"), ""],
		[join(folder, "it's new", "relay"), `mkdir -p '${folder}/it'\\''s new' && `],
	] as const) {
		asUser((user) =>
			assert.throws(() => makeFolder(path, silentLogger), {
				code: "DATA_FOLDER",
				message: `DATA_DIR can't be used: user ${user} may not write ${path} (${folder} belongs to user ${uid}): expected a folder or volume of that user, for example by ${make}chown -R ${user} ${make === "" ? folder : `'${folder}/it'\\''s new'`}`,
			}),
		);
	}
});

test("before LMDB opens its lock file has all its blocks, which it writes to through memory", async () => {
	const folder = join(root, "lock");
	for (let start = 0; start < 2; start += 1) {
		await (await openLmdb(folder)).close();
		const { size, blocks } = statSync(join(folder, "lock.mdb"));
		assert.ok(blocks * 512 >= size, `${blocks} blocks for ${size} bytes`);
		// As earlier versions left it: with a hole.
		rmSync(join(folder, "lock.mdb"));
	}
});

/** Remains that may lie at the place of the data. True: begun anew; false: refused. */
const REMAINS: readonly (readonly [string, Buffer, boolean])[] = [
	["nothing but a name, since the disk was full", Buffer.alloc(0), true],
	["half of the first pages, since the power went", Buffer.alloc(4_096, 1), true],
	["another program's file", Buffer.alloc(8_192, 1), false],
	["a file full of zeros", Buffer.alloc(1 << 16), false],
];

for (const [i, [what, bytes, isBegun]] of REMAINS.entries()) {
	test(`data.mdb that is ${what}: ${isBegun ? "begun anew" : "refused and kept"}`, async () => {
		const folder = newFolder(`remains ${i}`, 0o700);
		const file = join(folder, "data.mdb");
		writeFileSync(file, bytes);
		if (isBegun) {
			const kv = await openLmdb(folder);
			await kv.write([{ key: "a", value: Buffer.from("1") }]);
			assert.equal(String(await kv.get("a")), "1");
			await kv.close();
			assert.equal(existsSync(join(folder, "trial")), false);
			return;
		}
		const damaged = { code: "DATA_FOLDER", message: /data\.mdb is damaged, or of another program/ };
		// Twice: a refused start leaves no lock behind.
		for (let start = 0; start < 2; start += 1) await assert.rejects(openLmdb(folder), damaged);
		assert.equal(statSync(file).size, bytes.length);
	});
}
