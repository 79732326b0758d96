// The steps that the auction's model goes through, at random: few owners, addresses, senders and values, so that many meet.

import fc from "fast-check";

export const TARGETS = 2;
export const OWNERS = ["o0", "o1", "o2", "o3", "o4", "o5", "o6"];
export const CLIENTS = ["n0", "n1", "n2", "n3", "n4"];

const bid = fc.record({
	do: fc.constant("bid" as const),
	target: fc.nat(TARGETS - 1),
	owner: fc.nat(OWNERS.length - 1),
	signer: fc.nat(7),
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
			pays: fc.constantFrom(100, 100, 99, 98, 0, null),
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

/** What chance seldom brings: who is barred had another bid. */
const LEAVES: Command[] = [
	...[0, 1].map((at): Command => {
		const bid = { owner: at, signer: at, client: 0, nonce: 0, value: 5, uuid: null, span: 3 };
		return { do: "bid", target: at, builders: null, ahead: 0, ...bid };
	}),
	{ do: "mined", target: 0, which: 0, pays: 0, isLater: false },
];

/** The same: who has paid bids less than as many others as there are places, and one more. */
const PROVEN: Command[] = [
	{
		do: "bid",
		target: 0,
		builders: null,
		ahead: 0,
		...{ owner: 0, signer: 0, client: 0, nonce: 0, value: 1, uuid: null, span: 0 },
	},
	{ do: "mined", target: 0, which: 0, pays: 100, isLater: false },
	{ do: "comes", target: 0 },
	...[0, 1, 2, 3, 4].map((at): Command => {
		const bid = { owner: at, signer: at, client: at, nonce: 1, value: at === 0 ? 2 : 9, uuid: null, span: 0 };
		return { do: "bid", target: 0, builders: null, ahead: 0, ...bid };
	}),
];

/** The same: three blocks with targets that a bidder had places on, and a fourth bid of its. */
const SPENT: Command[] = [0, 1, 0, 1].flatMap((at): Command[] => [
	{ do: "comes", target: at },
	{
		...{ do: "bid", target: at, owner: 0, signer: 0, client: 0, nonce: 0, value: 5 },
		...{ uuid: null, ahead: 0, span: 0, builders: null },
	},
	{ do: "head", mines: at },
]);

/** Sequences that chance seldom brings. */
export const SELDOM: readonly Command[][] = [LEAVES, PROVEN, SPENT];

/** What the runs must have come to: one that never did would prove nothing about it. */
export const CORNERS = [
	"replaced",
	"cancelled",
	"reorganised",
	"came back",
	"barred",
	"proven",
	"proven before dearer ones",
	"spent",
	"later",
	"restarted",
	"left",
	"rejected",
	...["target ended", "target mined", "runner-up", "outbid", "no place"],
];
