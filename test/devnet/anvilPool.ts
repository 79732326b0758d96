// Makes anvil mine transactions in exactly the given order. A burst empties the pool, fills it with
// the transactions of one block, mines it on the public chain, and restores the pool.

import { isDeepStrictEqual } from "node:util";
import type { BlockToMine, MiningOutcome, Pushed } from "./buildingNode.ts";
import { type ChainRpc, readHead, readLatestBlock } from "./chainRpc.ts";
import { readPool } from "./publicPool.ts";

/**
 * anvil 1.7.1 handles the calls of a batch concurrently: of 1,000 the order was lost, of up to 50
 * it never was. Batches of 16 are as fast as large ones.
 */
const PUSH_BATCH = 16;

/**
 * Pushes `transactions`, none of which the pool may hold yet, in order. Returns the hashes of ours
 * in the pending block, in the order in which they will be mined; those that the pool refused or
 * can't mine are missing.
 */
export async function pushInOrder(rpc: ChainRpc, transactions: readonly Pushed[]): Promise<string[]> {
	if (transactions.length === 0) return [];
	const place = new Map(transactions.map(({ hash }, i) => [hash, i]));
	for (const batch of [PUSH_BATCH, 1]) {
		await push(rpc, transactions, batch);
		const block = await rpc.call("eth_getBlockByNumber", ["pending", false]);
		const ours = (block as { transactions: string[] }).transactions.filter((hash) => place.has(hash));
		const places = ours.map((hash) => place.get(hash) ?? -1);
		if (places.every((at, i) => i === 0 || at > (places[i - 1] ?? -1))) return ours;
		await rpc.call("anvil_dropAllTransactions");
	}
	throw new Error("anvil does not keep its pool in order");
}

/** Pushes `transactions`, and ignores whether the pool accepts them. */
async function push(rpc: ChainRpc, transactions: readonly Pushed[], batch = PUSH_BATCH): Promise<void> {
	for (let at = 0; at < transactions.length; at += batch) {
		const some = transactions.slice(at, at + batch);
		await rpc.batch(some.map(({ raw }) => ({ method: "eth_sendRawTransaction", params: [raw] })));
	}
}

/** Mines one block with all given transactions, or none; then the pool is restored. */
export async function mineBlock(rpc: ChainRpc, options: BlockToMine): Promise<MiningOutcome> {
	const own = new Set(options.transactions.map(({ hash }) => hash));
	const others = (await readPool(rpc)).filter(({ hash }) => !own.has(hash));
	const pool = { dropped: [...own] };
	await rpc.call("anvil_dropAllTransactions");
	try {
		if (!isDeepStrictEqual(await readHead(rpc), options.head)) return { outcome: "moved" };
		await rpc.call("anvil_setCoinbase", [options.coinbase]);
		const pending = new Set(await pushInOrder(rpc, options.transactions));
		const hashes = [...own].filter((hash) => !pending.has(hash));
		if (hashes.length > 0) return { outcome: "refused", hashes };
		await push(rpc, others);
		await rpc.call("evm_mine", [{ timestamp: options.timestamp }]);
		const block = await readLatestBlock(rpc);
		const publicTransactions = block.transactions.filter((hash) => !own.has(hash));
		pool.dropped = [...own].filter((hash) => !block.transactions.includes(hash));
		return { outcome: "mined", block, publicTransactions };
	} finally {
		await rpc.batch(pool.dropped.map((hash) => ({ method: "anvil_dropTransaction", params: [hash] })));
		// Those that are in the pool or mined are refused; the others anvil had dropped, for lack of
		// room.
		await push(rpc, others);
	}
}

/**
 * Keeps bursts apart from work that must not see one; of each kind one runs at a time, in order of
 * arrival.
 */
export class BurstLock {
	#last: Promise<unknown> = Promise.resolve();
	/** True while a burst runs. */
	burst = false;
	/** Number of bursts that have begun. */
	count = 0;

	/** Runs `fn` as a burst. */
	during<T>(fn: () => Promise<T>): Promise<T> {
		return this.outside(async () => {
			this.burst = true;
			this.count += 1;
			try {
				return await fn();
			} finally {
				this.burst = false;
			}
		});
	}

	/** Runs `fn` while no burst runs. */
	outside<T>(fn: () => Promise<T>): Promise<T> {
		const run = this.#last.then(fn);
		this.#last = run.catch(() => {});
		return run;
	}
}
