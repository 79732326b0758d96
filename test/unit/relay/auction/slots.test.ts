// Which bids get a slot at a builder: as a table, and as properties of any bids.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import type { Bid } from "../../../../relay/auction/bid.ts";
import { drawing, slotsOf } from "../../../../relay/auction/slots.ts";
import { bidderKey } from "../../../../relay/domain/bundleStatus.ts";
import { networkAddress } from "../../../../shared/client.ts";
import { sized } from "../../../support/length.ts";

/**
 * A bid of `value` wei. Unless said, its sender, client and bidder are its own, and it is not
 * signed.
 */
interface Row {
	readonly bid: string;
	readonly value: number;
	readonly sender?: string;
	readonly client?: string;
	/** The signer of the bundle. */
	readonly signer?: string | undefined;
	/** The bidder's record, in wei. */
	readonly record?: number;
}

const signerOf = (name: string) => `0x${Buffer.from(name).toString("hex").padStart(40, "0")}`;

function bidOf({ bid, value, sender = `s${bid}`, client = `n${bid}`, signer }: Row, seq: number): Bid {
	const owner = signer === undefined ? client : signerOf(signer);
	return {
		...{ record: { hash: bid }, bidder: { owner, client, sender }, owner, client, target: "T" },
		...{ backrun: { hash: bid, from: sender }, value: BigInt(value), seq },
	} as unknown as Bid;
}

function chosen(rows: readonly Row[], slots: number, draw: (name: string) => number): string {
	const bids = rows.map(bidOf);
	const records = new Map(
		bids.map(({ bidder }, i) => [bidderKey(bidder), BigInt(rows[i]?.record ?? 0)] as const),
	);
	const taken = slotsOf(bids, { slots, recordOf: (bidder) => records.get(bidder) ?? 0n, draw });
	return taken.map(({ record }) => record.hash).join(" ");
}

/** By name: what is not named draws 0.5. */
const numbers = (drawn: Readonly<Record<string, number>>) => (name: string) => drawn[name] ?? 0.5;
const many = (count: number, of: (i: number) => Partial<Row> = () => ({})): readonly Row[] =>
	Array.from({ length: count }, (_, i) => ({ bid: `m${i}`, value: 1, ...of(i) }));

const CASES: readonly (readonly [
	string,
	readonly Row[],
	number,
	Readonly<Record<string, number>>,
	string,
])[] = [
	[
		"all, where there are no more than slots",
		[
			{ bid: "a", value: 1 },
			{ bid: "b", value: 3 },
			{ bid: "c", value: 2, record: 9 },
		],
		4,
		{},
		"c a b",
	],
	["none where there is none", [], 4, {}, ""],
	[
		"half by record, a quarter by bid, a quarter by lot; the first of each, then the second",
		[
			...["r0", "r1", "r2"].map((bid) => ({ bid, value: 1, record: 5 })),
			...["d0", "d1", "d2"].map((bid, i) => ({ bid, value: 9 - i })),
			...["p0", "p1", "p2"].map((bid) => ({ bid, value: 2 })),
		],
		4,
		{
			...{ "bidder sr1 nr1": 0.9, "bidder sr2 nr2": 0.8 },
			...{ "network np1.0/24": 0.1, "network nr0.0/24": 0.2 },
		},
		"r1 p1 d0 r2",
	],
	[
		"a record of ten times the size stands before another that drew more",
		[
			{ bid: "a", value: 1, record: 1 },
			{ bid: "b", value: 1, record: 10 },
		],
		1,
		{ "bidder sa na": 0.9, "bidder sb nb": 0.4 },
		"b",
	],
	[
		"the slots of record go by lot where there is no record",
		many(5, (i) => ({ value: i })),
		4,
		{ "network nm0.0/24": 0.1, "network nm1.0/24": 0.2, "network nm2.0/24": 0.3, "network nm3.0/24": 0.4 },
		"m0 m4 m1 m2",
	],
	[
		"by lot a network comes once, before another client of one comes",
		[
			...["1", "2", "3"].map((host) => ({ bid: `a${host}`, value: 1, client: `192.0.2.${host}` })),
			...["1", "2"].map((host) => ({ bid: `b${host}`, value: 1, client: `198.51.100.${host}` })),
			{ bid: "c1", value: 1, client: "2001:db8:7:100::/56" },
			{ bid: "c2", value: 1, client: "2001:db8:7:200::/56" },
		],
		3,
		{
			...{ "network 192.0.2.0/24": 0.3, "network 198.51.100.0/24": 0.2, "network 2001:db8:7::/48": 0.1 },
			...{ "client 192.0.2.2": 0.1, "client 2001:db8:7:200::/56": 0.1, "client 198.51.100.2": 0.6 },
		},
		"c2 b1 a2",
	],
	[
		"a client has one slot by bid or by lot, with its highest bid",
		[
			{ bid: "a", value: 3, client: "n" },
			{ bid: "b", value: 9, client: "n" },
			{ bid: "c", value: 1 },
		],
		8,
		{},
		"b c",
	],
	[
		"one by record uses up none of its client's, which a neighbour may have",
		[
			{ bid: "a", value: 9, client: "n", signer: "x", record: 5 },
			{ bid: "b", value: 1, client: "n", signer: "y" },
		],
		4,
		{},
		"a b",
	],
	[
		"a signer's record counts with any sender, from anywhere; without a signature the sender's at that client",
		[
			{ bid: "a", value: 1, sender: "s1", client: "n1", signer: "x", record: 5 },
			{ bid: "b", value: 2, sender: "s2", client: "n2", signer: "x", record: 5 },
			{ bid: "c", value: 3, sender: "s3", client: "n3", record: 5 },
			{ bid: "d", value: 4, sender: "s3", client: "n4" },
		],
		1,
		{ [`bidder ${signerOf("x")}`]: 0.9 },
		"b",
	],
	[
		"a sender has one slot, even if several clients bring its backruns",
		[
			{ bid: "a", value: 9, sender: "s", client: "n1" },
			{ bid: "b", value: 8, sender: "s", client: "n2" },
			{ bid: "c", value: 1 },
		],
		8,
		{},
		"a c",
	],
	[
		"a client whose highest bid is excluded by another's gets a slot for the next one",
		[
			{ bid: "a", value: 9, sender: "s", record: 5 },
			{ bid: "b", value: 8, sender: "s", client: "n" },
			{ bid: "c", value: 1, client: "n" },
		],
		8,
		{},
		"a c",
	],
	[
		"a web page's bid is of its visitor's address, and competes only where that bids nothing itself",
		[
			{ bid: "a", value: 9, client: "web 192.0.2.1" },
			{ bid: "b", value: 2, client: "192.0.2.1" },
			{ bid: "c", value: 8, client: "web 192.0.2.2" },
		],
		8,
		{},
		"c b",
	],
	["two slots are one by record and one by lot", many(9, (i) => ({ value: i, record: i })), 2, {}, "m8 m7"],
];

for (const [name, rows, slots, drawn, expected] of CASES)
	test(`slots: ${name}`, () => assert.equal(chosen(rows, slots, numbers(drawn)), expected));

test("a name's number follows from secret, block and target alone", () => {
	const secret = Buffer.alloc(32, 1);
	const drawn = drawing(secret, 7, "T")("client 192.0.2.1");
	assert.equal(drawing(Buffer.alloc(32, 1), 7, "T")("client 192.0.2.1"), drawn);
	for (const other of [
		drawing(secret, 8, "T"),
		drawing(secret, 7, "U"),
		drawing(Buffer.alloc(32, 2), 7, "T"),
	])
		assert.notEqual(other("client 192.0.2.1"), drawn);
	assert.notEqual(drawing(secret, 7, "T")("client 192.0.2.2"), drawn);
	const draw = drawing(secret, 7, "T");
	const all = Array.from({ length: 10_000 }, (_, i) => draw(`client ${i}`));
	assert.ok(all.every((one) => one > 0 && one < 1));
	const mean = all.reduce((sum, one) => sum + one, 0) / all.length;
	assert.ok(Math.abs(mean - 0.5) < 0.02, `${mean}`);
});

const row = fc.record({
	value: fc.nat(9),
	sender: fc.nat(30).map((n) => `s${n}`),
	client: fc.nat(30).map((n) => `192.0.${n % 5}.${n}`),
	signer: fc.option(fc.nat(9).map(String), { nil: undefined }),
	record: fc.nat(3),
});
const RUNS = { numRuns: sized(200, 5_000) };

test("of any bids: no sender has two slots, no client two by bid or lot, and none is empty that a bid could have", () => {
	fc.assert(
		fc.property(fc.array(row, { maxLength: 60 }), fc.integer({ min: 1, max: 32 }), (rows, slots) => {
			const bids = rows.map((one, i) => bidOf({ bid: `b${i}`, ...one }, i));
			const records = new Map(bids.map(({ bidder }, i) => [bidderKey(bidder), BigInt(rows[i]?.record ?? 0)]));
			const recordOf = (bidder: string) => records.get(bidder) ?? 0n;
			const taken = slotsOf(bids, { slots, recordOf, draw: drawing(Buffer.alloc(32), 1, "T") });
			const senders = taken.map(({ backrun }) => backrun.from);
			assert.equal(new Set(senders).size, taken.length);
			const without = taken.filter(({ bidder }) => recordOf(bidderKey(bidder)) === 0n);
			assert.equal(new Set(without.map(({ client }) => networkAddress(client))).size, without.length);
			const clients = new Set(taken.map(({ client }) => networkAddress(client)));
			const byRecord = taken.filter(({ bidder }) => recordOf(bidderKey(bidder)) > 0n).length;
			assert.ok(taken.length - byRecord <= slots && taken.length <= slots);
			if (taken.length === slots) return;
			const isOut = (bid: Bid) =>
				senders.includes(bid.backrun.from) || clients.has(networkAddress(bid.client));
			assert.ok(bids.every(isOut), "a bid could have had a slot");
		}),
		RUNS,
	);
});

test("bids without a slot change nobody's, however few are left", () => {
	fc.assert(
		fc.property(
			fc.array(row, { maxLength: 60 }),
			fc.integer({ min: 1, max: 32 }),
			fc.func(fc.boolean()),
			(rows, slots, stays) => {
				const bids = rows.map((one, i) => bidOf({ bid: `b${i}`, ...one }, i));
				const records = new Map(
					bids.map(({ bidder }, i) => [bidderKey(bidder), BigInt(rows[i]?.record ?? 0)]),
				);
				const recordOf = (bidder: string) => records.get(bidder) ?? 0n;
				const options = { slots, recordOf, draw: drawing(Buffer.alloc(32), 1, "T") };
				const taken = slotsOf(bids, options);
				const left = bids.filter((bid) => taken.includes(bid) || stays(bid.seq));
				assert.deepEqual(slotsOf(left, options), taken);
			},
		),
		RUNS,
	);
});

test("a client with a slot by lot keeps it when another withdraws", () => {
	fc.assert(
		fc.property(
			fc.integer({ min: 2, max: 40 }),
			fc.nat(39),
			fc.integer({ min: 1, max: 3 }),
			(count, at, slots) => {
				// With fewer slots than four there is none by bid.
				const bids = many(count, (i) => ({ client: `192.0.${i}.1` })).map(bidOf);
				const options = { slots, recordOf: () => 0n, draw: drawing(randomBytes(32), 1, "T") };
				const gone = bids[at % count];
				const before = slotsOf(bids, options).filter((bid) => bid !== gone);
				const after = slotsOf(
					bids.filter((bid) => bid !== gone),
					options,
				);
				assert.ok(before.every((bid) => after.includes(bid)));
				assert.equal(after.length, Math.min(slots, count - 1));
			},
		),
		RUNS,
	);
});

test("a thousand bids take each builder one draw a network and few of clients, and their names are made once for all", () => {
	const [count, slots, builders] = [1_000, 16, 3];
	let [drawn, named] = [0, 0];
	const bids = many(count, (i) => ({ client: `10.${i >> 8}.${i & 255}.1`, value: i })).map((row, i) => {
		const { bidder, ...bid } = bidOf(row, i);
		const counted = {
			...bid,
			get bidder() {
				named += 1;
				return bidder;
			},
		};
		return counted as Bid;
	});
	const draw = drawing(Buffer.alloc(32), 1, "T");
	const counting = (name: string) => {
		drawn += 1;
		return draw(name);
	};
	for (let i = 0; i < builders; i += 1)
		assert.equal(slotsOf(bids, { slots, recordOf: () => 0n, draw: counting }).length, slots);
	assert.ok(drawn <= builders * (count + slots), `${drawn} numbers`);
	assert.equal(named, count);
});
