// The interfaces between boost's parts. Each lists only what its consumers use.

import type { EndsTransactions } from "../../shared/client.ts";
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
	get(target: string, deadlineMs: number, headers?: Post["headers"]): Promise<TransportResult>;
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
	/** The client that the request is made for; null for boost's own. Only our relay receives it. */
	readonly caller: Caller | null;
	/** Counts the attempt. */
	readonly routing?: RoutingInfo;
	/** The transaction that the request ends for its sender or an owner; for our relay alone. */
	readonly ends?: EndsTransactions | undefined;
}

/** One upstream with its breaker. No method rejects. */
export interface Upstream {
	readonly name: UpstreamName;
	readonly breaker: Breaker;
	/** Null for our relay, which needs no translation. */
	readonly dialect: Dialect | null;
	/**
	 * Why transactions of `route` may never go there, as a message for the client; null if they may.
	 */
	whyUnfit(route: Route): string | null;
	/**
	 * Sends a transaction in the upstream's dialect, in a request of boost's own. An upstream that
	 * answers `nonce too low` but knows the hash counts as `acknowledged`. Null if the breaker is
	 * open: nothing was sent.
	 */
	deliver(tx: Sendable, options: SendOptions): Promise<Delivery | null>;
	/**
	 * Sends a body of reads unchanged to `path` and classifies the answer. Null if the breaker is
	 * open.
	 */
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
	 * One call on `path` (default: fast), in a request of boost's own. Null if the upstream is
	 * unavailable or did not answer. `anyway`: ignores the breaker, which does not count the call.
	 * Cancels use it, since they should reach an upstream that may still be alive.
	 */
	call(
		call: RpcCall,
		options: SendOptions & {
			readonly path?: BoostPath;
			readonly anyway?: boolean;
		},
	): Promise<RpcAnswer | null>;
	/**
	 * Many calls, as one request if the upstream accepts arrays; null if it is unavailable or any
	 * answer is missing.
	 */
	batch(calls: readonly RpcCall[], options: SendOptions): Promise<readonly RpcAnswer[] | null>;
	/**
	 * The JSON of a status page; null if the upstream is unavailable, has none, or does not answer
	 * 200 with JSON.
	 */
	statusPage(hash: string, options: SendOptions): Promise<unknown>;
}

/** Both upstreams; `fallback` is null if none is configured. */
export interface Upstreams {
	readonly relay: Upstream;
	readonly fallback: Upstream | null;
}

/**
 * Reads the chain: tries the independent node, if there is one, then the relay, then the fallback.
 */
export interface ChainReads {
	/** Null if none of them answered all calls. */
	batch(calls: readonly RpcCall[], deadlineMs: number): Promise<readonly RpcAnswer[] | null>;
}

/**
 * The rows of all boost instances on the same database. An account's rows are in memory at the
 * instance that wrote it last.
 *
 * All methods throw {@link UnknownElsewhereError} if the database does not answer. The exception:
 * its last answer showed no other instance. Then this instance carries on as if it were alone.
 */
export interface OtherBoosts {
	/**
	 * Whether there is certainly no other instance, so that what is in memory is all, and no query is
	 * needed.
	 */
	readonly isAlone: boolean;
	/** Whether the database's last answer showed no other instance. */
	readonly wasAlone: boolean;
	/** Whether another instance has reported that it reaches our relay. */
	readonly doOthersReach: boolean;
	/**
	 * Looks up a hash, live or ended, among all rows. `address`: the client's, whose look-ups run one
	 * query at a time.
	 */
	find(hash: string, address: string): Promise<Row | null>;
	/** An account's live rows, by nonce and arrival. */
	liveOf(from: string): Promise<readonly Row[]>;
	/** Runs `work` with an account's rows in memory, and again if another instance was first. */
	withRowsOf<T>(request: AccountRequest, work: () => Promise<T>): Promise<T>;
}

/** The state of the other instances is not known, so a request that depends on it is refused. */
export class UnknownElsewhereError extends RpcError {
	constructor(what: string) {
		super(
			"unavailable",
			`the database did not answer, so it is not known whether another boost instance has ${what}`,
		);
	}
}

/** Another boost instance has written the account since this request read it. */
export class LostRaceError extends Error {
	override readonly name = "LostRaceError";
}

/**
 * Whether a row may be sent. `won`: its latest state is on disk, and no other boost instance has
 * written its account since. `lost`: another one has, and decided something else, so the request
 * must decide again. `failed`: the database does not answer.
 */
export type Claim = "won" | "lost" | "failed";

/** A client's request about a transaction. */
export interface AccountRequest {
	/** Its sender. */
	readonly from: string;
	readonly hash: string;
	/** How long it may be run again, in ms. */
	readonly ms: number;
	/**
	 * Whether it needs the latest rows from the beginning. Otherwise its first write shows whether
	 * they are.
	 */
	readonly isCareful: boolean;
}

/** Used when this boost instance has a journal of its own. */
export const NO_OTHERS: OtherBoosts = {
	isAlone: true,
	wasAlone: true,
	doOthersReach: false,
	find: async () => null,
	liveOf: async () => [],
	withRowsOf: (_, work) => work(),
};

/** The heads that clients may know. */
export interface ReportedHeads {
	/** The highest number; null if there is none. */
	readonly height: number | null;
	/** `by` has this head, whether or not clients have received it. */
	sawHead(number: bigint | number, by: UpstreamName): void;
}

/** The conventions of one kind of fallback. */
export interface Dialect {
	readonly name: DialectName;
	/** Whether it accepts JSON-RPC arrays. */
	readonly batches: boolean;
	/** Whether it knows private transactions by hash and counts them in the pending nonce. */
	readonly knowsPrivate: boolean;
	/** Whether a transaction whose nonce has a gap may go there. */
	readonly acceptsNonceGaps: boolean;
	/** The method that cancels a transaction by hash; null if there is none. */
	readonly cancelMethod: string | null;
	/**
	 * Whether it cancels one of its transactions, for free, on a self-transfer with the same nonce.
	 */
	readonly softCancels: boolean;
	/** Path and query for a submission, and the names of query parameters that are dropped. */
	target(path: BoostPath, search: string): { readonly target: string; readonly dropped: readonly string[] };
	/**
	 * Why transactions of `route` may never go there, since it can't meet what the query asks for.
	 * Null if they may.
	 */
	whyUnfit(route: Route): string | null;
	/**
	 * The defaults if no setting overrides them: whether nobody else sees what it gets, and whether
	 * it protects from reverts.
	 */
	readonly isPrivate: boolean;
	readonly isRevertProtected: boolean;
	/**
	 * The format of its status pages; null if it has none. Only pages like our own show for certain
	 * that it has lost a transaction.
	 */
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
 * Everything that opens a breaker, in words for the operator's page and `npm start`.
 * docs/operators.md describes each. A fault is a single failure: of a probe, a refused connection,
 * or any failure soon after the last closing.
 */
export const TRIP_REASONS = {
	refused: "connections are refused",
	reset: "connections are reset",
	loop: "it leads back to boost itself",
	timeout: "it does not answer in time",
	httpStatus: "it answers with an HTTP error",
	notJsonRpc: "it does not answer with JSON-RPC",
	wrongHash: "it answers with another hash",
	internal: "it fails",
	limited: "it rate-limits boost",
	tooLarge: "its answers are too large",
	/** Several in a row. */
	faults: "faults in a row",
	/** −32603 to many senders. */
	storm: "it fails for many senders",
	/** No request in flight is answered. */
	silence: "it does not answer",
	/** The relay's head is too far behind. */
	staleHead: "it is behind the chain",
	/** The relay reports it, or an upstream answers a probe with an error or another chain's id. */
	notReady: "it reports that it is not ready",
	/** The relay reports it, or answers while its calls to its node get no answer. */
	node: "its node does not answer",
	/** The probe itself threw, which is a bug. */
	probe: "it can't be queried",
	forced: "by an operator",
} as const satisfies Readonly<Record<Fault, string>> & Readonly<Record<string, string>>;

/** The reason why a breaker opened. */
export type TripReason = keyof typeof TRIP_REASONS;

/** The result of an attempt, as the breaker counts it. */
export interface Attempted {
	/**
	 * `answered`: any answer that is no fault, verdicts included. `aborted`: not counted. A read's
	 * `timeout` is not counted either, but starts a probe.
	 */
	readonly outcome: "answered" | "aborted" | Fault;
	/** The transaction's sender; a storm of −32603 is counted by senders. */
	readonly sender?: string;
}

/** The circuit breaker of one upstream. */
export interface Breaker {
	readonly upstream: UpstreamName;
	readonly state: BreakerState;
	/** Whether it accepts no requests: open, half-open or stopped. */
	readonly isUnavailable: boolean;
	/** Estimated ms until it accepts requests again, for `Retry-After`. */
	readonly retryMs: number;
	/**
	 * Runs `attempt` if the breaker is closed and counts its outcome. While the upstream answers
	 * nothing, new attempts wait until it does or the breaker opens. Opening aborts the attempts in
	 * flight. Null if the breaker is open: nothing was sent. `client`: the network address of the
	 * client that made the request; null: boost itself.
	 */
	run<T extends Attempted>(
		kind: "read" | "submission",
		client: string | null,
		attempt: (abort: Abort) => Promise<T>,
	): Promise<T | null>;
	/**
	 * Counts a connection that was refused to a request made elsewhere (pass-through), or an answer
	 * to one.
	 */
	note(attempted: Attempted): void;
	/** Calls `listener` on each change of state or reason. */
	onChange(listener: () => void): void;
	status(): BreakerStatus;
	/** Fixes the state; null returns to automatic. */
	force(state: "open" | "closed" | null): void;
}

/** The breaker's state as `/status` shows it to the operator. */
export interface BreakerStatus {
	readonly state: BreakerState;
	readonly reason: TripReason | null;
	/** Advice for the operator while it is not closed; null if nothing more is known. */
	readonly hint: string | null;
	/** When it entered this state, in ISO 8601. */
	readonly since: string;
	/** ISO 8601, or null if none is due. */
	readonly nextProbeAt: string | null;
	readonly inFlight: number;
	/** 0 if none is in flight. */
	readonly oldestInFlightMs: number;
}

/** `ok` if the upstream would accept a transaction, else why the probe failed. */
export type ProbeResult = "ok" | Fault | "staleHead" | "notReady" | "node";

/** A probe's result, or `probe` if the probe itself threw. */
export type ProbeOutcome = ProbeResult | "probe";

/**
 * Checks whether an upstream would accept a transaction now. `thorough`: our relay is also sent a
 * submission that is no transaction, since probes alone close an open breaker. A third party would
 * count that against us. Never rejects, and ends by its own deadline.
 */
export type Probe = (thorough: boolean) => Promise<ProbeResult>;
