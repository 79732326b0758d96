// Reads what a node has in its public pool, anvil's as well as go-ethereum's.

import type { Pushed } from "./buildingNode.ts";
import type { ChainRpc } from "./chainRpc.ts";

/** By sender and decimal nonce. */
type PoolPart = Record<string, Record<string, { readonly hash: string }>>;

/** The pool's raw transactions, each sender's by nonce; blob transactions have their sidecars. */
export async function readPool(rpc: ChainRpc): Promise<Pushed[]> {
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
