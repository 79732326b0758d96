// The path of a transaction as processes: boost, the relay (or an edge and its core) and two
// builders, with a fallback that keeps each byte. Tests read what each of them has logged, answered
// and been sent.

import { freePort } from "../devnet/freePort.ts";
import { BOOST_SECRET, boostEnv } from "../faults/boostHere.ts";
import { BoostClient } from "./boostFixture.ts";
import { databaseOf } from "./engine.ts";
import { type RelayProcess, startBoostProcess, startRelayProcess } from "./processes.ts";
import { ADMIN_TOKEN } from "./relayClient.ts";
import { startProcessSystem } from "./systems.ts";
import { type TestAccount, testAccount } from "./txFactory.ts";
import { startRecordingFallback } from "./upstreams.ts";

export interface PathOptions {
	/** Whether boost asks an edge, whose core is another process. */
	readonly withEdge: boolean;
	/**
	 * If set, the builder builds a block in each slot of this length, instead of when a test asks.
	 */
	readonly slotSeconds?: number;
	/** Settings of all processes. */
	readonly env?: Readonly<Record<string, string>>;
}

export type PathFixture = Awaited<ReturnType<typeof startPath>>;

const FUNDS = 10n ** 20n;
/** Accounts with funds, each for one test. */
const ACCOUNTS = 20;

/** Starts all; the caller stops it. */
export async function startPath({ withEdge, slotSeconds, env: given = {} }: PathOptions) {
	const system = await startProcessSystem({
		builders: [{ name: "dev" }, { name: "other" }],
		...(slotSeconds === undefined ? {} : { chain: { slotSeconds }, builder: { manual: false } }),
	});
	const env = slotSeconds === undefined ? given : { SLOT_SECONDS: String(slotSeconds), ...given };
	const fallback = await startRecordingFallback();
	const started: RelayProcess[] = [];
	const kept = (one: RelayProcess): RelayProcess => {
		started.push(one);
		return one;
	};
	const { DATA_DIR = "" } = system.env;
	const database: Readonly<Record<string, string>> = withEdge
		? { DATABASE_URL: await databaseOf(DATA_DIR) }
		: {};
	const startRelay = async (port: number): Promise<RelayProcess> => {
		const place = { PORT: String(port), INTERNAL_URL: `http://127.0.0.1:${port}` };
		const settings = { ...system.env, BOOST_SECRET, ...database, ...place, ...env };
		return kept(await startRelayProcess({ env: settings }));
	};
	const ports = { core: await freePort(), edge: await freePort() };
	let core = await startRelay(ports.core);
	const relay = withEdge ? await startRelay(ports.edge) : core;
	const places = { relayUrl: relay.url, fallbackUrl: fallback.url, folder: `${system.folder}/boost` };
	const boostProcess = kept(
		await startBoostProcess({
			env: { ...boostEnv(places), ADMIN_TOKEN, LOG_LEVEL: "info", PROBE_TIMEOUT_MS: "5000", ...env },
		}),
	);
	const boost = new BoostClient(boostProcess.port);
	const accounts = Array.from({ length: ACCOUNTS }, (_, i) => testAccount(i));
	await system.chain.fund(accounts, FUNDS);
	const nextBlock = () => system.nextBlock(core);
	await nextBlock();
	return {
		...{ system, fallback, relay, boost, boostProcess, nextBlock },
		/** The relay that decides. */
		get core(): RelayProcess {
			return core;
		},
		/** An account that nobody else uses. */
		account(): TestAccount {
			const account = accounts.pop();
			if (account === undefined) throw new Error(`a test file has ${ACCOUNTS} accounts`);
			return account;
		},
		/** Ends the core and starts it again on its store and port. */
		async restartCore(): Promise<void> {
			await core.kill("SIGTERM");
			core = await startRelay(ports.core);
		},
		async stop(): Promise<void> {
			boost.close();
			for (const one of started.reverse()) await one.kill();
			await fallback.stop();
			await system.stop();
		},
	};
}
