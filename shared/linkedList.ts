// A linked list for values that are added and removed thousands of times a second. A Set that is
// used so keeps removed entries alive until a full garbage collection; a removed node of this list
// refers to nothing.

/** A value in a list, for {@link LinkedList.remove}. */
interface Listed<T> {
	readonly value: T;
}

interface Node<T> extends Listed<T> {
	before: Node<T> | null;
	after: Node<T> | null;
	isIn: boolean;
}

/** Values in the order in which they were added. */
export class LinkedList<T> {
	#first: Node<T> | null = null;
	#last: Node<T> | null = null;
	#size = 0;

	get size(): number {
		return this.#size;
	}

	get first(): T | undefined {
		return this.#first?.value;
	}

	/** From the first to the last. */
	*[Symbol.iterator](): Generator<T> {
		for (let node = this.#first; node !== null; node = node.after) yield node.value;
	}

	/** Adds `value` at the end. */
	add(value: T): Listed<T> {
		const node: Node<T> = { value, before: this.#last, after: null, isIn: true };
		if (this.#last === null) this.#first = node;
		else this.#last.after = node;
		this.#last = node;
		this.#size += 1;
		return node;
	}

	/** Returns false if it was removed before. */
	remove(listed: Listed<T>): boolean {
		const node = listed as Node<T>;
		if (!node.isIn) return false;
		const { before, after } = node;
		if (before === null) this.#first = after;
		else before.after = after;
		if (after === null) this.#last = before;
		else after.before = before;
		node.before = null;
		node.after = null;
		node.isIn = false;
		this.#size -= 1;
		return true;
	}

	/** Removes and returns the first value. */
	shift(): T | undefined {
		const first = this.#first;
		if (first !== null) this.remove(first);
		return first?.value;
	}
}
