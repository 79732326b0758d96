// What each upstream is asked, to know whether it would take a transaction now, and what the relay's head is compared with.
// Beside it, what keeps a third party's transport warm.

import type { Clock } from "../../shared/clock.ts";
import { readQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { Probe, ProbeResult, Transport } from "../domain/ports.ts";
import { type Answer, answerOf, parsed } from "../upstream/verdict.ts";
import { Prober } from "./prober.ts";

type Failed = { readonly result: Exclude<ProbeResult, "ok"> };
/** A number that was asked for, or why there is none. */
type Asked = { readonly result: "ok"; readonly quantity: bigint } | Failed;

/**
 * Our relay: `/readyz` must be 200, which covers its node, store, simulation and builders; then it must answer for its
 * head, which must not be behind. All within `timeoutMs`.
 */
export function relayProbe(
	/** `maxHeadLag`: blocks that its head may be behind the reference. */
	{ timeoutMs, maxHeadLag }: { readonly timeoutMs: number; readonly maxHeadLag: number },
	dependencies: {
		/** A transport of the probe's own: that of the traffic may be full of what hangs. */
		readonly transport: Transport;
		readonly reference: Pick<HeadReference, "head" | "headOf">;
		readonly clock: Clock;
	},
): Probe {
	const { transport, reference, clock } = dependencies;
	/** Known once it is needed; asked again after it was away, for then it may be another. */
	let chainId: bigint | null = null;

	const judge = async (thorough: boolean): Promise<ProbeResult> => {
		const until = clock.monotonic() + timeoutMs;
		const left = () => until - clock.monotonic();
		const ready = await transport.get("/readyz", left());
		if (ready.kind === "failed") return ready.fault;
		if (ready.kind === "cut") return "reset";
		if (ready.status !== 200) return ready.status === 503 ? "notReady" : "httpStatus";
		const head = await askTransport(transport, "eth_blockNumber", left());
		// A limit is for boost's own address, which has no more than its share: the relay is well.
		if (head.result === "limited") return "ok";
		if (head.result !== "ok") return head.result;
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
		return compared !== null && compared - head.quantity > BigInt(maxHeadLag) ? "staleHead" : "ok";
	};
	return async (thorough) => {
		const result = await judge(thorough);
		if (result !== "ok") chainId = null;
		return result;
	};
}

/** A third party has no /readyz: it must tell its chain id, and the one that is expected where one is known. */
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

/** What the relay's head is compared with. */
export interface HeadReference extends Component {
	/** Block number; null where none is known that is young enough. */
	readonly head: bigint | null;
	/** The same, for an upstream of that chain: null for one of another. */
	headOf(chainId: bigint): bigint | null;
}

export interface HeadReferenceDependencies {
	/** Independent of both upstreams; null where none is set. */
	readonly node: Pick<JsonRpcClient, "call"> | null;
	/** Asked where there is no node; null where there is none of both, and nothing is ever known. */
	readonly fallback: Transport | null;
	readonly clock: Clock;
	readonly log: Logger;
}

/** A reading that is older than so many slots says nothing. */
const FRESH_SLOTS = 3;
/** The deadline of one question, in ms; a slot is the most. */
const ASK_MS = 3_000;

/** Asks for the head once a slot, from `start` on. */
export function createHeadReference(
	options: { readonly slotMs: number },
	dependencies: HeadReferenceDependencies,
): HeadReference {
	const { slotMs } = options;
	const { node, fallback, clock, log } = dependencies;
	const deadlineMs = Math.min(ASK_MS, slotMs);
	let chainId: bigint | null = null;
	let reading: { readonly head: bigint; readonly at: number } | null = null;
	let isWarned = false;

	const read = async (method: string): Promise<bigint | null> => {
		if (node !== null) return askNode(node, method, deadlineMs);
		if (fallback === null) return null;
		const asked = await askTransport(fallback, method, deadlineMs);
		return asked.result === "ok" ? asked.quantity : null;
	};
	const look = async (): Promise<void> => {
		try {
			chainId ??= await read("eth_chainId");
			const head = await read("eth_blockNumber");
			if (head !== null) reading = { head, at: clock.monotonic() };
		} catch (thrown) {
			log.error("the reference's head was not read", { fault: safeError(thrown) });
		}
	};
	const freshHead = (): bigint | null =>
		reading !== null && chainId !== null && clock.monotonic() - reading.at <= FRESH_SLOTS * slotMs
			? reading.head
			: null;
	return {
		...repeated("head reference", slotMs, { clock, log }, look),
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
			// Either may be another when it comes back.
			chainId = null;
			return null;
		},
	};
}

/** How long a question that only keeps a connection warm may take, in ms. */
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
	return repeated("warm transports", everyMs, { clock, log }, async () => {
		await Promise.all(
			[...new Set(transports)].map((transport) => askTransport(transport, "eth_chainId", WARM_ASK_MS)),
		);
	});
}

/** Runs `work` at once and then every `everyMs`; never two at a time. */
function repeated(
	name: string,
	everyMs: number,
	dependencies: { readonly clock: Clock; readonly log: Logger },
	work: () => Promise<void>,
): Component {
	const loop: Prober = new Prober(everyMs, {
		...dependencies,
		async work() {
			await work();
			loop.planNext();
		},
	});
	return { name, start: async () => loop.plan(0), stop: () => loop.stop() };
}

/** Limits are about our own address. */
const LIMIT = -32005;
const INTERNAL = -32603;

/** One call for a number. */
async function askTransport(transport: Transport, method: string, deadlineMs: number): Promise<Asked> {
	const asked = await ask(transport, method, [], deadlineMs);
	if ("result" in asked) return asked;
	const { answer, status } = asked;
	if (answer.kind === "error") return { result: resultOf(answer.error.code, status) };
	const quantity = readQuantity(answer.result);
	return quantity === null ? { result: "notJsonRpc" } : { result: "ok", quantity };
}

/**
 * Submits what is no transaction: that any verdict comes shows that submissions are answered, where all else is well while
 * these alone hang or fail. A limit is for boost's own address.
 */
async function askSubmission(transport: Transport, deadlineMs: number): Promise<ProbeResult> {
	const asked = await ask(transport, "eth_sendRawTransaction", ["0x00"], deadlineMs);
	if ("result" in asked) return asked.result === "limited" ? "ok" : asked.result;
	return asked.answer.kind === "error" && asked.answer.error.code === INTERNAL ? "internal" : "ok";
}

/** One call to the transport's own address: its answer, or why there is none. */
async function ask(
	transport: Transport,
	method: string,
	params: readonly unknown[],
	deadlineMs: number,
): Promise<{ readonly answer: Answer; readonly status: number } | Failed> {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	const exchange = await transport.post({ target: "", body, headers: {}, deadlineMs });
	if (exchange.kind === "failed") return { result: exchange.fault };
	if (exchange.kind === "cut") return { result: "reset" };
	const { status } = exchange;
	if (status === 429) return { result: "limited" };
	const answer = status < 500 ? answerOf(parsed(exchange.body), 1) : null;
	if (status !== 200 && answer?.kind !== "error") return { result: "httpStatus" };
	return answer === null ? { result: "notJsonRpc" } : { answer, status };
}

/** Nothing was asked that could be refused: any error is about the upstream. */
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
		return answer.ok ? readQuantity(answer.result) : null;
	} catch (thrown) {
		if (thrown instanceof UpstreamError) return null;
		throw thrown;
	}
}
