// The auction. A target is a user's shared transaction that searchers bid to run behind. On each event of a target its winners
// are recomputed from the live bids, and the builders' bundles are brought in line. Nothing else sends, cancels or ranks a bid.

import { type Award, type Bid, backrunBundle, backrunName, isFor, winners } from "../auction/bids.ts";
import { type Overtaken, statusIn } from "../auction/bundleTable.ts";
import type { BundleDelivery, BundleReason, BundleStage } from "../domain/bundleStatus.ts";
import type { Block, ChainUpdate } from "../domain/chain.ts";
import { EXECUTION_FAILURES } from "../domain/simulation.ts";
import type { SenderChain } from "../transactions/pool.ts";
import { BidChecks } from "./bidChecks.ts";
import type { BidVerdict } from "./bundleSimulation.ts";
import type { MarketDependencies, MarketOptions, SearcherMarket } from "./market.ts";

/** How the bids on a target stood when a block came that holds it. */
export interface FinalRound {
	/** Those that were with builders. */
	readonly sent: readonly Bid[];
	/** Those that are in the block behind it. */
	readonly landed: readonly Bid[];
	/** Bids that were for the block and are not in it. */
	readonly lost: readonly Bid[];
}

/** What a target stands in for the next block. */
interface TargetState {
	readonly basis: string;
	/** Names of the builders that have it. */
	readonly builders: ReadonlySet<string>;
}

/** How many bids beyond those at the builders are simulated, so that one that turns out bad can be replaced at once. */
const RESERVE = 2;
/** A block with bids in it is remembered for so many blocks, should it be reorganised away or not be read before. */
const KEPT_BLOCKS = 64;

/** Keeps the best bids of each target out. */
export class Auctioneer {
	readonly #options: Pick<MarketOptions, "refundPercent" | "bidsPerTarget">;
	readonly #deps: Pick<MarketDependencies, "pool" | "records" | "tip" | "sender" | "clock">;
	readonly #market: Pick<SearcherMarket, "bids" | "table" | "conduct" | "simulation" | "refunding">;
	readonly #checks: BidChecks;
	/** Targets of which something has changed since their winners were worked out. */
	readonly #changed = new Set<string>();
	/** Bids that have ended and may still be with builders. */
	readonly #leaving = new Set<Bid>();
	/** Bids that are in a block, and that. */
	readonly #landed = new Map<Bid, Pick<Block, "number" | "hash">>();
	/** By block hash and target; with the number of the block. */
	readonly #rounds = new Map<string, FinalRound & { readonly block: number }>();
	/** Hashes of the bundles that were counted, by target. */
	readonly #counted = new Map<string, Set<string>>();

	constructor(options: MarketOptions, dependencies: MarketDependencies, market: SearcherMarket) {
		this.#options = options;
		this.#deps = dependencies;
		this.#market = market;
		this.#checks = new BidChecks(dependencies, market, {
			onVerdict: (bid, verdict) => this.#judged(bid, verdict),
			onRetry: (targets) => this.reconcile(targets),
		});
	}

	/** Takes a bid that was found valid; what must give way to it ends. */
	add(bid: Bid): void {
		const { bids, table } = this.#market;
		const { target, backrun, record } = bid;
		const last = bids.lastIfFull(target, bid.firstBlock);
		if (last !== null) this.#end(last, "DROPPED", "outbid");
		for (let one = bids.cheapestIfFull(backrun.size); one !== null; one = bids.cheapestIfFull(backrun.size))
			this.#end(one, "DROPPED", "outbid");
		bids.add(bid);
		this.#count(bid);
		if (bid.firstBlock > this.#nextBlock())
			table.change(record, bid.firstBlock, { stage: "ACCEPTED", reason: null, bid: bid.value });
		this.reconcile([target]);
	}

	/** The bid's owner has replaced or cancelled it. */
	withdraw(bid: Bid, how: Overtaken): void {
		// It is in a block; should that go away, it does not come back.
		const landed = this.#landed.get(bid);
		if (landed === undefined) this.#end(bid, how, null);
		else {
			bid.lastBlock = landed.number;
			this.#market.table.release(bid.submission);
		}
		// What it was replaced with is about to come, and takes its place at the builders.
		if (how === "REPLACED") queueMicrotask(() => this.reconcile([]));
		else this.reconcile([]);
	}

	/** It is the same bundle as another, which stands for it from now on: nobody is told. */
	forget(bid: Bid): void {
		this.#remove(bid);
	}

	/** A chain has been looked at: what follows for its links' bids. */
	chainPlanned({ ready, waiting }: SenderChain): void {
		const hashes = [...ready, ...waiting].map((entry) => entry.transaction.tx.hash);
		this.reconcile(hashes.filter((hash) => this.#market.bids.has(hash)));
	}

	/** The target has ended otherwise than in a block: so have the bids on it. */
	targetEnded(target: string): void {
		this.#counted.delete(target);
		for (const bid of this.#market.bids.of(target)) this.#end(bid, "DROPPED", "targetGone");
		this.reconcile([target]);
	}

	/** What bidders did has become known, or was undone by a reorganisation: the bids of those who are barred end. */
	conductChanged(): void {
		const { bids, conduct } = this.#market;
		for (const bid of bids.targets().flatMap((target) => bids.of(target))) {
			if (conduct.standing(bid.bidder)?.bar) this.#end(bid, "DROPPED", "barred");
		}
		this.reconcile(bids.targets());
	}

	/** Blocks have come, and the bids for them end. To be called when the tip is the last of them. */
	onChainUpdate({ applied, reverted, head }: ChainUpdate): void {
		const { bids, table } = this.#market;
		const { pool } = this.#deps;
		const gone = new Set(reverted.map((block) => block.hash));
		for (const [bid, { number, hash }] of this.#landed) {
			if (!gone.has(hash)) continue;
			const change = { stage: "NOT_INCLUDED", reason: "reorganised", blockHash: null, paid: null } as const;
			table.change(bid.record, number, change);
			this.#landed.delete(bid);
			bids.add(bid);
		}
		for (const block of applied) this.#close(block);
		for (const target of bids.targets()) {
			const isPending = pool.get(target) !== undefined;
			for (const bid of bids.of(target)) {
				const known = statusIn(bid.record, bid.lastBlock)?.stage;
				if (bid.lastBlock <= head.number && known === "NOT_INCLUDED") this.#remove(bid);
				else if (bid.lastBlock <= head.number) this.#end(bid, "NOT_INCLUDED", "notChosen");
				else if (!isPending) this.#end(bid, "DROPPED", "targetGone");
			}
		}
		for (const bid of this.#leaving)
			if ((bid.placement?.block ?? 0) <= head.number) this.#leaving.delete(bid);
		for (const [bid, { number }] of this.#landed) {
			if (number + KEPT_BLOCKS > head.number) continue;
			this.#landed.delete(bid);
			table.release(bid.submission);
		}
		for (const [key, { block }] of this.#rounds)
			if (block + KEPT_BLOCKS <= head.number) this.#rounds.delete(key);
		for (const target of this.#counted.keys())
			if (pool.get(target) === undefined) this.#counted.delete(target);
		this.reconcile(bids.targets());
	}

	/** What was out behind a target for the block with this hash that holds it, where that is remembered. */
	finalRound(target: string, blockHash: string): FinalRound | null {
		return this.#rounds.get(`${blockHash} ${target}`) ?? null;
	}

	/** Begins nothing more. */
	stop(): void {
		this.#checks.stop();
	}

	/** Works the winners of these targets, and of all that have changed, out anew. */
	reconcile(targets: Iterable<string>): void {
		const { bids, conduct, refunding } = this.#market;
		const { bidsPerTarget } = this.#options;
		for (const target of targets) this.#changed.add(target);
		if (this.#changed.size === 0) return;
		const affected = bids.linked(this.#changed);
		this.#changed.clear();
		const block = this.#nextBlock();
		const states = new Map<string, TargetState>();
		for (const target of affected) {
			const state = this.#stateOf(target, block);
			if (state !== null) states.set(target, state);
		}
		const open = affected.flatMap((target) =>
			states.has(target) ? bids.of(target).filter((bid) => isFor(bid, block)) : [],
		);
		const isKnown = (bid: Bid) => bid.basis === states.get(bid.target)?.basis;
		const rank = (from: readonly Bid[], places: number) =>
			winners(from, {
				places,
				buildersOf: (target) => refunding.filter((name) => states.get(target)?.builders.has(name)),
				isBehind: ({ bidder }) => (conduct.standing(bidder)?.behindUntil ?? null) !== null,
			});
		const wanted = rank(open.filter(isKnown), bidsPerTarget);
		const leaving = [...this.#leaving];
		this.#leaving.clear();
		for (const target of affected) {
			this.#applyWinners(target, block, wanted, [
				...bids.of(target),
				...leaving.filter((b) => b.target === target),
			]);
		}
		// Bids that were not simulated in this state are ranked as if valid: those that would win, and some more, are simulated next.
		const stuck = new Set<string>();
		for (const { target, client, tried } of open) {
			if (tried !== null && tried.basis === states.get(target)?.basis)
				stuck.add(tried.isTarget ? target : `${target} ${client}`);
		}
		const isStuck = ({ target, client }: Bid) => stuck.has(target) || stuck.has(`${target} ${client}`);
		const hopeful = open.every(isKnown) ? [] : open.filter((bid) => isKnown(bid) || !isStuck(bid));
		for (const places of [bidsPerTarget, bidsPerTarget + RESERVE]) {
			for (const bid of rank(hopeful, places).keys()) {
				const basis = states.get(bid.target)?.basis;
				if (basis !== undefined && !isKnown(bid)) this.#checks.check(bid, basis);
			}
		}
	}

	/** How the target stands if builders have it for `block`; null: they have not, and no bid goes out behind it. */
	#stateOf(hash: string, block: number): TargetState | null {
		const { simulation } = this.#market;
		const { pool } = this.#deps;
		const entry = pool.get(hash);
		const target = entry?.sentForBlock === block ? simulation.target(hash) : null;
		if (entry === undefined || target === null) return null;
		return { basis: simulation.basis(target), builders: entry.currentBuilders };
	}

	/** Sends and cancels bundles so that builders hold exactly the winning bids, then tells the owners of `bids` their status. */
	#applyWinners(target: string, block: number, wanted: ReadonlyMap<Bid, Award>, all: readonly Bid[]): void {
		const { table, bids } = this.#market;
		const { sender } = this.#deps;
		// An owner's next bid goes out under the same name, in the place of the one before.
		const held = new Set<string>();
		const makers = [...(this.#deps.pool.get(target)?.currentBuilders ?? [])];
		for (const bid of all) {
			const had = buildersHolding(bid, block);
			const builders = wanted.get(bid)?.builders ?? [];
			for (const name of builders) held.add(`${name} ${bid.owner}`);
			const fresh = builders.filter((name) => !had.includes(name));
			if (fresh.length > 0) this.#send(bid, fresh, block);
		}
		for (const bid of all) {
			const builders = wanted.get(bid)?.builders ?? [];
			const left = buildersHolding(bid, block).filter(
				(name) => !builders.includes(name) && !held.has(`${name} ${bid.owner}`),
			);
			bid.placement = builders.length === 0 ? null : { block, builders, makers };
			if (left.length === 0) continue;
			sender.cancelBundle(backrunName(target, bid.owner), block, left, (delivery) => {
				table.delivered(bid.record, block, delivery);
				this.#recordCancelOnTarget(target, block, delivery);
			});
		}
		// If no bid is at the builders, those that are left wait for their target, or for their simulation.
		const rest = held.size === 0 ? "ACCEPTED" : "OUTBID";
		for (const bid of all) {
			if (!isFor(bid, block) || !bids.holds(bid)) continue;
			const award = wanted.get(bid);
			const stage = award === undefined ? rest : award.isBest ? "BEST" : "RUNNER_UP";
			table.change(bid.record, block, { stage, reason: null, bid: bid.value });
		}
	}

	/** The target of the cancelled bundles has ended: how builders take the cancel is among its events too. */
	#recordCancelOnTarget(target: string, block: number, { kind: _, ...answer }: BundleDelivery): void {
		const { pool, records } = this.#deps;
		if (pool.get(target) !== undefined) return;
		records.emit(target, { type: "delivered", kind: "cancel", block, ...answer, backrun: true });
	}

	#send(bid: Bid, names: readonly string[], block: number): void {
		const { table } = this.#market;
		const { pool, records, sender, clock } = this.#deps;
		const entry = pool.get(bid.target);
		if (entry === undefined) return;
		let told = false;
		const tell = () => {
			// Its block may be there by now.
			if (told || records.get(bid.target)?.record.stage !== "BROADCAST") return;
			told = true;
			const what = { bundle: bid.record.hash, backrun: bid.backrun.hash, bid: bid.value.toString() };
			records.emit(bid.target, { type: "bundled", at: clock.now(), block, ...what, builders: names });
		};
		sender.sendBundle(
			backrunBundle(bid, entry.transaction, block, this.#options.refundPercent),
			names,
			(delivery) => table.delivered(bid.record, block, delivery),
			tell,
		);
	}

	/** A bid was simulated again. */
	#judged(bid: Bid, verdict: BidVerdict): void {
		if (verdict.kind === "unpaid") this.#end(bid, "DROPPED", "paysNothing");
		if (verdict.kind === "failed")
			this.#end(bid, "DROPPED", EXECUTION_FAILURES.has(verdict.error.code) ? "reverted" : "invalid");
		this.reconcile([bid.target]);
	}

	/** Tells each bidder what came of the block; by how much one was outbid, and by whom, the chain must tell first. */
	#close(block: Block): void {
		const { bids, table } = this.#market;
		const { number, hash } = block;
		const places = new Map(block.transactions.map((tx, i) => [tx.hash, i]));
		for (const target of bids.targets()) {
			const place = places.get(target);
			const all = bids.of(target);
			// Before its target it is in the block by another way, and no bid.
			const isIn = ({ backrun }: Bid) => place !== undefined && (places.get(backrun.hash) ?? -1) > place;
			const own = all.filter((bid) => isFor(bid, number) && !isIn(bid) && !isReorganised(bid, number));
			const sent = all.filter((bid) => buildersHolding(bid, number).length > 0);
			const landed = all.filter(isIn);
			if (place !== undefined)
				this.#rounds.set(`${hash} ${target}`, { block: number, sent, landed, lost: own });
			for (const bid of own) {
				const reason = place === undefined ? "targetNotIncluded" : this.#lossReason(bid, sent, landed);
				table.change(bid.record, number, { stage: "NOT_INCLUDED", reason });
				if (bid.lastBlock <= number) this.#remove(bid);
			}
			for (const bid of landed) {
				table.change(bid.record, number, { stage: "INCLUDED", reason: null, blockHash: hash, winner: null });
				bids.remove(bid);
				this.#landed.set(bid, { number, hash });
			}
		}
	}

	#lossReason(bid: Bid, sent: readonly Bid[], landed: readonly Bid[]): BundleReason {
		if (landed.some(({ value }) => value >= bid.value)) return "outbid";
		if (sent.includes(bid)) return "notChosen";
		if (bid.basis === null || bid.checking !== null) return "notSimulated";
		if (sent.length === 0) return "notChosen";
		if (sent.some(({ value }) => value >= bid.value)) return "outbid";
		return this.#market.conduct.standing(bid.bidder)?.behindUntil ? "rankedBehind" : "nonceTaken";
	}

	/** Counts a bundle once. */
	#count({ target, record: { hash } }: Bid): void {
		const { records, clock } = this.#deps;
		const counted = this.#counted.get(target) ?? new Set();
		this.#counted.set(target, counted);
		if (!counted.has(hash)) records.emit(target, { type: "bid", at: clock.now(), bundle: hash });
		counted.add(hash);
	}

	#end(bid: Bid, stage: BundleStage, reason: BundleReason | null): void {
		const block = Math.min(Math.max(bid.firstBlock, this.#nextBlock()), bid.lastBlock);
		if (this.#remove(bid)) this.#market.table.change(bid.record, block, { stage, reason });
	}

	/** Takes it out of the live ones; answers false where it was not there. */
	#remove(bid: Bid): boolean {
		const { bids, table } = this.#market;
		if (!bids.holds(bid)) return false;
		// A nonce that it had is free for other targets' bids.
		for (const target of bids.linked([bid.target])) this.#changed.add(target);
		bids.remove(bid);
		table.release(bid.submission);
		bid.checking?.stop.abort();
		if (bid.placement !== null) this.#leaving.add(bid);
		return true;
	}

	#nextBlock(): number {
		return this.#deps.tip.next()?.number ?? 0;
	}
}

/** Whether the block with this number that held it has gone, which its owner was told. */
function isReorganised({ record }: Bid, block: number): boolean {
	return statusIn(record, block)?.reason === "reorganised";
}

/** The builders that have it for `block`. */
function buildersHolding({ placement }: Bid, block: number): readonly string[] {
	return placement?.block === block ? placement.builders : [];
}
