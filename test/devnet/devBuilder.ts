// A builder for the dev chain: serves the builders' JSON-RPC, really builds the block of each slot,
// and records all requests. It shares no code with the relay but the table of forks, since it would
// share its mistakes.

import { id, Wallet } from "ethers";
import { systemClock, type Timer } from "../../shared/clock.ts";
import { AnvilNode } from "./anvilNode.ts";
import { BurstLock } from "./anvilPool.ts";
import { BlockMaker, type BuiltBlock } from "./blockMaker.ts";
import { answerCall } from "./builderMethods.ts";
import { BuilderRecord, type RecordedRequest, type RequestFilter } from "./builderRecord.ts";
import { type BuilderServer, type Faults, startBuilderServer } from "./builderServer.ts";
import type { BuildingNode } from "./buildingNode.ts";
import { ChainRpc, quantity } from "./chainRpc.ts";
import { GethNode } from "./gethNode.ts";
import { bookOf, type Misconduct } from "./misconduct.ts";
import type { Order, OrderBook } from "./orderBook.ts";
import { timestamps } from "./slots.ts";

/** The options of a dev builder. */
export interface DevBuilderOptions {
	/** The chain: a DevChain, or only its URL (http). */
	readonly chain: { readonly url: string; readonly slotSeconds?: number };
	/** 0 (the default): a free port. */
	readonly port?: number;
	/** Default "dev". */
	readonly name?: string;
	/** Seconds between two blocks, whole or not. Default: the chain's, else 12. */
	readonly slotSeconds?: number;
	/**
	 * True: only `buildBlock()` builds blocks (tests). False, the default: one is built in each slot
	 * of real time.
	 */
	readonly manual?: boolean;
	/** False: it only records and answers. Default true. */
	readonly builds?: boolean;
	/**
	 * False: anvil does not check the proofs of blobs, for which each process needs 4 to 6 CPU
	 * seconds once. Default true.
	 */
	readonly checksBlobs?: boolean;
	/**
	 * Gas whose cost, at the base fee, each refund pays itself. Default: what the block's fork takes,
	 * which was nothing until Osaka.
	 */
	readonly refundGas?: bigint;
	/** The fee recipient's key, 0x hex. Default {@link DEV_COINBASE_KEY}. */
	readonly coinbaseKey?: string;
	/** The promise that it breaks. Default: none. */
	readonly misconduct?: Misconduct | undefined;
	/** Requests kept in the record. Default 50,000. */
	readonly recordLimit?: number;
}

/** The fee recipient's key: keccak256 of a public text, so it must never hold real ether. */
export const DEV_COINBASE_KEY: string = id("leeward dev builder coinbase");

const ONE_ETHER_WEI = 10n ** 18n;
/** Checksummed. */
const COINBASE = new Wallet(DEV_COINBASE_KEY).address;
/**
 * The balance that a genesis block must give the builder, if the builder cannot give it to itself.
 */
export const DEV_COINBASE_ALLOC: Readonly<Record<string, { readonly balance: string }>> = {
	[COINBASE.slice(2)]: { balance: quantity(ONE_ETHER_WEI) },
};
const KEPT_BLOCKS = 10_000;
const KEPT_REQUESTS = 50_000;
const DEFAULT_SLOT_SECONDS = 12;
const WAIT_MS = 30_000;

/** Starts a dev builder. Throws if the port is taken or the chain does not answer. */
export function startDevBuilder(options: DevBuilderOptions): Promise<DevBuilder> {
	return DevBuilder.start(options);
}

/** A running dev builder. */
export class DevBuilder {
	readonly name: string;
	/** Its fee recipient, checksummed. */
	readonly coinbase: string;
	readonly #chain: ChainRpc;
	readonly #wallet: Wallet;
	readonly #book: OrderBook;
	readonly #lock = new BurstLock();
	readonly #record: BuilderRecord;
	#server: BuilderServer | undefined;
	/** Absent if it only records and answers. */
	#works: { readonly maker: BlockMaker; readonly node: BuildingNode } | undefined;
	#blocks: BuiltBlock[] = [];
	#last: Promise<unknown> = Promise.resolve();
	#timer: Timer | undefined;
	#stopped = false;

	private constructor(options: DevBuilderOptions) {
		const { chain, name = "dev", recordLimit = KEPT_REQUESTS, misconduct } = options;
		this.name = name;
		this.#wallet = new Wallet(options.coinbaseKey ?? DEV_COINBASE_KEY);
		this.coinbase = this.#wallet.address;
		this.#chain = new ChainRpc(chain.url);
		this.#book = bookOf(misconduct, (raw) => this.#publish(raw));
		this.#record = new BuilderRecord(recordLimit);
	}

	static async start(options: DevBuilderOptions): Promise<DevBuilder> {
		const builder = new DevBuilder(options);
		const chain = builder.#chain;
		const chainId = BigInt(String(await chain.call("eth_chainId")));
		if (options.builds !== false) await builder.#startWorks(options, chainId);
		const context = { chainId, chain, book: builder.#book };
		const server = startBuilderServer(options.port ?? 0, {
			record: builder.#record,
			answer: (call) => answerCall(call, context),
			dev: (method, url, body) => builder.#answerDev(method, url, body),
		});
		builder.#server = await server.catch(async (thrown: unknown) => {
			await builder.stop();
			throw thrown;
		});
		return builder;
	}

	/** http://127.0.0.1:port */
	get url(): string {
		return `http://127.0.0.1:${this.#server?.port}`;
	}

	/**
	 * Builds the next block now, after a running build. Throws if this builder builds no blocks, or
	 * the chain fails.
	 */
	buildBlock(): Promise<BuiltBlock> {
		const maker = this.#works?.maker;
		if (maker === undefined) return Promise.reject(new Error("this builder builds nothing"));
		const block = this.#last.then(() => maker.build());
		this.#last = block.then(
			(done) => {
				this.#blocks.push(done);
				if (this.#blocks.length > KEPT_BLOCKS) this.#blocks = this.#blocks.slice(-KEPT_BLOCKS / 2);
			},
			() => {},
		);
		return block;
	}

	/** The last 10,000 blocks built, oldest first. */
	blocks(): readonly BuiltBlock[] {
		return this.#blocks;
	}

	/** The recorded JSON-RPC calls, oldest first; `filter` is a method or a predicate. */
	requests(filter?: RequestFilter): readonly RecordedRequest[] {
		return this.#record.list(filter);
	}

	/**
	 * The first recorded or future request that matches `filter`. Rejects after `timeoutMs` (30,000).
	 */
	waitForRequest(filter: RequestFilter, timeoutMs = WAIT_MS): Promise<RecordedRequest> {
		return this.#record.wait(filter, timeoutMs);
	}

	/**
	 * Waits until what has been sent to it so far is recorded: the last calls of a client that was
	 * killed may lie unread.
	 */
	async catchUp(): Promise<void> {
		await this.#server?.catchUp();
	}

	/** All accepted bundles and private transactions, with their states. */
	orders(): readonly Order[] {
		return this.#book.all();
	}

	/** The orders with the transaction `hash` that it would still put into a block. */
	liveOrders(hash: string): readonly Order[] {
		const holds = ({ transactions }: Order) => transactions.some((one) => one.hash === hash);
		return this.orders().filter((order) => order.state === "live" && holds(order));
	}

	/** The bundles among {@link orders}. */
	bundles(): readonly Order[] {
		return this.orders().filter(({ kind }) => kind === "bundle");
	}

	/** Replaces the active faults; `{}` ends all. */
	setFaults(faults: Faults): void {
		this.#server?.setFaults(faults);
	}

	/** True while private transactions may be in the chain's public pool, during a burst. */
	get burst(): boolean {
		return this.#lock.burst;
	}

	/** Number of bursts that have begun. */
	get burstCount(): number {
		return this.#lock.count;
	}

	/** Runs `fn` while no burst runs; a burst that is due waits for it. */
	outsideBurst<T>(fn: () => Promise<T>): Promise<T> {
		return this.#lock.outside(fn);
	}

	/** Forgets orders, requests and faults; not blocks. */
	reset(): void {
		this.#book.clear();
		this.#record.clear();
		this.setFaults({});
	}

	/** Stops the server, and waits for a running build. May be called again. */
	async stop(): Promise<void> {
		this.#stopped = true;
		await this.#server?.stop();
		this.#timer?.cancel();
		await this.#last;
		await this.#works?.node.stop();
		await this.#chain.close();
	}

	async #startWorks(options: DevBuilderOptions, chainId: bigint): Promise<void> {
		const { manual = false, checksBlobs = true, refundGas, chain: of } = options;
		const chain = this.#chain;
		const version = String(await chain.call("web3_clientVersion"));
		const node = version.startsWith("Geth")
			? new GethNode(chain)
			: new AnvilNode(chain, { url: of.url, checksBlobs });
		// The coinbase must have ether from the start: it pays refunds and their gas, perhaps before it
		// has earned fees.
		const balance = BigInt(String(await chain.call("eth_getBalance", [this.coinbase, "latest"])));
		if (balance < ONE_ETHER_WEI) await node.fund(this.coinbase, ONE_ETHER_WEI);
		const slotSeconds = options.slotSeconds ?? of.slotSeconds ?? DEFAULT_SLOT_SECONDS;
		const nextTimestamp = timestamps(slotSeconds, manual);
		const maker = new BlockMaker({
			...{ chainId, refundGas, nextTimestamp, chain, node },
			coinbase: this.#wallet,
			...{ book: this.#book, clock: systemClock, lock: this.#lock },
		});
		this.#works = { maker, node };
		if (!manual) this.#buildAt(systemClock.monotonic() + slotSeconds * 1000, slotSeconds * 1000);
	}

	/** Sends a transaction to the public mempool. If that has it already, nothing happens. */
	#publish(raw: string): void {
		const send = () => this.#chain.call("eth_sendRawTransaction", [raw]);
		this.outsideBurst(send).catch(() => {});
	}

	/** Builds a block in each slot; one that fails is tried again in the next. */
	#buildAt(due: number, slotMs: number): void {
		this.#timer = systemClock.after(Math.max(0, due - systemClock.monotonic()), async () => {
			await this.buildBlock().catch(() => {});
			const late = systemClock.monotonic() - due;
			if (!this.#stopped) this.#buildAt(due + slotMs * Math.max(1, Math.ceil(late / slotMs)), slotMs);
		});
	}

	/**
	 * A page of /dev as JSON, with bigints as hex; null if there is none: GET /dev/state,
	 * /dev/requests?method=&after=seq, /dev/orders, /dev/blocks?after=number; POST /dev/faults (a
	 * `Faults` object), /dev/build (the built block), /dev/reset.
	 */
	async #answerDev(method: string, { pathname, searchParams }: URL, body: string): Promise<string | null> {
		const after = Number(searchParams.get("after") ?? 0);
		const named = searchParams.get("method");
		const { name, coinbase, burst, burstCount } = this;
		const pages: Readonly<Record<string, () => unknown>> = {
			"GET /dev/state": () => ({
				...{ name, coinbase, burst, burstCount, blocks: this.#blocks.length },
				...{ orders: this.orders().length, requests: this.requests().length },
			}),
			"GET /dev/requests": () =>
				this.requests(({ seq, method: called }) => seq > after && (named === null || called === named)),
			"GET /dev/orders": () => this.orders(),
			"GET /dev/blocks": () => this.#blocks.filter(({ number }) => number > after),
			"POST /dev/faults": () => this.setFaults(JSON.parse(body) as Faults),
			"POST /dev/build": () => this.buildBlock(),
			"POST /dev/reset": () => this.reset(),
		};
		const page = pages[`${method} ${pathname}`];
		if (page === undefined) return null;
		return JSON.stringify((await page()) ?? { ok: true }, (_, inner: unknown) =>
			typeof inner === "bigint" ? quantity(inner) : inner,
		);
	}
}
