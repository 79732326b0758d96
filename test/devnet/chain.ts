// `node --import tsx test/devnet/chain.ts`: runs the dev chain and its builder alone, for relays
// that others start (compose.yaml), and prints the settings for them. It starts no relay.

import { builderRow, type DevSystem, startDevSystem } from "./devSystem.ts";
import { forkOf } from "./forkChain.ts";
import { slotSecondsOf, slotSetting } from "./slots.ts";

const CHAIN_PORT = 8545;
const BUILDER_PORT = 8083;

async function main(env: NodeJS.ProcessEnv): Promise<void> {
	const system = await startDevSystem({
		chainPort: numberOf(env, "CHAIN_PORT", CHAIN_PORT),
		builderPort: numberOf(env, "BUILDER_PORT", BUILDER_PORT),
		slotSeconds: slotSecondsOf(env),
		fork: forkOf(env),
	});
	let stopping = false;
	const stop = async (): Promise<void> => {
		if (stopping) return;
		stopping = true;
		await system.stop();
		process.exit(0);
	};
	for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void stop());
	process.stdout.write(settings(system));
}

/** Settings as lines of an environment file. */
function settings({ chain, builder }: DevSystem): string {
	return [
		`ETH_RPC_URL=${chain.url}`,
		`BUILDERS='${JSON.stringify([builderRow(builder)])}'`,
		`FEE_RECIPIENT=${builder.coinbase}`,
		slotSetting(chain.slotSeconds).join("="),
		"",
	].join("\n");
}

/** The number in a setting, or `usual` if it is not set. Callers refuse NaN. */
function numberOf(env: NodeJS.ProcessEnv, name: string, usual: number): number {
	const text = env[name]?.trim() ?? "";
	return text === "" ? usual : Number(text);
}

main(process.env).catch((thrown: unknown) => {
	process.stderr.write(`dev chain: ${thrown instanceof Error ? thrown.message : "can't start"}\n`);
	process.exit(1);
});
