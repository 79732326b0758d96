// `npm start`: the whole system on this machine. What comes in is the environment, what goes out are a dev chain, a
// dev builder that builds its blocks for real, and the relay as a process of its own; with ETH_RPC_URL set, the
// relay alone against that node.

import { type DevSystem, ended, isReady, relaySettings, startDevSystem, startRelay } from "./devSystem.ts";

const CHAIN_PORT = 8545;
const BUILDER_PORT = 8083;
/** Short, so that a first transaction is mined while one looks on. */
const DEV_SLOT_SECONDS = "2";

async function main(): Promise<void> {
	const own = (process.env.ETH_RPC_URL ?? "") === "";
	const slotSeconds = Number(process.env.SLOT_SECONDS ?? DEV_SLOT_SECONDS);
	const system = own
		? await startDevSystem({ chainPort: CHAIN_PORT, builderPort: BUILDER_PORT, slotSeconds })
		: null;
	const port = process.env.PORT ?? "8080";
	const relay = startRelay({ ...process.env, ...(system === null ? {} : settingsFor(system)), PORT: port });
	let stopping = false;
	const stop = async (code: number): Promise<void> => {
		if (stopping) return;
		stopping = true;
		await ended(relay);
		await system?.stop();
		process.exit(code);
	};
	relay.on("exit", (code) => void stop(code ?? 1));
	process.on("SIGINT", () => void stop(0));
	process.on("SIGTERM", () => void stop(0));
	const url = `http://127.0.0.1:${port}`;
	if (await isReady(url, relay)) print(system === null ? `relay ${url}` : welcome(system, url));
	else if (relay.exitCode === null) print(`the relay is not ready yet: see ${url}/readyz`);
}

/** What the relay is told of the dev system; a setting that is set already stays as it is. */
function settingsFor(system: DevSystem): NodeJS.ProcessEnv {
	const settings = { LOG_LEVEL: "warn", ...relaySettings(system) };
	const kept = Object.entries(settings).filter(([name]) => (process.env[name] ?? "") === "");
	// Always the fresh folder: the chain is a new one at each start.
	return { ...Object.fromEntries(kept), DATA_DIR: system.folder };
}

function welcome({ chain, builder }: DevSystem, url: string): string {
	const account = chain.accounts[0];
	return `
Leeward is running.

  relay        ${url}          POST /fast /noreverts /fullprivacy /maxbackruns /nochecks
  status       ${url}/tx/<hash>, ${url}/tx/<hash>/events
  searchers    ${url.replace("http", "ws")}            eth_subscribe, eth_sendBundle
  dev chain    ${chain.url}          chain id ${chain.chainId}, a block every ${chain.slotSeconds} s
  dev builder  ${builder.url}

Send a first transaction, privately:

  npx cast send --rpc-url ${url}/fast \\
    --private-key ${account?.privateKey} \\
    --value 1ether 0x000000000000000000000000000000000000dEaD

The key is one of anvil's well-known ones (${account?.address}); the chain is gone when
this ends. Stop with Ctrl-C.
`;
}

function print(text: string): void {
	process.stdout.write(`${text}\n`);
}

main().catch((thrown: unknown) => {
	process.stderr.write(`npm start: ${thrown instanceof Error ? thrown.message : "can't start"}\n`);
	process.exit(1);
});
