// Tests which bids get places at builders, as a table.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bid } from "../../../../relay/auction/bid.ts";
import { placesOf } from "../../../../relay/auction/places.ts";

/** `label value`, then what differs: its sender, address, target, nonce, builders. */
interface Row {
	readonly bid: string;
	readonly value: number;
	readonly sender?: string;
	readonly client?: string;
	readonly target?: string;
	readonly nonce?: number;
	readonly builders?: readonly string[];
	/** Its sender is proven up to this. */
	readonly proven?: number;
	readonly spent?: boolean;
}

/** What is bid, with two places of each target, and what is out at the builders: the best marked with *. */
const CASES: readonly (readonly [string, readonly Row[], Readonly<Record<string, string>>])[] = [
	[
		"the dearest",
		[
			{ bid: "a", value: 1 },
			{ bid: "b", value: 3 },
			{ bid: "c", value: 2 },
		],
		{ x: "T: *b c" },
	],
	[
		"of equal ones the earlier",
		[
			{ bid: "a", value: 1 },
			{ bid: "b", value: 1 },
			{ bid: "c", value: 1 },
		],
		{ x: "T: *a b" },
	],
	[
		"of equal ones a proven one, though another has brought the same backrun before it",
		[
			{ bid: "a", value: 9, proven: 9 },
			{ bid: "b", value: 5, sender: "s" },
			{ bid: "c", value: 5, sender: "s", proven: 5 },
		],
		{ x: "T: *a c" },
	],
	[
		"one place of an address",
		[
			{ bid: "a", value: 3, client: "n" },
			{ bid: "b", value: 2, client: "n" },
			{ bid: "c", value: 1 },
		],
		{ x: "T: *a c" },
	],
	[
		"one place of an address and of the web pages that are open there",
		[
			{ bid: "a", value: 3, client: "192.0.2.1" },
			{ bid: "b", value: 2, client: "web 192.0.2.1" },
			{ bid: "c", value: 1 },
		],
		{ x: "T: *a c" },
	],
	[
		"a web page's bid keeps out none of the address where a visitor has it open, however dear it is",
		[
			{ bid: "a", value: 9, client: "web 192.0.2.1", proven: 9 },
			{ bid: "b", value: 2, client: "192.0.2.1" },
			{ bid: "c", value: 1 },
			{ bid: "d", value: 9, client: "web 192.0.2.1", target: "U" },
		],
		{ x: "T: *b c U: *d" },
	],
	[
		"one place of a sender",
		[
			{ bid: "a", value: 3, sender: "s" },
			{ bid: "b", value: 2, sender: "s", nonce: 1 },
			{ bid: "c", value: 1 },
		],
		{ x: "T: *a c" },
	],
	[
		"the first place is the dearest proven bid's, the other goes by the bid alone",
		[
			{ bid: "a", value: 9 },
			{ bid: "b", value: 8 },
			{ bid: "c", value: 2, proven: 2 },
			{ bid: "d", value: 1, proven: 8 },
		],
		{ x: "T: *a c" },
	],
	[
		"a proven one that is the dearest leaves the other place to the next",
		[
			{ bid: "a", value: 9, proven: 9 },
			{ bid: "b", value: 8 },
			{ bid: "c", value: 2, proven: 80 },
		],
		{ x: "T: *a b" },
	],
	[
		"proven up to less than is bid counts for nothing",
		[
			{ bid: "a", value: 9, proven: 8 },
			{ bid: "b", value: 10 },
			{ bid: "c", value: 9 },
		],
		{ x: "T: *b a" },
	],
	[
		"spent ones stand behind everybody who is not",
		[
			{ bid: "a", value: 9, spent: true },
			{ bid: "b", value: 1 },
		],
		{ x: "T: *a b" },
	],
	[
		"spent ones get no place that others want",
		[
			{ bid: "a", value: 9, spent: true },
			{ bid: "b", value: 1 },
			{ bid: "c", value: 1 },
		],
		{ x: "T: *b c" },
	],
	[
		"proven ones are never spent",
		[
			{ bid: "a", value: 9, spent: true, proven: 9 },
			{ bid: "b", value: 1 },
			{ bid: "c", value: 1 },
		],
		{ x: "T: *a b" },
	],
	[
		"a builder gets a nonce once: the dearer bid's",
		[
			{ bid: "a", value: 3, sender: "s" },
			{ bid: "b", value: 4, sender: "s", target: "U", client: "net a" },
			{ bid: "c", value: 1 },
		],
		{ x: "T: *c U: *b" },
	],
	[
		"a nonce that another brings too, behind a target of his own, is not used up by that",
		[
			{ bid: "a", value: 3, sender: "s" },
			{ bid: "b", value: 4, sender: "s", target: "U" },
			{ bid: "c", value: 1 },
		],
		{ x: "T: *a c U: *b" },
	],
	[
		"a proven bid's nonce goes before a dearer one that is not",
		[
			{ bid: "a", value: 3, sender: "s", proven: 3 },
			{ bid: "b", value: 4, sender: "s", target: "U", client: "net a", proven: 3 },
		],
		{ x: "T: *a" },
	],
	[
		"each builder by itself",
		[
			{ bid: "a", value: 3, builders: ["x"] },
			{ bid: "b", value: 2 },
			{ bid: "c", value: 1 },
		],
		{ x: "T: *a b", y: "T: *b c" },
	],
];

function bidOf(row: Row, seq: number): Bid {
	const {
		sender = `0x${row.bid}`,
		client = `net ${row.bid}`,
		target = "T",
		nonce = 0,
		builders = null,
	} = row;
	const bidder = { owner: "one for all", client, sender };
	return {
		...{ target, client, bidder, builders, seq },
		value: BigInt(row.value),
		backrun: { from: sender, nonce },
	} as unknown as Bid;
}

for (const [name, rows, expected] of CASES) {
	test(name, () => {
		const bids = rows.map(bidOf);
		const rowOf = (bid: Bid) => rows[bids.indexOf(bid)] as Row;
		const builders = Object.keys(expected);
		// Whatever the order in which they are kept.
		for (const order of [bids, [...bids].reverse()]) {
			const placed = placesOf(order, {
				places: 2,
				buildersOf: () => builders,
				provenUpTo: (bid) => BigInt(rowOf(bid).proven ?? 0),
				isSpent: (bid) => rowOf(bid).spent === true,
			});
			for (const builder of builders) {
				const out = [...placed].filter(([, award]) => award.builders.includes(builder));
				const targets = [...new Set(out.map(([{ target }]) => target))].sort();
				const told = targets.map((target) => {
					const its = out.filter(([bid]) => bid.target === target);
					const labels = its.map(([bid, { isBest }]) => `${isBest ? "*" : ""}${rowOf(bid).bid}`);
					const byLabel = (a: string, b: string) =>
						Number(b.startsWith("*")) - Number(a.startsWith("*")) || a.localeCompare(b);
					return `${target}: ${labels.sort(byLabel).join(" ")}`;
				});
				if (builders.length === 1) assert.equal(told.join(" "), expected[builder]);
			}
			if (builders.length > 1) {
				const of = (builder: string) =>
					bids.filter((bid) => placed.get(bid)?.builders.includes(builder)).map((bid) => rowOf(bid).bid);
				for (const builder of builders)
					assert.deepEqual(of(builder), expected[builder]?.replace(/T: |\*/g, "").split(" "));
			}
		}
	});
}
