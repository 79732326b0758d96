// Has anvil mine transactions in exactly the given order: fills its pool with them, and mines a chosen block on the watched
// chain in one burst, after which the pool is as it was, without our own transactions.

import { isDeepStrictEqual } from "node:util";
import { type ChainHead, type ChainRpc, type MinedBlock, readHead, readLatestBlock } from "./chainRpc.ts";

/** A transaction to push. */
export interface Pushed {
	readonly raw: string;
	/** Lower-case. */
	readonly hash: string;
}

/**
 * anvil 1.7.1 works off a batch concurrently: 1,000 calls in one came out shuffled, up to 50 never did. Batches of
 * 16 are as fast as large ones.
 */
const PUSH_BATCH = 16;

/**
 * Pushes `transactions` into the pool, which must hold none of them, in their order; then asks for the pending
 * block, which shows the order they will be mined in. The hashes of that block, as far as they are ours; what the
 * pool refused or cannot mine is missing in it.
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

/** Pushes `transactions` without a look at what becomes of them. */
async function push(rpc: ChainRpc, transactions: readonly Pushed[], batch = PUSH_BATCH): Promise<void> {
	for (let at = 0; at < transactions.length; at += batch) {
		const some = transactions.slice(at, at + batch);
		await rpc.batch(some.map(({ raw }) => ({ method: "eth_sendRawTransaction", params: [raw] })));
	}
}

/** A block to be mined. */
interface BurstOptions {
	/** The head it was made for. */
	readonly head: ChainHead;
	readonly coinbase: string;
	/** Unix seconds. */
	readonly timestamp: number;
	/** In their order. The block holds just these, and behind them what the public pool has. */
	readonly transactions: readonly Pushed[];
}

/**
 * How a burst went. `moved`: the head or its terms are not those that were given. `refused`: the chain does not take
 * some transactions (hashes). Nothing was mined then, and the pool is as it was.
 */
type BurstOutcome =
	| { readonly outcome: "mined"; readonly block: MinedBlock; readonly publicTransactions: readonly string[] }
	| { readonly outcome: "moved" }
	| { readonly outcome: "refused"; readonly hashes: readonly string[] };

/** Mines one block, of all that is given or not at all. */
export async function mineBlock(rpc: ChainRpc, options: BurstOptions): Promise<BurstOutcome> {
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
		// Those that are there or mined are refused. The others anvil threw out, since it had no room.
		await push(rpc, others);
	}
}

/** By sender and decimal nonce. */
type PoolPart = Record<string, Record<string, { readonly hash: string }>>;

/** The pool's transactions as they were sent, each sender's by nonce; blobs come with their sidecar. */
async function readPool(rpc: ChainRpc): Promise<Pushed[]> {
	const status = (await rpc.call("txpool_status")) as { pending: string; queued: string };
	if (Number(status.pending) + Number(status.queued) === 0) return [];
	const { pending, queued } = (await rpc.call("txpool_content")) as Record<"pending" | "queued", PoolPart>;
	const hashes = [pending, queued].flatMap((part) =>
		Object.values(part).flatMap((sent) => {
			const nonces = Object.keys(sent).sort((a, b) => Number(a) - Number(b));
			return nonces.flatMap((nonce) => sent[nonce]?.hash ?? []);
		}),
	);
	const raws = await rpc.each(
		"eth_getRawTransactionByHash",
		hashes.map((hash) => [hash]),
	);
	return hashes.flatMap((hash, i) => {
		const raw = raws[i];
		return typeof raw === "string" ? [{ raw, hash }] : [];
	});
}

/** Keeps bursts and those who must not see one apart; of each kind one at a time, in the order they came. */
export class BurstLock {
	#last: Promise<unknown> = Promise.resolve();
	/** True while a burst is under way. */
	burst = false;
	/** How many bursts have begun. */
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

	/** Runs `fn` while no burst is under way. */
	outside<T>(fn: () => Promise<T>): Promise<T> {
		const run = this.#last.then(fn);
		this.#last = run.catch(() => {});
		return run;
	}
}
