// The figures of owners by day: what is on disk, what is kept of whom, and what a failing disk
// changes.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleBlockStatus, BundleRecord } from "../../../../relay/domain/bundleStatus.ts";
import { FIGURES_LIMITS, SearcherFigures } from "../../../../relay/market/figures.ts";
import { RefundTable } from "../../../../relay/transactions/refundTable.ts";
import { Background } from "../../../../shared/background.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { UNDAMAGED } from "../../../support/undamaged.ts";
import { FakeDisk } from "../fakeDisk.ts";
import { refundedRecord } from "../refundedRecord.ts";

const DAY_MS = 86_400_000;

/** Figures on a disk, which may be another's. */
function startFigures(limits = FIGURES_LIMITS, disk = new FakeDisk()) {
	const background = new Background({}, { log: silentLogger });
	const figures = new SearcherFigures(limits, {
		kv: disk,
		damaged: UNDAMAGED,
		background,
		log: silentLogger,
	});
	const bid = (owner: string, day: number, client = owner): void =>
		figures.count(recordOf(owner, client), statusOn(day), 1);
	const days = (owner: string) => figures.of(owner).map(({ day, bids }) => [day, bids]);
	const write = async (): Promise<void> => {
		figures.write();
		await background.join();
	};
	/** As the next process has them. */
	const again = async () => {
		const next = startFigures(limits, disk);
		await next.figures.load();
		return next;
	};
	return { figures, disk, bid, days, write, again };
}

function recordOf(owner: string, client: string): BundleRecord {
	return {
		...{ owner, client, hash: "0x", bidder: null, target: "0x", receivedAt: 0, feedMs: 4, simulatedAt: 0 },
		...{ firstBlock: 1, lastBlock: 1, blocks: [] },
	};
}

function statusOn(day: number, change: Partial<BundleBlockStatus> = {}): BundleBlockStatus {
	return {
		...{ block: 1, stage: "ACCEPTED", reason: null, bid: null, paid: null, placed: false, isDisclosed: true },
		...{ blockHash: null, since: day * DAY_MS + 5, at: 0, deliveries: [] },
		...change,
	};
}

test("each owner has its own days, the last one first, and the same after a restart", async () => {
	const { figures, bid, days, write, again } = startFigures();
	const mine = "2001:db8::1";
	for (const day of [9, 10, 10, 8]) bid(mine, day);
	bid("web 192.0.2.1", 10);
	const won = { stage: "INCLUDED", paid: 10n ** 20n, placed: true } as const;
	figures.count(recordOf(mine, mine), statusOn(10, won), 1);
	const lost = { stage: "NOT_PLACED" } as const;
	figures.count(recordOf(mine, mine), statusOn(10, lost), 1);
	await write();
	assert.deepEqual(days(mine), [
		[10, 4],
		[9, 1],
		[8, 1],
	]);
	const next = await again();
	for (const owner of [mine, "web 192.0.2.1", "nobody"])
		assert.deepEqual(next.figures.of(owner), figures.of(owner));
	const [today] = next.figures.of(mine);
	assert.deepEqual(today, {
		...{ day: 10, bids: 4, bundles: 0, places: 1, landed: 1, withdrawn: 0 },
		...{ timed: 4, feedMs: 16 },
		...{ paid: 10n ** 20n, lost: { NOT_PLACED: 1 } },
	});
});

test("a client with too many days loses its first, also on disk, whatever keys it has used", async () => {
	const { bid, days, write, again } = startFigures({ maxDays: 100, maxPerClient: 2 });
	bid("key 1", 1, "a");
	bid("other", 1, "b");
	await write();
	bid("key 2", 1, "a");
	bid("key 3", 1, "a");
	assert.deepEqual(
		[days("key 1"), days("key 2"), days("key 3"), days("other")],
		[[], [[1, 1]], [[1, 1]], [[1, 1]]],
	);
	await write();
	const next = await again();
	assert.deepEqual([next.days("key 1"), next.days("key 3")], [[], [[1, 1]]]);
	// Loaded figures count too.
	next.bid("key 4", 2, "a");
	assert.deepEqual([next.days("key 2"), next.days("key 4")], [[], [[2, 1]]]);
});

test("where there are too many in all, the client with the most loses its first", () => {
	const { bid, days } = startFigures({ maxDays: 4, maxPerClient: 4 });
	bid("honest", 1);
	for (let i = 1; i <= 4; i += 1) bid(`key ${i}`, 1, "crowd");
	assert.deepEqual([days("honest"), days("key 1"), days("key 4")], [[[1, 1]], [], [[1, 1]]]);
});

test("a bundle whose day is forgotten counts anew when it changes", () => {
	const { figures, bid, days } = startFigures({ maxDays: 100, maxPerClient: 1 });
	const [mine, first] = [recordOf("me", "me"), statusOn(1)];
	figures.count(mine, first, 1);
	bid("me", 2);
	assert.deepEqual(days("me"), [[2, 1]]);
	// The day is made anew by another one.
	bid("me", 1);
	figures.count(mine, first, -1);
	assert.deepEqual(days("me"), [[1, 1]]);
	figures.count(mine, first, 1);
	assert.deepEqual(days("me"), [[1, 2]]);
});

test("what could not be written is written with the next block; what has not changed is not", async () => {
	const { disk, bid, write, again } = startFigures();
	disk.broken = true;
	bid("me", 1);
	await write();
	assert.deepEqual((await again()).days("me"), []);
	disk.broken = false;
	await write();
	assert.deepEqual((await again()).days("me"), [[1, 1]]);
	disk.map.clear();
	await write();
	assert.equal(disk.map.size, 0);
});

test("refunds in the same store are none of its rows, and take no searcher's days", async () => {
	const { figures, bid, write, disk } = startFigures({ maxDays: 10, maxPerClient: 10 });
	for (let day = 1; day <= 4; day += 1) bid("me", day);
	await write();
	const refunds = new RefundTable({
		kv: disk,
		damaged: UNDAMAGED,
		records: { mined: () => [], isSettled: () => false },
	});
	await refunds.load(0);
	const records = Array.from({ length: 20 }, (_, i) => refundedRecord(i, i));
	await disk.write(refunds.settling(records).changes);
	const next = startFigures({ maxDays: 10, maxPerClient: 10 }, disk);
	await next.figures.load();
	next.bid("me", 5);
	assert.deepEqual(
		next.days("me"),
		[5, 4, 3, 2, 1].map((day) => [day, 1]),
	);
	assert.equal(figures.of("me").length, 4);
});

test("a damaged entry is left out, and the others count", async () => {
	const { disk, bid, write, again } = startFigures();
	bid("me", 1);
	bid("you", 1);
	await write();
	disk.map.set("d/0000001/me", Buffer.from("{}"));
	const { days } = await again();
	assert.deepEqual([days("me"), days("you")], [[], [[1, 1]]]);
});
