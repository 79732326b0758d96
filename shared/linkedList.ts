// A list for what comes and goes thousands of times a second. A Set leaves tables behind that point to their successors, so
// that one which grew old keeps all that came later alive until the whole heap is collected; what leaves this list points
// to nothing.

/** A value in a list, for {@link LinkedList.remove}. */
export interface Listed<T> {
	readonly value: T;
}

interface Node<T> extends Listed<T> {
	before: Node<T> | null;
	after: Node<T> | null;
	isIn: boolean;
}

/** Values in the order in which they came. */
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

	/** Adds `value` behind all others. */
	add(value: T): Listed<T> {
		const node: Node<T> = { value, before: this.#last, after: null, isIn: true };
		if (this.#last === null) this.#first = node;
		else this.#last.after = node;
		this.#last = node;
		this.#size += 1;
		return node;
	}

	/** Takes it out of this list; false where it is there no more. */
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

	/** Takes out the first; undefined where there is none. */
	shift(): T | undefined {
		const first = this.#first;
		if (first !== null) this.remove(first);
		return first?.value;
	}
}
