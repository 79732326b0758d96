// What the parts of boost need of each other: each port names what its consumer uses. Types only.

import type { RpcId } from "../../shared/jsonrpc/envelope.ts";
import type { Fullness, OverShare } from "../../shared/shares/shares.ts";
import type { Breaker, Cut } from "./breakerPorts.ts";
import type { BoostPath, Delivery, ExchangeResult, Reading, UpstreamName, WireVerdict } from "./delivery.ts";
import type { Dialect } from "./dialect.ts";
import type { EndedEntry, Ending, NewEntry, OpenEntry } from "./journalEntry.ts";
import type { Asker, Trail, WholeBody } from "./request.ts";

/** One POST to an upstream. */
export interface Post {
	/** Path and query behind the upstream's own: "/fast?refundRecipient=0x…". Absolute for `url`s taken as they are. */
	readonly target: string;
	readonly body: Buffer | string;
	/** Beside content-type. Names in lower case. */
	readonly headers: Readonly<Record<string, string>>;
	/** Ms until it is a `timeout`. */
	readonly deadlineMs: number;
	readonly cut?: Cut;
}

/** A road to one upstream: warm connections. Never rejects. */
export interface Road {
	post(post: Post): Promise<ExchangeResult>;
	/** GET of a path; for status pages. */
	get(target: string, deadlineMs: number): Promise<ExchangeResult>;
	close(): Promise<void>;
}

/** The acknowledged transactions. Changes are in memory at once; what they answer resolves when they are on disk. */
export interface Journal {
	/** Entries that are open, those under way too. */
	readonly depth: number;
	/** Whether the last write came through. */
	readonly isDurable: boolean;
	/** Whether there is no room for a large transaction, whoever sends it. */
	readonly isFull: boolean;
	/** How full it is, by entries or bytes, whichever is fuller. */
	readonly fullness: Fullness;
	get(hash: string): OpenEntry | null;
	/** The entry's bytes; null where it is not open any more. */
	raw(hash: string): Promise<Buffer | null>;
	ended(hash: string): EndedEntry | null;
	/** Open entries of a sender by nonce. */
	of(from: string): readonly OpenEntry[];
	/** All open entries, those of a sender by nonce. */
	open(): Iterable<OpenEntry>;
	/** Ended ones of which somebody was not told yet. */
	untold(): Iterable<EndedEntry>;
	/** Mined ones that can be opened again, as they were, with their ends in ms since the epoch; in the order of the ends. */
	recentlyMined(): Iterable<{ readonly entry: OpenEntry; readonly endedAt: number }>;
	/** Why {@link add} would find no room: its client has its share, or all is taken; null where there is room. */
	refusal(entry: Pick<NewEntry, "hash" | "address" | "raw">): OverShare | null;
	/**
	 * Opens it, under way, with `holder` as the one who is given it first. One that is open and was not acknowledged
	 * becomes what this request asks for; who may have it, and is owed it, stays. Where there is no room, or it is open
	 * otherwise, nothing is kept and false comes at once. Rejects where the store fails; it is then kept in memory alone.
	 */
	add(entry: NewEntry, holder: UpstreamName): Promise<boolean>;
	/** One more that was given it. */
	held(hash: string, by: UpstreamName): Promise<void>;
	/** It turned out that `by` does not have it, or has forgotten it. */
	notHeld(hash: string, by: UpstreamName): Promise<void>;
	/** `by`, which was owed it, has it now or will never have it. */
	paid(hash: string, by: UpstreamName): Promise<void>;
	/**
	 * One more request about it (a cancel) is under way, or one is over: they are counted, and until the last of them is
	 * over, and the one that brought it, nobody else sees to it. In memory alone.
	 */
	setUnderWay(hash: string, underWay: boolean): void;
	/** The request that brought it is over. Not acknowledged and held by nobody: it is forgotten. */
	settle(hash: string, acknowledged: boolean): Promise<void>;
	/** The relay (or the node) says that it is still on its way: it lives on. */
	alive(hash: string): void;
	/** It is final. `untold`: who has it and must still hear of that. */
	end(hash: string, ending: Ending, untold?: readonly UpstreamName[]): Promise<void>;
	/** Marks a hash that was never an entry as ended by its user: a soft cancel's own. */
	markEnded(entry: Omit<EndedEntry, "endedAt">): Promise<void>;
	/** `by` was told. */
	told(hash: string, by: UpstreamName): Promise<void>;
	/** A mined one is not in the chain any more: it is open again. */
	reopen(hash: string): Promise<void>;
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
	readonly asker: Asker | null;
	/** Counted on it. */
	readonly trail?: Trail;
}

/** The answer to one call. */
export type CallResult =
	| { readonly ok: true; readonly result: unknown }
	| { readonly ok: false; readonly error: WireVerdict };

/** One call to be made. */
export interface Call {
	readonly method: string;
	readonly params: readonly unknown[];
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

/** Both roads; `fallback` is null where there is none. */
export interface Upstreams {
	readonly relay: Upstream;
	readonly fallback: Upstream | null;
}

/** What the chain says: the independent node where there is one, else the relay, else the fallback. */
export interface ChainReads {
	/** Null where nobody answered all. */
	batch(calls: readonly Call[], deadlineMs: number): Promise<readonly CallResult[] | null>;
}

/** Sees to all that the journal holds beyond single requests: handing over, what is owed, who is to be told. */
export interface Handover {
	/** Something changed (a breaker, an entry): look again soon. Many calls make one look. */
	wake(): void;
	/** `by` has given it up, or has taken it back: it does not get it again. */
	spent(hash: string, by: UpstreamName): void;
}
