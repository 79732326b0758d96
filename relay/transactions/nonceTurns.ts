// Runs clients' requests with one sender and nonce one at a time, in the order of arrival.

/** A sender (lower-case address) and nonce. */
export interface SenderNonce {
	readonly from: string;
	readonly nonce: bigint | string;
}

/** The map key of a sender's nonce. */
export function senderNonceKey({ from, nonce }: SenderNonce): string {
	return `${from} ${nonce}`;
}

/** The turns of each sender and nonce. */
export class NonceTurns {
	/** The last job by sender and nonce; the promises never reject. */
	readonly #queues = new Map<string, Promise<void>>();

	/** Runs `work` exclusively for a sender and nonce, in the order of the calls. */
	exclusively<T>(at: SenderNonce, work: () => Promise<T>): Promise<T> {
		const key = senderNonceKey(at);
		const running = this.#queues.get(key)?.then(work) ?? work();
		const forget = () => {
			if (this.#queues.get(key) === end) this.#queues.delete(key);
		};
		const end: Promise<void> = running.then(forget, forget);
		this.#queues.set(key, end);
		return running;
	}

	/**
	 * Whether work on this sender and nonce is running: an older state must not be written meanwhile.
	 */
	isBusy(at: SenderNonce): boolean {
		return this.#queues.has(senderNonceKey(at));
	}
}
