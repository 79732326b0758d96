// Tries blocks by mining them on a second anvil, a fork of the dev chain at its head, and reads
// what each transaction paid to the coinbase. The dev chain itself is only read.

import { concat, sha256, ZeroHash } from "ethers";
import { pushInOrder } from "./anvilPool.ts";
import type { BlockTerms, Pushed, TriedBlock } from "./buildingNode.ts";
import { ChainRpc, quantity, readLatestBlock } from "./chainRpc.ts";
import { ANVIL_FLAGS } from "./devChain.ts";
import { type AnvilProcess, startAnvil } from "./nodeProcess.ts";

interface Receipt {
	readonly transactionHash: string;
	readonly status: string;
	readonly gasUsed: string;
	readonly effectiveGasPrice: string;
}

/** A second anvil that forks the first. Serves one caller at a time. */
export class TrialChain {
	readonly #upstream: string;
	readonly #anvil: AnvilProcess;
	readonly #rpc: ChainRpc;

	private constructor(upstream: string, anvil: AnvilProcess) {
		this.#upstream = upstream;
		this.#anvil = anvil;
		this.#rpc = new ChainRpc(anvil.url);
	}

	/** Starts a fork of the chain at `upstream` (http), with that chain's hardfork. */
	static async start(upstream: string): Promise<TrialChain> {
		const chain = new ChainRpc(upstream);
		const info = (await chain.call("anvil_nodeInfo")) as { hardFork: string };
		await chain.close();
		// No cache on disk: it is kept by chain id and block number, and every dev chain has the same
		// ones. No accounts: anvil would give its own their 10,000 ETH again, whatever they have on the
		// chain.
		const fork = ["--fork-url", upstream, "--no-storage-caching", "--no-rate-limit", "--accounts", "0"];
		const anvil = await startAnvil(0, [...ANVIL_FLAGS, "--hardfork", info.hardFork.toLowerCase(), ...fork]);
		const trial = new TrialChain(upstream, anvil);
		await trial.#rpc.call("anvil_setLoggingEnabled", [false]);
		return trial;
	}

	/**
	 * Forks the chain again at `terms.head`, so that cheat codes and reorganisations count, and
	 * fetches the accounts that will be needed, since fetching them one by one during mining is slow.
	 */
	async reset({ head, coinbase }: BlockTerms, addresses: readonly string[]): Promise<void> {
		await this.#rpc.call("anvil_dropAllTransactions");
		const forking = { jsonRpcUrl: this.#upstream, blockNumber: head.number };
		await this.#rpc.call("anvil_reset", [{ forking }]);
		const known = [...new Set([...addresses, coinbase])];
		await this.#rpc.all([
			{ method: "evm_setBlockGasLimit", params: [quantity(head.nextGasLimit)] },
			{ method: "anvil_setCoinbase", params: [coinbase] },
			...known.map((address) => ({ method: "eth_getBalance", params: [address, "latest"] })),
		]);
	}

	/** Prepares it for blobs by {@link warmKzg} or {@link takeBlobsUnchecked}. */
	forBlobs(ready: (rpc: ChainRpc) => Promise<void>): Promise<void> {
		return ready(this.#rpc);
	}

	/**
	 * Mines `transactions` in a block on the forked head, reads the outcome, and reverts the block.
	 */
	async tryBlock(
		terms: BlockTerms,
		transactions: readonly Pushed[],
		gasLimit = terms.head.nextGasLimit,
	): Promise<TriedBlock> {
		if (transactions.length === 0) return new Map();
		const rpc = this.#rpc;
		const { nextBaseFee, nextGasLimit } = terms.head;
		const snapshot = await rpc.call("evm_snapshot");
		await rpc.all([
			{ method: "evm_setBlockGasLimit", params: [quantity(gasLimit)] },
			// evm_revert does not restore the base fee.
			{ method: "anvil_setNextBlockBaseFeePerGas", params: [quantity(nextBaseFee)] },
		]);
		await pushInOrder(rpc, transactions);
		await rpc.call("evm_mine", [{ timestamp: terms.timestamp }]);
		const block = await readLatestBlock(rpc);
		const tag = quantity(block.number);
		const [receipts, traces] = (await rpc.all([
			{ method: "eth_getBlockReceipts", params: [tag] },
			// State diffs would say it more simply, but anvil takes half a minute for those of a thousand
			// transactions.
			{ method: "trace_block", params: [tag] },
		])) as [Receipt[], BlockTrace[]];
		await rpc.call("anvil_dropAllTransactions");
		await rpc.call("evm_revert", [snapshot]);
		await rpc.call("evm_setBlockGasLimit", [quantity(nextGasLimit)]);
		if (block.baseFeePerGas !== nextBaseFee) throw new Error("the trial had another base fee");
		const paid = paidTo(terms.coinbase, traces);
		return new Map(
			receipts.map(({ transactionHash, status, gasUsed, effectiveGasPrice }) => {
				const tip = (BigInt(effectiveGasPrice) - nextBaseFee) * BigInt(gasUsed);
				const gain = tip + (paid.get(transactionHash) ?? 0n);
				return [transactionHash, { reverted: status !== "0x1", gasUsed: BigInt(gasUsed), gain }];
			}),
		);
	}

	/** Stops it and waits for the end. */
	async stop(): Promise<void> {
		await this.#rpc.close();
		await this.#anvil.stop();
	}
}

/** EIP-4844's point evaluation. */
const POINT_EVALUATION = "0x000000000000000000000000000000000000000a";
/** Commitment and proof of the polynomial that is zero everywhere. */
const INFINITY = `0xc0${"00".repeat(47)}`;

/**
 * anvil 1.7.1 computes its KZG tables, which takes 1 to 7 seconds, at their first use, which would
 * be during a burst. A call of the precompile makes it compute them beforehand, while it still
 * answers other calls.
 */
export async function warmKzg(rpc: ChainRpc): Promise<void> {
	const versionedHash = `0x01${sha256(INFINITY).slice(4)}`;
	const data = concat([versionedHash, ZeroHash, ZeroHash, INFINITY, INFINITY]);
	await rpc.call("eth_call", [{ to: POINT_EVALUATION, data }, "latest"]);
}

/**
 * anvil 1.7.1 takes blobs from accounts that it impersonates without a look at their proofs, and
 * needs no KZG tables then.
 */
export async function takeBlobsUnchecked(rpc: ChainRpc): Promise<void> {
	await rpc.call("anvil_autoImpersonateAccount", [true]);
}

/** One trace, as parity's format has it. */
interface BlockTrace {
	readonly type: string;
	readonly transactionHash: string;
	/**
	 * Position in the tree of calls: [] for the transaction itself, [0, 2] for the third call of its
	 * first.
	 */
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

/**
 * Wei transferred to `recipient` (any case), by transaction hash; transfers in failed calls don't
 * count.
 */
function paidTo(recipient: string, traces: readonly BlockTrace[]): Map<string, bigint> {
	const address = recipient.toLowerCase();
	const paid = new Map<string, bigint>();
	let transaction = "";
	let failed: string[] = [];
	for (const trace of traces) {
		// A transaction's traces are consecutive, each caller before its inner calls.
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
	// A delegatecall transfers no value, and a callcode only to the caller itself.
	const transfers = trace.type === "call" && action.callType === "call" && action.from !== address;
	return transfers && action.to === address ? BigInt(action.value ?? 0) : 0n;
}
