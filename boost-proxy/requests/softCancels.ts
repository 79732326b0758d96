// Soft cancels: a self-transfer with the nonce of a transaction that allows it comes in, the earlier one ends. It is
// never journalled and goes only to who holds the earlier one, in a form that is free there.

import { isSelfTransfer } from "../../shared/ethereum/selfTransfer.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { Handover, Journal, Upstream, Upstreams } from "../domain/ports.ts";
import type { RequestState } from "../domain/request.ts";
import { type Failover, unavailable } from "./failover.ts";
import { type Told, takeBack, toldBy } from "./takingBack.ts";

export interface SoftCancelsDependencies {
	readonly journal: Journal;
	readonly upstreams: Upstreams;
	readonly failover: Failover;
	readonly handover: Handover;
}

/** Recognises and carries out soft cancels. */
export class SoftCancels {
	readonly #dependencies: SoftCancelsDependencies;

	constructor(dependencies: SoftCancelsDependencies) {
		this.#dependencies = dependencies;
	}

	/** Whether `tx` is one for what the journal holds of its nonce. */
	isOne(tx: DecodedTransaction, siblings: readonly OpenEntry[]): boolean {
		return siblings.some(({ softCancellations }) => softCancellations) && isSelfTransfer(tx);
	}

	/** Takes the siblings back; throws as `takeBack` does. */
	async take(tx: DecodedTransaction, siblings: readonly OpenEntry[], state: RequestState): Promise<void> {
		const { journal } = this.#dependencies;
		const tell = (upstream: Upstream) => this.#tell(tx, siblings, upstream, state);
		try {
			await takeBack(siblings, tell, true, this.#dependencies);
		} finally {
			// The same bytes again are answered with their hash, as long as they would mean nothing or a payment.
			if (siblings.some(({ hash }) => journal.ended(hash)?.ending === "cancelled")) {
				const { hash, from, nonce } = tx;
				const { path, asker } = state;
				await journal
					.markEnded({ hash, from, nonce, path, address: asker.address, ending: "cancelled", untold: [] })
					.catch(() => {});
			}
		}
	}

	async #tell(
		tx: DecodedTransaction,
		siblings: readonly OpenEntry[],
		upstream: Upstream,
		state: RequestState,
	): Promise<Told> {
		if (upstream.breaker.isOut) return { kind: "out" };
		const { asker, trail, whole } = state;
		if (upstream.dialect?.softCancels === false) {
			return { kind: "cannot", why: unavailable("the fallback holds it and knows no cancel without cost") };
		}
		// To a fallback as the earlier one came: with the flag that makes it free.
		const place = upstream.dialect === null ? state : siblings.find((one) => one.softCancellations);
		if (place === undefined) return { kind: "out" };
		const { path, search } = place;
		const sendable = { hash: tx.hash, from: tx.from, raw: tx.raw, path, search };
		const deadlineMs = this.#dependencies.failover.leftMs(state) / 2;
		const told = toldBy(await upstream.deliver(sendable, { deadlineMs, asker, trail, whole }));
		if (told.kind === "told" || told.kind === "rejected") trail.answeredBy.add(upstream.name);
		return told;
	}
}
