// The searcher's bot: bids on the swaps in the relay's feed, once for each target and block. It
// uses only the relay's public websocket and its own node.

import type { Clock } from "../../../shared/clock.ts";
import type { ArbitrageMarket, Backrun } from "./market.ts";
import { readTarget, type Target } from "./pools.ts";
import { RelayRefusal, type RelaySocket, type Subscription } from "./relaySocket.ts";

/** A bundle's status, as the relay sends it; amounts are wei as decimal text. */
interface BundleStatus {
	readonly bundleHash: string;
	readonly blockNumber: number;
	readonly stage: string;
	readonly reason: string | null;
	readonly bid: string | null;
	/**
	 * The payment of the transaction behind the target; null until it was read from the chain, and if
	 * there is none.
	 */
	readonly paid: string | null;
}

/** The bot's events. */
export type SearcherNews =
	/** A swap in a watched pool appeared: the transaction as the relay sent it. */
	| { readonly kind: "seen"; readonly target: string; readonly transaction: unknown }
	/** The relay accepted a bid for `block`; `backrun` is the signed transaction. */
	| {
			readonly kind: "bid";
			readonly target: string;
			readonly block: number;
			readonly bundle: string;
			readonly backrun: Omit<Backrun, "raw">;
	  }
	| { readonly kind: "refused"; readonly target: string; readonly block: number; readonly why: string }
	/** Gas would cost more than the gain. */
	| { readonly kind: "noGain"; readonly target: string; readonly block: number }
	| { readonly kind: "status"; readonly status: BundleStatus }
	/** The target was mined in `block`, or was given up (null). */
	| { readonly kind: "settled"; readonly target: string; readonly block: number | null }
	/** An error prevented a bid; the bot tries again at the next head. */
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

/** Maximum swaps that are bid on at the same time; a newer one replaces the oldest. */
const MAX_TARGETS = 64;
/** The relay allows 16 subscriptions per connection; two of them are the feed and the heads. */
const MAX_FOLLOWED = 12;
/** The relay gives up a transaction after 25 blocks of 12 seconds. */
const PURSUED_MS = 300_000;
/** The final statuses of a bundle in a block. */
const FINAL: ReadonlySet<string> = new Set([
	...["INCLUDED", "LOST", "NOT_PLACED", "TARGET_NOT_MINED", "REPLACED", "CANCELLED"],
]);

/** Bids from {@link start} until the connection to the relay ends. */
export class Searcher {
	readonly #relay: RelaySocket;
	readonly #market: ArbitrageMarket;
	readonly #clock: Clock;
	readonly #tell: (news: SearcherNews) => void;
	/** By hash, oldest first. */
	readonly #targets = new Map<string, Pursued>();
	/** Hashes of targets that need a bid for the next block. */
	readonly #due = new Set<string>();
	/** Null while it is subscribing. */
	readonly #followed = new Map<string, Subscription | null>();
	#working = false;

	constructor({ relay, market, clock, tell }: SearcherDependencies) {
		this.#relay = relay;
		this.#market = market;
		this.#clock = clock;
		this.#tell = tell;
	}

	/** Subscribes to pending transactions and heads. Rejects if the relay refuses. */
	async start(): Promise<void> {
		await this.#relay.subscribe(["service_partialPendingTransactions"], (transaction) =>
			this.#onPending(transaction),
		);
		// A bid is for one block, so each target that is still pending needs another one for the next.
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

	/** Makes the bids one after another; never rejects. */
	async #work(): Promise<void> {
		this.#working = true;
		for (const hash of this.#due) {
			// Removed first: a head that arrives meanwhile adds it again, and this loop then handles it
			// again.
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
			// One uuid for each target, so a later bid on it replaces the earlier one.
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

	/** Follows the status of a bundle until it is final. */
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
				// Each builder's answer sends the status again.
				if (status.stage !== last) this.#tell({ kind: "status", status });
				last = status.stage;
				over = over || FINAL.has(status.stage);
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
