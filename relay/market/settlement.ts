// For each block that contains a transaction with bids, reads from the chain which backrun is right behind it, what that brought,
// and what refund was due and paid; then updates the bidders' status and records what was paid. What a relay sent in its last
// moment is not in its store: in a block before the next one's first, a payment of exactly the owed amount counts as a refund.

import { safeError } from "../../shared/log.ts";
import { termsOf } from "../../shared/ownership.ts";
import type { BidOut } from "../auction/bidsOut.ts";
import type { BundleTable } from "../auction/bundleTable.ts";
import { paymentOf } from "../auction/payments.ts";
import { bundleHash } from "../domain/bundle.ts";
import type { Bidder } from "../domain/bundleStatus.ts";
import type { Refund, TxEvent } from "../domain/events.ts";
import { isMined, type LifeEvent, type TransactionRecord } from "../domain/record.ts";
import { isNewDearer, owedRefund, type Payout, type RefundTerms } from "../domain/refund.ts";
import type { PaidBlock } from "../inclusion/payments.ts";
import type { Auctioneer } from "./auctioneer.ts";
import type { MarketDependencies, MarketOptions } from "./dependencies.ts";
import type { FinalRound } from "./finalRounds.ts";
import type { PaymentLedger } from "./ledger.ts";

type Bundled = Extract<TxEvent, { type: "bundled" }>;

/** A backrun that was mined right behind its target. */
export interface Landed {
	readonly record: TransactionRecord;
	readonly bundled: Pick<Bundled, "bundle" | "backrun" | "bid">;
	/** Who has sent it, as far as that is known. */
	readonly bidder: Bidder;
	/** The backrun's index in the block. */
	readonly index: number;
	readonly recipient: string;
	/** Whether the recipient's account is empty before the block. */
	readonly isNew: boolean;
	/** Wei that it brought by transfers; null: the node can't trace it. */
	readonly transfers: bigint | null;
	/** Wei that it brought in all; if the node can't trace it, the bid is taken for the transfers. */
	readonly brought: bigint;
	readonly terms: readonly RefundTerms[];
}

/** The market's parts that it works with. */
interface SettlementParts {
	readonly table: BundleTable;
	readonly auctioneer: Auctioneer;
	readonly ledger: PaymentLedger;
	/** Names of the builders that pay refunds. */
	readonly refundingBuilders: readonly string[];
}

/** Reads refunds from the chain. */
export class Settlement {
	readonly #options: Pick<MarketOptions, "refundPercent">;
	readonly #deps: Pick<
		MarketDependencies,
		"transactions" | "payments" | "sender" | "forkAt" | "tip" | "background" | "log"
	>;
	readonly #parts: SettlementParts;
	/** The next block when it first ran: the last one for which a relay before this one can have sent bundles. */
	#firstBlock: number | null = null;
	/** The inclusion event of each record that was settled last. */
	readonly #settled = new WeakMap<TransactionRecord, LifeEvent>();
	/** Whether there may be something to settle that the current run has not seen. */
	#due = false;
	#running = false;

	constructor(options: MarketOptions, dependencies: MarketDependencies, parts: SettlementParts) {
		this.#options = options;
		this.#deps = dependencies;
		this.#parts = parts;
	}

	/** Settles what is mined and not settled yet; blocks that the node can't read now are retried with the next block. */
	run(): void {
		this.#firstBlock ??= this.#deps.tip.next()?.number ?? null;
		this.#due = true;
		if (this.#running) return;
		this.#running = true;
		this.#deps.background.run("refunds", async () => {
			// Repeats if it was called again meanwhile.
			while (this.#due) {
				this.#due = false;
				for (const [hash, records] of this.#open()) await this.#trySettle(hash, records);
			}
			this.#running = false;
		});
	}

	/** Unsettled records that were mined and for which a backrun was sent, by the hash of their block. */
	#open(): ReadonlyMap<string, readonly TransactionRecord[]> {
		const byBlock = new Map<string, TransactionRecord[]>();
		for (const { record } of this.#deps.transactions.records.entries()) {
			const { blockHash } = record;
			if (blockHash === null) continue;
			const inclusion = this.#openInclusion(record, blockHash);
			if (inclusion === null || this.#settled.get(record) === inclusion) continue;
			byBlock.set(blockHash, [...(byBlock.get(blockHash) ?? []), record]);
		}
		return byBlock;
	}

	/** A block that the node can't read does not prevent others from being settled. */
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

	async #settle(blockHash: string, targets: readonly TransactionRecord[]): Promise<void> {
		const { payments, transactions, forkAt } = this.#deps;
		const block = await payments.block(blockHash);
		// Gone: a reorganisation is about to be reported.
		if (block === null) return;
		const landed: Landed[] = [];
		for (const record of targets) {
			const one = await this.#landed(record, block, blockHash);
			if (one !== null) landed.push(one);
			await this.#report(record, { number: block.number, hash: blockHash }, one);
		}
		const refunds = refundsOf({ ...block, fork: forkAt(block.timestamp) }, landed);
		for (const record of targets) {
			const inclusion = this.#openInclusion(record, blockHash);
			// Reorganised meanwhile.
			if (record.blockHash !== blockHash || inclusion === null) continue;
			this.#settled.set(record, inclusion);
			const refund = refunds.get(record);
			if (refund !== undefined) transactions.refunded(record.hash, block.number, refund);
		}
	}

	/** The record's inclusion event if a backrun was sent for that block and no refund is recorded since; else null. */
	#openInclusion(record: TransactionRecord, blockHash: string): LifeEvent | null {
		if (!isMined(record.stage)) return null;
		const round = this.#parts.auctioneer.rounds.find(record.hash, blockHash);
		const isKnown = (round?.behind ?? []).length > 0 || bundledFor(record).length > 0;
		if (!isKnown && !this.#mayBeUnwritten(record)) return null;
		const since = record.events.findLastIndex((event) => event.type === "included");
		const told = record.events.findLastIndex((event) => event.type === "refunded");
		return told < since ? (record.events[since] ?? null) : null;
	}

	/**
	 * Whether a relay before this one may have sent a bundle for the record's block without having written that down. Not
	 * bounded by a number of blocks: several relays may have been killed in turn before one found the transaction.
	 */
	#mayBeUnwritten({ block }: TransactionRecord): boolean {
		return this.#firstBlock !== null && block !== null && block <= this.#firstBlock;
	}

	/** The bid that is judged. Others may have brought the same backrun: a proven one goes first, then one that still has a place. */
	#out(round: FinalRound | null): BidOut | null {
		const { behind, sent } = round ?? { behind: [], sent: [] };
		const isPlaced = ({ backrun, bidder: { owner } }: BidOut) =>
			sent.some((bid) => bid.owner === owner && bid.backrun.hash === backrun);
		const isProven = ({ bidder }: BidOut) => this.#parts.ledger.provenUpTo(bidder) > 0n;
		return behind.find(isProven) ?? behind.find(isPlaced) ?? behind.at(-1) ?? null;
	}

	/** The backrun right behind the transaction, if its bundle was out for that block, or must have been; else null. */
	async #landed(record: TransactionRecord, block: PaidBlock, blockHash: string): Promise<Landed | null> {
		const { payments, sender } = this.#deps;
		const place = block.transactions.findIndex((tx) => tx.hash === record.hash);
		const index = place + 1;
		const tx = place < 0 ? undefined : block.transactions[index];
		if (tx === undefined) return null;
		const out = this.#out(this.#parts.auctioneer.rounds.find(record.hash, blockHash));
		// After a restart only the events are left, which do not list all where there were many.
		const all = out === null ? bundledFor(record).filter(({ backrun }) => backrun === tx.hash) : [];
		const known = out === null ? all.at(-1) : bundledAs(out);
		if (known === undefined && !this.#mayBeUnwritten(record)) return null;
		const recipient = known?.recipient ?? termsOf(record.owners).refundRecipient ?? record.from;
		const isPaid = block.transactions.some(
			({ from, to, value }, i) => i > index && from === block.coinbase && to === recipient && value > 0n,
		);
		if (known === undefined && !isPaid) return null;
		const { fees, transfers } = await payments.brought(tx.hash, block);
		const told = out === null ? all.flatMap((one) => one.builders) : out.builders;
		const builders = new Set(known === undefined ? this.#parts.refundingBuilders : told);
		const bundled = known ?? {
			bundle: bundleHash([record.hash, tx.hash]),
			...{ backrun: tx.hash, bid: String(transfers ?? 0n) },
		};
		const terms = [...builders].flatMap((name) => sender.terms(name, this.#options.refundPercent) ?? []);
		const brought = fees + (transfers ?? BigInt(bundled.bid));
		const isNew = await this.#isNew(recipient, record.from, block);
		// Who had sent it before a restart is no longer known.
		const bidder = out?.bidder ?? { owner: null, client: null, sender: tx.from };
		const landed = { record, bundled, bidder, index, recipient, isNew, transfers, brought, terms };
		if (known !== undefined) return landed;
		const refund = refundsOf({ ...block, fork: this.#deps.forkAt(block.timestamp) }, [landed]).get(record);
		return refund !== undefined && refund.paid !== "0" && refund.paid === refund.owed ? landed : null;
	}

	/** Read only where it changes what a refund costs; a sender has paid for its transaction, so its account is there. */
	async #isNew(recipient: string, sender: string, { number, timestamp }: PaidBlock): Promise<boolean> {
		const { forkAt, payments } = this.#deps;
		return isNewDearer(forkAt(timestamp)) && recipient !== sender && payments.isEmpty(recipient, number - 1);
	}

	/**
	 * Updates the status of the bids on a target in a block, and records what the one behind it has paid. Resolves when that is on
	 * disk. Repeating it adds nothing.
	 */
	async #report(
		record: TransactionRecord,
		block: { readonly number: number; readonly hash: string },
		landed: Landed | null,
	): Promise<void> {
		if (landed === null) return;
		const { table, auctioneer, ledger } = this.#parts;
		const { transfers, bundled, bidder } = landed;
		const round = auctioneer.rounds.find(record.hash, block.hash);
		const won = round?.landed.filter(({ backrun }) => backrun.hash === bundled.backrun) ?? [];
		const payment = paymentOf(bundled.bundle, bidder, BigInt(bundled.bid), transfers);
		const fresh = await ledger.record(block, [payment]);
		for (const one of won) table.change(one.record, block.number, { paid: transfers });
		const winner = { backrun: bundled.backrun, paid: transfers };
		for (const one of round?.lost ?? []) {
			const isDearer = round?.sent.includes(one) && transfers !== null && transfers < one.value;
			table.change(one.record, block.number, { winner, ...(isDearer ? { reason: "notChosen" } : {}) });
		}
		if (fresh.length > 0) auctioneer.paymentsChanged();
	}
}

/** The backruns that were sent for the record's block, the last one first. */
function bundledFor(record: TransactionRecord): readonly Bundled[] {
	return record.events
		.filter((event): event is Bundled => event.type === "bundled" && event.block === record.block)
		.reverse();
}

/** A bid that was out, as the event says it. */
function bundledAs({ bundle, backrun, bid, recipient }: BidOut) {
	return { bundle, backrun, bid: bid.toString(), recipient };
}

/**
 * Assigns the coinbase's transfers to backruns before them in the block: first those of exactly the due amount, and of these
 * and of the others those right behind a backrun before those further on, or whoever names another's recipient would be given
 * the other's refund. One transfer that covers several refunds counts for the first of them.
 */
export function refundsOf(
	block: PaidBlock & Pick<Payout, "fork">,
	landed: readonly Landed[],
): ReadonlyMap<TransactionRecord, Refund> {
	const inOrder = [...landed].sort((a, b) => a.index - b.index);
	const taken = new Set<number>();
	const paid = new Map<Landed, bigint>();
	const isDue = (one: Landed, value: bigint) => duesOf(block, one).some(({ owed }) => owed === value);
	for (const isExact of [true, false]) {
		for (const within of [1, block.transactions.length]) {
			for (const one of inOrder) {
				if (paid.has(one)) continue;
				const index = block.transactions.findIndex(
					(tx, i) =>
						i > one.index &&
						i <= one.index + within &&
						!taken.has(i) &&
						tx.from === block.coinbase &&
						tx.to === one.recipient &&
						(isExact ? isDue(one, tx.value) : tx.value > 0n),
				);
				if (index < 0) continue;
				taken.add(index);
				paid.set(one, block.transactions[index]?.value ?? 0n);
			}
		}
	}
	return new Map(inOrder.map((one) => [one.record, refundOf(block, one, paid.get(one) ?? 0n)]));
}

/**
 * The refund to record. It is unknown which of several builders made the block: the one whose terms match the payment is
 * assumed, or else the one that owes the most.
 */
function refundOf(block: PaidBlock & Pick<Payout, "fork">, landed: Landed, paid: bigint): Refund {
	const { bundled, brought, terms, recipient } = landed;
	const dues = duesOf(block, landed);
	const fitting = dues.find((one) => one.owed === paid);
	const likely = dues.slice(0, terms.length);
	const most = likely.reduce((high, one) => (one.owed > high.owed ? one : high), likely[0] ?? NOTHING);
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

/** What each builder owes; and then what each would if the block itself had made the recipient's account before, or emptied it. */
function duesOf(block: PaidBlock & Pick<Payout, "fork">, { brought, terms, isNew }: Landed) {
	return [isNew, !isNew].flatMap((now) =>
		terms.map((one) => owedRefund(brought, one, { ...block, isNew: now })),
	);
}

const NOTHING = { cost: 0n, owed: 0n };
