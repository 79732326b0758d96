// Stores transactions in the key-value store: a submission is on disk before it is answered, and
// everything is loaded again at the next start. Contains no rules about transactions.

import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { archivedKey, hashIn, keysByTime, timeKey } from "../../shared/kv/archive.ts";
import type { DamagedEntries } from "../../shared/kv/damagedEntries.ts";
import { type Change, type KeyValueStore, prefixRange } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { mayCancelSoftly, pastOwners } from "../../shared/ownership.ts";
import {
	compacted,
	endedUnsent,
	fold,
	isRevivable,
	NOBODY,
	newRecord,
	type TransactionRecord,
} from "../domain/record.ts";
import { ARCHIVED_BY_TIME, PROBE, RECORD, REVIVABLE, SOFT, SUBMISSION } from "../domain/storeKeys.ts";
import { ownedTransaction, type PrivateTransaction } from "../domain/transaction.ts";
import type { RecordEntry } from "./records.ts";
import { decodeRecord, decodeStored, encodeRecord, encodeTransaction } from "./storedFormat.ts";

// Keys. A live transaction has a submission, written once, and a record from its first change on.
// Both are by arrival time, so that entries written together lie together on disk. A final
// transaction is archived: it has only a record, by its hash. An entry in the index by time serves
// to delete it after a week. A transaction that ended before it was sent is archived at once, as a
// compact record.

/**
 * How long archived records are kept. For seven days the same bytes can't revive a transaction that
 * their user ended.
 */
export const KEEP_ARCHIVED_MS = 7 * 24 * 3600 * 1000;
/**
 * Most archived records that a purge deletes, beyond as many as were archived since the last purge.
 */
const PURGE_LEAST = 1_000;
/** Records per commit of a purge. */
const PURGE_BATCH = 200;
/**
 * One in this many loaded submissions is hashed and its sender recovered, to check the stored
 * values.
 */
const SAMPLE_EVERY = 256;

/** The error when a read or write of the store fails. */
function storeUnavailable(): RpcError {
	return new RpcError("internal", "internal error: the store is unavailable, try again", {
		reason: "store unavailable",
	});
}

/**
 * The relay's transactions in a key-value store. Each promise resolves when the change is on disk;
 * failures are thrown as {@link storeUnavailable} and logged once. `now` is the time from
 * laterTime, in ms; it is stored as the time of archiving.
 */
export class TransactionDisk {
	readonly #kv: KeyValueStore;
	readonly #damaged: DamagedEntries;
	readonly #log: Logger;
	#failed = false;
	/** Records archived since the last purge. */
	#archived = 0;
	/** Written with the next write. */
	#later: readonly Change[] = [];

	constructor(dependencies: { kv: KeyValueStore; damaged: DamagedEntries; log: Logger }) {
		this.#kv = dependencies.kv;
		this.#damaged = dependencies.damaged;
		this.#log = dependencies.log;
	}

	/**
	 * False after a failed write until one succeeds; while it is false, each call tries a small
	 * write.
	 */
	async check(): Promise<boolean> {
		if (this.#failed) await this.#write([{ key: PROBE, value: Buffer.alloc(0) }]).catch(() => {});
		return !this.#failed;
	}

	/**
	 * Writes a new submission with its record, and in the same commit the records of the
	 * transactions that it ended. `past`: its record from an earlier submission that is not
	 * archived yet, which this one replaces. `forAll`: a cancelled one that it ends for everybody.
	 */
	insert(
		transaction: PrivateTransaction,
		record: TransactionRecord,
		ended: readonly TransactionRecord[],
		now: number,
		past: TransactionRecord | null = null,
		forAll: TransactionRecord | null = null,
	): Promise<void> {
		const { hash } = transaction.tx;
		const changes: Change[] = ended.flatMap((one) => endChanges(one, now));
		if (forAll !== null) changes.push(...endChanges({ ...forAll, endedBy: NOBODY }, now, true));
		if (past !== null) changes.push(...removal(past));
		if (mayCancelSoftly(transaction.owners))
			changes.push({ key: nonceKey(SOFT, record), value: Buffer.from(hash) });
		if (endedUnsent(record)) return this.#write([...changes, ...archiveChanges(record, now)]);
		changes.push({
			key: liveKey(SUBMISSION, record),
			value: encodeTransaction(transaction, record.block ?? 0),
		});
		// A fresh record can be rebuilt from the submission, so only one with earlier events is
		// written.
		if (record.events.length > 1) changes.push(recordChange(record));
		return this.#write(changes);
	}

	/** Writes changed records in one commit. */
	update(records: readonly TransactionRecord[], now: number): Promise<void> {
		return this.#write(
			records.flatMap((record) =>
				endedUnsent(record) ? archiveChanges(record, now) : [recordChange(record)],
			),
		);
	}

	/** Writes a cancelled record that its sender has ended for everybody. */
	endForAll(record: TransactionRecord, now: number): Promise<void> {
		return this.#write(endChanges({ ...record, endedBy: NOBODY }, now, true));
	}

	/**
	 * Writes the record of a live transaction whose owners change; `soft`: whether it allows soft
	 * cancels now.
	 */
	changeOwners(record: TransactionRecord, soft: boolean): Promise<void> {
		const index = { key: nonceKey(SOFT, record), value: Buffer.from(record.hash) };
		return this.#write(soft ? [recordChange(record), index] : [recordChange(record)]);
	}

	/**
	 * Archives final records in one commit, together with `more`. Deletes the raw bytes and keeps
	 * the record for a week.
	 */
	archive(records: readonly TransactionRecord[], now: number, more: readonly Change[] = []): Promise<void> {
		const changes = records.flatMap((record) =>
			archiveChanges({ ...record, owners: pastOwners(record.owners) }, now),
		);
		return this.#write([...changes, ...more]);
	}

	/**
	 * Writes these with the next write. A start must not need a write, since the disk may be full.
	 */
	writeLater(changes: readonly Change[]): void {
		this.#later = this.#later.concat(changes);
	}

	/** The record of an archived transaction, or null. */
	async archived(hash: string): Promise<TransactionRecord | null> {
		const bytes = await this.#get(archivedKey(hash));
		return bytes === null ? null : decodeRecord(archivedKey(hash), bytes);
	}

	/**
	 * The hash of the last transaction with this sender and nonce that requested soft cancellations,
	 * or null.
	 */
	lastSoftCancellable(from: string, nonce: bigint): Promise<string | null> {
		return this.#holder(nonceKey(SOFT, { from, nonce: nonce.toString() }));
	}

	/**
	 * The record of the archived transaction with this nonce that could be submitted again, see
	 * {@link isRevivable}; or null.
	 */
	async revivableHolder(from: string, nonce: bigint): Promise<TransactionRecord | null> {
		const hash = await this.#holder(nonceKey(REVIVABLE, { from, nonce: nonce.toString() }));
		const record = hash === null ? null : await this.archived(hash);
		return record !== null && isRevivable(record) ? record : null;
	}

	async #holder(key: string): Promise<string | null> {
		const bytes = await this.#get(key);
		return bytes === null ? null : bytes.toString("utf8");
	}

	/**
	 * All transactions that were live at the last write, each as returned by `keep`. The argument
	 * of `keep` may be a view of the bytes that were read. A transaction whose submission or record
	 * is damaged is left out.
	 */
	async *load(keep: (tx: DecodedTransaction) => DecodedTransaction = (tx) => tx): AsyncIterable<RecordEntry> {
		const records = this.#kv.range(...prefixRange(RECORD))[Symbol.asyncIterator]();
		let next = await records.next();
		let count = 0;
		for await (const [key, bytes] of this.#kv.range(...prefixRange(SUBMISSION))) {
			const isChecked = count % SAMPLE_EVERY === 0;
			count += 1;
			const stored = this.#damaged.tried(key, () => decodeStored(key, bytes, isChecked));
			if (stored === undefined) continue;
			const { submitterAddress, receivedAt, requestId, owners, block } = stored;
			const basis = { tx: keep(stored.tx), submitterAddress, receivedAt, requestId };
			// Both ranges have the same order, so one pass merges them.
			const own = RECORD + key.slice(SUBMISSION.length);
			while (!next.done && next.value[0] < own) next = await records.next();
			if (!next.done && next.value[0] === own) {
				const json = next.value[1];
				const record = this.#damaged.tried(own, () => decodeRecord(own, json, basis));
				// Without its record, it may be a transaction that its user has cancelled.
				if (record !== undefined) yield { transaction: ownedTransaction(basis, record.owners), record };
				continue;
			}
			const transaction = ownedTransaction(basis, owners);
			const record = newRecord(transaction);
			fold(record, { type: "received", at: receivedAt, block });
			yield { transaction, record };
		}
	}

	/**
	 * Deletes records that were archived more than a week before `now` (ms), oldest first: a
	 * thousand, plus as many as were archived since the last call. `isLive`: whether the
	 * transaction with a hash was submitted again and has not ended. Returns the number of deleted
	 * records.
	 */
	async purge(now: number, isLive: (hash: string) => boolean): Promise<number> {
		let left = PURGE_LEAST + this.#archived;
		this.#archived = 0;
		let purged = 0;
		while (left > 0) {
			const until = now - KEEP_ARCHIVED_MS;
			const keys = await keysByTime(this.#kv, ARCHIVED_BY_TIME, { until }, Math.min(left, PURGE_BATCH));
			if (keys.length === 0) break;
			left -= keys.length;
			const changes = await Promise.all(keys.map((key) => this.#forget(key, now, isLive)));
			purged += changes.filter((some) => some.length > 1).length;
			await this.#write(changes.flat());
		}
		return purged;
	}

	/** The changes that delete an archived record, given its entry in the index by time. */
	async #forget(key: string, now: number, isLive: (hash: string) => boolean): Promise<Change[]> {
		const hash = hashIn(key);
		const changes: Change[] = [{ key, value: null }];
		// If it was admitted again and archived later, its later entry counts.
		const record = await this.archived(hash);
		if (record === null || (record.settledAt ?? 0) > now - KEEP_ARCHIVED_MS) return changes;
		changes.push({ key: archivedKey(hash), value: null });
		// Keep the entries by nonce.
		if (isLive(hash)) return changes;
		changes.push({ key: liveKey(RECORD, record), value: null });
		for (const key of [nonceKey(SOFT, record), nonceKey(REVIVABLE, record)]) {
			if ((await this.#holder(key)) === hash) changes.push({ key, value: null });
		}
		return changes;
	}

	async #write(changes: readonly Change[]): Promise<void> {
		if (changes.length === 0) return;
		try {
			await this.#kv.write(this.#later.concat(changes));
			this.#later = [];
		} catch (thrown) {
			throw this.#fault(thrown);
		}
		if (this.#failed) this.#log.info("store can be written again");
		this.#failed = false;
		for (const { key, value } of changes)
			if (value !== null && key.startsWith(ARCHIVED_BY_TIME)) this.#archived += 1;
	}

	async #get(key: string): Promise<Buffer | null> {
		try {
			return await this.#kv.get(key);
		} catch (thrown) {
			throw this.#fault(thrown);
		}
	}

	#fault(thrown: unknown): RpcError {
		if (!this.#failed) this.#log.error("store failed", { fault: safeError(thrown) });
		this.#failed = true;
		return storeUnavailable();
	}
}

function recordChange(record: TransactionRecord): Change {
	return { key: liveKey(RECORD, record), value: encodeRecord(record, true) };
}

/**
 * Writes an ended record where it will be read: beside its submission, or in the archive. A record
 * that had ended before may be moving from one to the other now, so it is written to both.
 */
function endChanges(
	record: TransactionRecord,
	now: number,
	hadEnded = record.events.some(({ type }) => type === "expired"),
): readonly Change[] {
	if (record.settledAt !== undefined) return keepChanges(record, now);
	if (endedUnsent(record)) return archiveChanges(record, now);
	return hadEnded ? [...keepChanges(record, now), recordChange(record)] : [recordChange(record)];
}

/** The changes that archive a record: the bytes are deleted, the record is kept. */
function archiveChanges(record: TransactionRecord, now: number): Change[] {
	return [...removal(record), ...keepChanges(record, now)];
}

/** The changes that remove a live transaction. */
function removal(record: TransactionRecord): Change[] {
	return [
		{ key: liveKey(SUBMISSION, record), value: null },
		{ key: liveKey(RECORD, record), value: null },
	];
}

/** The changes that keep a record for a week from `now` (ms) on. */
function keepChanges(record: TransactionRecord, now: number): Change[] {
	const short = endedUnsent(record) ? compacted(record) : record;
	return [
		{ key: archivedKey(record.hash), value: encodeRecord({ ...short, settledAt: now }) },
		{ key: timeKey(ARCHIVED_BY_TIME, now, record.hash), value: Buffer.alloc(0) },
		...(isRevivable(record) ? [{ key: nonceKey(REVIVABLE, record), value: Buffer.from(record.hash) }] : []),
	];
}

function nonceKey(prefix: string, { from, nonce }: Pick<TransactionRecord, "from" | "nonce">): string {
	return `${prefix}${from}/${nonce}`;
}

function liveKey(
	prefix: string,
	{ receivedAt, hash }: Pick<TransactionRecord, "receivedAt" | "hash">,
): string {
	return timeKey(prefix, receivedAt, hash);
}
