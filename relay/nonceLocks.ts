// One submission or cancel at a time for each sender and nonce, so that none of them finds another one half done. Others
// go side by side.

const NOTHING = (): void => {};

/** Who has a nonce, with its sender's address in lower case. */
interface Place {
	readonly from: string;
	readonly nonce: bigint | string;
}

/** Locks by sender and nonce; a request for a lock that is held waits its turn. */
export class NonceLocks {
	/** The end of what was asked for last; never rejects. */
	readonly #ends = new Map<string, Promise<void>>();

	/** Runs `work` when all that was begun before for the same sender and nonce has ended, however that was. */
	run<T>({ from, nonce }: Place, work: () => Promise<T>): Promise<T> {
		const key = `${from} ${nonce}`;
		const running = this.#ends.get(key)?.then(work) ?? work();
		const end = running.then(NOTHING, NOTHING).then(() => {
			if (this.#ends.get(key) === end) this.#ends.delete(key);
		});
		this.#ends.set(key, end);
		return running;
	}

	/** Whether something of this sender and nonce is being changed: nothing older may be written meanwhile. */
	isHeld({ from, nonce }: Place): boolean {
		return this.#ends.has(`${from} ${nonce}`);
	}
}
