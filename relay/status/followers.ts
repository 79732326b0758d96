// Routes events to those who follow their transaction. It keeps nothing of a transaction.

import { type Logger, safeError } from "../../shared/log.ts";
import type { TxEvent } from "../domain/events.ts";
import type { Following } from "../domain/ports.ts";
import type { TransactionRecord } from "../domain/record.ts";

type Follower = (record: TransactionRecord, event: TxEvent) => void;

/** Followers by hash. */
export class Followers implements Following {
	readonly #log: Logger;
	readonly #byHash = new Map<string, Set<Follower>>();

	constructor(dependencies: { readonly log: Logger }) {
		this.#log = dependencies.log;
	}

	follow(hash: string, listener: Follower): () => void {
		// A function of its own: one that follows twice is told twice, and ends one of them at a time.
		const follower: Follower = (record, event) => listener(record, event);
		const others = this.#byHash.get(hash);
		if (others === undefined) this.#byHash.set(hash, new Set([follower]));
		else others.add(follower);
		return () => {
			const left = this.#byHash.get(hash);
			left?.delete(follower);
			if (left?.size === 0) this.#byHash.delete(hash);
		};
	}

	/** To be told of every event. A follower's fault is its own: what happened must not fail for it. */
	tell(record: TransactionRecord, event: TxEvent): void {
		const followers = this.#byHash.get(record.hash);
		if (followers === undefined) return;
		for (const follower of [...followers]) {
			try {
				follower(record, event);
			} catch (thrown) {
				this.#log.error("a follower failed", { fault: safeError(thrown) });
			}
		}
	}
}
