// The stored format of a transaction: a submission is an envelope with the raw bytes, and a record
// is JSON. Rejects damaged entries.

import { decodeTransaction } from "../../shared/ethereum/transaction.ts";
import { enveloped, hashIn, openEnvelope } from "../../shared/kv/archive.ts";
import { StoreFormatError } from "../../shared/kv/port.ts";
import { type Owner, readOwner, storedOwner } from "../../shared/ownership.ts";
import { NOBODY, type TransactionRecord } from "../domain/record.ts";
import type { PrivateTransaction } from "../domain/transaction.ts";

/**
 * The fields stored beside the raw bytes. `origin` is the address that is charged, `block` the head
 * at the submission's arrival. `from` is the sender: recovering 100,000 senders would delay a start
 * by ten seconds.
 */
type Envelope = Pick<PrivateTransaction, "receivedAt"> & {
	readonly origin: string;
	readonly block: number;
	readonly owners: readonly object[];
	readonly from: string;
	readonly request?: string | undefined;
};

/** Encodes a submission. */
export function encodeTransaction(transaction: PrivateTransaction, block: number): Buffer {
	const { tx, owners, submitterAddress, receivedAt } = transaction;
	const { from } = tx;
	const envelope: Envelope = {
		owners: owners.map(storedOwner),
		receivedAt,
		origin: submitterAddress,
		block,
		from,
		request: transaction.requestId ?? undefined,
	};
	return enveloped(envelope, tx.raw);
}

/** A submission as it was written; `block`: the head at its arrival. */
interface StoredSubmission
	extends Pick<PrivateTransaction, "tx" | "owners" | "submitterAddress" | "receivedAt" | "requestId"> {
	readonly block: number;
}

/**
 * Decodes the output of {@link encodeTransaction}; the transaction's bytes are a view of `bytes`.
 * The hash in `key` and the stored sender are trusted unless `isChecked`. Throws {@link
 * StoreFormatError}.
 */
export function decodeStored(key: string, bytes: Buffer, isChecked: boolean): StoredSubmission {
	const { known, raw } = readable(key, () => openEnvelope(bytes));
	const envelope = known as Envelope | null;
	if (envelope?.from === undefined) throw new StoreFormatError(key);
	const { block, origin, receivedAt, owners = [], from, request: requestId = null } = envelope;
	const hash = hashIn(key);
	const decoded = decodeTransaction(raw, isChecked ? null : { hash, from });
	if (!decoded.ok || decoded.tx.hash !== hash || decoded.tx.from !== from) throw new StoreFormatError(key);
	return {
		tx: decoded.tx,
		owners: readOwners(key, owners),
		submitterAddress: origin,
		receivedAt,
		requestId,
		block,
	};
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
	seenAt: null,
	passed: false,
	backruns: 0,
	refund: "0",
	omitted: 0,
};

/**
 * A record as JSON bytes, without fields that have their default. `isBeside`: also without its hash
 * and addresses, which are in the submission beside it.
 */
export function encodeRecord(record: TransactionRecord, isBeside = false): Buffer {
	const {
		owners,
		endedBy,
		simulationError,
		ended,
		block,
		blockHash,
		firstBlock,
		exposed,
		seenAt,
		settledAt,
	} = record;
	const { shared, behindHidden, passed, backruns, refund, events, deliveries, omitted } = record;
	// A literal, since filtering entries takes several times as long. JSON leaves out undefined
	// fields.
	const stored = {
		hash: isBeside ? undefined : record.hash,
		receivedAt: record.receivedAt,
		from: isBeside ? undefined : record.from,
		to: isBeside ? undefined : unless(USUAL.to, record.to),
		gas: record.gas,
		nonce: record.nonce,
		value: record.value,
		owners: owners.map(storedOwner),
		endedBy: endedBy.length === 0 ? undefined : endedBy,
		stage: record.stage,
		ended: unless(USUAL.ended, ended),
		shared: unless(USUAL.shared, shared),
		behindHidden: unless(USUAL.behindHidden, behindHidden),
		exposed: unless(USUAL.exposed, exposed),
		seenAt: unless(USUAL.seenAt, seenAt),
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

/** A record as stored: without fields that have their default. */
type Stored = Omit<TransactionRecord, "events" | "deliveries" | "owners" | "endedBy" | keyof typeof USUAL> &
	Partial<Omit<TransactionRecord, "owners"> & { readonly owners: readonly object[] }>;

/**
 * Decodes the output of {@link encodeRecord}. `beside`: the submission, whose strings the record
 * reuses. Throws {@link StoreFormatError}.
 */
export function decodeRecord(
	key: string,
	bytes: Buffer,
	beside?: Pick<PrivateTransaction, "tx" | "receivedAt">,
): TransactionRecord {
	const record = readable(key, () => JSON.parse(bytes.toString("utf8")) as Stored | null);
	if (typeof record !== "object" || record === null) throw new StoreFormatError(key);
	const { events = [], deliveries = [], owners = [], settledAt } = record;
	const { hash, from, to = USUAL.to } = beside?.tx ?? record;
	// One literal, as in newRecord. Spreading first takes three times as long as parsing the JSON.
	const whole: TransactionRecord = {
		hash,
		// The record's key contains it.
		receivedAt: beside?.receivedAt ?? record.receivedAt,
		from,
		to,
		gas: record.gas,
		nonce: record.nonce,
		value: record.value,
		owners: readOwners(key, owners),
		endedBy: record.endedBy ?? NOBODY,
		stage: record.stage,
		ended: record.ended ?? USUAL.ended,
		shared: record.shared ?? USUAL.shared,
		behindHidden: record.behindHidden ?? USUAL.behindHidden,
		exposed: record.exposed ?? USUAL.exposed,
		seenAt: record.seenAt ?? USUAL.seenAt,
		simulationError: record.simulationError ?? USUAL.simulationError,
		block: record.block ?? USUAL.block,
		blockHash: record.blockHash ?? USUAL.blockHash,
		firstBlock: record.firstBlock ?? USUAL.firstBlock,
		passed: record.passed ?? USUAL.passed,
		backruns: record.backruns ?? USUAL.backruns,
		refund: record.refund ?? USUAL.refund,
		events,
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
