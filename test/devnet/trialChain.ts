// Tries blocks by mining them for real on a second anvil, which forks the dev chain at a head, and sums what each
// transaction moved to an address. The watched chain is only read.

import { concat, sha256, ZeroHash } from "ethers";
import { type ChainHead, quantity, readLatestBlock } from "./chainHead.ts";
import { ChainRpc } from "./chainRpc.ts";
import { ANVIL_FLAGS } from "./devChain.ts";
import { type AnvilProcess, startAnvil } from "./nodeProcess.ts";
import { type Pushed, pushInOrder } from "./poolPush.ts";

/** How one transaction came out. */
export interface TriedTransaction {
	readonly reverted: boolean;
	readonly gasUsed: bigint;
	/** What the coinbase has more by it, wei: priority fee and transfers. */
	readonly gain: bigint;
}

/** How a block came out: what it holds, by hash. What is missing was refused, or could not be mined. */
export type TriedBlock = ReadonlyMap<string, TriedTransaction>;

/** The terms of the block that is tried. */
export interface TrialTerms {
	readonly head: ChainHead;
	readonly coinbase: string;
	/** Unix seconds. */
	readonly timestamp: number;
}

interface Receipt {
	readonly transactionHash: string;
	readonly from: string;
	readonly status: string;
	readonly gasUsed: string;
	readonly effectiveGasPrice: string;
}

/** A second anvil in step with the first. One user at a time. */
export class TrialChain {
	readonly #upstream: string;
	readonly #anvil: AnvilProcess;
	readonly #rpc: ChainRpc;
	#terms: TrialTerms | undefined;

	private constructor(upstream: string, anvil: AnvilProcess) {
		this.#upstream = upstream;
		this.#anvil = anvil;
		this.#rpc = new ChainRpc(anvil.url);
	}

	/** Starts it on the chain at `upstream` (http), with that chain's hardfork. */
	static async start(upstream: string): Promise<TrialChain> {
		const chain = new ChainRpc(upstream);
		const info = (await chain.call("anvil_nodeInfo")) as { hardFork: string };
		await chain.close();
		// No cache on disk: it is kept by chain id and block number, and every dev chain has the same ones. No
		// accounts: anvil would give its own their 10,000 ETH again, whatever they have on the chain.
		const fork = ["--fork-url", upstream, "--no-storage-caching", "--no-rate-limit", "--accounts", "0"];
		const anvil = await startAnvil(0, [...ANVIL_FLAGS, "--hardfork", info.hardFork.toLowerCase(), ...fork]);
		const trial = new TrialChain(upstream, anvil);
		await trial.#rpc.call("anvil_setLoggingEnabled", [false]);
		return trial;
	}

	/**
	 * Puts it on `terms.head`, as the chain is now (cheat codes and reorganisations included), and fetches the
	 * accounts that will be needed: one after another, while mining, would be slow.
	 */
	async reset(terms: TrialTerms, addresses: readonly string[]): Promise<void> {
		const { head } = terms;
		this.#terms = terms;
		await this.#rpc.call("anvil_dropAllTransactions");
		const forking = { jsonRpcUrl: this.#upstream, blockNumber: head.number };
		await this.#rpc.call("anvil_reset", [{ forking }]);
		await this.#rpc.call("evm_setBlockGasLimit", [quantity(head.nextGasLimit)]);
		await this.#rpc.call("anvil_setCoinbase", [terms.coinbase]);
		await this.#rpc.batch(
			[...new Set([...addresses, terms.coinbase])].map((address) => ({
				method: "eth_getBalance",
				params: [address, "latest"],
			})),
		);
	}

	/** Makes it ready for blobs; see {@link warmKzg}. */
	warmKzg(): Promise<void> {
		return warmKzg(this.#rpc);
	}

	/**
	 * Mines a block of `transactions`, reads how it came out, and takes it back. `gasLimit`: the block's own unless given.
	 */
	async tryBlock(transactions: readonly Pushed[], gasLimit?: bigint): Promise<TriedBlock> {
		const terms = this.#terms;
		if (terms === undefined) throw new Error("the trial chain has not been put on a head");
		if (transactions.length === 0) return new Map();
		const rpc = this.#rpc;
		const { nextGasLimit } = terms.head;
		const limitGas = (limit: bigint) => ({ method: "evm_setBlockGasLimit", params: [quantity(limit)] });
		const balance = { method: "eth_getBalance", params: [terms.coinbase, "latest"] };
		const [snapshot, , before] = await rpc.all([
			{ method: "evm_snapshot", params: [] },
			// evm_revert does not take the base fee back.
			{ method: "anvil_setNextBlockBaseFeePerGas", params: [quantity(terms.head.nextBaseFee)] },
			balance,
			limitGas(gasLimit ?? nextGasLimit),
		]);
		await pushInOrder(rpc, transactions);
		await rpc.call("evm_mine", [{ timestamp: terms.timestamp }]);
		const block = await readLatestBlock(rpc);
		const tag = quantity(block.number);
		const [receipts, traces, after] = (await rpc.all([
			{ method: "eth_getBlockReceipts", params: [tag] },
			{ method: "trace_block", params: [tag] },
			balance,
		])) as [Receipt[], BlockTrace[], string];
		await rpc.call("anvil_dropAllTransactions");
		await rpc.all([{ method: "evm_revert", params: [snapshot] }, limitGas(nextGasLimit)]);
		if (block.baseFeePerGas !== terms.head.nextBaseFee) throw new Error("the trial had another base fee");
		const tried = readTrial(receipts, traces, terms);
		checkGains(receipts, tried, BigInt(after) - BigInt(String(before)), terms);
		return tried;
	}

	/** Stops it and waits until it is gone. */
	async stop(): Promise<void> {
		await this.#rpc.close();
		await this.#anvil.stop();
	}
}

function readTrial(
	receipts: readonly Receipt[],
	traces: readonly BlockTrace[],
	terms: TrialTerms,
): TriedBlock {
	const paid = paidTo(terms.coinbase, traces);
	return new Map(
		receipts.map((receipt) => {
			const gasUsed = BigInt(receipt.gasUsed);
			const tip = (BigInt(receipt.effectiveGasPrice) - terms.head.nextBaseFee) * gasUsed;
			const gain = tip + (paid.get(receipt.transactionHash) ?? 0n);
			return [receipt.transactionHash, { reverted: receipt.status !== "0x1", gasUsed, gain }];
		}),
	);
}

/** Gains are read from traces; that they add up to what the coinbase has got is checked, not believed. */
function checkGains(receipts: readonly Receipt[], tried: TriedBlock, got: bigint, terms: TrialTerms): void {
	const coinbase = terms.coinbase.toLowerCase();
	if (receipts.some(({ from }) => from === coinbase)) return;
	const sum = [...tried.values()].reduce((all, { gain }) => all + gain, 0n);
	if (sum !== got)
		throw new Error(`the coinbase got ${got} wei in a trial whose transactions brought ${sum}`);
}

/** EIP-4844's point evaluation. */
const POINT_EVALUATION = "0x000000000000000000000000000000000000000a";
/** Commitment and proof of the polynomial that is zero everywhere. */
const INFINITY = `0xc0${"00".repeat(47)}`;

/**
 * anvil 1.7.1 computes its KZG tables, 1 to 7 seconds, when it first needs them: that would be in the middle of a
 * burst. A call of the precompile makes it do so beforehand; other calls are answered meanwhile.
 */
export async function warmKzg(rpc: ChainRpc): Promise<void> {
	const versionedHash = `0x01${sha256(INFINITY).slice(4)}`;
	const data = concat([versionedHash, ZeroHash, ZeroHash, INFINITY, INFINITY]);
	await rpc.call("eth_call", [{ to: POINT_EVALUATION, data }, "latest"]);
}

/** One trace, as parity's format has it. */
export interface BlockTrace {
	readonly type: string;
	readonly transactionHash: string;
	/** Place in the tree of calls: [] for the transaction itself, [0, 2] for the third call of its first. */
	readonly traceAddress: readonly number[];
	readonly error?: string;
	readonly action: {
		readonly callType?: string;
		readonly from?: string;
		readonly to?: string;
		readonly value?: string;
		readonly refundAddress?: string;
		readonly balance?: string;
	};
}

/** Wei moved to `recipient` (any case), by transaction hash; what was moved in a call that failed is not counted. */
export function paidTo(recipient: string, traces: readonly BlockTrace[]): Map<string, bigint> {
	const address = recipient.toLowerCase();
	const paid = new Map<string, bigint>();
	let transaction = "";
	let failed: string[] = [];
	for (const trace of traces) {
		// A transaction's traces come in a row, callers before what they call.
		if (trace.transactionHash !== transaction) failed = [];
		transaction = trace.transactionHash;
		const place = trace.traceAddress.map((step) => `${step}/`).join("");
		if (failed.some((caller) => place.startsWith(caller))) continue;
		if (trace.error !== undefined) {
			failed.push(place);
			continue;
		}
		const wei = moved(trace, address);
		if (wei !== 0n) paid.set(transaction, (paid.get(transaction) ?? 0n) + wei);
	}
	return paid;
}

function moved(trace: BlockTrace, address: string): bigint {
	const { action } = trace;
	if (trace.type === "suicide" && action.refundAddress === address) return BigInt(action.balance ?? 0);
	// A delegatecall's value is only shown, and a callcode's goes to the caller itself.
	const transfers = trace.type === "call" && action.callType === "call" && action.from !== address;
	return transfers && action.to === address ? BigInt(action.value ?? 0) : 0n;
}
