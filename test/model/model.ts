// The rules of submission and cancellation as a model simple enough to be believed: it predicts
// stages, answers, pending nonces and what each builder gets. Written from the specification;
// shares no code with the relay, does no I/O.

/** The submission paths. */
export const PATHS = ["fast", "noreverts", "fullprivacy", "maxbackruns", "nochecks"] as const;
export type Path = (typeof PATHS)[number];

/** The stages of a settled transaction. `PENDING` and `SHARED` are passed through only. */
export type Stage =
	| "QUEUED"
	| "SIMULATION_FAILED"
	| "BROADCAST"
	| "INCLUDED"
	| "REVERTED"
	| "REPLACED"
	| "CANCELLED"
	| "EXPIRED"
	| "DROPPED";

/** A signed transaction: the fields that the rules use. */
export interface SignedTx {
	readonly hash: string;
	readonly raw: string;
	/** Index of its account. */
	readonly account: number;
	readonly nonce: number;
	/** Wei per gas. */
	readonly maxFee: bigint;
	readonly tip: bigint;
	/** It calls the gate, which reverts while it is shut. */
	readonly gated: boolean;
	/** To its own sender, without data. */
	readonly self: boolean;
}

/** A transaction that the relay has taken. */
export interface ModelTx extends SignedTx {
	/**
	 * The strictest that it was ever submitted on: who brings the same bytes again loosens nothing.
	 */
	path: Path;
	/** Submitted with soft cancellations, where the path has them. */
	soft: boolean;
	/** It was submitted so at any time, also where it expired and came again otherwise. */
	wasSoft: boolean;
	/** It was ever submitted on a path that shows nothing. */
	hidden: boolean;
	/** Searchers were shown it since it was last taken. */
	isShown: boolean;
	/** Searchers were shown it at any time, also where it expired and came again otherwise. */
	wasShown: boolean;
	/** How it ended, if not by the chain. Kept while it is mined all the same. */
	end: "REPLACED" | "CANCELLED" | "EXPIRED" | null;
	/** It took back another one, and is never sent itself. */
	cancels: boolean;
	/** It expired, since it was last taken. */
	expired: boolean;
	/** It was to be sent to builders at any time. */
	wasSent: boolean;
	/**
	 * For a transaction that had ended before any builder had it: the block that had mined it when
	 * the relay started again. From then on the relay does not see what the chain does with it. Null:
	 * the relay watches it.
	 */
	settled: { readonly mined: Mined | undefined } | null;
	/** It has passed a simulation since it was taken. */
	passed: boolean;
	/** The first block of its life; null until its nonce is next in line. */
	firstBlock: number | null;
	/** Its plan for the next block while it is pending; null otherwise. */
	now: "send" | "sendPrivately" | "hold" | "wait" | null;
}

export interface Mined {
	readonly block: number;
	readonly blockHash: string;
	readonly reverted: boolean;
}

/** The chain as a node tells it. */
export interface ChainView {
	readonly head: number;
	/** The next nonce of each account, after the head. */
	readonly nonces: readonly number[];
	/** By hash. */
	readonly mined: ReadonlyMap<string, Mined>;
}

/** The hash, or an error whose message begins so. */
export type Answer = { readonly hash: string } | { readonly error: string };

/** The paths that are simulated for each block, may not revert, and have soft cancellations. */
export function isNoRevert(path: Path): boolean {
	return path === "noreverts" || path === "fullprivacy";
}

/** The stricter of two paths. */
function stricter(one: Path, other: Path): Path {
	const order: readonly Path[] = ["fullprivacy", "noreverts", "fast", "maxbackruns", "nochecks"];
	return order[Math.min(order.indexOf(one), order.indexOf(other))] ?? one;
}

/** Whether searchers are never shown what comes on the path. */
function isHidden(path: Path): boolean {
	return path === "fullprivacy" || path === "nochecks";
}

/** 10 % more on both fees, fractions of a wei left out. */
export function isBump(fresh: SignedTx, held: SignedTx): boolean {
	return fresh.maxFee >= bumped(held.maxFee) && fresh.tip >= bumped(held.tip);
}

/** The least that is enough in the place of a fee, in wei. */
export function bumped(fee: bigint): bigint {
	const more = (fee * 11n) / 10n;
	return more > fee ? more : fee + 1n;
}

/** A transaction in a few letters, for people. */
export function short({ hash, account, nonce }: SignedTx): string {
	return `${hash.slice(0, 8)}(a${account} n${nonce})`;
}

/** An account's next nonce may be so far away. */
const MAX_GAP = 64;

export class ControlModel {
	readonly #lifeBlocks: number;
	readonly #taken = new Map<string, ModelTx>();
	chain: ChainView;
	gateOpen = true;

	constructor(options: { readonly lifeBlocks: number; readonly chain: ChainView }) {
		this.#lifeBlocks = options.lifeBlocks;
		this.chain = options.chain;
	}

	/** Another one in the same state, to be asked what would be. */
	copy(): ControlModel {
		const other = new ControlModel({ lifeBlocks: this.#lifeBlocks, chain: this.chain });
		other.gateOpen = this.gateOpen;
		for (const [hash, tx] of this.#taken) other.#taken.set(hash, { ...tx });
		return other;
	}

	/** Everything taken, in the order in which it first came. */
	all(): readonly ModelTx[] {
		return [...this.#taken.values()];
	}

	get(hash: string): ModelTx | undefined {
		return this.#taken.get(hash);
	}

	/** The block that mined it, as far as the relay looks. */
	mined(tx: ModelTx): Mined | undefined {
		return tx.settled === null ? this.chain.mined.get(tx.hash) : tx.settled.mined;
	}

	/**
	 * The relay started again. Transactions that had ended unsent are settled: nobody but their user
	 * could have them mined.
	 */
	restarted(): void {
		for (const tx of this.all()) if (tx.end !== null && !tx.wasSent) tx.settled = { mined: this.mined(tx) };
	}

	/** It may still be sent. */
	isPending(tx: ModelTx): boolean {
		return tx.end === null && this.mined(tx) === undefined && tx.nonce >= this.#nonce(tx.account);
	}

	/** The blocks of its life are over. */
	isOver({ firstBlock }: ModelTx): boolean {
		return firstBlock !== null && this.chain.head + 1 >= firstBlock + this.#lifeBlocks;
	}

	/** Ended by its user, whether or not a builder mined it all the same. */
	isEndedByUser(tx: ModelTx): boolean {
		return tx.end === "REPLACED" || tx.end === "CANCELLED";
	}

	stage(tx: ModelTx): Stage {
		const mined = this.mined(tx);
		if (mined !== undefined) return mined.reverted ? "REVERTED" : "INCLUDED";
		if (tx.end !== null) return tx.end;
		if (!this.isPending(tx)) return "DROPPED";
		if (tx.now === "hold") return "SIMULATION_FAILED";
		return tx.now === "wait" ? "QUEUED" : "BROADCAST";
	}

	status(tx: ModelTx): "INCLUDED" | "FAILED" | "UNKNOWN" {
		if (this.mined(tx) !== undefined) return "INCLUDED";
		return this.isPending(tx) && tx.now !== "hold" ? "UNKNOWN" : "FAILED";
	}

	/** The current holder of the nonce. */
	holder(account: number, nonce: number): ModelTx | undefined {
		return this.all().find((tx) => tx.account === account && tx.nonce === nonce && this.isPending(tx));
	}

	/** An account's pending ones in nonce order. */
	pendingOf(account: number): readonly ModelTx[] {
		return this.all()
			.filter((tx) => tx.account === account && this.isPending(tx))
			.sort((a, b) => a.nonce - b.nonce);
	}

	/** `base` raised over the account's pending nonces. */
	pendingNonce(account: number, base: number): number {
		let next = base;
		while (this.holder(account, next) !== undefined) next += 1;
		return next;
	}

	/** Submits a raw transaction on `path`. */
	submit(tx: SignedTx, path: Path, soft: boolean): Answer {
		const answer = { hash: tx.hash };
		const known = this.#taken.get(tx.hash);
		const next = this.#nonce(tx.account);
		if (known !== undefined) {
			if (this.isPending(known)) {
				// Its client asks for more.
				known.path = stricter(known.path, path);
				known.hidden ||= isHidden(path);
				known.soft ||= soft && isNoRevert(path);
				known.wasSoft ||= known.soft;
				this.plan();
				return answer;
			}
			if (this.mined(known) !== undefined) return answer;
			if (this.isEndedByUser(known) && tx.nonce >= next) return answer;
		}
		const holder = this.holder(tx.account, tx.nonce);
		if (tx.self && tx.nonce >= next && this.#endSoftly(tx, holder)) {
			this.#take(tx, path, soft, true);
			return answer;
		}
		if (tx.nonce < next) return { error: `nonce too low: next nonce ${next}, tx nonce ${tx.nonce}` };
		if (tx.nonce > next + MAX_GAP)
			return { error: `nonce too high: next nonce ${next}, tx nonce ${tx.nonce}` };
		if (holder !== undefined) {
			if (!isBump(tx, holder)) return { error: "replacement transaction underpriced" };
			holder.end = "REPLACED";
		}
		for (const expired of this.#expiredBefore(tx)) expired.end = "REPLACED";
		this.#take(tx, path, soft, false);
		this.plan();
		return answer;
	}

	/**
	 * A request to cancel by hash; `may`: by who submitted it, or with its sender's signature.
	 * Answers whether it is true.
	 */
	cancel(hash: string, may: boolean): boolean {
		const tx = this.#taken.get(hash);
		if (tx === undefined || !may || this.mined(tx) !== undefined) return false;
		if (this.isPending(tx)) tx.end = "CANCELLED";
		this.plan();
		return tx.end === "CANCELLED";
	}

	/** The chain is this now, in one step for who follows it. */
	moveTo(chain: ChainView): void {
		const { head } = this.chain;
		const wereMined = [...this.all()].filter((tx) => this.mined(tx) !== undefined);
		this.chain = chain;
		// A transaction that was public for a block is sent again whatever its age: its lifetime starts
		// again.
		for (const tx of wereMined)
			if (this.mined(tx) === undefined && tx.firstBlock !== null) tx.firstBlock = head + 1;
		for (const tx of this.all()) {
			if (!this.isOver(tx) || !this.isPending(tx)) continue;
			tx.end = "EXPIRED";
			tx.expired = true;
		}
		this.plan();
	}

	/** Plans each pending transaction for the next block, by its account's chain of nonces. */
	plan(): void {
		for (const tx of this.all()) tx.now = null;
		this.chain.nonces.forEach((_, account) => {
			this.#planFor(account);
		});
	}

	#planFor(account: number): void {
		let next = this.#nonce(account);
		let waits = false;
		let unchecked = false;
		// Whether all simulated so far pass in the state that the head leaves.
		let passes = true;
		let hidden = false;
		for (const tx of this.pendingOf(account)) {
			if (tx.nonce !== next) {
				wait(tx);
				continue;
			}
			next += 1;
			const isChecked = tx.path !== "nochecks";
			const mustPass = isChecked && (!tx.passed || isNoRevert(tx.path));
			const passesNow = !tx.gated || this.gateOpen;
			// No state is known behind a link that is never simulated, or that was sent though it fails
			// by now.
			if (waits || (isChecked && unchecked) || (mustPass && !passes)) {
				wait(tx);
				waits = true;
				continue;
			}
			tx.firstBlock ??= this.chain.head + 1;
			if (mustPass && !passesNow) {
				tx.now = "hold";
				waits = true;
				continue;
			}
			if (mustPass) tx.passed = true;
			unchecked ||= !isChecked;
			passes &&= passesNow;
			// A builder that may not have one link gets none behind it.
			hidden ||= tx.path === "fullprivacy";
			tx.now = hidden ? "sendPrivately" : "send";
			tx.wasSent = true;
		}
	}

	#nonce(account: number): number {
		return this.chain.nonces[account] ?? 0;
	}

	/** Whether `fresh` is a soft cancel; what it takes back is ended. */
	#endSoftly(fresh: SignedTx, holder: ModelTx | undefined): boolean {
		const had = this.all().filter(
			(one) => one.account === fresh.account && one.nonce === fresh.nonce && one.wasSoft,
		);
		// If nobody has the nonce, its last soft holder counts, unless it was replaced.
		const earlier = holder ?? had.findLast((one) => one.hash !== fresh.hash);
		if (earlier === undefined || earlier.end === "REPLACED") return false;
		if (holder !== undefined && !holder.soft) return false;
		if (holder !== undefined) holder.end = "CANCELLED";
		for (const tx of this.#expiredBefore(fresh)) tx.end = "CANCELLED";
		this.plan();
		return true;
	}

	/**
	 * Those that expired with the nonce of another one that comes: their bytes are not to bring them
	 * back behind it.
	 */
	#expiredBefore({ hash, account, nonce }: SignedTx): readonly ModelTx[] {
		const all = this.all().filter((tx) => tx.account === account && tx.nonce === nonce);
		return all.filter((tx) => tx.end === "EXPIRED" && tx.hash !== hash);
	}

	#take(tx: SignedTx, asked: Path, soft: boolean, cancels: boolean): void {
		const before = this.#taken.get(tx.hash);
		const path = before === undefined ? asked : stricter(before.path, asked);
		// Requests are over with the end of the transaction, so this one alone counts.
		const isSoft = soft && isNoRevert(asked);
		const wasSoft = isSoft || before?.wasSoft === true;
		const hidden = isHidden(asked) || before?.hidden === true;
		const isShown = path === "maxbackruns" && !hidden;
		const wasShown = isShown || before?.wasShown === true;
		this.#taken.delete(tx.hash);
		this.#taken.set(tx.hash, {
			...tx,
			path,
			soft: isSoft,
			wasSoft,
			hidden,
			isShown,
			wasShown,
			end: cancels ? "CANCELLED" : null,
			cancels,
			expired: false,
			wasSent: before?.wasSent === true,
			settled: null,
			passed: false,
			firstBlock: null,
			now: null,
		});
	}
}

/** Its life starts, again, when its turn comes. */
function wait(tx: ModelTx): void {
	tx.now = "wait";
	tx.firstBlock = null;
}
