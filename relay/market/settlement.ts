// For each block that holds a transaction with bids, reads back from the chain which backrun is behind it, what that
// brought, and what was owed and paid for it.

import type { Background } from "../../shared/background.ts";
import type { Clock } from "../../shared/clock.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { Refund, TxEvent } from "../domain/events.ts";
import type { EventSink, PaidBlock, PaymentReader } from "../domain/ports.ts";
import { isMined, type LifeEvent, type TransactionRecord } from "../domain/record.ts";
import { owedRefund, type RefundTerms } from "../domain/refund.ts";
import type { TransactionRecords } from "../transactions/records.ts";

export interface SettlementDependencies {
	readonly records: Pick<TransactionRecords, "entries">;
	readonly events: EventSink;
	readonly payments: PaymentReader;
	/** How a builder refunds; null for one that does not. */
	readonly termsOf: (builder: string) => RefundTerms | null;
	/** Told of what a block that holds a target came to, before the refund is told; called again where it fails. */
	readonly onOutcome: (outcome: TargetOutcome) => Promise<void>;
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}

type Bundled = Extract<TxEvent, { type: "bundled" }>;

/** One backrun that was mined behind its target. */
export interface Landed {
	readonly record: TransactionRecord;
	readonly bundled: Bundled;
	/** Names of the builders that it was sent to for this block. */
	readonly builders: readonly string[];
	/** Its place in the block. */
	readonly index: number;
	readonly from: string;
	/** Null for a creation. */
	readonly to: string | null;
	readonly recipient: string;
	/** Wei that it brought by transfers; null: the node can't tell. */
	readonly transfers: bigint | null;
	/** Wei that it brought in all; where the node can't tell, as if it had paid what was bid. */
	readonly brought: bigint;
	readonly terms: readonly RefundTerms[];
}

/** What a block came to for a target that was bid on. */
export interface TargetOutcome {
	readonly record: TransactionRecord;
	readonly block: { readonly number: number; readonly hash: string; readonly timestamp: number };
	/** Null: none of the backruns that were sent for it is in it. */
	readonly landed: Landed | null;
}

/** Reads refunds back. */
export class Settlement {
	readonly #deps: SettlementDependencies;
	/** The inclusion of each record that was looked at last. */
	readonly #settled = new WeakMap<TransactionRecord, LifeEvent>();
	/** Whether something may have to be settled that the run under way has not seen. */
	#due = false;
	#running = false;

	constructor(dependencies: SettlementDependencies) {
		this.#deps = dependencies;
	}

	/** Settles what is mined and not settled yet; what the node does not tell now is asked again with the next block. */
	run(): void {
		this.#due = true;
		if (this.#running) return;
		this.#running = true;
		this.#deps.background.run("refunds", async () => {
			// What comes meanwhile is settled behind it.
			while (this.#due) {
				this.#due = false;
				for (const [hash, records] of this.#open()) await this.#trySettle(hash, records);
			}
			this.#running = false;
		});
	}

	/** Records that are mined with a backrun and not settled, by the hash of their block. */
	#open(): ReadonlyMap<string, readonly TransactionRecord[]> {
		const byBlock = new Map<string, TransactionRecord[]>();
		for (const { record } of this.#deps.records.entries()) {
			const { blockHash } = record;
			const inclusion = openInclusion(record);
			if (blockHash === null || inclusion === null || this.#settled.get(record) === inclusion) continue;
			byBlock.set(blockHash, [...(byBlock.get(blockHash) ?? []), record]);
		}
		return byBlock;
	}

	/** One block that the node does not tell of holds up no other. */
	async #trySettle(blockHash: string, records: readonly TransactionRecord[]): Promise<void> {
		try {
			await this.#settle(blockHash, records);
		} catch (thrown) {
			this.#deps.log.warn("refunds could not be read back, trying again", {
				block: records[0]?.block ?? 0,
				fault: safeError(thrown),
			});
		}
	}

	async #settle(blockHash: string, records: readonly TransactionRecord[]): Promise<void> {
		const { payments, events, clock, onOutcome } = this.#deps;
		const block = await payments.block(blockHash);
		// Not there any more: a reorganisation is on its way.
		if (block === null) return;
		const landed: Landed[] = [];
		for (const record of records) {
			const one = await this.#landed(record, block);
			if (one !== null) landed.push(one);
			const about = { number: block.number, hash: blockHash, timestamp: block.timestamp };
			await onOutcome({ record, block: about, landed: one });
		}
		const refunds = refundsOf(block, landed);
		for (const record of records) {
			const inclusion = openInclusion(record);
			// Taken back meanwhile, or moved to another block.
			if (record.blockHash !== blockHash || inclusion === null) continue;
			this.#settled.set(record, inclusion);
			const refund = refunds.get(record);
			if (refund === undefined) continue;
			events.emit(record.hash, { type: "refunded", at: clock.now(), block: block.number, ...refund });
		}
	}

	/** The backrun that was mined behind the transaction; null where none of those that were sent was. */
	async #landed(record: TransactionRecord, block: PaidBlock): Promise<Landed | null> {
		const { payments, termsOf } = this.#deps;
		const hashes = block.transactions.map((tx) => tx.hash);
		const place = hashes.indexOf(record.hash);
		const all = bundledFor(record);
		for (const bundled of all) {
			const index = hashes.indexOf(bundled.backrun);
			const tx = block.transactions[index];
			if (place < 0 || index < place || tx === undefined) continue;
			const recipient = record.refundRecipient ?? record.from;
			const { fees, transfers } = await payments.brought(bundled.backrun, block);
			const same = all.filter(({ bundle }) => bundle === bundled.bundle);
			const builders = [...new Set(same.flatMap((one) => one.builders))];
			const terms = builders.flatMap((name) => termsOf(name) ?? []);
			const brought = fees + (transfers ?? BigInt(bundled.bid));
			const { from, to } = tx;
			return { record, bundled, builders, index, from, to, recipient, transfers, brought, terms };
		}
		return null;
	}
}

/** Its inclusion, where a backrun was sent behind it for that block of which nothing was told yet; else null. */
function openInclusion(record: TransactionRecord): LifeEvent | null {
	if (!isMined(record.stage) || bundledFor(record).length === 0) return null;
	const since = record.events.findLastIndex((event) => event.type === "included");
	const told = record.events.findLastIndex((event) => event.type === "refunded");
	return told < since ? (record.events[since] ?? null) : null;
}

/** What was sent behind it for the block that holds it, the last one first. */
function bundledFor(record: TransactionRecord): readonly Bundled[] {
	return record.events
		.filter((event): event is Bundled => event.type === "bundled" && event.block === record.block)
		.reverse();
}

/**
 * Which transfer of the coinbase is whose: each stands behind its backrun. Those of exactly the owed amount are given
 * out first, then the others in their order; a builder that pays several refunds at once pays the first of them.
 */
export function refundsOf(
	block: PaidBlock,
	landed: readonly Landed[],
): ReadonlyMap<TransactionRecord, Refund> {
	const inOrder = [...landed].sort((a, b) => a.index - b.index);
	const taken = new Set<number>();
	const paid = new Map<Landed, bigint>();
	const find = (one: Landed, fits: (value: bigint) => boolean): void => {
		const index = block.transactions.findIndex(
			(tx, i) =>
				i > one.index &&
				!taken.has(i) &&
				tx.from === block.coinbase &&
				tx.to === one.recipient &&
				fits(tx.value),
		);
		if (index < 0) return;
		taken.add(index);
		paid.set(one, block.transactions[index]?.value ?? 0n);
	};
	for (const one of inOrder) {
		find(one, (value) =>
			one.terms.some((terms) => owedRefund(one.brought, block.baseFee, terms).owed === value),
		);
	}
	for (const one of inOrder) if (!paid.has(one)) find(one, (value) => value > 0n);
	return new Map(inOrder.map((one) => [one.record, refundOf(block, one, paid.get(one) ?? 0n)]));
}

/**
 * The refund as it is told. Which of several builders made the block is not known: it is the one whose terms fit what
 * was paid, or else the one that owes the most.
 */
function refundOf(block: PaidBlock, { bundled, brought, terms, recipient }: Landed, paid: bigint): Refund {
	const owed = terms.map((one) => owedRefund(brought, block.baseFee, one));
	const fitting = owed.find((one) => one.owed === paid);
	const most = owed.reduce((high, one) => (one.owed > high.owed ? one : high), owed[0] ?? NOTHING);
	const due = fitting ?? most;
	return {
		bundle: bundled.bundle,
		backrun: bundled.backrun,
		bid: bundled.bid,
		brought: brought.toString(),
		cost: due.cost.toString(),
		owed: due.owed.toString(),
		paid: paid.toString(),
		payer: block.coinbase,
		recipient,
	};
}

const NOTHING = { cost: 0n, owed: 0n };
