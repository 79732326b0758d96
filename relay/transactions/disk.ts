// The durable record of transactions: what was submitted is on disk before it is answered, and all of it is there again at the
// next start. How they lie in the key-value store is decided here; about a transaction nothing is.

import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type Change, type KeyValueStore, prefixRange, StoreFormatError } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { isSubmissionPath } from "../domain/endpoints.ts";
import {
	compacted,
	endedUnsent,
	fold,
	isUserEnd,
	newRecord,
	type TransactionRecord,
	USUAL,
} from "../domain/record.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";
import type { RecordEntry } from "./records.ts";

// Keys. A live transaction has a submission, written once, and a record from its first change on; a settled one
// has a record alone, and an entry in the index by time, from which it is forgotten after a week. One that ended before
// it was sent is settled as soon as it ends, as a compact record. The last one of each sender and nonce that was
// submitted with soft cancellations is found by these, and so is a settled one that expired.
const SUBMISSION = "p/";
const RECORD = "s/";
const SETTLED = "e/";
const BY_TIME = "x/";
const SOFT = "n/";
const EXPIRED = "g/";
const PROBE = "m/probe";

/** How long settled records are kept: what its user ended is not revived by the same bytes for seven days. */
export const KEEP_SETTLED_MS = 7 * 24 * 3600 * 1000;
/** Settled records that a purge looks at, beside as many as were settled since the last one. */
const PURGE_LEAST = 1_000;
/** Of these, in one commit at most. */
const PURGE_PART = 200;

/** Answered where the store does not take or tell what it must: nothing is kept then. */
function storeUnavailable(): RpcError {
	return new RpcError("internal", "internal error: nothing can be stored now, try again", {
		reason: "store unavailable",
	});
}

/**
 * The relay's transactions on a key-value store. Each promise resolves when the change is on disk; what fails is thrown as
 * {@link storeUnavailable}, and told once. `now`: ms, as laterTime tells it; what ended before it was sent is settled then.
 */
export class TransactionDisk {
	readonly #kv: KeyValueStore;
	readonly #log: Logger;
	#failed = false;
	/** Records that were settled since the last purge. */
	#settled = 0;

	constructor(dependencies: { kv: KeyValueStore; log: Logger }) {
		this.#kv = dependencies.kv;
		this.#log = dependencies.log;
	}

	/** False from a failed write until one succeeds; where nothing else is written, a small one is tried here. */
	async check(): Promise<boolean> {
		if (this.#failed) await this.#write([{ key: PROBE, value: Buffer.alloc(0) }]).catch(() => {});
		return !this.#failed;
	}

	/** A new submission with its record, and in the same commit the records of those that it ended, settled or not. */
	insert(
		transaction: PrivateTransaction,
		record: TransactionRecord,
		ended: readonly TransactionRecord[],
		now: number,
	): Promise<void> {
		const { hash } = transaction.tx;
		const changes: Change[] = ended.flatMap((one) => endChanges(one, now));
		if (transaction.softCancellations)
			changes.push({ key: nonceKey(SOFT, record), value: Buffer.from(hash) });
		if (endedUnsent(record)) return this.#write([...changes, ...settled(record, now)]);
		changes.push({ key: SUBMISSION + hash, value: encodeTransaction(transaction, record.block ?? 0) });
		// A fresh record can be made again from the submission; only one with a past is written.
		if (record.events.length > 1) changes.push(recordChange(record));
		return this.#write(changes);
	}

	/** Changed records, in one commit. */
	update(records: readonly TransactionRecord[], now: number): Promise<void> {
		return this.#write(
			records.flatMap((record) => (endedUnsent(record) ? settled(record, now) : [recordChange(record)])),
		);
	}

	/** Final, in one commit: the raw bytes are forgotten, the record is kept for a week. */
	settle(records: readonly TransactionRecord[], now: number): Promise<void> {
		return this.#write(records.flatMap((record) => settled({ ...record, origin: null }, now)));
	}

	/** The record of a settled transaction, or null. */
	async settled(hash: string): Promise<TransactionRecord | null> {
		const bytes = await this.#get(SETTLED + hash);
		return bytes === null ? null : decodeRecord(SETTLED + hash, bytes);
	}

	/** Hash of the last one with this sender and nonce that was submitted with soft cancellations, or null. */
	softHolder(from: string, nonce: bigint): Promise<string | null> {
		return this.#holder(nonceKey(SOFT, { from, nonce: nonce.toString() }));
	}

	/** The record of the settled one that has expired, and whose bytes could bring it back; or null. */
	async expiredHolder(from: string, nonce: bigint): Promise<TransactionRecord | null> {
		const hash = await this.#holder(nonceKey(EXPIRED, { from, nonce: nonce.toString() }));
		const record = hash === null ? null : await this.settled(hash);
		return record?.stage === "EXPIRED" ? record : null;
	}

	async #holder(key: string): Promise<string | null> {
		const bytes = await this.#get(key);
		return bytes === null ? null : bytes.toString("utf8");
	}

	/** Everything that was live when it was last written. Throws StoreFormatError on a damaged entry. */
	async *load(): AsyncIterable<RecordEntry> {
		const records = this.#kv.range(...prefixRange(RECORD))[Symbol.asyncIterator]();
		let next = await records.next();
		for await (const [key, bytes] of this.#kv.range(...prefixRange(SUBMISSION))) {
			const { transaction, block } = decodeStored(key, bytes);
			// Both are in the order of their hashes: no entry is asked for by itself.
			const own = RECORD + key.slice(SUBMISSION.length);
			while (!next.done && next.value[0] < own) next = await records.next();
			if (!next.done && next.value[0] === own) {
				yield { transaction, record: decodeRecord(own, next.value[1]) };
				continue;
			}
			const record = newRecord(transaction);
			fold(record, { type: "received", at: transaction.receivedAt, block });
			yield { transaction, record };
		}
	}

	/**
	 * Forgets records that were settled more than a week before `now` (ms), the oldest first: a thousand, and as many as
	 * were settled since the last call. Answers how many it forgot.
	 */
	async purge(now: number): Promise<number> {
		let left = PURGE_LEAST + this.#settled;
		this.#settled = 0;
		let purged = 0;
		while (left > 0) {
			const keys: string[] = [];
			const range = this.#kv.range(BY_TIME, timeKey(now - KEEP_SETTLED_MS, ""), Math.min(left, PURGE_PART));
			for await (const [key] of range) keys.push(key);
			if (keys.length === 0) break;
			left -= keys.length;
			const changes = await Promise.all(keys.map((key) => this.#forget(key, now)));
			purged += changes.filter((some) => some.length > 1).length;
			await this.#write(changes.flat());
		}
		return purged;
	}

	/** What forgets a settled record by its entry in the index by time. */
	async #forget(key: string, now: number): Promise<Change[]> {
		const hash = key.slice(key.lastIndexOf("/") + 1);
		const changes: Change[] = [{ key, value: null }];
		// One that was admitted anew and settled again has a later entry too, which then counts.
		const record = await this.settled(hash);
		if (record === null || (record.settledAt ?? 0) > now - KEEP_SETTLED_MS) return changes;
		changes.push({ key: SETTLED + hash, value: null });
		// It has come again: what is found by its nonce is this one.
		if ((await this.#get(SUBMISSION + hash)) !== null) return changes;
		changes.push({ key: RECORD + hash, value: null });
		for (const key of [nonceKey(SOFT, record), nonceKey(EXPIRED, record)]) {
			if ((await this.#holder(key)) === hash) changes.push({ key, value: null });
		}
		return changes;
	}

	async #write(changes: readonly Change[]): Promise<void> {
		if (changes.length === 0) return;
		try {
			await this.#kv.write(changes);
		} catch (thrown) {
			throw this.#fault(thrown);
		}
		if (this.#failed) this.#log.info("the store is written again");
		this.#failed = false;
		for (const { key, value } of changes) if (value !== null && key.startsWith(BY_TIME)) this.#settled += 1;
	}

	async #get(key: string): Promise<Buffer | null> {
		try {
			return await this.#kv.get(key);
		} catch (thrown) {
			throw this.#fault(thrown);
		}
	}

	#fault(thrown: unknown): RpcError {
		if (!this.#failed) this.#log.error("the store fails", { fault: safeError(thrown) });
		this.#failed = true;
		return storeUnavailable();
	}
}

function recordChange(record: TransactionRecord): Change {
	return { key: RECORD + record.hash, value: encodeRecord(record) };
}

/**
 * What has ended is written where it is read from: beside its submission, or settled. One that had expired may be on its
 * way from the one to the other: to both.
 */
function endChanges(record: TransactionRecord, now: number): readonly Change[] {
	if (record.settledAt !== undefined) return kept(record, now);
	if (endedUnsent(record)) return settled(record, now);
	const hadExpired = record.events.some(({ type }) => type === "expired");
	return hadExpired ? [...kept(record, now), recordChange(record)] : [recordChange(record)];
}

/** Final: the bytes are forgotten, the record is kept. */
function settled(record: TransactionRecord, now: number): Change[] {
	return [
		{ key: SUBMISSION + record.hash, value: null },
		{ key: RECORD + record.hash, value: null },
		...kept(record, now),
	];
}

/** Kept for a week from `now` (ms) on. */
function kept(record: TransactionRecord, now: number): Change[] {
	const short = endedUnsent(record) ? compacted(record) : record;
	return [
		{ key: SETTLED + record.hash, value: encodeRecord({ ...short, settledAt: now }) },
		{ key: timeKey(now, record.hash), value: Buffer.alloc(0) },
		...(record.stage === "EXPIRED"
			? [{ key: nonceKey(EXPIRED, record), value: Buffer.from(record.hash) }]
			: []),
	];
}

function nonceKey(prefix: string, { from, nonce }: Pick<TransactionRecord, "from" | "nonce">): string {
	return `${prefix}${from}/${nonce}`;
}

function timeKey(ms: number, hash: string): string {
	return `${BY_TIME}${Math.max(0, ms).toString().padStart(15, "0")}/${hash}`;
}

/** What is kept beside the raw bytes; `block` is the head at its arrival. */
type Envelope = Omit<PrivateTransaction, "tx"> & { readonly block: number };

/** Length of the envelope (4 bytes, big endian), the envelope as JSON, the raw transaction. */
export function encodeTransaction({ tx, ...rest }: PrivateTransaction, block: number): Buffer {
	const envelope: Envelope = { ...rest, block };
	const json = JSON.stringify(envelope);
	const length = Buffer.byteLength(json);
	const bytes = Buffer.allocUnsafe(4 + length + tx.raw.length);
	bytes.writeUInt32BE(length, 0);
	bytes.write(json, 4, "utf8");
	bytes.set(tx.raw, 4 + length);
	return bytes;
}

/** The reverse of {@link encodeTransaction}. Throws {@link StoreFormatError}. */
export function decodeStored(key: string, bytes: Buffer): { transaction: PrivateTransaction; block: number } {
	const { envelope, raw } = readable(key, () => {
		const length = bytes.readUInt32BE(0);
		const envelope = JSON.parse(bytes.toString("utf8", 4, 4 + length)) as Envelope;
		// A copy: the engine's buffer may be its own memory.
		return { envelope, raw: Buffer.from(bytes.subarray(4 + length)) };
	});
	const decoded = decodeTransaction(raw);
	if (!decoded.ok || envelope === null || !isSubmissionPath(envelope.path)) throw new StoreFormatError(key);
	const { block, path, ...rest } = envelope;
	return { transaction: { path, tx: decoded.tx, ...rest }, block };
}

/** A record as JSON bytes, without what is usual. */
export function encodeRecord(record: TransactionRecord): Buffer {
	const usual: Readonly<Record<string, unknown>> = USUAL;
	const fields = Object.entries(record).filter(
		([name, value]) => value !== usual[name] && !(Array.isArray(value) && value.length === 0),
	);
	return Buffer.from(JSON.stringify(Object.fromEntries(fields)), "utf8");
}

/** A record without what is usual. */
type Stored = Omit<TransactionRecord, "events" | "deliveries" | keyof typeof USUAL> &
	Partial<TransactionRecord>;

/** The reverse of {@link encodeRecord}. Throws {@link StoreFormatError}. */
export function decodeRecord(key: string, bytes: Buffer): TransactionRecord {
	const record = readable(key, () => JSON.parse(bytes.toString("utf8")) as Stored | null);
	if (typeof record !== "object" || record === null) throw new StoreFormatError(key);
	const { events = [], deliveries = [], ...rest } = record;
	// Those of earlier versions lack the builders.
	const whole = events.map((event) =>
		isUserEnd(event) ? { ...event, builders: event.builders ?? [] } : event,
	);
	return { ...USUAL, ...rest, events: whole, deliveries };
}

function readable<T>(key: string, read: () => T): T {
	try {
		return read();
	} catch {
		throw new StoreFormatError(key);
	}
}
