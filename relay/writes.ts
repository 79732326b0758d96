// Submissions whose write is under way, so that others can wait for one to end.

import type { SubmitOutcome } from "./domain/submission.ts";

/** Writes by the transaction's hash. */
export class Writes {
	readonly #byHash = new Map<string, Promise<SubmitOutcome>>();

	/** The write of `hash`, or undefined. */
	get(hash: string): Promise<SubmitOutcome> | undefined {
		return this.#byHash.get(hash);
	}

	/** Remembers a write until it ends; answers a promise like it. */
	track(hash: string, write: Promise<SubmitOutcome>): Promise<SubmitOutcome> {
		const tracked = write.finally(() => {
			if (this.#byHash.get(hash) === tracked) this.#byHash.delete(hash);
		});
		this.#byHash.set(hash, tracked);
		return tracked;
	}

	/** Resolves when no write of `hash` is under way, however it ended. */
	async ended(hash: string): Promise<void> {
		await this.#byHash.get(hash)?.catch(() => {});
	}
}
