// What each upstream is asked, to know whether it would take a transaction now: a road comes in, a probe goes out. Beside
// it, what the relay's head is compared with, and what keeps a third party's road warm. Nothing here opens a breaker.

import type { Clock, Timer } from "../../shared/clock.ts";
import { readQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { Probe, ProbeWord } from "../domain/breakerPorts.ts";
import type { Road } from "../domain/ports.ts";
import { answerOf, parsed } from "../upstream/answer.ts";

/** A road and how it is used; where calls of ours go, both ways are its address itself. */
export interface Place {
	readonly road: Road;
	readonly asIs: boolean;
}

/** A number that was asked for, or why there is none. */
type Asked = { readonly word: "ok"; readonly quantity: bigint } | { readonly word: Exclude<ProbeWord, "ok"> };

export interface RelayProbeOptions {
	/** For all that is asked, in ms. */
	readonly timeoutMs: number;
	/** Blocks that its head may be behind the reference. */
	readonly maxHeadLag: number;
}

export interface RelayProbeDependencies {
	/** A road of the probe's own: that of the traffic may be full of what hangs. */
	readonly road: Road;
	readonly reference: Pick<HeadReference, "head" | "headOf">;
	readonly clock: Clock;
	/** Hears of each head that the relay tells, as a block number. */
	readonly onHead?: (head: bigint) => void;
}

/**
 * Our relay: `/readyz` must be 200, which covers its node, store, simulation and builders; then it must answer for its
 * head, which must not be behind.
 */
export function relayProbe(options: RelayProbeOptions, dependencies: RelayProbeDependencies): Probe {
	const { timeoutMs, maxHeadLag } = options;
	const { road, reference, clock, onHead } = dependencies;
	/** Known once it is needed; asked again after it was away, for then it may be another. */
	let chainId: bigint | null = null;

	const judge = async (): Promise<ProbeWord> => {
		const until = clock.monotonic() + timeoutMs;
		const left = () => until - clock.monotonic();
		const ready = await road.get("/readyz", left());
		if (ready.kind === "failed") return ready.fault;
		if (ready.kind === "cut") return "reset";
		if (ready.status !== 200) return ready.status === 503 ? "notReady" : "httpStatus";
		const head = await askRoad(road, "eth_blockNumber", left());
		// A limit is for boost's own address, which has no more than its share: the relay is well.
		if (head.word === "limited") return "ok";
		if (head.word !== "ok") return head.word;
		onHead?.(head.quantity);
		if (reference.head === null) return "ok";
		if (chainId === null) {
			const asked = await askRoad(road, "eth_chainId", left());
			if (asked.word !== "ok") return asked.word;
			chainId = asked.quantity;
		}
		const compared = reference.headOf(chainId);
		return compared !== null && compared - head.quantity > BigInt(maxHeadLag) ? "staleHead" : "ok";
	};
	return async () => {
		const word = await judge();
		if (word !== "ok") chainId = null;
		return word;
	};
}

/** A third party has no /readyz: it must tell its chain id, and the one that is expected where one is known. */
export function fallbackProbe(
	options: { readonly timeoutMs: number; readonly expectedChainId?: () => bigint | null },
	dependencies: { readonly place: Place },
): Probe {
	return async () => {
		const asked = await askRoad(dependencies.place.road, "eth_chainId", options.timeoutMs);
		if (asked.word !== "ok") return asked.word;
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
	readonly fallback: Place | null;
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

	const ask = async (method: string): Promise<bigint | null> => {
		if (node !== null) return askNode(node, method, deadlineMs);
		if (fallback === null) return null;
		const asked = await askRoad(fallback.road, method, deadlineMs);
		return asked.word === "ok" ? asked.quantity : null;
	};
	const look = async (): Promise<void> => {
		try {
			chainId ??= await ask("eth_chainId");
			const head = await ask("eth_blockNumber");
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
		...repeated("head reference", slotMs, clock, node === null && fallback === null ? async () => {} : look),
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

/** Asks each of `places` for its chain id every `everyMs`, so that the first transaction needs no new connection. */
export function keepWarm(
	options: { readonly everyMs: number },
	dependencies: { readonly places: readonly Place[]; readonly clock: Clock },
): Component {
	const roads = new Set(dependencies.places.map(({ road }) => road));
	const warm = async (): Promise<void> => {
		await Promise.all([...roads].map((road) => askRoad(road, "eth_chainId", WARM_ASK_MS)));
	};
	return repeated("warm roads", options.everyMs, dependencies.clock, warm);
}

/** Runs `work`, which neither rejects nor hangs, at once and then every `everyMs`; never two at a time. */
function repeated(name: string, everyMs: number, clock: Clock, work: () => Promise<void>): Component {
	let timer: Timer | undefined;
	let running: Promise<void> = Promise.resolve();
	let isStopped = false;
	const round = async (): Promise<void> => {
		const startedAt = clock.monotonic();
		await work();
		if (isStopped) return;
		timer = clock.after(Math.max(0, startedAt + everyMs - clock.monotonic()), () => {
			running = round();
		});
	};
	return {
		name,
		async start() {
			running = round();
		},
		async stop() {
			isStopped = true;
			timer?.cancel();
			await running;
		},
	};
}

/** Limits are about our own address. */
const LIMIT = -32005;
const INTERNAL = -32603;

/** One call for a number, to the road's own address. */
async function askRoad(road: Road, method: string, deadlineMs: number): Promise<Asked> {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] });
	const result = await road.post({ target: "", body, headers: {}, deadlineMs });
	if (result.kind === "failed") return { word: result.fault };
	if (result.kind === "cut") return { word: "reset" };
	const { status } = result;
	if (status === 429) return { word: "limited" };
	const answer = status < 500 ? answerOf(parsed(result.body), 1) : null;
	if (answer?.kind === "error") return { word: wordOf(answer.error.code, status) };
	if (status !== 200) return { word: "httpStatus" };
	const quantity = answer === null ? null : readQuantity(answer.result);
	return quantity === null ? { word: "notJsonRpc" } : { word: "ok", quantity };
}

/** Nothing was asked that could be refused: any error is about the upstream. */
function wordOf(code: number, status: number): Exclude<ProbeWord, "ok"> {
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
