// Tests the operator's sums of refunds on random and on large tables: nothing is lost or counted
// twice between pages, unpaid refunds come first, and no page is long.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { RefundRow } from "../../../../relay/domain/refundRow.ts";
import { isPlace, refundSums } from "../../../../relay/ingress/refundSums.ts";
import type { RefundTable } from "../../../../relay/transactions/refundTable.ts";
import { sized } from "../../../support/length.ts";

const DAY_MS = 24 * 3_600_000;
const BEGIN = Date.UTC(2026, 0, 1);
const address = (i: number): string => `0x${i.toString(16).padStart(40, "0")}`;
const BUILDERS: Readonly<Record<string, readonly string[]>> = {
	[address(1)]: ["dev"],
	[address(2)]: ["one", "other"],
};

interface Options {
	readonly recipient: number;
	readonly sender: number;
	readonly payer: number;
	readonly owed: number;
	readonly paid: number;
	readonly referrer?: string | undefined;
	/** Undefined: a row of an earlier version. */
	readonly day?: number | undefined;
}

/** The row with number `i`, in a block of its own. */
function rowOf(i: number, { recipient, sender, payer, owed, paid, referrer, day }: Options): RefundRow {
	const hash = `0x${i.toString(16).padStart(64, "0")}`;
	return {
		...{ block: i, blockHash: hash, hash, recipient: address(recipient), sender: address(sender) },
		...{ payer: address(payer), owed: String(owed), paid: String(paid) },
		...(referrer === undefined ? {} : { referrer }),
		...(day === undefined ? {} : { at: BEGIN + day * DAY_MS }),
	};
}

/** A table in its order, which counts the rows that were read. */
class Table implements Pick<RefundTable, "all"> {
	readonly #rows: readonly (readonly [string, RefundRow])[];
	read = 0;

	constructor(rows: readonly RefundRow[]) {
		const placeOf = ({ recipient, block, hash }: RefundRow) =>
			`${recipient}/${String(999_999_999_999 - block)}/${hash}`;
		this.#rows = rows
			.map((row) => [placeOf(row), row] as const)
			.sort(([one], [other]) => (one < other ? -1 : 1));
	}

	async *all(from = "") {
		for (const one of this.#rows) {
			if (one[0] < from) continue;
			this.read += 1;
			yield one;
		}
	}
}

/** All pages; none has more lines or reads more rows than it may. */
async function pagesOf(rows: readonly RefundRow[]) {
	const table = new Table(rows);
	const sums = refundSums({
		refunds: table,
		builders: { builtBy: (coinbase) => BUILDERS[coinbase] ?? [] },
	});
	const pages: (readonly (readonly string[])[])[] = [];
	for (let from: string | null = null, isOver = false; !isOver; isOver = from === null) {
		const page = await sums(from);
		// One more shows that there are more.
		assert.ok(table.read <= 10_001, `${table.read} rows`);
		assert.ok(page.next === null || isPlace(page.next), page.next ?? "");
		table.read = 0;
		pages.push(page.lines);
		from = page.next;
	}
	return pages;
}

/** Asserts that the pages have the sums of the rows: unpaid ones first, each combination once. */
function assertSums(rows: readonly RefundRow[], pages: readonly (readonly (readonly string[])[])[]): void {
	const expected = new Map<string, bigint[]>();
	for (const { at, recipient, sender, referrer = "", payer, owed, paid } of rows) {
		const month = at === undefined ? "" : new Date(at).toISOString().slice(0, 7);
		const builder = BUILDERS[payer]?.join(" ") ?? payer;
		const [owes, pays] = [BigInt(owed), BigInt(paid)];
		const isUnpaid = owes > pays;
		const key = JSON.stringify([isUnpaid, month, recipient, sender, referrer, builder]);
		const more = [1n, owes, pays, isUnpaid ? owes - pays : 0n];
		expected.set(
			key,
			(expected.get(key) ?? [0n, 0n, 0n, 0n]).map((sum, i) => sum + (more[i] ?? 0n)),
		);
	}
	const found = new Map<string, bigint[]>();
	for (const page of pages) {
		const keys = page.map((line) => JSON.stringify([line[8] !== "0", ...line.slice(0, 5)]));
		assert.equal(new Set(keys).size, keys.length, "once on a page");
		for (const [i, key] of keys.entries()) {
			const more = (page[i] ?? []).slice(5).map(BigInt);
			found.set(
				key,
				(found.get(key) ?? [0n, 0n, 0n, 0n]).map((sum, at) => sum + (more[at] ?? 0n)),
			);
		}
	}
	const byKey = (one: readonly [string, unknown], other: readonly [string, unknown]) =>
		one[0] < other[0] ? -1 : 1;
	assert.deepEqual([...found].sort(byKey), [...expected].sort(byKey));
	const isPaid = pages.flat().map(({ 8: unpaid }) => unpaid === "0");
	assert.deepEqual(
		isPaid,
		isPaid.toSorted((one, other) => Number(one) - Number(other)),
	);
}

const options = fc.record({
	...{ recipient: fc.nat(3), sender: fc.nat(3), payer: fc.integer({ min: 1, max: 3 }) },
	...{ owed: fc.nat(3), paid: fc.nat(3), referrer: fc.constantFrom("shop", undefined) },
});

test("the lines have the sums of all refunds, unpaid ones first", async () => {
	await fc.assert(
		fc.asyncProperty(fc.array(options, { maxLength: 60 }), fc.nat(40), async (all, days) => {
			// Times rise with the blocks; the first rows have none.
			const rows = all.map((one, i) => rowOf(i, { ...one, day: i < 3 ? undefined : (i * days) / 10 }));
			assertSums(rows, await pagesOf(rows));
		}),
		{ numRuns: sized(40, 2_000) },
	);
});

test("a long list comes in pages that read a bounded part, whatever is unpaid", async () => {
	for (const paidOf of [(i: number) => i % 3, () => 2, () => 0]) {
		const rows = Array.from({ length: 6_000 }, (_, i) =>
			rowOf(i, { recipient: i % 50, sender: 1, payer: 1, owed: 2, paid: paidOf(i), day: i / 100 }),
		);
		const pages = await pagesOf(rows);
		assert.equal(pages.length, 2);
		assertSums(rows, pages);
	}
});

test("the line that lacks most is the first", async () => {
	const rows = [3, 9, 1].map((owed, i) => rowOf(i, { recipient: i, sender: 1, payer: 1, owed, paid: 0 }));
	const [lines = []] = await pagesOf(rows);
	assert.deepEqual(
		lines.map(({ 8: unpaid }) => unpaid),
		["9", "3", "1"],
	);
});

test("a refund that comes or goes between two pages changes no other line", async () => {
	const rows = Array.from({ length: 6_000 }, (_, i) =>
		rowOf(i, { recipient: 1, sender: 1, payer: 1, owed: 2, paid: i % 2 === 0 ? 2 : 1 }),
	);
	const later = { recipient: 1, sender: 1, payer: 1, owed: 2, paid: 0 };
	const tables = [new Table(rows), new Table([...rows.slice(0, -1), rowOf(7_000, later)])];
	const sumsOf = (table: Table | undefined) =>
		refundSums({ refunds: table ?? new Table([]), builders: { builtBy: () => ["dev"] } });
	const first = await sumsOf(tables[0])(null);
	const second = await sumsOf(tables[1])(first.next);
	const [unpaid, paid] = [true, false].map((isUnpaid) =>
		[...first.lines, ...second.lines]
			.filter((line) => (line[8] !== "0") === isUnpaid)
			.reduce((sum, line) => sum + Number(line[5]), 0),
	);
	assert.deepEqual([unpaid, paid], [3_000, 3_000]);
});

test("a place is one of a page, and nothing else", () => {
	const place = `${address(1)}/${"9".repeat(12)}/0x${"ab".repeat(32)}`;
	for (const good of ["unpaid", "paid", `unpaid/${place}`, `paid/${place}`]) assert.ok(isPlace(good), good);
	for (const bad of ["", "other", "paid/", `paid/${place}/`, `paid/${place}x`, place, "paid\n"])
		assert.ok(!isPlace(bad), bad);
});
