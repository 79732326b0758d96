// One builder's lane: a bounded queue in front of its wire. What comes in are bodies, what goes out are their
// answers. Items of one sender go one behind another, so that a chain of nonces arrives in order and a cancel behind
// what it cancels; senders take turns. A slow builder fills its own lane and delays nobody else.

import type { Clock } from "../../shared/clock.ts";
import type { DeliveryAnswer } from "../domain/events.ts";
import type { SendRights } from "./builderClient.ts";

/** Something to be sent. */
export interface LaneItem {
	/** Items of one key are never under way at the same time: the sender's address. */
	readonly key: string;
	/** What it is about, for {@link Lane.withdraw}: the transaction's hash. */
	readonly subject: string;
	/** The block it is for; once that is the head, it is no longer worth sending. */
	readonly block: number;
	/** Cancels go before all that waits, and are sent whatever the block. */
	readonly urgent: boolean;
	/** Made when its turn comes, so that a waiting item takes no memory. */
	readonly make: () => { body: Buffer; signature: string };
	/** Called once; `unsent` where it never left. */
	readonly answered: (answer: DeliveryAnswer, ms: number) => void;
}

export interface LaneOptions {
	/** Items that may wait; one more is answered `unsent` and comes again with the next head. */
	readonly capacity: number;
	/** Requests under way at most. */
	readonly concurrency: number;
}

export interface LaneDependencies {
	readonly send: (body: Buffer, signature: string, rights: SendRights) => Promise<DeliveryAnswer>;
	/** Asked before each item that is not urgent; what may not be sent is answered `unsent`. */
	readonly maySend: () => boolean;
	readonly clock: Clock;
}

/** What waits for one sender's turn. */
interface Queue {
	urgent: LaneItem[];
	waiting: LaneItem[];
	underWay: UnderWay | null;
}

/** What is being sent; once it is withdrawn, it is not sent a second time. */
interface UnderWay {
	readonly item: LaneItem;
	withdrawn: boolean;
}

/** Sends items, some at a time. */
export class Lane {
	readonly #options: LaneOptions;
	readonly #deps: LaneDependencies;
	readonly #queues = new Map<string, Queue>();
	/** Keys that have something to send and nothing under way, in the order of their turns. */
	readonly #urgentTurns = new Set<string>();
	readonly #turns = new Set<string>();
	#waiting = 0;
	#underWay = 0;
	#head = 0;
	#closed = false;
	#idle: (() => void)[] = [];

	constructor(options: LaneOptions, dependencies: LaneDependencies) {
		this.#options = options;
		this.#deps = dependencies;
	}

	/** Items that wait or are under way. */
	get depth(): number {
		return this.#waiting + this.#underWay;
	}

	push(item: LaneItem): void {
		// Cancels are few, and the last thing to be given up.
		const limit = item.urgent ? 2 * this.#options.capacity : this.#options.capacity;
		if (this.#closed || this.#waiting >= limit) {
			item.answered("unsent", 0);
			return;
		}
		const queue = this.#queues.get(item.key) ?? { urgent: [], waiting: [], underWay: null };
		this.#queues.set(item.key, queue);
		(item.urgent ? queue.urgent : queue.waiting).push(item);
		this.#waiting += 1;
		this.#queueUp(item.key, queue);
		this.#pump();
	}

	/** Takes out what waits for `subject` and is not urgent: it is answered `unsent`. What is under way ends as it may. */
	withdraw(key: string, subject: string): void {
		const queue = this.#queues.get(key);
		if (queue === undefined) return;
		const { underWay } = queue;
		if (underWay?.item.subject === subject && !underWay.item.urgent) underWay.withdrawn = true;
		const gone = queue.waiting.filter((item) => item.subject === subject);
		queue.waiting = queue.waiting.filter((item) => item.subject !== subject);
		this.#waiting -= gone.length;
		for (const item of gone) item.answered("unsent", 0);
	}

	/** Everything that waits for `head` or a block before it is stale: it makes room for what the new head brings. */
	setHead(head: number): void {
		this.#head = head;
		for (const queue of this.#queues.values()) {
			const stale = queue.waiting.filter((item) => item.block <= head);
			if (stale.length === 0) continue;
			queue.waiting = queue.waiting.filter((item) => item.block > head);
			this.#waiting -= stale.length;
			for (const item of stale) item.answered("unsent", 0);
		}
	}

	/**
	 * Takes no more and resolves when all cancels and what is under way are answered; what else waits is answered
	 * `unsent`, for it is in the store and goes out again.
	 */
	async close(): Promise<void> {
		this.#closed = true;
		for (const queue of this.#queues.values()) {
			const left = queue.waiting.splice(0);
			this.#waiting -= left.length;
			for (const item of left) item.answered("unsent", 0);
		}
		if (this.depth > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
	}

	#queueUp(key: string, queue: Queue): void {
		if (queue.underWay !== null) return;
		if (queue.urgent.length > 0) this.#urgentTurns.add(key);
		else if (queue.waiting.length > 0) this.#turns.add(key);
		else this.#queues.delete(key);
	}

	/** The next item whose turn it is; stale ones are answered on the way. */
	#next(): UnderWay | undefined {
		for (const turns of [this.#urgentTurns, this.#turns]) {
			for (const key of turns) {
				this.#urgentTurns.delete(key);
				this.#turns.delete(key);
				const queue = this.#queues.get(key);
				if (queue === undefined) continue;
				const item = this.#take(queue);
				if (item === undefined) {
					this.#queueUp(key, queue);
					continue;
				}
				queue.underWay = { item, withdrawn: false };
				return queue.underWay;
			}
		}
		return undefined;
	}

	#take(queue: Queue): LaneItem | undefined {
		const urgent = queue.urgent.shift();
		if (urgent !== undefined) {
			this.#waiting -= 1;
			return urgent;
		}
		for (let item = queue.waiting.shift(); item !== undefined; item = queue.waiting.shift()) {
			this.#waiting -= 1;
			if (item.block > this.#head && this.#deps.maySend()) return item;
			item.answered("unsent", 0);
		}
		return undefined;
	}

	#pump(): void {
		while (this.#underWay < this.#options.concurrency) {
			const next = this.#next();
			if (next === undefined) return;
			this.#underWay += 1;
			void this.#deliver(next);
		}
	}

	async #deliver(underWay: UnderWay): Promise<void> {
		const { send, maySend, clock } = this.#deps;
		const { item } = underWay;
		const { body, signature } = item.make();
		const begun = clock.monotonic();
		const mayStart = () => item.urgent || maySend();
		const mayRepeat = () => !underWay.withdrawn && mayStart();
		const answer = await send(body, signature, { mayStart, mayRepeat });
		this.#underWay -= 1;
		item.answered(answer, Math.round(clock.monotonic() - begun));
		const queue = this.#queues.get(item.key);
		if (queue !== undefined) {
			queue.underWay = null;
			this.#queueUp(item.key, queue);
		}
		this.#pump();
		if (this.depth === 0) for (const resolve of this.#idle.splice(0)) resolve();
	}
}
