// Keeps what bids have paid, by block, and answers from the payments of the canonical chain how a bidder stands. A bid that pays
// less in its block than it bid is short: who brought it is barred for some blocks. One that pays has landed, and proves its sender for
// bids of that size. Who is not proven has some places behind targets, and is spent when they are used up without a landing. A party is
// one name that a bidder goes by: `sender …` of the backrun, `owner …` (who signed the request), `client …` (a network).
// Payments are on disk, so that a restart lifts no bar and takes no proof. The rules are in auction/payments.ts and placesHad.ts.

import { networkAddress } from "../../shared/client.ts";
import { type Change, type KeyValueStore, prefixRange, StoreFormatError } from "../../shared/kv/port.ts";
import { safeError } from "../../shared/log.ts";
import {
	barOf,
	type DatedPayment,
	heldAgainst,
	isKept,
	type Landing,
	landingsOf,
	type Payment,
	partiesOf,
	provenBy,
} from "../auction/payments.ts";
import { PlacesHad } from "../auction/placesHad.ts";
import type { Bar, Bidder, Standing } from "../domain/bundleStatus.ts";
import type { ChainUpdate } from "../domain/chain.ts";
import { PAYMENTS } from "../domain/storeKeys.ts";
import type { MarketDependencies } from "./dependencies.ts";

/** The payments in one block. */
interface BlockPayments {
	readonly number: number;
	readonly hash: string;
	readonly payments: readonly Payment[];
}

/** Of a block's number in keys: one JSON entry per block, in block order. */
const DIGITS = 12;
/** Blocks deeper than this are not checked for reorganisations. */
const REORG_BLOCKS = 128;

type KnownBlock = BlockPayments & {
	readonly byParty: ReadonlyMap<string, readonly DatedPayment[]>;
	isCanonical: boolean;
};

/** What follows from a party's payments for the next block. */
interface PartyStanding {
	readonly bar: Bar | null;
	readonly landings: readonly Landing[];
}

const NOTHING: PartyStanding = { bar: null, landings: [] };

type LedgerDependencies = Pick<
	MarketDependencies,
	"kv" | "payments" | "tip" | "background" | "log" | "onPayment"
>;

/** Stores payments and answers how a bidder stands. */
export class PaymentLedger {
	readonly #deps: LedgerDependencies;
	/** By hash. */
	readonly #blocks = new Map<string, KnownBlock>();
	/** Blocks with payments, by the parties (see partiesOf) that they concern. */
	readonly #byParty = new Map<string, Set<KnownBlock>>();
	/** By party, worked out until the next change. */
	readonly #accounts = new Map<string, PartyStanding>();
	/** By sender, and by signer and network address: the highest bid in wei for which they are proven, until the next change. */
	readonly #proofs = new Map<string, Map<string, bigint>>();
	readonly #had = new PlacesHad();

	constructor(dependencies: LedgerDependencies) {
		this.#deps = dependencies;
	}

	/** Loads the stored payments; call before the first block. Throws StoreFormatError on a damaged entry. */
	async load(): Promise<void> {
		for await (const [key, bytes] of this.#deps.kv.range(...prefixRange(PAYMENTS))) {
			const [, number, hash = ""] = key.split("/");
			try {
				const stored = JSON.parse(bytes.toString("utf8")) as readonly Payment[];
				// Earlier versions also kept what was lost.
				const payments = stored.filter(({ kind }) => kind === "short" || kind === "landed");
				this.#know({ number: Number(number), hash, payments });
			} catch {
				throw new StoreFormatError(key);
			}
		}
	}

	/**
	 * The bar of any of a bidder's names for the next block, the one that lasts longest; null: none. A sender's bar does not count for
	 * who has proven it: others may have brought what it signed.
	 */
	bar(bidder: Bidder): Bar | null {
		const [sender = "", ...bringer] = heldAgainst(bidder);
		return this.#barOf(this.provenUpTo(bidder) > 0n ? bringer : [sender, ...bringer]);
	}

	/** As {@link bar}, by who brought it alone: before the backrun is decoded. */
	barOfBringer(owner: string, client: string): Bar | null {
		return this.#barOf([`owner ${owner}`, `client ${client}`, `client ${networkAddress(client)}`]);
	}

	/** The highest bid in wei for which the bidder is proven; 0: for none. */
	provenUpTo(bidder: Bidder): bigint {
		const party = `sender ${bidder.sender}`;
		if (!this.#byParty.has(party)) return 0n;
		const proofs = this.#proofs.get(party) ?? new Map<string, bigint>();
		this.#proofs.set(party, proofs);
		const by = `${bidder.owner} ${bidder.client}`;
		const known = proofs.get(by);
		if (known !== undefined) return known;
		const provenUpTo = provenBy(this.#paymentsOf(party), this.#next(), bidder);
		proofs.set(by, provenUpTo);
		return provenUpTo;
	}

	/** The last block for which the bidder is spent with a bid that it is not proven for; null: it is not for the next block. */
	spentUntil(bidder: Bidder): number | null {
		return this.#had.spentUntil(bidder, this.#next(), (party) => this.#account(party).landings);
	}

	/** How the bidder stands, for its owner. */
	standing(bidder: Bidder): Standing {
		return {
			bar: this.bar(bidder),
			provenUpTo: this.provenUpTo(bidder),
			spentUntil: this.spentUntil(bidder),
		};
	}

	/** How many parties are barred, and how many senders are proven now. */
	get counts(): { readonly barred: number; readonly proven: number } {
		const parties = [...this.#byParty.keys()];
		return {
			barred: parties.filter((party) => this.#account(party).bar !== null).length,
			proven: parties.filter((party) => party.startsWith("sender ") && this.#isProven(party)).length,
		};
	}

	/** Whether a sender is proven now by what this owner has brought. */
	isProven(owner: string): boolean {
		return this.#isProven(`owner ${owner}`);
	}

	#isProven(party: string): boolean {
		return this.#paymentsOf(party).some(({ bidder }) => this.provenUpTo(bidder) > 0n);
	}

	/** A bid of this value had a place for `block`. */
	hadPlace(bidder: Bidder, value: bigint, block: number): void {
		if (value > this.provenUpTo(bidder)) this.#had.note(bidder, value, block);
	}

	/** Records payments in a block; resolves when they are on disk, with those that are new. Repeating it adds nothing. */
	async record(
		block: { readonly number: number; readonly hash: string },
		payments: readonly Payment[],
	): Promise<readonly Payment[]> {
		const { kv, onPayment } = this.#deps;
		const known = this.#blocks.get(block.hash)?.payments ?? [];
		const fresh = payments.filter(
			({ bundle, bidder }) =>
				!known.some((one) => one.bundle === bundle && one.bidder.owner === bidder.owner),
		);
		if (fresh.length === 0) return fresh;
		const entry = { ...block, payments: [...known, ...fresh] };
		await put(kv, [entry]);
		this.#know(entry);
		for (const { kind } of fresh) onPayment(kind);
		return fresh;
	}

	/** The chain has changed: only payments in canonical blocks count. */
	onChainUpdate({ reverted, applied, head, gap }: ChainUpdate): void {
		for (const { hash } of reverted) this.#setCanonical(hash, false);
		for (const { hash } of applied) this.#setCanonical(hash, true);
		this.#accounts.clear();
		this.#proofs.clear();
		this.#had.forget(head.number);
		if (this.#blocks.size === 0) return;
		const { background, kv, log } = this.#deps;
		const old = this.#forget(head.number);
		background.run("payments", async () => {
			try {
				await put(kv, old);
				if (gap) await this.#verify(head.number);
			} catch (thrown) {
				log.warn("what bidders have paid could not be brought up to date", { fault: safeError(thrown) });
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

	#barOf(parties: readonly string[]): Bar | null {
		return parties.reduce<Bar | null>((worst, party) => {
			const { bar } = this.#account(party);
			return bar !== null && bar.until > (worst?.until ?? 0) ? bar : worst;
		}, null);
	}

	#account(party: string): PartyStanding {
		if (!this.#byParty.has(party)) return NOTHING;
		const known = this.#accounts.get(party);
		if (known !== undefined) return known;
		const payments = this.#paymentsOf(party);
		const block = this.#next();
		const account = {
			bar: barOf(payments, block),
			landings: landingsOf(payments, block),
		};
		this.#accounts.set(party, account);
		return account;
	}

	/** In block order. */
	#paymentsOf(party: string): readonly DatedPayment[] {
		const blocks = [...(this.#byParty.get(party) ?? [])].filter(({ isCanonical }) => isCanonical);
		return blocks.sort((a, b) => a.number - b.number).flatMap(({ byParty }) => byParty.get(party) ?? []);
	}

	#know(block: BlockPayments, isCanonical = true): void {
		const known = this.#blocks.get(block.hash);
		if (known !== undefined) this.#drop(known);
		const { number, hash, payments } = block;
		const entry: KnownBlock = {
			number,
			hash,
			payments,
			byParty: byPartyIn(block),
			isCanonical: known?.isCanonical ?? isCanonical,
		};
		this.#blocks.set(block.hash, entry);
		for (const party of entry.byParty.keys()) {
			const blocks = this.#byParty.get(party);
			if (blocks === undefined) this.#byParty.set(party, new Set([entry]));
			else blocks.add(entry);
			this.#changed(party);
		}
	}

	#drop(block: KnownBlock): void {
		this.#blocks.delete(block.hash);
		for (const party of block.byParty.keys()) {
			const blocks = this.#byParty.get(party);
			blocks?.delete(block);
			if (blocks?.size === 0) this.#byParty.delete(party);
			this.#changed(party);
		}
	}

	/** Drops payments that can't count any more; returns the changed blocks, to be written. */
	#forget(head: number): readonly BlockPayments[] {
		const changed: BlockPayments[] = [];
		for (const block of [...this.#blocks.values()]) {
			const payments = block.payments.filter((one) => isKept(one, block.number, head));
			if (payments.length === block.payments.length) continue;
			this.#drop(block);
			if (payments.length > 0) this.#know({ ...block, payments }, block.isCanonical);
			changed.push({ number: block.number, hash: block.hash, payments });
		}
		return changed;
	}

	#setCanonical(hash: string, isCanonical: boolean): void {
		const block = this.#blocks.get(hash);
		if (block === undefined) return;
		block.isCanonical = isCanonical;
		for (const party of block.byParty.keys()) this.#changed(party);
	}

	#changed(party: string): void {
		this.#accounts.delete(party);
		this.#proofs.delete(party);
	}

	#next(): number {
		return this.#deps.tip.next()?.number ?? 0;
	}
}

function byPartyIn({ number, payments }: BlockPayments): ReadonlyMap<string, readonly DatedPayment[]> {
	const byParty = new Map<string, DatedPayment[]>();
	for (const one of payments) {
		const dated = { ...one, block: number };
		for (const party of partiesOf(one.bidder)) byParty.set(party, [...(byParty.get(party) ?? []), dated]);
	}
	return byParty;
}

/** Overwrites the stored payments of these blocks; a block without any is deleted. */
async function put(kv: KeyValueStore, blocks: readonly BlockPayments[]): Promise<void> {
	const changes = blocks.map(({ number, hash, payments }): Change => {
		const key = `${PAYMENTS}${number.toString().padStart(DIGITS, "0")}/${hash}`;
		return { key, value: payments.length === 0 ? null : Buffer.from(JSON.stringify(payments)) };
	});
	if (changes.length > 0) await kv.write(changes);
}
