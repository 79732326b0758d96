// Deploys a small market on a dev chain: two pools of the same tokens at the same price, a
// searcher's contract with capital, and a user with WETH to swap. Run directly, `node --import tsx
// test/devnet/deployMarket.ts`, it prints a searcher's settings.

import { fileURLToPath } from "node:url";
import { AbiCoder, concat, getCreateAddress, type Interface, keccak256, Wallet } from "ethers";
import { pause, systemClock } from "../../shared/clock.ts";
import { ChainRpc } from "./chainRpc.ts";
import { type Contract, type Contracts, compileContracts } from "./compileContracts.ts";
import { devAccounts } from "./devChain.ts";
import { staysUp } from "./devSystem.ts";

/** The accounts that set the market up: three different ones, with ether. */
interface MarketAccounts {
	readonly deployer: Wallet;
	/** Owns the arbitrage contract. */
	readonly searcher: Wallet;
	/** May swap in both pools. */
	readonly user: Wallet;
}

/** The market's addresses. */
export interface Market {
	readonly weth: string;
	readonly token: string;
	readonly pairs: readonly [string, string];
	readonly arbitrage: string;
}

/** The initial reserves of each pool. */
export const POOL = { weth: 1_000n * 10n ** 18n, token: 3_000_000n * 10n ** 18n } as const;
/** WETH that the user and the searcher's contract start with. */
const USER_WETH: bigint = 50n * 10n ** 18n;
export const SEARCHER_WETH: bigint = 100n * 10n ** 18n;

/** Enough for each fork: code that is kept costs 1,530 gas a byte since Amsterdam. */
const CREATION_GAS = 16_000_000n;
const CALL_GAS = 2_500_000n;
const GWEI = 1_000_000_000n;
const MINED_MS = 30_000;
const SEND_AGAIN_MS = 100;

/**
 * Sends the contracts to the chain's public mempool, then the transactions that use them, and waits
 * until all are mined, which takes two blocks. Throws if one fails, or if it takes longer than 30
 * s.
 */
export async function deployMarket(
	url: string,
	contracts: Contracts,
	{ deployer, searcher, user }: MarketAccounts,
): Promise<Market> {
	const rpc = new ChainRpc(url);
	try {
		const [makes, bids, swaps] = await Promise.all([
			accountOf(rpc, deployer),
			accountOf(rpc, searcher),
			accountOf(rpc, user),
		]);
		const { WrappedEther, Token, Pair, Arbitrage } = contracts;
		const weth = await makes.create(WrappedEther, [], []);
		const token = await makes.create(Token, ["string", "uint256"], ["TOKEN", 2n * POOL.token]);
		const newPair = () => makes.create(Pair, ["address", "address"], [weth, token]);
		const pairs = [await newPair(), await newPair()] as const;
		await makes.call(WrappedEther.abi, weth, "deposit", [], 2n * POOL.weth);
		for (const pair of pairs) {
			await makes.call(WrappedEther.abi, weth, "approve", [pair, POOL.weth]);
			await makes.call(Token.abi, token, "approve", [pair, POOL.token]);
			await makes.call(Pair.abi, pair, "add", [POOL.weth, POOL.token]);
		}
		const arbitrage = await bids.create(Arbitrage, ["address"], [weth]);
		await bids.call(WrappedEther.abi, weth, "deposit", [], SEARCHER_WETH);
		await bids.call(WrappedEther.abi, weth, "transfer", [arbitrage, SEARCHER_WETH]);
		await swaps.call(WrappedEther.abi, weth, "deposit", [], USER_WETH);
		for (const pair of pairs) await swaps.call(WrappedEther.abi, weth, "approve", [pair, USER_WETH]);
		// Not all at once: what is called before it is there succeeds, and does nothing.
		await mine(rpc, makes.signed);
		await mine(rpc, [...bids.signed, ...swaps.signed]);
		return { weth, token, pairs, arbitrage };
	} finally {
		await rpc.close();
	}
}

/** Signs one account's transactions with consecutive nonces. */
async function accountOf(rpc: ChainRpc, wallet: Wallet) {
	const chainId = BigInt(String(await rpc.call("eth_chainId")));
	let nonce = Number(await rpc.call("eth_getTransactionCount", [wallet.address, "latest"]));
	/** Raw transactions, in order. */
	const signed: string[] = [];
	const sign = async (to: string | null, data: string, value: bigint): Promise<void> => {
		const gasLimit = to === null ? CREATION_GAS : CALL_GAS;
		const fees = { gasLimit, maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: GWEI };
		signed.push(await wallet.signTransaction({ type: 2, chainId, nonce, to, data, value, ...fees }));
		nonce += 1;
	};
	return {
		signed,
		/** The address that the contract will have. */
		async create({ code }: Contract, types: readonly string[], values: readonly unknown[]): Promise<string> {
			const address = getCreateAddress({ from: wallet.address, nonce });
			await sign(null, concat([code, AbiCoder.defaultAbiCoder().encode(types, values)]), 0n);
			return address;
		},
		call: (abi: Interface, to: string, name: string, values: readonly unknown[], wei = 0n): Promise<void> =>
			sign(to, abi.encodeFunctionData(name, values), wei),
	};
}

/**
 * Sends them repeatedly until all are mined: the dev chain's pool may lose one that arrives while a
 * block is built.
 */
async function mine(rpc: ChainRpc, raws: readonly string[]): Promise<void> {
	const until = systemClock.monotonic() + MINED_MS / 2;
	for (;;) {
		const asked = raws.map((raw) => [keccak256(raw)]);
		const receipts = (await rpc.each("eth_getTransactionReceipt", asked)) as ({ status: string } | null)[];
		if (receipts.some((receipt) => receipt?.status === "0x0"))
			throw new Error("the market's set-up reverted");
		const missing = raws.filter((_, i) => receipts[i] === null);
		if (missing.length === 0) return;
		if (systemClock.monotonic() > until) throw new Error("the market's set-up is not mined");
		// Those that are in the pool already are refused: that is fine.
		await rpc.batch(missing.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] })));
		await pause(systemClock, SEND_AGAIN_MS);
	}
}

async function main(): Promise<void> {
	const url = process.env.ETH_RPC_URL ?? "http://127.0.0.1:8545";
	const wallets = devAccounts(3).map(({ privateKey }) => new Wallet(privateKey));
	const [deployer, searcher, user] = wallets as [Wallet, Wallet, Wallet];
	const market = await deployMarket(url, compileContracts(), { deployer, searcher, user });
	const [pairA, pairB] = market.pairs;
	const lines = [
		`export ETH_RPC_URL=${url} ARBITRAGE=${market.arbitrage} PAIR_A=${pairA} PAIR_B=${pairB}`,
		`export PRIVATE_KEY=${searcher.privateKey}`,
		`export WETH=${market.weth} USER_KEY=${user.privateKey}`,
	];
	process.stdout.write(`${lines.join("\n")}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	staysUp(main()).catch((thrown: unknown) => {
		process.stderr.write(`deployMarket: ${thrown instanceof Error ? thrown.message : "it failed"}\n`);
		process.exit(1);
	});
}
