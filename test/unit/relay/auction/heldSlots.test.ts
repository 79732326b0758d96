// Tests which bids on a target a builder receives, and when: each slot at most once a second.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bid } from "../../../../relay/auction/bid.ts";
import { HeldSlots } from "../../../../relay/auction/heldSlots.ts";

const bids = new Map<string, Bid>();
/** `a1`: the first bid of the sender a. */
function bid(name: string): Bid {
	const known = bids.get(name) ?? ({ name, backrun: { from: name.charAt(0) } } as unknown as Bid);
	bids.set(name, known);
	return known;
}
const named = (some: readonly Bid[]) =>
	some.map((one) => (one as unknown as { name: string }).name).join(" ");

/**
 * An update of three slots, at a time in ms: the wanted bids and the bids that have ended. Then the
 * bids sent, the bids cancelled, and the time of the next change.
 */
type Step = readonly [
	at: number,
	wanted: string,
	ended: string,
	send: string,
	cancel: string,
	next: number | null,
];

const CASES: Readonly<Record<string, readonly Step[]>> = {
	"new bids go out at once, each in a slot of its own": [
		[0, "a1", "", "a1", "", null],
		[10, "a1 b1 c1", "", "b1 c1", "", null],
		[20, "a1 b1 c1", "", "", "", null],
	],
	"a sender's next bid replaces its bid under the same name, once a second; until then that stays": [
		[0, "a1", "", "a1", "", null],
		[400, "a2", "a1", "", "", 1_000],
		[700, "a3", "a1 a2", "", "", 1_000],
		[1_000, "a3", "a1 a2", "a3", "", null],
		[2_500, "a4", "a3", "a4", "", null],
	],
	"another sender's bid has a slot that was not sent yet": [
		[0, "a1 b1", "", "a1 b1", "", null],
		[400, "a1 c1", "", "c1", "b1", null],
	],
	"else it waits for a slot's second, and what has the slot stays so long": [
		[0, "a1 b1 c1", "", "a1 b1 c1", "", null],
		[400, "a1 b1 d1", "", "", "", 1_000],
		[1_000, "a1 b1 d1", "", "d1", "c1", null],
	],
	"what was withdrawn or fails goes at once, and its slot is sent again only after its second": [
		[0, "a1 b1 c1", "", "a1 b1 c1", "", null],
		[400, "a1 b1 d1", "c1", "", "c1", 1_000],
		[1_000, "a1 b1 d1", "c1", "d1", "", null],
	],
	"what nobody waits for goes at once": [
		[0, "a1 b1 c1", "", "a1 b1 c1", "", null],
		[400, "a1", "", "", "b1 c1", null],
		[500, "a1 d1", "", "", "", 1_000],
		[1_000, "a1 d1", "", "d1", "", null],
	],
	"a sender's next bid keeps its slot against all others": [
		[0, "a1 b1 c1", "", "a1 b1 c1", "", null],
		[1_000, "d1 a2 c1", "", "a2 d1", "b1", null],
	],
	"among several slots the first one sent is used": [
		[0, "a1", "", "a1", "", null],
		[600, "a1 b1 c1", "", "b1 c1", "", null],
		[1_100, "d1 e1 c1", "", "d1", "a1", 1_600],
		[1_600, "d1 e1 c1", "", "e1", "b1", null],
	],
};

for (const [name, steps] of Object.entries(CASES)) {
	test(`slots of a builder: ${name}`, () => {
		const held = new HeldSlots();
		for (const [at, wanted, ended, send, cancel, next] of steps) {
			const list = (text: string) => (text === "" ? [] : text.split(" ").map(bid));
			const gone = list(ended);
			const changes = held.update(list(wanted), {
				...{ slots: 3, now: at, mayStay: (one) => !gone.includes(one) },
			});
			assert.deepEqual(
				[named(changes.send), named(changes.cancel), changes.nextAt],
				[send, cancel, next],
				`${at} ms`,
			);
		}
	});
}
