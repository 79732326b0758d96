// Judges a head that does not lead to the followed chain block by block. Behind a load balancer, it
// may belong to another chain.

import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { Slots } from "../../shared/ethereum/slots.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Header } from "../domain/chain.ts";
import { readHeader } from "../domain/nodeJson.ts";

export interface LeapDependencies {
	readonly node: Pick<JsonRpcClient, "call" | "batch">;
	readonly slots: Pick<Slots, "ms">;
	/** The chain that is followed. */
	readonly chainId: bigint;
}

/**
 * Whether the head may be followed. If not, `trouble` is the reason for the operator; null if a
 * later check may succeed.
 */
export type LeapVerdict = { readonly ok: true } | { readonly ok: false; readonly trouble: string | null };

/** Deadline of one request, in ms. */
const ASK_MS = 5_000;
/** How often a block is requested that one node behind a load balancer has and others do not. */
export const BLOCK_TRIES = 4;
/** How many times faster than expected blocks may come, since slots may have become shorter. */
const HASTE = 4;
/** A head may always be this many blocks ahead. */
const ALWAYS = 64;
/**
 * Maximum number of parents to read in search of the followed head, if the head is ahead of the
 * possible time.
 */
const MAX_PARENTS = 256;

/**
 * Judges `head` for a relay that follows `tracked`, or nothing yet. A node of this chain must have
 * the head. The head must also be no further ahead than time allows, or its parents must lead to
 * `tracked`. Throws UpstreamError.
 */
export async function judgeLeap(
	tracked: Header | null,
	head: Header,
	dependencies: LeapDependencies,
): Promise<LeapVerdict> {
	const chainId = await chainOf(head, dependencies);
	if (chainId === null) return { ok: false, trouble: null };
	if (chainId !== dependencies.chainId) {
		const trouble = `the node has answered for chain ${chainId}, and the relay is for ${dependencies.chainId}`;
		return { ok: false, trouble };
	}
	if (tracked === null || head.number <= mostBlocks(tracked, head, dependencies)) return { ok: true };
	if (await leadsTo(tracked, head, dependencies)) return { ok: true };
	const trouble = `the node has answered with block ${head.number}, too soon after block ${tracked.number}, and its parents do not lead there`;
	return { ok: false, trouble };
}

/** The highest possible number of `head`, by the time since `tracked`. */
function mostBlocks(tracked: Header, head: Header, { slots }: LeapDependencies): number {
	const passedMs = (head.timestamp - tracked.timestamp) * 1_000;
	return tracked.number + ALWAYS + Math.ceil((HASTE * passedMs) / slots.ms);
}

/**
 * The chain of a node that has `head`; null if none was found. One request has both calls, so that
 * one node answers both.
 */
async function chainOf({ hash }: Header, { node }: LeapDependencies): Promise<bigint | null> {
	const calls = [
		{ method: "eth_chainId", params: [] },
		{ method: "eth_getBlockByHash", params: [hash, false] },
	];
	for (let left = BLOCK_TRIES; left > 0; left--) {
		const [chainId, block] = await node.batch(calls, ASK_MS);
		if (chainId?.ok !== true || block?.ok !== true) throw new UpstreamError("notJsonRpc");
		if (block.result !== null) return parseNodeQuantity(chainId.result);
	}
	return null;
}

async function leadsTo(tracked: Header, head: Header, { node }: LeapDependencies): Promise<boolean> {
	let { parentHash } = head;
	for (let left = MAX_PARENTS; left > 0 && parentHash !== tracked.hash; left--) {
		const answer = await node.call({ method: "eth_getBlockByHash", params: [parentHash, false] }, ASK_MS);
		const parent = answer.ok ? readHeader(answer.result) : null;
		if (parent === null) return false;
		parentHash = parent.parentHash;
	}
	return parentHash === tracked.hash;
}
