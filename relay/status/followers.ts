// Passes each event of a transaction to its followers: its event stream, and the waits for its
// receipt.

import { EventEmitter } from "node:events";
import { type Logger, safeError } from "../../shared/log.ts";
import type { TxEvent } from "../domain/events.ts";
import type { EventListener } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";

type Follower = (record: TransactionRecord, event: TxEvent) => void;

/** Passes events to the followers of a transaction; `notify` is a listener of the records. */
export class Followers {
	readonly #log: Logger;
	/** Emits under the transactions' hashes. */
	readonly #emitter = new EventEmitter().setMaxListeners(0);

	constructor(dependencies: { readonly log: Logger }) {
		this.#log = dependencies.log;
	}

	/**
	 * Calls `listener` for each future event of the transaction, after its record has changed; the
	 * transaction need not be known yet. The listener must not keep the record. Returns an
	 * unsubscribe function.
	 */
	follow(hash: string, listener: Follower): () => void {
		// An error in a follower must not affect the transaction or other followers.
		const follower: Follower = (record, event) => {
			try {
				listener(record, event);
			} catch (thrown) {
				this.#log.error("follower failed", { fault: safeError(thrown) });
			}
		};
		this.#emitter.on(hash, follower);
		return () => void this.#emitter.off(hash, follower);
	}

	readonly notify: EventListener = (record, _before, event) => {
		this.#emitter.emit(record.hash, record, event);
	};
}
