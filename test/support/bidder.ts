// The fixture of auction tests on a whole running relay: searchers, backruns, targets and bids, and
// readers of what builders received and blocks hold. It asserts nothing.

import { concat, keccak256 } from "ethers";
import { request } from "undici";
import { DEV_COINBASE_KEY, type DevBuilder } from "../devnet/devBuilder.ts";
import { EMITTER, PAYER, prepareBidding } from "./biddingFixture.ts";
import { FeedClient } from "./feeds.ts";
import { RelayClient } from "./relayClient.ts";
import { type Actor, ETHER, RelayFixture, type Signed } from "./relayFixture.ts";
import { type SystemOptions, startSystem } from "./systems.ts";
import { accountOf, type TxOptions } from "./txFactory.ts";
import { until } from "./until.ts";

/** The dev builder's coinbase, in lower case. */
export const DEV_COINBASE: string = accountOf(DEV_COINBASE_KEY).address;

/** The status of a bundle in one block, as the relay shows it to the owner. */
interface BundleInBlock {
	readonly blockNumber: number;
	readonly stage: string;
	readonly reason: string | null;
	readonly bid: string | null;
	readonly paid: string | null;
	readonly blockHash: string | null;
	readonly builders: readonly { readonly builder: string; readonly kind: string; readonly answer: string }[];
}

/** Optional fields of a bid. */
interface BidOptions {
	/** Default: the next block. */
	readonly block?: number | undefined;
	readonly uuid?: string | undefined;
}

/** A bid that was accepted. */
export interface Placed {
	readonly bidder: Bidder;
	readonly backrun: Signed;
	readonly hash: string;
}

/** The answer to a bid: its bundle's hash, or `code message`. */
type BidAnswer = { readonly hash: string } | { readonly error: string };

/** An order that a builder received about a backrun behind a target. */
export interface BackrunOrder {
	readonly kind: "bundle" | "cancel";
	/** The raw transaction; empty for a cancel. */
	readonly backrun: string;
	readonly block: number | null;
	readonly uuid: string;
	/** Its place among all requests to the builder. */
	readonly seq: number;
	/** The call's only param, as received. */
	readonly param: Readonly<Record<string, unknown>>;
}

/** A transaction in a block. */
interface MinedTransaction {
	readonly hash: string;
	readonly from: string;
	readonly to: string | null;
	readonly value: bigint;
}

/** A target with the user who sent it. */
export interface Target extends Signed {
	readonly user: Actor;
}

/** A searcher with an account and a network address of his own. */
export class Bidder {
	readonly actor: Actor;
	/** His network address. */
	readonly from: string;
	/** The nonce of the backrun that is signed next. */
	nonce = 0;
	readonly #url: string;
	#socket: FeedClient | null = null;

	constructor(actor: Actor, from: string, url: string) {
		this.actor = actor;
		this.from = from;
		this.#url = url;
	}

	/** Makes further calls go over a websocket. */
	async connect(): Promise<FeedClient> {
		const url = `${this.#url.replace("http", "ws")}/ws`;
		this.#socket = await FeedClient.open(url, { headers: { "x-forwarded-for": this.from } });
		return this.#socket;
	}

	/** Closes the websocket; further calls go over HTTP again. */
	close(): void {
		this.#socket?.close();
		this.#socket = null;
	}

	/** A backrun that pays `value` wei to the block's coinbase. */
	backrun(value: bigint, options: Omit<TxOptions, "by"> = {}): Signed {
		return this.actor.sign({ nonce: this.nonce, to: PAYER, value, ...options });
	}

	/** Makes a call and returns its result; throws with the code and message of an error. */
	call(method: string, params: readonly unknown[]): Promise<unknown> {
		const client = this.#socket ?? new RelayClient(this.#url, { "x-forwarded-for": this.from });
		return client.call(method, params);
	}

	/** Bids, and returns the bundle's hash. Throws with code and message if the bid is refused. */
	async bid(target: Signed, backrun: Signed, { block, uuid }: BidOptions = {}): Promise<string> {
		const bundle = {
			txs: [target.hash, backrun.raw],
			...(block === undefined ? {} : { blockNumber: `0x${block.toString(16)}` }),
			...(uuid === undefined ? {} : { replacementUuid: uuid }),
		};
		return (await this.call("eth_sendBundle", [bundle])) as string;
	}

	/** Like {@link bid}, but returns a refusal. */
	async tryBid(target: Signed, backrun: Signed, options: BidOptions = {}): Promise<BidAnswer> {
		return this.bid(target, backrun, options).then(
			(hash) => ({ hash }),
			(thrown: Error) => ({ error: thrown.message }),
		);
	}

	/**
	 * Bids by `mev_sendBundle` for the blocks from `first` to `last`, and returns the bundle's hash.
	 */
	async share(
		target: Signed,
		backrun: Signed,
		{ first, last, ...more }: { readonly first: number; readonly last: number; readonly privacy?: object },
	): Promise<string> {
		const bundle = {
			version: "v0.1",
			inclusion: { block: `0x${first.toString(16)}`, maxBlock: `0x${last.toString(16)}` },
			body: [{ hash: target.hash }, { tx: backrun.raw, canRevert: false }],
			validity: { refund: [], refundConfig: [] },
			...more,
		};
		return ((await this.call("mev_sendBundle", [bundle])) as { bundleHash: string }).bundleHash;
	}

	async cancel(uuid: string): Promise<void> {
		await this.call("eth_cancelBundle", [{ replacementUuid: uuid }]);
	}

	/** The status of his bundle in each of its blocks. */
	async blocks(hash: string): Promise<readonly BundleInBlock[]> {
		const headers = { "x-forwarded-for": this.from };
		const { statusCode, body } = await request(`${this.#url}/bundle/${hash}`, { headers });
		if (statusCode !== 200) throw new Error(`HTTP ${statusCode} for bundle ${hash}`);
		return ((await body.json()) as { blocks: BundleInBlock[] }).blocks;
	}

	/** `stage`, or `stage reason`, for each block of his bundle. */
	async stages(hash: string): Promise<readonly string[]> {
		return (await this.blocks(hash)).map(({ stage, reason }) =>
			reason === null ? stage : `${stage} ${reason}`,
		);
	}

	/**
	 * Like {@link reaches}, and waits until the status also has what the transaction behind the
	 * target paid.
	 */
	async told(hash: string, stage: string): Promise<BundleInBlock> {
		await this.reaches(hash, stage);
		return until(`what was paid behind the target of ${hash}`, async () => {
			const last = (await this.blocks(hash)).at(-1);
			return last !== undefined && last.paid !== null && last;
		});
	}

	/**
	 * Waits until the last block of his bundle is at `stage` (as {@link stages} writes it), and
	 * returns that block's status.
	 */
	async reaches(hash: string, stage: string): Promise<BundleInBlock> {
		let last: readonly string[] = [];
		return until(`bundle ${hash} at ${stage}`, async () => {
			last = await this.stages(hash);
			return last.at(-1) === stage && (await this.blocks(hash)).at(-1);
		}).catch((thrown: Error) => {
			throw new Error(`${thrown.message}; it is ${last.join()}`);
		});
	}
}

/** A running relay with its auction, as searchers and users see it. */
export class AuctionFixture extends RelayFixture {
	#bidders = 0;

	/** A new searcher with 100 ether. */
	async bidder(): Promise<Bidder> {
		this.#bidders += 1;
		const from = `10.1.${this.#bidders >> 8}.${this.#bidders & 0xff}`;
		return new Bidder(await this.actor(), from, this.system.client.url);
	}

	/**
	 * A new user's transaction that emits an event, submitted on `path`; waits until builders and
	 * searchers have it.
	 */
	async target(path = "/fast", options: Omit<TxOptions, "by"> = {}): Promise<Target> {
		const user = await this.actor(ETHER);
		const tx = user.sign({ to: EMITTER, ...options });
		await this.submit(path, tx);
		await this.open(tx);
		return { ...tx, user };
	}

	/** Bids `value` wei as a new searcher, or as `bidder`; `tx` has more fields of the backrun. */
	async offer(
		target: Signed,
		value: bigint,
		{ bidder, block, uuid, ...tx }: BidOptions & Omit<TxOptions, "by"> & { readonly bidder?: Bidder } = {},
	): Promise<Placed> {
		const by = bidder ?? (await this.bidder());
		const backrun = by.backrun(value, tx);
		return { bidder: by, backrun, hash: await by.bid(target, backrun, { block, uuid }) };
	}

	/** Like {@link offer}, and waits until every builder has it. */
	async offerOut(...args: Parameters<AuctionFixture["offer"]>): Promise<Placed> {
		const placed = await this.offer(...args);
		for (const builder of this.system.builders) await this.out(args[0], placed.backrun, builder);
		return placed;
	}

	/** The stages of each bid, those of several blocks joined. */
	stagesOf(bids: readonly Placed[]): Promise<readonly string[]> {
		return Promise.all(bids.map(async ({ bidder, hash }) => (await bidder.stages(hash)).join()));
	}

	/** The index of each in its block; undefined if it is not mined. */
	indices(...txs: readonly Signed[]): Promise<readonly (number | undefined)[]> {
		return Promise.all(txs.map(async (tx) => (await this.receipt(tx))?.index));
	}

	/** Builds the next block, and returns its hashes from `target` on. */
	async blockFrom(target: Signed): Promise<readonly string[]> {
		const { transactions } = await this.block(await this.system.nextBlock());
		const hashes = transactions.map(({ hash }) => hash);
		return hashes.slice(hashes.indexOf(target.hash));
	}

	/** Waits until `tx` is with the builders for the next block, and searchers have been shown it. */
	async open(tx: Signed): Promise<void> {
		await this.waitUntilSent(tx);
		await until(`${tx.hash} shared`, async () => (await this.status(tx)).shared);
	}

	/**
	 * The orders that `builder` received about backruns behind `target`, oldest first; two forms of
	 * one cancel count once.
	 */
	backrunOrders(target: Signed, builder: DevBuilder = this.system.builder): readonly BackrunOrder[] {
		const live = new Set<string>();
		return builder.requests().flatMap(({ method, params, seq }): BackrunOrder[] => {
			const param = { ...(params[0] as object) } as Record<string, unknown>;
			const uuid = String(param.replacementUuid);
			const raws = rawsOf(param);
			if (raws.length === 2 && raws[0] === target.raw) {
				live.add(uuid);
				const inclusion = param.inclusion as { block?: unknown } | undefined;
				const block = Number(param.blockNumber ?? inclusion?.block);
				return [{ kind: "bundle", backrun: raws[1] ?? "", block, uuid, seq, param }];
			}
			const cancels = method === "eth_cancelBundle" || raws.length === 0;
			if (!cancels || !live.delete(uuid)) return [];
			return [{ kind: "cancel", backrun: "", block: null, uuid, seq, param }];
		});
	}

	/**
	 * Waits until `builder` has exactly `backruns` (null: none) behind `target` for the next block.
	 */
	async out(
		target: Signed,
		backruns: Signed | readonly Signed[] | null,
		builder?: DevBuilder,
	): Promise<void> {
		const block = (await this.head()) + 1;
		const wanted = backruns === null ? [] : "raw" in backruns ? [backruns] : backruns;
		const raws = wanted.map(({ raw }) => raw).sort();
		const what = `${wanted.map(({ hash }) => hash).join() || "nothing"} behind ${target.hash} for ${block}`;
		await until(what, () => this.#held(target, block, builder).sort().join() === raws.join());
	}

	/**
	 * Waits until the builder has `backrun`, among others or not, behind `target` for the next block,
	 * and `gone` no more.
	 */
	async holds(target: Signed, backrun: Signed, gone?: Signed): Promise<void> {
		const block = (await this.head()) + 1;
		const without = gone === undefined ? "" : `, without ${gone.hash}`;
		const what = `${backrun.hash} behind ${target.hash} for ${block}${without}`;
		await until(what, () => {
			const held = this.#held(target, block);
			return held.includes(backrun.raw) && (gone === undefined || !held.includes(gone.raw));
		});
	}

	/** The raw backruns that the builder has behind `target` for the next block. */
	async behind(target: Signed): Promise<readonly string[]> {
		return this.#held(target, (await this.head()) + 1);
	}

	/** The raw backruns that a builder has behind `target` for `block`. */
	#held(target: Signed, block: number, builder?: DevBuilder): string[] {
		// The last order of each uuid counts.
		const last = new Map(this.backrunOrders(target, builder).map((order) => [order.uuid, order]));
		const out = [...last.values()].filter((order) => order.kind === "bundle" && order.block === block);
		return out.map(({ backrun }) => backrun);
	}

	/** The block `number`; its addresses are in lower case. */
	async block(number: number): Promise<{
		readonly hash: string;
		readonly coinbase: string;
		readonly baseFee: bigint;
		readonly transactions: readonly MinedTransaction[];
	}> {
		const block = (await this.system.chain.rpc("eth_getBlockByNumber", [
			`0x${number.toString(16)}`,
			true,
		])) as { hash: string; miner: string; baseFeePerGas: string; transactions: Record<string, string>[] };
		return {
			hash: block.hash,
			coinbase: block.miner.toLowerCase(),
			baseFee: BigInt(block.baseFeePerGas),
			transactions: block.transactions.map(({ hash, from, to, value }) => ({
				hash: String(hash),
				from: String(from),
				to: to ?? null,
				value: BigInt(value ?? 0),
			})),
		};
	}

	/** Wei that a mined backrun paid: `bid`, by transfer, and its priority fee. */
	async brought(backrun: Signed, bid: bigint): Promise<bigint> {
		const receipt = (await this.system.chain.rpc("eth_getTransactionReceipt", [backrun.hash])) as Record<
			string,
			string
		>;
		const { baseFee } = await this.block(Number(receipt.blockNumber));
		return bid + BigInt(receipt.gasUsed ?? 0) * (BigInt(receipt.effectiveGasPrice ?? 0) - baseFee);
	}

	/** An account's balance in wei. */
	async balance(address: string): Promise<bigint> {
		return BigInt(String(await this.system.chain.rpc("eth_getBalance", [address, "latest"])));
	}
}

/**
 * Starts a system with the contracts of the bidding fixture, whose searchers have network addresses
 * of their own.
 */
export async function startAuction(options: SystemOptions = {}): Promise<AuctionFixture> {
	const system = await startSystem({ ...options, env: { TRUST_PROXY: "1", ...options.env } });
	await prepareBidding(system);
	return new AuctionFixture(system);
}

/** The hash of a bid's bundle: keccak256 of the target's hash and the backrun's. */
export function bundleOf(target: Signed, backrun: Signed): string {
	return keccak256(concat([target.hash, backrun.hash]));
}

/** The raw transactions of a bundle of either dialect; empty for a cancel. */
function rawsOf({ txs, body }: Readonly<Record<string, unknown>>): readonly string[] {
	if (Array.isArray(txs)) return txs as string[];
	return Array.isArray(body) ? body.map((entry: { tx: string }) => entry.tx) : [];
}
