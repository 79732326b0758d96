// Settles each block that contains a transaction with bids. Reads from the chain which backrun is
// right behind it, what that brought, and what refund was due and paid. Then notifies the bidders,
// and records the amount that the bid left at its builder. A relay may stop before it stores the
// last bundles that it sent. Up to the block that was next at the start, a payment of exactly the
// owed amount therefore counts as a refund.

import { safeError } from "../../shared/log.ts";
import { termsOf } from "../../shared/ownership.ts";
import type { BidOut } from "../auction/bidsOut.ts";
import { type BundleTable, statusIn } from "../auction/bundleTable.ts";
import { bundleHash } from "../domain/bundle.ts";
import { bidderKey } from "../domain/bundleStatus.ts";
import { IN_TIME_MS } from "../domain/conduct.ts";
import type { Refund, TxEvent } from "../domain/events.ts";
import { isMined, type LifeEvent, type TransactionRecord } from "../domain/record.ts";
import { isNewAccountCostlier, owedRefund, type Payout, type RefundTerms } from "../domain/refund.ts";
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
	/** The backrun's index in the block. */
	readonly index: number;
	readonly recipient: string;
	/** Whether the recipient's account is empty before the block. */
	readonly isNew: boolean;
	/**
	 * Wei that it brought, by priority fees and transfers. If the node can't trace it, the bid is
	 * used for the transfers.
	 */
	readonly brought: bigint;
	/** Refund terms of the builders that may have made the block. */
	readonly terms: readonly RefundTerms[];
}

/**
 * Wei that a transaction brought to the coinbase. `transfers` is null if the node can't trace it.
 */
type Gain = Awaited<ReturnType<MarketDependencies["payments"]["brought"]>>;

/** A landed bid whose bidder is known, and the wei that it paid by transfers. */
interface Left {
	readonly landed: Landed;
	readonly out: BidOut;
	readonly transfers: bigint;
}

type Due = ReturnType<typeof owedRefund>;

/** The market classes that it depends on. */
interface SettlementMarket {
	readonly table: BundleTable;
	readonly auctioneer: Auctioneer;
	readonly ledger: PaymentLedger;
	/** Names of the builders that pay refunds. */
	readonly refundingBuilders: readonly string[];
}

/** Reads refunds from the chain. */
export class Settlement {
	readonly #options: Pick<MarketOptions, "refundPercent">;
	readonly #dependencies: Pick<
		MarketDependencies,
		"transactions" | "payments" | "sender" | "forkAt" | "tip" | "background" | "onLanded" | "log"
	>;
	readonly #market: SettlementMarket;
	/**
	 * The next block at the first run. It is the last one for which an earlier relay can have sent
	 * bundles.
	 */
	#firstBlock: number | null = null;
	/** The inclusion event that was settled last for each record. */
	readonly #settled = new WeakMap<TransactionRecord, LifeEvent>();
	/** Whether there may be something to settle that the current run has not seen. */
	#due = false;
	#running = false;

	constructor(options: MarketOptions, dependencies: MarketDependencies, market: SettlementMarket) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#market = market;
	}

	/**
	 * Settles mined transactions that are not settled yet. The next block retries blocks that the
	 * node can't read now.
	 */
	run(): void {
		this.#firstBlock ??= this.#dependencies.tip.next()?.number ?? null;
		this.#due = true;
		if (this.#running) return;
		this.#running = true;
		this.#dependencies.background.run("refunds", async () => {
			// Repeats if it was called again meanwhile.
			while (this.#due) {
				this.#due = false;
				for (const [hash, records] of this.#open()) await this.#trySettle(hash, records);
			}
			this.#running = false;
		});
	}

	/**
	 * Whether the refund in the record's block is known: it was read, or none can be due. An archived
	 * record is no longer read.
	 */
	isSettled(record: TransactionRecord): boolean {
		const { blockHash } = record;
		if (blockHash === null || record.settledAt !== undefined) return true;
		const inclusion = this.#openInclusion(record, blockHash);
		return inclusion === null || this.#settled.get(record) === inclusion;
	}

	/**
	 * Unsettled records that were mined and for which a backrun was sent, by the hash of their block.
	 */
	#open(): ReadonlyMap<string, readonly TransactionRecord[]> {
		const byBlock = new Map<string, TransactionRecord[]>();
		for (const { record } of this.#dependencies.transactions.records.entries()) {
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
			this.#dependencies.log.warn("could not read refunds, retrying", {
				block: records[0]?.block ?? 0,
				fault: safeError(thrown),
			});
		}
	}

	async #settle(blockHash: string, targets: readonly TransactionRecord[]): Promise<void> {
		const { payments, transactions, forkAt, onLanded } = this.#dependencies;
		const block = await payments.block(blockHash);
		// The block is gone: a reorganisation is about to be reported.
		if (block === null) return;
		const landed: Landed[] = [];
		const left = new Map<TransactionRecord, Left>();
		/** Whether the transaction behind each one pays the coinbase by transfers. */
		const paying = new Map<TransactionRecord, boolean>();
		for (const record of targets) {
			const place = block.transactions.findIndex((tx) => tx.hash === record.hash);
			const behind = place < 0 ? undefined : block.transactions[place + 1];
			const round = this.#market.auctioneer.rounds.find(record.hash, blockHash);
			const gain = await this.#gain(record, round, block, behind?.hash);
			for (const one of round?.records ?? [])
				this.#market.table.change(one, block.number, { paid: gain?.transfers ?? null });
			paying.set(record, (gain?.transfers ?? 0n) > 0n);
			if (gain === null || behind === undefined) continue;
			const one = await this.#landed(record, { block, index: place + 1, out: round?.behind ?? null, gain });
			if (one === null) continue;
			landed.push(one);
			if (round?.behind && gain.transfers !== null)
				left.set(record, { landed: one, out: round.behind, transfers: gain.transfers });
		}
		const refunds = refundsOf({ ...block, fork: forkAt(block.timestamp) }, landed);
		await this.#record({ ...block, hash: blockHash }, [...left.values()], refunds);
		for (const record of targets) {
			const inclusion = this.#openInclusion(record, blockHash);
			// Reorganised meanwhile.
			if (record.blockHash !== blockHash || inclusion === null) continue;
			this.#settled.set(record, inclusion);
			const refund = refunds.get(record);
			const builders = refund === undefined ? this.#heldBackruns(record, blockHash, inclusion.at) : [];
			if (refund !== undefined) transactions.refunded(record.hash, block.number, refund);
			else if (builders.length > 0)
				transactions.backrunLeftOut(record.hash, block.number, builders, paying.get(record) === true);
			const own = left.get(record);
			if (own !== undefined) onLanded(own.out.bid, own.transfers);
		}
	}

	/**
	 * Names of the builders that had accepted a backrun in time for the block, seen at `seenAt` (ms),
	 * which was not withdrawn. Not known after a restart.
	 */
	#heldBackruns(record: TransactionRecord, blockHash: string, seenAt: number): readonly string[] {
		const { block } = record;
		const { records = [] } = this.#market.auctioneer.rounds.find(record.hash, blockHash) ?? {};
		const held = records.flatMap((bundle) => {
			const status = block === null ? undefined : statusIn(bundle, block);
			return status?.stage === "LOST" && status.reason === null ? status.deliveries : [];
		});
		const cancelled = held.filter(({ kind }) => kind === "cancel").map(({ builder }) => builder);
		const accepted = held.filter(
			({ kind, answer, at }) => kind === "bundle" && answer === "accepted" && at + IN_TIME_MS <= seenAt,
		);
		return [...new Set(accepted.map(({ builder }) => builder))].filter((name) => !cancelled.includes(name));
	}

	/**
	 * The gain of the transaction right behind a target. Null if there is none, or if no bundle is
	 * known and the recipient was not paid.
	 */
	async #gain(
		record: TransactionRecord,
		round: FinalRound | null,
		block: PaidBlock,
		behind: string | undefined,
	): Promise<Gain | null> {
		if (behind === undefined) return null;
		if (!wasBundled(record, round) && paidTo(recipientOf(record), 0, block) === 0n) return null;
		return this.#dependencies.payments.brought(behind, block);
	}

	/** Records the amounts that the bids left at the block's builder, for their bidders. */
	async #record(
		block: PaidBlock & { readonly hash: string },
		left: readonly Left[],
		refunds: ReadonlyMap<TransactionRecord, Refund>,
	): Promise<void> {
		const builders = this.#dependencies.sender.builtBy(block.coinbase);
		const share = BigInt(this.#options.refundPercent);
		const paid = left.flatMap(({ landed, out }) => {
			const { brought } = landed;
			const refunded = BigInt(refunds.get(landed.record)?.paid ?? 0);
			const shared = (brought * share) / 100n;
			const rest = brought - (refunded > shared ? refunded : shared);
			const { hash: target } = landed.record;
			return rest <= 0n
				? []
				: builders.map((builder) => ({ target, builder, bidder: bidderKey(out.bidder), left: `${rest}` }));
		});
		await this.#market.ledger.record(block, paid);
	}

	/**
	 * The record's inclusion event if it is still to be settled, else null. A backrun was sent for
	 * that block, or may have been. No refund is recorded since.
	 */
	#openInclusion(record: TransactionRecord, blockHash: string): LifeEvent | null {
		if (!isMined(record.stage)) return null;
		const round = this.#market.auctioneer.rounds.find(record.hash, blockHash);
		if (!wasBundled(record, round) && !this.#mayBeUnwritten(record)) return null;
		const since = record.events.findLastIndex((event) => event.type === "included");
		const last = record.events.findLastIndex((event) => event.type === "refunded");
		return last < since ? (record.events[since] ?? null) : null;
	}

	/**
	 * Whether an earlier relay may have sent a bundle for the record's block without recording it.
	 * The number of blocks is not limited: several relays may have been killed in turn before one
	 * found the transaction.
	 */
	#mayBeUnwritten({ block }: TransactionRecord): boolean {
		return this.#firstBlock !== null && block !== null && block <= this.#firstBlock;
	}

	/**
	 * The backrun right behind the transaction if its bundle was sent for that block, or must have
	 * been; else null.
	 */
	async #landed(
		record: TransactionRecord,
		{ block, index, out, gain }: { block: PaidBlock; index: number; out: BidOut | null; gain: Gain },
	): Promise<Landed | null> {
		const { sender } = this.#dependencies;
		const tx = block.transactions[index];
		if (tx === undefined) return null;
		// After a restart only the events are left. They do not list all bids if there were many.
		const all = out === null ? bundledFor(record).filter(({ backrun }) => backrun === tx.hash) : [];
		const known = out === null ? all.at(-1) : bundledAs(out);
		if (known === undefined && !this.#mayBeUnwritten(record)) return null;
		const recipient = known?.recipient ?? recipientOf(record);
		if (known === undefined && paidTo(recipient, index, block) === 0n) return null;
		const { fees, transfers } = gain;
		const names = out === null ? all.flatMap((one) => one.builders) : out.builders;
		const may = known === undefined ? this.#market.refundingBuilders : [...new Set(names)];
		const makers = sender.builtBy(block.coinbase).filter((name) => may.includes(name));
		const bundled = known ?? {
			bundle: bundleHash([record.hash, tx.hash]),
			...{ backrun: tx.hash, bid: String(transfers ?? 0n) },
		};
		const terms = (makers.length > 0 ? makers : may).flatMap(
			(name) => sender.terms(name, this.#options.refundPercent) ?? [],
		);
		const brought = fees + (transfers ?? BigInt(bundled.bid));
		const isNew = await this.#isNew(recipient, record.from, block);
		const landed = { record, bundled, index, recipient, isNew, brought, terms };
		if (known !== undefined) return landed;
		const refund = refundsOf({ ...block, fork: this.#dependencies.forkAt(block.timestamp) }, [landed]).get(
			record,
		);
		return refund !== undefined && refund.paid !== "0" && refund.paid === refund.owed ? landed : null;
	}

	/**
	 * Read only if it changes the cost of a refund. A sender has paid for its transaction, so its
	 * account exists.
	 */
	async #isNew(recipient: string, sender: string, { number, timestamp }: PaidBlock): Promise<boolean> {
		const { forkAt, payments } = this.#dependencies;
		return (
			isNewAccountCostlier(forkAt(timestamp)) &&
			recipient !== sender &&
			payments.isEmpty(recipient, number - 1)
		);
	}
}

/** The backruns that were sent for the record's block, newest first. */
function bundledFor(record: TransactionRecord): readonly Bundled[] {
	return record.events
		.filter((event): event is Bundled => event.type === "bundled" && event.block === record.block)
		.reverse();
}

/**
 * Whether a bundle for the record's block is known, from its final round or from the record's
 * events.
 */
function wasBundled(record: TransactionRecord, round: FinalRound | null): boolean {
	return (round?.records.length ?? 0) > 0 || bundledFor(record).length > 0;
}

/** The fields of a sent bid, as in its event. */
function bundledAs({ bundle, backrun, bid, recipient }: BidOut) {
	return { bundle, backrun, bid: bid.toString(), recipient };
}

function recipientOf({ owners, from }: TransactionRecord): string {
	return termsOf(owners).refundRecipient ?? from;
}

/**
 * Wei that the coinbase sent to `recipient` behind the transaction at `index`, up to the block's
 * end.
 */
function paidTo(recipient: string, index: number, { transactions, coinbase }: PaidBlock): bigint {
	return transactions.reduce((sum, { from, to, value }, i) => {
		return i > index && from === coinbase && to === recipient ? sum + value : sum;
	}, 0n);
}

/**
 * The refunds to record. A recipient's total is what the coinbase sent to it behind its first
 * backrun, up to the block's end. The total is divided among that recipient's backruns by the owed
 * amounts. Builders pay several refunds of one recipient in one transfer.
 */
export function refundsOf(
	block: PaidBlock & Pick<Payout, "fork">,
	landed: readonly Landed[],
): ReadonlyMap<TransactionRecord, Refund> {
	const refunds = new Map<TransactionRecord, Refund>();
	for (const recipient of new Set(landed.map((one) => one.recipient))) {
		const own = landed.filter((one) => one.recipient === recipient).sort((a, b) => a.index - b.index);
		const paid = paidTo(recipient, own[0]?.index ?? 0, block);
		const dues = duesFor(block, own, paid);
		const owed = dues.reduce((sum, due) => sum + due.owed, 0n);
		let rest = paid;
		for (const [i, one] of own.entries()) {
			const due = dues[i] ?? NOTHING;
			const isLast = i === own.length - 1;
			const share = isLast ? rest : owed === 0n ? 0n : (paid * due.owed) / owed;
			rest -= share;
			refunds.set(one.record, refundOf(block, one, due, share));
		}
	}
	return refunds;
}

function refundOf(block: PaidBlock, { bundled, brought, recipient }: Landed, due: Due, paid: bigint): Refund {
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

/**
 * The amount owed for each backrun. It may be unknown which of several builders made the block.
 * Then the terms that fit the payment are assumed, else for each backrun those that owe the most.
 * The block itself may have created or emptied the recipient's account before.
 */
function duesFor(
	block: PaidBlock & Pick<Payout, "fork">,
	own: readonly Landed[],
	paid: bigint,
): readonly Due[] {
	const all = own.map(({ brought, terms, isNew }) =>
		[isNew, !isNew].map((now) => terms.map((one) => owedRefund(brought, one, { ...block, isNew: now }))),
	);
	const most = all.map(([asRead = []]) =>
		asRead.reduce((high, one) => (one.owed > high.owed ? one : high), asRead[0] ?? NOTHING),
	);
	const choices = [0, 1].flatMap((now) =>
		(own[0]?.terms ?? []).map((_, i) => all.map((dues, at) => dues[now]?.[i] ?? most[at] ?? NOTHING)),
	);
	const fits = (dues: readonly Due[]) => dues.reduce((sum, { owed }) => sum + owed, 0n) === paid;
	return choices.find(fits) ?? most;
}

const NOTHING = { cost: 0n, owed: 0n };
