// Starts an anvil chain on loopback with funded accounts. It mines nothing by itself: the dev builder, or a test by RPC, builds
// its blocks.

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

/** One of the chain's funded accounts; the keys are those of the well-known "test … junk" mnemonic. */
interface DevAccount {
	/** Checksummed. */
	readonly address: string;
	/** 0x and 64 hex digits. */
	readonly privateKey: string;
}

/** A running chain. */
export type DevChain = Awaited<ReturnType<typeof startDevChain>>;

/** The mnemonic of every Ethereum dev chain. Its keys are public, so they must never hold real ether. */
const DEV_MNEMONIC = "test test test test test test test test test test test junk";

/** Arguments of every anvil in the dev network: it mines only on request, with transactions in order of arrival. */
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
		 * Goes back to a snapshot, as a reorganisation would. Also restores the next base fee, which anvil 1.7.1's evm_revert
		 * leaves unchanged.
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
export function devAccounts(count: number): DevAccount[] {
	const parent = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(DEV_MNEMONIC), "m/44'/60'/0'/0");
	return Array.from({ length: count }, (_, i) => {
		const { address, privateKey } = parent.deriveChild(i);
		return { address, privateKey };
	});
}

/** After a revert anvil keeps the next base fee of the removed blocks; this sets that of the new head's child. */
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

/** EIP-1559: the base fee of the block after one with `baseFee` (wei) that used `used` gas of a `target`. */
function nextBaseFee(baseFee: bigint, used: bigint, target: bigint): bigint {
	if (used === target) return baseFee;
	if (used < target) return baseFee - (baseFee * (target - used)) / target / 8n;
	const rise = (baseFee * (used - target)) / target / 8n;
	return baseFee + (rise > 0n ? rise : 1n);
}
