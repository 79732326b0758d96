// The chain head that the relay's head is compared with: from the operator's node, or else from the
// fallback.

import type { Clock } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { Transport } from "../domain/ports.ts";
import { askNumber } from "./questions.ts";
import { repeated } from "./rounds.ts";

/** The chain head that the relay's head is compared with. */
export interface HeadReference extends Component {
	/** Block number; null if no recent one is known. */
	readonly head: bigint | null;
	/** Whether it is the fallback, whose answer alone does not suffice. */
	readonly isThirdParty: boolean;
	/** The head, or null if the reference is of another chain. */
	headOf(chainId: bigint): bigint | null;
}

export interface HeadReferenceDependencies {
	/** Independent of both upstreams; null if none is set. */
	readonly node: Pick<JsonRpcClient, "call"> | null;
	/**
	 * Queried if there is no node; null if there is no fallback either, so that the head is never
	 * known.
	 */
	readonly fallback: Transport | null;
	readonly clock: Clock;
	readonly log: Logger;
}

/**
 * The shortest time between two reads of the head, in ms. The last head is ignored after that many
 * failed rounds.
 */
const LEAST_MS = 1_000;
const FRESH_ROUNDS = 3;
/** The deadline of one request, in ms; never longer than a round. */
const ASK_MS = 3_000;

/** From `start` on, reads the head once a slot, but at most once a second. */
export function createHeadReference(
	options: { readonly slot: SlotLength },
	dependencies: HeadReferenceDependencies,
): HeadReference {
	const roundMs = () => Math.max(options.slot.ms, LEAST_MS);
	const { node, fallback, clock, log } = dependencies;
	let chainId: bigint | null = null;
	let reading: { readonly head: bigint; readonly at: number } | null = null;
	let isWarned = false;

	const read = async (method: string): Promise<bigint | null> => {
		const deadlineMs = Math.min(ASK_MS, roundMs());
		if (node !== null) return askNode(node, method, deadlineMs);
		if (fallback === null) return null;
		const asked = await askNumber(fallback, method, deadlineMs);
		return asked.result === "ok" ? asked.quantity : null;
	};
	const update = async (): Promise<void> => {
		try {
			chainId ??= await read("eth_chainId");
			const head = await read("eth_blockNumber");
			if (head !== null) reading = { head, at: clock.monotonic() };
		} catch (thrown) {
			log.error("could not read the reference's head", { fault: safeError(thrown) });
		}
	};
	const freshHead = (): bigint | null =>
		reading !== null && chainId !== null && clock.monotonic() - reading.at <= FRESH_ROUNDS * roundMs()
			? reading.head
			: null;
	return {
		...repeated("head reference", roundMs, { clock, log }, update),
		isThirdParty: node === null,
		get head() {
			return freshHead();
		},
		headOf(asked) {
			if (asked === chainId) return freshHead();
			if (chainId !== null && !isWarned) {
				isWarned = true;
				log.warn("relay's head not compared: the reference is on another chain", {
					chainId: chainId.toString(),
				});
			}
			// The node or fallback may be on another chain when it comes back.
			chainId = null;
			return null;
		},
	};
}

async function askNode(
	node: Pick<JsonRpcClient, "call">,
	method: string,
	deadlineMs: number,
): Promise<bigint | null> {
	try {
		const answer = await node.call({ method, params: [] }, deadlineMs);
		return answer.ok ? parseNodeQuantity(answer.result) : null;
	} catch (thrown) {
		if (thrown instanceof UpstreamError) return null;
		throw thrown;
	}
}
