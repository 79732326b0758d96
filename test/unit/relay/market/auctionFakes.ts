// Fakes for the market's tests: simulations that answer on demand, accounts, builders that record
// their calls, and blocks.

import type { BundleAnswered, BundleSender } from "../../../../relay/broadcast/fanout.ts";
import type { OutgoingBundle } from "../../../../relay/domain/bundle.ts";
import type { AccountState, Block, NextBlock } from "../../../../relay/domain/chain.ts";
import type { Simulations } from "../../../../relay/domain/ports.ts";
import type {
	SimulationErrorCode,
	SimulationOutcome,
	SimulationRequest,
} from "../../../../relay/domain/simulation.ts";
import type { PaidBlock } from "../../../../relay/inclusion/payments.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { PRAGUE } from "../../../support/forks.ts";

/**
 * A backrun's result: wei that it pays, an error, a target that fails or whose nonce is not the
 * next one, an unavailable trace, a refusal that may pass or that won't, or a thrown error.
 */
export type Pays =
	| bigint
	| SimulationErrorCode
	| "targetFails"
	| "targetGap"
	| "blind"
	| "refused"
	| "impossible"
	| "throws";

/** One simulation that waits. */
interface Held {
	readonly label: string;
	readonly go: () => void;
}

/** A refusal that may pass, or one that won't. */
function withoutVerdict(what: "refused" | "impossible"): SimulationOutcome {
	const error = { code: "NODE_UNAVAILABLE", message: what } as const;
	return { ok: false, isImpossible: true, error, ...(what === "refused" ? { againMs: 2_000 } : {}) };
}

/** Simulations by the backruns' labels. */
export class FakeSimulations implements Simulations {
	names: (hash: string) => string = () => "?";
	/** Results of backruns, by label. */
	readonly pays = new Map<string, Pays>();
	/** Requests, as `label block stateBlock`. */
	readonly asked: string[] = [];
	readonly requests: SimulationRequest[] = [];
	/** Those of plain bundles, with their transactions' labels. */
	readonly plain: (SimulationRequest & { readonly labels: string })[] = [];
	/** Why transactions of plain bundles fail. */
	readonly fails = new Map<string, SimulationErrorCode | "refused" | "impossible">();
	/** Labels whose simulations wait for {@link finish}. */
	readonly holding = new Set<string>();
	/** Simulations of plain bundles answer even after they were aborted. */
	isLate = false;
	#held: Held[] = [];

	async simulate(request: SimulationRequest): Promise<readonly SimulationOutcome[]> {
		if (!request.measured) return this.#plain(request);
		const label = this.names(request.transactions.at(-1)?.hash ?? "");
		this.asked.push(`${label} ${request.block.number} ${request.block.stateBlock}`);
		this.requests.push(request);
		const pays = this.pays.get(label) ?? 0n;
		if (this.holding.has(label)) await new Promise<void>((go) => this.#held.push({ label, go }));
		if (pays === "throws") throw new UpstreamError("timeout");
		const passed = (paid: bigint | null): SimulationOutcome => ({
			ok: true,
			gasUsed: 21_000n,
			emitsEvents: true,
			paid,
		});
		const failed = (code: SimulationErrorCode): SimulationOutcome => ({
			ok: false,
			error: { code, message: messageOf(code) },
		});
		if (pays === "targetFails") return [failed("EXECUTION_REVERTED")];
		if (pays === "targetGap") return [failed("NONCE_GAP")];
		const before = request.transactions.slice(1).map(() => passed(null));
		if (pays === "blind") return [...before, passed(null)];
		if (pays === "refused" || pays === "impossible") return [...before, withoutVerdict(pays)];
		return [...before, typeof pays === "bigint" ? passed(pays) : failed(pays)];
	}

	/** A plain bundle: each transaction by its own label; those without an entry in `fails` pass. */
	async #plain(request: SimulationRequest): Promise<readonly SimulationOutcome[]> {
		const labels = request.transactions.map(({ hash }) => this.names(hash));
		this.plain.push({ ...request, labels: labels.join(" ") });
		const label = labels.find((one) => this.holding.has(one));
		if (label !== undefined) await new Promise<void>((go) => this.#held.push({ label, go }));
		if (request.signal?.aborted && !this.isLate) return [unavailable("withdrawn")];
		const outcomes: SimulationOutcome[] = [];
		for (const [i, { hash }] of request.transactions.entries()) {
			const fails = this.fails.get(labels[i] ?? "");
			if (fails === "NODE_UNAVAILABLE") return [...outcomes, unavailable("down")];
			if (fails === "refused" || fails === "impossible") return [...outcomes, withoutVerdict(fails)];
			if (fails === undefined) {
				outcomes.push({ ok: true, gasUsed: 21_000n, emitsEvents: true, paid: null });
				continue;
			}
			outcomes.push({ ok: false, error: { code: fails, message: messageOf(fails) } });
			if (request.mayFail?.has(hash) !== true) return outcomes;
		}
		return outcomes;
	}

	/** How many wait. */
	get waiting(): number {
		return this.#held.length;
	}

	/** Answers the oldest simulation that waits for `label`. */
	finish(label: string): void {
		this.#finish(
			label,
			this.#held.find((one) => one.label === label),
		);
	}

	/** Answers the newest one. */
	finishLast(label: string): void {
		this.#finish(
			label,
			this.#held.findLast((one) => one.label === label),
		);
	}

	#finish(label: string, held: Held | undefined): void {
		if (held === undefined) throw new Error(`nothing waits for ${label}`);
		this.#held = this.#held.filter((one) => one !== held);
		held.go();
	}

	/** The requests since the last time. */
	take(): string[] {
		return this.asked.splice(0);
	}
}

function unavailable(message: string): SimulationOutcome {
	return { ok: false, error: { code: "NODE_UNAVAILABLE", message } };
}

function messageOf(code: SimulationErrorCode): string {
	return code === "EXECUTION_REVERTED" ? "execution reverted: no luck" : `it is ${code}`;
}

/** The node's accounts. */
export class FakeAccounts {
	readonly nonces = new Map<string, bigint>();
	readonly contracts = new Set<string>();
	/** 1,000 ether unless said. */
	readonly balances = new Map<string, bigint>();
	/** Called for a fresh read; returns the number of its block. */
	onFresh: () => number = () => 100;
	/** Waited for before each answer. */
	gate: Promise<void> = Promise.resolve();

	async get(address: string): Promise<AccountState> {
		await this.gate;
		const code = this.contracts.has(address) ? "contract" : "none";
		return {
			address,
			block: 100,
			nonce: this.nonces.get(address) ?? 0n,
			balance: this.balances.get(address) ?? 10n ** 21n,
			code,
		};
	}

	async fresh(address: string): Promise<AccountState> {
		const block = this.onFresh();
		return { ...(await this.get(address)), block };
	}
	setHead(): void {}
}

/**
 * Builders that record their calls: `send T A for 101 to a,b`, `cancel backrun T for 101 at a,b`.
 */
export class FakeBundleSender implements BundleSender {
	labelOf: (hash: string) => string = () => "?";
	all: readonly string[] = ["a", "b"];
	/** Builders that accept a bundle with a refund. */
	refunding: readonly string[] = ["a", "b"];
	/** Builders that keep bundles to their times. */
	timed: readonly string[] = ["a", "b"];
	readonly lines: string[] = [];
	readonly sent: OutgoingBundle[] = [];
	last: BundleAnswered | null = null;
	/** If set, bundles wait in the lanes until one of {@link waiting} is called. */
	holding = false;
	readonly waiting: (() => void)[] = [];

	sendBundle(
		bundle: OutgoingBundle,
		builders: readonly string[],
		answered: BundleAnswered,
		left: (builder: string) => void = () => {},
	): readonly string[] {
		const taking = builders.filter((name) => bundle.refund === null || this.refunding.includes(name));
		const leaves = () => taking.forEach(left);
		if (this.holding) this.waiting.push(leaves);
		else leaves();
		const labels = bundle.transactions.map(({ tx }) => this.labelOf(tx.hash));
		this.lines.push(`send ${labels.join(" ")} for ${bundle.block} to ${taking.join()}`);
		this.sent.push(bundle);
		this.last = answered;
		return taking;
	}

	cancelBundle(
		{ name }: Pick<OutgoingBundle, "name">,
		block: number,
		builders: readonly string[],
		answered: BundleAnswered,
	): void {
		const named = name.replace(/(0x[0-9a-f]{64}).*/, (_, hash: string) => this.labelOf(hash));
		this.lines.push(`cancel ${named} for ${block} at ${builders.join()}`);
		this.last = answered;
	}

	names(): readonly string[] {
		return this.all;
	}

	/** Searchers' requests that each takes in a second. */
	requests = 1_000;

	perSecond(): number {
		return this.requests;
	}

	/** Builders by the coinbase of their blocks. */
	readonly coinbases = new Map<string, readonly string[]>();

	builtBy(coinbase: string): readonly string[] {
		return this.coinbases.get(coinbase) ?? [];
	}

	keepsTimes(name: string): boolean {
		return this.timed.includes(name);
	}

	terms(name: string, percent: number) {
		return this.refunding.includes(name) ? { percent, refundGas: 0 } : null;
	}

	/** The calls since the last time. */
	take(): string[] {
		return this.lines.splice(0);
	}
}

function blockOf(
	number: number,
	parentHash: string,
	hash: string,
	transactions: Block["transactions"] = [],
): Block {
	const header = { number, hash, parentHash, timestamp: number * 12, gasLimit: 30_000_000n, gasUsed: 0n };
	const fees = { baseFee: 1_000_000_000n, excessBlobGas: 0n, blobGasUsed: 0n, miner: "0xminer" };
	return { ...header, ...fees, transactions, touched: transactions.map(({ from }) => from) };
}

export function nextOf({ number, timestamp, baseFee, gasLimit }: Block): NextBlock {
	return { number: number + 1, timestamp: timestamp + 12, baseFee, blobBaseFee: 1n, gasLimit, fork: PRAGUE };
}

/** The chain, block by block from 100 on. */
export class FakeChain {
	#blocks: Block[] = [blockOf(100, "0x99", "0x100")];

	get head(): Block {
		return this.#blocks.at(-1) ?? blockOf(0, "", "0x0");
	}

	/** Adds a block with these transactions. */
	make(mined: readonly { tx: { hash: string; from: string } }[] = [], fork = ""): Block {
		const number = this.head.number + 1;
		const transactions = mined.map(({ tx }) => ({ hash: tx.hash, from: tx.from }));
		const block = blockOf(number, this.head.hash, `0x${number}${fork}`, transactions);
		this.#blocks.push(block);
		return block;
	}

	/** A block as the node gives it, or null if it has gone. */
	paid(hash: string): PaidBlock | null {
		const block = this.#blocks.find((one) => one.hash === hash);
		if (block === undefined) return null;
		const { number, timestamp, baseFee, transactions } = block;
		const rows = transactions.map((tx) => ({ hash: tx.hash, from: tx.from, to: null, value: 0n }));
		return { number, timestamp, coinbase: "0xminer", baseFee, transactions: rows };
	}

	/** The hash of the block with this number, or null. */
	hashAt(number: number): string | null {
		return this.#blocks.find((block) => block.number === number)?.hash ?? null;
	}

	/** A block that was removed is the head again. */
	put(block: Block): void {
		this.#blocks.push(block);
	}

	/** Removes the last `count` blocks; returns them, newest first. */
	unmake(count: number): Block[] {
		return this.#blocks.splice(-count).reverse();
	}
}
