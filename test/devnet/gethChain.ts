// Starts a chain of the go-ethereum that the environment variable GETH names, with mainnet's forks
// up to BPO2, or Amsterdam too. It has no peers. It mines only on request, in the given order.
// Without GETH the tests use recorded answers (test/support/recordedGeth.ts).

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Wallet } from "ethers";
import { ChainRpc, quantity } from "./chainRpc.ts";
import { type DevChain, devAccounts } from "./devChain.ts";
import { nodeFolder, startNode } from "./nodeProcess.ts";

/** Path of the go-ethereum to test with, or undefined. Version 1.17.8 is known to work. */
export const GETH = process.env.GETH === "" ? undefined : process.env.GETH;
/** Why tests that need it are skipped; false if they run. */
export const SKIP_GETH = GETH === undefined ? "GETH names no go-ethereum" : false;

/** Everything is optional. */
export interface GethOptions {
	/** 0 (the default): a free port. */
	readonly port?: number;
	/** Seconds between two blocks, 1 at least. Default 12. */
	readonly slotSeconds?: number;
	/**
	 * Whether the Amsterdam fork, after BPO2, is active; or the Unix time in seconds from which it
	 * is.
	 */
	readonly amsterdam?: boolean | number;
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
	/**
	 * Exactly these raw transactions, in this order; all must be valid. Default: those in the pool.
	 */
	readonly txs?: readonly string[];
	/** Seconds. Default: a slot after the head. */
	readonly timestamp?: number;
	readonly coinbase?: string;
	readonly prevRandao?: string;
	readonly beaconRoot?: string;
}

/**
 * A running geth with the accounts of the dev chain. `snapshot` and `revert` go back to blocks by
 * number. `fund` gives nothing: what accounts hold is said by `alloc`, and it only makes sure of
 * that.
 */
export interface GethChain extends DevChain {
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
/** All but admin, personal and the like. */
const NAMESPACES = "eth,net,web3,testing,debug,txpool";
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
	const slotSeconds = options.slotSeconds ?? SLOT_SECONDS;
	// Servers with the same port are one server.
	const port = String(options.port ?? 0);
	const server = (kind: string) => [`--${kind}`, `--${kind}.port`, port, `--${kind}.api`, NAMESPACES];
	const geth = await startNode({
		name: "geth",
		binary: GETH,
		folder,
		args: [
			...own,
			...["--nodiscover", "--maxpeers", "0", "--nat", "none", "--port", "0", "--ipcdisable"],
			...["--syncmode", "full", "--gcmode", "archive", "--authrpc.port", "0"],
			...["--miner.gaslimit", String(options.gasLimit ?? GAS_LIMIT)],
			...[...server("http"), "--http.corsdomain", "*"],
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
		slotSeconds,
		pid: geth.pid,
		accounts,
		wallet: (index) => {
			const account = accounts[index];
			if (account === undefined) throw new RangeError(`the chain has ${ACCOUNTS} accounts, no ${index}`);
			return new Wallet(account.privateKey);
		},
		rpc: (method, params) => rpc.call(method, params),
		batch: (calls) => rpc.batch(calls),
		fund: async (accounts, wei = 10n ** 19n) => {
			const held = await rpc.each(
				"eth_getBalance",
				accounts.map(({ address }) => [address, "latest"]),
			);
			const poor = accounts.find((_, i) => BigInt(String(held[i])) < wei);
			if (poor !== undefined) throw new Error(`the genesis block must give ${poor.address} ${wei} wei`);
		},
		snapshot: async () => String(await rpc.call("eth_blockNumber")),
		revert: async (number) => {
			await rpc.call("debug_setHead", [number]);
		},
		mine: async (block = {}) => {
			const { attributes } = await attributesOf(rpc, block, slotSeconds);
			return String(await rpc.call("testing_commitBlockV1", [attributes, block.txs ?? null, "0x"]));
		},
		takes: async (block) => {
			const { attributes, parent } = await attributesOf(rpc, block, slotSeconds);
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
	slotSeconds: number,
): Promise<{ attributes: object; parent: string }> {
	const head = (await rpc.call("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const timestamp = block.timestamp ?? Number(head.timestamp) + slotSeconds;
	return {
		attributes: payloadAttributes(Number(head.number) + 1, timestamp, block),
		parent: String(head.hash),
	};
}

/**
 * The attributes of a block for geth's `testing` methods, with its number as that of its slot
 * (EIP-7843, since Amsterdam).
 */
export function payloadAttributes(
	number: number,
	timestamp: number,
	{ coinbase = COINBASE, prevRandao = ZERO_HASH, beaconRoot = ZERO_HASH }: Omit<GethBlock, "txs"> = {},
): object {
	return {
		timestamp: quantity(timestamp),
		prevRandao,
		suggestedFeeRecipient: coinbase,
		withdrawals: [],
		parentBeaconBlockRoot: beaconRoot,
		slotNumber: quantity(number),
	};
}

/** Mainnet's blobs: https://eips.ethereum.org/EIPS/eip-7892 */
const BLOB_SCHEDULE = {
	cancun: { target: 3, max: 6, baseFeeUpdateFraction: 3_338_477 },
	prague: { target: 6, max: 9, baseFeeUpdateFraction: 5_007_716 },
	bpo1: { target: 10, max: 15, baseFeeUpdateFraction: 8_346_193 },
	bpo2: { target: 14, max: 21, baseFeeUpdateFraction: 11_684_671 },
};

/**
 * geth's own dev genesis has the system contracts of its forks; which forks are on is said here.
 */
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
			...amsterdamOf(options),
			blobSchedule: BLOB_SCHEDULE,
		},
		timestamp: `0x${(options.genesisTimestamp ?? GENESIS_TIME).toString(16)}`,
		gasLimit: `0x${(options.gasLimit ?? GAS_LIMIT).toString(16)}`,
		baseFeePerGas: `0x${(options.baseFee ?? 1_000_000_000n).toString(16)}`,
		alloc: { ...dev.alloc, ...Object.fromEntries(rich), ...options.alloc },
	};
}

function amsterdamOf({ amsterdam = false }: GethOptions): object {
	return amsterdam === false ? {} : { amsterdamTime: amsterdam === true ? 0 : amsterdam };
}
