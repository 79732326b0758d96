// The auction. A target is a user's shared transaction behind which searchers bid to run. After each event of a target the
// places of its bids are worked out anew from all that are live, and the builders' bundles are updated to match. Only this file
// sends and cancels bids.

import { nextTurn } from "../../shared/clock.ts";
import { type Bid, backrunBundle, backrunName, isFor } from "../auction/bid.ts";
import type { Bids } from "../auction/bids.ts";
import { type BidOut, BidsOut } from "../auction/bidsOut.ts";
import type { BundleTable } from "../auction/bundleTable.ts";
import { statusIn, type Withdrawal } from "../auction/bundleTable.ts";
import { type Award, placesOf } from "../auction/places.ts";
import type { BundleDelivery, BundleReason, BundleStage } from "../domain/bundleStatus.ts";
import type { Block, ChainUpdate } from "../domain/chain.ts";
import { EXECUTION_FAILURES } from "../domain/simulation.ts";
import type { SenderTransactions } from "../transactions/pool.ts";
import { BidChecks } from "./bidChecks.ts";
import type { BidVerdict, BundleSimulation } from "./bundleSimulation.ts";
import type { MarketDependencies, MarketOptions } from "./dependencies.ts";
import type { PaymentLedger } from "./ledger.ts";

/** The bids on a target at the moment of the block that contains it. */
export interface FinalRound {
	/** Those that were with builders. */
	readonly sent: readonly Bid[];
	/** Those that are in the block behind the target. */
	readonly landed: readonly Bid[];
	/** Bids that were for the block and are not in it. */
	readonly lost: readonly Bid[];
	/** What is right behind the target, by each owner for whom it was out, even if it has been withdrawn or has ended since. */
	readonly behind: readonly BidOut[];
}

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
/** Blocks for which landed bids are kept, for reorganisations and for a settlement that comes late. */
const KEPT_BLOCKS = 64;

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
	/** Bids that have ended and may still be with builders. */
	readonly #leaving = new Set<Bid>();
	readonly #out = new BidsOut();
	/** Bids that are in a block, with the block. */
	readonly #landed = new Map<Bid, Pick<Block, "number" | "hash">>();
	/** By block hash and target, with the block's number. */
	readonly #rounds = new Map<string, FinalRound & { readonly block: number }>();
	/** Hashes of the bundles whose `bid` event is in the target's record, by target. */
	readonly #recorded = new Map<string, Set<string>>();

	constructor(options: MarketOptions, dependencies: MarketDependencies, parts: AuctioneerParts) {
		this.#options = options;
		this.#deps = dependencies;
		this.#parts = parts;
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
		if (last !== null) this.#end(last, "DROPPED", "outbid");
		for (let one = bids.toEvictInAll(backrun.size); one !== null; one = bids.toEvictInAll(backrun.size))
			this.#end(one, "DROPPED", "outbid");
		bids.add(bid);
		this.#recordBid(bid);
		// For the next block, `reconcile` sets the status.
		if (bid.firstBlock > this.#nextBlock())
			table.change(record, bid.firstBlock, { stage: "ACCEPTED", reason: null, bid: bid.value });
		this.reconcile([target]);
	}

	/** Ends a bid that its owner has replaced or cancelled. */
	withdraw(bid: Bid, how: Withdrawal): void {
		// If it is in a block that is reorganised away, it must not go out again: the block becomes its last.
		const landed = this.#landed.get(bid);
		if (landed === undefined) this.#end(bid, how, null);
		else {
			bid.lastBlock = landed.number;
			this.#parts.table.freeUuid(bid.entry);
		}
		this.reconcile([]);
	}

	/** Removes a bid that has been merged into an identical one; its status does not change. */
	removeMerged(bid: Bid): void {
		this.#remove(bid);
	}

	/** It was decided which of a sender's transactions are sent: recomputes the bids on them. */
	senderPlanned({ ready, waiting }: SenderTransactions): void {
		const hashes = [...ready, ...waiting].map((entry) => entry.transaction.tx.hash);
		this.reconcile(hashes.filter((hash) => this.#parts.bids.has(hash)));
	}

	/** The target has ended outside a block: ends the bids on it. */
	targetEnded(target: string): void {
		this.#recorded.delete(target);
		for (const bid of this.#parts.bids.of(target)) this.#end(bid, "DROPPED", "targetGone");
		this.reconcile([target]);
	}

	/** Something was paid: ends the bids of barred bidders, and works out all places again. */
	paymentsChanged(): void {
		const { bids, ledger } = this.#parts;
		for (const bid of bids.targets().flatMap((target) => bids.of(target))) {
			if (ledger.bar(bid.bidder) !== null) this.#end(bid, "DROPPED", "barred");
		}
		this.reconcile(bids.targets());
	}

	/** Records what became of the bids in new blocks. Must be called after the tip was set to the update's head. */
	onChainUpdate({ applied, reverted, head }: ChainUpdate): void {
		this.#undoReverted(reverted);
		for (const block of applied) this.#applyBlock(block);
		this.#endOverdue(head.number);
		this.#dropOld(head.number);
		this.reconcile(this.#parts.bids.targets());
	}

	/** Makes bids live again whose block has left the chain. */
	#undoReverted(reverted: readonly Block[]): void {
		const { bids, table } = this.#parts;
		const gone = new Set(reverted.map((block) => block.hash));
		for (const [bid, { number, hash }] of this.#landed) {
			if (!gone.has(hash)) continue;
			const change = { stage: "NOT_INCLUDED", reason: "reorganised", blockHash: null, paid: null } as const;
			table.change(bid.record, number, change);
			this.#landed.delete(bid);
			bids.add(bid);
		}
	}

	/** Ends bids whose last block has passed or whose target has gone. */
	#endOverdue(head: number): void {
		const { bids } = this.#parts;
		for (const target of bids.targets()) {
			const isPending = this.#deps.transactions.pool.get(target) !== undefined;
			for (const bid of bids.of(target)) {
				const lastStage = statusIn(bid.record, bid.lastBlock)?.stage;
				if (bid.lastBlock <= head && lastStage === "NOT_INCLUDED") this.#remove(bid);
				else if (bid.lastBlock <= head) this.#end(bid, "NOT_INCLUDED", "notChosen");
				else if (!isPending) this.#end(bid, "DROPPED", "targetGone");
			}
		}
	}

	/** Drops what is kept for blocks that have passed. */
	#dropOld(head: number): void {
		this.#out.forget(head);
		for (const bid of this.#leaving) if ((bid.placement?.block ?? 0) <= head) this.#leaving.delete(bid);
		for (const [bid, { number }] of this.#landed) {
			if (number + KEPT_BLOCKS > head) continue;
			this.#landed.delete(bid);
			this.#parts.table.freeUuid(bid.entry);
		}
		for (const [key, { block }] of this.#rounds) if (block + KEPT_BLOCKS <= head) this.#rounds.delete(key);
		for (const target of this.#recorded.keys())
			if (this.#deps.transactions.pool.get(target) === undefined) this.#recorded.delete(target);
	}

	/** The bids on a target in the block with this hash, if it is still kept. */
	finalRound(target: string, blockHash: string): FinalRound | null {
		return this.#rounds.get(`${blockHash} ${target}`) ?? null;
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
		const states = new Map<string, TargetState>();
		for (const target of affected) {
			const state = this.#stateOf(target, block);
			if (state !== null) states.set(target, state);
		}
		const candidates = affected.flatMap((target) =>
			states.has(target) ? bids.of(target).filter((bid) => isFor(bid, block)) : [],
		);
		const isSimulated = (bid: Bid) => bid.basis === states.get(bid.target)?.basis;
		const place = (from: readonly Bid[], places: number) =>
			placesOf(from, {
				places,
				buildersOf: (target) => refundingBuilders.filter((name) => states.get(target)?.builders.has(name)),
				provenUpTo: ({ bidder }) => ledger.provenUpTo(bidder),
				isSpent: ({ bidder }) => ledger.spentUntil(bidder) !== null,
			});
		const wanted = place(candidates.filter(isSimulated), bidsPerTarget);
		const leaving = new Map<string, Bid[]>(affected.map((target) => [target, []]));
		for (const bid of this.#leaving) {
			if (!leaving.has(bid.target)) continue;
			this.#leaving.delete(bid);
			leaving.get(bid.target)?.push(bid);
		}
		for (const target of affected) {
			this.#applyPlaces(target, block, wanted, [...bids.of(target), ...(leaving.get(target) ?? [])]);
		}
		// Where a simulation in this state gave no result, none follows: of all bids on a target that fails, or of the client's.
		const blocked = new Set<string>();
		for (const { target, client, inconclusive } of candidates) {
			if (inconclusive !== null && inconclusive.basis === states.get(target)?.basis)
				blocked.add(inconclusive.targetFailed ? target : `${target} ${client}`);
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
	#applyPlaces(target: string, block: number, wanted: ReadonlyMap<Bid, Award>, all: readonly Bid[]): void {
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
			const stage = award === undefined ? unsentStage : award.isBest ? "BEST" : "RUNNER_UP";
			table.change(bid.record, block, { stage, reason: null, bid: bid.value });
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
		if (verdict.kind === "unpaid") this.#end(bid, "DROPPED", "paysNothing");
		if (verdict.kind === "failed")
			this.#end(bid, "DROPPED", EXECUTION_FAILURES.has(verdict.error.code) ? "reverted" : "invalid");
		this.reconcile([bid.target]);
	}

	/** Sets the status of each bid for a new block. Settlement adds the winner and its payment later. */
	#applyBlock(block: Block): void {
		const { bids, table, ledger } = this.#parts;
		const { number, hash } = block;
		const places = new Map(block.transactions.map((tx, i) => [tx.hash, i]));
		for (const target of new Set([...bids.targets(), ...this.#out.targets(number)])) {
			const place = places.get(target);
			const all = bids.of(target);
			// Anywhere else in the block it was not mined through its bundle.
			const isIn = ({ backrun }: Bid) => place !== undefined && places.get(backrun.hash) === place + 1;
			const missed = all.filter((bid) => isFor(bid, number) && !isIn(bid) && !isReorganised(bid, number));
			const sent = all.filter((bid) => buildersHolding(bid, number).length > 0);
			const landed = all.filter(isIn);
			if (place !== undefined) {
				for (const bid of sent) if (!isIn(bid)) ledger.hadPlace(bid.bidder, bid.value, number);
				const behind = this.#out.find(target, number, block.transactions[place + 1]?.hash ?? "");
				this.#rounds.set(`${hash} ${target}`, { block: number, sent, landed, lost: missed, behind });
			}
			for (const bid of missed) {
				const isMined = places.has(bid.backrun.hash);
				const reason = isMined
					? "transactionMined"
					: place === undefined
						? "targetNotIncluded"
						: this.#lossReason(bid, sent, landed);
				table.change(bid.record, number, { stage: "NOT_INCLUDED", reason });
				if (bid.lastBlock <= number || isMined) this.#remove(bid);
			}
			for (const bid of landed) {
				table.change(bid.record, number, { stage: "INCLUDED", reason: null, blockHash: hash, winner: null });
				bids.remove(bid);
				this.#landed.set(bid, { number, hash });
			}
		}
	}

	/** Why it is not in the target's block: the first reason that applies, so their order matters. */
	#lossReason(bid: Bid, sent: readonly Bid[], landed: readonly Bid[]): BundleReason {
		if (landed.some(({ value }) => value >= bid.value)) return "outbid";
		if (sent.includes(bid)) return "notChosen";
		if (bid.basis === null || bid.runningCheck !== null) return "notSimulated";
		if (sent.length === 0) return "notChosen";
		if (sent.some(({ value }) => value >= bid.value)) return "outbid";
		const { provenUpTo } = this.#parts.ledger.standing(bid.bidder);
		return bid.value > provenUpTo ? "unproven" : "nonceTaken";
	}

	/** Counts the bid in the target's record, each bundle once. */
	#recordBid({ target, record: { hash } }: Bid): void {
		const recorded = this.#recorded.get(target) ?? new Set();
		this.#recorded.set(target, recorded);
		if (!recorded.has(hash)) this.#deps.transactions.bid(target, hash);
		recorded.add(hash);
	}

	/** Removes a live bid with a status, for the next block or the nearest one that the bid is for. */
	#end(bid: Bid, stage: BundleStage, reason: BundleReason | null): void {
		const block = Math.min(Math.max(bid.firstBlock, this.#nextBlock()), bid.lastBlock);
		if (this.#remove(bid)) this.#parts.table.change(bid.record, block, { stage, reason });
	}

	/** Removes a bid from the live ones; returns false if it was not live. */
	#remove(bid: Bid): boolean {
		const { bids, table } = this.#parts;
		if (!bids.holds(bid)) return false;
		// Its nonce is free for bids on other targets.
		for (const target of bids.targetsOfNonce(bid)) this.#changed.add(target);
		bids.remove(bid);
		table.freeUuid(bid.entry);
		bid.runningCheck?.stop.abort();
		if (bid.placement !== null) this.#leaving.add(bid);
		return true;
	}

	#nextBlock(): number {
		return this.#deps.tip.next()?.number ?? 0;
	}
}

/** Whether the bid was in a block with this number that was reorganised away. */
function isReorganised({ record }: Bid, block: number): boolean {
	return statusIn(record, block)?.reason === "reorganised";
}

/** The builders that have the bid for `block`. */
function buildersHolding({ placement }: Bid, block: number): readonly string[] {
	return placement?.block === block ? placement.builders : [];
}
