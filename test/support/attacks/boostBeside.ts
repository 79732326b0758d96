// A boost in a process of its own before the relay of an attack fixture, with an attacker and an honest user of its own.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { metered } from "../eventLoopTime.ts";
import { type BoostProcess, startRelayProcess } from "../processes.ts";
import { Attacker } from "./attacker.ts";
import type { AttackFixture } from "./attackFixture.ts";
import { HonestUser } from "./honestUser.ts";
import { Measuring } from "./measuring.ts";

/** What relay and boost share; the relay's fixture must have it in its `env`. */
export const BOOST_SECRET = "shared by relay and boost";
/** The honest user's longest wait, in ms. */
const PATIENCE_MS = 6_000;
/** The index of its first account; the relay's user has others. */
const ACCOUNTS = 700_000;

/** A boost under attack. */
export interface BoostBeside {
	readonly boost: BoostProcess;
	readonly attacker: Attacker;
	/** Of an honest user of boost. */
	readonly measuring: Measuring;
	stop(): Promise<void>;
}

/** Starts it, metered; see eventLoopTime.ts. `headers`: of all requests of its honest user; `env`: its settings. */
export async function startBoostBeside(
	fixture: AttackFixture,
	headers: Readonly<Record<string, string>> = {},
	env: Readonly<Record<string, string>> = {},
): Promise<BoostBeside> {
	const { relay, chain, builder } = fixture;
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	const boost = await startRelayProcess({
		...metered("boost-proxy/main.ts"),
		env: {
			...{ PORT: "0", HOST: "127.0.0.1", RELAY_URL: relay.url, DATA_DIR: folder },
			...{ ETH_RPC_URL: chain.url, FALLBACK_URL: "none", BOOST_SECRET },
			...env,
		},
	});
	const attacker = new Attacker(boost.url);
	const stop = async (): Promise<void> => {
		await attacker.stop();
		await boost.kill();
		rmSync(folder, { recursive: true, force: true });
	};
	const options = { relay: boost, chain, builder, patienceMs: PATIENCE_MS, accounts: ACCOUNTS, headers };
	const user = await HonestUser.arrive(options).catch(async (thrown: unknown) => {
		await stop();
		throw thrown;
	});
	return {
		boost,
		attacker,
		measuring: new Measuring({ user, pid: boost.pid, say: (line) => fixture.say(line) }),
		stop,
	};
}
