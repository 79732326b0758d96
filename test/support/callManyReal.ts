// Puts transactions and impersonated calls into blocks of a chain, and reads what each returned from receipts and
// traces of what was mined. Uses no code of the relay.

import assert from "node:assert/strict";
import type { DevChain } from "../devnet/devChain.ts";
import { BLOCK_GAS, COINBASE, type Entry } from "./callManyFixture.ts";
import type { GethBlock, GethChain } from "./geth.ts";

/** How one of them really ended; null: no block took it. */
export type RealOutcome = {
	readonly ok: boolean;
	/** Hex digits: return data, code, or revert data. */
	readonly value: string;
	readonly reverted: boolean;
} | null;

/** Raw bytes as hex, or what `eth_sendTransaction` takes. */
export type Sendable = string | Readonly<Record<string, unknown>>;

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

/** Mines `blocks` one after another; hashes of what was taken by the pool, in the order of the sends. */
export async function mineBlocks(
	chain: DevChain,
	blocks: readonly RealBlock[],
): Promise<(string | null)[][]> {
	const hashes: (string | null)[][] = [];
	// What an earlier chain did not take would come into this one.
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
		// One after another: the pool keeps the order in which they come.
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
 * What becomes of `sends` in one block whose builder goes through them in order, and leaves out what can't be executed
 * at that point: the first that the chain does not take is left out, and all of it is done again. Of those with one
 * key (sender and nonce) the pool would keep the dearest: a later one only gets its turn when the earlier is left out.
 * The chain is as before afterwards.
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

/** The chain's last block. */
export interface RealHead {
	readonly number: number;
	/** Seconds since the epoch. */
	readonly timestamp: number;
	/** Wei per gas of the block after it. */
	readonly nextBaseFee: bigint;
}

export async function readHead(chain: DevChain): Promise<RealHead> {
	const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const history = (await chain.rpc("eth_feeHistory", ["0x1", head.number, []])) as {
		baseFeePerGas: string[];
	};
	return {
		number: Number(head.number),
		timestamp: Number(head.timestamp),
		nextBaseFee: BigInt(history.baseFeePerGas[1] ?? 0),
	};
}

/** Asserts that an entry of an answer tells what really happened. */
export function checkEntry(entry: Entry | undefined, real: RealOutcome, what: string): void {
	assert.ok(entry !== undefined, what);
	const { value, error } = entry;
	assert.equal(value, real?.value ?? "", what);
	assert.equal(error === undefined, real?.ok ?? false, what);
	if (error !== undefined) assert.equal(/^execution reverted/.test(error), real?.reverted ?? false, what);
}

/** For counting. */
export function kindOf(real: RealOutcome): "passed" | "reverted" | "halted" | "notRun" {
	if (real === null) return "notRun";
	if (real.ok) return "passed";
	return real.reverted ? "reverted" : "halted";
}

/** Empty blocks, a second after another. */
async function mineUpTo(chain: DevChain, { number }: RealBlock): Promise<void> {
	const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const missing = number - Number(head.number) - 1;
	if (missing < 0) throw new Error("that block is mined already");
	for (let i = 1; i <= missing; i++) {
		await chain.rpc("evm_setNextBlockTimestamp", [Number(head.timestamp) + i]);
		await chain.rpc("evm_mine");
	}
}

/** What became of them. */
export async function readOutcomes(
	chain: DevChain,
	hashes: readonly (string | null)[],
): Promise<RealOutcome[]> {
	const sent = hashes.filter((hash) => hash !== null);
	const receipts = await chain.batch(
		sent.map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] })),
	);
	const traces = await chain.batch(
		sent.map((hash) => ({ method: "debug_traceTransaction", params: [hash, { tracer: "callTracer" }] })),
	);
	const outcomes = new Map<string, RealOutcome>();
	for (const [i, hash] of sent.entries()) {
		const [receipt, trace] = [receipts[i], traces[i]];
		const mined = receipt?.ok === true ? (receipt.result as Record<string, string> | null) : null;
		if (mined === null) continue;
		if (trace?.ok !== true) throw new Error("anvil can't trace what it mined");
		const frame = trace.result as { output?: string; error?: string };
		const ok = mined.status === "0x1";
		if (ok !== (frame.error === undefined)) throw new Error("receipt and trace differ");
		const reverted = frame.error === "execution reverted";
		const value = ok || reverted ? (frame.output ?? "0x").slice(2) : "";
		outcomes.set(hash, { ok, reverted, value: await codeOf(chain, mined, value) });
	}
	return hashes.map((hash) => (hash === null ? null : (outcomes.get(hash) ?? null)));
}

/** Of a creation that passed, the code that it left in its block; of anything else `value`. */
async function codeOf(
	chain: DevChain,
	receipt: Readonly<Record<string, string | null>>,
	value: string,
): Promise<string> {
	if (receipt.contractAddress == null || receipt.status !== "0x1") return value;
	const left = await chain.rpc("eth_getCode", [receipt.contractAddress, receipt.blockNumber]);
	return String(left).slice(2);
}

/** Mines a block of those of `txs` that geth takes one behind another; what became of each, null where it took it not. */
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
	const mined = (await geth.rpc("eth_getBlockByHash", [hash, false])) as {
		number: string;
		transactions: string[];
	};
	const outcomes = new Map<string, RealOutcome>();
	for (const [i, tx] of mined.transactions.entries()) {
		outcomes.set(kept[i] ?? "", await readOutcome(geth, tx, mined.number));
	}
	return txs.map((tx) => outcomes.get(tx) ?? null);
}

async function readOutcome(geth: GethChain, hash: string, number: string): Promise<RealOutcome> {
	const receipt = (await geth.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string | null>;
	const traced = await geth.rpc("debug_traceTransaction", [hash, { tracer: "callTracer" }]);
	const { error, output = "0x" } = traced as { error?: string; output?: string };
	const ok = receipt.status === "0x1";
	if (ok !== (error === undefined)) throw new Error("receipt and trace differ");
	const reverted = error === "execution reverted";
	if (!ok || receipt.contractAddress == null) {
		return { ok, reverted, value: ok || reverted ? output.slice(2) : "" };
	}
	const left = await geth.rpc("eth_getCode", [receipt.contractAddress, number]);
	return { ok, reverted, value: String(left).slice(2) };
}
