// Reads the market from the searcher's own node: pools, capital and nonce at the head. Computes and
// signs backruns, and sends nothing.

import { Contract, Interface, type JsonRpcProvider, keccak256, type Wallet } from "ethers";
import {
	afterSwap,
	bestRoundTrip,
	PAIR,
	type Reserves,
	type RoundTrip,
	type Target,
	type Watched,
} from "./pools.ts";

/** The market's state at one block. */
interface Snapshot {
	/** The block whose state this is; bids are for the next one. */
	readonly block: number;
	/** The block's base fee, in wei per gas. */
	readonly baseFee: bigint;
	readonly pools: readonly [Reserves, Reserves];
	/** WETH of the arbitrage contract. */
	readonly capital: bigint;
	/** The searcher's next nonce. */
	readonly nonce: number;
}

/** A signed backrun with its amounts. */
export interface Backrun {
	readonly raw: string;
	readonly hash: string;
	readonly buyAt: string;
	readonly sellAt: string;
	/** WETH that it starts with, and WETH that it gains, including the bid. */
	readonly amountIn: bigint;
	readonly gain: bigint;
	/** Wei that it pays to the block's coinbase. */
	readonly bid: bigint;
}

const ARBITRAGE = new Interface([
	"function backrun(address buyAt, address sellAt, uint256 amountIn, uint256 bid)",
	"function weth() view returns (address)",
]);
const TOKEN = ["function balanceOf(address) view returns (uint256)"];

/** The share of the gain after gas that is bid: most of it, since others bid too. */
const BID_PERCENT = 80n;
/**
 * Two swaps, four transfers and the payment use about 200,000 gas, and more where a slot is new
 * since Amsterdam.
 */
const GAS_LIMIT = 600_000n;
const PRIORITY_FEE_WEI = 1_000_000_000n;

/** The pools, the contract and the key. */
export class ArbitrageMarket {
	readonly watched: Watched;
	readonly #arbitrage: string;
	readonly #chainId: bigint;
	readonly #wallet: Wallet;
	readonly #node: JsonRpcProvider;
	readonly #pairs: readonly [Contract, Contract];
	readonly #weth: Contract;

	private constructor(
		options: { readonly watched: Watched; readonly arbitrage: string; readonly chainId: bigint },
		dependencies: { readonly node: JsonRpcProvider; readonly wallet: Wallet },
	) {
		const { node, wallet } = dependencies;
		const [one, other] = options.watched.pairs;
		this.watched = options.watched;
		this.#arbitrage = options.arbitrage;
		this.#chainId = options.chainId;
		this.#wallet = wallet;
		this.#node = node;
		this.#pairs = [new Contract(one, PAIR, node), new Contract(other, PAIR, node)];
		this.#weth = new Contract(options.watched.weth, TOKEN, node);
	}

	/** Reads the contracts' tokens from the node. Throws if they do not fit together. */
	static async open(
		options: { readonly pairs: readonly [string, string]; readonly arbitrage: string },
		dependencies: { readonly node: JsonRpcProvider; readonly wallet: Wallet },
	): Promise<ArbitrageMarket> {
		const { node } = dependencies;
		const tokens = await Promise.all(
			options.pairs.map(async (pair) => {
				const ask = (name: string) => new Contract(pair, PAIR, node).getFunction(name).staticCall();
				return { weth: String(await ask("weth")), token: String(await ask("token")) };
			}),
		);
		const own = String(
			await new Contract(options.arbitrage, ARBITRAGE, node).getFunction("weth").staticCall(),
		);
		const [one, other] = tokens;
		if (one === undefined || one.weth !== other?.weth || one.token !== other.token || one.weth !== own) {
			throw new Error("the two pairs and the arbitrage contract are not of the same tokens");
		}
		const { chainId } = await node.getNetwork();
		const watched = { pairs: options.pairs, ...one };
		return new ArbitrageMarket({ watched, arbitrage: options.arbitrage, chainId }, dependencies);
	}

	/** Reads all that a bid depends on, at one block. */
	async snapshot(): Promise<Snapshot> {
		const block = await this.#node.getBlock("latest");
		if (block === null) throw new Error("the node has no latest block");
		const at = { blockTag: block.number };
		const [one, other, capital, nonce] = await Promise.all([
			this.#reserves(this.#pairs[0], at),
			this.#reserves(this.#pairs[1], at),
			this.#weth.getFunction("balanceOf").staticCall(this.#arbitrage, at),
			this.#node.getTransactionCount(this.#wallet.address, block.number),
		]);
		const baseFee = block.baseFeePerGas ?? 0n;
		return { block: block.number, baseFee, pools: [one, other], capital: BigInt(capital), nonce };
	}

	/** The block that holds the transaction, or null. */
	async minedIn(hash: string): Promise<number | null> {
		return (await this.#node.getTransactionReceipt(hash))?.blockNumber ?? null;
	}

	/** The best signed backrun after the target; null if gas costs more than the gain. */
	async backrun(target: Target, now: Snapshot): Promise<Backrun | null> {
		const found = bestBehind(target, now);
		if (found === null) return null;
		const { buy, sell, trip } = found;
		// The base fee rises by at most an eighth per block.
		const gasPrice = (now.baseFee * 9n) / 8n + PRIORITY_FEE_WEI;
		const bid = ((trip.gain - GAS_LIMIT * gasPrice) * BID_PERCENT) / 100n;
		if (bid <= 0n) return null;
		const [buyAt, sellAt] = [this.watched.pairs[buy], this.watched.pairs[sell]];
		const raw = await this.#wallet.signTransaction({
			type: 2,
			chainId: this.#chainId,
			// The state at the head, not the pending one: all bids for one block compete for the same
			// nonce, and one lands.
			nonce: now.nonce,
			to: this.#arbitrage,
			data: ARBITRAGE.encodeFunctionData("backrun", [buyAt, sellAt, trip.amountIn, bid]),
			gasLimit: GAS_LIMIT,
			maxFeePerGas: gasPrice,
			maxPriorityFeePerGas: PRIORITY_FEE_WEI,
		});
		return { raw, hash: keccak256(raw), buyAt, sellAt, ...trip, bid };
	}

	async #reserves(pair: Contract, at: { readonly blockTag: number }): Promise<Reserves> {
		const { weth, token } = await pair.getFunction("reserves").staticCall(at);
		return { weth: BigInt(weth), token: BigInt(token) };
	}
}

/** Which way round gains most once the target's swap is made. */
function bestBehind(
	target: Target,
	{ pools, capital }: Snapshot,
): { readonly buy: 0 | 1; readonly sell: 0 | 1; readonly trip: RoundTrip } | null {
	const behind = afterSwap(pools[target.pool], target.swap);
	const [one, other] = target.pool === 0 ? [behind, pools[1]] : [pools[0], behind];
	const there = bestRoundTrip(one, other, capital);
	if (there !== null) return { buy: 0, sell: 1, trip: there };
	const back = bestRoundTrip(other, one, capital);
	return back === null ? null : { buy: 1, sell: 0, trip: back };
}
