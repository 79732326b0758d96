// The dev chain with the fork that FORK names: on anvil where it has that fork, else on the
// go-ethereum that GETH names.

import { FORKS, type Fork, forkShownBy } from "../../shared/ethereum/forks.ts";
import { DEV_COINBASE_ALLOC } from "./devBuilder.ts";
import { type DevChain, startDevChain } from "./devChain.ts";
import { GETH, startGeth } from "./gethChain.ts";

/** Options of a dev chain. */
interface ForkChainOptions {
	/** 0: a free one. */
	readonly port: number;
	/** Seconds, whole or not. */
	readonly slotSeconds: number;
	/** Undefined: anvil's newest. */
	readonly fork?: Fork | undefined;
}

/** As Amsterdam's blocks are expected to have it. */
const GAS_LIMIT = 200_000_000;
const HAS_FORK = "Set GETH to a go-ethereum that has it, 1.17.8 or later, for example GETH=$HOME/go/bin/geth";

/**
 * The fork that FORK names, in any case; undefined if it is not set. Throws if there is none of
 * that name.
 */
export function forkOf(env: Readonly<Record<string, string | undefined>>): Fork | undefined {
	const name = env.FORK?.trim().toLowerCase() ?? "";
	const fork = FORKS.find((one) => one.name.toLowerCase() === name);
	if (fork !== undefined || name === "") return fork;
	const names = FORKS.map((one) => one.name.toLowerCase()).join(", ");
	throw new Error(`FORK is not valid: expected one of ${names}, for example FORK=amsterdam`);
}

/** Starts the chain. Throws if the port is taken, or no node here has the fork. */
export async function startForkChain({ fork, ...options }: ForkChainOptions): Promise<DevChain> {
	if (fork === undefined) return startDevChain(options);
	const name = fork.name.toLowerCase();
	const anvil = await startDevChain({ ...options, hardfork: name }).catch(() => null);
	if (anvil !== null) return anvil;
	if (GETH === undefined)
		throw new Error(`the anvil that is installed does not run ${fork.name}. ${HAS_FORK}`);
	if (options.slotSeconds < 1)
		throw new Error(
			`go-ethereum, which runs ${fork.name}, has a second at least between two blocks: set SLOT_SECONDS`,
		);
	const geth = await startGeth({
		...options,
		gasLimit: GAS_LIMIT,
		genesisTimestamp: Math.floor(Date.now() / 1_000),
		amsterdam: true,
		// Its users may pay what they like, as on anvil.
		args: ["--rpc.txfeecap", "0"],
		alloc: DEV_COINBASE_ALLOC,
	});
	const genesis = (await geth.rpc("eth_getBlockByNumber", ["0x0", false])) as Record<string, unknown>;
	if (forkShownBy(genesis) === fork) return geth;
	const version = String(await geth.rpc("web3_clientVersion"));
	await geth.stop();
	throw new Error(`${version} does not run ${fork.name}. ${HAS_FORK}`);
}
