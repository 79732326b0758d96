// Mines a chosen block on the watched chain in one burst, and restores the pool as it was, without our own transactions.
// Work that must not see a burst is kept apart from it. It chooses nothing.

import { type ChainHead, type MinedBlock, readHead, readLatestBlock } from "./chainHead.ts";
import type { ChainRpc } from "./chainRpc.ts";
import { type Pushed, push, pushInOrder } from "./poolPush.ts";

/** A block to be mined. */
export interface BurstOptions {
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
export type BurstOutcome =
	| { readonly outcome: "mined"; readonly block: MinedBlock; readonly publicTransactions: readonly string[] }
	| { readonly outcome: "moved" }
	| { readonly outcome: "refused"; readonly hashes: readonly string[] };

/** Mines one block, of all that is given or not at all. */
export async function mineBlock(rpc: ChainRpc, options: BurstOptions): Promise<BurstOutcome> {
	const own = new Set(options.transactions.map(({ hash }) => hash));
	const others = (await readPool(rpc)).filter(({ hash }) => !own.has(hash));
	await rpc.call("anvil_dropAllTransactions");
	try {
		if (!sameTerms(await readHead(rpc), options.head)) {
			await push(rpc, others);
			return { outcome: "moved" };
		}
		await rpc.call("anvil_setCoinbase", [options.coinbase]);
		const pending = new Set(await pushInOrder(rpc, options.transactions));
		const refused = [...own].filter((hash) => !pending.has(hash));
		if (refused.length > 0) {
			await rpc.call("anvil_dropAllTransactions");
			await push(rpc, others);
			return { outcome: "refused", hashes: refused };
		}
		await push(rpc, others);
		await rpc.call("evm_mine", [{ timestamp: options.timestamp }]);
	} catch (thrown) {
		await rpc.call("anvil_dropAllTransactions");
		await push(rpc, others);
		throw thrown;
	}
	const block = await readLatestBlock(rpc);
	await tidyPool(rpc, own, new Set(block.transactions), others);
	return { outcome: "mined", block, publicTransactions: block.transactions.filter((hash) => !own.has(hash)) };
}

/** Takes out what is ours and was not mined; puts back what anvil threw out of the public's, since it had no room. */
async function tidyPool(
	rpc: ChainRpc,
	own: ReadonlySet<string>,
	mined: ReadonlySet<string>,
	others: readonly Pushed[],
): Promise<void> {
	const waiting = new Set(await readPoolHashes(rpc));
	const ours = [...own].filter((hash) => waiting.has(hash));
	await rpc.batch(ours.map((hash) => ({ method: "anvil_dropTransaction", params: [hash] })));
	await push(
		rpc,
		others.filter(({ hash }) => !mined.has(hash) && !waiting.has(hash)),
	);
}

function sameTerms(a: ChainHead, b: ChainHead): boolean {
	return a.hash === b.hash && a.nextBaseFee === b.nextBaseFee && a.nextGasLimit === b.nextGasLimit;
}

interface PoolTransaction {
	readonly hash: string;
	readonly gasPrice?: string;
	readonly maxPriorityFeePerGas?: string;
}
/** By sender and decimal nonce. */
type PoolPart = Record<string, Record<string, PoolTransaction>>;

/** The pool's transactions: each sender's by nonce, the senders by what their first one pays. */
async function readPoolHashes(rpc: ChainRpc): Promise<string[]> {
	const status = (await rpc.call("txpool_status")) as { pending: string; queued: string };
	if (Number(status.pending) + Number(status.queued) === 0) return [];
	const content = (await rpc.call("txpool_content")) as { pending: PoolPart; queued: PoolPart };
	const senders = [content.pending, content.queued].flatMap((part) => Object.values(part).map(byNonce));
	senders.sort(([a], [b]) => tipOf(b) - tipOf(a));
	return senders.flat().map(({ hash }) => hash);
}

function byNonce(transactions: Record<string, PoolTransaction>): PoolTransaction[] {
	const nonces = Object.keys(transactions).sort((a, b) => Number(a) - Number(b));
	return nonces.flatMap((nonce) => transactions[nonce] ?? []);
}

/** About: only for sorting. */
function tipOf(tx: PoolTransaction | undefined): number {
	return Number(tx?.maxPriorityFeePerGas ?? tx?.gasPrice ?? 0);
}

/** The pool's transactions as they were sent; blobs come with their sidecar. */
async function readPool(rpc: ChainRpc): Promise<Pushed[]> {
	const hashes = await readPoolHashes(rpc);
	const calls = hashes.map((hash) => ({ method: "eth_getRawTransactionByHash", params: [hash] }));
	const raws = await rpc.all(calls);
	return hashes.flatMap((hash, i) => {
		const raw = raws[i];
		return typeof raw === "string" ? [{ raw, hash }] : [];
	});
}

/** Keeps bursts and those who must not see one apart; of each kind one at a time, in the order they came. */
export class BurstLock {
	#last: Promise<unknown> = Promise.resolve();
	#bursting = false;
	#count = 0;

	/** True while a burst is under way. */
	get burst(): boolean {
		return this.#bursting;
	}

	/** How many bursts have begun. */
	get count(): number {
		return this.#count;
	}

	/** Runs `fn` as a burst. */
	during<T>(fn: () => Promise<T>): Promise<T> {
		return this.outside(async () => {
			this.#bursting = true;
			this.#count += 1;
			try {
				return await fn();
			} finally {
				this.#bursting = false;
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
