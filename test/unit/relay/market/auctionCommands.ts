// The steps that the auction's model goes through, at random: few owners, addresses, senders and
// values, so that many meet.

import fc from "fast-check";

export const TARGETS = 2;
/** Some have signed. */
export const OWNERS = Array.from({ length: 10 }, (_, n) => (n < 6 ? `0x${String(n).repeat(40)}` : `o${n}`));
/** Clients of few networks. */
export const CLIENTS = [1, 2, 3, 4, 5].flatMap((n) => [`192.0.2.${n}`, `198.51.100.${n}`]);

const bid = fc.record({
	do: fc.constant("bid" as const),
	target: fc.nat(TARGETS - 1),
	owner: fc.nat(OWNERS.length - 1),
	signer: fc.nat(11),
	client: fc.nat(CLIENTS.length - 1),
	nonce: fc.nat(1),
	value: fc.integer({ min: 1, max: 9 }),
	uuid: fc.option(fc.nat(1)),
	ahead: fc.constantFrom(0, 0, 0, 1),
	span: fc.nat(3),
	builders: fc.constantFrom(null, null, null, ["a"], ["b"]),
});
/** One step of the auction's model. */
export const command = fc.oneof(
	{ weight: 20, arbitrary: bid },
	{
		weight: 2,
		arbitrary: fc.record({ do: fc.constant("cancel" as const), owner: fc.nat(4), uuid: fc.nat(1) }),
	},
	{
		weight: 3,
		arbitrary: fc.record({ do: fc.constant("head" as const), mines: fc.option(fc.nat(TARGETS - 1)) }),
	},
	{
		weight: 8,
		arbitrary: fc.record({
			do: fc.constant("mined" as const),
			target: fc.nat(TARGETS - 1),
			/** Which of the backruns that the first builder has. */
			which: fc.nat(2),
			/** Hundredths of its bid that it pays; null: the node can't trace it. */
			pays: fc.constantFrom(100, 100, 300, 50, 0, null),
			/** Not right behind its target: another backrun, or anything else, is there. */
			isLater: fc.constantFrom(false, false, false, true),
		}),
	},
	{ weight: 2, arbitrary: fc.record({ do: fc.constant("reorg" as const), keeps: fc.boolean() }) },
	{
		weight: 2,
		arbitrary: fc.record({ do: fc.constant("falls" as const), bid: fc.nat(30), value: fc.nat(9) }),
	},
	{
		weight: 1,
		arbitrary: fc.record({ do: fc.constant("out" as const), client: fc.nat(4), isUnavailable: fc.boolean() }),
	},
	{
		weight: 1,
		arbitrary: fc.record({
			do: fc.constant("fails" as const),
			target: fc.nat(TARGETS - 1),
			fails: fc.boolean(),
		}),
	},
	{ weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
	{
		weight: 7,
		arbitrary: fc.record({ do: fc.constant("comes" as const), target: fc.nat(TARGETS - 1) }),
	},
	{
		weight: 1,
		arbitrary: fc.record({ do: fc.constant("ends" as const), target: fc.nat(TARGETS - 1) }),
	},
);
export type Command = typeof command extends fc.Arbitrary<infer C> ? C : never;

function bidOf(at: number, value: number, more: { signer?: number; nonce?: number } = {}): Command {
	const own = { owner: at, signer: at, client: at, nonce: 0, value, uuid: null, span: 9 };
	return { do: "bid", target: 0, builders: null, ahead: 0, ...own, ...more };
}

/**
 * A sequence that chance seldom brings: more clients than slots, one of them with two of the
 * highest bids, and more records than slots for them.
 */
const CROWD: Command[] = [
	...[2, 9, 5, 1, 7, 3].flatMap((value, at): Command[] => [
		bidOf(at, value),
		{ do: "mined", target: 0, which: 0, pays: 100, isLater: false },
		{ do: "comes", target: 0 },
	]),
	...CLIENTS.map((_, at) => bidOf(at, 1 + (at % 7), { nonce: 1 })),
	bidOf(6, 9, { signer: 10 }),
	bidOf(6, 8, { signer: 11 }),
	// Each block draws anew.
	...Array.from({ length: 5 }, (): Command => ({ do: "head", mines: null })),
];

/** The same: a sender's backruns by several clients, which move from slot to slot. */
const SENDERS: Command[] = [
	[5, 4, 1],
	[3, 0, 1],
	[0, 3, 1],
	[3, 3, 2],
	[4, 1, 3],
	[1, 0, 2],
].map(([signer = 0, client = 0, value = 0]): Command => {
	const bid = { owner: 0, signer, client, nonce: 0, value, uuid: null, span: 0 };
	return { do: "bid", target: 1, builders: null, ahead: 0, ...bid };
});

/** Sequences that chance seldom brings. */
export const SELDOM: readonly Command[][] = [CROWD, SENDERS];

/** The cases that the runs must reach. Runs without a case would prove nothing about it. */
export const CORNERS = [
	...["replaced", "cancelled", "reorganised", "came back", "later", "restarted", "rejected"],
	...["target ended", "target mined", "by record", "by lot", "a network twice", "no slot"],
];
