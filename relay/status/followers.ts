// Passes each event of a transaction to those that follow it: its event stream, and who waits for its receipt.

import { EventEmitter } from "node:events";
import { type Logger, safeError } from "../../shared/log.ts";
import type { EventListener, Following } from "../domain/ports.ts";

/** Passes events to the followers of a transaction; `notify` is a listener of the records. */
export class Followers implements Following {
	readonly #log: Logger;
	/** Emits under the transactions' hashes. */
	readonly #emitter = new EventEmitter().setMaxListeners(0);

	constructor(dependencies: { readonly log: Logger }) {
		this.#log = dependencies.log;
	}

	follow: Following["follow"] = (hash, listener) => {
		// An error in a follower must not affect the transaction or other followers.
		const follower: typeof listener = (record, event) => {
			try {
				listener(record, event);
			} catch (thrown) {
				this.#log.error("a follower failed", { fault: safeError(thrown) });
			}
		};
		this.#emitter.on(hash, follower);
		return () => void this.#emitter.off(hash, follower);
	};

	readonly notify: EventListener = (record, _before, event) => {
		this.#emitter.emit(record.hash, record, event);
	};
}
