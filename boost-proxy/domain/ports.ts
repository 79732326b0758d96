// What the parts of boost need of each other: each port names what its consumer uses.

import type { RpcId } from "../../shared/jsonrpc/envelope.ts";
import type {
	BoostPath,
	Call,
	Caller,
	CallResult,
	Delivery,
	ExchangeResult,
	Fault,
	Reading,
	RoutingInfo,
	UpstreamName,
	WholeBody,
} from "./request.ts";

/** One POST to an upstream. */
export interface Post {
	/** Path and query behind the upstream's own: "/fast?refundRecipient=0x…". Absolute for `url`s taken as they are. */
	readonly target: string;
	readonly body: Buffer | string;
	/** Beside content-type. Names in lower case. */
	readonly headers: Readonly<Record<string, string>>;
	/** Ms until it is a `timeout`. */
	readonly deadlineMs: number;
	readonly abort?: Abort;
}

/** A transport to one upstream: warm connections. Never rejects. */
export interface Transport {
	post(post: Post): Promise<ExchangeResult>;
	/** GET of a path; for status pages. */
	get(target: string, deadlineMs: number): Promise<ExchangeResult>;
	close(): Promise<void>;
}

/** A transaction as it is sent on. */
export interface Sendable {
	/** Lower case. */
	readonly hash: string;
	/** Sender, lower case. */
	readonly from: string;
	readonly raw: Buffer;
	readonly path: BoostPath;
	/** As it came, without "?". */
	readonly search: string;
}

/** How a request is sent on. */
export interface SendOptions {
	/** Ms at most. */
	readonly deadlineMs: number;
	/** On whose behalf; null for boost's own. Only our relay is told of it. */
	readonly caller: Caller | null;
	/** Counted on it. */
	readonly routing?: RoutingInfo;
}

/** One upstream with its guard. Nothing here rejects. */
export interface Upstream {
	readonly name: UpstreamName;
	readonly breaker: Breaker;
	/** Null for our relay, which speaks as we do. */
	readonly dialect: Dialect | null;
	/** Why it may never be given what came on `path`, in words for the client; null where it may. */
	refusal(path: BoostPath): string | null;
	/**
	 * Sends a transaction, in its dialect. `whole`: the body as it came, sent on as it is to our relay. `nonce too low`
	 * of a transaction that it then knows by hash is `acknowledged`. Null where its breaker is open: nothing was sent.
	 */
	deliver(
		tx: Sendable,
		options: SendOptions & { readonly whole: WholeBody | null },
	): Promise<Delivery | null>;
	/** Sends a body of reads as it is to `path`, and judges the answer. Null where its breaker is open. */
	read(
		body: Buffer | string,
		options: SendOptions & {
			readonly path: BoostPath;
			/** In the place of path and query, where it is there. */
			readonly target?: string | null;
			readonly search: string;
			/** Of the calls, in their order; undefined for notifications. */
			readonly ids: readonly (RpcId | undefined)[];
			/** Whether the body is an array. */
			readonly batch: boolean;
		},
	): Promise<Reading | null>;
	/**
	 * One call on `path` (fast unless said); null where it is out or no answer to the call came. `whole`: sent on in its
	 * place to our relay, so that the client's signature fits. `anyway`: past its breaker, charged to nobody: open is not
	 * dead, and what is taken back should be so wherever it is.
	 */
	call(
		call: Call,
		options: SendOptions & {
			readonly path?: BoostPath;
			readonly whole?: WholeBody | null;
			readonly anyway?: boolean;
		},
	): Promise<CallResult | null>;
	/** Many calls, as one request where it takes those; null where it is out or any answer is missing. */
	batch(calls: readonly Call[], options: SendOptions): Promise<readonly CallResult[] | null>;
	/** The JSON of a status page; null where it is out, has none, or does not answer with JSON and 200. */
	statusPage(hash: string, options: SendOptions): Promise<unknown>;
}

/** Both transports; `fallback` is null where there is none. */
export interface Upstreams {
	readonly relay: Upstream;
	readonly fallback: Upstream | null;
}

/** What the chain says: the independent node where there is one, else the relay, else the fallback. */
export interface ChainReads {
	/** Null where nobody answered all. */
	batch(calls: readonly Call[], deadlineMs: number): Promise<readonly CallResult[] | null>;
}

/** How one kind of fallback spells things. Pure, but for reading its words. */
export interface Dialect {
	readonly name: DialectName;
	/** Whether it takes arrays. */
	readonly batches: boolean;
	/** Whether it knows private transactions by hash and counts them in the pending nonce. */
	readonly knowsPrivate: boolean;
	/** Whether a transaction whose nonce has a gap may go there. */
	readonly takesGaps: boolean;
	/** How a user's transaction is cancelled there by hash; null where it can't be. */
	readonly cancelMethod: string | null;
	/** Whether a self-transfer of a nonce that it holds is a cancel without cost there. */
	readonly softCancels: boolean;
	/** Path and query for a submission; what was dropped, by name. */
	target(path: BoostPath, search: string): { readonly target: string; readonly dropped: readonly string[] };
	/** Where a transaction's status is told, behind the base URL; null where nowhere. */
	statusPath(hash: string): string | null;
	/** Whether a −32603 with these words is a verdict all the same. */
	isVerdict(message: string): boolean;
}

export const DIALECTS = ["mevblocker", "flashbots", "plain"] as const;

export type DialectName = (typeof DIALECTS)[number];

export const BREAKER_STATES = ["closed", "open", "half-open"] as const;

export type BreakerState = (typeof BREAKER_STATES)[number];

/** What opened a breaker. */
export type TripReason =
	| Fault
	| "faults"
	| "storm"
	| "silence"
	| "staleHead"
	| "notReady"
	| "probe"
	| "forced";

/** What an attempt says of itself to the breaker. */
export interface Attempted {
	/**
	 * `answered`: any answer that is no fault, verdicts too. A fault with its kind. `cut`: aborted, nobody's. A read's `timeout`
	 * is never charged, it starts a probe.
	 */
	readonly outcome: "answered" | "cut" | Fault;
	/** Of a submission: its sender, for the storm of −32603. */
	readonly sender?: string;
}

/** The guard of one upstream. */
export interface Breaker {
	readonly upstream: UpstreamName;
	readonly state: BreakerState;
	/** False while it takes requests. Forced-closed ones always take them. */
	readonly isUnavailable: boolean;
	/** When it might take requests again, in ms from now; for `Retry-After`. */
	readonly retryMs: number;
	/**
	 * Runs `attempt` unless it is out, and counts what it says. While the upstream answers nothing, newcomers wait here until
	 * it does or the breaker opens, which aborts what is in flight. Null where it takes no requests: nothing was sent.
	 */
	run<T extends Attempted>(
		kind: "read" | "submission",
		attempt: (abort: Abort) => Promise<T>,
	): Promise<T | null>;
	/** Tells of a fault or an answer seen elsewhere (pass-through). */
	note(attempted: Attempted): void;
	/** Each change of state, and of `isUnavailable`. */
	onChange(listener: () => void): void;
	status(): BreakerStatus;
	/** Until `null` (auto) its state is this one. */
	force(state: "open" | "closed" | null): void;
}

/** A row of `/status`. */
export interface BreakerStatus {
	readonly state: BreakerState;
	readonly reason: TripReason | null;
	/** ISO 8601: since when it has been in this state. */
	readonly since: string;
	/** ISO 8601, or null where none is due. */
	readonly nextProbeAt: string | null;
	readonly inFlight: number;
	/** 0 where none is. */
	readonly oldestInFlightMs: number;
}

/** Why a probe failed, or `ok`: it would take a transaction. */
export type ProbeResult = "ok" | Exclude<TripReason, "faults" | "storm" | "silence" | "forced" | "probe">;

/** What a probe came to; `probe`: it threw, which none may. */
export type ProbeOutcome = ProbeResult | "probe";

/**
 * Asks an upstream whether it would take a transaction now. `thorough`: as a submission would find it, too, since a breaker
 * that is out closes by this alone. Never rejects, and ends by its own deadline.
 */
export type Probe = (thorough: boolean) => Promise<ProbeResult>;

/** Tells attempts to end. */
export interface Abort {
	readonly isAborted: boolean;
	/** Calls `listener` once when it is aborted, at once where it already is. Returns an unsubscribe function. */
	onAbort(listener: () => void): () => void;
}
