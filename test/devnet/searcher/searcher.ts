// The bot: bids on the swaps in the relay's feed, once for each target and block. It speaks to the relay over its
// public websocket alone, and to a node of its own.

import type { Clock } from "../../../shared/clock.ts";
import type { ArbitrageMarket, Backrun } from "./market.ts";
import { readTarget, type Target } from "./pools.ts";
import { RelayRefusal, type RelaySocket, type Subscription } from "./relaySocket.ts";

/** One word of a bundle's status, as the relay sends it; amounts are wei as decimal text. */
interface BundleStatus {
	readonly bundleHash: string;
	readonly blockNumber: number;
	readonly status: string;
	readonly reason: string | null;
	readonly bid: string | null;
	readonly outbidBy: string | null;
}

/** What the bot tells of what it does. */
export type SearcherNews =
	/** A swap of ours came by: the transaction exactly as the relay showed it. */
	| { readonly kind: "seen"; readonly target: string; readonly transaction: unknown }
	/** The relay took a bid for `block`; `backrun` is what was signed. */
	| {
			readonly kind: "bid";
			readonly target: string;
			readonly block: number;
			readonly bundle: string;
			readonly backrun: Omit<Backrun, "raw">;
	  }
	| { readonly kind: "refused"; readonly target: string; readonly block: number; readonly why: string }
	/** Nothing would be left of the gain. */
	| { readonly kind: "noGain"; readonly target: string; readonly block: number }
	| { readonly kind: "status"; readonly status: BundleStatus }
	/** The target was mined in `block`, or is waited for no longer (null). */
	| { readonly kind: "settled"; readonly target: string; readonly block: number | null }
	/** Something went wrong on the way to a bid; the next head is another chance. */
	| { readonly kind: "fault"; readonly target: string; readonly why: string };

interface SearcherDependencies {
	readonly relay: RelaySocket;
	readonly market: ArbitrageMarket;
	readonly clock: Clock;
	readonly tell: (news: SearcherNews) => void;
}

interface Pursued extends Target {
	/** Milliseconds on the monotonic clock. */
	readonly since: number;
}

/** Swaps that are bid on at a time; a newer one takes the place of the oldest. */
const MAX_TARGETS = 64;
/** The relay allows 16 subscriptions a connection, and two of them are the feed and the heads. */
const MAX_FOLLOWED = 12;
/** The relay gives up a transaction after 25 blocks of 12 seconds. */
const PURSUED_MS = 300_000;
/** What ends a bundle for its block. */
const FINAL: ReadonlySet<string> = new Set(["INCLUDED", "NOT_INCLUDED", "REPLACED", "CANCELLED", "DROPPED"]);

/** Bids from {@link start} until its relay's connection is closed. */
export class Searcher {
	readonly #relay: RelaySocket;
	readonly #market: ArbitrageMarket;
	readonly #clock: Clock;
	readonly #tell: (news: SearcherNews) => void;
	/** By hash, oldest first. */
	readonly #targets = new Map<string, Pursued>();
	/** Hashes of targets that want a bid for the next block. */
	readonly #due = new Set<string>();
	/** Null while the subscription is on its way. */
	readonly #followed = new Map<string, Subscription | null>();
	#working = false;

	constructor({ relay, market, clock, tell }: SearcherDependencies) {
		this.#relay = relay;
		this.#market = market;
		this.#clock = clock;
		this.#tell = tell;
	}

	/** Subscribes to pending transactions and heads. Rejects where the relay refuses that. */
	async start(): Promise<void> {
		await this.#relay.subscribe(["service_partialPendingTransactions"], (transaction) =>
			this.#onPending(transaction),
		);
		// A bid is for one block: what is still pending wants another one for the next.
		await this.#relay.subscribe(["newHeads"], () => this.#want([...this.#targets.keys()]));
	}

	#onPending(transaction: unknown): void {
		const target = readTarget(transaction, this.#market.watched);
		if (target === null) return;
		const [oldest] = this.#targets.keys();
		if (this.#targets.size >= MAX_TARGETS && oldest !== undefined) this.#forget(oldest, null);
		this.#targets.set(target.hash, { ...target, since: this.#clock.monotonic() });
		this.#tell({ kind: "seen", target: target.hash, transaction });
		this.#want([target.hash]);
	}

	#want(hashes: readonly string[]): void {
		for (const hash of hashes) this.#due.add(hash);
		if (!this.#working) void this.#work();
	}

	/** One bid after another; it never rejects. */
	async #work(): Promise<void> {
		this.#working = true;
		for (const hash of this.#due) {
			// Taken out first: a head that comes meanwhile puts it in again, and this loop gets to it.
			this.#due.delete(hash);
			const target = this.#targets.get(hash);
			if (target === undefined) continue;
			try {
				await this.#pursue(target);
			} catch (thrown) {
				this.#tell({ kind: "fault", target: hash, why: messageOf(thrown) });
			}
		}
		this.#working = false;
	}

	async #pursue(target: Pursued): Promise<void> {
		const minedIn = await this.#market.minedIn(target.hash);
		if (minedIn !== null) return this.#forget(target.hash, minedIn);
		if (this.#clock.monotonic() - target.since > PURSUED_MS) return this.#forget(target.hash, null);
		const now = await this.#market.snapshot();
		const block = now.block + 1;
		const backrun = await this.#market.backrun(target, now);
		if (backrun === null) return this.#tell({ kind: "noGain", target: target.hash, block });
		await this.#bid(target, block, backrun);
	}

	async #bid(target: Target, block: number, { raw, ...backrun }: Backrun): Promise<void> {
		const bundle = {
			txs: [target.hash, raw],
			blockNumber: `0x${block.toString(16)}`,
			// One name for each target: a later bid on it takes the place of the earlier one.
			replacementUuid: target.hash,
		};
		try {
			// The relay answers when it has simulated the bid behind its target.
			const hash = String(await this.#relay.call("eth_sendBundle", [bundle]));
			this.#tell({ kind: "bid", target: target.hash, block, bundle: hash, backrun });
			await this.#follow(hash);
		} catch (thrown) {
			if (!(thrown instanceof RelayRefusal)) throw thrown;
			this.#tell({ kind: "refused", target: target.hash, block, why: thrown.message });
		}
	}

	/** Listens to what becomes of a bundle until that is final. */
	async #follow(bundle: string): Promise<void> {
		if (this.#followed.has(bundle) || this.#followed.size >= MAX_FOLLOWED) return;
		this.#followed.set(bundle, null);
		let over = false;
		let last = "";
		const end = async (subscription: Subscription): Promise<void> => {
			this.#followed.delete(bundle);
			await subscription.end();
		};
		try {
			const subscription = await this.#relay.subscribe(["service_bundleStatus", bundle], (result) => {
				const status = result as BundleStatus;
				// It is told of each builder's answer too.
				if (status.status !== last) this.#tell({ kind: "status", status });
				last = status.status;
				over = over || FINAL.has(status.status);
				const running = this.#followed.get(bundle);
				// A connection that closes meanwhile ends all subscriptions by itself.
				if (over && running) end(running).catch(() => {});
			});
			this.#followed.set(bundle, subscription);
			if (over) await end(subscription);
		} catch (thrown) {
			this.#followed.delete(bundle);
			throw thrown;
		}
	}

	#forget(hash: string, minedIn: number | null): void {
		this.#targets.delete(hash);
		this.#due.delete(hash);
		this.#tell({ kind: "settled", target: hash, block: minedIn });
	}
}

function messageOf(thrown: unknown): string {
	return thrown instanceof Error ? thrown.message : "something that is no error was thrown";
}
