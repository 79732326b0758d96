// What a change of the canonical chain means for the transactions: it keeps ledger and pool in step with the blocks that
// came and went. Called by the block loop; of builders it only takes things back.

import { type Clock, pause } from "../shared/clock.ts";
import { clientOf } from "../shared/http/callContext.ts";
import type { ChainUpdate, Inclusion } from "./domain/chain.ts";
import { policyOf } from "./domain/endpoints.ts";
import type { DeliveryAnswer } from "./domain/events.ts";
import { isLive, isMined } from "./domain/lifecycle.ts";
import type { Accounts, Broadcaster, InclusionReader } from "./domain/ports.ts";
import { isUserEnd, type LifeEvent, type UserEnd } from "./domain/record.ts";
import { replacedBy } from "./endings.ts";
import type { NonceLocks } from "./nonceLocks.ts";
import type { Pool } from "./pool/pool.ts";
import type { Ledger, LedgerEntry } from "./status/ledger.ts";

/** How many blocks a mined or ended transaction is watched for: a builder may have mined it, a block may go. */
export const WATCH_BLOCKS = 64;
/** How often, and after how many ms, receipts that should be there are asked for again before the head is worked off. */
const RECEIPT_TRIES = 3;
const RECEIPT_RETRY_MS = 500;

/** Answers by which a builder shows that it was told. */
const WAS_TOLD: ReadonlySet<DeliveryAnswer> = new Set(["accepted", "rejected"]);

export interface ChainChangesDependencies {
	readonly pool: Pool;
	readonly ledger: Ledger;
	readonly locks: Pick<NonceLocks, "isHeld">;
	readonly accounts: Accounts;
	readonly inclusions: InclusionReader;
	readonly broadcaster: Broadcaster;
	readonly clock: Clock;
}

/** Keeps ledger and pool in step with the chain. */
export class ChainChanges {
	readonly #deps: ChainChangesDependencies;
	/** Transactions that stand in a block of the chain while the node has no receipt for them yet, with its number. */
	readonly #awaited = new Map<string, number>();

	constructor(dependencies: ChainChangesDependencies) {
		this.#deps = dependencies;
	}

	/** Takes up what was live when the process last ran; before the first head. */
	restore(entry: LedgerEntry): void {
		this.#deps.ledger.open(entry);
		if (isLive(entry.record.stage)) this.#revive(entry, true);
	}

	/**
	 * What was in blocks that are no longer in the chain is what it was before; what was dropped is looked at by
	 * {@link reconsider}. May be called again for one update.
	 */
	takeBack({ head, reverted, gap }: ChainUpdate): void {
		const { pool, ledger, clock } = this.#deps;
		const ancestor = Math.min(head.number, ...reverted.map((block) => block.number - 1));
		if (reverted.length > 0 || gap) pool.rewind(ancestor);
		if (reverted.length === 0) return;
		for (const [hash, block] of this.#awaited) if (block > ancestor) this.#awaited.delete(hash);
		for (const block of reverted) {
			for (const { hash } of block.transactions) {
				const entry = ledger.get(hash);
				if (entry === undefined || !isMined(entry.record.stage)) continue;
				if (entry.record.blockHash !== block.hash) continue;
				ledger.emit(hash, { type: "reorged", at: clock.now(), block: block.number });
				if (isLive(entry.record.stage)) this.#revive(entry);
			}
		}
	}

	/**
	 * Takes down where ours among the blocks' transactions were mined; after a gap, all of ours. Throws UpstreamError
	 * where the node does not tell.
	 */
	async include(update: ChainUpdate, signal: AbortSignal): Promise<void> {
		const { ledger, inclusions, clock } = this.#deps;
		const head = update.head.number;
		const standing = new Map(this.#awaited);
		for (const block of update.applied) {
			for (const { hash } of block.transactions) if (ledger.get(hash)) standing.set(hash, block.number);
		}
		const hashes = update.gap ? [...ledger.entries()].map(({ record }) => record.hash) : [...standing.keys()];
		let found = await inclusions.inclusions(hashes, head);
		const isNew = (i: number) => !this.#awaited.has(hashes[i] ?? "");
		for (let left = RECEIPT_TRIES; left > 0 && !update.gap; left--) {
			// A node without a receipt for what stands in the block is behind with it, or has just given up the block.
			if (!found.some((at, i) => at === null && isNew(i))) break;
			await pause(clock, RECEIPT_RETRY_MS, signal);
			found = await inclusions.inclusions(hashes, head);
		}
		hashes.forEach((hash, i) => {
			const entry = ledger.get(hash);
			const at = found[i];
			if (entry === undefined) this.#awaited.delete(hash);
			else if (at) this.#mined(entry, at);
			else if (update.gap) this.#missing(entry);
			else this.#owe(hash, standing.get(hash) ?? head, head);
		});
	}

	/**
	 * What was dropped for a nonce that is free again is pending again: after a gap or a reorganisation, when the accounts
	 * are those of the new head. Throws UpstreamError.
	 */
	async reconsider(): Promise<void> {
		const { ledger, accounts, clock } = this.#deps;
		for (const entry of [...ledger.entries()]) {
			const { record, transaction } = entry;
			if (record.stage !== "DROPPED") continue;
			const account = await accounts.get(transaction.tx.from, clientOf(transaction.origin));
			if (account.nonce > transaction.tx.nonce || record.stage !== "DROPPED") continue;
			ledger.emit(record.hash, { type: "reorged", at: clock.now(), block: record.block ?? 0 });
			this.#revive(entry);
		}
	}

	/**
	 * The rule that all else keeps, seen to once a block: what is pending is in the pool, or its place is taken. Answers
	 * whether it had to be seen to.
	 */
	heal(entry: LedgerEntry): boolean {
		const { pool, locks } = this.#deps;
		const { hash, stage } = entry.record;
		if (!isLive(stage) || pool.get(hash) !== undefined || this.#awaited.has(hash)) return false;
		// It is being cancelled or replaced: what does that says so when it is done.
		if (locks.isHeld(entry.record)) return false;
		this.#revive(entry);
		return true;
	}

	/** It stands in a block: nothing is sent or ended until the receipt tells how it went. */
	#owe(hash: string, block: number, head: number): void {
		const { pool } = this.#deps;
		const pooled = pool.get(hash);
		if (pooled?.durable === true) pool.remove(pooled);
		if (block + WATCH_BLOCKS > head) this.#awaited.set(hash, block);
		else this.#awaited.delete(hash);
	}

	#mined(entry: LedgerEntry, at: Inclusion): void {
		const { pool, ledger, clock } = this.#deps;
		const { record } = entry;
		const pooled = pool.get(at.hash);
		// It is being admitted anew: the look behind its write finds that it was mined.
		if (pooled?.durable === false) return;
		if (pooled !== undefined) pool.remove(pooled);
		const { from, nonce } = entry.transaction.tx;
		pool.use(from, nonce, at.block);
		this.#awaited.delete(at.hash);
		if (isMined(record.stage)) {
			if (record.blockHash === at.blockHash) return;
			// It moved to another block while nobody looked.
			ledger.emit(at.hash, { type: "reorged", at: clock.now(), block: record.block ?? at.block });
		}
		const { hash, ...place } = at;
		ledger.emit(hash, { type: "included", at: clock.now(), ...place });
	}

	/** Found nowhere after a gap, though it was mined as far as we knew: its block is gone. */
	#missing(entry: LedgerEntry): void {
		const { ledger, clock } = this.#deps;
		const { record } = entry;
		if (!isMined(record.stage)) return;
		ledger.emit(record.hash, { type: "reorged", at: clock.now(), block: record.block ?? 0 });
		if (isLive(record.stage)) this.#revive(entry);
	}

	/** Back into the pool. Where its place is taken, it was replaced. */
	#revive(entry: LedgerEntry, restored = false): void {
		const { pool, ledger, broadcaster, clock } = this.#deps;
		const { transaction, record } = entry;
		const { from, nonce } = transaction.tx;
		const sentTo = this.#sentTo(entry, restored);
		if (pool.insert({ transaction, durable: true, outFor: null, outTo: new Set(), sentTo }, nonce, 0)) return;
		const other = pool.at(from, nonce)?.transaction;
		if (other === undefined || other.tx.hash === record.hash) return;
		const block = record.block ?? 0;
		const builders = [...sentTo];
		ledger.emit(record.hash, replacedBy(other, { at: clock.now(), block, builders }));
		broadcaster.cancel(transaction, builders, block + 1);
	}

	/**
	 * The builders that have had it, as far as it is known: what happened in the last moments before a restart may not have
	 * been written, not even that it went out.
	 */
	#sentTo({ transaction, record }: LedgerEntry, restored = false): ReadonlySet<string> {
		const sent = record.deliveries.filter(({ kind, answer }) => kind !== "cancel" && answer !== "unsent");
		const mayBeOut = restored && record.stage !== "QUEUED";
		const wasOut = mayBeOut || record.events.some(({ type }) => type === "broadcast");
		if (record.deliveries.every(({ kind }) => kind === "cancel") && wasOut)
			return new Set(this.#deps.broadcaster.eligible(transaction));
		return new Set(sent.map(({ builder }) => builder));
	}

	/**
	 * Tells builders again to forget a transaction that has ended, where none of them answered: it could not be reached,
	 * or, `anew` (at the first head), the process ended before. A private transaction stays with them, a bundle until the
	 * block after `head`.
	 */
	cancelAgain({ record, transaction }: LedgerEntry, head: number, anew: boolean): void {
		if (isLive(record.stage) || isMined(record.stage)) return;
		const last = record.events.findLast(isEnd);
		if (last === undefined) return;
		// One that had expired before its user ended it was with nobody then, unless they could not be told.
		const isBare = last.type !== "expired" && last.builders.length === 0;
		const end = (isBare ? record.events.findLast(isExpiry) : undefined) ?? last;
		const isPrivate = policyOf(transaction.path).form === "private";
		if (!isPrivate && (end.type === "expired" || end.block < head)) return;
		const builders = end.type === "expired" ? [...this.#sentTo({ record, transaction })] : end.builders;
		const answers = record.deliveries.filter(
			({ kind, at, backrun }) => kind === "cancel" && backrun !== true && at >= end.at,
		);
		const unnotified = builders.filter((name) => {
			const own = answers.filter(({ builder }) => builder === name);
			// Without any answer it is on its way, unless the process has just begun.
			return own.length === 0 ? anew : own.every(({ answer }) => !WAS_TOLD.has(answer));
		});
		if (unnotified.length > 0) this.#deps.broadcaster.cancel(transaction, unnotified, head + 1);
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
