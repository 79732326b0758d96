// The interfaces between boost's parts. Each lists only what its consumers use.

import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { RpcId } from "../../shared/jsonrpc/ids.ts";
import type { Abort } from "../../shared/outgoing/httpClient.ts";
import type {
	BoostPath,
	Caller,
	Delivery,
	Fault,
	Reading,
	Route,
	RoutingInfo,
	TransportResult,
	UpstreamName,
} from "./request.ts";
import type { Row } from "./row.ts";

/** One POST to an upstream. */
export interface Post {
	/** Path and query, appended to the upstream's URL: "/fast?refundRecipient=0x…". */
	readonly target: string;
	readonly body: Buffer | string;
	/** In addition to content-type. Names in lower case. */
	readonly headers: Readonly<Record<string, string>>;
	/** Ms until it fails as `timeout`. */
	readonly deadlineMs: number;
	readonly abort?: Abort | undefined;
}

/** HTTP requests to one upstream over pooled connections. Never rejects. */
export interface Transport {
	post(post: Post): Promise<TransportResult>;
	/** For status pages. */
	get(target: string, deadlineMs: number): Promise<TransportResult>;
	close(): Promise<void>;
}

/** A transaction as it is sent to an upstream. */
export interface Sendable {
	/** Lower case. */
	readonly hash: string;
	/** Sender, lower case. */
	readonly from: string;
	readonly raw: Buffer;
	readonly path: BoostPath;
	/** The client's query, unchanged, without "?". */
	readonly search: string;
}

/** How a request is sent to an upstream. */
export interface SendOptions {
	readonly deadlineMs: number;
	/** The client it is made for; null for boost's own. Only our relay is given it. */
	readonly caller: Caller | null;
	/** Counts the attempt. */
	readonly routing?: RoutingInfo;
}

/** One upstream with its breaker. No method rejects. */
export interface Upstream {
	readonly name: UpstreamName;
	readonly breaker: Breaker;
	/** Null for our relay, which needs no translation. */
	readonly dialect: Dialect | null;
	/** Why transactions of `route` may never go there, as a message for the client; null if they may. */
	whyUnfit(route: Route): string | null;
	/**
	 * Sends a transaction in the upstream's dialect, in a request of boost's own. An upstream that answers `nonce too low` but
	 * knows the hash counts as `acknowledged`. Null if the breaker is open: nothing was sent.
	 */
	deliver(tx: Sendable, options: SendOptions): Promise<Delivery | null>;
	/** Sends a body of reads unchanged to `path` and classifies the answer. Null if the breaker is open. */
	read(
		body: Buffer | string,
		options: SendOptions & {
			readonly path: BoostPath;
			/** Replaces path and query if given. */
			readonly target?: string | null;
			readonly search: string;
			/** Ids of the calls in order; undefined for notifications. */
			readonly ids: readonly (RpcId | undefined)[];
			/** Whether the body is an array. */
			readonly batch: boolean;
		},
	): Promise<Reading | null>;
	/**
	 * One call on `path` (default: fast), in a request of boost's own; null if the upstream is unavailable or did not answer.
	 * `anyway`: ignores the breaker and is not counted by it, for cancels, which should reach an upstream that may still be alive.
	 */
	call(
		call: RpcCall,
		options: SendOptions & {
			readonly path?: BoostPath;
			readonly anyway?: boolean;
		},
	): Promise<RpcAnswer | null>;
	/** Many calls, as one request if the upstream takes arrays; null if it is unavailable or any answer is missing. */
	batch(calls: readonly RpcCall[], options: SendOptions): Promise<readonly RpcAnswer[] | null>;
	/** The JSON of a status page; null if the upstream is unavailable, has none, or does not answer 200 with JSON. */
	statusPage(hash: string, options: SendOptions): Promise<unknown>;
}

/** Both upstreams; `fallback` is null if none is configured. */
export interface Upstreams {
	readonly relay: Upstream;
	readonly fallback: Upstream | null;
}

/** Reads the chain: tries the independent node, if there is one, then the relay, then the fallback. */
export interface ChainReads {
	/** Null if none of them answered all calls. */
	batch(calls: readonly RpcCall[], deadlineMs: number): Promise<readonly RpcAnswer[] | null>;
}

/** What another boost on the same database has of a transaction. */
export interface ElsewhereRow {
	readonly row: Row;
	/** Null where its bytes are not kept. */
	readonly raw: Buffer | null;
}

/**
 * The other boosts on the same database, each with a part of the journal. An account's live rows are in one part: that of the
 * boost which its wallet asked last.
 *
 * All methods throw {@link UnknownElsewhereError} if the database does not answer, unless it showed no other instance when it
 * last did: then this one carries on as if it were alone.
 */
export interface OtherBoosts {
	/** Whether there is certainly no other, so that nothing need be asked. */
	readonly isAlone: boolean;
	/** What another one has of a hash, live or ended. `address`: the client's, whose look-ups are made one query at a time. */
	find(hash: string, address: string): Promise<ElsewhereRow | null>;
	/** The live rows that others have of an account, by nonce. */
	liveOf(from: string): Promise<readonly Row[]>;
	/** Brings an account's live rows here, and runs `work` while no other boost can have them. */
	withRowsOf<T>(request: AccountRequest, work: (elsewhere: Elsewhere) => Promise<T>): Promise<T>;
}

/** It is not known what the other instances have, so a request that depends on it is refused. */
export class UnknownElsewhereError extends RpcError {
	constructor(why: string, what: string) {
		super("unavailable", `${why}, so it is not known whether another boost instance has ${what}`);
	}
}

/** A client's request about a transaction. */
export interface AccountRequest {
	/** Its sender. */
	readonly from: string;
	readonly nonce: bigint;
	readonly hash: string;
	/** How long it may wait for what others have of its nonce, in ms; for other nonces it waits less. */
	readonly ms: number;
}

/** What stays with other boosts. */
export interface Elsewhere {
	/** The account's rows that could not be had in time. */
	readonly live: readonly Row[];
	/** The transaction itself, if another boost has seen it mined or ended by its user. */
	readonly ended: Row | null;
}

export const NOWHERE_ELSE: Elsewhere = { live: [], ended: null };

/** Of a boost whose journal is its own. */
export const NO_OTHERS: OtherBoosts = {
	isAlone: true,
	find: async () => null,
	liveOf: async () => [],
	withRowsOf: (_, work) => work(NOWHERE_ELSE),
};

/** The heads that clients may know. */
export interface ToldHeads {
	/** The highest number; null if there is none. */
	readonly height: number | null;
	/** `by` has this head, whether or not a client was told it. */
	sawHead(number: bigint | number, by: UpstreamName): void;
}

/** The conventions of one kind of fallback. */
export interface Dialect {
	readonly name: DialectName;
	/** Whether it takes JSON-RPC arrays. */
	readonly batches: boolean;
	/** Whether it knows private transactions by hash and counts them in the pending nonce. */
	readonly knowsPrivate: boolean;
	/** Whether a transaction whose nonce has a gap may go there. */
	readonly acceptsNonceGaps: boolean;
	/** The method that cancels a transaction by hash; null if there is none. */
	readonly cancelMethod: string | null;
	/** Whether a self-transfer with the nonce of a transaction that it holds cancels that one there, for free. */
	readonly softCancels: boolean;
	/** Path and query for a submission, and the names of query parameters that are dropped. */
	target(path: BoostPath, search: string): { readonly target: string; readonly dropped: readonly string[] };
	/** Why transactions of `route` may never go there: what the query asks for can't be kept. Null if they may. */
	whyUnfit(route: Route): string | null;
	/** Unless a setting says otherwise: whether nobody else sees what it gets, and whether it protects from reverts. */
	readonly isPrivate: boolean;
	readonly isRevertProtected: boolean;
	/** The format of its status pages; null if it has none. Only those like our own show for certain that it has lost one. */
	readonly pages: "ours" | "protect" | null;
	/** Path of a transaction's status page, appended to the base URL; null if there is none. */
	statusPath(hash: string): string | null;
	/** Whether a −32603 with this message is nevertheless a verdict on the transaction. */
	isVerdict(message: string): boolean;
}

export const DIALECTS = ["mevblocker", "flashbots", "plain"] as const;

export type DialectName = (typeof DIALECTS)[number];

export const BREAKER_STATES = ["closed", "open", "half-open"] as const;

export type BreakerState = (typeof BREAKER_STATES)[number];

/**
 * Everything that opens a breaker, in words for the operator's page and `npm start`; docs/operators.md says more of each. A
 * fault is a single one: of a probe, a refused connection, or any soon after the last closing.
 */
export const TRIP_REASONS = {
	refused: "connections are refused",
	reset: "connections are reset",
	loop: "it leads back to boost itself",
	timeout: "it does not answer in time",
	httpStatus: "it answers with an error of HTTP",
	notJsonRpc: "it does not answer with JSON-RPC",
	wrongHash: "it answers with another hash",
	internal: "it fails",
	limited: "it limits us",
	tooLarge: "its answers are too large",
	/** Several in a row. */
	faults: "faults in a row",
	/** −32603 to many senders. */
	storm: "it fails for many senders",
	/** Requests in flight, and no answer to any. */
	silence: "it does not answer",
	/** The relay's head is too far behind. */
	staleHead: "it is behind the chain",
	/** The relay says so, or an upstream's answer to a probe does: an error, or another chain's id. */
	notReady: "it says that it is not ready",
	/** The relay says so, or answers while what it asks its node is not answered. */
	node: "its node does not answer",
	/** The probe itself threw, which is a bug. */
	probe: "it can't be asked",
	forced: "by an operator",
} as const satisfies Readonly<Record<Fault, string>> & Readonly<Record<string, string>>;

/** What opened a breaker. */
export type TripReason = keyof typeof TRIP_REASONS;

/** The result of an attempt, as the breaker counts it. */
export interface Attempted {
	/**
	 * `answered`: any answer that is no fault, verdicts included. `aborted`: not counted. A read's `timeout` is not counted
	 * either, but starts a probe.
	 */
	readonly outcome: "answered" | "aborted" | Fault;
	/** The transaction's sender; a storm of −32603 is counted by senders. */
	readonly sender?: string;
}

/** The circuit breaker of one upstream. */
export interface Breaker {
	readonly upstream: UpstreamName;
	readonly state: BreakerState;
	/** Whether it takes no requests: open or half-open, or stopped. */
	readonly isUnavailable: boolean;
	/** Estimated ms until it takes requests again, for `Retry-After`. */
	readonly retryMs: number;
	/**
	 * Runs `attempt` if the breaker is closed and counts its outcome. While the upstream answers nothing, new attempts wait here
	 * until it does or the breaker opens, which aborts those in flight. Null if the breaker is open: nothing was sent. `client`: whose
	 * request it is, by network address; null: boost's own.
	 */
	run<T extends Attempted>(
		kind: "read" | "submission",
		client: string | null,
		attempt: (abort: Abort) => Promise<T>,
	): Promise<T | null>;
	/** Counts a connection that was refused to a request made elsewhere (pass-through), or an answer to one. */
	note(attempted: Attempted): void;
	/** Calls `listener` on each change of state or reason. */
	onChange(listener: () => void): void;
	status(): BreakerStatus;
	/** Fixes the state; null returns to automatic. */
	force(state: "open" | "closed" | null): void;
}

/** What `/status` shows of it to the operator. */
export interface BreakerStatus {
	readonly state: BreakerState;
	readonly reason: TripReason | null;
	/** What the operator should look at while it is not closed; null if nothing more is known. */
	readonly hint: string | null;
	/** When it entered this state, in ISO 8601. */
	readonly since: string;
	/** ISO 8601, or null if none is due. */
	readonly nextProbeAt: string | null;
	readonly inFlight: number;
	/** 0 if none is in flight. */
	readonly oldestInFlightMs: number;
}

/** `ok` if the upstream would take a transaction, else why the probe failed. */
export type ProbeResult = "ok" | Fault | "staleHead" | "notReady" | "node";

/** A probe's result, or `probe` if the probe itself threw. */
export type ProbeOutcome = ProbeResult | "probe";

/**
 * Checks whether an upstream would take a transaction now. `thorough`: our relay also by a submission that is no
 * transaction, since an open breaker closes by probes alone; a third party would count that against us. Never rejects, and ends
 * by its own deadline.
 */
export type Probe = (thorough: boolean) => Promise<ProbeResult>;
