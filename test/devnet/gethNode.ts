// Builds blocks on a go-ethereum that serves `testing` and `debug`: it executes blocks that are not
// in its chain, and mines given transactions without its pool, so that private ones are never in
// it.

import { decodeRlp, encodeRlp, toBeHex, ZeroHash } from "ethers";
import type {
	BlockTerms,
	BlockToMine,
	BuildingNode,
	MiningOutcome,
	Pushed,
	TriedBlock,
} from "./buildingNode.ts";
import { type ChainHead, type ChainRpc, readLatestBlock } from "./chainRpc.ts";
import { payloadAttributes } from "./gethChain.ts";
import { readPool } from "./publicPool.ts";

/**
 * The fields of a built block that are read here, as 0x hex: the execution payload of the engine
 * API.
 */
interface Payload {
	readonly blockNumber: string;
	readonly gasLimit: string;
	readonly gasUsed: string;
	readonly baseFeePerGas: string;
	readonly blobGasUsed: string;
	readonly excessBlobGas: string;
	/** Since Amsterdam. */
	readonly slotNumber?: string;
	/** Without sidecars. */
	readonly transactions: readonly string[];
}

/** The transactions that geth accepts, and the block that it built of them; null: of none. */
interface Accepted {
	readonly kept: readonly Pushed[];
	readonly payload: Payload | null;
}

/** A result of geth's `muxTracer`. */
interface Trace {
	readonly txHash: string;
	readonly result: {
		readonly callTracer: { readonly gasUsed: string; readonly error?: string };
		/** The changes of the accounts that changed, by lower-case address. */
		readonly prestateTracer: Readonly<Record<"pre" | "post", Readonly<Record<string, { balance?: string }>>>>;
	};
}

const TRACER = {
	tracer: "muxTracer",
	tracerConfig: { callTracer: { onlyTopCall: true }, prestateTracer: { diffMode: true } },
};
const NO_EXTRA_DATA = "0x";

export class GethNode implements BuildingNode {
	/** geth builds blocks within the chain's limit alone. */
	readonly trialRoom = 1n;
	readonly #rpc: ChainRpc;

	constructor(rpc: ChainRpc) {
		this.#rpc = rpc;
	}

	async readHead(): Promise<ChainHead> {
		const [latest, fees] = (await this.#rpc.all([
			{ method: "eth_getBlockByNumber", params: ["latest", false] },
			{ method: "eth_feeHistory", params: ["0x1", "latest", []] },
		])) as [Record<string, string>, { readonly baseFeePerGas: readonly string[] }];
		return {
			number: Number(latest.number),
			hash: String(latest.hash),
			timestamp: Number(latest.timestamp),
			nextBaseFee: BigInt(fees.baseFeePerGas.at(-1) ?? 0),
			nextGasLimit: BigInt(latest.gasLimit ?? 0),
		};
	}

	async prepare(): Promise<void> {}

	async tryBlock(terms: BlockTerms, transactions: readonly Pushed[]): Promise<TriedBlock> {
		const { payload } = await this.#accepted(terms, [], transactions);
		if (payload === null) return new Map();
		const traces = (await this.#rpc.call("debug_traceBlock", [blockOf(terms, payload), TRACER])) as Trace[];
		const coinbase = terms.coinbase.toLowerCase();
		return new Map(
			traces.map(({ txHash, result: { callTracer, prestateTracer } }) => {
				const held = (when: "pre" | "post") => BigInt(prestateTracer[when][coinbase]?.balance ?? 0);
				const outcome = {
					reverted: callTracer.error !== undefined,
					gasUsed: BigInt(callTracer.gasUsed),
					gain: coinbase in prestateTracer.post ? held("post") - held("pre") : 0n,
				};
				return [txHash, outcome];
			}),
		);
	}

	async mine(block: BlockToMine): Promise<MiningOutcome> {
		const latest = await readLatestBlock(this.#rpc);
		if (latest.hash !== block.head.hash) return { outcome: "moved" };
		const own = new Set(block.transactions.map(({ hash }) => hash));
		const { kept } = await this.#accepted(block, [], block.transactions);
		const refused = block.transactions.filter((one) => !kept.includes(one)).map(({ hash }) => hash);
		if (refused.length > 0) return { outcome: "refused", hashes: refused };
		const others = (await readPool(this.#rpc)).filter(({ hash }) => !own.has(hash));
		const { kept: behind } = await this.#accepted(block, block.transactions, others);
		const txs = [...block.transactions, ...behind].map(({ raw }) => raw);
		await this.#rpc.call("testing_commitBlockV1", [attributesOf(block), txs, NO_EXTRA_DATA]);
		return {
			outcome: "mined",
			block: await readLatestBlock(this.#rpc),
			publicTransactions: behind.map(({ hash }) => hash),
		};
	}

	async fund(address: string, wei: bigint): Promise<void> {
		throw new Error(`the genesis block must give ${address} ${wei} wei`);
	}

	async stop(): Promise<void> {}

	/** The transactions of `next` that geth accepts, one after another, behind `first`. */
	async #accepted(terms: BlockTerms, first: readonly Pushed[], next: readonly Pushed[]): Promise<Accepted> {
		const kept: Pushed[] = [];
		let payload: Payload | null = null;
		for (let rest = next; rest.length > 0; ) {
			const most = await this.#mostOf(terms, [...first, ...kept], rest);
			payload = most.payload ?? payload;
			kept.push(...rest.slice(0, most.count));
			// The one behind them can't be in the block.
			rest = rest.slice(most.count + 1);
		}
		return { kept, payload };
	}

	/**
	 * How many of `next` geth accepts before the first that it refuses: it does not say which one
	 * that is.
	 */
	async #mostOf(
		terms: BlockTerms,
		first: readonly Pushed[],
		next: readonly Pushed[],
	): Promise<{ readonly count: number; readonly payload: Payload | null }> {
		let [most, least] = [next.length, 0];
		let payload: Payload | null = null;
		for (let count = most; least < most; count = Math.ceil((least + most) / 2)) {
			const built = await this.#build(terms, [...first, ...next.slice(0, count)]);
			if (built === null) most = count - 1;
			else [least, payload] = [count, built];
		}
		return { count: least, payload };
	}

	/** Builds a block that is thrown away; null if geth refuses one of the transactions. */
	async #build(terms: BlockTerms, transactions: readonly Pushed[]): Promise<Payload | null> {
		const raws = transactions.map(({ raw }) => raw);
		const params = [terms.head.hash, attributesOf(terms), raws, NO_EXTRA_DATA];
		const [built] = await this.#rpc.batch([{ method: "testing_buildBlockV1", params }]);
		if (built?.ok !== true) return null;
		return (built.result as { readonly executionPayload: Payload }).executionPayload;
	}
}

function attributesOf({ head, timestamp, coinbase }: BlockTerms): object {
	return payloadAttributes(head.number + 1, timestamp, { coinbase });
}

/**
 * The block in RLP, as geth executes it: with zeros for the roots and hashes of its content, which
 * it does not check here.
 */
function blockOf({ head, coinbase, timestamp }: BlockTerms, payload: Payload): string {
	const number = (value: string | number) => (BigInt(value) === 0n ? "0x" : toBeHex(value));
	const header = [
		...[head.hash, ZeroHash, coinbase, ZeroHash, ZeroHash, ZeroHash, `0x${"00".repeat(256)}`, "0x"],
		...[payload.blockNumber, payload.gasLimit, payload.gasUsed, timestamp].map(number),
		...["0x", ZeroHash, "0x0000000000000000", number(payload.baseFeePerGas), ZeroHash],
		...[number(payload.blobGasUsed), number(payload.excessBlobGas), ZeroHash, ZeroHash],
		...(payload.slotNumber === undefined ? [] : [ZeroHash, number(payload.slotNumber)]),
	];
	// A transaction is either of the first type, which is a list itself, or an envelope.
	const transactions = payload.transactions.map((tx) =>
		Number(tx.slice(0, 4)) >= 0xc0 ? decodeRlp(tx) : tx,
	);
	return encodeRlp([header, transactions, [], []]);
}
