// A store in parts on a real PostgreSQL: which part a process gets, what it sees of the others, and
// that records move only between the two processes that the move is between, while it is wanted.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { systemClock } from "../../shared/clock.ts";
import type { LeftPart, SharedStore, StoreParts, Wish } from "../../shared/kv/port.ts";
import { openPart } from "../../shared/kv/postgres/parts.ts";
import { silentLogger } from "../../shared/log.ts";
import { newDatabase } from "../support/engine.ts";
import { until } from "../support/until.ts";

const SENDER = `0x${"ab".repeat(20)}`;
const OTHER = `0x${"cd".repeat(20)}`;
const HASH = `0x${"01".repeat(32)}`;
const KEY = `b/00000001/${HASH}`;

type Part = SharedStore & { readonly parts: StoreParts };

async function opened(t: TestContext, url: string): Promise<Part> {
	const kv = await openPart(
		{ url, verify: false, store: "boost" },
		{ clock: systemClock, log: silentLogger },
	);
	t.after(() => kv.close());
	assert.ok(kv.parts !== undefined);
	return kv as Part;
}

const put = (key: string, value: string, sender?: string) => ({ key, value: Buffer.from(value), sender });

async function rowsOf(url: string, text: string): Promise<readonly Record<string, unknown>[]> {
	const client = new pg.Client({ connectionString: url });
	await client.connect();
	const { rows } = await client.query<Record<string, unknown>>(text);
	await client.end();
	return rows;
}

/** The request of `taker` to `giver`. */
async function wished(giver: Part, taker: Part, sender = SENDER): Promise<Wish> {
	await taker.parts.wish(sender, [giver.parts.own]);
	const [wish] = await giver.parts.wishes();
	assert.ok(wish !== undefined);
	return wish;
}

test("each process gets the first free part, and a single one always the first", async (t) => {
	const url = await newDatabase();
	const one = await opened(t, url);
	const two = await opened(t, url);
	assert.deepEqual([one.parts.own, two.parts.own], ["boost", "boost/2"]);
	await one.close();
	assert.equal((await opened(t, url)).parts.own, "boost");
	assert.equal((await opened(t, url)).parts.own, "boost/3");
});

test("a part that was left in order may be opened at once, one with a process never", async (t) => {
	const url = await newDatabase();
	const [one, two] = [await opened(t, url), await opened(t, url)];
	assert.deepEqual(await two.parts.others(), [{ part: "boost", isLeft: false }]);
	assert.equal(await two.parts.open("boost"), null);
	await one.write([put(KEY, "row", SENDER)]);
	await one.close();
	assert.deepEqual(await two.parts.others(), [{ part: "boost", isLeft: true }]);
	const left = (await two.parts.open("boost")) as LeftPart;
	assert.deepEqual(await left.moveHere([KEY]), { left: [], isFenced: false });
	await left.leave(true);
	assert.equal(String(await two.get(KEY)), "row");
	assert.deepEqual(await two.parts.others(), [], "there is nothing to look for");
});

test("records are found in other parts by account and by hash, and archived ones by their key", async (t) => {
	const url = await newDatabase();
	const [one, two] = [await opened(t, url), await opened(t, url)];
	await one.write([put(KEY, "row", SENDER), put(`e/${HASH}`, "ended"), put("m/x", "no row")]);
	const found = [
		{ part: "boost", key: KEY, value: Buffer.from("row") },
		{ part: "boost", key: `e/${HASH}`, value: Buffer.from("ended") },
	];
	assert.deepEqual(await two.parts.ofSender(SENDER, `e/${HASH}`), found);
	assert.deepEqual(await two.parts.ofHashes([HASH], [`e/${HASH}`]), found);
	assert.deepEqual(await two.parts.ofSender(SENDER, ""), [found[0]]);
	assert.deepEqual(await one.parts.ofSender(SENDER, ""), [], "these are its own");
	assert.deepEqual(await one.parts.ownOf(SENDER), [found[0]]);
	const both = await Promise.all([two.parts.ofSender(SENDER, ""), two.parts.ofSender(OTHER, `e/${HASH}`)]);
	assert.deepEqual(both, [[found[0]], [found[1]]], "asked at the same time");
	assert.deepEqual(await two.parts.alsoElsewhere([SENDER, OTHER]), [SENDER]);
});

test("a requested sender moves, and both processes are notified", async (t) => {
	const url = await newDatabase();
	const [one, two] = [await opened(t, url), await opened(t, url)];
	let news = { one: 0, two: 0 };
	one.parts.onNews(() => {
		news = { ...news, one: news.one + 1 };
	});
	two.parts.onNews(() => {
		news = { ...news, two: news.two + 1 };
	});
	await one.write([put(KEY, "row", SENDER)]);
	const wish = await wished(one, two);
	await until("it is asked", () => news.one === 1);
	assert.equal(await two.parts.isOpen(SENDER), true);
	assert.deepEqual(await one.parts.give([KEY], wish), { left: [], isFenced: false });
	assert.equal(await two.parts.isOpen(SENDER), false);
	await one.parts.granted(wish);
	await until("it is notified", () => news.two === 1);
	assert.deepEqual([await one.get(KEY), String(await two.get(KEY))], [null, "row"]);
});

test("a wish that was taken back is not granted, nor one of a process that is gone, nor by one that is", async (t) => {
	const url = await newDatabase();
	const [one, two] = [await opened(t, url), await opened(t, url)];
	await one.write([put(KEY, "row", SENDER)]);
	const wish = await wished(one, two);
	await two.parts.unwish(SENDER);
	assert.deepEqual((await one.parts.give([KEY], wish)).left, [KEY]);

	const again = await wished(one, two);
	await two.close();
	const next = await opened(t, url);
	assert.equal(next.parts.own, "boost/2");
	assert.deepEqual(await one.parts.give([KEY], again), { left: [KEY], isFenced: true });

	const last = await wished(one, next);
	await rowsOf(url, "UPDATE leeward_holder SET epoch = epoch + 1 WHERE store = 'boost'");
	assert.deepEqual(await one.parts.give([KEY], last), { left: [KEY], isFenced: true });
	assert.equal(await next.get(KEY), null);
});

test("what the taker has under the same key stays with both", async (t) => {
	const url = await newDatabase();
	const [one, two] = [await opened(t, url), await opened(t, url)];
	const second = KEY.replace("1/", "2/");
	await one.write([put(KEY, "one's", SENDER), put(second, "moves", SENDER)]);
	await two.write([put(KEY, "two's", SENDER)]);
	assert.deepEqual((await one.parts.give([KEY, second], await wished(one, two))).left, [KEY]);
	assert.deepEqual(
		[`${await one.get(KEY)}`, `${await two.get(KEY)}`, `${await two.get(second)}`],
		["one's", "two's", "moves"],
	);
});

test("a database of an earlier version is refused, and left as it is", async (t) => {
	const url = await newDatabase();
	await rowsOf(url, "CREATE TABLE leeward_store (key text)");
	await assert.rejects(opened(t, url), { code: "OTHER_FORMAT" });
	const [columns] = await rowsOf(
		url,
		"SELECT count(*)::integer AS count FROM information_schema.columns WHERE table_name = 'leeward_store'",
	);
	assert.deepEqual(columns, { count: 1 });
});

test("look-ups by hash have two connections of their own, and while these hang all else is answered", async (t) => {
	const url = await newDatabase();
	const [one, two] = [await opened(t, url), await opened(t, url)];
	await one.write([put(KEY, "row", SENDER)]);
	const flood = Array.from({ length: 100 }, (_, i) => `0x${i.toString(16).padStart(64, "0")}`);
	await Promise.all(flood.map((hash) => two.parts.ofHashes([hash, HASH], [`e/${hash}`])));
	const connections = async () =>
		await rowsOf(
			url,
			`SELECT application_name AS name, pid, query ~ 'right\\(key' AS looks FROM pg_stat_activity
				WHERE datname = current_database() AND application_name LIKE 'leeward-%'`,
		);
	const lookups = (await connections()).filter(({ looks }) => looks);
	assert.deepEqual(new Set(lookups.map(({ name }) => name)), new Set(["leeward-boost/2-lookups"]));
	assert.ok(lookups.length <= two.parts.lookups, `${lookups.length} connections`);

	const signal = (name: NodeJS.Signals) => {
		for (const { pid } of lookups) process.kill(Number(pid), name);
	};
	signal("SIGSTOP");
	try {
		const hanging = flood.map((hash) =>
			assert.rejects(two.parts.ofHashes([hash], []), { code: "DATABASE_DOWN" }),
		);
		await two.write([put(`b/00000002/${HASH}`, "own", SENDER)]);
		assert.equal((await two.parts.ofSender(SENDER, "")).length, 1);
		await Promise.all(hanging);
		assert.equal(two.trouble, null, "the database is not down for that");
		await two.write([put(`b/00000003/${HASH}`, "own", SENDER)]);
	} finally {
		signal("SIGCONT");
	}
	const found = () => two.parts.ofHashes([HASH], []).catch(() => []);
	await until("look-ups are answered again", async () => (await found()).length === 3);
});
