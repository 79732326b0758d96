// The probes: whether the relay or the fallback would take a transaction now. Also reads the chain head that the relay's is
// compared with, and keeps connections to a third party open.

import type { Clock } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import { RPC_ERRORS } from "../../shared/jsonrpc/errors.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { Probe, ProbeResult, Transport } from "../domain/ports.ts";
import { type Answer, answerOf, parsed } from "../upstream/verdict.ts";
import { Prober } from "./prober.ts";

type Failed = { readonly result: Exclude<ProbeResult, "ok"> };
/** A number, or why it could not be read. */
type Asked = { readonly result: "ok"; readonly quantity: bigint } | Failed;

/**
 * Probes our relay: `/readyz`, which covers its node, store, simulation and builders, must be 200, and its head must not be
 * behind. All within `timeoutMs`.
 */
export function relayProbe(
	/** `maxHeadLag`: the most blocks that its head may be behind the reference. */
	{
		timeoutMs,
		maxHeadLag,
		slot,
	}: { readonly timeoutMs: number; readonly maxHeadLag: number; readonly slot: SlotLength },
	dependencies: {
		/** Used by probes alone: the connections of the traffic may all hang. */
		readonly transport: Transport;
		readonly reference: Pick<HeadReference, "head" | "headOf" | "isThirdParty">;
		/** Told of each head that the relay has. */
		readonly onHead?: (number: bigint) => void;
		readonly clock: Clock;
	},
): Probe {
	const { transport, reference, clock, onHead } = dependencies;
	/** Read when first needed, and again after a failed probe, since the relay may be another one then. */
	let chainId: bigint | null = null;
	/** The relay's head, and since when (monotonic ms). */
	let last = { head: -1n, since: 0 };

	const judge = async (thorough: boolean): Promise<ProbeResult> => {
		const until = clock.monotonic() + timeoutMs;
		const left = () => until - clock.monotonic();
		const ready = await transport.get("/readyz", left());
		if (ready.kind === "failed") return ready.fault;
		if (ready.kind === "aborted") return "reset";
		if (ready.status !== 200) return ready.status === 503 ? "notReady" : "httpStatus";
		const head = await askTransport(transport, "eth_blockNumber", left());
		// The limit is that of boost's own address: the relay works.
		if (head.result === "limited") return "ok";
		if (head.result !== "ok") return head.result;
		onHead?.(head.quantity);
		if (head.quantity !== last.head) last = { head: head.quantity, since: clock.monotonic() };
		if (thorough) {
			const result = await askSubmission(transport, left());
			if (result !== "ok") return result;
		}
		if (reference.head === null) return "ok";
		if (chainId === null) {
			const asked = await askTransport(transport, "eth_chainId", left());
			if (asked.result !== "ok") return asked.result;
			chainId = asked.quantity;
		}
		const compared = reference.headOf(chainId);
		if (compared === null || compared - head.quantity <= BigInt(maxHeadLag)) return "ok";
		// A fallback's word alone makes no relay stale whose head moves: it would get all of its traffic.
		const standsMs = clock.monotonic() - last.since;
		return reference.isThirdParty && standsMs <= maxHeadLag * slot.ms ? "ok" : "staleHead";
	};
	return async (thorough) => {
		const result = await judge(thorough);
		if (result !== "ok") chainId = null;
		return result;
	};
}

/** Probes a third party, which has no /readyz: it must answer its chain id, and the expected one if that is known. */
export function fallbackProbe(
	options: { readonly timeoutMs: number; readonly expectedChainId?: () => bigint | null },
	{ transport }: { readonly transport: Transport },
): Probe {
	return async () => {
		const asked = await askTransport(transport, "eth_chainId", options.timeoutMs);
		if (asked.result !== "ok") return asked.result;
		const expected = options.expectedChainId?.() ?? null;
		return expected === null || expected === asked.quantity ? "ok" : "notReady";
	};
}

/** The chain head that the relay's is compared with. */
export interface HeadReference extends Component {
	/** Block number; null if no recent one is known. */
	readonly head: bigint | null;
	/** Whether it is the fallback, whose word alone does not suffice. */
	readonly isThirdParty: boolean;
	/** The head, or null if the reference is of another chain. */
	headOf(chainId: bigint): bigint | null;
}

export interface HeadReferenceDependencies {
	/** Independent of both upstreams; null if none is set. */
	readonly node: Pick<JsonRpcClient, "call"> | null;
	/** Asked if there is no node; null if there is none either, and the head is never known. */
	readonly fallback: Transport | null;
	readonly clock: Clock;
	readonly log: Logger;
}

/** How often the head is read at most, in ms, and after how many rounds without one the last is ignored. */
const LEAST_MS = 1_000;
const FRESH_ROUNDS = 3;
/** The deadline of one request, in ms; at most a round. */
const ASK_MS = 3_000;

/** Reads the head once a slot, and once a second at most, from `start` on. */
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
		const asked = await askTransport(fallback, method, deadlineMs);
		return asked.result === "ok" ? asked.quantity : null;
	};
	const update = async (): Promise<void> => {
		try {
			chainId ??= await read("eth_chainId");
			const head = await read("eth_blockNumber");
			if (head !== null) reading = { head, at: clock.monotonic() };
		} catch (thrown) {
			log.error("the reference's head was not read", { fault: safeError(thrown) });
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
				log.warn("the relay's head is compared with nothing: the reference is of another chain", {
					chainId: chainId.toString(),
				});
			}
			// The node or fallback may be of another chain when it comes back.
			chainId = null;
			return null;
		},
	};
}

/** Deadline of a request that only keeps a connection open, in ms. */
const WARM_ASK_MS = 5_000;

/** Asks each of `transports` for its chain id every `everyMs`, so that the first transaction needs no new connection. */
export function keepWarm(
	{ everyMs }: { readonly everyMs: number },
	{
		transports,
		clock,
		log,
	}: { readonly transports: readonly Transport[]; readonly clock: Clock; readonly log: Logger },
): Component {
	return repeated(
		"warm transports",
		() => everyMs,
		{ clock, log },
		async () => {
			await Promise.all(
				[...new Set(transports)].map((transport) => askTransport(transport, "eth_chainId", WARM_ASK_MS)),
			);
		},
	);
}

/** Runs `work` at once and then every `everyMs()`; never two at a time. */
function repeated(
	name: string,
	everyMs: () => number,
	dependencies: { readonly clock: Clock; readonly log: Logger },
	work: () => Promise<void>,
): Component {
	const loop: Prober = new Prober(everyMs(), {
		...dependencies,
		async work() {
			await work();
			loop.planNext(everyMs());
		},
	});
	return { name, start: async () => loop.plan(0), stop: () => loop.stop() };
}

/** Rate limit: concerns boost's own address only. */
const LIMIT = RPC_ERRORS.limit.code;
const INTERNAL = RPC_ERRORS.internal.code;

/** One call for a number. */
async function askTransport(transport: Transport, method: string, deadlineMs: number): Promise<Asked> {
	const asked = await ask(transport, method, [], deadlineMs);
	if ("result" in asked) return asked;
	const { answer, status } = asked;
	if (answer.kind === "error") return { result: resultOf(answer.error.code, status) };
	const quantity = parseNodeQuantity(answer.result);
	return quantity === null ? { result: "notJsonRpc" } : { result: "ok", quantity };
}

/**
 * Submits an invalid transaction: any verdict shows that submissions are answered. Reads may work while submissions hang or
 * fail. A rate limit counts as a success.
 */
async function askSubmission(transport: Transport, deadlineMs: number): Promise<ProbeResult> {
	const asked = await ask(transport, "eth_sendRawTransaction", ["0x00"], deadlineMs);
	if ("result" in asked) return asked.result === "limited" ? "ok" : asked.result;
	return asked.answer.kind === "error" && asked.answer.error.code === INTERNAL ? "internal" : "ok";
}

/** One call to the transport's base URL: its answer, or why there is none. */
async function ask(
	transport: Transport,
	method: string,
	params: readonly unknown[],
	deadlineMs: number,
): Promise<{ readonly answer: Answer; readonly status: number } | Failed> {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	const response = await transport.post({ target: "", body, headers: {}, deadlineMs });
	if (response.kind === "failed") return { result: response.fault };
	if (response.kind === "aborted") return { result: "reset" };
	const { status } = response;
	if (status === 429) return { result: "limited" };
	const answer = status < 500 ? answerOf(parsed(response.body), 1) : null;
	if (status !== 200 && answer?.kind !== "error") return { result: "httpStatus" };
	return answer === null ? { result: "notJsonRpc" } : { answer, status };
}

/** The calls are valid: any error is the upstream's fault. */
function resultOf(code: number, status: number): Failed["result"] {
	if (code === LIMIT) return "limited";
	if (code === INTERNAL) return "internal";
	return status === 200 ? "notReady" : "httpStatus";
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
