// Chooses a block's transactions and refunds from the live orders, by trial blocks on another
// chain, and says why the other orders are left out. The public chain is not touched.

import { keccak256, type Wallet } from "ethers";
import type { Fork } from "../../shared/ethereum/forks.ts";
import type { Pushed, TriedBlock, TriedTransaction } from "./buildingNode.ts";
import type { Order, OrderRefund, OrderTransaction } from "./orderBook.ts";
import { type Candidate, type Placed, schedule, type Unplaced } from "./orderSchedule.ts";

/** A refund, paid or skipped. Amounts in wei. */
interface BuiltRefund {
	/** Checksummed. */
	readonly recipient: string;
	readonly amount: bigint;
	/** Hash of the transfer; null when it was skipped. */
	readonly hash: string | null;
	/** Why it was skipped; null when it was paid. */
	readonly skipped: "nothing to refund" | "coinbase balance" | null;
}

/** An order that landed in a block. */
export interface BuiltOrder {
	/** Its id in the order book. */
	readonly order: number;
	readonly kind: "bundle" | "private";
	readonly uuid: string | null;
	/** Its transactions that are in the block. */
	readonly hashes: readonly string[];
	/** Those of them that reverted. */
	readonly reverted: readonly string[];
	/** Wei that it paid to the coinbase, before refunds. */
	readonly gain: bigint;
	readonly gasUsed: bigint;
	readonly refunds: readonly BuiltRefund[];
}

/**
 * Why an order that was live for the block is not in it. `duplicate`: another order brought one of
 * its transactions into the block. `nonceTooLow`: a nonce is used, on the chain or in the block.
 * `nonceGap`: a transaction before it is missing. `reverted`: one reverted that may not. `invalid`:
 * one can't be mined at all (funds, a fee below the base fee). `blockFull`: there was no gas left.
 * `refundFailed`: the recipient does not accept the refund, or its amount did not settle.
 * `timestamp`: minTimestamp or maxTimestamp.
 */
export type LeftOutReason =
	| Unplaced["reason"]
	| "reverted"
	| "invalid"
	| "blockFull"
	| "refundFailed"
	| "timestamp";

/** A live order that is not in the block. */
export interface LeftOutOrder {
	readonly order: number;
	readonly uuid: string | null;
	readonly reason: LeftOutReason;
	/** Hash of the transaction at which it failed, if any. */
	readonly at: string | null;
}

/** The planned content of a block. */
export interface ChosenBlock {
	readonly transactions: readonly Pushed[];
	/** Hashes of those that revert. */
	readonly reverted: ReadonlySet<string>;
	readonly orders: readonly BuiltOrder[];
	readonly leftOut: readonly LeftOutOrder[];
}

/** The input of the choice. */
interface ChoosingOptions {
	readonly orders: readonly Order[];
	/** Each sender's nonce at the head. */
	readonly nonces: ReadonlyMap<string, number>;
	readonly gasLimit: bigint;
	readonly baseFee: bigint;
	/** Signs refunds; nonce and wei at the head. */
	readonly coinbase: { readonly wallet: Wallet; readonly nonce: number; readonly balance: bigint };
	readonly chainId: bigint;
	/** Whose rules the block has. */
	readonly fork: Fork;
	/**
	 * Gas whose cost, at the base fee, each refund pays itself; undefined: what the fork's rules
	 * take.
	 */
	readonly refundGas: bigint | undefined;
	/** Addresses (checksummed) with code: a transfer to them may need more gas than to others. */
	readonly withCode: ReadonlySet<string>;
	/** Most gas of a trial block, as a multiple of the gas limit. */
	readonly trialRoom: bigint;
	/** Executes the transactions in a trial block on the head with this gas limit. */
	readonly tryBlock: (transactions: readonly Pushed[], gasLimit: bigint) => Promise<TriedBlock>;
}

type Failure = Pick<LeftOutOrder, "reason" | "at">;
type Refund = BuiltRefund & { readonly raw: string | null };

/** The state of an order during the choice. */
interface Entry extends Candidate {
	/** Hashes of its droppable transactions that failed. */
	readonly dropped: Set<string>;
	tier: number;
	rank: bigint;
	net: bigint;
	/**
	 * Fresh until it has succeeded in a trial, or failed alone. One that failed together with others
	 * is tried alone next.
	 */
	state: "fresh" | "suspect" | "measured" | "failed";
	/** Number of times that its refund has changed. */
	changes: number;
	/** Whether the recipients of its refunds were empty accounts in the last trial. */
	isNew: readonly boolean[];
	/** Why it is not in the block, once that is final. */
	out: Failure | null;
}

/** An order in a plan, with the refunds after it. */
interface Place extends Placed<Entry> {
	readonly refunds: readonly Refund[];
}

/** Pay for each gas is kept with nine decimals of a wei. */
const RANK_SCALE = 1_000_000_000n;
/** Maximum rounds of measuring: each measures one of the orders that exclude each other. */
const MAX_ROUNDS = 200;
/**
 * An order is left out once its refund has changed in this many rounds: its gain then depends on
 * the refund itself.
 */
const MAX_REFUND_CHANGES = 5;
/**
 * For this many rounds only one of the orders that failed together is given up, afterwards all of
 * them.
 */
const MAX_CHANCES = 12;
/** Enough for the receive function of a wallet contract. */
const RECEIVE_GAS = 79_000n;
/** The tier of orders that failed together with others: after all other orders. */
const [FIRST, LATER] = [0, 1];

/** Builds a plan; every order in it succeeded in a trial of exactly the plan that is returned. */
export async function chooseBlock(options: ChoosingOptions): Promise<ChosenBlock> {
	return new BlockChooser(options).choose();
}

class BlockChooser {
	readonly #options: ChoosingOptions;
	readonly #entries: readonly Entry[];
	/** Each transaction's outcome in the last trial with it. */
	readonly #known = new Map<string, TriedTransaction>();
	/** Trial results by hashes: if no refund is paid, the measured block is often the built one. */
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
	 * Measures fresh orders, together unless they exclude each other, after those that bring their
	 * nonces: what an order pays rarely depends on the others. Returns false if none is fresh.
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
			// An order for which there was no room is in the next round.
			else if (failure.reason !== "blockFull") entry.state = "suspect";
			this.#rate(entry);
		}
		return true;
	}

	/** Ranks an order by what it paid in the last trial. */
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

	/** The gas limit of a trial block that measures: what a transaction pays rarely depends on it. */
	#roomFor(transactions: readonly OrderTransaction[]): bigint {
		const { gasLimit, trialRoom } = this.#options;
		const wanted = sumOf(transactions, (tx) => tx.gasLimit);
		const most = trialRoom * gasLimit;
		if (wanted <= gasLimit) return gasLimit;
		if (wanted >= most) return most;
		return wanted;
	}

	/**
	 * Those that may fit, by the gas that they used before. If they use less this time, those that
	 * were left out are in the next round.
	 */
	#fitting(transactions: readonly Pushed[]): readonly Pushed[] {
		const { gasLimit, fork } = this.#options;
		let used = 0n;
		const full = transactions.findIndex(({ hash }) => {
			if (used + fork.gas.base > gasLimit) return true;
			const gas = this.#known.get(hash)?.gasUsed ?? 0n;
			// Those that don't fit are skipped.
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

	/**
	 * Notes the transaction at which an order failed. If it may be dropped, the order is tried again
	 * without it.
	 */
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

	/**
	 * Compares a plan with its trial. Returns true if it works unchanged, else notes what must
	 * change.
	 */
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
				else {
					entry.isNew = refunds.map(({ hash }, i) => this.#isToNew(tried.get(hash ?? ""), entry.isNew[i]));
					const isOther = (one: OrderRefund, i: number) =>
						refunds[i]?.amount !== this.#amountOf(one, tried, entry.isNew[i]);
					if (!entry.order.refunds.some(isOther)) continue;
					changed = true;
					if (++entry.changes > MAX_REFUND_CHANGES) entry.out = { reason: "refundFailed", at: null };
				}
			}
		}
		this.#giveUp([...failed]);
		return failed.size === 0 && !changed;
	}

	/**
	 * An order that fails for the first time gets another chance after all others. Among those that
	 * fail again only the first is left out, since the next may have failed because of it. Orders
	 * without room, and those that fail alone, are left out at once.
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

	/**
	 * The amount of a refund in wei, given what each transaction pays, and whether it makes the
	 * recipient's account.
	 */
	#amountOf(refund: OrderRefund, outcomes: TriedBlock, isNew = false): bigint {
		const { refundGas, baseFee, fork } = this.#options;
		const { toEmpty, toExisting } = fork.payoutGas;
		const amount = shareOf(refund, outcomes) - (refundGas ?? (isNew ? toEmpty : toExisting)) * baseFee;
		return amount > 0n ? amount : 0n;
	}

	/**
	 * Whether a refund made its recipient's account, by the gas that it used; if it was not tried, as
	 * it was `known`.
	 */
	#isToNew(tried: TriedTransaction | undefined, known = false): boolean {
		const { toEmpty, toExisting } = this.#options.fork.transferGas;
		return toEmpty > toExisting && (tried === undefined ? known : tried.gasUsed >= toEmpty);
	}

	/** Signs refunds as transfers from the coinbase, which spends what it earns in the block. */
	async #withRefunds(sequence: readonly Placed<Entry>[]): Promise<Place[]> {
		let { nonce, balance } = this.#options.coinbase;
		const { wallet } = this.#options.coinbase;
		const { withCode, baseFee, chainId, fork } = this.#options;
		const transfer = async (recipient: string, amount: bigint): Promise<Refund> => {
			const none = { recipient, amount, hash: null, raw: null };
			if (amount === 0n) return { ...none, skipped: "nothing to refund" };
			const gasLimit = fork.transferGas.toEmpty + (withCode.has(recipient) ? RECEIVE_GAS : 0n);
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
			const { order, isNew } = placed.candidate;
			for (const [i, refund] of order.refunds.entries())
				refunds.push(await transfer(refund.recipient, this.#amountOf(refund, this.#known, isNew[i])));
			places.push({ ...placed, refunds });
		}
		return places;
	}
}

function entryOf(order: Order, baseFee: bigint): Entry {
	const cheap = order.transactions.find((tx) => tx.maxFeePerGas < baseFee && !tx.mayDrop);
	const out = cheap === undefined ? null : ({ reason: "invalid", at: cheap.hash } as const);
	return {
		...{ order, dropped: new Set(), tier: FIRST, rank: 0n, net: 0n, state: "fresh" },
		...{ changes: 0, isNew: [], out },
	};
}

/** Wei that an order's transactions pay to the coinbase. */
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
