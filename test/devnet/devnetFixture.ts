// The fixture of tests of the dev network itself: a chain and a builder, sample transactions and
// tiny contracts, without a relay.

import { id, keccak256, Wallet } from "ethers";
import type { BuiltBlock } from "./blockMaker.ts";
import { BuilderClient } from "./builderClient.ts";
import { quantity } from "./chainRpc.ts";
import { type DevBuilderOptions, startDevBuilder } from "./devBuilder.ts";
import { type DevChainOptions, startDevChain } from "./devChain.ts";

/** A chain with a builder that builds when asked. */
export type DevnetFixture = Awaited<ReturnType<typeof startFixture>>;

/** Addresses at which {@link startFixture} puts code. */
export const CONTRACTS = {
	/** Pays the value of its call to the block's coinbase. */
	payer: "0x00000000000000000000000000000000000da401",
	/** Like payer, but only its first call succeeds; later ones revert. */
	once: "0x00000000000000000000000000000000000da402",
	/** Always reverts; takes no ether. */
	refuser: "0x00000000000000000000000000000000000da403",
	/** Accepts ether and writes storage, so 21,000 gas is too little. */
	wallet: "0x00000000000000000000000000000000000da404",
} as const;

const CODE: Readonly<Record<keyof typeof CONTRACTS, string>> = {
	// PUSH0 ×4 CALLVALUE COINBASE GAS CALL STOP
	payer: "0x5f5f5f5f34415af100",
	// SLOAD(0) JUMPI→0x12; SSTORE(0, 1); as payer; JUMPDEST REVERT
	once: "0x5f5460125760015f555f5f5f5f34415af1005b5f5ffd",
	refuser: "0x5f5ffd",
	// SSTORE(0, CALLVALUE) STOP
	wallet: "0x345f5500",
};

/** Starts a chain with the contracts, and a builder in manual mode. */
export async function startFixture(
	options: { readonly chain?: DevChainOptions; readonly builder?: Omit<DevBuilderOptions, "chain"> } = {},
) {
	const chain = await startDevChain(options.chain);
	for (const [name, address] of Object.entries(CONTRACTS)) {
		await chain.rpc("anvil_setCode", [address, CODE[name as keyof typeof CONTRACTS]]);
	}
	const builder = await startDevBuilder({ manual: true, ...options.builder, chain });
	const clientOf = (wallet: Wallet): BuilderClient => new BuilderClient({ url: builder.url, wallet });
	const client = clientOf(walletOf("relay"));
	const nonce = async (address: string): Promise<number> =>
		Number(await chain.rpc("eth_getTransactionCount", [address, "latest"]));
	return {
		chain,
		builder,
		/** A client with its own key; {@link DevnetFixture.clientOf} makes others. */
		client,
		clientOf,
		/** The nonce at the head. */
		nonce,
		/**
		 * A sample transaction of one of the chain's accounts. Default nonce: the account's at the
		 * head.
		 */
		from: async (account: number, fields: SampleFields = {}): Promise<Sample> => {
			const wallet = chain.wallet(account);
			return sample(wallet, { nonce: await nonce(wallet.address), ...fields });
		},
		/** Sends `txs` as a bundle by {@link client}, by default for the next block. */
		bundle: (txs: readonly Sample[], fields: object = {}): Promise<unknown> =>
			client.call("eth_sendBundle", { txs: txs.map(({ raw }) => raw), ...fields }),
		/** Sends a private transaction by {@link client}. */
		priv: ({ raw }: Sample): Promise<unknown> => client.call("eth_sendPrivateRawTransaction", raw),
		/** Builds a block. Throws if it differs from its trial. */
		build: async (): Promise<BuiltBlock> => {
			const block = await builder.buildBlock();
			if (!block.asTried) throw new Error("the block is not what was tried");
			return block;
		},
		/** Wei at the head. */
		balance: async (address: string): Promise<bigint> =>
			BigInt(String(await chain.rpc("eth_getBalance", [address, "latest"]))),
		/** The number of the block `count` after the head, as hex. */
		blockAfter: async (count: number): Promise<string> =>
			quantity(Number(await chain.rpc("eth_blockNumber")) + count),
		/** Whether each transaction of a block succeeded, by hash. */
		statuses: async ({ number }: BuiltBlock): Promise<Record<string, boolean>> => {
			const receipts = await chain.rpc("eth_getBlockReceipts", [quantity(number)]);
			const list = receipts as { transactionHash: string; status: string }[];
			return Object.fromEntries(list.map((receipt) => [receipt.transactionHash, receipt.status === "0x1"]));
		},
		stop: async (): Promise<void> => {
			await builder.stop();
			await chain.stop();
		},
	};
}

/** A wallet for each name, without ether. */
export function walletOf(name: string): Wallet {
	return new Wallet(id(`leeward devnet ${name}`));
}

/** The fields of a sample transaction; the defaults make it succeed. */
interface SampleFields {
	readonly nonce?: number;
	readonly to?: string | null;
	readonly value?: bigint;
	readonly data?: string;
	readonly gasLimit?: bigint;
	/** In wei per gas. */
	readonly tip?: bigint;
	readonly maxFee?: bigint;
}

/** A signed transaction. */
export interface Sample {
	readonly raw: string;
	readonly hash: string;
	readonly from: string;
}

/**
 * A signed EIP-1559 transaction of the dev chain; by default it sends 1 wei with a tip of 1 gwei.
 */
export async function sample(wallet: Wallet, fields: SampleFields = {}): Promise<Sample> {
	const raw = await wallet.signTransaction({
		type: 2,
		chainId: 31337,
		nonce: fields.nonce ?? 0,
		to: fields.to === undefined ? "0x00000000000000000000000000000000000a11ce" : fields.to,
		value: fields.value ?? 1n,
		data: fields.data ?? "0x",
		gasLimit: fields.gasLimit ?? 100_000n,
		maxPriorityFeePerGas: fields.tip ?? GWEI,
		maxFeePerGas: fields.maxFee ?? 100n * GWEI,
	});
	return { raw, hash: keccak256(raw), from: wallet.address };
}

const GWEI = 1_000_000_000n;
