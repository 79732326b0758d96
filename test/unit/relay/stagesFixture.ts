// The pipeline, the sender runner and the block loop with a real pool, records and store, around a
// fake node, builders and disk that the test controls. Time stands still.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockLoop } from "../../../relay/blockLoop.ts";
import type { Broadcaster } from "../../../relay/broadcast/fanout.ts";
import { type Block, ChainTip, type Inclusion, type NextBlock } from "../../../relay/domain/chain.ts";
import type { SimulationOutcome } from "../../../relay/domain/simulation.ts";
import type { PrivateTransaction, SubmitOutcome } from "../../../relay/domain/transaction.ts";
import type { FoundInclusion } from "../../../relay/inclusion/receipts.ts";
import { Pipeline } from "../../../relay/pipeline.ts";
import { SenderRunner } from "../../../relay/senderRunner.ts";
import { TransactionDisk } from "../../../relay/transactions/disk.ts";
import type { PoolReader } from "../../../relay/transactions/pool.ts";
import type { RecordsReader } from "../../../relay/transactions/records.ts";
import { Transactions } from "../../../relay/transactions/transactions.ts";
import { Background } from "../../../shared/background.ts";
import { BlobProofs } from "../../../shared/ethereum/blobProofs.ts";
import { recoverAddress } from "../../../shared/ethereum/signatures.ts";
import { UpstreamError } from "../../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../../shared/log.ts";
import { NO_TRACES } from "../../../shared/tracing/traces.ts";
import { PRAGUE } from "../../support/forks.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { UNDAMAGED } from "../../support/undamaged.ts";
import { FakeDisk } from "./fakeDisk.ts";

export const LIFE_BLOCKS = 25;
const GWEI = 1_000_000_000n;
/** The sender of all transactions that name no other. */
export const SENDER = testAccount(0).address;
/** Fees that replace whatever has others. */
export const DEAR = { maxFeePerGas: 2_000n * GWEI, maxPriorityFeePerGas: 1_000n * GWEI };

/** Runs a scenario on a fixture of its own. It also fails if a fault of ours was logged. */
export function scenario(name: string, run: (fixture: StagesFixture) => Promise<void>): void {
	test(name, async () => {
		const fixture = new StagesFixture();
		await run(fixture);
		assert.deepEqual(fixture.faults, []);
	});
}

/** Adds `count` empty blocks. */
export async function blocks(fixture: StagesFixture, count: number): Promise<void> {
	for (let i = 0; i < count; i += 1) await fixture.block();
}

/** A transaction that a self-transfer with its nonce cancels. */
export function soft(options: TxOptions & Partial<PrivateTransaction> = {}): PrivateTransaction {
	return privateTransaction({ path: "noreverts", softCancellations: true, ...options });
}

/** A self-transfer, another one for each value, too cheap to replace anything. */
export function toSelf(value: number | bigint = 0): PrivateTransaction {
	return privateTransaction({ to: SENDER, gasLimit: 21_000, value, maxFeePerGas: 2n * GWEI });
}

/** Cancels it by hash, as the client that submitted it. */
export async function cancel(
	fixture: StagesFixture,
	{ tx, submitterAddress }: PrivateTransaction,
): Promise<boolean> {
	const outcome = await fixture.pipeline.cancel({ hash: tx.hash, address: submitterAddress, signer: null });
	return outcome === "cancelled";
}

export const accepted = ({ tx }: PrivateTransaction): SubmitOutcome => ({
	outcome: "accepted",
	hash: tx.hash,
});
export const known = ({ tx }: PrivateTransaction): SubmitOutcome => ({ outcome: "known", hash: tx.hash });
export const cancels = ({ tx }: PrivateTransaction): SubmitOutcome => ({ outcome: "cancels", hash: tx.hash });

/** The requests to builders, one line each: `send 1 for 101 to a,b` is nonce 1 for block 101. */
class FakeBuilders implements Broadcaster {
	readonly lines: string[] = [];
	leastWaiting = 0;
	/** If set, what is sent waits until {@link leave} is called. */
	holding = false;
	/** The builders that each transaction was sent to, by hash. */
	readonly #out = new Map<string, Set<string>>();
	readonly #waiting = new Map<string, () => void>();

	eligible({ path, builders }: PrivateTransaction): readonly string[] {
		const allowed = path === "fullprivacy" ? ["b"] : ["a", "b"];
		return allowed.filter((name) => builders?.includes(name) ?? true);
	}
	send: Broadcaster["send"] = ({ transaction, block, lastBlock, left }, builders) => {
		const life = transaction.path === "nochecks" ? ` until ${lastBlock}` : "";
		const cells = transaction.tx.sidecar?.version === 1 ? " with cell proofs" : "";
		this.lines.push(`send ${transaction.tx.nonce}${cells} for ${block}${life} to ${builders.join()}`);
		const { hash } = transaction.tx;
		this.#waiting.set(hash, () => {
			this.#out.set(hash, new Set([...(this.#out.get(hash) ?? []), ...builders]));
			left?.();
		});
		if (!this.holding) this.leave();
	};
	/** Sends all that waits to the builders. */
	leave(): void {
		const waiting = [...this.#waiting.values()];
		this.#waiting.clear();
		for (const leaves of waiting) leaves();
	}
	sentTo(hash: string): readonly string[] {
		return [...(this.#out.get(hash) ?? [])];
	}
	builtBy(): readonly string[] {
		return [];
	}
	isOut(hash: string): boolean {
		return this.#out.has(hash);
	}
	restore(hash: string, builders: Iterable<string>): void {
		const names = new Set(builders);
		if (names.size > 0) this.#out.set(hash, names);
	}
	forget(hash: string): void {
		this.#out.delete(hash);
	}
	takeBack({ tx: { hash } }: PrivateTransaction): readonly string[] {
		this.#waiting.delete(hash);
		return [...(this.#out.get(hash) ?? [])];
	}
	cancel: Broadcaster["cancel"] = ({ tx }, builders, block) => {
		if (builders.length > 0) this.lines.push(`cancel ${tx.nonce} for ${block} at ${builders.join()}`);
	};
	/** The lines since the last time. */
	take(): string[] {
		return this.lines.splice(0);
	}
}

/** The node's accounts: nonces by address, plenty of money, and whether it answers. */
class FakeNode {
	readonly nonces = new Map<string, bigint>();
	readonly mined = new Map<string, Inclusion>();
	/** Hashes whose receipts are of a block that is not followed. */
	readonly otherFork = new Set<string>();
	down = false;
	/** How many reads of accounts fail first. */
	failures = 0;
	/** How often it was asked about an account. */
	asked = 0;
	#block = 0;

	setHead(head: Pick<Block, "number">): void {
		this.#block = head.number;
	}
	async get(address: string) {
		const block = this.#block;
		this.asked += 1;
		if (this.down || this.failures-- > 0) throw new UpstreamError("timeout");
		const nonce = this.nonces.get(address) ?? 0n;
		return { address, block, nonce, balance: 10n ** 21n, code: "none" as const };
	}
	fresh(address: string) {
		return this.get(address);
	}
	async inclusions(hashes: readonly string[], maxBlock: number): Promise<FoundInclusion[]> {
		if (this.down) throw new UpstreamError("timeout");
		return hashes.map((hash) => {
			if (this.otherFork.has(hash)) return "unfollowed";
			const found = this.mined.get(hash);
			return found !== undefined && found.block <= maxBlock ? found : null;
		});
	}
}

/** The error that a client receives where the store fails. */
export const STORE_OUT = {
	kind: "internal",
	message: "internal error: the store is unavailable, try again",
	data: { reason: "store unavailable" },
};

export interface BlockOptions {
	/** Our transactions in it. */
	readonly mined?: readonly PrivateTransaction[];
	/** Accounts that others' transactions in it raised to a nonce. */
	readonly used?: Readonly<Record<string, bigint>>;
	/** Wei; 1 gwei unless said. */
	readonly baseFee?: bigint;
	/** Seconds after the block before; 12 unless said. */
	readonly after?: number;
	/** Blocks that leave the chain when it comes, with what was mined in them. */
	readonly reverted?: readonly Block[];
}

/**
 * One for all, since its library takes seconds to load. Nothing waits too long for it by this
 * clock.
 */
const BLOB_PROOFS = new BlobProofs({}, { clock: new ManualClock() });

/** All of it, at head 100. */
export class StagesFixture {
	readonly clock = new ManualClock();
	readonly disk: FakeDisk;
	readonly builders = new FakeBuilders();
	readonly node = new FakeNode();
	readonly tip = new ChainTip();
	readonly pool: PoolReader;
	/** Faults of ours that were logged. */
	readonly faults: string[] = [];
	readonly records: RecordsReader;
	/** The transactions on the disk. */
	readonly store: TransactionDisk;
	readonly transactions: Transactions;
	readonly background: Background;
	readonly runner: SenderRunner;
	readonly pipeline: Pipeline;
	readonly loop: BlockLoop;
	/** Hashes that fail their simulation now, and the nonces that were simulated. */
	readonly failing = new Set<string>();
	readonly simulated: string[] = [];
	nodeSimulates = true;
	/** Whether transactions emit events, so that backruns are likely. */
	emitsEvents = false;
	blobBaseFee = 1n;
	/** Awaited before each simulation is answered. */
	simulationGate: Promise<void> = Promise.resolve();
	#chain: Block[] = [];

	constructor(disk = new FakeDisk()) {
		const { clock, node, tip, builders } = this;
		this.disk = disk;
		const log: Logger = {
			...silentLogger,
			error: (message, fields) => this.faults.push(`${message} ${JSON.stringify(fields)}`),
		};
		this.store = new TransactionDisk({ kv: disk, damaged: UNDAMAGED, log: silentLogger });
		this.background = new Background({}, { log });
		const { background } = this;
		const transactions = new Transactions(
			{ maxBytes: 256 * 1024 * 1024, txTtlBlocks: LIFE_BLOCKS, slot: { ms: 12_000 }, canary: null },
			{
				...{ kv: disk, damaged: UNDAMAGED, broadcaster: builders, tip, clock, onWritten: () => {} },
				...{ background, blobProofs: BLOB_PROOFS },
				// That the disk fails is no fault of ours.
				log: { ...log, child: (part) => (part === "store" ? silentLogger : log) },
				onChange: (sender, refresh) => this.runner.run(sender, "new", refresh),
			},
		);
		this.pool = transactions.pool;
		this.records = transactions.records;
		this.transactions = transactions;
		const shared = {
			...{ transactions, accounts: node, inclusions: node, tip, broadcaster: builders, background, clock },
			...{ traces: NO_TRACES, onStep: () => {} },
		};
		this.runner = new SenderRunner(
			{ feeRecipientOf: () => "0xfee" },
			{
				...{ ...shared, searchers: { senderPlanned: () => {} } },
				simulations: {
					simulate: ({ transactions, signal }) => {
						return new Promise((resolve, reject) => {
							signal?.addEventListener("abort", () => {
								resolve([{ ok: false, error: { code: "NODE_UNAVAILABLE", message: "withdrawn" } }]);
							});
							this.#simulate(transactions).then(resolve, reject);
						});
					},
				},
			},
		);
		const { runner } = this;
		const rules = { chainId: 31_337n };
		this.pipeline = new Pipeline(
			{ rules, txTtlBlocks: LIFE_BLOCKS, cancelPolicy: "origin" },
			{
				...shared,
				onLaterHead: () => {},
				onOutcome: () => {},
				log,
				blobProofs: BLOB_PROOFS,
				work: { recover: recoverAddress },
			},
		);
		this.loop = new BlockLoop({
			...{ ...shared, runner, log, onHead: [] },
			confirm: async () => {},
			nextOf: () => ({ ...nextOf(this.head), blobBaseFee: this.blobBaseFee }),
		});
		const timestamp = clock.now() / 1000;
		this.#chain.push(blockOf({ number: 100, parentHash: "", hash: "0x64", timestamp, baseFee: GWEI }));
		tip.set(this.head, nextOf(this.head));
		node.setHead(this.head);
	}

	get head(): Block {
		const head = this.#chain.at(-1);
		if (head === undefined) throw new Error("no block is left");
		return head;
	}

	/**
	 * Sends bytes as a client does, with the hash in its `again` parameter; resolves with its answer.
	 */
	submit(transaction: PrivateTransaction, again: string | null = null): Promise<SubmitOutcome> {
		const { tx, receivedAt: _, owners, sharing: __, ...options } = transaction;
		const address = owners[0]?.address ?? null;
		return this.pipeline.submit({ ...options, raw: tx.raw, address, again, trace: null });
	}

	/** Submits, and waits for all that follows. */
	async take(...transactions: readonly PrivateTransaction[]): Promise<SubmitOutcome[]> {
		const outcomes: SubmitOutcome[] = [];
		for (const transaction of transactions) outcomes.push(await this.submit(transaction));
		await this.quiet();
		return outcomes;
	}

	/** Adds the next block, and waits until it is processed with all that follows. */
	async block(options: BlockOptions = {}): Promise<void> {
		const { reverted = [] } = options;
		for (const { transactions } of reverted) {
			for (const { hash, from } of transactions) {
				this.node.mined.delete(hash);
				this.node.nonces.delete(from);
			}
		}
		await this.work([this.#next(options)], reverted);
	}

	/** Adds a block `ms` later, by the chain's time and the machine's. Nothing happens before. */
	async pass(ms: number): Promise<void> {
		await this.clock.advance(ms);
		await this.block({ after: ms / 1000 });
	}

	/** The stage, or for an archived transaction the stage that was kept. */
	async stageOrKept(transaction: PrivateTransaction): Promise<string | undefined> {
		return this.stage(transaction) ?? (await this.store.archived(transaction.tx.hash))?.stage;
	}

	async work(applied: readonly Block[], reverted: readonly Block[], gap = false): Promise<void> {
		await this.loop.onUpdate({ head: this.head, applied, reverted, gap });
		await this.quiet();
	}

	/** Resolves when nothing runs in the background. */
	async quiet(): Promise<void> {
		await this.clock.advance(0);
		await this.background.join();
	}

	stage(transaction: PrivateTransaction): string | undefined {
		return this.records.get(transaction.tx.hash)?.record.stage;
	}

	stages(...transactions: readonly PrivateTransaction[]): (string | undefined)[] {
		return transactions.map((transaction) => this.stage(transaction));
	}

	/** Another process on the same disk, before its first block. */
	async restart(): Promise<StagesFixture> {
		const next = new StagesFixture(this.disk);
		await next.transactions.load();
		for (const [address, nonce] of this.node.nonces) next.node.nonces.set(address, nonce);
		return next;
	}

	#next({ mined = [], used = {}, baseFee = GWEI, after = 12 }: BlockOptions): Block {
		const number = this.head.number + 1;
		const hash = `0x${number.toString(16)}`;
		mined.forEach(({ tx }, index) => {
			const place = { block: number, blockHash: hash, index, reverted: false, coinbase: "0xc0" };
			this.node.mined.set(tx.hash, { hash: tx.hash, ...place });
			this.node.nonces.set(tx.from, tx.nonce + 1n);
		});
		for (const [address, nonce] of Object.entries(used)) this.node.nonces.set(address, nonce);
		const touched = [...mined.map(({ tx }) => tx.from), ...Object.keys(used)];
		const transactions = mined.map(({ tx }) => ({ hash: tx.hash, from: tx.from }));
		const { hash: parentHash, timestamp } = this.head;
		const block = blockOf({
			...{ number, parentHash, hash, timestamp: timestamp + after, baseFee, transactions, touched },
		});
		this.#chain.push(block);
		return block;
	}

	async #simulate(chain: readonly { hash: string; nonce: bigint }[]): Promise<SimulationOutcome[]> {
		this.simulated.push(chain.map(({ nonce }) => nonce).join());
		const failing = new Set(this.failing);
		await this.simulationGate;
		const outcomes: SimulationOutcome[] = [];
		for (const { hash } of chain) {
			const code = failing.has(hash) ? "EXECUTION_REVERTED" : this.nodeSimulates ? null : "NODE_UNAVAILABLE";
			if (code === null)
				outcomes.push({ ok: true, gasUsed: 21_000n, emitsEvents: this.emitsEvents, paid: 0n });
			else return [...outcomes, { ok: false, error: { code, message: code.toLowerCase() } }];
		}
		return outcomes;
	}
}

function blockOf(
	block: Pick<Block, "number" | "parentHash" | "hash" | "timestamp" | "baseFee"> & Partial<Block>,
): Block {
	return {
		...{ gasLimit: 30_000_000n, gasUsed: 0n, excessBlobGas: 0n, blobGasUsed: 0n, miner: "0xminer" },
		...{ transactions: [], touched: [] },
		...block,
	};
}

function nextOf(head: Block): NextBlock {
	const { number, timestamp, baseFee, gasLimit } = head;
	return { number: number + 1, timestamp: timestamp + 12, baseFee, blobBaseFee: 1n, gasLimit, fork: PRAGUE };
}
