// A builder for the dev chain: takes the builders' JSON-RPC, really builds the block of each slot, and records all it
// received. It shares no code with the relay's path: it would share its mistakes.

import { id, Wallet } from "ethers";
import { type Clock, systemClock, type Timer } from "../../shared/clock.ts";
import { BurstLock } from "./blockBurst.ts";
import { BlockMaker, type BuiltBlock } from "./blockMaker.ts";
import { answerDev } from "./builderPages.ts";
import {
	BuilderRecord,
	type RecordedAnswer,
	type RecordedRequest,
	type RequestFilter,
} from "./builderRecord.ts";
import { FaultSwitch, type Faults, type ReceivedCall, startBuilderServer } from "./builderServer.ts";
import { TransactionDecoder } from "./builderTransactions.ts";
import { answerCall } from "./builderWire.ts";
import { WireError } from "./bundleReading.ts";
import { quantity } from "./chainHead.ts";
import { ChainRpc } from "./chainRpc.ts";
import { type Order, OrderBook } from "./orderBook.ts";
import { TrialChain } from "./trialChain.ts";

/** What a dev builder is started with. */
export interface DevBuilderOptions {
	/** The chain it builds on: a DevChain, or just its address (http). */
	readonly chain: { readonly url: string; readonly slotSeconds?: number };
	/** 0 (the default): a free port. */
	readonly port?: number;
	/** Default "dev". */
	readonly name?: string;
	/** Seconds between parent and block. Default: the chain's, else 12. */
	readonly slotSeconds?: number;
	/** True: blocks are built by `buildBlock()` only (tests). False, the default: every `slotSeconds` of real time. */
	readonly manual?: boolean;
	/** False: it records and answers, and never builds. Default true. */
	readonly builds?: boolean;
	/** Key of the fee recipient, which signs refunds. Default {@link DEV_COINBASE_KEY}. */
	readonly coinbaseKey?: string;
	/** False: requests without X-Flashbots-Signature are taken (a wrong one is refused all the same). Default true. */
	readonly requireSignature?: boolean;
	/** Gas, at the block's base fee, that each refund pays out of itself. Default 0. */
	readonly refundGas?: bigint;
	/** Requests kept in the record; older ones go. Default 50,000. */
	readonly recordLimit?: number;
	/** Called when a block of the slot timer could not be built; it is tried again at the next slot. */
	readonly onFault?: (thrown: unknown) => void;
}

/** A running dev builder. */
export interface DevBuilder {
	/** http://127.0.0.1:port */
	readonly url: string;
	readonly port: number;
	readonly name: string;
	/** Its fee recipient, checksummed. */
	readonly coinbase: string;
	/** Builds the next block now (after a build under way). Throws when `builds` is false or the chain fails. */
	buildBlock(): Promise<BuiltBlock>;
	/** All blocks built (the last 10,000), oldest first. */
	blocks(): readonly BuiltBlock[];
	/** Every JSON-RPC call received, oldest first; `filter` keeps a method's, or what a predicate says. */
	requests(filter?: RequestFilter): readonly RecordedRequest[];
	/** The first request, past or to come, that `filter` takes. Rejects after `timeoutMs` (5,000). */
	waitForRequest(filter: RequestFilter, timeoutMs?: number): Promise<RecordedRequest>;
	/** Every bundle and private transaction ever taken, with what became of it. */
	orders(): readonly Order[];
	/** The bundles among {@link orders}. */
	bundles(): readonly Order[];
	/** Addresses that have signed requests, checksummed. */
	signers(): readonly string[];
	/** Replaces the faults that are on; `{}` lifts all. */
	setFaults(faults: Faults): void;
	/** True while private transactions may be in the chain's pool: from before the first is pushed until all are out. */
	readonly burst: boolean;
	/** How many bursts have begun. */
	readonly burstCount: number;
	/** Runs `fn` while no burst is under way; a burst that is due waits for it. */
	outsideBurst<T>(fn: () => Promise<T>): Promise<T>;
	/** Forgets orders, requests and faults; not blocks. */
	reset(): void;
	/** Stops taking requests, ends a build under way and waits for it. May be called again. */
	stop(): Promise<void>;
}

/** Fee recipient's key unless another is given: keccak256 of a public text, worth nothing anywhere. */
export const DEV_COINBASE_KEY: string = id("leeward dev builder coinbase");

const ONE_ETHER_WEI = 10n ** 18n;
const KEPT_BLOCKS = 10_000;
const KEPT_REQUESTS = 50_000;
const DEFAULT_SLOT_SECONDS = 12;
const WAIT_MS = 5_000;

/** Starts a dev builder. Throws when the port is taken or the chain does not answer. */
export async function startDevBuilder(options: DevBuilderOptions): Promise<DevBuilder> {
	const clock = systemClock;
	const chain = new ChainRpc(options.chain.url);
	const chainId = BigInt(String(await chain.call("eth_chainId")));
	const coinbase = new Wallet(options.coinbaseKey ?? DEV_COINBASE_KEY);
	const book = new OrderBook();
	const lock = new BurstLock();
	const record = new BuilderRecord({ limit: options.recordLimit ?? KEPT_REQUESTS });
	const faults = new FaultSwitch();
	const signers = new Set<string>();
	const answer = answering({ chain, chainId, book, signers });
	const works =
		options.builds === false
			? null
			: await startWorks(options, { coinbase, chain, chainId, book, lock, clock });
	const dev = (method: string, url: URL, body: string) => answerDev(builder, method, url, body);
	const server = await startBuilderServer(
		{ port: options.port ?? 0, requireSignature: options.requireSignature ?? true },
		{ clock, record, faults, answer, dev },
	).catch(async (thrown: unknown) => {
		await works?.stop();
		throw thrown;
	});
	const builder: DevBuilder = {
		url: `http://127.0.0.1:${server.port}`,
		port: server.port,
		name: options.name ?? "dev",
		coinbase: coinbase.address,
		buildBlock: () => works?.build() ?? Promise.reject(new Error("this builder builds nothing")),
		blocks: () => works?.blocks() ?? [],
		requests: (filter) => record.list(filter),
		waitForRequest: (filter, timeoutMs = WAIT_MS) => record.wait(filter, timeoutMs),
		orders: () => book.all(),
		bundles: () => book.all().filter(({ kind }) => kind === "bundle"),
		signers: () => [...signers],
		setFaults: (on) => faults.set(on),
		get burst() {
			return lock.burst;
		},
		get burstCount() {
			return lock.count;
		},
		outsideBurst: (fn) => lock.outside(fn),
		reset: () => {
			book.clear();
			record.clear();
			faults.set({});
		},
		stop: async () => {
			await server.stop();
			await works?.stop();
			await chain.close();
		},
	};
	return builder;
}

/** The part that builds: absent in a builder that only records and answers. */
interface BuildingWorks {
	build(): Promise<BuiltBlock>;
	blocks(): readonly BuiltBlock[];
	stop(): Promise<void>;
}

async function startWorks(
	options: DevBuilderOptions,
	parts: {
		readonly coinbase: Wallet;
		readonly chain: ChainRpc;
		readonly chainId: bigint;
		readonly book: OrderBook;
		readonly lock: BurstLock;
		readonly clock: Clock;
	},
): Promise<BuildingWorks> {
	const { coinbase, chain, chainId, book, lock, clock } = parts;
	await fundCoinbase(chain, coinbase.address);
	const slotSeconds = options.slotSeconds ?? options.chain.slotSeconds ?? DEFAULT_SLOT_SECONDS;
	const trial = await TrialChain.start(options.chain.url);
	const step = Math.max(1, Math.round(slotSeconds));
	const nextTimestamp = (parent: number): number => {
		const now = Math.floor(clock.now() / 1000);
		// After a pause of the machine real time has run ahead; in tests the chain's own time is all there is.
		return options.manual !== true && now > parent + 2 * step ? now : parent + step;
	};
	const maker = new BlockMaker(
		{ coinbase, chainId, refundGas: options.refundGas ?? 0n, nextTimestamp },
		{ chain, trial, book, clock, duringBurst: (fn) => lock.during(fn) },
	);
	let built: BuiltBlock[] = [];
	let last: Promise<unknown> = Promise.resolve();
	const build = (): Promise<BuiltBlock> => {
		const block = last.then(() => maker.build());
		last = block.then(
			(done) => {
				built.push(done);
				if (built.length > KEPT_BLOCKS) built = built.slice(-KEPT_BLOCKS / 2);
			},
			() => {},
		);
		return block;
	};
	const onFault = options.onFault ?? (() => {});
	const timer = new SlotTimer({ slotMs: slotSeconds * 1000 }, { clock, work: build, onFault });
	if (options.manual !== true) timer.start();
	return {
		build,
		blocks: () => built,
		stop: async () => {
			timer.stop();
			await last;
			await trial.stop();
		},
	};
}

/** It earns fees, but may have to refund before, and it pays the gas of refunds. */
async function fundCoinbase(chain: ChainRpc, address: string): Promise<void> {
	const balance = BigInt(String(await chain.call("eth_getBalance", [address, "latest"])));
	if (balance < ONE_ETHER_WEI) await chain.call("anvil_setBalance", [address, quantity(ONE_ETHER_WEI)]);
}

type Answering = (call: ReceivedCall) => Promise<{ answer: RecordedAnswer; effects: readonly string[] }>;

function answering(parts: {
	readonly chain: ChainRpc;
	readonly chainId: bigint;
	readonly book: OrderBook;
	readonly signers: Set<string>;
}): Answering {
	const { chain, chainId, book, signers } = parts;
	const decoder = new TransactionDecoder();
	return async ({ method, params, signer, at }) => {
		try {
			if (signer !== null) signers.add(signer);
			const nextBlock = Number(await chain.call("eth_blockNumber")) + 1;
			const context = { method, at, signer, chainId, nextBlock, decoder };
			const { result, effects } = answerCall(params, context, book);
			return { answer: { result }, effects };
		} catch (thrown) {
			const error =
				thrown instanceof WireError
					? { code: thrown.code, message: thrown.message }
					: { code: -32603, message: "internal error" };
			return { answer: { error }, effects: [] };
		}
	};
}

/** Runs `work` once a slot until stopped; `onFault` gets what it throws. */
export class SlotTimer {
	readonly #slotMs: number;
	readonly #work: () => Promise<unknown>;
	readonly #onFault: (thrown: unknown) => void;
	readonly #clock: Clock;
	#timer: Timer | undefined;
	#next = 0;

	constructor(
		options: { readonly slotMs: number },
		dependencies: {
			readonly clock: Clock;
			readonly work: () => Promise<unknown>;
			readonly onFault: (thrown: unknown) => void;
		},
	) {
		this.#slotMs = options.slotMs;
		this.#work = dependencies.work;
		this.#onFault = dependencies.onFault;
		this.#clock = dependencies.clock;
	}

	/** The first slot ends one length from now. */
	start(): void {
		this.#next = this.#clock.monotonic() + this.#slotMs;
		this.#wait();
	}

	/** No slot begins after this; work under way goes on. */
	stop(): void {
		this.#timer?.cancel();
		this.#next = Number.POSITIVE_INFINITY;
	}

	#wait(): void {
		const ms = this.#next - this.#clock.monotonic();
		this.#timer = this.#clock.after(Math.max(0, ms), () => {
			this.#work()
				.catch(this.#onFault)
				.finally(() => this.#again());
		});
	}

	#again(): void {
		if (this.#next === Number.POSITIVE_INFINITY) return;
		const late = this.#clock.monotonic() - this.#next;
		this.#next += this.#slotMs * Math.max(1, Math.ceil(late / this.#slotMs));
		this.#wait();
	}
}
