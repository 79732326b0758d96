// Who wins: the live bids and what is out come in, the best bid of each target at each builder goes out. It sends nothing.

import { type AuctionBook, type Bid, isFor } from "../auction/book.ts";
import type { Tip } from "../domain/ports.ts";
import type { Pool } from "../pool/pool.ts";
import type { BidSimulation } from "./bidSimulation.ts";

export interface AwardsDependencies {
	readonly pool: Pool;
	readonly tip: Tip;
	readonly book: AuctionBook;
	readonly simulation: BidSimulation;
}

/** Says what shall be out. */
export class Awards {
	readonly #refunding: readonly string[];
	readonly #deps: AwardsDependencies;

	/** `refunding`: names of the builders that pay refunds. */
	constructor(options: { readonly refunding: readonly string[] }, dependencies: AwardsDependencies) {
		this.#refunding = options.refunding;
		this.#deps = dependencies;
	}

	/** The best bid of each target at each builder: they differ where bids are for some of the builders alone. */
	winners(): ReadonlyMap<string, ReadonlyMap<string, Bid>> {
		const { book, pool } = this.#deps;
		const mayWin = this.mayWin();
		const common = book.restricted ? null : book.winners(mayWin);
		const winners = new Map<string, Map<string, Bid>>();
		for (const name of this.#refunding) {
			const own = common ?? book.winners((bid) => (bid.builders?.includes(name) ?? true) && mayWin(bid));
			for (const [target, bid] of own) {
				if (pool.get(target)?.outTo.has(name) !== true) continue;
				const byBuilder = winners.get(target) ?? new Map<string, Bid>();
				winners.set(target, byBuilder.set(name, bid));
			}
		}
		return winners;
	}

	/** A function that says of bids whether they are valid now and may be out: it looks at each target once. */
	mayWin(): (bid: Bid) => boolean {
		const { pool, simulation, tip } = this.#deps;
		const block = tip.next()?.number ?? 0;
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

	/** Names of the builders that a bid may go to. */
	buildersOf(bid: Bid): readonly string[] {
		const outTo = this.#deps.pool.get(bid.target)?.outTo;
		return this.#refunding.filter(
			(name) => outTo?.has(name) === true && (bid.builders?.includes(name) ?? true),
		);
	}
}
