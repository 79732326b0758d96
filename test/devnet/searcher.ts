// A searcher to start from: `node --import tsx test/devnet/searcher.ts`, with the relay's address,
// a node, a key and three contracts from the environment. It prints a line for each event, and
// exits with 1 when its connection to the relay closes, so that a supervisor restarts it.

import { fileURLToPath } from "node:url";
import { formatEther, getAddress, JsonRpcProvider, Wallet } from "ethers";
import { type Clock, systemClock } from "../../shared/clock.ts";
import { ArbitrageMarket } from "./searcher/market.ts";
import { RelaySocket } from "./searcher/relaySocket.ts";
import { Searcher, type SearcherNews } from "./searcher/searcher.ts";

/** The options of a searcher. */
export interface SearcherSettings {
	/** The relay's websocket, ws:// or wss://. */
	readonly relayWsUrl: string;
	/** Any node of the same chain. */
	readonly nodeUrl: string;
	/** The key of the arbitrage contract's owner, which pays the gas of backruns that land. */
	readonly privateKey: string;
	readonly arbitrage: string;
	/** Two pools of the same tokens. */
	readonly pairs: readonly [string, string];
}

/** A running searcher. */
export interface RunningSearcher {
	readonly address: string;
	/** Resolves with the reason when the connection to the relay has ended. */
	readonly closed: Promise<string>;
	stop(): Promise<void>;
}

/**
 * Starts a searcher; calls `tell` for everything that it does. Rejects if relay, node or contracts
 * can't be reached.
 */
export async function startSearcher(
	settings: SearcherSettings,
	{ clock, tell }: { readonly clock: Clock; readonly tell: (news: SearcherNews) => void },
): Promise<RunningSearcher> {
	const wallet = new Wallet(settings.privateKey);
	// Nothing of the last block may be remembered when the next one is there.
	const node = new JsonRpcProvider(settings.nodeUrl, undefined, { cacheTimeout: -1, staticNetwork: true });
	try {
		const market = await ArbitrageMarket.open(settings, { node, wallet });
		const relay = await RelaySocket.open(settings.relayWsUrl, clock);
		const stop = async (): Promise<void> => {
			await relay.close();
			node.destroy();
		};
		await new Searcher({ relay, market, clock, tell }).start().catch(async (thrown: unknown) => {
			await stop();
			throw thrown;
		});
		return { address: wallet.address, closed: relay.closed, stop };
	} catch (thrown) {
		node.destroy();
		throw thrown;
	}
}

/** The event as one line. */
function tellLine(news: SearcherNews): string {
	switch (news.kind) {
		case "seen":
			return `${news.target} a swap`;
		case "bid": {
			const { amountIn, gain, bid } = news.backrun;
			const trade = `${formatEther(amountIn)} WETH around, gain ${formatEther(gain)}`;
			return `${news.target} bid ${formatEther(bid)} ETH for block ${news.block} (${trade}), bundle ${news.bundle}`;
		}
		case "refused":
			return `${news.target} refused for block ${news.block}: ${news.why}`;
		case "noGain":
			return `${news.target} gains nothing in block ${news.block}`;
		case "status": {
			const { bundleHash, blockNumber, stage, reason, paid } = news.status;
			const more = [reason ?? "", paid === null ? "" : `${paid} wei were paid`].join(" ").trim();
			return `bundle ${bundleHash} block ${blockNumber}: ${stage} ${more}`.trim();
		}
		case "settled":
			return news.block === null ? `${news.target} given up` : `${news.target} is in block ${news.block}`;
		case "fault":
			return `${news.target} fault: ${news.why}`;
	}
}

async function main(): Promise<void> {
	const address = (name: string): string => getAddress(needed(name, "a contract's address, 0x…"));
	const searcher = await startSearcher(
		{
			relayWsUrl: needed("RELAY_WS_URL", "ws://127.0.0.1:8080"),
			nodeUrl: needed("ETH_RPC_URL", "http://127.0.0.1:8545"),
			privateKey: needed("PRIVATE_KEY", "the searcher's key, 0x and 64 hex digits"),
			arbitrage: address("ARBITRAGE"),
			pairs: [address("PAIR_A"), address("PAIR_B")],
		},
		{ clock: systemClock, tell: (news) => print(tellLine(news)) },
	);
	print(`${searcher.address} is bidding`);
	let asked = false;
	const stop = (): void => {
		asked = true;
		searcher.stop().catch(() => {});
	};
	process.on("SIGINT", stop);
	process.on("SIGTERM", stop);
	const why = await searcher.closed;
	if (!asked) throw new Error(why);
}

function needed(name: string, expected: string): string {
	const value = process.env[name] ?? "";
	if (value === "") throw new Error(`${name} is missing: expected ${expected}`);
	return value;
}

function print(line: string): void {
	process.stdout.write(`${line}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	main().catch((thrown: unknown) => {
		// Errors of ethers may hold a malformed key, so only their code is used.
		const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : null;
		const message = thrown instanceof Error ? thrown.message : "it failed";
		process.stderr.write(
			`searcher: ${code === "INVALID_ARGUMENT" ? "a key or an address is malformed" : message}\n`,
		);
		process.exit(1);
	});
}
