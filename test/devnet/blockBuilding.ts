// Chooses a block's transactions and refunds from the live orders, by trials, and says why the other orders are left
// out. The watched chain is not touched.

import type { Order } from "./orderBook.ts";
import { candidateOf, type Entry, type Failure, measure, verdictOf } from "./orderMeasuring.ts";
import { type Candidate, type Placed, schedule } from "./orderSchedule.ts";
import type { Pushed } from "./poolPush.ts";
import {
	type BuiltRefund,
	type CoinbaseAccount,
	type PlannedRefund,
	planRefunds,
	type RefundTerms,
	refundOf,
} from "./refunds.ts";
import type { TriedBlock, TriedTransaction } from "./trialChain.ts";

/** An order that is in a block. */
export interface BuiltOrder {
	/** Its id in the order book. */
	readonly order: number;
	readonly kind: "bundle" | "private";
	readonly uuid: string | null;
	/** Its transactions that are in the block. */
	readonly hashes: readonly string[];
	/** Those of them that are mined as reverted. */
	readonly reverted: readonly string[];
	/** Wei that reached the coinbase by it, before refunds. */
	readonly gain: bigint;
	readonly gasUsed: bigint;
	readonly refunds: readonly BuiltRefund[];
}

/** Why an order that was live for the block is not in it. */
export type LeftOutReason =
	/** One of its transactions is in the block by another order. */
	| "duplicate"
	/** A nonce is used, on the chain or in the block. */
	| "nonceTooLow"
	/** A transaction before it is missing. */
	| "nonceGap"
	/** A transaction reverted that may not. */
	| "reverted"
	/** A transaction cannot be mined at all: funds, a fee below the base fee, gas over the limit. */
	| "invalid"
	/** There was no gas left for it. */
	| "blockFull"
	/** Its refund could not be paid: the recipient does not take it, or it never came to rest. */
	| "refundFailed"
	/** minTimestamp or maxTimestamp. */
	| "timestamp";

/** An order that was live and stayed out. */
export interface LeftOutOrder {
	readonly order: number;
	readonly uuid: string | null;
	readonly reason: LeftOutReason;
	/** Hash of the transaction it failed at, where it is one. */
	readonly at: string | null;
}

/** What a block shall hold. */
export interface ChosenBlock {
	readonly transactions: readonly Pushed[];
	/** Hashes of those that revert. */
	readonly reverted: ReadonlySet<string>;
	readonly orders: readonly BuiltOrder[];
	readonly leftOut: readonly LeftOutOrder[];
}

/** What choosing needs. */
export interface ChoosingOptions {
	readonly orders: readonly Order[];
	/** Nonces at the head of every sender. */
	readonly nonces: ReadonlyMap<string, number>;
	readonly gasLimit: bigint;
	/** The coinbase's account at the head. */
	readonly account: Readonly<CoinbaseAccount>;
	readonly refundTerms: RefundTerms;
	/** Mines the transactions on the head, in a block of this gas limit, and takes the block back. */
	readonly tryBlock: (transactions: readonly Pushed[], gasLimit: bigint) => Promise<TriedBlock>;
}

/** A sequence with its refunds: what is tried, and in the end pushed. */
interface Plan {
	readonly places: readonly { readonly placed: Placed; readonly refunds: readonly PlannedRefund[] }[];
	readonly pushed: readonly (Pushed & { readonly gasLimit?: bigint })[];
}

/** So many rounds an order's refund may change until it is left out: its gain depends on being refunded. */
const MAX_REFUND_CHANGES = 5;
/** So many rounds one order at a time is given up among those that failed in company; then all that fail. */
const MAX_CHANCES = 12;
/** No transaction uses less gas. */
const LEAST_GAS = 21_000n;

/** Puts a block together; every order in it went through in a trial of the very block that is returned. */
export async function chooseBlock(options: ChoosingOptions): Promise<ChosenBlock> {
	const chooser = new BlockChooser(options);
	return chooser.choose();
}

class BlockChooser {
	readonly #options: ChoosingOptions;
	/** By the order's id. */
	readonly #entries: ReadonlyMap<number, Entry>;
	/** The last outcome of every transaction in a trial. */
	readonly #known = new Map<string, TriedTransaction>();
	/** Those that failed in company: they get another chance behind all others. */
	readonly #later = new Set<Entry>();
	readonly #refundChanges = new Map<Entry, number>();
	#chances = 0;

	constructor(options: ChoosingOptions) {
		this.#options = options;
		const { baseFee } = options.refundTerms;
		this.#entries = new Map(options.orders.map((order) => [order.id, entryOf(order, baseFee)]));
	}

	async choose(): Promise<ChosenBlock> {
		const { nonces, gasLimit, refundTerms } = this.#options;
		const tryBlock = remembering(this.#options.tryBlock);
		const { baseFee } = refundTerms;
		const known = this.#known;
		const entries = [...this.#entries.values()];
		await measure({ entries, nonces, baseFee, gasLimit, tryBlock, known });
		for (const entry of entries) if (entry.failsAlone) this.#later.add(entry);
		for (;;) {
			const candidates = entries
				.filter((entry) => entry.out === null)
				.map((entry) => candidateOf(entry, this.#later.has(entry) ? 1 : 0, known, baseFee));
			const { sequence, unplaced } = schedule(candidates, nonces);
			const plan = await this.#plan(sequence);
			const tried = await tryBlock(this.#fitting(plan.pushed), gasLimit);
			for (const [hash, outcome] of tried) known.set(hash, outcome);
			if (this.#settle(plan, tried)) return this.#result(plan, tried, unplaced);
		}
	}

	async #plan(sequence: readonly Placed[]): Promise<Plan> {
		const account = { ...this.#options.account };
		const places: Plan["places"][number][] = [];
		for (const placed of sequence) {
			const gains = gainsOf(placed, this.#known);
			for (const gain of gains.values()) account.balance += gain;
			const { refunds } = placed.candidate.order;
			places.push({ placed, refunds: await planRefunds(refunds, gains, account, this.#options.refundTerms) });
		}
		const pushed = places.flatMap(({ placed, refunds }) => [
			...placed.transactions,
			...refunds.flatMap(toPush),
		]);
		return { places, pushed };
	}

	/**
	 * Those for which there may be room: behind them the block is full, as far as their gas is known. Where they use less
	 * than they did, those left out come into the next round.
	 */
	#fitting(pushed: Plan["pushed"]): Plan["pushed"] {
		const { gasLimit } = this.#options;
		let used = 0n;
		const full = pushed.findIndex((tx) => {
			if (used + LEAST_GAS > gasLimit) return true;
			// What has no room is passed over.
			if (used + (tx.gasLimit ?? 0n) <= gasLimit) used += this.#known.get(tx.hash)?.gasUsed ?? 0n;
			return false;
		});
		return full < 0 ? pushed : pushed.slice(0, full);
	}

	/** True when the plan holds as it is. Otherwise what it learned is noted for the next one. */
	#settle(plan: Plan, tried: TriedBlock): boolean {
		const failed: { entry: Entry; failure: Failure }[] = [];
		let changed = false;
		let gas = 0n;
		for (const { placed, refunds } of plan.places) {
			const entry = this.#entryOf(placed.candidate);
			const verdict = verdictOf(placed, tried, gas, this.#options.gasLimit);
			const hashes = [...placed.transactions, ...refunds.flatMap(toPush)].map(({ hash }) => hash);
			for (const hash of hashes) gas += tried.get(hash)?.gasUsed ?? 0n;
			if (verdict.kind === "drop") entry.dropped.add(verdict.hash);
			if (verdict.kind === "drop") changed = true;
			if (verdict.kind === "failed") failed.push({ entry, failure: verdict.failure });
			if (verdict.kind !== "passed") continue;
			entry.pay = { gain: verdict.gain, gas: verdict.gas };
			const unpaid = refunds.find(({ hash }) => hash !== null && tried.get(hash)?.reverted !== false);
			if (unpaid !== undefined) {
				failed.push({ entry, failure: { reason: "refundFailed", at: unpaid.hash } });
			} else if (!this.#refundsFit(entry, placed, refunds, tried)) changed = true;
		}
		this.#giveUp(failed);
		return failed.length === 0 && !changed;
	}

	/** Whether the planned refunds are what the trial's gains make of them. */
	#refundsFit(entry: Entry, placed: Placed, refunds: readonly PlannedRefund[], tried: TriedBlock): boolean {
		const gains = gainsOf(placed, tried);
		const fit = placed.candidate.order.refunds.every(
			(refund, i) => refunds[i]?.amount === refundOf(refund, gains, this.#options.refundTerms),
		);
		if (fit) return true;
		const changes = (this.#refundChanges.get(entry) ?? 0) + 1;
		this.#refundChanges.set(entry, changes);
		if (changes > MAX_REFUND_CHANGES) entry.out = { reason: "refundFailed", at: null };
		return false;
	}

	/**
	 * Who fails for the first time gets another chance behind the others. Of those who had it the first is out (the
	 * next may have failed because of it); at once are those for whom there is no room, and who fail alone too.
	 */
	#giveUp(failed: readonly { entry: Entry; failure: Failure }[]): void {
		const hopeful = failed.filter(({ entry }) => !this.#later.has(entry));
		for (const { entry } of hopeful) this.#later.add(entry);
		const again = failed.filter(({ entry }) => !hopeful.some((other) => other.entry === entry));
		const certain = again.filter(({ entry, failure }) => entry.failsAlone || failure.reason === "blockFull");
		for (const { entry, failure } of certain) entry.out = failure;
		if (hopeful.length > 0 || certain.length > 0) return;
		const all = this.#chances++ >= MAX_CHANCES;
		for (const { entry, failure } of all ? again : again.slice(0, 1)) entry.out = failure;
	}

	#entryOf(candidate: Candidate): Entry {
		const entry = this.#entries.get(candidate.order.id);
		if (entry === undefined) throw new Error("an order that nobody gave");
		return entry;
	}

	#result(plan: Plan, tried: TriedBlock, unplaced: ReadonlyMap<number, Failure>): ChosenBlock {
		const orders = plan.places.map(({ placed, refunds }): BuiltOrder => {
			const { order } = placed.candidate;
			const hashes = placed.transactions.map(({ hash }) => hash);
			const outcomes = hashes.flatMap((hash) => tried.get(hash) ?? []);
			return {
				order: order.id,
				kind: order.kind,
				uuid: order.uuid,
				hashes,
				reverted: hashes.filter((hash) => tried.get(hash)?.reverted === true),
				gain: outcomes.reduce((sum, { gain }) => sum + gain, 0n),
				gasUsed: outcomes.reduce((sum, { gasUsed }) => sum + gasUsed, 0n),
				refunds: refunds.map(({ raw: _, ...refund }) => refund),
			};
		});
		const leftOut = [...this.#entries.values()].flatMap(({ order, out }): LeftOutOrder[] => {
			const failure = out ?? unplaced.get(order.id);
			return failure === undefined ? [] : [{ order: order.id, uuid: order.uuid, ...failure }];
		});
		const transactions = plan.pushed.map(({ raw, hash }) => ({ raw, hash }));
		const reverted = new Set([...tried].filter(([, outcome]) => outcome.reverted).map(([hash]) => hash));
		return { transactions, reverted, orders, leftOut };
	}
}

function entryOf(order: Order, baseFee: bigint): Entry {
	const cheap = order.transactions.find((tx) => tx.maxFeePerGas < baseFee && !tx.mayDrop);
	const out = cheap === undefined ? null : ({ reason: "invalid", at: cheap.hash } as const);
	return { order, dropped: new Set(), pay: null, failsAlone: false, out };
}

/** What each transaction of a place brings the coinbase, wei by hash. */
function gainsOf(placed: Placed, outcomes: ReadonlyMap<string, TriedTransaction>): Map<string, bigint> {
	return new Map(placed.transactions.map(({ hash }) => [hash, outcomes.get(hash)?.gain ?? 0n]));
}

function toPush({ raw, hash }: PlannedRefund): Pushed[] {
	return raw === null || hash === null ? [] : [{ raw, hash }];
}

/** The same block is tried once: where nothing pays by transfer, what was measured is what is built. */
function remembering(tryBlock: ChoosingOptions["tryBlock"]): ChoosingOptions["tryBlock"] {
	const outcomes = new Map<string, TriedBlock>();
	return async (transactions, gasLimit) => {
		const name = `${gasLimit} ${transactions.map(({ hash }) => hash).join()}`;
		const outcome = outcomes.get(name) ?? (await tryBlock(transactions, gasLimit));
		outcomes.set(name, outcome);
		return outcome;
	};
}
