// What a change of the canonical chain means for the transactions: which of them are in blocks that came, or went. Called by the block loop; of builders it only takes things back.

import { type Clock, pause } from "../shared/clock.ts";
import { clientOf } from "../shared/http/callContext.ts";
import type { ChainUpdate } from "./domain/chain.ts";
import { policyOf } from "./domain/endpoints.ts";
import type { DeliveryAnswer } from "./domain/events.ts";
import type { Accounts, Broadcaster, InclusionReader } from "./domain/ports.ts";
import { buildersWith, isLive, isMined, isUserEnd, type LifeEvent, type UserEnd } from "./domain/record.ts";
import type { Pool } from "./transactions/pool.ts";
import type { RecordEntry, TransactionRecords } from "./transactions/records.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** How many blocks a mined or ended transaction is watched for: a builder may have mined it, a block may go. */
export const WATCH_BLOCKS = 64;
/** How often, and after how many ms, receipts that should be there are asked for again before the head is worked off. */
const RECEIPT_TRIES = 3;
const RECEIPT_RETRY_MS = 500;

/** Answers by which a builder shows that it was told. */
const WAS_TOLD: ReadonlySet<DeliveryAnswer> = new Set(["accepted", "rejected"]);

export interface ChainChangesDependencies {
	readonly transactions: Transactions;
	readonly pool: Pool;
	readonly records: TransactionRecords;
	readonly accounts: Accounts;
	readonly inclusions: InclusionReader;
	readonly broadcaster: Broadcaster;
	readonly clock: Clock;
}

/** Keeps records and pool in step with the chain. */
export class ChainChanges {
	readonly #deps: ChainChangesDependencies;
	/** Transactions that stand in a block of the chain while the node has no receipt for them yet, with its number. */
	readonly #awaited = new Map<string, number>();

	constructor(dependencies: ChainChangesDependencies) {
		this.#deps = dependencies;
	}

	/**
	 * What was in blocks that are no longer in the chain is what it was before; what was dropped is looked at by
	 * {@link reconsider}. May be called again for one update.
	 */
	takeBack({ head, reverted, gap }: ChainUpdate): void {
		const { transactions, pool, records } = this.#deps;
		const ancestor = Math.min(head.number, ...reverted.map((block) => block.number - 1));
		if (reverted.length > 0 || gap) pool.rewind(ancestor);
		if (reverted.length === 0) return;
		for (const [hash, block] of this.#awaited) if (block > ancestor) this.#giveUp(hash);
		for (const block of reverted) {
			for (const { hash } of block.transactions) {
				const entry = records.get(hash);
				if (entry === undefined || !isMined(entry.record.stage)) continue;
				if (entry.record.blockHash === block.hash) transactions.reorged(entry, block.number);
			}
		}
	}

	/**
	 * Takes down where ours among the blocks' transactions were mined; after a gap, all of ours. Throws UpstreamError
	 * where the node does not tell.
	 */
	async include(update: ChainUpdate, signal: AbortSignal): Promise<void> {
		const { transactions, records, inclusions, clock } = this.#deps;
		const head = update.head.number;
		const standing = new Map(this.#awaited);
		for (const block of update.applied) {
			for (const { hash } of block.transactions) if (records.get(hash)) standing.set(hash, block.number);
		}
		const hashes = update.gap
			? [...records.entries()].map(({ record }) => record.hash)
			: [...standing.keys()];
		let found = await inclusions.inclusions(hashes, head);
		const isNew = (i: number) => !this.#awaited.has(hashes[i] ?? "");
		for (let left = RECEIPT_TRIES; left > 0 && !update.gap; left--) {
			// A node without a receipt for what stands in the block is behind with it, or has just given up the block.
			if (!found.some((at, i) => at === null && isNew(i))) break;
			await pause(clock, RECEIPT_RETRY_MS, signal);
			found = await inclusions.inclusions(hashes, head);
		}
		hashes.forEach((hash, i) => {
			const entry = records.get(hash);
			const at = found[i];
			if (entry === undefined || at) this.#awaited.delete(hash);
			if (entry === undefined) return;
			if (at) transactions.included(entry, at);
			else if (!update.gap) this.#await(hash, standing.get(hash) ?? head, head);
			// Found nowhere, though it was mined as far as we knew: its block is gone.
			else if (isMined(entry.record.stage)) transactions.reorged(entry, entry.record.block ?? 0);
		});
	}

	/**
	 * What was dropped for a nonce that is free again is pending again: after a gap or a reorganisation, when the accounts
	 * are those of the new head. Throws UpstreamError.
	 */
	async reconsider(): Promise<void> {
		const { transactions, records, accounts } = this.#deps;
		for (const entry of [...records.entries()]) {
			const { record, transaction } = entry;
			if (record.stage !== "DROPPED") continue;
			const account = await accounts.get(transaction.tx.from, clientOf(transaction.origin));
			if (account.nonce > transaction.tx.nonce || record.stage !== "DROPPED") continue;
			transactions.reorged(entry, record.block ?? 0);
		}
	}

	/** It stands in a block: nothing is sent or ended until the receipt tells how it went. */
	#await(hash: string, block: number, head: number): void {
		if (block + WATCH_BLOCKS <= head) this.#giveUp(hash);
		else {
			this.#awaited.set(hash, block);
			this.#deps.transactions.withhold(hash);
		}
	}

	/** No receipt will come. */
	#giveUp(hash: string): void {
		const { transactions, records } = this.#deps;
		const entry = records.get(hash);
		if (this.#awaited.delete(hash) && entry !== undefined) transactions.revive(entry);
	}

	/**
	 * Tells builders again to forget a transaction that has ended, where none of them answered: it could not be reached,
	 * or, `anew` (at the first head), the process ended before. A private transaction stays with them, a bundle until the
	 * block after `head`.
	 */
	cancelAgain({ record, transaction }: RecordEntry, head: number, anew: boolean): void {
		const { broadcaster } = this.#deps;
		if (isLive(record.stage) || isMined(record.stage)) return;
		const last = record.events.findLast(isEnd);
		if (last === undefined) return;
		// One that had expired before its user ended it was with nobody then, unless they could not be told.
		const isBare = last.type !== "expired" && last.builders.length === 0;
		const end = (isBare ? record.events.findLast(isExpiry) : undefined) ?? last;
		const isPrivate = policyOf(transaction.path).form === "private";
		if (!isPrivate && (end.type === "expired" || end.block < head)) return;
		const builders =
			end.type === "expired"
				? [...buildersWith(record, () => broadcaster.eligible(transaction))]
				: end.builders;
		const answers = record.deliveries.filter(
			({ kind, at, backrun }) => kind === "cancel" && backrun !== true && at >= end.at,
		);
		const unnotified = builders.filter((name) => {
			const own = answers.filter(({ builder }) => builder === name);
			// Without any answer it is on its way, unless the process has just begun.
			return own.length === 0 ? anew : own.every(({ answer }) => !WAS_TOLD.has(answer));
		});
		if (unnotified.length > 0) broadcaster.cancel(transaction, unnotified, head + 1);
	}
}

type Expiry = Extract<LifeEvent, { type: "expired" }>;

function isExpiry(event: LifeEvent): event is Expiry {
	return event.type === "expired";
}

/** Whether by this event a transaction ended that a builder may have. */
function isEnd(event: LifeEvent): event is UserEnd | Expiry {
	return isUserEnd(event) || isExpiry(event);
}
