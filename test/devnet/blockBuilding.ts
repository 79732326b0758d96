// Chooses a block's transactions and refunds from the live orders, by trials, and says why the other orders are left
// out. The watched chain is not touched.

import { keccak256, type Wallet } from "ethers";
import type { Pushed } from "./anvilPool.ts";
import type { Order, OrderRefund, OrderTransaction } from "./orderBook.ts";
import { type Candidate, type Placed, schedule, type Unplaced } from "./orderSchedule.ts";
import type { TriedBlock, TriedTransaction } from "./trialChain.ts";

/** A refund that is paid, or why it is not. Wei. */
interface BuiltRefund {
	/** Checksummed. */
	readonly recipient: string;
	readonly amount: bigint;
	/** Hash of the transfer; null when it was skipped. */
	readonly hash: string | null;
	/** Why it was skipped; null when it was paid. */
	readonly skipped: "nothing to refund" | "coinbase balance" | null;
}

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

/**
 * Why an order that was live for the block is not in it. `duplicate`: one of its transactions is in the block by another
 * order. `nonceTooLow`: a nonce is used, on the chain or in the block. `nonceGap`: a transaction before it is missing.
 * `reverted`: one reverted that may not. `invalid`: one cannot be mined at all (funds, a fee below the base fee).
 * `blockFull`: there was no gas left. `refundFailed`: its recipient does not take it, or it never came to rest.
 * `timestamp`: minTimestamp or maxTimestamp.
 */
export type LeftOutReason =
	| Unplaced["reason"]
	| "reverted"
	| "invalid"
	| "blockFull"
	| "refundFailed"
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
interface ChoosingOptions {
	readonly orders: readonly Order[];
	/** Nonces at the head of every sender. */
	readonly nonces: ReadonlyMap<string, number>;
	readonly gasLimit: bigint;
	readonly baseFee: bigint;
	/** Signs refunds; nonce and wei at the head. */
	readonly coinbase: { readonly wallet: Wallet; readonly nonce: number; readonly balance: bigint };
	readonly chainId: bigint;
	/** Gas, at the base fee, that each refund bears itself; 0: the builder bears it. */
	readonly refundGas: bigint;
	/** Addresses (checksummed) with code: a transfer to them may need more than 21,000 gas. */
	readonly withCode: ReadonlySet<string>;
	/** Mines the transactions on the head, in a block of this gas limit, and takes the block back. */
	readonly tryBlock: (transactions: readonly Pushed[], gasLimit: bigint) => Promise<TriedBlock>;
}

type Failure = Pick<LeftOutOrder, "reason" | "at">;
type Refund = BuiltRefund & { readonly raw: string | null };

/** An order while a block is put together. */
interface Entry extends Candidate {
	/** Hashes of droppable transactions that did not go through. */
	readonly dropped: Set<string>;
	tier: number;
	rank: bigint;
	net: bigint;
	/** Fresh until it has gone through in a trial, or failed alone. One that failed in company is tried alone next. */
	state: "fresh" | "suspect" | "measured" | "failed";
	/** How often its refund has changed. */
	changes: number;
	/** Set once it is certain that it stays out. */
	out: Failure | null;
}

/** A place in a plan, with the refunds behind it. */
interface Place extends Placed<Entry> {
	readonly refunds: readonly Refund[];
}

/** Pay for each gas is kept with nine decimals of a wei. */
const RANK_SCALE = 1_000_000_000n;
/** Each round measures one of the orders that exclude each other; so many competing ones are enough. */
const MAX_ROUNDS = 200;
/** Orders are measured in blocks of so many gas limits at most. */
const MAX_ROOM = 4n;
/** No transaction uses less gas. */
const LEAST_GAS = 21_000n;
/** So many rounds an order's refund may change until it is left out: its gain depends on being refunded. */
const MAX_REFUND_CHANGES = 5;
/** So many rounds one order at a time is given up among those that failed in company; then all that fail. */
const MAX_CHANCES = 12;
const TRANSFER_GAS = 21_000n;
/** Enough for the receive function of a wallet contract. */
const CODE_TRANSFER_GAS = 100_000n;
/** Those that failed in company come behind all others. */
const [FIRST, LATER] = [0, 1];

/** Puts a block together; every order in it went through in a trial of the very block that is returned. */
export async function chooseBlock(options: ChoosingOptions): Promise<ChosenBlock> {
	return new BlockChooser(options).choose();
}

class BlockChooser {
	readonly #options: ChoosingOptions;
	readonly #entries: readonly Entry[];
	/** The last outcome of every transaction in a trial. */
	readonly #known = new Map<string, TriedTransaction>();
	/** By the hashes: where nothing pays by transfer, what was measured is what is built. */
	readonly #trials = new Map<string, TriedBlock>();
	#chances = 0;

	constructor(options: ChoosingOptions) {
		this.#options = options;
		this.#entries = options.orders.map((order) => entryOf(order, options.baseFee));
	}

	async choose(): Promise<ChosenBlock> {
		const { nonces } = this.#options;
		let rounds = 0;
		while (rounds < MAX_ROUNDS && (await this.#measure())) rounds += 1;
		for (const entry of this.#entries) if (entry.state === "failed") entry.tier = LATER;
		for (;;) {
			for (const entry of this.#entries) this.#rate(entry);
			const open = this.#entries.filter(({ out }) => out === null);
			const { sequence, unplaced } = schedule(open, nonces);
			const places = await this.#withRefunds(sequence);
			const transactions = places.flatMap(pushedOf);
			const tried = await this.#try(this.#fitting(transactions), this.#options.gasLimit);
			if (!this.#settle(places, tried)) continue;
			const leftOut = this.#entries.flatMap(({ order, out }): LeftOutOrder[] => {
				const failure = out ?? unplaced.get(order.id);
				return failure === undefined ? [] : [{ order: order.id, uuid: order.uuid, ...failure }];
			});
			const reverted = new Set([...tried].filter(([, outcome]) => outcome.reverted).map(([hash]) => hash));
			return { transactions, reverted, orders: places.map((place) => builtOf(place, tried)), leftOut };
		}
	}

	/**
	 * Tries what is fresh, as many together as do not exclude each other, behind those that bring it nonces: what one pays
	 * hardly ever depends on the others. False when there is nothing left to try.
	 */
	async #measure(): Promise<boolean> {
		const open = this.#entries.filter(({ out }) => out === null);
		const suspect = open.find(({ state }) => state === "suspect");
		const fresh = new Set(suspect === undefined ? open.filter(({ state }) => state === "fresh") : [suspect]);
		const senders = new Set([...fresh].flatMap(({ order }) => order.transactions.map(({ from }) => from)));
		const providers = open.filter(
			({ state, order }) => state === "measured" && order.transactions.some(({ from }) => senders.has(from)),
		);
		// Large ones first.
		for (const entry of fresh) entry.tier = -entry.order.transactions.length;
		for (const entry of providers) entry.tier = LATER;
		const { sequence } = schedule([...fresh, ...providers], this.#options.nonces);
		for (const entry of [...fresh, ...providers]) entry.tier = FIRST;
		const isAny = sequence.some(({ candidate }) => fresh.has(candidate));
		if (!isAny && suspect !== undefined) suspect.state = "failed";
		if (!isAny) return suspect !== undefined;
		const transactions = sequence.flatMap((placed) => placed.transactions);
		const room = this.#roomFor(transactions);
		const tried = await this.#try(transactions, room);
		let gas = 0n;
		for (const placed of sequence) {
			const { candidate: entry } = placed;
			const failure = this.#failureOf(placed, tried, gas, room);
			gas += gasOf(placed, tried);
			if (!fresh.has(entry)) continue;
			if (failure === null) entry.state = "measured";
			else if (failure === "dropped") continue;
			else if (fresh.size === 1) entry.state = "failed";
			// Where there was no room it comes into the next round.
			else if (failure.reason !== "blockFull") entry.state = "suspect";
			this.#rate(entry);
		}
		return true;
	}

	/** By what it paid in the last trial. */
	#rate(entry: Entry): void {
		if (entry.state !== "measured") return;
		const gains = entry.order.transactions.flatMap(({ hash }) =>
			entry.dropped.has(hash) ? [] : (this.#known.get(hash) ?? []),
		);
		const refunded = entry.order.refunds.reduce((sum, refund) => sum + shareOf(refund, this.#known), 0n);
		const gas = sumOf(gains, ({ gasUsed }) => gasUsed);
		entry.net = sumOf(gains, ({ gain }) => gain) - refunded;
		entry.rank = (entry.net * RANK_SCALE) / (gas > 0n ? gas : 1n);
	}

	/** The gas limit of a block to measure in: what a transaction pays hardly ever depends on it. */
	#roomFor(transactions: readonly OrderTransaction[]): bigint {
		const { gasLimit } = this.#options;
		const wanted = sumOf(transactions, (tx) => tx.gasLimit);
		const most = MAX_ROOM * gasLimit;
		return wanted <= gasLimit ? gasLimit : wanted < most ? wanted : most;
	}

	/**
	 * Those for which there may be room: behind them the block is full, as far as their gas is known. Where they use less
	 * than they did, those left out come into the next round.
	 */
	#fitting(transactions: readonly Pushed[]): readonly Pushed[] {
		const { gasLimit } = this.#options;
		let used = 0n;
		const full = transactions.findIndex(({ hash }) => {
			if (used + LEAST_GAS > gasLimit) return true;
			const gas = this.#known.get(hash)?.gasUsed ?? 0n;
			// What has no room is passed over.
			if (used + gas <= gasLimit) used += gas;
			return false;
		});
		return full < 0 ? transactions : transactions.slice(0, full);
	}

	async #try(transactions: readonly Pushed[], gasLimit: bigint): Promise<TriedBlock> {
		const name = `${gasLimit} ${transactions.map(({ hash }) => hash).join()}`;
		const tried = this.#trials.get(name) ?? (await this.#options.tryBlock(transactions, gasLimit));
		this.#trials.set(name, tried);
		for (const [hash, outcome] of tried) this.#known.set(hash, outcome);
		return tried;
	}

	/** At which transaction it failed. One that may be dropped is dropped, and the order tried again without. */
	#failureOf(
		{ candidate, transactions }: Placed<Entry>,
		tried: TriedBlock,
		gasBefore: bigint,
		gasLimit = this.#options.gasLimit,
	): Failure | "dropped" | null {
		let gas = gasBefore;
		for (const tx of transactions) {
			const outcome = tried.get(tx.hash);
			gas += outcome?.gasUsed ?? 0n;
			if (outcome !== undefined && (!outcome.reverted || tx.mayRevert)) continue;
			if (tx.mayDrop) {
				candidate.dropped.add(tx.hash);
				return "dropped";
			}
			const isFull = gas + tx.gasLimit > gasLimit && tx.gasLimit <= gasLimit;
			const missing = isFull ? "blockFull" : "invalid";
			return { reason: outcome === undefined ? missing : "reverted", at: tx.hash };
		}
		return null;
	}

	/** True when the plan holds as it is. Otherwise what it learned is noted for the next one. */
	#settle(places: readonly Place[], tried: TriedBlock): boolean {
		const failed = new Map<Entry, Failure>();
		let changed = false;
		let gas = 0n;
		for (const place of places) {
			const { candidate: entry, refunds } = place;
			const failure = this.#failureOf(place, tried, gas);
			gas += gasOf(place, tried);
			if (failure === "dropped") changed = true;
			else if (failure !== null) failed.set(entry, failure);
			else {
				entry.state = "measured";
				const unpaid = refunds.find(({ hash }) => hash !== null && tried.get(hash)?.reverted !== false);
				if (unpaid !== undefined) failed.set(entry, { reason: "refundFailed", at: unpaid.hash });
				else if (entry.order.refunds.some((one, i) => refunds[i]?.amount !== this.#amountOf(one, tried))) {
					changed = true;
					if (++entry.changes > MAX_REFUND_CHANGES) entry.out = { reason: "refundFailed", at: null };
				}
			}
		}
		this.#giveUp([...failed]);
		return failed.size === 0 && !changed;
	}

	/**
	 * Who fails for the first time gets another chance behind the others. Of those who had it the first is out (the
	 * next may have failed because of it); at once are those for whom there is no room, and who fail alone too.
	 */
	#giveUp(failed: readonly (readonly [Entry, Failure])[]): void {
		const hopeful = failed.filter(([{ tier }]) => tier !== LATER);
		const again = failed.filter(([{ tier }]) => tier === LATER);
		const certain = again.filter(([{ state }, { reason }]) => state === "failed" || reason === "blockFull");
		for (const [entry] of hopeful) entry.tier = LATER;
		for (const [entry, failure] of certain) entry.out = failure;
		if (hopeful.length > 0 || certain.length > 0) return;
		const all = this.#chances++ >= MAX_CHANCES;
		for (const [entry, failure] of all ? again : again.slice(0, 1)) entry.out = failure;
	}

	/** The wei of one refund, given what each transaction brings. */
	#amountOf(refund: OrderRefund, outcomes: TriedBlock): bigint {
		const { refundGas, baseFee } = this.#options;
		const amount = shareOf(refund, outcomes) - refundGas * baseFee;
		return amount > 0n ? amount : 0n;
	}

	/** Refunds are transfers from the coinbase, which spends what it earns. */
	async #withRefunds(sequence: readonly Placed<Entry>[]): Promise<Place[]> {
		let { nonce, balance } = this.#options.coinbase;
		const { wallet } = this.#options.coinbase;
		const { withCode, baseFee, chainId } = this.#options;
		const transfer = async (recipient: string, amount: bigint): Promise<Refund> => {
			const none = { recipient, amount, hash: null, raw: null };
			if (amount === 0n) return { ...none, skipped: "nothing to refund" };
			const gasLimit = withCode.has(recipient) ? CODE_TRANSFER_GAS : TRANSFER_GAS;
			const cost = amount + gasLimit * baseFee;
			if (balance < cost) return { ...none, skipped: "coinbase balance" };
			const raw = await wallet.signTransaction({
				...{ type: 2, chainId, nonce, to: recipient, value: amount, gasLimit },
				...{ maxFeePerGas: baseFee, maxPriorityFeePerGas: 0n },
			});
			nonce += 1;
			balance -= cost;
			return { recipient, amount, hash: keccak256(raw), raw, skipped: null };
		};
		const places: Place[] = [];
		for (const placed of sequence) {
			balance += sumOf(placed.transactions, ({ hash }) => this.#known.get(hash)?.gain ?? 0n);
			const refunds: Refund[] = [];
			for (const refund of placed.candidate.order.refunds)
				refunds.push(await transfer(refund.recipient, this.#amountOf(refund, this.#known)));
			places.push({ ...placed, refunds });
		}
		return places;
	}
}

function entryOf(order: Order, baseFee: bigint): Entry {
	const cheap = order.transactions.find((tx) => tx.maxFeePerGas < baseFee && !tx.mayDrop);
	const out = cheap === undefined ? null : ({ reason: "invalid", at: cheap.hash } as const);
	return { order, dropped: new Set(), tier: FIRST, rank: 0n, net: 0n, state: "fresh", changes: 0, out };
}

/** An order's part of what its transactions bring, wei. */
function shareOf(refund: OrderRefund, outcomes: TriedBlock): bigint {
	return (sumOf(refund.of, (hash) => outcomes.get(hash)?.gain ?? 0n) * refund.millionths) / 1_000_000n;
}

function pushedOf({ transactions, refunds }: Place): Pushed[] {
	const paid = refunds.flatMap(({ raw, hash }) => (raw === null || hash === null ? [] : [{ raw, hash }]));
	return [...transactions.map(({ raw, hash }) => ({ raw, hash })), ...paid];
}

function gasOf(placed: Placed<Entry> | Place, tried: TriedBlock): bigint {
	const pushed = "refunds" in placed ? pushedOf(placed) : placed.transactions;
	return sumOf(pushed, ({ hash }) => tried.get(hash)?.gasUsed ?? 0n);
}

function builtOf({ candidate: { order }, transactions, refunds }: Place, tried: TriedBlock): BuiltOrder {
	const hashes = transactions.map(({ hash }) => hash);
	return {
		...{ order: order.id, kind: order.kind, uuid: order.uuid, hashes },
		reverted: hashes.filter((hash) => tried.get(hash)?.reverted === true),
		gain: sumOf(hashes, (hash) => tried.get(hash)?.gain ?? 0n),
		gasUsed: sumOf(hashes, (hash) => tried.get(hash)?.gasUsed ?? 0n),
		refunds: refunds.map(({ raw: _, ...refund }) => refund),
	};
}

function sumOf<T>(items: readonly T[], value: (item: T) => bigint): bigint {
	return items.reduce((sum, item) => sum + value(item), 0n);
}
