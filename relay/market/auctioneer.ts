// PER TARGET: valid bids, looks at senders' chains and new blocks come in; the best bid of each target goes to the
// builders behind it, and each bidder learns what became of his. What is out is always the best that is valid now.

import type { Clock } from "../../shared/clock.ts";
import { backrunBundle, backrunName } from "../auction/backrunBundle.ts";
import { type AuctionBook, type Bid, isFor } from "../auction/book.ts";
import type { BundleRecords } from "../auction/bundleRecords.ts";
import { closeBids } from "../auction/closing.ts";
import type { LandedBids } from "../auction/landedBids.ts";
import type { Overtaken } from "../auction/slots.ts";
import type { Records } from "../chainActions.ts";
import type { BundleDelivery, BundleReason, BundleStage } from "../domain/bundleStatus.ts";
import type { Block, ChainUpdate } from "../domain/chain.ts";
import type { BundleSender, EventSink, Tip } from "../domain/ports.ts";
import { EXECUTION_FAILURES } from "../domain/simulation.ts";
import type { Pool, SenderChain } from "../pool/pool.ts";
import type { Awards } from "./awards.ts";
import type { BidChecks, Judged } from "./bidChecks.ts";
import type { BidVerdict } from "./bidSimulation.ts";

export interface AuctioneerDependencies {
	readonly pool: Pool;
	readonly records: Records;
	readonly events: EventSink;
	readonly tip: Tip;
	readonly book: AuctionBook;
	readonly bundles: BundleRecords;
	readonly awards: Awards;
	/** Simulates bids again where the state behind their target has changed. */
	readonly checks: BidChecks;
	readonly landed: LandedBids;
	readonly sender: BundleSender;
	readonly clock: Clock;
}

/** What is with the builders behind one target. */
interface Out {
	readonly block: number;
	/** The bid that each builder has, by its name. */
	readonly byBuilder: ReadonlyMap<string, Bid>;
}

const NOTHING: ReadonlyMap<string, Bid> = new Map();

/** Keeps the best bid of each target out. */
export class Auctioneer {
	readonly #refundPercent: number;
	readonly #deps: AuctioneerDependencies;
	readonly #out = new Map<string, Out>();
	/** Hashes of the bundles that were counted, by target. */
	readonly #counted = new Map<string, Set<string>>();

	/** `refundPercent`: the user's share of what a backrun brings. */
	constructor(options: { readonly refundPercent: number }, dependencies: AuctioneerDependencies) {
		this.#refundPercent = options.refundPercent;
		this.#deps = dependencies;
	}

	/** Takes a bid that was found valid on its basis. */
	add(bid: Bid): void {
		const { book, events, clock, awards } = this.#deps;
		const { target, hash } = bid;
		const freed = this.#makeRoom(bid);
		book.add(bid);
		const counted = this.#counted.get(target) ?? new Set();
		this.#counted.set(target, counted);
		if (!counted.has(hash)) events.emit(target, { type: "bid", at: clock.now(), bundle: hash });
		counted.add(hash);
		const block = Math.max(bid.firstBlock, this.#nextBlock());
		if (!awards.mayWin()(bid)) {
			this.#note(bid, block, "ACCEPTED");
			if (freed) this.award();
			return;
		}
		if (freed || !this.#loses(bid, block)) this.award();
		this.#note(bid, block, this.#isOut(bid) ? "BEST" : "OUTBID");
	}

	/** Ends what must give way to it where there is no room; answers whether anything of that was out. */
	#makeRoom({ target, firstBlock, backrun }: Bid): boolean {
		const { book } = this.#deps;
		let wasOut = false;
		const end = (bid: Bid): void => {
			wasOut ||= this.#isOut(bid);
			this.#end(bid, "DROPPED", "outbid");
		};
		const last = book.lastIfFull(target, firstBlock);
		if (last !== null) end(last);
		const { size } = backrun;
		for (let one = book.cheapestIfFull(size); one !== null; one = book.cheapestIfFull(size)) end(one);
		return wasOut;
	}

	/** The bid's owner has replaced or cancelled it. */
	withdraw(bid: Bid, how: Overtaken): void {
		this.#end(bid, how, null);
		// What it was replaced with is about to come, and may take its very place at the builders.
		if (how === "REPLACED") queueMicrotask(() => this.award());
		else this.award();
		this.#deps.checks.look(bid.target, true, this.#judge);
	}

	/** The very same bundle has come again: `bid` stands for it from now on, and nobody is told. */
	supersede(old: Bid, bid: Bid): void {
		const out = this.#out.get(old.target);
		this.#forget(old);
		if (out === undefined) return;
		const goes = (name: string) => this.#deps.awards.buildersOf(bid).includes(name);
		const byBuilder = [...out.byBuilder].map(
			([name, one]) => [name, one === old && goes(name) ? bid : one] as const,
		);
		this.#out.set(old.target, { block: out.block, byBuilder: new Map(byBuilder) });
	}

	/** A chain has been looked at: what it says of its links' bids is settled anew. */
	looked({ ready, waiting }: SenderChain): void {
		const { book, checks } = this.#deps;
		const hashes = [...ready, ...waiting].map((entry) => entry.transaction.tx.hash);
		const touched = hashes.filter((hash) => book.has(hash) || this.#out.has(hash));
		if (touched.length === 0) return;
		this.award();
		for (const hash of touched) checks.look(hash, true, this.#judge);
	}

	/** The target has ended otherwise than in a block: so have the bids on it. */
	gone(target: string): void {
		const { book, events } = this.#deps;
		this.#counted.delete(target);
		if (!book.has(target) && !this.#out.has(target)) return;
		for (const bid of book.of(target)) this.#end(bid, "DROPPED", "targetGone");
		// The target is in what is taken back: how builders take that belongs to its life too.
		this.#settle(target, NOTHING, (block, { kind: _, ...answer }) =>
			events.emit(target, { type: "delivered", kind: "cancel", block, ...answer, backrun: true }),
		);
		// A nonce that its best bid had is free for another target's.
		this.award();
	}

	/** Blocks have come: so have bids for them to their end. To be called when the tip is the last of them. */
	blocksCame({ applied, reverted, head }: ChainUpdate): void {
		const { book, pool, landed } = this.#deps;
		const back = reverted.flatMap((block) => landed.takeBack(block));
		for (const block of applied) {
			this.#close(block);
			const hashes = new Set(block.transactions.map((tx) => tx.hash));
			for (const bid of back)
				if (hashes.has(bid.target) && hashes.has(bid.backrun.hash)) landed.add(bid, block);
		}
		for (const target of book.targets()) {
			const isPending = pool.get(target) !== undefined;
			for (const bid of book.of(target)) {
				if (bid.lastBlock <= head.number) this.#end(bid, "NOT_INCLUDED", "notChosen");
				else if (!isPending) this.#end(bid, "DROPPED", "targetGone");
			}
		}
		for (const [target, out] of this.#out) if (out.block <= head.number) this.#out.delete(target);
		for (const target of this.#counted.keys())
			if (pool.get(target) === undefined) this.#counted.delete(target);
	}

	/** Sends what is the best now and is not out, and takes back what is out and is the best no more. */
	award(): void {
		const { book, pool, checks } = this.#deps;
		const winners = this.#deps.awards.winners();
		for (const target of new Set([...winners.keys(), ...this.#out.keys()])) {
			this.#settle(target, winners.get(target) ?? NOTHING);
		}
		// Those whose valid bids have all lost their nonces to other targets, or that have none that is known.
		for (const target of book.targets()) {
			const isOut = pool.get(target)?.outFor === this.#nextBlock();
			if (isOut && !winners.has(target)) checks.look(target, false, this.#judge);
		}
	}

	/** Makes what is out behind a target what it shall be. */
	#settle(
		target: string,
		wanted: ReadonlyMap<string, Bid>,
		cancelled: (block: number, delivery: BundleDelivery) => void = () => {},
	): void {
		const { sender, bundles, book } = this.#deps;
		const block = this.#nextBlock();
		const out = this.#out.get(target);
		const had = out?.block === block ? out.byBuilder : NOTHING;
		const news = [...wanted].filter(([name, bid]) => had.get(name) !== bid);
		const left = [...had].filter(([name]) => !wanted.has(name));
		if (wanted.size === 0) this.#out.delete(target);
		else this.#out.set(target, { block, byBuilder: wanted });
		if (news.length === 0 && left.length === 0) return;
		for (const [bid, names] of byBid(news)) this.#send(bid, names, block);
		for (const [bid, names] of byBid(left)) {
			sender.cancelBundle(backrunName(target), block, names, (delivery) => {
				bundles.delivered(bid, block, delivery);
				cancelled(block, delivery);
			});
		}
		// Where nothing is out, those that are left wait for their target, or for the node's word.
		const rest = wanted.size === 0 ? "ACCEPTED" : "OUTBID";
		for (const one of book.of(target)) {
			if (isFor(one, block)) this.#note(one, block, this.#isOut(one) ? "BEST" : rest);
		}
	}

	#send(bid: Bid, names: readonly string[], block: number): void {
		const { pool, records, sender, bundles, events, clock } = this.#deps;
		const entry = pool.get(bid.target);
		if (entry === undefined) return;
		let told = false;
		const tell = () => {
			// Its block may be there by now.
			if (told || records.get(bid.target)?.record.stage !== "BROADCAST") return;
			told = true;
			const { hash: bundle, backrun, value } = bid;
			const what = { bundle, backrun: backrun.hash, bid: value.toString(), builders: names };
			events.emit(bid.target, { type: "bundled", at: clock.now(), block, ...what });
		};
		sender.sendBundle(
			backrunBundle(bid, entry.transaction, block, this.#refundPercent),
			names,
			(delivery) => bundles.delivered(bid, block, delivery),
			tell,
		);
	}

	#isOut(bid: Bid): boolean {
		return [...(this.#out.get(bid.target)?.byBuilder.values() ?? [])].includes(bid);
	}

	/** Whether each of its builders has a bid that is no cheaper. */
	#loses(bid: Bid, block: number): boolean {
		const out = this.#out.get(bid.target);
		if (out?.block !== block) return false;
		return this.#deps.awards.buildersOf(bid).every((name) => {
			const other = out.byBuilder.get(name);
			return other !== undefined && other !== bid && this.#deps.book.holds(other) && other.value >= bid.value;
		});
	}

	/** A bid was simulated again. */
	readonly #judge = (bid: Bid, verdict: Judged): void => {
		const waits = verdict.kind === "targetFails" || !this.#out.has(bid.target);
		if (verdict.kind === "failed" || verdict.kind === "unpaid") this.#end(bid, "DROPPED", reasonOf(verdict));
		else this.#note(bid, this.#nextBlock(), waits ? "ACCEPTED" : "OUTBID");
		this.award();
		this.#deps.checks.look(bid.target, true, this.#judge);
	};

	/** Tells each bidder what came of the block. */
	#close(block: Block): void {
		const { book, bundles } = this.#deps;
		const { number } = block;
		for (const target of book.targets()) {
			const bids = book.of(target).filter((bid) => isFor(bid, number));
			const out = this.#out.get(target);
			const sent = new Set(out?.block === number ? out.byBuilder.values() : []);
			for (const { bid, change } of closeBids(block, target, bids, sent)) {
				const isIn = change === null;
				if (isIn) this.#deps.landed.add(bid, block);
				else bundles.change(bid, number, change);
				if (isIn || bid.lastBlock <= number) this.#forget(bid);
			}
		}
	}

	#end(bid: Bid, stage: BundleStage, reason: BundleReason | null): void {
		const block = Math.min(Math.max(bid.firstBlock, this.#nextBlock()), bid.lastBlock);
		if (this.#forget(bid)) this.#deps.bundles.change(bid, block, { stage, reason });
	}

	/** Takes it out of the book; answers false where it was not there. */
	#forget(bid: Bid): boolean {
		const had = this.#deps.book.remove(bid);
		if (had) bid.release();
		return had;
	}

	#note(bid: Bid, block: number, stage: BundleStage): void {
		this.#deps.bundles.change(bid, block, { stage, reason: null, bid: bid.value });
	}

	#nextBlock(): number {
		return this.#deps.tip.next()?.number ?? 0;
	}
}

function reasonOf(verdict: Extract<BidVerdict, { kind: "failed" | "unpaid" }>): BundleReason {
	if (verdict.kind === "unpaid") return "paysNothing";
	return EXECUTION_FAILURES.has(verdict.error.code) ? "reverted" : "invalid";
}

/** The builders' names by what they have. */
function byBid(pairs: readonly (readonly [string, Bid])[]): ReadonlyMap<Bid, readonly string[]> {
	const names = new Map<Bid, string[]>();
	for (const [name, bid] of pairs) names.set(bid, [...(names.get(bid) ?? []), name]);
	return names;
}
