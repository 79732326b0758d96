// The words and settings of `npm run store`: what is none is refused by what was expected, and no password is printed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../../../shared/clock.ts";
import { runStoreCommand } from "../../../../../shared/kv/copy/command.ts";
import { faultLine } from "../../../../../shared/kv/copy/faults.ts";
import { DiskFullError } from "../../../../../shared/kv/diskRoom.ts";

interface Place {
	readonly dataDir: string;
	readonly url: string;
}

async function run({ dataDir, url }: Place, ...args: readonly string[]) {
	const [said, complaints]: [string[], string[]] = [[], []];
	const code = await runStoreCommand({
		args,
		env: { DATA_DIR: dataDir, DATABASE_URL: url },
		clock: systemClock,
		say: (line) => said.push(line),
		complain: (line) => complaints.push(line),
	});
	return { code, stdout: said.join("\n"), stderr: complaints.join("\n") };
}

test("words and settings that are none are refused by what was expected; no password is printed", async () => {
	const secret = "s3cr3tpassword";
	const place = { dataDir: "./nowhere", url: `postgres://leeward:${secret}@127.0.0.1:1/leeward` };
	const rows: readonly (readonly [Place, readonly string[], RegExp])[] = [
		[place, [], /expected copy, migrate or --help, for example npm run store -- copy lmdb postgres/],
		[place, ["copy"], /expected lmdb and postgres in either order, for example/],
		[place, ["copy", "lmdb", "lmdb"], /expected lmdb and postgres in either order/],
		[place, ["copy", "lmdb", "mysql"], /expected lmdb and postgres in either order/],
		[
			place,
			["copy", "lmdb", "postgres", "pool"],
			/expected relay or boost, for example npm run store -- copy/,
		],
		[place, ["copy", "lmdb", "postgres", "relay", "boost"], /expected relay or boost/],
		[place, ["migrate", "now"], /expected npm run store -- migrate/],
		[place, ["migrate"], /the database of DATABASE_URL does not answer \(ECONNREFUSED\)/],
		[place, ["copy", "postgres", "lmdb"], /the database of DATABASE_URL does not answer \(ECONNREFUSED\)/],
		[{ ...place, url: "" }, ["migrate"], /DATABASE_URL is missing: expected a postgres:\/\/ URL, for ex/],
		[
			{ ...place, url: `http://u:${secret}@x` },
			["copy", "postgres", "lmdb"],
			/DATABASE_URL is not valid: expected a postgres/,
		],
		[
			{ ...place, url: `${place.url}?sslmode=${secret}` },
			["migrate"],
			/DATABASE_URL: expected an sslmode of/,
		],
	];
	for (const [given, args, expected] of rows) {
		const { code, stdout, stderr } = await run(given, ...args);
		assert.deepEqual([code, stdout], [1, ""], args.join(" "));
		assert.match(stderr, expected);
		assert.match(stderr, /^[^\n]+$/);
		assert.ok(!stderr.includes(secret), stderr);
	}
	const help = (await run(place, "copy", "--help")).stdout;
	for (const word of [
		"copy <from> <to> [relay|boost]",
		"migrate",
		"DATA_DIR",
		"DATABASE_URL",
		"DATABASE_VERIFY",
	]) {
		assert.ok(help.includes(word), word);
	}
	assert.ok(!help.includes(secret));
});

test("a fault is told by what is ours: the texts of others are not in its line", () => {
	const other = (fields: object) => Object.assign(new Error("user leeward at db.example: s3cr3t"), fields);
	const rows: readonly (readonly [unknown, string])[] = [
		[new DiskFullError(), "the disk of the data folder is full"],
		[
			other({ code: "28P01" }),
			"the database of DATABASE_URL refuses (28P01): expected a user and password that it knows",
		],
		[other({ code: "53100" }), "the database of DATABASE_URL refuses (53100): expected room on its disk"],
		[
			other({ commitError: Promise.resolve() }),
			"the folder of DATA_DIR can't be written: expected room on its disk",
		],
		[other({ code: "22P02" }), "can't go on (22P02)"],
		[other({}), "can't go on (Error)"],
		["s3cr3t", "can't go on (string)"],
		[null, "can't go on (object)"],
	];
	for (const [thrown, line] of rows) assert.equal(faultLine(thrown), line);
});
