// What bidders did in the last blocks, as the chain stands: who is barred and who ranks behind follows from it. Kept on
// disk, block by block, since a restart must not be a pardon.

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

/** Each block's facts are one entry, as JSON, found in the order of the blocks. */
const PREFIX = "c/";
const DIGITS = 12;
/** A block deeper than this is not reorganised away. */
const REORG_BLOCKS = 128;

type KnownBlock = BlockFacts & { isCanonical: boolean };

/** Remembers, and says how a bidder stands. */
export class BidderConduct {
	readonly #deps: Pick<MarketDependencies, "kv" | "payments" | "tip" | "background" | "log" | "onFact">;
	/** By hash. */
	readonly #blocks = new Map<string, KnownBlock>();
	/** Blocks with facts, by who they are about. */
	readonly #byParty = new Map<string, Set<KnownBlock>>();
	/** Of those that were asked for since the last change. */
	readonly #standings = new Map<string, Standing | null>();

	constructor(dependencies: MarketDependencies) {
		this.#deps = dependencies;
	}

	/** Reads what was kept; before the first block. Throws StoreFormatError on a damaged entry. */
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

	/** How a bidder stands for the next block; null: as anybody. */
	standing(bidder: Bidder): Standing | null {
		const { barred, all } = partiesOf(bidder);
		return this.#standing(barred, all);
	}

	/** As {@link standing}, by the owner alone: before anything else is known of the bid. */
	standingOfOwner(owner: string): Standing | null {
		return this.#standing([`owner ${owner}`], [`owner ${owner}`]);
	}

	/** How many of those that there are facts about are barred now. */
	get barred(): number {
		const parties = [...this.#byParty.keys()].filter((party) => !party.startsWith("client "));
		return parties.filter((party) => this.#standingOfParty(party)?.bar).length;
	}

	/** Takes down what a block comes to; resolves when it is on disk. The same may come again. */
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

	/** The chain has changed: facts of blocks that are no longer in it do not count, unless they come back. */
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

	/** Which blocks are in the chain after a time in which nobody looked. */
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

	/** In the order of the blocks, and what was lost in a block before what landed in it. */
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

	/** Drops what can't count any more; answers what is to be written of it. */
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

/** Writes the facts of these blocks in the place of what was kept of them; none: forgets the block. */
async function put(kv: KeyValueStore, blocks: readonly BlockFacts[]): Promise<void> {
	const changes = blocks.map(({ number, hash, facts }): Change => {
		const key = `${PREFIX}${number.toString().padStart(DIGITS, "0")}/${hash}`;
		return { key, value: facts.length === 0 ? null : Buffer.from(JSON.stringify(facts)) };
	});
	if (changes.length > 0) await kv.write(changes);
}
