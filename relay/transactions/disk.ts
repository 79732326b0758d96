// Stores transactions in the key-value store: a submission is on disk before it is answered, and everything is loaded again at
// the next start. Defines the stored format; contains no rules about transactions.

import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type Change, type KeyValueStore, prefixRange, StoreFormatError } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { mayCancelSoftly, type Owner, pastOwners, readOwner, storedOwner } from "../../shared/ownership.ts";
import {
	compacted,
	endedUnsent,
	fold,
	isUserEnd,
	newRecord,
	type TransactionRecord,
} from "../domain/record.ts";
import { ownedTransaction, type PrivateTransaction } from "../domain/transaction.ts";
import type { RecordEntry } from "./records.ts";

// Keys. A live transaction has a submission, written once, and a record from its first change on, both by the time at which it
// came: what is written together then lies together on disk. A final one is archived: it has only a record, by its hash, plus an
// entry in the index by time, through which it is deleted after a week. A transaction that ended before it was sent is archived at
// once, as a compact record. By sender and nonce one finds the last transaction with soft cancellations, and an archived one that
// expired.
const SUBMISSION = "t/";
const RECORD = "r/";
/** Where earlier versions had them, by hash. */
const [OLD_SUBMISSION, OLD_RECORD] = ["p/", "s/"];
const ARCHIVED = "e/";
const BY_TIME = "x/";
const SOFT = "n/";
const EXPIRED = "g/";
const PROBE = "m/probe";

/** How long archived records are kept: for seven days the same bytes can't revive what their user ended. */
export const KEEP_ARCHIVED_MS = 7 * 24 * 3600 * 1000;
/** Archived records that a purge deletes at most, beyond as many as were archived since the last purge. */
const PURGE_LEAST = 1_000;
/** Records per commit of a purge. */
const PURGE_BATCH = 200;
/** Submissions per commit that are moved from where earlier versions had them. */
const MOVE_BATCH = 1_000;
/** Of so many submissions that are loaded one is hashed and its sender recovered, to check what is kept with them. */
const SAMPLE_EVERY = 64;

/** The error when a read or write of the store fails. */
function storeUnavailable(): RpcError {
	return new RpcError("internal", "internal error: nothing can be stored now, try again", {
		reason: "store unavailable",
	});
}

/**
 * The relay's transactions in a key-value store. Each promise resolves when the change is on disk; failures are thrown as
 * {@link storeUnavailable} and logged once. `now` is the time from laterTime, in ms; it is stored as the time of archiving.
 */
export class TransactionDisk {
	readonly #kv: KeyValueStore;
	readonly #log: Logger;
	#failed = false;
	/** Records archived since the last purge. */
	#archived = 0;

	constructor(dependencies: { kv: KeyValueStore; log: Logger }) {
		this.#kv = dependencies.kv;
		this.#log = dependencies.log;
	}

	/** False after a failed write until one succeeds; while it is false, each call tries a small write. */
	async check(): Promise<boolean> {
		if (this.#failed) await this.#write([{ key: PROBE, value: Buffer.alloc(0) }]).catch(() => {});
		return !this.#failed;
	}

	/**
	 * Writes a new submission with its record, and in the same commit the records of the transactions that it ended. `past`: its
	 * record from an earlier submission that is not archived yet, in whose place it comes.
	 */
	insert(
		transaction: PrivateTransaction,
		record: TransactionRecord,
		ended: readonly TransactionRecord[],
		now: number,
		past: TransactionRecord | null = null,
	): Promise<void> {
		const { hash } = transaction.tx;
		const changes: Change[] = ended.flatMap((one) => endChanges(one, now));
		if (past !== null) changes.push(...removal(past));
		if (mayCancelSoftly(transaction.owners))
			changes.push({ key: nonceKey(SOFT, record), value: Buffer.from(hash) });
		if (endedUnsent(record)) return this.#write([...changes, ...archiveChanges(record, now)]);
		changes.push({
			key: liveKey(SUBMISSION, record),
			value: encodeTransaction(transaction, record.block ?? 0),
		});
		// A fresh record can be rebuilt from the submission, so only one with earlier events is written.
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

	/** Writes the record of a live transaction whose owners change; `soft`: whether it allows soft cancels now. */
	changeOwners(record: TransactionRecord, soft: boolean): Promise<void> {
		const index = { key: nonceKey(SOFT, record), value: Buffer.from(record.hash) };
		return this.#write(soft ? [recordChange(record), index] : [recordChange(record)]);
	}

	/** Archives final records in one commit: deletes the raw bytes, keeps the record for a week. */
	archive(records: readonly TransactionRecord[], now: number): Promise<void> {
		return this.#write(
			records.flatMap((record) => archiveChanges({ ...record, owners: pastOwners(record.owners) }, now)),
		);
	}

	/** The record of an archived transaction, or null. */
	async archived(hash: string): Promise<TransactionRecord | null> {
		const bytes = await this.#get(ARCHIVED + hash);
		return bytes === null ? null : decodeRecord(ARCHIVED + hash, bytes);
	}

	/** The hash of the last transaction with this sender and nonce that requested soft cancellations, or null. */
	lastSoftCancellable(from: string, nonce: bigint): Promise<string | null> {
		return this.#holder(nonceKey(SOFT, { from, nonce: nonce.toString() }));
	}

	/** The record of the archived transaction with this nonce that has expired and could be submitted again; or null. */
	async expiredHolder(from: string, nonce: bigint): Promise<TransactionRecord | null> {
		const hash = await this.#holder(nonceKey(EXPIRED, { from, nonce: nonce.toString() }));
		const record = hash === null ? null : await this.archived(hash);
		return record?.stage === "EXPIRED" ? record : null;
	}

	async #holder(key: string): Promise<string | null> {
		const bytes = await this.#get(key);
		return bytes === null ? null : bytes.toString("utf8");
	}

	/**
	 * All transactions that were live at the last write, each as `keep` returns it, which may have a view of its bytes until then.
	 * Throws StoreFormatError on a damaged entry.
	 */
	async *load(keep: (tx: DecodedTransaction) => DecodedTransaction = (tx) => tx): AsyncIterable<RecordEntry> {
		await this.#moveOld();
		const records = this.#kv.range(...prefixRange(RECORD))[Symbol.asyncIterator]();
		let next = await records.next();
		let count = 0;
		for await (const [key, bytes] of this.#kv.range(...prefixRange(SUBMISSION))) {
			const stored = decodeStored(key, bytes, count % SAMPLE_EVERY === 0);
			const { submitterAddress, receivedAt, owners, block } = stored;
			const basis = { tx: keep(stored.tx), submitterAddress, receivedAt };
			count += 1;
			// Both ranges are in one order, so they are merged in one pass.
			const own = RECORD + key.slice(SUBMISSION.length);
			while (!next.done && next.value[0] < own) next = await records.next();
			if (!next.done && next.value[0] === own) {
				const record = decodeRecord(own, next.value[1], { ...basis, owners });
				yield { transaction: ownedTransaction(basis, record.owners), record };
				continue;
			}
			const transaction = ownedTransaction(basis, owners);
			const record = newRecord(transaction);
			fold(record, { type: "received", at: receivedAt, block });
			yield { transaction, record };
		}
	}

	/** Moves live transactions to where this version has them. */
	async #moveOld(): Promise<void> {
		for (;;) {
			const rows: (readonly [string, Buffer])[] = [];
			for await (const row of this.#kv.range(...prefixRange(OLD_SUBMISSION), MOVE_BATCH)) rows.push(row);
			if (rows.length === 0) return;
			const changes = await Promise.all(
				rows.map(async ([key, bytes]): Promise<Change[]> => {
					const hash = key.slice(OLD_SUBMISSION.length);
					const at = { hash, receivedAt: envelopeOf(key, bytes).receivedAt };
					const moved = [
						{ key, value: null },
						{ key: liveKey(SUBMISSION, at), value: bytes },
					];
					const record = await this.#get(OLD_RECORD + hash);
					if (record === null) return moved;
					return [
						...moved,
						{ key: OLD_RECORD + hash, value: null },
						{ key: liveKey(RECORD, at), value: record },
					];
				}),
			);
			await this.#write(changes.flat());
		}
	}

	/**
	 * Deletes records that were archived more than a week before `now` (ms), oldest first: a thousand, plus as many as were
	 * archived since the last call. `isLive`: whether the transaction with a hash was submitted again and has not ended. Returns how
	 * many it deleted.
	 */
	async purge(now: number, isLive: (hash: string) => boolean): Promise<number> {
		let left = PURGE_LEAST + this.#archived;
		this.#archived = 0;
		let purged = 0;
		while (left > 0) {
			const keys: string[] = [];
			const range = this.#kv.range(
				BY_TIME,
				timeKey(BY_TIME, now - KEEP_ARCHIVED_MS, ""),
				Math.min(left, PURGE_BATCH),
			);
			for await (const [key] of range) keys.push(key);
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
		const hash = key.slice(key.lastIndexOf("/") + 1);
		const changes: Change[] = [{ key, value: null }];
		// If it was admitted again and archived later, its later entry counts.
		const record = await this.archived(hash);
		if (record === null || (record.settledAt ?? 0) > now - KEEP_ARCHIVED_MS) return changes;
		changes.push({ key: ARCHIVED + hash, value: null });
		// Keep the entries by nonce.
		if (isLive(hash)) return changes;
		changes.push({ key: liveKey(RECORD, record), value: null });
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
		for (const { key, value } of changes) if (value !== null && key.startsWith(BY_TIME)) this.#archived += 1;
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
	return { key: liveKey(RECORD, record), value: encodeRecord(record, true) };
}

/**
 * Writes an ended record where it will be read: beside its submission, or as archived. A record that had expired may be
 * moving from the one to the other at this moment, so it is written to both.
 */
function endChanges(record: TransactionRecord, now: number): readonly Change[] {
	if (record.settledAt !== undefined) return keepChanges(record, now);
	if (endedUnsent(record)) return archiveChanges(record, now);
	const hadExpired = record.events.some(({ type }) => type === "expired");
	return hadExpired ? [...keepChanges(record, now), recordChange(record)] : [recordChange(record)];
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
		{ key: ARCHIVED + record.hash, value: encodeRecord({ ...short, settledAt: now }) },
		{ key: timeKey(BY_TIME, now, record.hash), value: Buffer.alloc(0) },
		...(record.stage === "EXPIRED"
			? [{ key: nonceKey(EXPIRED, record), value: Buffer.from(record.hash) }]
			: []),
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

function timeKey(prefix: string, ms: number, hash: string): string {
	return `${prefix}${Math.max(0, ms).toString().padStart(15, "0")}/${hash}`;
}

/**
 * What is stored beside the raw bytes; `origin` is the address that is charged, `block` the head at the submission's arrival,
 * `from` the sender, since to recover 100,000 of them takes a start ten seconds. Earlier versions did not write `from`, and wrote
 * the only owner's options in place of `owners`.
 */
type Envelope = Pick<PrivateTransaction, "receivedAt"> & {
	readonly origin: string;
	readonly block: number;
	readonly owners: readonly object[];
	readonly from?: string;
};

/** Encodes a submission: length of the envelope (4 bytes, big endian), the envelope as JSON, the raw transaction. */
export function encodeTransaction(transaction: PrivateTransaction, block: number): Buffer {
	const { tx, owners, submitterAddress, receivedAt } = transaction;
	const { from } = tx;
	const envelope: Envelope = {
		owners: owners.map(storedOwner),
		receivedAt,
		origin: submitterAddress,
		block,
		from,
	};
	const json = JSON.stringify(envelope);
	const length = Buffer.byteLength(json);
	const bytes = Buffer.allocUnsafe(4 + length + tx.raw.length);
	bytes.writeUInt32BE(length, 0);
	bytes.write(json, 4, "utf8");
	bytes.set(tx.raw, 4 + length);
	return bytes;
}

/** A submission as it was written; `block`: the head at its arrival. */
interface StoredSubmission
	extends Pick<PrivateTransaction, "tx" | "owners" | "submitterAddress" | "receivedAt"> {
	readonly block: number;
}

/**
 * Decodes what {@link encodeTransaction} wrote; its bytes are a view of `bytes`. The hash in `key` and the sender beside the bytes are believed, unless
 * `isChecked`. Throws {@link StoreFormatError}.
 */
export function decodeStored(key: string, bytes: Buffer, isChecked: boolean): StoredSubmission {
	const envelope = envelopeOf(key, bytes);
	const raw = bytes.subarray(4 + bytes.readUInt32BE(0));
	const { block, origin, receivedAt, owners, from } = envelope;
	const hash = key.slice(key.lastIndexOf("/") + 1);
	const decoded = decodeTransaction(raw, isChecked || from === undefined ? null : { hash, from });
	if (!decoded.ok || decoded.tx.hash !== hash) throw new StoreFormatError(key);
	if (from !== undefined && decoded.tx.from !== from) throw new StoreFormatError(key);
	const read = owners === undefined ? [onlyOwner(envelope)] : owners;
	return { tx: decoded.tx, owners: readOwners(key, read), submitterAddress: origin, receivedAt, block };
}

function envelopeOf(key: string, bytes: Buffer): Envelope & OnlyOwner {
	const envelope = readable(
		key,
		() => JSON.parse(bytes.toString("utf8", 4, 4 + bytes.readUInt32BE(0))) as (Envelope & OnlyOwner) | null,
	);
	if (envelope === null) throw new StoreFormatError(key);
	return envelope;
}

/** What earlier versions kept of the only owner of a transaction. */
interface OnlyOwner {
	readonly path?: string | undefined;
	readonly softCancellations?: boolean | undefined;
	readonly refundRecipient?: string | null | undefined;
	readonly referrer?: string | null | undefined;
	readonly origin?: string | null | undefined;
}

/** The only owner as {@link storedOwner} would have written it. */
function onlyOwner({ path, softCancellations: soft, refundRecipient, referrer, origin }: OnlyOwner): object {
	return { paths: [path], soft, refundRecipient, referrer, address: origin };
}

function readOwners(key: string, stored: readonly object[]): readonly Owner[] {
	const owners = stored.map(readOwner);
	if (owners.length === 0 || owners.includes(null)) throw new StoreFormatError(key);
	return owners as readonly Owner[];
}

/** The default values of fields, which are not stored. */
const USUAL = {
	to: null,
	simulationError: null,
	ended: null,
	block: null,
	blockHash: null,
	firstBlock: null,
	shared: false,
	behindHidden: false,
	exposed: null,
	passed: false,
	backruns: 0,
	refund: "0",
	omitted: 0,
};

/**
 * A record as JSON bytes, without fields that have their default; `isBeside`: nor its hash and addresses, which are in the
 * submission beside it.
 */
export function encodeRecord(record: TransactionRecord, isBeside = false): Buffer {
	const { owners, simulationError, ended, block, blockHash, firstBlock, exposed, settledAt } = record;
	const { shared, behindHidden, passed, backruns, refund, events, deliveries, omitted } = record;
	// A literal, since filtered entries take several times as long. JSON leaves out what is undefined.
	const stored = {
		hash: isBeside ? undefined : record.hash,
		receivedAt: record.receivedAt,
		from: isBeside ? undefined : record.from,
		to: isBeside ? undefined : unless(USUAL.to, record.to),
		gas: record.gas,
		nonce: record.nonce,
		value: record.value,
		owners: owners.length === 0 ? undefined : owners.map(storedOwner),
		stage: record.stage,
		ended: unless(USUAL.ended, ended),
		shared: unless(USUAL.shared, shared),
		behindHidden: unless(USUAL.behindHidden, behindHidden),
		exposed: unless(USUAL.exposed, exposed),
		simulationError: unless(USUAL.simulationError, simulationError),
		block: unless(USUAL.block, block),
		blockHash: unless(USUAL.blockHash, blockHash),
		firstBlock: unless(USUAL.firstBlock, firstBlock),
		passed: unless(USUAL.passed, passed),
		backruns: unless(USUAL.backruns, backruns),
		refund: unless(USUAL.refund, refund),
		events: events.length === 0 ? undefined : events,
		deliveries: deliveries.length === 0 ? undefined : deliveries,
		omitted: unless(USUAL.omitted, omitted),
		settledAt,
	};
	return Buffer.from(JSON.stringify(stored), "utf8");
}

function unless<T>(usual: T, value: T): T | undefined {
	return value === usual ? undefined : value;
}

/** A record as stored: without fields that have their default. Records of earlier versions are of one owner. */
type Stored = Omit<TransactionRecord, "events" | "deliveries" | "owners" | keyof typeof USUAL> &
	Partial<Omit<TransactionRecord, "owners"> & OnlyOwner & { readonly owners: readonly object[] }>;

/**
 * Decodes what {@link encodeRecord} wrote. `beside`: the submission, with which it shares its texts, and whose owners a record of
 * an earlier version has. Throws {@link StoreFormatError}.
 */
export function decodeRecord(
	key: string,
	bytes: Buffer,
	beside?: Pick<PrivateTransaction, "tx" | "owners" | "receivedAt">,
): TransactionRecord {
	const record = readable(key, () => JSON.parse(bytes.toString("utf8")) as Stored | null);
	if (typeof record !== "object" || record === null) throw new StoreFormatError(key);
	const { events = [], deliveries = [], owners: stored, settledAt } = record;
	const { path, referrer, refundRecipient, origin } = record;
	const owners =
		stored === undefined
			? (beside?.owners ?? readOwners(key, [onlyOwner({ path, referrer, refundRecipient, origin })]))
			: readOwners(key, stored);
	// Records of earlier versions lack `builders`.
	const life = events.some(isUserEnd)
		? events.map((event) => (isUserEnd(event) ? { ...event, builders: event.builders ?? [] } : event))
		: events;
	const { hash, from, to = USUAL.to } = beside?.tx ?? record;
	// One literal, as in newRecord; what is spread first takes three times as long as to parse the JSON.
	const whole: TransactionRecord = {
		hash,
		// By which it is found.
		receivedAt: beside?.receivedAt ?? record.receivedAt,
		from,
		to,
		gas: record.gas,
		nonce: record.nonce,
		value: record.value,
		owners,
		stage: record.stage,
		ended: record.ended ?? USUAL.ended,
		shared: record.shared ?? USUAL.shared,
		behindHidden: record.behindHidden ?? USUAL.behindHidden,
		exposed: record.exposed ?? USUAL.exposed,
		simulationError: record.simulationError ?? USUAL.simulationError,
		block: record.block ?? USUAL.block,
		blockHash: record.blockHash ?? USUAL.blockHash,
		firstBlock: record.firstBlock ?? USUAL.firstBlock,
		passed: record.passed ?? USUAL.passed,
		backruns: record.backruns ?? USUAL.backruns,
		refund: record.refund ?? USUAL.refund,
		events: life,
		deliveries,
		omitted: record.omitted ?? USUAL.omitted,
	};
	return settledAt === undefined ? whole : { ...whole, settledAt };
}

function readable<T>(key: string, read: () => T): T {
	try {
		return read();
	} catch {
		throw new StoreFormatError(key);
	}
}
