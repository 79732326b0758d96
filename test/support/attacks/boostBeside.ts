// A boost in a process of its own before the relay of an attack fixture, with an attacker and an
// honest user of its own.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { metered } from "../eventLoopTime.ts";
import { startRelayProcess } from "../processes.ts";
import type { AttackFixture, Door } from "./attackFixture.ts";
import { HonestUser } from "./honestUser.ts";
import { Measuring } from "./measuring.ts";

/** The secret of relay and boost. */
export const BOOST_SECRET = "shared by relay and boost";
/** The index of its first account; the relay's user has others. */
const ACCOUNTS = 700_000;

/** A boost under attack. */
export type BoostBeside = Door & { stop(): Promise<void> };

interface BoostBesideOptions {
	/** Headers of all requests of its honest user. */
	readonly headers?: Readonly<Record<string, string>>;
	/** Its settings besides those that connect it. */
	readonly env?: Readonly<Record<string, string>>;
	/** Whether its event loop is measured, see eventLoopTime.ts. */
	readonly isMetered?: boolean;
}

/** Starts it; the relay's fixture must have {@link BOOST_SECRET} in its `env`. */
export async function startBoostBeside(
	fixture: AttackFixture,
	{ headers = {}, env = {}, isMetered = false }: BoostBesideOptions = {},
): Promise<BoostBeside> {
	const { relay, chain, builder } = fixture;
	const folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	const entry = "boost-proxy/main.ts";
	const boost = await startRelayProcess({
		...(isMetered ? metered(entry) : { entry }),
		env: {
			...{ PORT: "0", HOST: "127.0.0.1", RELAY_URL: relay.url, DATA_DIR: folder },
			...{ ETH_RPC_URL: chain.url, FALLBACK_URL: "none", BOOST_SECRET },
			...env,
		},
	});
	const attacker = fixture.attacker.at(boost.url);
	const stop = async (): Promise<void> => {
		await boost.kill();
		rmSync(folder, { recursive: true, force: true });
	};
	const options = { relay: boost, chain, builder, accounts: ACCOUNTS, headers };
	const user = await HonestUser.arrive(options).catch(async (thrown: unknown) => {
		await stop();
		throw thrown;
	});
	return {
		process: boost,
		attacker,
		user,
		measuring: new Measuring({ user, pid: boost.pid, say: (line) => fixture.say(line) }),
		stop,
	};
}
