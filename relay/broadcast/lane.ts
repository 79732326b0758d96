// One builder's lane: a bounded queue in front of its wire. What comes in are bodies, what goes out are their
// answers. A slow builder fills its own lane and delays nobody else.

import type { Clock } from "../../shared/clock.ts";
import type { DeliveryAnswer } from "../domain/events.ts";

/** Something to be sent. */
export interface LaneItem {
	/** The block it is for; once that is the head, it is no longer worth sending. */
	readonly block: number;
	/** Cancels go first, and are sent whatever the block. */
	readonly urgent: boolean;
	/** Made when its turn comes, so that a waiting item takes no memory. */
	readonly make: () => { body: Buffer; signature: string };
	readonly answered: (answer: DeliveryAnswer, ms: number) => void;
}

export interface LaneOptions {
	/** Items that may wait; one more is answered `overflow` and comes again with the next head. */
	readonly capacity: number;
	/** Requests under way at most. */
	readonly concurrency: number;
}

/** Sends items in their order, urgent ones first. */
export class Lane {
	readonly #options: LaneOptions;
	readonly #send: (body: Buffer, signature: string) => Promise<DeliveryAnswer>;
	readonly #clock: Clock;
	readonly #urgent: LaneItem[] = [];
	#waiting: LaneItem[] = [];
	#taken = 0;
	#underWay = 0;
	#head = 0;
	#closed = false;
	#idle: (() => void)[] = [];

	constructor(
		options: LaneOptions,
		dependencies: {
			send: (body: Buffer, signature: string) => Promise<DeliveryAnswer>;
			clock: Clock;
		},
	) {
		this.#options = options;
		this.#send = dependencies.send;
		this.#clock = dependencies.clock;
	}

	/** Items that wait or are under way. */
	get depth(): number {
		return this.#urgent.length + this.#waiting.length - this.#taken + this.#underWay;
	}

	push(item: LaneItem): void {
		const queue = item.urgent ? this.#urgent : this.#waiting;
		const length = item.urgent ? queue.length : queue.length - this.#taken;
		if (this.#closed || length >= this.#options.capacity) {
			item.answered("overflow", 0);
			return;
		}
		queue.push(item);
		this.#pump();
	}

	/** Everything that waits for `head` or a block before it is stale from now on. */
	setHead(head: number): void {
		this.#head = head;
	}

	/** Takes no more and resolves when what is under way is answered; what waits is answered `overflow`. */
	async close(): Promise<void> {
		this.#closed = true;
		for (const item of [...this.#urgent.splice(0), ...this.#waiting.slice(this.#taken)]) {
			item.answered("overflow", 0);
		}
		this.#waiting = [];
		this.#taken = 0;
		await this.settled();
	}

	/** Resolves when nothing waits and nothing is under way. */
	settled(): Promise<void> {
		if (this.depth === 0) return Promise.resolve();
		return new Promise((resolve) => this.#idle.push(resolve));
	}

	#next(): LaneItem | undefined {
		const urgent = this.#urgent.shift();
		if (urgent !== undefined) return urgent;
		while (this.#taken < this.#waiting.length) {
			const item = this.#waiting[this.#taken];
			this.#taken += 1;
			// A plain shift() of a long array costs its length; the taken part is cut off now and then instead.
			if (this.#taken > 1024) {
				this.#waiting = this.#waiting.slice(this.#taken);
				this.#taken = 0;
			}
			if (item !== undefined && item.block > this.#head) return item;
		}
		return undefined;
	}

	#pump(): void {
		while (this.#underWay < this.#options.concurrency) {
			const item = this.#next();
			if (item === undefined) break;
			this.#underWay += 1;
			void this.#deliver(item);
		}
		if (this.depth === 0) for (const resolve of this.#idle.splice(0)) resolve();
	}

	async #deliver(item: LaneItem): Promise<void> {
		const { body, signature } = item.make();
		const begun = this.#clock.monotonic();
		const answer = await this.#send(body, signature);
		this.#underWay -= 1;
		item.answered(answer, Math.round(this.#clock.monotonic() - begun));
		this.#pump();
	}
}
