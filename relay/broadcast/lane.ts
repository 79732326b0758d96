// One builder's lane: a bounded queue in front of its wire. Users' transactions go before searchers' plain bundles, and
// clients take turns, so that nobody's crowd delays another's delivery. Items of one sender go one behind another: a chain
// of nonces arrives in order, and a cancel behind what it cancels. A slow builder delays nobody else.

import { LRUCache } from "lru-cache";
import { type Clock, nextTurn } from "../../shared/clock.ts";
import { FairScheduler, type JobOptions, type WaitingJob } from "../../shared/shares/scheduler.ts";
import { type Fullness, fullest, Shares } from "../../shared/shares/shares.ts";
import type { DeliveryAnswer } from "../domain/events.ts";
import type { SendRights } from "./builderClient.ts";

/** Something to be sent. */
export interface LaneItem {
	/** Items of one key are never in flight at the same time: the sender's address. */
	readonly key: string;
	/** What it is about: the transaction's hash. Of what waits for one subject and is not urgent only the newest is sent. */
	readonly subject: string;
	/** Whose turn and share it takes: see clientOf in shared/http/callContext.ts. */
	readonly client: string;
	/** A searcher's plain bundle, or its cancel: goes behind all that is a user's. */
	readonly isPlain: boolean;
	/** The block it is for; once that is the head, it is no longer worth sending. */
	readonly block: number;
	/** Cancels go before all else of their kind, and are sent whatever the block. */
	readonly urgent: boolean;
	/** Made when its turn comes, so that a waiting item takes no memory. */
	readonly make: () => { body: Buffer; signature: string };
	/** Called once; `unsent` where it never left. */
	readonly answered: (answer: DeliveryAnswer, ms: number) => void;
}

export interface LaneOptions {
	/**
	 * Items that may wait, of users and of searchers each, and as many cancels of each; an eighth of one client. One more
	 * is answered `unsent` and comes again with the next head.
	 */
	readonly capacity: number;
	/** Requests in flight at most. */
	readonly concurrency: number;
}

export interface LaneDependencies {
	readonly send: (body: Buffer, signature: string, rights: SendRights) => Promise<DeliveryAnswer>;
	/** Asked before each item that is not urgent; what may not be sent is answered `unsent`. */
	readonly maySend: () => boolean;
	readonly clock: Clock;
}

/** What one key has to send. At most 64 items wait in one, as many as a sender may have, and their cancels. */
interface Queue {
	readonly key: string;
	/** In the order in which they are sent: urgent ones first, of the others one for each subject. */
	waiting: LaneItem[];
	inFlight: InFlight | null;
	/** What waits in the scheduler for its first item. */
	job: WaitingJob | null;
}

/** What is being sent; once it is withdrawn, it is not sent a second time. */
interface InFlight {
	readonly item: LaneItem;
	withdrawn: boolean;
}

/** What waits, of one kind. */
interface Room {
	readonly waiting: Shares;
	readonly cancels: Shares;
}

/** Queues that are looked through at once for what is stale: few ms. */
const SWEEP = 500;

/** Sends items, some at a time. */
export class Lane {
	readonly #deps: LaneDependencies;
	readonly #turns: FairScheduler;
	readonly #users: Room;
	readonly #searchers: Room;
	readonly #queues = new Map<string, Queue>();
	/** By subject the block for which it was last sent: of one client's, what was sent least recently goes first. */
	readonly #sentFor: LRUCache<string, number>;
	#inFlight = 0;
	#head = 0;
	#closed = false;
	/** What is still to be looked through for stale items; null: nothing. */
	#unswept: Iterator<Queue> | null = null;
	#idle: (() => void)[] = [];

	constructor({ capacity, concurrency }: LaneOptions, dependencies: LaneDependencies) {
		this.#deps = dependencies;
		// What waits is bounded by the shares.
		this.#turns = new FairScheduler({ concurrency, maxWaiting: Number.POSITIVE_INFINITY });
		const shares = () => new Shares({ total: capacity, perClient: Math.max(1, Math.floor(capacity / 8)) });
		this.#users = { waiting: shares(), cancels: shares() };
		this.#searchers = { waiting: shares(), cancels: shares() };
		this.#sentFor = new LRUCache({ max: capacity });
	}

	/** Items that wait or are in flight. */
	get depth(): number {
		return this.#rooms.reduce(
			(sum, { waiting, cancels }) => sum + waiting.taken + cancels.taken,
			this.#inFlight,
		);
	}

	/** How full the fullest of its shares is. */
	get fullness(): Fullness {
		return fullest(this.#rooms.flatMap(({ waiting, cancels }) => [waiting.fullness, cancels.fullness]));
	}

	/** Takes the place of what waits for its subject: that is answered `unsent`, and what is in flight is not repeated. */
	push(item: LaneItem): void {
		const queue = this.#queues.get(item.key) ?? this.#open(item.key);
		const { waiting } = queue;
		const at = item.urgent ? waiting.findIndex(({ urgent }) => !urgent) : indexOf(waiting, item.subject);
		const overtaken = item.urgent ? undefined : waiting[at];
		if (overtaken !== undefined) this.#shares(overtaken).give(overtaken.client, 1);
		const isRefused = this.#closed || this.#shares(item).take(item.client, 1) !== null;
		// Where the newer one is refused the older one is not sent either: it is no longer what shall be.
		const added = isRefused ? [] : [item];
		waiting.splice(at < 0 ? waiting.length : at, overtaken === undefined ? 0 : 1, ...added);
		if (!item.urgent) notAgain(queue, item.subject);
		this.#enqueue(queue);
		overtaken?.answered("unsent", 0);
		if (isRefused) item.answered("unsent", 0);
	}

	/** Takes out what waits for `subject` and is not urgent: it is answered `unsent`. What is in flight ends as it may. */
	withdraw(key: string, subject: string): void {
		const queue = this.#queues.get(key);
		if (queue === undefined) return;
		notAgain(queue, subject);
		this.#dropIf(queue, (item) => item.subject === subject);
	}

	/** Everything that waits for `head` or a block before it is stale: it makes room for what the new head brings. */
	setHead(head: number): void {
		this.#head = head;
		const isSweeping = this.#unswept !== null;
		this.#unswept = this.#queues.values();
		if (!isSweeping) void this.#sweep();
	}

	/**
	 * Takes no more and resolves when all cancels and what is in flight are answered; what else waits is answered
	 * `unsent`, for it is in the store and goes out again.
	 */
	async close(): Promise<void> {
		this.#closed = true;
		for (const queue of this.#queues.values()) this.#dropIf(queue, () => true);
		if (this.depth > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
	}

	#open(key: string): Queue {
		const queue: Queue = { key, waiting: [], inFlight: null, job: null };
		this.#queues.set(key, queue);
		return queue;
	}

	get #rooms(): readonly Room[] {
		return [this.#users, this.#searchers];
	}

	#shares(item: LaneItem): Shares {
		const room = item.isPlain ? this.#searchers : this.#users;
		return item.urgent ? room.cancels : room.waiting;
	}

	/** Takes out what is not urgent and `matches`; answers how many that were. */
	#dropIf(queue: Queue, matches: (item: LaneItem) => boolean): number {
		const gone = queue.waiting.filter((item) => !item.urgent && matches(item));
		if (gone.length === 0) return 0;
		queue.waiting = queue.waiting.filter((item) => !gone.includes(item));
		for (const item of gone) this.#shares(item).give(item.client, 1);
		this.#enqueue(queue);
		for (const item of gone) item.answered("unsent", 0);
		return gone.length;
	}

	/** In slices, for there may be many; one that is stale and whose turn comes before is not sent either. */
	async #sweep(): Promise<void> {
		while (this.#unswept !== null) {
			for (let looked = 0; looked < SWEEP && this.#unswept !== null; looked += 1) {
				const { value: queue, done } = this.#unswept.next();
				if (done === true) this.#unswept = null;
				else looked += this.#dropIf(queue, ({ block }) => block <= this.#head);
			}
			if (this.#unswept !== null) await nextTurn();
		}
	}

	/** Gives the key the turn that its first item has a claim to; forgets it where it has nothing left. */
	#enqueue(queue: Queue): void {
		if (queue.inFlight !== null) return;
		const [first] = queue.waiting;
		if (first === undefined) this.#queues.delete(queue.key);
		const claim = first === undefined ? null : this.#claimOf(first);
		const had = queue.job?.options;
		if (had?.client === claim?.client && had?.urgent === claim?.urgent && had?.rank === claim?.rank) return;
		if (queue.job !== null) this.#turns.withdraw(queue.job);
		queue.job = null;
		if (claim === null) return;
		const job = this.#turns.enqueue(claim, () => this.#begin(queue));
		// Not where it has begun, and ended even.
		if (job !== null) queue.job = job;
	}

	/** Sends the first item that may be sent; those before it that may not are answered. */
	async #begin(queue: Queue): Promise<void> {
		queue.job = null;
		const sendable = queue.waiting.findIndex((item) => this.#maySend(item));
		const taken = queue.waiting.splice(0, sendable < 0 ? queue.waiting.length : sendable + 1);
		for (const item of taken) this.#shares(item).give(item.client, 1);
		const item = sendable < 0 ? undefined : taken.pop();
		if (item === undefined) {
			this.#enqueue(queue);
			for (const one of taken) one.answered("unsent", 0);
			return;
		}
		const inFlight = { item, withdrawn: false };
		queue.inFlight = inFlight;
		this.#inFlight += 1;
		for (const one of taken) one.answered("unsent", 0);
		const { send, maySend, clock } = this.#deps;
		if (!item.urgent) this.#sentFor.set(item.subject, item.block);
		const { body, signature } = item.make();
		const begun = clock.monotonic();
		const shouldSend = () => item.urgent || maySend();
		const mayRepeat = () => !inFlight.withdrawn && shouldSend();
		const answer = await send(body, signature, { shouldSend, mayRepeat });
		this.#inFlight -= 1;
		item.answered(answer, Math.round(clock.monotonic() - begun));
		queue.inFlight = null;
		this.#enqueue(queue);
		if (this.depth === 0) for (const resolve of this.#idle.splice(0)) resolve();
	}

	/** The turn that an item may have. What somebody sends as a user is not held up by what he sends as a searcher. */
	#claimOf({ client, subject, isPlain, urgent }: LaneItem): JobOptions {
		const rank = urgent ? -1 : (this.#sentFor.get(subject) ?? 0);
		return isPlain
			? { client: `searcher ${client}`, cost: 1, background: true, rank }
			: { client, cost: 1, urgent, rank };
	}

	#maySend({ urgent, block }: LaneItem): boolean {
		return urgent || (block > this.#head && this.#deps.maySend());
	}
}

function notAgain({ inFlight }: Queue, subject: string): void {
	if (inFlight?.item.subject === subject && !inFlight.item.urgent) inFlight.withdrawn = true;
}

/** Where in `waiting` the one for `subject` stands that is not urgent; -1: nowhere. */
function indexOf(waiting: readonly LaneItem[], subject: string): number {
	return waiting.findIndex((item) => item.subject === subject && !item.urgent);
}
