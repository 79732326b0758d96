// Counts the files that a submission, a bid and a cancel run through, by V8's coverage of the
// running processes, from the request to its answer. Too many for one thing mean that nobody can
// follow it.

import { randomBytes } from "node:crypto";
import { Transaction, Wallet } from "ethers";
import {
	boostSettings,
	type DevSystem,
	ended,
	fallbackSettings,
	isReady,
	relaySettings,
	type ServerName,
	startDevSystem,
	startServer,
} from "../devnet/devSystem.ts";
import { freePort } from "../devnet/freePort.ts";
import { WsClient } from "../support/clients.ts";
import { until } from "../support/until.ts";

/** A contract whose every call writes a log, as a swap does; and its code. */
const EMITTER = `0x${"e1".repeat(20)}`;
const EMITS_LOG = "0x60006000a000";
const GWEI = 10n ** 9n;
const OURS = /\/((?:relay|boost-proxy|shared)\/.+\.ts)$/;

/** Prints a line for each; true: nothing here can fail by a rule. */
export async function longFiles(say: (line: string) => void): Promise<boolean> {
	const system = await startDevSystem({ chainPort: 0, builderPort: 0, slotSeconds: 4 });
	const servers: Measured[] = [];
	try {
		const usual = { BOOST_SECRET: randomBytes(32).toString("hex"), LOG_LEVEL: "warn" };
		const relay = await start("relay", { ...relaySettings(system), ...usual });
		servers.push(relay);
		const fallback = await start("relay", { ...fallbackSettings(system), LOG_LEVEL: "warn" });
		servers.push(fallback);
		const boost = await start("boost", {
			...boostSettings(system, { relay: relay.url, fallback: fallback.url }),
			...usual,
		});
		servers.push(boost);
		const [sender, searcher] = system.chain.accounts.map(({ privateKey }) => new Wallet(privateKey));
		if (sender === undefined || searcher === undefined) throw new Error("the chain has no accounts");
		const tell = (what: string, files: readonly string[]) => {
			say(`files: ${what}: ${files.length}`);
			for (const file of files) say(`files:   ${file}`);
		};

		const feed = await WsClient.open(relay.url.replace("http", "ws"));
		feed.send({
			jsonrpc: "2.0",
			id: 1,
			method: "eth_subscribe",
			params: ["service_partialPendingTransactions"],
		});
		await feed.next();
		await system.chain.rpc("anvil_setCode", [EMITTER, EMITS_LOG]);
		const target = signed(system, sender, 0, EMITTER);
		const submit = { method: "eth_sendRawTransaction", params: [target.serialized] };
		// All that follows fits between two heads.
		await relay.nextHead();
		tell("a submission to the relay", await relay.run(submit));
		const backrun = signed(system, searcher, 0, system.builder.coinbase);
		const bid = { method: "eth_sendBundle", params: [{ txs: [target.hash, backrun.serialized] }] };
		// Searchers bid for what they are shown: a transaction with logs.
		await feed.next();
		tell("a bid", await relay.run(bid));
		tell("a cancel", await relay.run({ method: "eth_cancelTransaction", params: [target.hash] }));

		const sent = (nonce: number) => ({
			method: "eth_sendRawTransaction",
			params: [signed(system, searcher, nonce).serialized],
		});
		tell("a submission to boost, the relay well", await boost.run(sent(0)));
		await relay.end("SIGKILL");
		await until("the breaker is open", async () => {
			const status = await fetch(`${boost.url}/status`);
			return ((await status.json()) as { relay: { state: string } }).relay.state === "open";
		});
		tell("a submission to boost, the relay dead", await boost.run(sent(1)));
		return true;
	} finally {
		await Promise.all(servers.map((server) => server.end()));
		await system.stop();
	}
}

interface Call {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** A process whose functions are counted. */
interface Measured {
	readonly url: string;
	/** Ends it; V8 would wait for the inspector's leaving. */
	end(signal?: NodeJS.Signals): Promise<void>;
	/** Only for a relay: resolves when it is processing the next head. */
	nextHead(): Promise<void>;
	/**
	 * Makes a call on `/fast`, and answers the files of which a function ran meanwhile. Throws where
	 * it is refused.
	 */
	run(call: Call): Promise<readonly string[]>;
}

async function start(name: ServerName, settings: Readonly<Record<string, string>>): Promise<Measured> {
	const [port, inspector] = [await freePort(), await freePort()];
	const url = `http://127.0.0.1:${port}`;
	const own = { PORT: String(port), NODE_OPTIONS: `--inspect=127.0.0.1:${inspector}` };
	const child = startServer(name, { ...process.env, ...settings, ...own });
	if (!(await isReady(url, child))) throw new Error(`${name} is not ready`);
	const pages = (await (await fetch(`http://127.0.0.1:${inspector}/json/list`)).json()) as InspectorPage[];
	const wire = await WsClient.open(pages[0]?.webSocketDebuggerUrl ?? "");
	let id = 0;
	// https://chromedevtools.github.io/devtools-protocol/v8/Profiler/
	const profiler = async (method: string, params = {}): Promise<unknown> => {
		id += 1;
		wire.send({ id, method: `Profiler.${method}`, params });
		for (;;) {
			const answer = await wire.next();
			if (answer.id === id) return answer.result;
		}
	};
	await profiler("enable");
	await profiler("startPreciseCoverage", { callCount: true, detailed: false });
	/** The files of which a function ran since this was last asked. */
	const ran = async (): Promise<readonly string[]> => {
		const { result } = (await profiler("takePreciseCoverage")) as { result: readonly ScriptRuns[] };
		return result.flatMap(ranIn);
	};
	const nextHead = async (): Promise<void> => {
		await until("the next head", async () => (await ran()).includes("relay/blockLoop.ts"));
	};
	const run = async (call: Call): Promise<readonly string[]> => {
		// So that what runs is the call's alone.
		await until("nothing else runs", async () => !(await ran()).some((file) => /^relay\//.test(file)));
		const answer = await fetch(`${url}/fast`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...call }),
		});
		const { error } = (await answer.json()) as { error?: unknown };
		const files = await ran();
		if (error !== undefined) throw new Error(`${call.method}: ${JSON.stringify(error)}`);
		return [...files].sort();
	};
	const end = (signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
		wire.terminate();
		return ended(child, signal);
	};
	return { url, end, nextHead, run };
}

interface InspectorPage {
	readonly webSocketDebuggerUrl: string;
}

interface ScriptRuns {
	readonly url: string;
	readonly functions: readonly { readonly ranges: readonly { readonly count: number }[] }[];
}

/** The file of a script of ours in which anything ran. */
function ranIn({ url, functions }: ScriptRuns): readonly string[] {
	const file = OURS.exec(url)?.[1];
	const isRun = functions.some(({ ranges }) => ranges.some(({ count }) => count > 0));
	return file !== undefined && isRun ? [file] : [];
}

function signed(
	{ chain }: DevSystem,
	wallet: Wallet,
	nonce: number,
	to = `0x${"de".repeat(20)}`,
): { readonly hash: string; readonly serialized: string } {
	const tx = Transaction.from({
		type: 2,
		chainId: chain.chainId,
		nonce,
		to,
		value: 10n ** 16n,
		gasLimit: 100_000n,
		maxFeePerGas: 100n * GWEI,
		maxPriorityFeePerGas: 2n * GWEI,
	});
	tx.signature = wallet.signingKey.sign(tx.unsignedHash);
	return { hash: tx.hash ?? "", serialized: tx.serialized };
}
