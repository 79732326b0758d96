// A queue of values, first in, first out, that can also give back its newest: both in constant time. It has no bound
// of its own; its owner keeps one.

/** Places at the front that are left empty before the rest is moved up. */
const MAX_GAP = 1024;

/** A first-in-first-out queue. */
export class Fifo<T> {
	#items: (T | undefined)[] = [];
	#front = 0;

	get length(): number {
		return this.#items.length - this.#front;
	}

	push(item: T): void {
		this.#items.push(item);
	}

	/** Takes out the oldest. */
	shift(): T | undefined {
		if (this.length === 0) return undefined;
		const item = this.#items[this.#front];
		this.#items[this.#front] = undefined;
		this.#front += 1;
		if (this.#front > MAX_GAP && this.#front * 2 > this.#items.length) this.#moveUp();
		return item;
	}

	/** Takes out the newest. */
	pop(): T | undefined {
		return this.length === 0 ? undefined : this.#items.pop();
	}

	/** Takes out all that `matches`, oldest first; the others keep their order. */
	remove(matches: (item: T) => boolean): T[] {
		const removed: T[] = [];
		const kept: T[] = [];
		for (const item of this.#items.slice(this.#front) as T[]) (matches(item) ? removed : kept).push(item);
		this.#items = kept;
		this.#front = 0;
		return removed;
	}

	#moveUp(): void {
		this.#items = this.#items.slice(this.#front);
		this.#front = 0;
	}
}
