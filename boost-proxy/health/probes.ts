// The probes: whether the relay or the fallback would accept a transaction now.

import type { Clock } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { Probe, ProbeResult, Transport } from "../domain/ports.ts";
import type { HeadReference } from "./headReference.ts";
import { askNumber, askSubmission, failedChecks } from "./questions.ts";

/**
 * If /readyz used more of a probe's time than this share, the relay itself is at fault for a late
 * head.
 */
const PROMPT_SHARE = 1 / 2;

const NOT_OF_A_RELAY = "its /readyz is a 503 from the proxy in front of it, which has no ready relay";

/**
 * Probes our relay, all within `timeoutMs`. `/readyz` must be 200: it covers the relay's node,
 * store, simulation and builders. Its head must not be behind.
 */
export function relayProbe(
	/** `maxHeadLag`: the most blocks that its head may be behind the reference. */
	{
		timeoutMs,
		maxHeadLag,
		slot,
	}: { readonly timeoutMs: number; readonly maxHeadLag: number; readonly slot: SlotLength },
	dependencies: {
		/** Used by probes alone, since all connections for traffic may hang. */
		readonly transport: Transport;
		readonly reference: Pick<HeadReference, "head" | "headOf" | "isThirdParty">;
		/** Called on each probe with the problem that the relay reports; null: none. */
		readonly onReadiness?: (readiness: string | null) => void;
		/** Called with each head that the relay has. */
		readonly onHead?: (number: bigint) => void;
		readonly clock: Clock;
	},
): Probe {
	const { transport, reference, clock, onHead, onReadiness } = dependencies;
	/**
	 * Read when first needed, and again after a failed probe, since another relay may answer then.
	 */
	let chainId: bigint | null = null;
	/** The relay's head, and since when (monotonic ms). */
	let last = { head: -1n, since: 0 };

	const judge = async (thorough: boolean): Promise<ProbeResult> => {
		const until = clock.monotonic() + timeoutMs;
		const left = () => until - clock.monotonic();
		const ready = await transport.get("/readyz", left());
		const isRefused = ready.kind === "answered" && ready.status === 503;
		const failed = isRefused ? failedChecks(ready.body) : [];
		onReadiness?.(failed === null ? NOT_OF_A_RELAY : readinessOf(failed));
		if (ready.kind === "failed") return ready.fault;
		if (ready.kind === "aborted") return "reset";
		if (failed?.some(({ name }) => name === "node") === true) return "node";
		if (ready.status !== 200) return ready.status === 503 ? "notReady" : "httpStatus";
		const isPrompt = left() > timeoutMs * PROMPT_SHARE;
		const head = await askNumber(transport, "eth_blockNumber", left());
		// The limit applies to boost's own address, so the relay works.
		if (head.result === "limited") return "ok";
		if (head.result === "timeout" && isPrompt) {
			onReadiness?.("it answers /readyz at once, but not in time for its head, which it reads from its node");
			return "node";
		}
		if (head.result !== "ok") return head.result;
		onHead?.(head.quantity);
		if (head.quantity !== last.head) last = { head: head.quantity, since: clock.monotonic() };
		if (thorough) {
			const result = await askSubmission(transport, left());
			if (result !== "ok") return result;
		}
		if (reference.head === null) return "ok";
		if (chainId === null) {
			const asked = await askNumber(transport, "eth_chainId", left());
			if (asked.result !== "ok") return asked.result;
			chainId = asked.quantity;
		}
		const compared = reference.headOf(chainId);
		if (compared === null || compared - head.quantity <= BigInt(maxHeadLag)) return "ok";
		// A fallback's head alone makes no relay stale while that relay's head moves: the fallback
		// would get all its traffic.
		const standsMs = clock.monotonic() - last.since;
		return reference.isThirdParty && standsMs <= maxHeadLag * slot.ms ? "ok" : "staleHead";
	};
	return async (thorough) => {
		const result = await judge(thorough);
		if (result !== "ok") chainId = null;
		return result;
	};
}

function readinessOf(failed: readonly { readonly name: string; readonly reason: string }[]): string | null {
	const texts = failed.map(({ name, reason }) => `${name}: ${reason}`);
	return texts.length === 0 ? null : `its /readyz reports ${texts.join("; ")}`;
}

/**
 * Probes a third party, which has no /readyz. It must answer its chain id, which must match the
 * expected one if that is known.
 */
export function fallbackProbe(
	options: { readonly timeoutMs: number; readonly expectedChainId?: () => bigint | null },
	{ transport }: { readonly transport: Transport },
): Probe {
	return async () => {
		const asked = await askNumber(transport, "eth_chainId", options.timeoutMs);
		if (asked.result !== "ok") return asked.result;
		const expected = options.expectedChainId?.() ?? null;
		return expected === null || expected === asked.quantity ? "ok" : "notReady";
	};
}
