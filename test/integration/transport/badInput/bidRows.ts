// Well-formed bids and bundles that can't be accepted, with their exact answers, at a head of 3 and beside pending
// targets. Those that must not be told apart have one answer.

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
import type { CallRow, WireError } from "./rows.ts";

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

const NOT_FOUND = refusal("TARGET_NOT_FOUND", "target transaction not found");
const UNKNOWN = `0x${"ab".repeat(32)}`;
/** Of an account that has no other transaction. */
const good = backrunBy(10, 1_000n);

function refusal(reason: string, message: string): WireError {
	return { code: -32000, message, data: { reason } };
}

/** A bid by each of the two methods. */
function bid(name: string, target: string, raw: string, error: WireError): CallRow[] {
	const inclusion = { block: `0x${(HEAD + 1).toString(16)}` };
	const body = [{ hash: target }, { tx: raw }];
	return [
		{ name, method: "eth_sendBundle", params: [{ txs: [target, raw] }], error },
		{ name, method: "mev_sendBundle", params: [{ version: "v0.1", inclusion, body }], error },
	];
}

/** A bid on SHARED whose backrun is bad, and the same as a plain bundle where that is checked. */
function backrun(name: string, raw: string, reason: string, message: string): CallRow[] {
	return bid(name, SHARED.hash, raw, refusal(reason, message));
}

function bad(name: string, options: TxOptions, message: string): CallRow[] {
	const { raw } = backrunBy(11, 1n, options);
	return [...backrun(name, raw, "BAD_TRANSACTION", message), plain(name, raw, message)];
}

function plain(name: string, raw: string, message: string): CallRow {
	return {
		name: `${name}, as a plain bundle`,
		method: "mev_sendBundle",
		params: [{ version: "v0.1", inclusion: { block: "0x4" }, body: [{ tx: good.raw }, { tx: raw }] }],
		error: refusal("BAD_TRANSACTION", `${message} (body[1])`),
	};
}

const TARGETS: readonly CallRow[] = [
	...bid("an unknown target", UNKNOWN, good.raw, NOT_FOUND),
	...bid("itself behind it", SHARED.hash, SHARED.raw, NOT_FOUND),
	...bid("the backrun itself as the target", good.hash, good.raw, NOT_FOUND),
	...Object.entries(HIDDEN).flatMap(([name, [, { hash }]]) => bid(name, hash, good.raw, NOT_FOUND)),
	...Object.entries(HIDDEN).flatMap(([name, [, { hash }]]) =>
		bid(`${name}, with a backrun that reverts`, hash, signedBy(12, { to: REVERTER }).raw, NOT_FOUND),
	),
];

const block = (number: bigint | number): string => `0x${number.toString(16)}`;

function ranged(name: string, first: string, last: string | undefined, error: WireError): CallRow[] {
	const inclusion = { block: first, ...(last === undefined ? {} : { maxBlock: last }) };
	const bodies = [[{ hash: SHARED.hash }, { tx: good.raw }], [{ tx: good.raw }]];
	return bodies.map((body, i) => ({
		name: `${name}, ${i === 0 ? "a bid" : "plain"}`,
		method: "mev_sendBundle",
		params: [{ version: "v0.1", inclusion, body }],
		error,
	}));
}

const BLOCKS: readonly CallRow[] = [
	...[0, 1, HEAD - 1].map((number) => ({
		name: `block ${number}`,
		method: "eth_sendBundle",
		params: [{ txs: [SHARED.hash, good.raw], blockNumber: block(number) }],
		error: refusal("BLOCK_PAST", `bundle block ${number} is in the past`),
	})),
	...[HEAD + 31, 1_000_000, 2n ** 64n, 2n ** 256n - 1n].map((number) => ({
		name: `block ${number}`,
		method: "eth_sendBundle",
		params: [{ txs: [SHARED.hash, good.raw], blockNumber: block(number) }],
		error: refusal("BLOCK_TOO_FAR", `bundle block ${number} is too far ahead`),
	})),
	...ranged(
		"a block before the head",
		"0x2",
		undefined,
		refusal("BLOCK_PAST", "bundle block 2 is in the past"),
	),
	...ranged("a range that is over", "0x1", "0x3", refusal("BLOCK_PAST", "bundle block 3 is in the past")),
	...ranged(
		"a block too far ahead",
		block(HEAD + 31),
		undefined,
		refusal("BLOCK_TOO_FAR", `bundle block ${HEAD + 31} is too far ahead`),
	),
	...ranged(
		"a range too far ahead",
		block(2n ** 64n),
		block(2n ** 64n + 30n),
		refusal("BLOCK_TOO_FAR", `bundle block ${2n ** 64n} is too far ahead`),
	),
];

/** Undecodable backruns and members of plain bundles. */
function broken(name: string, raw: string, message: string): CallRow[] {
	return [...backrun(name, raw, "BAD_TRANSACTION", message), plain(name, raw, message)];
}

const TRANSACTIONS: readonly CallRow[] = [
	...broken("no bytes", "0x", "rlp: empty input"),
	...broken("an empty list behind the type", "0x02c0", "rlp: chainId: missing"),
	...broken("an unknown type", "0x05c0", "transaction type not supported"),
	...bad("another chain", { chainId: 1n }, "invalid chain id for signer: have 1 want 31337"),
	...bad(
		"a legacy one of another chain",
		{ type: 0, chainId: 5n },
		"invalid chain id for signer: have 5 want 31337",
	),
	...bad("too little gas", { gasLimit: 20_999 }, "intrinsic gas too low: gas 20999, minimum needed 21000"),
	...bad(
		"a priority fee above the fee cap",
		{ maxFeePerGas: 5, maxPriorityFeePerGas: 6 },
		"max priority fee per gas higher than max fee per gas: maxPriorityFeePerGas: 6, maxFeePerGas: 5",
	),
];

/** Of 100,000 gas at 20 gwei. */
const COST = 100_000n * 20_000_000_000n;
const nothing = `backrun pays nothing to the fee recipient ${COINBASE}`;
const SIMULATED: readonly CallRow[] = [
	...backrun("it reverts", signedBy(13, { to: REVERTER }).raw, "BACKRUN_REVERTED", "backrun reverted"),
	...backrun(
		"it reverts with a reason",
		signedBy(14, { to: REASONER }).raw,
		"BACKRUN_REVERTED",
		`backrun reverted: ${REASON}`,
	),
	...backrun("it pays somebody else", signedBy(15, { to: MISER, value: 7n }).raw, "PAYS_NOTHING", nothing),
	...backrun("it pays zero", backrunBy(16, 0n).raw, "PAYS_NOTHING", nothing),
	...backrun(
		"a nonce ahead",
		backrunBy(17, 1n, { nonce: 1 }).raw,
		"BACKRUN_INVALID",
		"nonce too high: next nonce 0, tx nonce 1",
	),
	...backrun(
		"a nonce behind its target's",
		backrunBy(0, 1n, { nonce: 2 }).raw,
		"BACKRUN_INVALID",
		"nonce too high: next nonce 1, tx nonce 2",
	),
	...backrun(
		"an account without ether",
		backrunBy(BIDDERS, 5n).raw,
		"BACKRUN_INVALID",
		`insufficient funds for gas * price + value: balance 0, tx cost ${COST + 5n}, overshot ${COST + 5n}`,
	),
	...backrun(
		"an account with too little beside what it pays",
		backrunBy(18, FUNDS).raw,
		"BACKRUN_INVALID",
		`insufficient funds for gas * price + value: balance ${FUNDS}, tx cost ${FUNDS + COST}, overshot ${COST}`,
	),
	...bid(
		"its target's own nonce",
		SECOND.hash,
		backrunBy(1, 5n, { nonce: 1 }).raw,
		refusal("BACKRUN_INVALID", "nonce too low: next nonce 2, tx nonce 1"),
	),
	...bid(
		"a used nonce",
		SHARED.hash,
		backrunBy(1, 5n, { nonce: 0 }).raw,
		refusal("BACKRUN_INVALID", "nonce too low: next nonce 1, tx nonce 0"),
	),
];

export const BID_ROWS: readonly CallRow[] = [...TARGETS, ...BLOCKS, ...TRANSACTIONS, ...SIMULATED];
