// Starts a chain of the go-ethereum that the environment variable GETH names, with mainnet's forks up to BPO2, or Amsterdam
// too. It has no peers, and mines only when a test asks, in the test's order. Without GETH the tests use recorded answers
// (recordedGeth.ts).

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Wallet } from "ethers";
import { ChainRpc } from "../devnet/chainRpc.ts";
import { type DevChain, devAccounts } from "../devnet/devChain.ts";
import { nodeFolder, startNode } from "../devnet/nodeProcess.ts";

/** Path of the go-ethereum to test with, or undefined. Version 1.17.8 is known to work. */
export const GETH = process.env.GETH === "" ? undefined : process.env.GETH;

/** Everything is optional. */
export interface GethOptions {
	/** Whether the Amsterdam fork, after BPO2, is active. */
	readonly amsterdam?: boolean;
	/** Gas of a block. Default 60,000,000. */
	readonly gasLimit?: number;
	/** Unix seconds of the genesis block. Default {@link GENESIS_TIME}: the same in each run. */
	readonly genesisTimestamp?: number;
	/** Wei per gas of the genesis block. Default one gwei. */
	readonly baseFee?: bigint;
	/** More accounts of the genesis block, by address. */
	readonly alloc?: Readonly<Record<string, GenesisAccount>>;
	/** More arguments of geth, for example `--rpc.gascap`. */
	readonly args?: readonly string[];
}

export interface GenesisAccount {
	/** All values are 0x hex. */
	readonly code?: string;
	readonly balance?: string;
	readonly nonce?: string;
	readonly storage?: Readonly<Record<string, string>>;
}

/** A block to be mined on the head. */
export interface GethBlock {
	/** Exactly these raw transactions, in this order; all must be valid. Default: those in the pool. */
	readonly txs?: readonly string[];
	/** Seconds. Default: a slot after the head. */
	readonly timestamp?: number;
	readonly coinbase?: string;
	readonly prevRandao?: string;
	readonly beaconRoot?: string;
}

/** A running geth with the accounts of the dev chain. `snapshot` and `revert` go back to blocks by number. */
export interface GethChain extends Omit<DevChain, "fund"> {
	/** Mines a block, and returns its hash. Throws if geth refuses one of `txs`. */
	mine(block?: GethBlock): Promise<string>;
	/** Whether geth accepts all transactions of the block, which is not kept. */
	takes(block: GethBlock): Promise<boolean>;
}

/** Fixed, so that hashes are the same in each run. */
const GENESIS_TIME = 1_790_000_000;
const CHAIN_ID = 31_337;
const SLOT_SECONDS = 12;
const ACCOUNTS = 10;
const GAS_LIMIT = 60_000_000;
const ZERO_HASH = `0x${"00".repeat(32)}`;
/** The default coinbase. */
const COINBASE = "0x00000000000000000000000000000000facade02";

/** Starts geth. Throws if GETH is not set, or with geth's output if it does not start. */
export async function startGeth(options: GethOptions = {}): Promise<GethChain> {
	if (GETH === undefined) throw new Error("GETH names no go-ethereum");
	const folder = nodeFolder("geth");
	const genesis = join(folder, "genesis.json");
	const own = ["--datadir", folder, "--cache", "64"];
	writeFileSync(genesis, JSON.stringify(genesisOf(GETH, options)));
	execFileSync(GETH, [...own, "init", genesis], { stdio: "pipe" });
	const namespaces = "eth,net,web3,testing,debug,txpool";
	// Of the same port, so on one.
	const server = (kind: string) => [`--${kind}`, `--${kind}.port`, "0", `--${kind}.api`, namespaces];
	const geth = await startNode({
		name: "geth",
		binary: GETH,
		folder,
		args: [
			...own,
			...["--nodiscover", "--maxpeers", "0", "--nat", "none", "--port", "0", "--ipcdisable"],
			...["--syncmode", "full", "--gcmode", "archive", "--authrpc.port", "0"],
			...["--miner.gaslimit", String(options.gasLimit ?? GAS_LIMIT)],
			...server("http"),
			...server("ws"),
			...["--rpc.batch-request-limit", "0", ...(options.args ?? [])],
		],
		listening: /HTTP server started\s+endpoint=[\d.]+:(\d+) auth=false/,
	});
	const rpc = new ChainRpc(geth.url);
	const accounts = devAccounts(ACCOUNTS);
	return {
		url: geth.url,
		wsUrl: geth.url.replace("http", "ws"),
		port: geth.port,
		chainId: CHAIN_ID,
		slotSeconds: SLOT_SECONDS,
		pid: geth.pid,
		accounts,
		wallet: (index) => {
			const account = accounts[index];
			if (account === undefined) throw new RangeError(`the chain has ${ACCOUNTS} accounts, no ${index}`);
			return new Wallet(account.privateKey);
		},
		rpc: (method, params) => rpc.call(method, params),
		batch: (calls) => rpc.batch(calls),
		snapshot: async () => String(await rpc.call("eth_blockNumber")),
		revert: async (number) => {
			await rpc.call("debug_setHead", [number]);
		},
		mine: async (block = {}) => {
			const { attributes } = await attributesOf(rpc, block);
			return String(await rpc.call("testing_commitBlockV1", [attributes, block.txs ?? null, "0x"]));
		},
		takes: async (block) => {
			const { attributes, parent } = await attributesOf(rpc, block);
			const params = [parent, attributes, block.txs ?? null, "0x"];
			const [outcome] = await rpc.batch([{ method: "testing_buildBlockV1", params }]);
			return outcome?.ok === true;
		},
		stop: async () => {
			await rpc.close();
			await geth.stop();
		},
	};
}

async function attributesOf(
	rpc: ChainRpc,
	block: GethBlock,
): Promise<{ attributes: object; parent: string }> {
	const head = (await rpc.call("eth_getBlockByNumber", ["latest", false])) as {
		hash: string;
		timestamp: string;
		slotNumber?: string;
	};
	const timestamp = block.timestamp ?? Number(head.timestamp) + SLOT_SECONDS;
	const attributes = {
		timestamp: `0x${timestamp.toString(16)}`,
		prevRandao: block.prevRandao ?? ZERO_HASH,
		suggestedFeeRecipient: block.coinbase ?? COINBASE,
		withdrawals: [],
		parentBeaconBlockRoot: block.beaconRoot ?? ZERO_HASH,
		// EIP-7843, of Amsterdam.
		...(head.slotNumber === undefined
			? {}
			: { slotNumber: `0x${(Number(head.slotNumber) + 1).toString(16)}` }),
	};
	return { attributes, parent: head.hash };
}

/** Mainnet's blobs: https://eips.ethereum.org/EIPS/eip-7892 */
const BLOB_SCHEDULE = {
	cancun: { target: 3, max: 6, baseFeeUpdateFraction: 3_338_477 },
	prague: { target: 6, max: 9, baseFeeUpdateFraction: 5_007_716 },
	bpo1: { target: 10, max: 15, baseFeeUpdateFraction: 8_346_193 },
	bpo2: { target: 14, max: 21, baseFeeUpdateFraction: 11_684_671 },
};

/** geth's own dev genesis has the system contracts of its forks; which forks are on is said here. */
function genesisOf(geth: string, options: GethOptions): object {
	const dumped = execFileSync(geth, ["--dev", "dumpgenesis"], { stdio: "pipe", maxBuffer: 10_000_000 });
	const { config, ...dev } = JSON.parse(String(dumped)) as {
		config: Record<string, unknown>;
		alloc: Record<string, GenesisAccount>;
	};
	const blocks = Object.entries(config).filter(([name]) => name.endsWith("Block"));
	const rich = devAccounts(ACCOUNTS).map(({ address }) => [
		address.slice(2),
		{ balance: "0x21e19e0c9bab2400000" },
	]);
	return {
		...dev,
		config: {
			...Object.fromEntries(blocks),
			chainId: CHAIN_ID,
			terminalTotalDifficulty: 0,
			...{ shanghaiTime: 0, cancunTime: 0, pragueTime: 0, osakaTime: 0, bpo1Time: 0, bpo2Time: 0 },
			...(options.amsterdam === true ? { amsterdamTime: 0 } : {}),
			blobSchedule: BLOB_SCHEDULE,
		},
		timestamp: `0x${(options.genesisTimestamp ?? GENESIS_TIME).toString(16)}`,
		gasLimit: `0x${(options.gasLimit ?? GAS_LIMIT).toString(16)}`,
		baseFeePerGas: `0x${(options.baseFee ?? 1_000_000_000n).toString(16)}`,
		alloc: { ...dev.alloc, ...Object.fromEntries(rich), ...options.alloc },
	};
}
