// Starts an anvil chain on loopback with funded accounts. It mines nothing by itself: the dev
// builder, or a test by RPC, builds its blocks.

import { HDNodeWallet, Mnemonic, Wallet } from "ethers";
import { type ChainCall, ChainRpc, type RpcOutcome } from "./chainRpc.ts";
import { startAnvil } from "./nodeProcess.ts";

/** Everything is optional. */
export interface DevChainOptions {
	/** 0 (the default): a free port. */
	readonly port?: number;
	/** anvil's name of a hardfork ("prague"). Default: its newest. */
	readonly hardfork?: string;
	/** Seconds between two blocks, whole or not, which the dev builder keeps to. Default 12. */
	readonly slotSeconds?: number;
	/** Gas of a block. Default 60,000,000. */
	readonly gasLimit?: number;
	/** Number of funded accounts. Default 10. */
	readonly accounts?: number;
	/** Unix seconds of the genesis block. Default: now. */
	readonly genesisTimestamp?: number;
	/** Default 31337. */
	readonly chainId?: number;
}

/**
 * One of the chain's funded accounts; the keys are those of the well-known "test … junk" mnemonic.
 */
interface DevAccount {
	/** Checksummed. */
	readonly address: string;
	/** 0x and 64 hex digits. */
	readonly privateKey: string;
}

/** A running chain. */
export type DevChain = Awaited<ReturnType<typeof startDevChain>>;

/**
 * The mnemonic of every Ethereum dev chain. Its keys are public, so they must never hold real
 * ether.
 */
const DEV_MNEMONIC = "test test test test test test test test test test test junk";

/** Its first accounts, since ethers takes 70 ms to derive ten. */
const FIRST_ACCOUNTS: readonly DevAccount[] = [
	{
		address: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
		privateKey: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
	},
	{
		address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
		privateKey: "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
	},
	{
		address: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
		privateKey: "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
	},
	{
		address: "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
		privateKey: "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
	},
	{
		address: "0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65",
		privateKey: "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
	},
	{
		address: "0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc",
		privateKey: "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
	},
	{
		address: "0x976EA74026E726554dB657fA54763abd0C3a0aa9",
		privateKey: "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
	},
	{
		address: "0x14dC79964da2C08b23698B3D3cc7Ca32193d9955",
		privateKey: "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
	},
	{
		address: "0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f",
		privateKey: "0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
	},
	{
		address: "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720",
		privateKey: "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
	},
];

/**
 * Arguments of every anvil in the dev network: it mines only on request, with transactions in order
 * of arrival.
 */
export const ANVIL_FLAGS: readonly string[] = [
	"--no-mining",
	"--order",
	"fifo",
	// A bundle may spend what an earlier transaction of the same block pays.
	"--disable-pool-balance-checks",
	// Six blobs are 1.6 MB of hex, a batch of such transactions more.
	"--no-request-size-limit",
	// EIP-7825, as mainnet has it.
	"--enable-tx-gas-limit",
];

/** Starts a chain. Throws when anvil does not start (a port that is taken, an unknown hardfork). */
export async function startDevChain(options: DevChainOptions = {}) {
	const chainId = options.chainId ?? 31337;
	const slotSeconds = options.slotSeconds ?? 12;
	const count = options.accounts ?? 10;
	const args = [...ANVIL_FLAGS, "--mnemonic", DEV_MNEMONIC, "--accounts", String(count)];
	args.push("--chain-id", String(chainId), "--gas-limit", String(options.gasLimit ?? 60_000_000));
	args.push("--balance", "10000");
	if (options.hardfork !== undefined) args.push("--hardfork", options.hardfork);
	if (options.genesisTimestamp !== undefined) args.push("--timestamp", String(options.genesisTimestamp));
	const anvil = await startAnvil(options.port ?? 0, args);
	const rpc = new ChainRpc(anvil.url);
	await rpc.call("anvil_setLoggingEnabled", [false]);
	const accounts = devAccounts(count);
	return {
		/** http://127.0.0.1:port */
		url: anvil.url,
		/** ws://127.0.0.1:port */
		wsUrl: anvil.url.replace("http", "ws"),
		port: anvil.port,
		chainId,
		slotSeconds,
		pid: anvil.pid,
		accounts,
		/** The i-th account as an ethers wallet without a provider. Throws if there is none. */
		wallet: (index: number): Wallet => {
			const account = accounts[index];
			if (account === undefined) throw new RangeError(`the dev chain has ${count} accounts, no ${index}`);
			return new Wallet(account.privateKey);
		},
		/** The result of a call. Throws `ChainRpcError` for the node's errors. */
		rpc: (method: string, params?: readonly unknown[]): Promise<unknown> => rpc.call(method, params),
		/** Makes many calls in one request, and returns their outcomes in order. */
		batch: (calls: readonly ChainCall[]): Promise<RpcOutcome[]> => rpc.batch(calls),
		/** Sets the balance of each account. Default ten ether. */
		fund: async (accounts: readonly { readonly address: string }[], wei = 10n ** 19n): Promise<void> => {
			const balance = `0x${wei.toString(16)}`;
			const calls = accounts.map(({ address }) => ({
				method: "anvil_setBalance",
				params: [address, balance],
			}));
			if ((await rpc.batch(calls)).some(({ ok }) => !ok)) throw new Error("an account was given no funds");
		},
		/** Takes a snapshot for {@link revert}. */
		snapshot: async (): Promise<string> => String(await rpc.call("evm_snapshot")),
		/**
		 * Goes back to a snapshot, as a reorganisation would. Also restores the next base fee, which
		 * anvil 1.7.1's evm_revert leaves unchanged.
		 */
		revert: (snapshot: string): Promise<void> => revert(rpc, snapshot),
		/** Stops anvil and waits until it is gone. May be called again. */
		stop: async (): Promise<void> => {
			await rpc.close();
			await anvil.stop();
		},
	};
}

/** The first `count` accounts that every dev chain funds. */
export function devAccounts(count: number): readonly DevAccount[] {
	if (count <= FIRST_ACCOUNTS.length) return FIRST_ACCOUNTS.slice(0, count);
	const parent = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(DEV_MNEMONIC), "m/44'/60'/0'/0");
	return Array.from({ length: count }, (_, i) => {
		const { address, privateKey } = parent.deriveChild(i);
		return { address, privateKey };
	});
}

/**
 * After a revert anvil keeps the next base fee of the removed blocks; this sets that of the new
 * head's child.
 */
async function revert(rpc: ChainRpc, snapshot: string): Promise<void> {
	if ((await rpc.call("evm_revert", [snapshot])) !== true)
		throw new Error("anvil does not know that snapshot");
	const head = (await rpc.call("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const baseFee = BigInt(head.baseFeePerGas ?? 0);
	const target = BigInt(head.gasLimit ?? 0) / 2n;
	const used = BigInt(head.gasUsed ?? 0);
	const next = nextBaseFee(baseFee, used, target);
	await rpc.call("anvil_setNextBlockBaseFeePerGas", [`0x${next.toString(16)}`]);
}

/**
 * EIP-1559: the base fee of the block after one with `baseFee` (wei) that used `used` gas of a
 * `target`.
 */
function nextBaseFee(baseFee: bigint, used: bigint, target: bigint): bigint {
	if (used === target) return baseFee;
	if (used < target) return baseFee - (baseFee * (target - used)) / target / 8n;
	const rise = (baseFee * (used - target)) / target / 8n;
	return baseFee + (rise > 0n ? rise : 1n);
}
