// The auction. A target is a user's shared transaction behind which searchers bid to run. After each event of a target the
// places of its bids are worked out anew from all that are live, and the builders' bundles are updated to match. Only this file
// sends and cancels bids.

import { nextTurn } from "../../shared/clock.ts";
import { type Bid, backrunBundle, backrunName, buildersHolding, hasPassedIn, isFor } from "../auction/bid.ts";
import { BidLives } from "../auction/bidLives.ts";
import type { Bids } from "../auction/bids.ts";
import { BidsOut } from "../auction/bidsOut.ts";
import type { BundleTable } from "../auction/bundleTable.ts";
import { statusIn, type Withdrawal } from "../auction/bundleTable.ts";
import { type Award, placesOf } from "../auction/places.ts";
import { isAt } from "../domain/bundle.ts";
import type { BundleDelivery } from "../domain/bundleStatus.ts";
import type { ChainUpdate, NextBlock } from "../domain/chain.ts";
import type { SenderTransactions } from "../transactions/pool.ts";
import { BidChecks } from "./bidChecks.ts";
import { type BidVerdict, type BundleSimulation, failureReason } from "./bundleSimulation.ts";
import type { MarketDependencies, MarketOptions } from "./dependencies.ts";
import { FinalRounds } from "./finalRounds.ts";
import type { PaymentLedger } from "./ledger.ts";

/** A target's state for the next block. */
interface TargetState {
	readonly basis: string;
	/** Names of the builders that have the target. */
	readonly builders: ReadonlySet<string>;
}

/** Bids that are simulated beyond those with places, so that one that fails can be replaced at once. */
const RESERVE = 2;
/** How long working out places may keep the event loop before other work is done, in ms. */
const TURN_MS = 10;

/** The market's parts that it works with. */
interface AuctioneerParts {
	readonly bids: Bids;
	readonly table: BundleTable;
	readonly ledger: PaymentLedger;
	readonly simulation: BundleSimulation;
	/** Names of the builders that pay refunds. */
	readonly refundingBuilders: readonly string[];
}

/** Keeps the best bids of each target at the builders. */
export class Auctioneer {
	readonly #options: Pick<MarketOptions, "refundPercent" | "bidsPerTarget">;
	readonly #deps: Pick<MarketDependencies, "transactions" | "tip" | "sender" | "background" | "clock">;
	readonly #parts: AuctioneerParts;
	readonly #checks: BidChecks;
	/** Targets that changed since the places of their bids were worked out. */
	readonly #changed = new Set<string>();
	#isWorking = false;
	readonly #lives: BidLives;
	readonly #out = new BidsOut();
	/** What became of the bids in the last blocks. */
	readonly rounds: FinalRounds;
	/** Hashes of the bundles whose `bid` event is in the target's record, by target. */
	readonly #recorded = new Map<string, Set<string>>();

	constructor(options: MarketOptions, dependencies: MarketDependencies, parts: AuctioneerParts) {
		this.#options = options;
		this.#deps = dependencies;
		this.#parts = parts;
		const { bids, table, ledger } = parts;
		this.#lives = new BidLives({
			bids,
			table,
			nextBlock: () => this.#nextBlock(),
			onEnd: (targets) => {
				for (const target of targets) this.#changed.add(target);
			},
		});
		this.rounds = new FinalRounds({ bids, lives: this.#lives, out: this.#out, table, ledger });
		this.#checks = new BidChecks(dependencies, parts, {
			onVerdict: (bid, verdict) => this.#judged(bid, verdict),
			onRetry: (target) => this.reconcile([target]),
		});
	}

	/** Adds a valid bid, and evicts others where the limits require it. */
	add(bid: Bid): void {
		const { bids, table } = this.#parts;
		const { target, backrun, record } = bid;
		// What goes is for a later block or the cheapest, so its owner is told that it was outbid.
		const last = bids.toEvictOnTarget(target, bid.firstBlock);
		if (last !== null) this.#lives.end(last, "DROPPED", "outbid");
		for (let one = bids.toEvictInAll(backrun.size); one !== null; one = bids.toEvictInAll(backrun.size))
			this.#lives.end(one, "DROPPED", "outbid");
		bids.add(bid);
		this.#recordBid(bid);
		// For the next block, `reconcile` sets the status.
		if (bid.firstBlock > this.#nextBlock())
			table.change(record, bid.firstBlock, { stage: "ACCEPTED", reason: null, bid: bid.value });
		this.reconcile([target]);
	}

	/** Ends a bid that its owner has replaced or cancelled. */
	withdraw(bid: Bid, how: Withdrawal): void {
		// If it is in a block that is reorganised away, it must not go out again.
		if (this.#lives.of(bid) === "landed") this.#lives.endAtBlock(bid);
		else this.#lives.end(bid, how, null);
		this.reconcile([]);
	}

	/** Removes a bid that has been merged into an identical one; its status does not change. */
	removeMerged(bid: Bid): void {
		this.#lives.endSilently(bid);
	}

	/** It was decided which of a sender's transactions are sent: recomputes the bids on them. */
	senderPlanned({ ready, waiting }: SenderTransactions): void {
		const hashes = [...ready, ...waiting].map((entry) => entry.transaction.tx.hash);
		this.reconcile(hashes.filter((hash) => this.#parts.bids.has(hash)));
	}

	/** The target has ended outside a block: ends the bids on it. */
	targetEnded(target: string): void {
		this.#recorded.delete(target);
		for (const bid of this.#parts.bids.of(target)) this.#lives.end(bid, "DROPPED", "targetGone");
		this.reconcile([target]);
	}

	/** Something was paid: ends the bids of barred bidders, and works out all places again. */
	paymentsChanged(): void {
		const { bids, ledger } = this.#parts;
		for (const bid of bids.targets().flatMap((target) => bids.of(target))) {
			if (ledger.bar(bid.bidder) !== null) this.#lives.end(bid, "DROPPED", "barred");
		}
		this.reconcile(bids.targets());
	}

	/** Records what became of the bids in new blocks. Must be called after the tip was set to the update's head. */
	onChainUpdate({ applied, reverted, head }: ChainUpdate): void {
		this.#lives.revive(reverted);
		for (const block of applied) this.rounds.apply(block);
		this.#endOverdue(head.number);
		this.#dropOld(head.number);
		this.reconcile(this.#parts.bids.targets());
	}

	/** Ends bids whose last block has passed or whose target has gone. */
	#endOverdue(head: number): void {
		const { bids } = this.#parts;
		for (const target of bids.targets()) {
			const isPending = this.#deps.transactions.pool.get(target) !== undefined;
			for (const bid of bids.of(target)) {
				const lastStage = statusIn(bid.record, bid.lastBlock)?.stage;
				if (bid.lastBlock <= head && lastStage === "NOT_INCLUDED") this.#lives.endSilently(bid);
				else if (bid.lastBlock <= head) this.#lives.end(bid, "NOT_INCLUDED", "notChosen");
				else if (!isPending) this.#lives.end(bid, "DROPPED", "targetGone");
			}
		}
	}

	/** Drops what is kept for blocks that have passed. */
	#dropOld(head: number): void {
		this.#out.forget(head);
		this.#lives.forget(head);
		this.rounds.forget(head);
		for (const target of this.#recorded.keys())
			if (this.#deps.transactions.pool.get(target) === undefined) this.#recorded.delete(target);
	}

	/** Starts no further simulation. */
	stop(): void {
		this.#checks.stop();
	}

	/** Works out the places on these targets, and on all that have changed, in the next turn of the event loop. */
	reconcile(targets: Iterable<string>): void {
		for (const target of targets) this.#changed.add(target);
		if (this.#changed.size === 0 || this.#isWorking) return;
		this.#isWorking = true;
		this.#deps.background.run("bids", () => this.#work());
	}

	async #work(): Promise<void> {
		const { clock } = this.#deps;
		try {
			while (this.#changed.size > 0) {
				// What is replaced, or comes meanwhile, is seen at once.
				await nextTurn();
				const until = clock.monotonic() + TURN_MS;
				for (const target of this.#changed) {
					this.#reconcile(this.#parts.bids.targetsSharingNonces([target]));
					if (clock.monotonic() >= until) break;
				}
			}
		} finally {
			this.#isWorking = false;
		}
	}

	/** Works out the places on `affected`, which share no nonce with other targets. */
	#reconcile(affected: readonly string[]): void {
		const { bids, ledger, refundingBuilders } = this.#parts;
		const { bidsPerTarget } = this.#options;
		for (const target of affected) this.#changed.delete(target);
		const block = this.#nextBlock();
		const timestamp = this.#deps.tip.next()?.timestamp ?? 0;
		const states = new Map<string, TargetState>();
		for (const target of affected) {
			const state = this.#stateOf(target, block);
			if (state !== null) states.set(target, state);
		}
		const candidates = affected.flatMap((target) =>
			states.has(target)
				? bids.of(target).filter((bid) => isFor(bid, block) && isAt(bid.times, timestamp))
				: [],
		);
		const isSimulated = (bid: Bid) => hasPassedIn(bid, states.get(bid.target)?.basis);
		const place = (from: readonly Bid[], places: number) =>
			placesOf(from, {
				places,
				buildersOf: (target) => refundingBuilders.filter((name) => states.get(target)?.builders.has(name)),
				provenUpTo: ({ bidder }) => ledger.provenUpTo(bidder),
				isSpent: ({ bidder }) => ledger.spentUntil(bidder) !== null,
			});
		const wanted = place(candidates.filter(isSimulated), bidsPerTarget);
		const leaving = this.#lives.takeLeaving(affected);
		for (const target of affected) {
			this.#applyPlaces(target, { number: block, timestamp }, wanted, [
				...bids.of(target),
				...(leaving.get(target) ?? []),
			]);
		}
		// Where a simulation in this state gave no result, none follows: of all bids on a target that fails, or of the client's.
		const blocked = new Set<string>();
		for (const { target, client, lastCheck } of candidates) {
			if (lastCheck === null || lastCheck.basis !== states.get(target)?.basis) continue;
			if (lastCheck.result === "targetFailed") blocked.add(target);
			if (lastCheck.result === "noResult") blocked.add(`${target} ${client}`);
		}
		const isBlocked = ({ target, client }: Bid) => blocked.has(target) || blocked.has(`${target} ${client}`);
		// Bids not yet simulated in this state are placed as if valid; those that would get places, and a reserve, are simulated.
		const likely = candidates.every(isSimulated)
			? []
			: candidates.filter((bid) => isSimulated(bid) || !isBlocked(bid));
		for (const places of [bidsPerTarget, bidsPerTarget + RESERVE]) {
			for (const bid of place(likely, places).keys()) {
				const basis = states.get(bid.target)?.basis;
				if (basis !== undefined && !isSimulated(bid)) this.#checks.check(bid, basis);
			}
		}
	}

	/** The target's state if builders have it for `block`; else null, and no bid on it is sent. */
	#stateOf(hash: string, block: number): TargetState | null {
		const { simulation } = this.#parts;
		const { pool } = this.#deps.transactions;
		const entry = pool.get(hash);
		if (entry === undefined || !pool.isSentFor(entry, block)) return null;
		const target = simulation.target(hash);
		if (target === null) return null;
		return { basis: simulation.basis(target), builders: new Set(pool.sentFor(entry, block)) };
	}

	/** Sends and cancels bundles so that builders hold exactly the bids with places, then updates the status of `all` bids. */
	#applyPlaces(
		target: string,
		{ number: block, timestamp }: Pick<NextBlock, "number" | "timestamp">,
		wanted: ReadonlyMap<Bid, Award>,
		all: readonly Bid[],
	): void {
		const { table, bids } = this.#parts;
		const { sender } = this.#deps;
		// A client's next bid is sent under the same name and replaces the previous one, which then needs no cancel.
		const placedClients = new Set<string>();
		for (const bid of all) {
			const had = buildersHolding(bid, block);
			const builders = wanted.get(bid)?.builders ?? [];
			for (const name of builders) placedClients.add(`${name} ${bid.client}`);
			const added = builders.filter((name) => !had.includes(name));
			if (added.length > 0) this.#send(bid, added, block);
		}
		for (const bid of all) {
			const builders = wanted.get(bid)?.builders ?? [];
			const left = buildersHolding(bid, block).filter(
				(name) => !builders.includes(name) && !placedClients.has(`${name} ${bid.client}`),
			);
			bid.placement = builders.length === 0 ? null : { block, builders };
			if (left.length === 0) continue;
			sender.cancelBundle(backrunName(target, bid.client), block, left, (delivery) => {
				table.delivered(bid.record, block, delivery);
				this.#recordCancelOnTarget(target, block, delivery);
			});
		}
		// If no bid is sent, none is outbid: they wait for their target or a simulation.
		const unsentStage = placedClients.size === 0 ? "ACCEPTED" : "OUTBID";
		for (const bid of all) {
			if (!isFor(bid, block) || !bids.holds(bid)) continue;
			const award = wanted.get(bid);
			const reason = isAt(bid.times, timestamp) ? null : "timestamp";
			const unplaced = reason === null ? unsentStage : "ACCEPTED";
			const stage = award === undefined ? unplaced : award.isBest ? "BEST" : "RUNNER_UP";
			table.change(bid.record, block, { stage, reason, bid: bid.value });
		}
	}

	/** If the target has ended, records the builder's response to the cancel in the target's events too. */
	#recordCancelOnTarget(target: string, block: number, { kind: _, ...answer }: BundleDelivery): void {
		const { transactions } = this.#deps;
		if (transactions.pool.get(target) !== undefined) return;
		transactions.delivered(target, { type: "delivered", kind: "cancel", block, ...answer, backrun: true });
	}

	#send(bid: Bid, names: readonly string[], block: number): void {
		const { table } = this.#parts;
		const { transactions, sender, tip } = this.#deps;
		const entry = transactions.pool.get(bid.target);
		const next = tip.next();
		if (entry === undefined || next?.number !== block) return;
		const { transaction } = entry;
		const bundle = backrunBundle(bid, transaction, next, this.#options.refundPercent);
		const recipient = transaction.refundRecipient ?? transaction.tx.from;
		let isRecorded = false;
		const recordOnce = () => {
			this.#out.note(bid, { block, builders: names, recipient });
			if (isRecorded) return;
			// By now the target may be mined or ended.
			isRecorded = transactions.bundled(bid.target, {
				block,
				bundle: bid.record.hash,
				backrun: bid.backrun.hash,
				bid: bid.value.toString(),
				builders: names,
				recipient,
			});
		};
		sender.sendBundle(bundle, names, (delivery) => table.delivered(bid.record, block, delivery), recordOnce);
	}

	/** Handles the result of a simulation that a change of the target's state has made necessary. */
	#judged(bid: Bid, verdict: BidVerdict): void {
		if (verdict.kind === "unpaid") this.#lives.end(bid, "DROPPED", "paysNothing");
		if (verdict.kind === "failed") this.#lives.end(bid, "DROPPED", failureReason(verdict.error));
		this.reconcile([bid.target]);
	}

	/** Counts the bid in the target's record, each bundle once. */
	#recordBid({ target, record: { hash } }: Bid): void {
		const recorded = this.#recorded.get(target) ?? new Set();
		this.#recorded.set(target, recorded);
		if (!recorded.has(hash)) this.#deps.transactions.bid(target, hash);
		recorded.add(hash);
	}

	#nextBlock(): number {
		return this.#deps.tip.next()?.number ?? 0;
	}
}
