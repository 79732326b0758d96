// PER TARGET: valid bids, looks at senders' chains and new blocks come in; the best bid of each target goes to the
// builders behind it, and each bidder learns what became of his. What is out is always the best that is valid now.

import { LRUCache } from "lru-cache";
import type { Clock } from "../shared/clock.ts";
import { backrunBundle, backrunName } from "./auction/backrunBundle.ts";
import type { AuctionBook, Bid } from "./auction/book.ts";
import type { BundleRecords } from "./auction/bundleRecords.ts";
import { closeBids } from "./auction/closing.ts";
import type { Overtaken } from "./auction/slots.ts";
import type { BidChecks, Judged } from "./bidChecks.ts";
import type { BidSimulation, BidVerdict } from "./bidSimulation.ts";
import type { Records } from "./chainActions.ts";
import type { BundleReason, BundleStage } from "./domain/bundleStatus.ts";
import type { Block, ChainUpdate } from "./domain/chain.ts";
import type { BundleSender, EventSink, Tip } from "./domain/ports.ts";
import { EXECUTION_FAILURES } from "./domain/simulation.ts";
import type { Pool, SenderChain } from "./pool/pool.ts";

export interface AuctioneerDependencies {
	readonly pool: Pool;
	readonly records: Records;
	readonly events: EventSink;
	readonly tip: Tip;
	readonly book: AuctionBook;
	readonly bundles: BundleRecords;
	readonly simulation: BidSimulation;
	/** Simulates bids again where the state behind their target has changed. */
	readonly checks: BidChecks;
	readonly sender: BundleSender;
	readonly clock: Clock;
}

/** Blocks whose included bids are remembered. */
const LANDED_BLOCKS = 128;

/** The bid that is with the builders behind one target. */
interface Out {
	readonly bid: Bid;
	readonly block: number;
	/** Names of the builders that have had a bid on it for that block. */
	readonly builders: ReadonlySet<string>;
}

/** Keeps the best bid of each target out. */
export class Auctioneer {
	readonly #refundPercent: number;
	readonly #deps: AuctioneerDependencies;
	readonly #out = new Map<string, Out>();
	/** Hashes of the bundles that were counted, by target. */
	readonly #counted = new Map<string, Set<string>>();
	/** Bids that were included, by the hash of their block, as long as that may be reorganised. */
	readonly #landed = new LRUCache<string, readonly Bid[]>({ max: LANDED_BLOCKS });

	/** `refundPercent`: the user's share of what a backrun brings. */
	constructor(options: { readonly refundPercent: number }, dependencies: AuctioneerDependencies) {
		this.#refundPercent = options.refundPercent;
		this.#deps = dependencies;
	}

	/** Takes a bid that was found valid on its basis. */
	add(bid: Bid): void {
		const { book, events, clock } = this.#deps;
		const { target, hash } = bid;
		const last = book.lastIfFull(target, bid.firstBlock);
		if (last !== null) this.#end(last, "DROPPED", "outbid");
		book.add(bid);
		const counted = this.#counted.get(target) ?? new Set();
		this.#counted.set(target, counted);
		if (!counted.has(hash)) events.emit(target, { type: "bid", at: clock.now(), bundle: hash });
		counted.add(hash);
		const block = Math.max(bid.firstBlock, this.#nextBlock());
		if (!this.#mayWin()(bid)) {
			this.#note(bid, block, "ACCEPTED");
			return;
		}
		const best = this.#out.get(target);
		const isLive = best?.block === block && best.bid !== bid && book.holds(best.bid);
		const loses = isLive && best.bid.value >= bid.value;
		if (!loses) this.award();
		this.#note(bid, block, this.#out.get(target)?.bid === bid ? "BEST" : "OUTBID");
	}

	/** The bid's owner has replaced or cancelled it. */
	withdraw(bid: Bid, how: Overtaken): void {
		this.#end(bid, how, null);
		// What it was replaced with is about to come, and may take its very place at the builders.
		if (how === "REPLACED") queueMicrotask(() => this.award());
		else this.award();
	}

	/** The very same bundle has come again: `bid` stands for it from now on, and nobody is told. */
	supersede(old: Bid, bid: Bid): void {
		const out = this.#out.get(old.target);
		this.#forget(old);
		if (out?.bid === old && String(old.builders) === String(bid.builders)) {
			this.#out.set(old.target, { ...out, bid });
		}
	}

	/** A chain has been looked at: what it says of its links' bids is settled anew. */
	looked({ ready, waiting }: SenderChain): void {
		const { book, simulation, checks } = this.#deps;
		let touched = false;
		for (const entry of [...ready, ...waiting]) {
			const { hash } = entry.transaction.tx;
			if (!book.has(hash) && !this.#out.has(hash)) continue;
			touched = true;
			const target = simulation.target(hash);
			if (target !== null) for (const bid of book.of(hash)) checks.check(bid, target, this.#judge);
		}
		if (touched) this.award();
	}

	/** The target has ended otherwise than in a block: so have the bids on it. */
	gone(target: string): void {
		const { book } = this.#deps;
		this.#counted.delete(target);
		if (!book.has(target) && !this.#out.has(target)) return;
		for (const bid of book.of(target)) this.#end(bid, "DROPPED", "targetGone");
		this.#withdraw(target);
		// A nonce that its best bid had is free for another target's.
		this.award();
	}

	/** Blocks have come: so have bids for them to their end. To be called when the tip is the last of them. */
	blocksCame({ applied, reverted, head }: ChainUpdate): void {
		const back = reverted.flatMap((block) => this.#takeBack(block));
		for (const block of applied) {
			this.#close(block);
			const hashes = new Set(block.transactions.map((tx) => tx.hash));
			for (const bid of back)
				if (hashes.has(bid.target) && hashes.has(bid.backrun.hash)) this.#land(bid, block);
		}
		const { book, pool } = this.#deps;
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
		const { book } = this.#deps;
		const block = this.#nextBlock();
		const winners = book.winners(this.#mayWin());
		for (const [target, bid] of winners) {
			const out = this.#out.get(target);
			if (out?.bid !== bid || out.block !== block) this.#send(bid, block);
		}
		for (const target of [...this.#out.keys()]) if (!winners.has(target)) this.#withdraw(target);
	}

	/** A function that says of bids whether they are valid now and may be out: it looks at each target once. */
	#mayWin(): (bid: Bid) => boolean {
		const { pool, simulation } = this.#deps;
		const block = this.#nextBlock();
		const bases = new Map<string, string | null>();
		return (bid) => {
			if (bid.basis === null || !isFor(bid, block)) return false;
			let basis = bases.get(bid.target);
			if (basis === undefined) {
				const isOut = pool.get(bid.target)?.outFor === block;
				const target = isOut ? simulation.target(bid.target) : null;
				basis = target === null ? null : simulation.basis(target);
				bases.set(bid.target, basis);
			}
			return basis === bid.basis;
		};
	}

	#send(bid: Bid, block: number): void {
		const { pool, sender, bundles, events, clock, book } = this.#deps;
		const entry = pool.get(bid.target);
		if (entry === undefined) return;
		const before = this.#out.get(bid.target);
		const had = before?.block === block ? before.builders : new Set<string>();
		const answered = (delivery: Parameters<typeof bundles.delivered>[2]) =>
			bundles.delivered(bid, block, delivery);
		const builders = sender.sendBundle(
			backrunBundle(bid, entry.transaction, block, this.#refundPercent),
			[...entry.outTo].filter((builder) => bid.builders?.includes(builder) ?? true),
			answered,
		);
		// Those that had the one before, and may not have this one.
		const left = [...had].filter((builder) => !builders.includes(builder));
		if (left.length > 0) sender.cancelBundle(backrunName(bid.target), block, left, answered);
		this.#out.set(bid.target, { bid, block, builders: new Set(builders) });
		events.emit(bid.target, {
			type: "bundled",
			at: clock.now(),
			block,
			bundle: bid.hash,
			backrun: bid.backrun.hash,
			bid: bid.value.toString(),
			builders,
		});
		const mayWin = this.#mayWin();
		this.#note(bid, block, "BEST");
		for (const other of book.of(bid.target))
			if (other !== bid && mayWin(other)) this.#note(other, block, "OUTBID");
	}

	/** Nothing may be out behind the target any more. */
	#withdraw(target: string): void {
		const out = this.#out.get(target);
		if (out === undefined) return;
		this.#out.delete(target);
		const { sender, bundles, book } = this.#deps;
		const { block, bid } = out;
		if (block !== this.#nextBlock()) return;
		sender.cancelBundle(backrunName(target), block, [...out.builders], (delivery) =>
			bundles.delivered(bid, block, delivery),
		);
		// Those that are left wait for their target, or for the node's word.
		for (const one of book.of(target)) if (isFor(one, block)) this.#note(one, block, "ACCEPTED");
	}

	/** A bid was simulated again. */
	readonly #judge = (bid: Bid, verdict: Judged): void => {
		const waits = verdict.kind === "targetFails" || !this.#out.has(bid.target);
		if (verdict.kind === "failed" || verdict.kind === "unpaid") this.#end(bid, "DROPPED", reasonOf(verdict));
		else this.#note(bid, this.#nextBlock(), waits ? "ACCEPTED" : "OUTBID");
		this.award();
	};

	/** Tells each bidder what came of the block. */
	#close(block: Block): void {
		const { book, bundles } = this.#deps;
		const { number } = block;
		for (const target of book.targets()) {
			const bids = book.of(target).filter((bid) => isFor(bid, number));
			const out = this.#out.get(target);
			for (const { bid, change } of closeBids(block, target, bids, out?.block === number ? out.bid : null)) {
				const isIn = change === null;
				if (isIn) this.#land(bid, block);
				else bundles.change(bid, number, change);
				if (isIn || bid.lastBlock <= number) this.#forget(bid);
			}
		}
	}

	/** A block is no longer in the chain: neither are the bundles in it, which are answered. */
	#takeBack({ number, hash }: Block): readonly Bid[] {
		const bids = this.#landed.get(hash) ?? [];
		this.#landed.delete(hash);
		for (const bid of bids) {
			const change = { stage: "NOT_INCLUDED", reason: "reorganised", blockHash: null } as const;
			this.#deps.bundles.change(bid, number, change);
		}
		return bids;
	}

	/** A bid is in a block. */
	#land(bid: Bid, { number, hash }: Block): void {
		this.#landed.set(hash, [...(this.#landed.get(hash) ?? []), bid]);
		const change = { stage: "INCLUDED", reason: null, blockHash: hash, outbidBy: null } as const;
		this.#deps.bundles.change(bid, number, change);
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

function isFor(bid: Bid, block: number): boolean {
	return bid.firstBlock <= block && block <= bid.lastBlock;
}
