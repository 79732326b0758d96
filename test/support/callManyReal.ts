// Mines transactions and impersonated calls in blocks of a chain, and reads from receipts and
// traces what each returned. Uses no code of the relay.

import assert from "node:assert/strict";
import type { DevChain } from "../devnet/devChain.ts";
import type { GethBlock, GethChain } from "../devnet/gethChain.ts";
import { BLOCK_GAS, COINBASE, type Entry } from "./callManyFixture.ts";

/** How a mined transaction ended; null if it could not be mined. */
export type RealOutcome = {
	readonly ok: boolean;
	/** Hex digits: return data, code, or revert data. */
	readonly value: string;
	readonly reverted: boolean;
} | null;

/** A raw transaction as hex, or the parameter of `eth_sendTransaction`. */
type Sendable = string | Readonly<Record<string, unknown>>;

/** A block to be mined. */
export interface RealBlock {
	/** Blocks before it are mined empty. */
	readonly number: number;
	readonly timestamp: number;
	readonly baseFee: bigint;
	readonly coinbase?: string | undefined;
	readonly gasLimit?: number | undefined;
	readonly sends: readonly Sendable[];
}

/** Mines `blocks` one after another; returns the hash of each send, null if the pool refused it. */
export async function mineBlocks(
	chain: DevChain,
	blocks: readonly RealBlock[],
): Promise<(string | null)[][]> {
	const hashes: (string | null)[][] = [];
	// Transactions that an earlier case left in the pool would be mined in this one.
	await chain.rpc("anvil_dropAllTransactions");
	for (const block of blocks) {
		await mineUpTo(chain, block);
		const settings = await chain.batch([
			{ method: "anvil_setCoinbase", params: [block.coinbase ?? COINBASE] },
			{ method: "evm_setBlockGasLimit", params: [`0x${(block.gasLimit ?? BLOCK_GAS).toString(16)}`] },
			{ method: "anvil_setNextBlockBaseFeePerGas", params: [`0x${block.baseFee.toString(16)}`] },
			{ method: "evm_setNextBlockTimestamp", params: [block.timestamp] },
		]);
		for (const set of settings) if (!set.ok) throw new Error(set.message);
		const inner: (string | null)[] = [];
		// Sent one after another: the pool keeps the order of arrival.
		for (const send of block.sends) {
			const method = typeof send === "string" ? "eth_sendRawTransaction" : "eth_sendTransaction";
			const [sent] = await chain.batch([{ method, params: [send] }]);
			inner.push(sent?.ok === true ? String(sent.result) : null);
		}
		await chain.rpc("evm_mine");
		hashes.push(inner);
	}
	return hashes;
}

/**
 * The outcome of `sends` in one block whose builder takes them in order and leaves out those that
 * can't be executed at that point: the first that the chain refuses is left out, and the block is
 * tried again. The pool would keep only the highest-paying of several with one key (sender and
 * nonce), so a later one is only tried when the earlier is left out. Restores the chain afterwards.
 */
export async function buildInOrder(
	chain: DevChain,
	block: RealBlock,
	keys: readonly string[],
): Promise<RealOutcome[]> {
	const left = new Set<number>();
	for (;;) {
		const snapshot = await chain.snapshot();
		const first = new Map<string, number>();
		for (const [i, key] of keys.entries()) if (!left.has(i) && !first.has(key)) first.set(key, i);
		const kept = [...first.values()].sort((a, b) => a - b);
		const sends = kept.map((i) => block.sends[i] ?? "");
		const outcomes = await readOutcomes(chain, (await mineBlocks(chain, [{ ...block, sends }])).flat());
		await chain.revert(snapshot);
		const missing = outcomes.indexOf(null);
		if (missing < 0) return keys.map((_, i) => outcomes[kept.indexOf(i)] ?? null);
		left.add(kept[missing] ?? 0);
	}
}

/** Asserts that an entry of an answer matches the real outcome. */
export function checkEntry(entry: Entry | undefined, real: RealOutcome, what: string): void {
	assert.ok(entry !== undefined, what);
	const { value, error } = entry;
	assert.equal(value, real?.value ?? "", what);
	assert.equal(error === undefined, real?.ok ?? false, what);
	if (error !== undefined) assert.equal(/^execution reverted/.test(error), real?.reverted ?? false, what);
}

/** The kind of outcome, for counting. */
export function kindOf(real: RealOutcome): "passed" | "reverted" | "halted" | "notRun" {
	if (real === null) return "notRun";
	if (real.ok) return "passed";
	return real.reverted ? "reverted" : "halted";
}

/** Mines empty blocks, a second apart, up to the one before the block. */
async function mineUpTo(chain: DevChain, { number }: RealBlock): Promise<void> {
	const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const missing = number - Number(head.number) - 1;
	if (missing < 0) throw new Error("that block is mined already");
	for (let i = 1; i <= missing; i++) {
		await chain.rpc("evm_setNextBlockTimestamp", [Number(head.timestamp) + i]);
		await chain.rpc("evm_mine");
	}
}

/** Reads the outcomes of mined transactions. */
export async function readOutcomes(
	{ rpc }: Pick<DevChain, "rpc">,
	hashes: readonly (string | null)[],
): Promise<RealOutcome[]> {
	return Promise.all(
		hashes.map(async (hash): Promise<RealOutcome> => {
			const receipt = hash === null ? null : await rpc("eth_getTransactionReceipt", [hash]);
			if (receipt === null) return null;
			const mined = receipt as Record<string, string | null>;
			const traced = await rpc("debug_traceTransaction", [hash, { tracer: "callTracer" }]);
			const { error, output = "0x" } = traced as { error?: string; output?: string };
			const ok = mined.status === "0x1";
			if (ok !== (error === undefined)) throw new Error("receipt and trace differ");
			const reverted = error === "execution reverted";
			// The value of a successful creation is the code that it deployed.
			const isCreation = ok && mined.contractAddress != null;
			const left = isCreation ? await rpc("eth_getCode", [mined.contractAddress, mined.blockNumber]) : output;
			return { ok, reverted, value: ok || reverted ? String(left).slice(2) : "" };
		}),
	);
}

/**
 * Mines a block of those of `txs` that geth accepts one after another; the outcome of each, null if
 * geth refused it.
 */
export async function mineInOrder(
	geth: GethChain,
	{ txs = [], ...block }: GethBlock,
): Promise<RealOutcome[]> {
	let kept: readonly string[] = txs;
	if (!(await geth.takes({ ...block, txs }))) {
		kept = [];
		for (const tx of txs) if (await geth.takes({ ...block, txs: [...kept, tx] })) kept = [...kept, tx];
	}
	const hash = await geth.mine({ ...block, txs: kept });
	const mined = await geth.rpc("eth_getBlockByHash", [hash, false]);
	const outcomes = await readOutcomes(geth, (mined as { transactions: string[] }).transactions);
	return txs.map((tx) => outcomes[kept.indexOf(tx)] ?? null);
}
