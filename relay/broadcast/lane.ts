// The builder queue: a bounded queue of requests to one builder, so that a slow builder delays no
// other. Users' transactions and cancels go before searchers' bundles, which use the rest of the
// builder's requests per second. Clients are served in fair order. The first bid slot of every
// target goes before the second of any. The items of one sender are sent one after another. So
// nonces arrive in order, and a cancel arrives after the item that it cancels.

import { type Clock, nextTurn, type Timer } from "../../shared/clock.ts";
import { FairScheduler, type JobOptions, type WaitingJob } from "../../shared/shares/scheduler.ts";
import { type Fullness, fullest, Shares } from "../../shared/shares/shares.ts";
import type { BundleKind } from "../domain/bundle.ts";
import type { DeliveryAnswer } from "../domain/events.ts";
import type { SendChecks, SignedBody } from "./builderClient.ts";
import { RequestBudget } from "./requestBudget.ts";

export interface LaneItem {
	/**
	 * The sender's address, or a bundle's name. Items with the same key are never in flight at the
	 * same time.
	 */
	readonly key: string;
	/**
	 * The transaction's hash, or a bundle's name. A newer item replaces a waiting one of the same
	 * subject unless it is urgent.
	 */
	readonly subject: string;
	/** The client whose quota of the queue it uses: see clientOf in shared/client.ts. */
	readonly client: string;
	/** Wei that the builder earns by it, default 0. A client's highest item goes first. */
	readonly worth?: number | undefined;
	/** The kind of the item, or of the item that it cancels. */
	readonly kind: BundleKind;
	/** The slot of a bid. */
	readonly slot?: number | undefined;
	/** Its target block. Once that is the head, the item is dropped. */
	readonly block: number;
	/** The id of the request that caused it, which is sent to the builder; null: none. */
	readonly requestId: string | null;
	/** A cancel: it goes before everything else of its kind, and is sent even after its block. */
	readonly urgent: boolean;
	/**
	 * Builds and signs the body right before it is sent, so that waiting items use little memory.
	 * It may take several turns of the event loop.
	 */
	readonly make: () => SignedBody | Promise<SignedBody>;
	/**
	 * Called when the request is written. From then on the builder may have the item. A retry calls
	 * it again.
	 */
	readonly left?: (() => void) | undefined;
	/** Called once; with `unsent` if it was never sent. */
	readonly answered: (answer: DeliveryAnswer, ms: number) => void;
}

export interface LaneOptions {
	/** Requests per second. */
	readonly perSecond: number;
	/**
	 * How many users' items may wait. The same limit applies to bids, to plain bundles, and to the
	 * cancels of each. One client may have an eighth. An item beyond that is answered `unsent`; it
	 * is sent again with the next head.
	 */
	readonly capacity: number;
	/** Most requests in flight. */
	readonly concurrency: number;
}

export interface LaneDependencies {
	readonly send: (body: SignedBody, rights: SendChecks) => Promise<DeliveryAnswer>;
	/** Checked before each item that is not urgent; if false, the item is answered `unsent`. */
	readonly maySend: () => boolean;
	readonly clock: Clock;
}

/** The items of one key: at most the 64 that a sender may have, and their cancels. */
interface Queue {
	readonly key: string;
	/** In sending order: urgent items first, then one for each subject. */
	waiting: LaneItem[];
	sending: Sending | null;
	/** The scheduled job for its first item. */
	job: WaitingJob | null;
}

/** The item being sent. A withdrawn item is dropped as long as nothing of it is written. */
class Sending implements SendChecks {
	readonly item: LaneItem;
	readonly onSent: () => void;
	isWithdrawn = false;
	readonly #maySend: () => boolean;

	constructor(
		item: LaneItem,
		{ maySend, onSent }: { readonly maySend: () => boolean; readonly onSent: () => void },
	) {
		this.item = item;
		this.#maySend = maySend;
		this.onSent = onSent;
	}

	get requestId(): string | null {
		return this.item.requestId;
	}

	shouldSend(): boolean {
		return !this.isWithdrawn && this.#maySend();
	}
}

/** The quotas for waiting items of one kind. */
interface WaitingShares {
	readonly waiting: Shares;
	readonly cancels: Shares;
}

/** Queues checked for stale items before other work runs, which takes a few ms. */
const QUEUES_PER_SLICE = 500;
/**
 * How many blocks a sent bundle is remembered. Among bundles that pay the same, the one sent least
 * recently goes first.
 */
const KNOWN_BLOCKS = 32;

export class Lane {
	readonly #dependencies: LaneDependencies;
	readonly #scheduler: FairScheduler;
	readonly #rooms: Readonly<Record<BundleKind, WaitingShares>>;
	readonly #budget: RequestBudget;
	/** Runs until searchers' requests may continue. */
	#pause: Timer | null = null;
	readonly #queues = new Map<string, Queue>();
	/**
	 * The last block for which each subject was sent, by kind. Users' transactions stay until {@link
	 * forget}.
	 */
	readonly #sent: Readonly<Record<BundleKind, Map<string, number>>> = {
		user: new Map(),
		bid: new Map(),
		plain: new Map(),
	};
	#inFlight = 0;
	#head = 0;
	#closed = false;
	/** The queues not yet checked for stale items; null if no check is running. */
	#unswept: Iterator<Queue> | null = null;
	#idle: (() => void)[] = [];

	constructor({ capacity, concurrency, perSecond }: LaneOptions, dependencies: LaneDependencies) {
		this.#dependencies = dependencies;
		this.#budget = new RequestBudget({ perSecond }, dependencies);
		this.#scheduler = new FairScheduler({
			concurrency,
			// The quotas limit the waiting items.
			maxWaiting: Number.POSITIVE_INFINITY,
			mayStartBackground: () => this.#mayStartSearchers(),
		});
		const shares = () => new Shares({ total: capacity, perClient: Math.max(1, Math.floor(capacity / 8)) });
		const room = () => ({ waiting: shares(), cancels: shares() });
		this.#rooms = { user: room(), bid: room(), plain: room() };
	}

	/** The last block for which `subject` was sent; undefined if it was not sent, or is forgotten. */
	sentFor(kind: BundleKind, subject: string): number | undefined {
		return this.#sent[kind].get(subject);
	}

	/** Whether `subject` was sent for a block that has not come yet. */
	isSentAhead(kind: BundleKind, subject: string): boolean {
		return (this.sentFor(kind, subject) ?? 0) > this.#head;
	}

	/** Marks a user's transaction as sent before this process started. */
	restore(subject: string): void {
		if (!this.#sent.user.has(subject)) this.#sent.user.set(subject, 0);
	}

	/** Drops the knowledge about a subject. */
	forget(kind: BundleKind, subject: string): void {
		this.#sent[kind].delete(subject);
	}

	/** Items that wait or are in flight. */
	get depth(): number {
		const rooms = Object.values(this.#rooms);
		return rooms.reduce((sum, { waiting, cancels }) => sum + waiting.taken + cancels.taken, this.#inFlight);
	}

	/** How full its fullest quota is. */
	get fullness(): Fullness {
		return fullest(
			Object.values(this.#rooms).flatMap(({ waiting, cancels }) => [waiting.fullness, cancels.fullness]),
		);
	}

	/** Searchers' requests per second while users send none. */
	get perSecond(): number {
		return this.#budget.forSearchers;
	}

	/**
	 * Queues an item. It replaces a queued item of the same subject, which is answered `unsent`, and
	 * withdraws one in flight.
	 */
	push(item: LaneItem): void {
		const queue = this.#queues.get(item.key) ?? this.#open(item.key);
		const { waiting } = queue;
		const at = item.urgent ? waiting.findIndex(({ urgent }) => !urgent) : indexOf(waiting, item.subject);
		const replaced = item.urgent ? undefined : waiting[at];
		if (replaced !== undefined) this.#shares(replaced).release(replaced.client, 1);
		const isTaken = !this.#closed && this.#shares(item).take(item.client, 1) === null;
		// The older item is outdated, so it is dropped even if the newer one is not accepted.
		const added = isTaken ? [item] : [];
		waiting.splice(at < 0 ? waiting.length : at, replaced === undefined ? 0 : 1, ...added);
		if (!item.urgent) markWithdrawn(queue, item.subject);
		this.#enqueue(queue);
		replaced?.answered("unsent", 0);
		if (!isTaken) item.answered("unsent", 0);
	}

	/**
	 * Drops the queued item of `subject` unless it is urgent; it is answered `unsent`. An item in
	 * flight is not written any more, or not a second time.
	 */
	withdraw(key: string, subject: string): void {
		const queue = this.#queues.get(key);
		if (queue === undefined) return;
		markWithdrawn(queue, subject);
		this.#dropIf(queue, (item) => item.subject === subject);
	}

	/** Drops items that wait for `head` or an earlier block. */
	setHead(head: number): void {
		this.#head = head;
		for (const sent of [this.#sent.bid, this.#sent.plain])
			for (const [subject, block] of sent) if (block + KNOWN_BLOCKS <= head) sent.delete(subject);
		const isSweeping = this.#unswept !== null;
		this.#unswept = this.#queues.values();
		if (!isSweeping) void this.#sweep();
	}

	/**
	 * Accepts no new items. Resolves when all cancels and the items in flight are answered. Other
	 * waiting items are answered `unsent`: they are in the store and are sent again after the
	 * restart.
	 */
	async close(): Promise<void> {
		this.#closed = true;
		for (const queue of this.#queues.values()) this.#dropIf(queue, () => true);
		// Only cancels are left of searchers' items.
		this.#scheduler.resume();
		if (this.depth > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
	}

	#open(key: string): Queue {
		const queue: Queue = { key, waiting: [], sending: null, job: null };
		this.#queues.set(key, queue);
		return queue;
	}

	#shares(item: LaneItem): Shares {
		const room = this.#rooms[item.kind];
		return item.urgent ? room.cancels : room.waiting;
	}

	/**
	 * Whether the builder accepts a searcher's request now. If not, the scheduler resumes when it
	 * does.
	 */
	#mayStartSearchers(): boolean {
		const { waitMs } = this.#budget;
		if (waitMs === 0 || this.#closed) return true;
		this.#pause ??= this.#dependencies.clock.after(waitMs, () => {
			this.#pause = null;
			this.#scheduler.resume();
		});
		return false;
	}

	/** Drops the items that match and are not urgent; returns how many. */
	#dropIf(queue: Queue, matches: (item: LaneItem) => boolean): number {
		const dropped = queue.waiting.filter((item) => !item.urgent && matches(item));
		if (dropped.length === 0) return 0;
		queue.waiting = queue.waiting.filter((item) => !dropped.includes(item));
		for (const item of dropped) this.#shares(item).release(item.client, 1);
		this.#enqueue(queue);
		for (const item of dropped) item.answered("unsent", 0);
		return dropped.length;
	}

	/**
	 * Checks all queues in slices, because there may be many. #maySend covers stale items not reached
	 * yet.
	 */
	async #sweep(): Promise<void> {
		while (this.#unswept !== null) {
			for (let checked = 0; checked < QUEUES_PER_SLICE && this.#unswept !== null; checked += 1) {
				const { value: queue, done } = this.#unswept.next();
				if (done === true) this.#unswept = null;
				else checked += this.#dropIf(queue, ({ block }) => block <= this.#head);
			}
			if (this.#unswept !== null) await nextTurn();
		}
	}

	/** Schedules the queue's first item, or forgets an empty queue. */
	#enqueue(queue: Queue): void {
		if (queue.sending !== null) return;
		const [first] = queue.waiting;
		if (first === undefined) this.#queues.delete(queue.key);
		const wanted = first === undefined ? null : this.#jobOptions(first);
		const current = queue.job?.options;
		if (
			current?.client === wanted?.client &&
			current?.urgent === wanted?.urgent &&
			current?.rank === wanted?.rank
		)
			return;
		if (queue.job !== null) this.#scheduler.withdraw(queue.job);
		queue.job = null;
		if (wanted === null) return;
		const job = this.#scheduler.enqueue(wanted, () => this.#begin(queue));
		// Null if the job has already begun.
		if (job !== null) queue.job = job;
	}

	/** Sends the first item that may be sent; items before it are answered `unsent`. */
	async #begin(queue: Queue): Promise<void> {
		queue.job = null;
		const sendable = queue.waiting.findIndex((item) => this.#maySend(item));
		const taken = queue.waiting.splice(0, sendable < 0 ? queue.waiting.length : sendable + 1);
		for (const item of taken) this.#shares(item).release(item.client, 1);
		const item = sendable < 0 ? undefined : taken.pop();
		if (item === undefined) {
			this.#enqueue(queue);
			for (const one of taken) one.answered("unsent", 0);
			return;
		}
		const sending = new Sending(item, {
			maySend: () => this.#maySend(item),
			onSent: () => {
				if (!item.urgent) this.#sent[item.kind].set(item.subject, item.block);
				item.left?.();
			},
		});
		queue.sending = sending;
		this.#inFlight += 1;
		for (const one of taken) one.answered("unsent", 0);
		const { send, clock } = this.#dependencies;
		const made = item.make();
		const isAtOnce = !(made instanceof Promise);
		const body = isAtOnce ? made : await made;
		// It may have been withdrawn while it was signed.
		const maySend = isAtOnce || sending.shouldSend();
		if (maySend) this.#budget.take();
		const begun = clock.monotonic();
		const answer = maySend ? await send(body, sending) : "unsent";
		this.#inFlight -= 1;
		item.answered(answer, Math.round(clock.monotonic() - begun));
		queue.sending = null;
		this.#enqueue(queue);
		if (this.depth === 0) for (const resolve of this.#idle.splice(0)) resolve();
	}

	/**
	 * How an item is scheduled. A client's items as a user are not delayed by its items as a
	 * searcher.
	 */
	#jobOptions({ client, subject, worth = 0, kind, slot = 0, urgent }: LaneItem): JobOptions {
		const rank = urgent ? -Infinity : rankOf(worth, this.sentFor(kind, subject) ?? 0);
		if (kind === "user") return { client, cost: 1, urgent, rank };
		// All bids are one client: the auction has already assigned their slots.
		return kind === "bid"
			? { client: "bids", cost: BID_COST, background: true, rank: urgent ? -Infinity : slot }
			: { client: `searcher ${client}`, cost: 1, background: true, rank };
	}

	#maySend({ urgent, block }: LaneItem): boolean {
		return urgent || (block > this.#head && this.#dependencies.maySend());
	}
}

function markWithdrawn({ sending }: Queue, subject: string): void {
	if (sending?.item.subject === subject && !sending.item.urgent) sending.isWithdrawn = true;
}

/**
 * The cost of a bid; a plain bundle costs 1. Each of many bids gets its turn before a second plain
 * bundle of anybody.
 */
const BID_COST = 1 / 64;

/** Payments count as equal if they differ by less than this part of an octave: by one percent. */
const OCTAVE_PARTS = 64;
/** More than any block number. */
const BLOCKS = 2 ** 32;

/**
 * The rank among a client's items, lower first: by payment, and for equal payments by the block
 * last sent for.
 */
function rankOf(worth: number, sentFor: number): number {
	return sentFor - BLOCKS * Math.round(OCTAVE_PARTS * Math.log2(1 + worth));
}

/** The index of the item of `subject` that is not urgent; -1 if there is none. */
function indexOf(waiting: readonly LaneItem[], subject: string): number {
	return waiting.findIndex((item) => item.subject === subject && !item.urgent);
}
