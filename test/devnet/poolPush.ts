// Fills an anvil's pool so that it will mine transactions in exactly the given order, or fails. It mines nothing.

import type { ChainRpc } from "./chainRpc.ts";

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
	for (const batch of [PUSH_BATCH, 1]) {
		await push(rpc, transactions, batch);
		const pending = await pendingOf(rpc, transactions);
		if (inOrder(pending, transactions)) return pending;
		await rpc.call("anvil_dropAllTransactions");
	}
	throw new Error("anvil does not keep its pool in order");
}

/** Pushes `transactions` without a look at what becomes of them. */
export async function push(
	rpc: ChainRpc,
	transactions: readonly Pushed[],
	batch = PUSH_BATCH,
): Promise<void> {
	for (let at = 0; at < transactions.length; at += batch) {
		const some = transactions.slice(at, at + batch);
		await rpc.batch(some.map(({ raw }) => ({ method: "eth_sendRawTransaction", params: [raw] })));
	}
}

/** The hashes of `transactions` that the pending block holds, in its order. */
async function pendingOf(rpc: ChainRpc, transactions: readonly Pushed[]): Promise<string[]> {
	if (transactions.length === 0) return [];
	const block = (await rpc.call("eth_getBlockByNumber", ["pending", false])) as { transactions: string[] };
	const ours = new Set(transactions.map(({ hash }) => hash));
	return block.transactions.filter((hash) => ours.has(hash));
}

function inOrder(pending: readonly string[], transactions: readonly Pushed[]): boolean {
	const place = new Map(transactions.map(({ hash }, i) => [hash, i]));
	let last = -1;
	for (const hash of pending) {
		const at = place.get(hash) ?? -1;
		if (at < last) return false;
		last = at;
	}
	return true;
}
