// Tests when transactions are disclosed, as a table with the clock of the test: clients in turns,
// at a bounded rate, and a client that discloses little at once. Also tests that one that has
// ended, or that an owner has hidden, is not disclosed.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { partialPendingTransaction } from "../../../../relay/auction/feed.ts";
import { newRecord } from "../../../../relay/domain/record.ts";
import { ownerOf, type PrivateTransaction } from "../../../../relay/domain/transaction.ts";
import { Disclosures, disclosedBytes } from "../../../../relay/transactions/disclosures.ts";
import { Pool } from "../../../../relay/transactions/pool.ts";
import { TransactionRecords } from "../../../../relay/transactions/records.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

const KIB = 1024;
/** Disclosed, it has 256 KiB: a quarter of a second at the rate of all clients. */
const LARGE = 128 * KIB - KIB / 2;
const SMALL = 100;
/** Disclosed, it has half of that. */
const HALF = 64 * KIB - KIB / 2;
const QUARTER_MS = 250;

class Feed {
	readonly clock = new ManualClock();
	readonly pool = new Pool({ maxBytes: 256 * KIB * KIB });
	readonly records = new TransactionRecords({ log: silentLogger });
	readonly disclosures: Disclosures;
	/** Names in the order of their disclosure, with the time in ms. */
	readonly disclosed: [name: string, ms: number][] = [];
	readonly #names = new Map<string, string>();
	#accounts = 0;

	constructor() {
		const { clock, pool, records } = this;
		this.disclosures = new Disclosures({ clock, pool, records });
		records.subscribe(({ hash }, _before, { type }) => {
			if (type === "shared") this.disclosed.push([this.#names.get(hash) ?? "", clock.monotonic()]);
		});
	}

	/** Adds a pending transaction with `size` bytes of calldata. */
	#add(name: string, client: string, size: number): PrivateTransaction {
		this.#accounts += 1;
		const transaction = privateTransaction({
			...{ by: testAccount(this.#accounts), gasLimit: 16_000_000, data: Buffer.alloc(size) },
			...{ path: "maxbackruns", submitterAddress: client },
		});
		const { hash, from } = transaction.tx;
		this.#names.set(hash, name);
		const account = { address: from, block: 1, nonce: 0n, balance: 10n ** 20n, code: "none" } as const;
		const outcome = this.pool.add(transaction, account);
		assert.ok(outcome.outcome !== "rejected");
		this.pool.markDurable(outcome.entry);
		this.records.add({ transaction, record: newRecord(transaction) });
		return transaction;
	}

	/** Adds one that searchers may see. */
	request(name: string, client: string, size: number): PrivateTransaction {
		const transaction = this.#add(name, client, size);
		this.disclosures.request(transaction);
		return transaction;
	}
}

/** Each is requested at its time. All are disclosed in the order of the last list, at its times. */
type Row = readonly [
	title: string,
	requests: readonly (readonly [ms: number, name: string, client: string, size: number])[],
	disclosed: readonly (readonly [name: string, ms: number])[],
];

const several = (count: number, client: string, size: number) =>
	Array.from({ length: count }, (_, i) => [0, `${client}${i}`, client, size] as const);
/** A timer is due in the next ms when the credit of all is used up exactly. */
const NEXT_MS = 1;

const ROWS: readonly Row[] = [
	["a single transaction is disclosed at once, however large", [[0, "a", "a", LARGE]], [["a", 0]]],
	[
		"small ones of one client are disclosed at once, up to 80 KiB",
		several(60, "a", SMALL),
		several(60, "a", SMALL).map(([ms, name]) => [name, ms]),
	],
	[
		"one client alone discloses a MiB a second after the first",
		several(5, "a", LARGE),
		[
			["a0", 0],
			["a1", NEXT_MS],
			["a2", NEXT_MS + QUARTER_MS],
			["a3", NEXT_MS + 2 * QUARTER_MS],
			["a4", NEXT_MS + 3 * QUARTER_MS],
		],
	],
	[
		"clients take turns by the bytes that they disclose",
		[...several(3, "a", LARGE), ...several(6, "b", HALF)],
		[
			["a0", 0],
			["b0", 0],
			["a1", 126],
			["b1", 376],
			["b2", 501],
			["a2", 626],
			["b3", 876],
			["b4", 1001],
			["b5", 1126],
		],
	],
	[
		"a client that discloses little never waits for others",
		[
			...several(2, "a", LARGE),
			...several(2, "b", LARGE),
			[100, "small", "c", SMALL],
			[300, "large", "d", LARGE],
		],
		[
			["a0", 0],
			["b0", 0],
			["small", 100],
			["a1", 252],
			["large", 300],
			["b1", 752],
		],
	],
	[
		"a client that has disclosed nothing for a while discloses a large one at once again",
		[...several(1, "a", LARGE), ...several(2, "b", LARGE), [40_000, "again", "a", LARGE]],
		[
			["a0", 0],
			["b0", 0],
			["b1", 251],
			["again", 40_000],
		],
	],
];

describe("transactions are disclosed in turns", () => {
	for (const [title, requests, expected] of ROWS) {
		it(title, async () => {
			const feed = new Feed();
			for (const [ms, name, client, size] of requests) {
				await feed.clock.advance(ms - feed.clock.monotonic());
				feed.request(name, client, size);
			}
			await feed.clock.advance(10_000);
			assert.deepEqual(feed.disclosed, expected);
			assert.equal(feed.clock.timers, 0);
		});
	}
});

describe("a transaction that waits for its turn", () => {
	/** A feed on which `waiting` waits behind others of its client. */
	const behind = () => {
		const feed = new Feed();
		for (const [, name, client, size] of several(2, "a", LARGE)) feed.request(name, client, size);
		const waiting = feed.request("waiting", "a", LARGE);
		feed.request("last", "a", LARGE);
		assert.ok(feed.disclosures.isWaiting(waiting));
		return { feed, waiting, hash: waiting.tx.hash };
	};
	const names = ({ disclosed }: Feed) => disclosed.map(([name]) => name);

	/** Gives it another owner, as clientChanges.ts does. */
	const join = ({ pool, records }: Feed, { tx, owners }: PrivateTransaction, isHidden: boolean) => {
		const entry = pool.get(tx.hash);
		const owner = ownerOf({
			...{ path: "maxbackruns", softCancellations: false, refundRecipient: null, referrer: null },
			...{ isHidden, builders: null, address: "192.0.2.7" },
		});
		const event = { type: "joined", at: 0, block: 1 } as const;
		const joined = records.setOwners(tx.hash, [...owners, owner], event);
		assert.ok(entry !== undefined && joined !== null);
		pool.exchange(entry, joined);
		return joined;
	};

	it("is disclosed once, however often that is requested", async () => {
		const { feed, waiting } = behind();
		feed.disclosures.request(waiting);
		await feed.clock.advance(10_000);
		feed.disclosures.request(waiting);
		await feed.clock.advance(10_000);
		assert.deepEqual(names(feed), ["a0", "a1", "waiting", "last"]);
		assert.equal(feed.disclosures.isWaiting(waiting), false);
	});

	it("is not disclosed after its end, and leaves its turn to the next", async () => {
		const { feed, hash } = behind();
		const entry = feed.pool.get(hash);
		assert.ok(entry);
		feed.pool.remove(entry);
		feed.records.emit(hash, { type: "expired", at: 0, block: 1 });
		await feed.clock.advance(10_000);
		assert.deepEqual(feed.disclosed.slice(2), [["last", NEXT_MS + QUARTER_MS]]);
	});

	it("is not disclosed while it has left the pool", async () => {
		const { feed, hash } = behind();
		const entry = feed.pool.get(hash);
		assert.ok(entry);
		feed.pool.remove(entry);
		await feed.clock.advance(10_000);
		assert.deepEqual(feed.disclosed.slice(2), [["last", NEXT_MS + QUARTER_MS]]);
	});

	it("is not disclosed once an owner has hidden it", async () => {
		const { feed, waiting } = behind();
		assert.equal(feed.disclosures.isWaiting(join(feed, waiting, true)), false);
		await feed.clock.advance(10_000);
		assert.deepEqual(names(feed), ["a0", "a1", "last"]);
	});

	it("keeps its turn if another owner joins on the same terms", async () => {
		const { feed, waiting } = behind();
		const joined = join(feed, waiting, false);
		feed.disclosures.request(joined);
		await feed.clock.advance(10_000);
		assert.deepEqual(names(feed), ["a0", "a1", "waiting", "last"]);
	});
});

describe("the bytes that count for a transaction are at least those on the feed", () => {
	const address = `0x${"a1".repeat(20)}`;
	const key = `0x${"b2".repeat(32)}`;
	const list = (entries: number, keys: number) =>
		Array.from({ length: entries }, () => ({ address, storageKeys: new Array<string>(keys).fill(key) }));
	const cases: readonly (readonly [string, TxOptions])[] = [
		["a transfer", {}],
		["of the largest numbers", { type: 0, value: 2n ** 80n, gasPrice: 2n ** 70n, nonce: 2n ** 53n }],
		["a creation with data", { to: null, data: Buffer.alloc(5_000, 1) }],
		["entries of an access list without keys", { accessList: list(300, 0) }],
		["entries with keys", { type: 1, accessList: list(3, 200) }],
		["blobs", { type: 3, blobs: 6 }],
		["authorizations, which are not shown", { type: 4 }],
	];
	for (const [title, options] of cases) {
		it(title, () => {
			const { tx } = privateTransaction(options);
			const shown = JSON.stringify(partialPendingTransaction(tx)).length;
			const counted = disclosedBytes(tx);
			assert.ok(counted >= shown && counted <= shown + KIB, `${counted} for ${shown}`);
		});
	}
});
