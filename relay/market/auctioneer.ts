// The auction. A target is a user's transaction that is disclosed to searchers, who bid to run
// behind it. After each event of a target, this file decides which live bids get a slot at which
// builder. It then updates the builders' bundles to match. Only this file sends and cancels bids.
// Its actions reveal nothing to bidders before the block.

import { nextTurn, type Timer } from "../../shared/clock.ts";
import { type Bid, backrunBundle, backrunName, hasPassedIn, isFor } from "../auction/bid.ts";
import { BidLives } from "../auction/bidLives.ts";
import type { Bids } from "../auction/bids.ts";
import { BidsOut } from "../auction/bidsOut.ts";
import type { BundleTable, Withdrawal } from "../auction/bundleTable.ts";
import { HeldSlots } from "../auction/heldSlots.ts";
import { drawing, slotsOf } from "../auction/slots.ts";
import { isAt } from "../domain/bundle.ts";
import type { BundleDelivery } from "../domain/bundleStatus.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import type { SenderTransactions } from "../transactions/pool.ts";
import { BidChecks } from "./bidChecks.ts";
import { type BidVerdict, type BundleSimulation, failureReason } from "./bundleSimulation.ts";
import type { MarketDependencies, MarketOptions } from "./dependencies.ts";
import { FinalRounds } from "./finalRounds.ts";
import type { PaymentLedger } from "./ledger.ts";

/** A target's state for the next block. */
interface TargetState {
	readonly basis: string;
	/** Names of the refunding builders that have the target. */
	readonly builders: readonly string[];
}

/**
 * A target's bids at the builders for one block, the numbers drawn for it, and the timer for the
 * next bids.
 */
interface Held {
	readonly block: number;
	readonly byBuilder: Map<string, HeldSlots>;
	readonly draw: (name: string) => number;
	due: Timer | null;
}

/**
 * Bids that are simulated beyond those with slots, so that one that fails can be replaced at once.
 */
const RESERVE = 2;
/** One slot by record and one by lottery. */
const MIN_SLOTS = 2;
/** Longest time in ms for which assigning slots blocks the event loop before other work runs. */
const TURN_MS = 10;

/** The market classes that it depends on. */
interface AuctioneerMarket {
	readonly bids: Bids;
	readonly table: BundleTable;
	readonly ledger: PaymentLedger;
	readonly simulation: BundleSimulation;
	/** Names of the builders that pay refunds. */
	readonly refundingBuilders: readonly string[];
}

/** Makes sure that builders get enough of the bids on each target. */
export class Auctioneer {
	readonly #options: Pick<MarketOptions, "refundPercent" | "bidsPerTarget" | "secret">;
	readonly #dependencies: Pick<
		MarketDependencies,
		"transactions" | "tip" | "sender" | "slot" | "background" | "clock"
	>;
	readonly #market: AuctioneerMarket;
	readonly #checks: BidChecks;
	/** Targets that changed since their bids' slots were last assigned. */
	readonly #changed = new Set<string>();
	#isWorking = false;
	#isStopped = false;
	readonly #lives: BidLives;
	readonly #out = new BidsOut();
	/** Outcomes of the bids in the last blocks. */
	readonly rounds: FinalRounds;
	/** Hashes of the bundles whose `bid` event is in the target's record, by target. */
	readonly #recorded = new Map<string, Set<string>>();
	/** By target. */
	readonly #held = new Map<string, Held>();

	constructor(options: MarketOptions, dependencies: MarketDependencies, market: AuctioneerMarket) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#market = market;
		const { bids, table } = market;
		this.#lives = new BidLives({ bids, table, nextBlock: () => this.#nextBlock() });
		this.rounds = new FinalRounds({ bids, lives: this.#lives, out: this.#out, table });
		this.#checks = new BidChecks(dependencies, market, {
			onVerdict: (bid, verdict) => this.#judged(bid, verdict),
			onRetry: (target) => this.reconcile([target]),
		});
	}

	/**
	 * Adds a valid bid. Evicts others, or this one, if a limit requires it. Owners learn of an
	 * eviction only with the block.
	 */
	add(bid: Bid): void {
		const { bids, table } = this.#market;
		const { target, record } = bid;
		bids.add(bid);
		this.#recordBid(bid);
		const block = Math.max(bid.firstBlock, this.#nextBlock());
		table.change(record, block, { stage: "ACCEPTED", reason: null, bid: bid.claimed });
		const last = bids.toEvictOnTarget(target, this.#nextBlock());
		if (last !== null) this.#lives.end(last, null);
		for (let one = bids.toEvictInAll(); one !== null; one = bids.toEvictInAll()) this.#lives.end(one, null);
		this.reconcile([target]);
	}

	/**
	 * The same bid was submitted again: its ended versions, and the live ones `merged` into it, are
	 * over. Their status does not change.
	 */
	comesAgain(bid: Pick<Bid, "owner" | "target" | "backrun">, merged: readonly Bid[]): void {
		for (const one of merged) this.#lives.drop(one);
		this.#lives.comesAgain(bid);
	}

	/** Ends a bid that its owner has replaced or cancelled. */
	withdraw(bid: Bid, how: Withdrawal): void {
		this.#lives.withdraw(bid, how);
		this.reconcile([bid.target]);
	}

	/**
	 * Called when it is decided which of a sender's transactions are sent. Assigns the slots of the
	 * bids on them again.
	 */
	senderPlanned({ ready, waiting }: SenderTransactions): void {
		const hashes = [...ready, ...waiting].map((entry) => entry.transaction.tx.hash);
		this.reconcile(hashes.filter((hash) => this.#market.bids.has(hash)));
	}

	/** The target has ended outside a block: ends the bids on it. */
	targetEnded(target: string): void {
		this.#recorded.delete(target);
		for (const bid of this.#market.bids.of(target)) this.#lives.end(bid, null);
		this.reconcile([target]);
	}

	/**
	 * Reports the outcomes of the bids in new blocks. Must be called after the tip was set to the
	 * update's head.
	 */
	onChainUpdate({ applied, reverted, head }: ChainUpdate): void {
		this.#lives.revive(reverted);
		for (const block of applied) this.rounds.apply(block);
		this.#endOverdue(head.number);
		this.#dropOld(head.number);
		this.reconcile(this.#market.bids.targets());
	}

	/** Ends bids whose last block has passed unseen, or whose target has gone. */
	#endOverdue(head: number): void {
		const { bids, table } = this.#market;
		for (const target of bids.targets()) {
			const isPending = this.#dependencies.transactions.pool.get(target) !== undefined;
			for (const bid of bids.of(target)) {
				const isPast = bid.lastBlock <= head;
				if (isPast && this.#lives.drop(bid)) table.change(bid.record, bid.lastBlock, { stage: "NOT_PLACED" });
				else if (!isPending) this.#lives.end(bid, null);
			}
		}
	}

	/** Drops what is kept for blocks that have passed. */
	#dropOld(head: number): void {
		this.#out.forget(head);
		this.#lives.forget(head);
		this.rounds.forget(head);
		for (const [target, held] of this.#held) if (held.block <= head) this.#forgetHeld(target, held);
		for (const target of this.#recorded.keys())
			if (this.#dependencies.transactions.pool.get(target) === undefined) this.#recorded.delete(target);
	}

	/** Starts no further work. */
	stop(): void {
		this.#isStopped = true;
		this.#checks.stop();
		for (const { due } of this.#held.values()) due?.cancel();
	}

	/** Assigns the slots of these targets in the next turn of the event loop. */
	reconcile(targets: Iterable<string>): void {
		for (const target of targets) this.#changed.add(target);
		if (this.#changed.size === 0 || this.#isWorking) return;
		this.#isWorking = true;
		this.#dependencies.background.run("bids", () => this.#work());
	}

	async #work(): Promise<void> {
		const { clock } = this.#dependencies;
		try {
			while (this.#changed.size > 0) {
				// Bids that are replaced or arrive meanwhile are considered at once.
				await nextTurn();
				const until = clock.monotonic() + TURN_MS;
				for (const target of this.#changed) {
					this.#reconcile(target);
					if (clock.monotonic() >= until) break;
				}
			}
		} finally {
			this.#isWorking = false;
		}
	}

	#reconcile(target: string): void {
		const { bids, table } = this.#market;
		this.#changed.delete(target);
		const block = this.#nextBlock();
		const timestamp = this.#dependencies.tip.next()?.timestamp ?? 0;
		const state = this.#stateOf(target, block);
		const all = bids.of(target).filter((bid) => isFor(bid, block));
		for (const bid of all)
			table.change(bid.record, block, { stage: "ACCEPTED", reason: null, bid: bid.claimed });
		const candidates = state === null ? [] : all.filter(({ times }) => isAt(times, timestamp));
		const isSimulated = (bid: Bid) => hasPassedIn(bid, state?.basis);
		const held = this.#heldFor(target, block);
		const { draw } = held;
		const chosenAt = (builder: string, from: readonly Bid[], slots: number) =>
			slotsOf(
				from.filter(({ builders }) => builders?.includes(builder) !== false),
				{ slots, draw, recordOf: (bidder) => this.#market.ledger.recordOf(builder, bidder) },
			);
		const passed = candidates.filter(isSimulated);
		this.#apply(target, held, (builder) =>
			state?.builders.includes(builder) ? chosenAt(builder, passed, this.#slotsAt(builder)) : [],
		);
		if (state === null || passed.length === candidates.length) return;
		// If a simulation in this state gave no result, start no further one. This applies to all
		// bids if the target failed, else to the same client's bids.
		const last = candidates.flatMap(({ client, lastCheck }) =>
			lastCheck?.basis === state.basis ? [{ client, result: lastCheck.result }] : [],
		);
		if (last.some(({ result }) => result === "targetFailed")) return;
		const blocked = new Set(last.filter(({ result }) => result === "noResult").map(({ client }) => client));
		// Assume that bids not yet simulated in this state are valid. Simulate those that would get
		// a slot, and a reserve.
		const likely = candidates.filter((bid) => isSimulated(bid) || !blocked.has(bid.client));
		for (const reserve of [0, RESERVE]) {
			for (const builder of state.builders)
				for (const bid of chosenAt(builder, likely, this.#slotsAt(builder) + reserve))
					if (!isSimulated(bid)) this.#checks.check(bid, state.basis);
		}
	}

	/**
	 * How many slots each target has at a builder. There are fewer if the builder's requests per
	 * chain slot don't suffice for all targets, but at least two.
	 */
	#slotsAt(builder: string): number {
		const { sender, slot } = this.#dependencies;
		const requests = sender.perSecond(builder) * (slot.ms / 1_000);
		const each = Math.floor(requests / Math.max(1, this.#market.bids.targetCount));
		return Math.max(MIN_SLOTS, Math.min(this.#options.bidsPerTarget, each));
	}

	/**
	 * The target's state if builders have it for `block`. Null otherwise; then no bid on it is
	 * sent.
	 */
	#stateOf(hash: string, block: number): TargetState | null {
		const { simulation, refundingBuilders } = this.#market;
		const { pool } = this.#dependencies.transactions;
		const entry = pool.get(hash);
		const given = entry === undefined ? [] : pool.givenFor(entry, block);
		if (given.length === 0) return null;
		const target = simulation.target(hash);
		if (target === null) return null;
		const builders = refundingBuilders.filter((name) => given.includes(name));
		return { basis: simulation.basis(target), builders };
	}

	/** Sends and cancels bundles so that each builder has the bids that `wantedAt` returns for it. */
	#apply(target: string, held: Held, wantedAt: (builder: string) => readonly Bid[]): void {
		const { bids, refundingBuilders } = this.#market;
		const { clock } = this.#dependencies;
		const { block } = held;
		held.due?.cancel();
		held.due = null;
		let nextAt = Number.POSITIVE_INFINITY;
		const [sent, cancelled] = [
			new Map<Bid, { builders: string[]; slot: number }>(),
			new Map<Bid, string[]>(),
		];
		for (const builder of refundingBuilders) {
			const wanted = wantedAt(builder);
			const slots = held.byBuilder.get(builder) ?? new HeldSlots();
			held.byBuilder.set(builder, slots);
			const mayStay = (bid: Bid) => bids.holds(bid) && bid.lastCheck?.result === "passed";
			const changes = slots.update(wanted, {
				...{ slots: this.#slotsAt(builder), now: clock.monotonic(), mayStay },
			});
			for (const bid of changes.send) {
				const one = sent.get(bid) ?? { builders: [], slot: wanted.indexOf(bid) };
				one.builders.push(builder);
				sent.set(bid, one);
			}
			for (const bid of changes.cancel) cancelled.set(bid, [...(cancelled.get(bid) ?? []), builder]);
			nextAt = Math.min(nextAt, changes.nextAt ?? nextAt);
		}
		for (const [bid, { builders, slot }] of sent) this.#send(bid, { builders, slot, block });
		for (const [bid, builders] of cancelled) this.#cancel(bid, builders, block);
		if (nextAt === Number.POSITIVE_INFINITY || this.#isStopped) return;
		held.due = clock.after(nextAt - clock.monotonic(), () => this.reconcile([target]));
	}

	/** The bids that builders have on the target for `block`. Starts empty for a new block. */
	#heldFor(target: string, block: number): Held {
		const before = this.#held.get(target);
		if (before?.block === block) return before;
		if (before !== undefined) this.#forgetHeld(target, before);
		const held = {
			block,
			byBuilder: new Map(),
			draw: drawing(this.#options.secret, block, target),
			due: null,
		};
		this.#held.set(target, held);
		return held;
	}

	#forgetHeld(target: string, { due }: Held): void {
		due?.cancel();
		this.#held.delete(target);
	}

	#cancel(bid: Bid, builders: readonly string[], block: number): void {
		const { sender, transactions } = this.#dependencies;
		const requestId = transactions.records.get(bid.target)?.transaction.requestId ?? null;
		const bundle = { name: backrunName(bid), client: bid.client, kind: "bid", requestId } as const;
		sender.cancelBundle(bundle, block, builders, (delivery) => {
			this.#market.table.delivered(bid.record, block, delivery);
			this.#recordCancelOnTarget(bid.target, block, delivery);
		});
	}

	/**
	 * If the target has ended, records the builder's response to the cancel in the target's events
	 * too.
	 */
	#recordCancelOnTarget(target: string, block: number, { kind: _, ...answer }: BundleDelivery): void {
		const { transactions } = this.#dependencies;
		if (transactions.pool.get(target) !== undefined) return;
		transactions.delivered(target, { type: "delivered", kind: "cancel", block, ...answer, backrun: true });
	}

	#send(
		bid: Bid,
		{
			builders,
			slot,
			block,
		}: { readonly builders: readonly string[]; readonly slot: number; readonly block: number },
	): void {
		const { table } = this.#market;
		const { transactions, sender, tip } = this.#dependencies;
		const entry = transactions.pool.get(bid.target);
		const next = tip.next();
		if (entry === undefined || next?.number !== block) return;
		const { transaction } = entry;
		const bundle = backrunBundle(bid, transaction, next, {
			...{ refundPercent: this.#options.refundPercent, slot },
		});
		const recipient = transaction.refundRecipient ?? transaction.tx.from;
		let isRecorded = false;
		const left = (builder: string) => {
			this.#out.note(bid, { block, builder, recipient });
			if (isRecorded) return;
			// By now the target may be mined or ended.
			isRecorded = transactions.bundled(bid.target, {
				block,
				bundle: bid.record.hash,
				backrun: bid.backrun.hash,
				bid: bid.value.toString(),
				builders,
				recipient,
			});
		};
		sender.sendBundle(bundle, builders, (delivery) => table.delivered(bid.record, block, delivery), left);
	}

	/** Handles the result of a simulation that a change of the target's state has made necessary. */
	#judged(bid: Bid, verdict: BidVerdict): void {
		if (verdict.kind === "unpaid") this.#lives.end(bid, "paysNothing");
		if (verdict.kind === "failed") this.#lives.end(bid, failureReason(verdict.error));
		this.reconcile([bid.target]);
	}

	/** Counts the bid in the target's record, each bundle once. */
	#recordBid({ target, record: { hash } }: Bid): void {
		const recorded = this.#recorded.get(target) ?? new Set();
		this.#recorded.set(target, recorded);
		if (!recorded.has(hash)) this.#dependencies.transactions.bid(target, hash);
		recorded.add(hash);
	}

	#nextBlock(): number {
		return this.#dependencies.tip.next()?.number ?? 0;
	}
}
