// How transactions and records lie in the key-value store: pure functions between them and bytes.

import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { isSubmissionPath, type SubmissionPath } from "../domain/endpoints.ts";
import { isUserEnd, type TransactionRecord } from "../domain/record.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";

/** What is kept beside the raw bytes. */
interface Envelope {
	readonly path: SubmissionPath;
	readonly softCancellations: boolean;
	readonly refundRecipient: string | null;
	readonly referrer: string | null;
	readonly origin: string;
	readonly receivedAt: number;
	/** The head at its arrival. */
	readonly block: number;
}

/** A stored value that is not what was written: the store is damaged, or another program's. */
export class StoreFormatError extends Error {
	readonly code = "STORE_FORMAT";
	constructor(key: string) {
		super(`the store's entry ${key} can't be read`);
		this.name = "StoreFormatError";
	}
}

/** Length of the envelope (4 bytes, big endian), the envelope as JSON, the raw transaction. */
export function encodeTransaction(transaction: PrivateTransaction, block: number): Buffer {
	const { path, softCancellations, refundRecipient, referrer, origin, receivedAt, tx } = transaction;
	const envelope: Envelope = {
		path,
		softCancellations,
		refundRecipient,
		referrer,
		origin,
		receivedAt,
		block,
	};
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

/** What is left out of a record where it is so: most fields of most records. */
const USUAL = {
	...{ to: null, origin: null, referrer: null, refundRecipient: null, simulationError: null },
	...{ ended: null, block: null, blockHash: null, firstBlock: null },
	...{ shared: false, behindHidden: false, passed: false },
	...{ backruns: 0, refund: "0", omitted: 0 },
};

/** A record as JSON bytes. */
export function encodeRecord(record: TransactionRecord): Buffer {
	const usual: Readonly<Record<string, unknown>> = USUAL;
	const fields = Object.entries(record).filter(
		([name, value]) => value !== usual[name] && !(Array.isArray(value) && value.length === 0),
	);
	return Buffer.from(JSON.stringify(Object.fromEntries(fields)), "utf8");
}

/** A record without what is left out. */
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
