// The rules of admission as lists of pure functions: about the transaction alone, and about its
// sender's account. Each returns null or a rejection. The pool has its own rules (replacement,
// quotas).

import type { Fork } from "../../shared/ethereum/forks.ts";
import {
	belowIntrinsicGas,
	nonceAtMax,
	outsideFloorGas,
	tipAboveFeeCap,
	wrongChain,
} from "../../shared/ethereum/protocolRules.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { codeProblem, feeProblem, fundsProblem, gasLimitProblem, nonceProblem } from "./blockProblems.ts";
import type { AccountState, NextBlock } from "./chain.ts";
import { type Rejection, type RejectionCode, rejection } from "./rejection.ts";
import type { SimulationError } from "./simulation.ts";

/** The values that are the same in all blocks of the chain. */
export interface ChainRules {
	readonly chainId: bigint;
}

/** A rule that holds in every block of a fork. */
export type ProtocolRule = (
	tx: DecodedTransaction,
	chain: ChainRules,
	block: Pick<NextBlock, "fork">,
) => Rejection | null;
/** A rule about the transaction alone. */
export type StaticRule = (tx: DecodedTransaction, chain: ChainRules, next: NextBlock) => Rejection | null;
/** A rule about the sender's account in the state of the head. */
export type AccountRule = (tx: DecodedTransaction, account: AccountState) => Rejection | null;

/** Most bytes of a transaction, as in go-ethereum's pools: 128 KiB, with blobs 1 MiB. */
export const MAX_TX_BYTES = 128 * 1024;
export const MAX_BLOB_TX_BYTES = 1024 * 1024;
/** Most blobs of one transaction (EIP-7594). */
const MAX_BLOBS_PER_TX = 6;
/** Most nonces that a transaction may be ahead of its account. */
const MAX_NONCE_AHEAD = 64n;

const chainId: ProtocolRule = (tx, chain) => wrongChain(tx, chain.chainId);

const size: StaticRule = (tx) => {
	const limit = tx.type === 3 ? MAX_BLOB_TX_BYTES : MAX_TX_BYTES;
	return tx.size <= limit
		? null
		: rejection("OVERSIZED", `oversized data: transaction size ${tx.size}, limit ${limit}`);
};

type ForkRule = (tx: DecodedTransaction, fork: Fork) => Rejection | null;

const initcode: ForkRule = (tx, fork) =>
	tx.to !== null || tx.data.length <= fork.maxInitCodeBytes
		? null
		: rejection(
				"INITCODE_SIZE",
				`max initcode size exceeded: code size ${tx.data.length}, limit ${fork.maxInitCodeBytes}`,
			);

const blobs: StaticRule = (tx) => {
	if (tx.type !== 3) return null;
	const count = tx.blobVersionedHashes.length;
	if (count === 0) return rejection("BLOBS", "blobless blob transaction: expected at least one blob");
	return count <= MAX_BLOBS_PER_TX
		? null
		: rejection("BLOBS", `too many blobs in transaction: have ${count}, permitted ${MAX_BLOBS_PER_TX}`);
};

const authorizations: ProtocolRule = (tx) =>
	tx.type !== 4 || tx.authorizationList.length > 0
		? null
		: rejection("EMPTY_AUTH_LIST", "EIP-7702 transaction with empty auth list");

const blockGas: StaticRule = (tx, _chain, next) => rejectedBy("BLOCK_GAS_LIMIT", gasLimitProblem(tx, next));

const transactionGas: ForkRule = (tx, fork) =>
	fork.maxTxGas === null || tx.gasLimit <= fork.maxTxGas
		? null
		: rejection("TX_GAS_LIMIT", `transaction gas limit too high (cap: ${fork.maxTxGas}, tx: ${tx.gasLimit})`);

/** The rules that depend on the fork. */
const FORK_RULES: readonly ForkRule[] = [initcode, transactionGas, belowIntrinsicGas, outsideFloorGas];
const byFork =
	(rule: ForkRule): ProtocolRule =>
	(tx, _chain, { fork }) =>
		rule(tx, fork);

const eoa: AccountRule = (tx, { code }) => rejectedBy("SENDER_NOT_EOA", codeProblem(tx, code));

const nonceLow: AccountRule = (tx, { nonce }) =>
	tx.nonce >= nonce ? null : rejectedBy("NONCE_TOO_LOW", nonceProblem(tx, nonce));

const nonceHigh: AccountRule = (tx, { nonce }) =>
	tx.nonce <= nonce + MAX_NONCE_AHEAD ? null : rejectedBy("NONCE_TOO_HIGH", nonceProblem(tx, nonce));

const funds: AccountRule = (tx, { balance }) => rejectedBy("INSUFFICIENT_FUNDS", fundsProblem(tx, balance));

function rejectedBy(code: RejectionCode, problem: SimulationError | null): Rejection | null {
	return problem === null ? null : rejection(code, problem.message);
}

/**
 * In the order in which they are checked: the transaction's own faults come before the state of the
 * chain.
 */
export const STATIC_RULES: readonly StaticRule[] = [
	chainId,
	size,
	byFork(initcode),
	tipAboveFeeCap,
	blobs,
	authorizations,
	byFork(transactionGas),
	blockGas,
	byFork(belowIntrinsicGas),
	byFork(outsideFloorGas),
	nonceAtMax,
];
/**
 * The rules that hold in every block of a fork. The rules of pools (size, blob count) and of the
 * next block (gas limit) are not among them.
 */
export const PROTOCOL_RULES: readonly ProtocolRule[] = [
	chainId,
	byFork(initcode),
	tipAboveFeeCap,
	authorizations,
	byFork(transactionGas),
	byFork(belowIntrinsicGas),
	byFork(outsideFloorGas),
	nonceAtMax,
];
export const ACCOUNT_RULES: readonly AccountRule[] = [eoa, nonceLow, nonceHigh, funds];

/** The base fee falls by at most an eighth per block (EIP-1559). */
const FEE_FALLS = { to: 7n, of: 8n };

/**
 * The rejection of a transaction that can't be mined within `ttlBlocks` even if the base fee falls
 * as fast as possible; else null. The blob fee is not checked, since its rate of change depends on
 * the fork.
 */
export function hopelessFeeCap(
	tx: DecodedTransaction,
	{ baseFee }: Pick<NextBlock, "baseFee">,
	ttlBlocks: number,
): Rejection | null {
	const life = BigInt(ttlBlocks);
	if (tx.maxFeePerGas * FEE_FALLS.of ** life >= baseFee * FEE_FALLS.to ** life) return null;
	const least = (baseFee * FEE_FALLS.to ** life + FEE_FALLS.of ** life - 1n) / FEE_FALLS.of ** life;
	const fees = `address ${tx.from}, maxFeePerGas: ${tx.maxFeePerGas}, baseFee: ${baseFee}`;
	return rejection(
		"FEE_CAP_TOO_LOW",
		`max fee per gas less than block base fee: ${fees}, expected at least ${least}`,
	);
}

/**
 * Why the block can't contain `tx` in any state, by its fees or its fork's rules, or null. An
 * earlier block admitted it.
 */
export function blockProblem(
	tx: DecodedTransaction,
	block: Pick<NextBlock, "baseFee" | "blobBaseFee" | "fork">,
): SimulationError | null {
	const fees = feeProblem(tx, block);
	if (fees !== null) return fees;
	const rejected = forkVerdict(tx, block.fork);
	return rejected === null ? null : { code: "FORK_RULES", message: rejected.message };
}

/** The fork's rules read the lists of a transaction of more bytes only once. */
const LARGE_BYTES = 1_024;

interface ForkVerdict {
	readonly fork: NextBlock["fork"];
	readonly rejected: Rejection | null;
}

/**
 * The last verdict on each large transaction. To decode its authorizations may take milliseconds,
 * and the pool asks for all of a sender's transactions with each further one.
 */
const verdicts = new WeakMap<DecodedTransaction, ForkVerdict>();

function forkVerdict(tx: DecodedTransaction, fork: NextBlock["fork"]): Rejection | null {
	if (tx.size <= LARGE_BYTES) return firstRejection(FORK_RULES, tx, fork);
	const known = verdicts.get(tx);
	if (known?.fork === fork) return known.rejected;
	const rejected = firstRejection(FORK_RULES, tx, fork);
	verdicts.set(tx, { fork, rejected });
	return rejected;
}

/** The first rejection of `rules`, or null. */
export function firstRejection<A extends readonly unknown[]>(
	rules: readonly ((...args: A) => Rejection | null)[],
	...args: A
): Rejection | null {
	for (const rule of rules) {
		const rejected = rule(...args);
		if (rejected !== null) return rejected;
	}
	return null;
}
