// Keeps the facts about bidders' conduct by block, and computes from the canonical ones who is barred and who ranks behind. On
// disk, so that a restart lifts no bar.

import { type Change, type KeyValueStore, prefixRange, StoreFormatError } from "../../shared/kv/port.ts";
import { safeError } from "../../shared/log.ts";
import {
	type ConductFact,
	type DatedFact,
	factsOf,
	isKept,
	partiesOf,
	type Round,
	standingOf,
	worst,
} from "../auction/conduct.ts";
import type { Bidder, Standing } from "../domain/bundleStatus.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import type { MarketDependencies } from "./market.ts";

/** The facts of one block. */
interface BlockFacts {
	readonly number: number;
	readonly hash: string;
	readonly facts: readonly ConductFact[];
}

/** Key prefix: one JSON entry per block, in block order. */
const PREFIX = "c/";
const DIGITS = 12;
/** Blocks deeper than this are not checked for reorganisations. */
const REORG_BLOCKS = 128;

type KnownBlock = BlockFacts & { isCanonical: boolean };

/** Stores facts and answers how a bidder stands. */
export class BidderConduct {
	readonly #deps: Pick<MarketDependencies, "kv" | "payments" | "tip" | "background" | "log" | "onFact">;
	/** By hash. */
	readonly #blocks = new Map<string, KnownBlock>();
	/** Blocks with facts, by the parties (see partiesOf) that they concern. */
	readonly #byParty = new Map<string, Set<KnownBlock>>();
	/** Standings by party, cached until the next change. */
	readonly #standings = new Map<string, Standing | null>();

	constructor(dependencies: MarketDependencies) {
		this.#deps = dependencies;
	}

	/** Loads the stored facts; call before the first block. Throws StoreFormatError on a damaged entry. */
	async load(): Promise<void> {
		for await (const [key, bytes] of this.#deps.kv.range(...prefixRange(PREFIX))) {
			const [, number, hash = ""] = key.split("/");
			try {
				const facts = JSON.parse(bytes.toString("utf8")) as readonly ConductFact[];
				this.#know({ number: Number(number), hash, facts });
			} catch {
				throw new StoreFormatError(key);
			}
		}
	}

	/** A bidder's standing for the next block; null: nothing against it. */
	standing(bidder: Bidder): Standing | null {
		const { barred, all } = partiesOf(bidder);
		return this.#standing(barred, all);
	}

	/** As {@link standing}, by the owner alone: before the backrun is decoded. */
	standingOfOwner(owner: string): Standing | null {
		return this.#standing([`owner ${owner}`], [`owner ${owner}`]);
	}

	/** How many parties are barred now. */
	get barred(): number {
		const parties = [...this.#byParty.keys()].filter((party) => !party.startsWith("client "));
		return parties.filter((party) => this.#standingOfParty(party)?.bar).length;
	}

	/** Records the facts of a block; resolves when they are on disk. Repeating it adds nothing. */
	async judge(block: { readonly number: number; readonly hash: string }, round: Round): Promise<void> {
		const { kv, onFact } = this.#deps;
		const known = this.#blocks.get(block.hash)?.facts ?? [];
		const isKnown = (fact: ConductFact) =>
			known.some(({ bundle, bidder }) => bundle === fact.bundle && bidder.owner === fact.bidder.owner);
		const fresh = factsOf(round).filter((fact) => !isKnown(fact));
		if (fresh.length === 0) return;
		const entry = { ...block, facts: [...known, ...fresh] };
		await put(kv, [entry]);
		this.#know(entry);
		for (const { kind } of fresh) onFact(kind);
	}

	/** The chain has changed: only facts of canonical blocks count. */
	onChainUpdate({ reverted, applied, head, gap }: ChainUpdate): void {
		for (const { hash } of reverted) this.#setCanonical(hash, false);
		for (const { hash } of applied) this.#setCanonical(hash, true);
		this.#standings.clear();
		if (this.#blocks.size === 0) return;
		const { background, kv, log } = this.#deps;
		const old = this.#forget(head.number);
		background.run("conduct", async () => {
			try {
				await put(kv, old);
				if (gap) await this.#verify(head.number);
			} catch (thrown) {
				log.warn("facts about bidders could not be brought up to date", { fault: safeError(thrown) });
			}
		});
	}

	/** After a gap, asks the node which blocks are canonical. */
	async #verify(head: number): Promise<void> {
		for (const block of this.#blocks.values()) {
			if (block.number <= head - REORG_BLOCKS) continue;
			const hash = await this.#deps.payments.canonicalHash(block.number);
			this.#setCanonical(block.hash, hash === block.hash);
		}
	}

	#standing(barred: readonly string[], all: readonly string[]): Standing | null {
		if (this.#blocks.size === 0) return null;
		return worst(
			all.map((party) => {
				const standing = this.#standingOfParty(party);
				if (standing === null || barred.includes(party)) return standing;
				return standing.behindUntil === null ? null : { ...standing, bar: null };
			}),
		);
	}

	#standingOfParty(party: string): Standing | null {
		const known = this.#standings.get(party);
		if (known !== undefined) return known;
		const standing = standingOf(this.#factsOf(party), this.#next());
		this.#standings.set(party, standing);
		return standing;
	}

	/** In block order; within a block, losses come before landed bids. */
	#factsOf(party: string): readonly DatedFact[] {
		const blocks = [...(this.#byParty.get(party) ?? [])].filter(({ isCanonical }) => isCanonical);
		return blocks
			.sort((a, b) => a.number - b.number)
			.flatMap(({ number, facts }) => {
				const own = facts.filter(({ bidder }) => partiesOf(bidder).all.includes(party));
				const rank = ({ kind }: ConductFact) => (kind === "lost" ? 0 : 1);
				return own.sort((a, b) => rank(a) - rank(b)).map((fact) => ({ ...fact, block: number }));
			});
	}

	#know(block: BlockFacts, isCanonical = true): void {
		const known = this.#blocks.get(block.hash);
		if (known !== undefined) this.#drop(known);
		this.#standings.clear();
		const entry: KnownBlock = { ...block, isCanonical: known?.isCanonical ?? isCanonical };
		this.#blocks.set(block.hash, entry);
		for (const party of partiesIn(entry)) {
			const blocks = this.#byParty.get(party);
			if (blocks === undefined) this.#byParty.set(party, new Set([entry]));
			else blocks.add(entry);
		}
	}

	#drop(block: KnownBlock): void {
		this.#blocks.delete(block.hash);
		this.#standings.clear();
		for (const party of partiesIn(block)) {
			const blocks = this.#byParty.get(party);
			blocks?.delete(block);
			if (blocks?.size === 0) this.#byParty.delete(party);
		}
	}

	/** Drops facts that can't count any more; returns the changed blocks, to be written. */
	#forget(head: number): readonly BlockFacts[] {
		const changed: BlockFacts[] = [];
		for (const block of [...this.#blocks.values()]) {
			const facts = block.facts.filter((fact) => isKept(fact, block.number, head));
			if (facts.length === block.facts.length) continue;
			this.#drop(block);
			if (facts.length > 0) this.#know({ ...block, facts }, block.isCanonical);
			changed.push({ number: block.number, hash: block.hash, facts });
		}
		return changed;
	}

	#setCanonical(hash: string, isCanonical: boolean): void {
		const block = this.#blocks.get(hash);
		if (block !== undefined) block.isCanonical = isCanonical;
		this.#standings.clear();
	}

	#next(): number {
		return this.#deps.tip.next()?.number ?? 0;
	}
}

function partiesIn({ facts }: BlockFacts): ReadonlySet<string> {
	return new Set(facts.flatMap(({ bidder }) => partiesOf(bidder).all));
}

/** Overwrites the stored facts of these blocks; a block without facts is deleted. */
async function put(kv: KeyValueStore, blocks: readonly BlockFacts[]): Promise<void> {
	const changes = blocks.map(({ number, hash, facts }): Change => {
		const key = `${PREFIX}${number.toString().padStart(DIGITS, "0")}/${hash}`;
		return { key, value: facts.length === 0 ? null : Buffer.from(JSON.stringify(facts)) };
	});
	if (changes.length > 0) await kv.write(changes);
}
