// Well-formed bids and bundles that can't be accepted, with their exact answers, at a head of 3 and
// beside pending targets. Those that must be indistinguishable have one answer.

import {
	BIDDERS,
	backrunBy,
	FUNDS,
	MISER,
	REASON,
	REASONER,
	REVERTER,
	signedBy,
} from "../../../support/biddingFixture.ts";
import type { TxOptions } from "../../../support/txFactory.ts";
import { type CallRow, refusal, type WireError } from "./fixture.ts";

/** The simulated coinbase. */
export const COINBASE = `0x${"c0".repeat(20)}`;
/** The head that the rows are for. */
export const HEAD = 3;

/** Pending, and shared with searchers. */
export const SHARED = signedBy(0, { value: 1n });
/** Shared as well; its sender has used one nonce. */
export const SECOND = signedBy(1, { value: 1n, nonce: 1 });
/** Pending, by path: nobody may learn of them. */
export const HIDDEN = {
	"a transfer on /fast": ["/fast", signedBy(2, { value: 1n })],
	"a transfer on /noreverts": ["/noreverts", signedBy(3, { value: 1n })],
	"one on /fullprivacy": ["/fullprivacy", signedBy(4, { value: 1n })],
	"one on /nochecks": ["/nochecks", signedBy(5, { value: 1n })],
	"one behind a gap": ["/maxbackruns", signedBy(6, { value: 1n, nonce: 2 })],
} as const;

/** A backrun of an account that has no other transaction. */
const good = backrunBy(10, 1_000n);

const block = (number: bigint | number): string => `0x${number.toString(16)}`;

function share(name: string, inclusion: object, body: readonly object[], error: WireError): CallRow {
	return { name, method: "mev_sendBundle", params: [{ version: "v0.1", inclusion, body }], error };
}

/** A bid by each of the two methods. */
function bid(name: string, target: string, raw: string, error: WireError): CallRow[] {
	return [
		{ name, method: "eth_sendBundle", params: [{ txs: [target, raw] }], error },
		share(name, { block: block(HEAD + 1) }, [{ hash: target }, { tx: raw }], error),
	];
}

const NOT_FOUND = refusal("TARGET_NOT_FOUND", "target transaction not found");
const reverting = signedBy(12, { to: REVERTER });

const TARGETS: readonly CallRow[] = [
	...bid("an unknown target", `0x${"ab".repeat(32)}`, good.raw, NOT_FOUND),
	...bid("itself behind it", SHARED.hash, SHARED.raw, NOT_FOUND),
	...bid("the backrun itself as the target", good.hash, good.raw, NOT_FOUND),
	...Object.entries(HIDDEN).flatMap(([name, [, { hash }]]) => [
		...bid(name, hash, good.raw, NOT_FOUND),
		...bid(`${name}, with a backrun that reverts`, hash, reverting.raw, NOT_FOUND),
	]),
];

const past = (number: number) => refusal("BLOCK_PAST", `bundle block ${number} is in the past`);
const far = (number: bigint | number) => refusal("BLOCK_TOO_FAR", `bundle block ${number} is too far ahead`);
const inBlock = (number: bigint | number, error: WireError): CallRow => ({
	...{ name: `block ${number}`, method: "eth_sendBundle", error },
	params: [{ txs: [SHARED.hash, good.raw], blockNumber: block(number) }],
});

function ranged(name: string, inclusion: object, error: WireError): CallRow[] {
	return [
		share(`${name}, a bid`, inclusion, [{ hash: SHARED.hash }, { tx: good.raw }], error),
		share(`${name}, plain`, inclusion, [{ tx: good.raw }], error),
	];
}

const BLOCKS: readonly CallRow[] = [
	...[0, 1, HEAD - 1].map((number) => inBlock(number, past(number))),
	...[HEAD + 31, 1_000_000, 2n ** 64n, 2n ** 256n - 1n].map((number) => inBlock(number, far(number))),
	...ranged("a block before the head", { block: "0x2" }, past(2)),
	...ranged("a range that is over", { block: "0x1", maxBlock: "0x3" }, past(3)),
	...ranged("a block too far ahead", { block: block(HEAD + 31) }, far(HEAD + 31)),
	...ranged(
		"a range too far ahead",
		{ block: block(2n ** 64n), maxBlock: block(2n ** 64n + 30n) },
		far(2n ** 64n),
	),
];

/**
 * A backrun of SHARED that is no transaction for this chain, and the same as the second one of a
 * plain bundle.
 */
function bad(name: string, raw: string, message: string): CallRow[] {
	const body = [{ tx: good.raw }, { tx: raw }];
	return [
		...bid(name, SHARED.hash, raw, refusal("BAD_TRANSACTION", message)),
		share(
			`${name}, as a plain bundle`,
			{ block: "0x4" },
			body,
			refusal("BAD_TRANSACTION", `${message} (body[1])`),
		),
	];
}

const made = (options: TxOptions): string => backrunBy(11, 1n, options).raw;
const wrongChain = (have: number): string => `invalid chain id for signer: have ${have} want 31337`;

const TRANSACTIONS: readonly CallRow[] = [
	...bad("no bytes", "0x", "rlp: empty input"),
	...bad("an empty list behind the type", "0x02c0", "rlp: chainId: missing"),
	...bad("an unknown type", "0x05c0", "transaction type not supported"),
	...bad("another chain", made({ chainId: 1n }), wrongChain(1)),
	...bad("a legacy one of another chain", made({ type: 0, chainId: 5n }), wrongChain(5)),
	...bad(
		"too little gas",
		made({ gasLimit: 20_999 }),
		"intrinsic gas too low: gas 20999, minimum needed 21000",
	),
	...bad(
		"a priority fee above the fee cap",
		made({ maxFeePerGas: 5, maxPriorityFeePerGas: 6 }),
		"max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: 6, maxFeePerGas: 5",
	),
];

/** The cost of 100,000 gas at 20 gwei. */
const COST = 100_000n * 20_000_000_000n;
const NOTHING = refusal("PAYS_NOTHING", `backrun pays nothing to the fee recipient ${COINBASE}`);
const nonce = (is: string, next: number, tx: number): WireError =>
	refusal("BACKRUN_INVALID", `nonce too ${is}: next nonce ${next}, tx nonce ${tx}`);
const short = (balance: bigint, cost: bigint): WireError => {
	const figures = `balance ${balance}, tx cost ${cost}, overshot ${cost - balance}`;
	return refusal("BACKRUN_INVALID", `insufficient funds for gas * price + value: ${figures}`);
};

/** Backruns of SHARED, and what is found when they are simulated behind it. */
const SIMULATED: readonly (readonly [string, { readonly raw: string }, WireError])[] = [
	["it reverts", signedBy(13, { to: REVERTER }), refusal("BACKRUN_REVERTED", "backrun reverted")],
	[
		"it reverts with a reason",
		signedBy(14, { to: REASONER }),
		refusal("BACKRUN_REVERTED", `backrun reverted: ${REASON}`),
	],
	["it pays somebody else", signedBy(15, { to: MISER, value: 7n }), NOTHING],
	["it pays zero", backrunBy(16, 0n), NOTHING],
	["a nonce ahead", backrunBy(17, 1n, { nonce: 1 }), nonce("high", 0, 1)],
	["a nonce behind its target's", backrunBy(0, 1n, { nonce: 2 }), nonce("high", 1, 2)],
	["an account without ether", backrunBy(BIDDERS, 5n), short(0n, COST + 5n)],
	["an account with too little beside what it pays", backrunBy(18, FUNDS), short(FUNDS, FUNDS + COST)],
	["a used nonce", backrunBy(1, 5n, { nonce: 0 }), nonce("low", 1, 0)],
];

export const BID_ROWS: readonly CallRow[] = [
	...[...TARGETS, ...BLOCKS, ...TRANSACTIONS],
	...SIMULATED.flatMap(([name, { raw }, error]) => bid(name, SHARED.hash, raw, error)),
	...bid("its target's own nonce", SECOND.hash, backrunBy(1, 5n, { nonce: 1 }).raw, nonce("low", 2, 1)),
];
