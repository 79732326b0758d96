// The accounts that several boost instances share: which of two writes is applied, what is found,
// and which accounts are taken over. On a real PostgreSQL, and on the database of the fence's
// model, which must behave like it.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import pg from "pg";
import { systemClock } from "../../shared/clock.ts";
import { enveloped } from "../../shared/kv/archive.ts";
import { type Accounts, AccountTakenError, type Change, type StoreRecord } from "../../shared/kv/port.ts";
import { openAccounts } from "../../shared/kv/postgres/accounts.ts";
import { silentLogger } from "../../shared/log.ts";
import { newDatabase } from "../support/engine.ts";
import { startTcpProxy } from "../support/tcpProxy.ts";
import { until } from "../support/until.ts";
import { SharedDisk } from "../unit/boost-proxy/journal/sharedDisk.ts";

const ONE = `0x${"ab".repeat(20)}`;
const OTHER = `0x${"cd".repeat(20)}`;
/** Records of an account that do not come all at once. */
const MANY = 1_000;
const hashOf = (n: number) => `0x${n.toString(16).padStart(64, "0")}`;
const keyOf = (n: number) => `s/${String(n).padStart(8, "0")}/${hashOf(n)}`;
const endedKeyOf = (n: number) => `e/${hashOf(n)}`;

const put = (n: number, text: string, sender = ONE): Change => {
	return { key: keyOf(n), value: Buffer.from(text), sender };
};
const gone = (n: number): Change => ({ key: keyOf(n), value: null });
const write = (by: Accounts, changes: readonly Change[], sender = ONE, absent: readonly string[] = []) =>
	by.write({ sender, changes, absent });
const textsOf = async (by: Accounts, sender = ONE) =>
	(await storedBy(by, sender)).map(({ value }) => String(value)).sort();
async function storedBy(by: Accounts, sender = ONE): Promise<readonly StoreRecord[]> {
	const records: StoreRecord[] = [];
	for await (const page of by.pages(sender)) records.push(...page);
	return records;
}

interface Engine {
	readonly name: string;
	/** Opens instances of one new database. */
	start(): Promise<{ open(): Promise<Accounts>; stop(one: Accounts): Promise<void> }>;
}

const ENGINES: readonly Engine[] = [
	{
		name: "PostgreSQL",
		async start() {
			const url = await newDatabase();
			const closes = new Map<string, () => Promise<void>>();
			return {
				async open() {
					const kv = await openAccounts(
						{ url, verify: false, store: "boost" },
						{ clock: systemClock, log: silentLogger },
					);
					assert.ok(kv.accounts !== undefined);
					closes.set(kv.accounts.instance, () => kv.close());
					return kv.accounts;
				},
				stop: async ({ instance }) => closes.get(instance)?.(),
			};
		},
	},
	{
		name: "the model's database",
		async start() {
			const disk = new SharedDisk();
			let count = 0;
			return {
				open: async () => disk.open(`instance ${count++}`).accounts,
				stop: async ({ instance }) => void disk.instances.set(instance, { isSilent: true, reaches: false }),
			};
		},
	},
];

for (const engine of ENGINES) {
	describe(engine.name, () => {
		it("of two instances that have read an account, the first to write wins, and the other reads it again", async () => {
			const { open } = await engine.start();
			const [a, b] = [await open(), await open()];
			await Promise.all([a.load(ONE), b.load(ONE)]);
			const outcomes = await Promise.allSettled([write(a, [put(1, "a")]), write(b, [put(1, "b")])]);
			const [winner, loser] = outcomes[0]?.status === "fulfilled" ? [a, b] : [b, a];
			const lost = outcomes.find(({ status }) => status === "rejected") as PromiseRejectedResult;
			assert.ok(lost.reason instanceof AccountTakenError);
			assert.deepEqual(await textsOf(loser), [winner === a ? "a" : "b"]);
			assert.deepEqual([winner.isHome(ONE), loser.isHome(ONE), loser.knows(ONE)], [true, false, false]);
			await assert.rejects(write(loser, [put(1, "again")]), AccountTakenError, "it has not read it");
			await loser.load(ONE);
			await write(loser, [put(2, "too")]);
			assert.equal((await textsOf(winner)).length, 2);
			assert.equal(await winner.isCurrent(ONE), false);
			await assert.rejects(write(winner, [gone(1)]), AccountTakenError);
			assert.equal((await textsOf(winner)).length, 2, "nothing of it was applied");
		});

		it("of four instances that write an account at once, again until each has won, none is overwritten", async () => {
			const { open } = await engine.start();
			const all = await Promise.all([open(), open(), open(), open()]);
			const EACH = 10;
			await Promise.all(
				all.map(async (by, i) => {
					for (let n = 0; n < EACH; ) {
						const count = (await by.load(ONE)).length;
						// Each decides by what it has read.
						const wrote = await write(by, [put(count + 1, `${i}`)]).then(
							() => true,
							(thrown: unknown) => assert.ok(thrown instanceof AccountTakenError) === undefined && false,
						);
						if (wrote) n += 1;
					}
				}),
			);
			const texts = await textsOf(all[0] as Accounts);
			assert.deepEqual(
				texts,
				all.flatMap((_, i) => Array<string>(EACH).fill(`${i}`)),
			);
		});

		it("other accounts of the same commit are written all the same, and so is what belongs to none", async () => {
			const { open } = await engine.start();
			const [a, b] = [await open(), await open()];
			await Promise.all([a.load(ONE), a.load(OTHER), b.load(ONE)]);
			await write(b, [put(1, "b")]);
			const outcomes = await Promise.allSettled([
				write(a, [put(1, "a")]),
				write(a, [put(2, "other", OTHER)], OTHER),
				a.write({ sender: null, changes: [{ key: "m/x", value: Buffer.from("x") }], absent: [] }),
			]);
			assert.deepEqual(
				outcomes.map(({ status }) => status),
				["rejected", "fulfilled", "fulfilled"],
			);
			assert.deepEqual([await textsOf(b), await textsOf(b, OTHER)], [["b"], ["other"]]);
			assert.equal(await a.count("m/"), 1);
		});

		it("an account is not written if a key exists that must not", async () => {
			const { open } = await engine.start();
			const a = await open();
			await a.load(ONE);
			await write(a, [{ key: endedKeyOf(1), value: Buffer.from("ended") }]);
			await assert.rejects(write(a, [put(1, "new")], ONE, [endedKeyOf(1)]), AccountTakenError);
			const [ended] = await a.load(ONE, [endedKeyOf(1), endedKeyOf(2)]);
			assert.equal(String(ended?.value), "ended");
			await write(a, [put(2, "new")], ONE, [endedKeyOf(2)]);
			assert.deepEqual(await textsOf(a), ["new"]);
		});

		it("records are found by account and by hash, and ended ones by their key", async () => {
			const { open } = await engine.start();
			const [a, b] = [await open(), await open()];
			await Promise.all([a.load(ONE), a.load(OTHER)]);
			await write(a, [put(1, "one"), { key: endedKeyOf(3), value: Buffer.from("ended") }]);
			await write(a, [put(2, "two", OTHER)], OTHER);
			const found = await b.ofHashes([1, 2, 3, 4].map(hashOf), [endedKeyOf(3), endedKeyOf(4)]);
			assert.deepEqual(found.map(({ value }) => String(value)).sort(), ["ended", "one", "two"]);
			assert.deepEqual(
				(await b.load(OTHER)).map(({ key }) => key),
				[keyOf(2)],
			);
			assert.deepEqual(await b.load(`0x${"ef".repeat(20)}`), []);
		});

		it("accounts of a stopped instance are taken over once, those without work left by nobody", async () => {
			const { open, stop } = await engine.start();
			const [a, b, c] = [await open(), await open(), await open()];
			await Promise.all([a.load(ONE), a.load(OTHER)]);
			await write(a, [put(1, "open")]);
			await write(a, [{ key: endedKeyOf(2), value: Buffer.from("ended") }], OTHER);
			assert.deepEqual(await b.takeOver([]), []);
			await stop(a);
			const others = await b.report(true);
			const silent = others.filter(({ isSilent }) => isSilent).map(({ name }) => name);
			assert.deepEqual(silent, [a.instance]);
			const taken = await Promise.all([b.takeOver(silent), c.takeOver(silent)]);
			assert.deepEqual(taken.flat(), [ONE]);
			await b.bury(silent);
			assert.equal((await b.report(true)).length, 1);
		});

		it("an instance that was buried writes nothing until it reports, and reads what it had", async () => {
			const { open, stop } = await engine.start();
			const [a, b] = [await open(), await open()];
			await a.load(ONE);
			await write(a, [put(1, "a")]);
			if (engine.name === "PostgreSQL")
				await until("it is silent", async () => {
					return (await b.report(true)).some(({ isSilent }) => isSilent);
				});
			else await stop(a);
			await b.bury([a.instance]);
			const isLate = (thrown: unknown) => !(thrown instanceof AccountTakenError);
			await assert.rejects(write(a, [put(2, "late")]), isLate);
			assert.deepEqual(await b.takeOver([]), [ONE], "whose home is gone");
			await a.report(true);
			await a.load(ONE);
			await write(a, [put(2, "late")]);
			assert.deepEqual(await textsOf(b), ["a", "late"]);
		});

		it("all records of an account come in the order of their keys, and no one else's", async () => {
			const { open } = await engine.start();
			const [a, b] = [await open(), await open()];
			for (const [sender, from] of [[ONE, 0] as const, [OTHER, MANY] as const]) {
				await a.load(sender);
				const changes = Array.from({ length: MANY }, (_, i) => put(from + i, "", sender));
				await write(a, changes, sender);
			}
			const both = await Promise.all([storedBy(b), storedBy(b, OTHER)]);
			const keys = Array.from({ length: 2 * MANY }, (_, i) => keyOf(i));
			for (const [i, records] of both.entries())
				assert.deepEqual(
					records.map(({ key }) => key),
					keys.slice(i * MANY, (i + 1) * MANY),
				);
		});
	});
}

it("PostgreSQL: a commit whose answer is lost is repeated, and is no lost race", async (t) => {
	const url = new URL(await newDatabase());
	const wire = await startTcpProxy(Number(url.port));
	t.after(() => wire.stop());
	const direct = new pg.Client({ connectionString: url.href });
	await direct.connect();
	t.after(() => direct.end());
	url.port = String(wire.port);
	const kv = await openAccounts(
		{ url: url.href, verify: false, store: "boost" },
		{ clock: systemClock, log: silentLogger },
	);
	t.after(() => kv.close());
	const { accounts } = kv;
	assert.ok(accounts !== undefined);
	await accounts.load(ONE);
	await write(accounts, [put(1, "first")]);
	// The statement waits for the account's row, so that its answer finds no connection.
	await direct.query("BEGIN");
	await direct.query("SELECT 1 FROM leeward_account FOR UPDATE");
	const writing = write(accounts, [put(2, "second")]);
	await until("it waits", async () => {
		const { rows } = await direct.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
		return rows.length > 0;
	});
	wire.cut();
	await direct.query("COMMIT");
	await until("it is committed", async () => {
		const { rows } = await direct.query("SELECT 1 FROM leeward_store WHERE key = $1", [keyOf(2)]);
		return rows.length > 0;
	});
	wire.mend();
	await writing.catch(async () => write(accounts, [put(2, "second")]));
	await write(accounts, [put(3, "third")]);
	assert.deepEqual(await textsOf(accounts), ["first", "second", "third"]);
});

it("PostgreSQL: of a transaction only the metadata is read, and its length", async (t) => {
	const kv = await openAccounts(
		{ url: await newDatabase(), verify: false, store: "boost" },
		{ clock: systemClock, log: silentLogger },
	);
	t.after(() => kv.close());
	const { accounts } = kv;
	assert.ok(accounts !== undefined);
	await accounts.load(ONE);
	const known = { text: "x".repeat(300) };
	const value = enveloped(known, Buffer.alloc(100_000, 1));
	await write(accounts, [{ key: `b/00000001/${hashOf(1)}`, value, sender: ONE }]);
	for (const [found] of [await storedBy(accounts), await accounts.ofHashes([hashOf(1)], [])]) {
		assert.equal(found?.bytes, value.length);
		assert.deepEqual(found?.value, value.subarray(0, value.length - 100_000));
	}
	assert.deepEqual(await kv.get(`b/00000001/${hashOf(1)}`), value);
});

it("PostgreSQL: an instance that has just come back judges no other one silent", async (t) => {
	const url = await newDatabase();
	const direct = new pg.Client({ connectionString: url });
	await direct.connect();
	t.after(() => direct.end());
	const opened = () =>
		openAccounts({ url, verify: false, store: "boost" }, { clock: systemClock, log: silentLogger });
	const all = [await opened(), await opened()];
	t.after(() => Promise.all(all.map((kv) => kv.close())));
	const [a, b] = all.map((kv) => kv.accounts) as [Accounts, Accounts];
	// As if the database had been away for both.
	const age = (name: string) =>
		direct.query(
			"UPDATE leeward_instance SET reported = reported - interval '10 s', since = since - interval '1 h' WHERE name = $1",
			[name],
		);
	await age(a.instance);
	await age(b.instance);
	const silent = async () => (await b.report(true)).map(({ isSilent }) => isSilent);
	assert.deepEqual(await silent(), [false]);
	await direct.query("UPDATE leeward_instance SET since = since - interval '1 h' WHERE name = $1", [
		b.instance,
	]);
	assert.deepEqual(await silent(), [true], "after it has reported for three seconds");
});

/** An instance and a connection of the test's own. */
async function withDirect(t: TestContext): Promise<readonly [Accounts, pg.Client]> {
	const url = await newDatabase();
	const direct = new pg.Client({ connectionString: url });
	await direct.connect();
	t.after(() => direct.end());
	const kv = await openAccounts(
		{ url, verify: false, store: "boost" },
		{ clock: systemClock, log: silentLogger },
	);
	t.after(() => kv.close());
	assert.ok(kv.accounts !== undefined);
	return [kv.accounts, direct];
}

const waiters = async (direct: pg.Client) => {
	const { rows } = await direct.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'");
	return rows.length;
};

it("PostgreSQL: an account that is written while old ones are removed stays", async (t) => {
	const [accounts, direct] = await withDirect(t);
	await accounts.load(ONE);
	await write(accounts, [put(1, "row")]);
	await write(accounts, [gone(1)]);
	await direct.query("UPDATE leeward_account SET until = now() - interval '1 s'");
	await direct.query("BEGIN");
	await direct.query("UPDATE leeward_account SET until = now() + interval '1 h'");
	const purging = accounts.purge();
	await until("it waits", async () => (await waiters(direct)) > 0);
	await direct.query("COMMIT");
	assert.equal(await purging, false);
	const count = async () => (await direct.query("SELECT 1 FROM leeward_account")).rows.length;
	assert.equal(await count(), 1);
	await direct.query("UPDATE leeward_account SET until = now() - interval '1 s'");
	await accounts.purge();
	assert.equal(await count(), 0, "as a control");
});
