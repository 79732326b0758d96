// Clients' changes to a transaction: submit, replace, cancel, join and leave. Each is on disk
// before anybody is notified, and undone if the disk fails. The caller has the turn of the sender
// and nonce. It decides whether a change is allowed, except for replacement fees and the limit on
// cancels.

import type { CarriedTransaction } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { mayCancelSoftly, type Owner } from "../../shared/ownership.ts";
import type { Broadcaster } from "../broadcast/fanout.ts";
import type { AccountState, Tip } from "../domain/chain.ts";
import { DEFAULT_PATH } from "../domain/endpoints.ts";
import type { TxEvent } from "../domain/events.ts";
import { fold, isLive, isRevivable, newRecord, type TransactionRecord } from "../domain/record.ts";
import { rejection } from "../domain/rejection.ts";
import {
	isSentAlike,
	knownOutcome,
	MAX_CANCELLED,
	type PrivateTransaction,
	type SubmitOutcome,
	withTx,
} from "../domain/transaction.ts";
import type { Disclosures } from "./disclosures.ts";
import type { TransactionDisk } from "./disk.ts";
import type { TransactionPacker } from "./packedTransaction.ts";
import type { Pool, PoolEntry } from "./pool.ts";
import type { TransactionRecords } from "./records.ts";

export interface ClientChangesDependencies {
	readonly pool: Pool;
	readonly records: TransactionRecords;
	readonly disk: TransactionDisk;
	readonly packer: TransactionPacker;
	readonly disclosures: Disclosures;
	readonly broadcaster: Pick<Broadcaster, "cancel" | "takeBack">;
	readonly tip: Tip;
	readonly clock: Clock;
	/** Time to store, in ms; see laterTime. */
	readonly timeToStore: () => number;
	/** See TransactionsDependencies. */
	readonly onChange: (sender: string, refresh: boolean) => void;
	/** Called when a transaction is on disk. */
	readonly onWritten: (seconds: number, hash: string) => void;
}

/** The changes that clients request. */
export class ClientChanges {
	readonly #dependencies: ClientChangesDependencies;

	constructor(dependencies: ClientChangesDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * The rejection of a submission from a sender that has cancelled too many transactions lately;
	 * else null.
	 */
	cancelLimitRejection(sender: string): SubmitOutcome | null {
		if (this.#dependencies.records.cancelledCount(sender) < MAX_CANCELLED) return null;
		// Starts like go-ethereum's error, which clients recognise.
		const message = `txpool is full: ${MAX_CANCELLED} transactions of this sender were cancelled recently`;
		return { outcome: "rejected", rejection: rejection("SENDER_FULL", message, { scope: "sender" }) };
	}

	/**
	 * Adds an admitted transaction, or replaces the one with its nonce if the fees allow that. It
	 * may be sent once it is on disk. `isResubmitted`: it has ended before. `unseen`: it also
	 * replaces these, which have not come here. Throws if the store fails.
	 */
	async add(
		admitted: PrivateTransaction,
		account: AccountState,
		past: { readonly isResubmitted: boolean; readonly unseen: readonly CarriedTransaction[] },
	): Promise<SubmitOutcome> {
		const { pool, packer, onChange } = this.#dependencies;
		const { hash, from, nonce } = admitted.tx;
		// Each replacement must raise the fees, but submitting and cancelling costs nothing, so it is
		// limited.
		const rejected = pool.at(from, nonce) === undefined ? this.cancelLimitRejection(from) : null;
		if (rejected !== null) return rejected;
		const transaction = withTx(admitted, packer.pack(admitted.tx, pool.anyOf(from)));
		const added = pool.add(transaction, account);
		if (added.outcome === "rejected") return { outcome: "rejected", rejection: added.rejection };
		const old = added.outcome === "replaced" ? added.old : null;
		let isWritten = false;
		try {
			isWritten = await this.#write(added.entry, old, past);
		} finally {
			if (!isWritten) {
				pool.remove(added.entry);
				this.#undoRemoval(old);
			}
			onChange(from, true);
		}
		return isWritten ? { outcome: "accepted", hash } : knownOutcome(hash);
	}

	/**
	 * Cancels a pending transaction. `byAddress`: for all addresses that submitted it, not for its
	 * sender. Removes it from the pool and the builder queues at once, so that it is not sent any
	 * more. Builders and listeners are notified once `write` has it on disk. Throws if the store
	 * fails.
	 */
	async cancel(
		entry: PoolEntry,
		byAddress: boolean,
		write = (ended: readonly TransactionRecord[]) =>
			this.#dependencies.disk.update(ended, this.#dependencies.timeToStore()),
	): Promise<void> {
		const { pool, records, broadcaster, onChange } = this.#dependencies;
		const { transaction } = entry;
		const { hash, from } = transaction.tx;
		const record = records.get(hash)?.record ?? null;
		pool.remove(entry);
		const builders = broadcaster.takeBack(transaction);
		onChange(from, false);
		try {
			await write(this.#preview(this.#cancelled(builders, byAddress), record));
		} catch (thrown) {
			this.#undoRemoval(entry);
			onChange(from, true);
			throw thrown;
		}
		// It may have been mined or have ended meanwhile.
		if (record === null || !isLive(record.stage)) return;
		// Uses the time and head after the write. The next flush overwrites the record written
		// above.
		const event = this.#cancelled(builders, byAddress);
		records.emit(hash, event);
		broadcaster.cancel(transaction, event.builders, event.block + 1);
	}

	/**
	 * Records that a transaction was cancelled that has not come here: by `address`, or by its
	 * sender for everybody. Throws if the store fails.
	 */
	cancelUnseen(carried: CarriedTransaction, address: string | null, bySender: boolean): Promise<void> {
		const { disk, timeToStore } = this.#dependencies;
		return disk.update([this.#unseenRecord(carried, address, this.#cancelled([], !bySender))], timeToStore());
	}

	/** The record of a transaction that has ended before it came: for `address`, or for all. */
	#unseenRecord(carried: CarriedTransaction, address: string | null, end: TxEvent): TransactionRecord {
		const receivedAt = this.#dependencies.clock.now();
		const { hash, from, to, nonce, gas, value } = carried;
		const record = newRecord({
			tx: {
				hash,
				from,
				to: to === "" ? null : to,
				nonce: BigInt(nonce),
				gasLimit: BigInt(gas),
				value: BigInt(value),
			},
			receivedAt,
			owners: [withdrawnOwner(address)],
		});
		fold(record, { type: "received", at: receivedAt, block: this.#head() });
		fold(record, end);
		return record;
	}

	/**
	 * The sender ends `record` for everybody; before, only addresses had ended it. Throws if the
	 * store fails.
	 */
	async cancelForAll(record: TransactionRecord): Promise<void> {
		const { records, disk, timeToStore } = this.#dependencies;
		await disk.endForAll(record, timeToStore());
		records.endForAll(record.hash);
	}

	/**
	 * Records that the self-transfer `transaction` has cancelled `earlier`, which is pending or
	 * revivable, and `unseen`, which have not come here. Null if that was already cancelled. Throws
	 * if the store fails.
	 */
	async cancelBy(
		transaction: PrivateTransaction,
		earlier: PoolEntry | TransactionRecord | null,
		unseen: readonly CarriedTransaction[],
	): Promise<void> {
		const { records, disk, timeToStore } = this.#dependencies;
		const record = newRecord(transaction);
		const event = this.#cancelled([], false);
		fold(record, { type: "received", at: transaction.receivedAt, block: event.block });
		fold(record, event);
		const insert = async (
			ended: readonly TransactionRecord[],
			forAll: TransactionRecord | null = null,
		): Promise<void> => {
			const past = records.get(record.hash)?.record ?? null;
			const others = unseen.map((one) => this.#unseenRecord(one, null, event));
			await disk.insert(transaction, record, [...ended, ...others], timeToStore(), past, forAll);
			records.addAndNotify({ transaction, record });
		};
		if (earlier !== null && "transaction" in earlier) return this.cancel(earlier, false, insert);
		if (earlier?.stage === "CANCELLED") {
			await insert([], earlier);
			records.endForAll(earlier.hash);
			return;
		}
		await insert(this.#preview(event, earlier));
		if (earlier?.stage === "EXPIRED") records.emit(earlier.hash, event);
	}

	/**
	 * Gives a live transaction other owners, of whom one has `joined` or `left`. Its terms may then
	 * be stricter. If so, it is cancelled at builders as it was sent, and sent again by the new
	 * terms. Resolves once that is on disk. Throws if the store fails.
	 */
	async changeOwners(hash: string, owners: readonly Owner[], type: "joined" | "left"): Promise<void> {
		const { pool, records, disk, broadcaster, clock, onChange } = this.#dependencies;
		const before = records.get(hash)?.transaction;
		const block = this.#head();
		const event = { type, at: clock.now(), block } as const;
		const preview = records.preview(hash, event);
		if (before === undefined || preview === null) return;
		await disk.changeOwners({ ...preview, owners }, mayCancelSoftly(owners));
		// It may have been mined or have ended meanwhile.
		const transaction = records.setOwners(hash, owners, event);
		const entry = pool.get(hash);
		if (transaction === null || entry === undefined) return;
		pool.exchange(entry, transaction);
		if (!isSentAlike(transaction, before))
			broadcaster.cancel(before, broadcaster.takeBack(before), block + 1);
		onChange(transaction.tx.from, false);
	}

	/**
	 * The hash of the last transaction with this sender and nonce that requested soft cancellations,
	 * or null.
	 */
	lastSoftCancellable(from: string, nonce: bigint): Promise<string | null> {
		return this.#dependencies.disk.lastSoftCancellable(from, nonce);
	}

	/**
	 * Another transaction with the sender and nonce of `tx` that could be submitted again, see {@link
	 * isRevivable}; or null.
	 */
	async revivableWithSameNonce({ hash, from, nonce }: DecodedTransaction): Promise<TransactionRecord | null> {
		const { records, disk } = this.#dependencies;
		const old = records.revivableAt(from, nonce) ?? (await disk.revivableHolder(from, nonce));
		if (old === null || old.hash === hash) return null;
		const now = records.get(old.hash)?.record ?? old;
		return isRevivable(now) ? now : null;
	}

	/**
	 * Writes an entry that is already in the pool. Returns false if it was mined meanwhile, so that
	 * `received` is illegal.
	 */
	async #write(
		entry: PoolEntry,
		old: PoolEntry | null,
		{ isResubmitted, unseen }: Parameters<ClientChanges["add"]>[2],
	): Promise<boolean> {
		const { pool, records, disk, disclosures, broadcaster, clock, timeToStore, onWritten } =
			this.#dependencies;
		const { transaction } = entry;
		const at = transaction.receivedAt;
		const block = this.#head();
		const [record, revivable] = await Promise.all([
			this.#recordOf(transaction, isResubmitted),
			this.revivableWithSameNonce(transaction.tx),
		]);
		if (!fold(record, { type: "received", at, block })) return false;
		const builders = old === null ? [] : broadcaster.takeBack(old.transaction);
		const oldRecord = records.get(old?.transaction.tx.hash ?? "")?.record ?? null;
		const replaced = replacedBy(transaction, at, block, builders);
		const [expired, cancelled] = revivable?.stage === "EXPIRED" ? [revivable, null] : [null, revivable];
		const ended = [...this.#preview(replaced, oldRecord), ...this.#preview(replaced, expired)];
		for (const one of unseen)
			ended.push(this.#unseenRecord(one, null, replacedBy(transaction, at, block, [])));
		const begun = clock.monotonic();
		const past = records.get(record.hash)?.record ?? null;
		await disk.insert(transaction, record, ended, timeToStore(), past, cancelled);
		onWritten((clock.monotonic() - begun) / 1000, record.hash);
		records.addAndNotify({ transaction, record });
		pool.markDurable(entry);
		const now = clock.now();
		if (expired?.stage === "EXPIRED") records.emit(expired.hash, replacedBy(transaction, now, block, []));
		if (cancelled !== null) records.endForAll(cancelled.hash);
		// If the old one was mined meanwhile, the new one is dropped when its account is refreshed.
		if (old !== null && oldRecord !== null && isLive(oldRecord.stage)) {
			records.emit(oldRecord.hash, replacedBy(transaction, now, block, builders));
			broadcaster.cancel(old.transaction, builders, block + 1);
		}
		// On this path it is disclosed to searchers whatever its simulation returns.
		if (transaction.sharing === "always") disclosures.request(transaction);
		return true;
	}

	/** A new record, with the history of the previous one if the transaction is resubmitted. */
	async #recordOf(transaction: PrivateTransaction, isResubmitted: boolean): Promise<TransactionRecord> {
		const { records, disk } = this.#dependencies;
		const { hash } = transaction.tx;
		const held = records.get(hash)?.record;
		const past = held ?? (isResubmitted ? await disk.archived(hash) : null);
		if (!past) return newRecord(transaction);
		const { events, deliveries, omitted, stage, behindHidden, exposed } = past;
		return { ...newRecord(transaction), events, deliveries, omitted, stage, behindHidden, exposed };
	}

	/** Puts an entry back into the pool after a failed write, unless it has ended meanwhile. */
	#undoRemoval(entry: PoolEntry | null): void {
		if (entry === null) return;
		const { pool, records } = this.#dependencies;
		const stage = records.get(entry.transaction.tx.hash)?.record.stage;
		if (stage !== undefined && isLive(stage)) pool.insert({ ...entry, given: null });
	}

	/**
	 * A copy of the record, if there is one, with `event` applied, to be written before listeners are
	 * notified.
	 */
	#preview(event: TxEvent, record: TransactionRecord | null): readonly TransactionRecord[] {
		if (record === null) return [];
		const preview = this.#dependencies.records.preview(record.hash, event);
		if (preview !== null) return [preview];
		// It is only in the archive, where the store writes records with a `settledAt`.
		const copy = { ...record };
		return fold(copy, event) ? [{ ...copy, settledAt: copy.settledAt ?? 0 }] : [];
	}

	#cancelled(builders: readonly string[], byAddress: boolean) {
		const event = {
			type: "cancelled",
			at: this.#dependencies.clock.now(),
			block: this.#head(),
			builders,
		} as const;
		return byAddress ? ({ ...event, byAddress } as const) : event;
	}

	#head(): number {
		return this.#dependencies.tip.head()?.number ?? 0;
	}
}

/** An owner whose request never came here. It restricts nothing. */
function withdrawnOwner(address: string | null): Owner {
	return {
		address,
		paths: [DEFAULT_PATH],
		softCancellations: false,
		refundRecipient: null,
		referrer: null,
		isHidden: false,
		builders: null,
		cancelled: true,
	};
}

/**
 * The event that `other` has replaced a transaction, `at` in ms. `builders` must forget that
 * transaction. `discreet`: searchers must not see `other`.
 */
export function replacedBy(
	other: PrivateTransaction,
	at: number,
	block: number,
	builders: readonly string[],
) {
	const discreet = other.sharing === "never";
	return { type: "replaced", at, by: other.tx.hash, discreet, block, builders } as const;
}
