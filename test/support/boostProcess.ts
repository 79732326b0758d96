// Runs boost as a process of its own, alone or as the one-port form with a relay behind it. The handle is the same as
// a relay's; the process cannot outlive its test.

import {
	type Exit,
	type LaunchedRelay,
	launchRelay,
	type RelayProcess,
	type RelayProcessOptions,
	startRelayProcess,
} from "./relayProcess.ts";

export type BoostProcess = RelayProcess;
export type BoostProcessOptions = Pick<RelayProcessOptions, "env" | "args">;

const BOOST = "boost-proxy/main.ts";
const PAIR = "boost-proxy/pair.ts";

/** Starts boost and waits for nothing. */
export function launchBoost(options: BoostProcessOptions): LaunchedRelay {
	return launchRelay({ ...options, entry: BOOST });
}

/** Runs boost to its end, which must come by itself within 15 s. */
export function runBoost(options: BoostProcessOptions): Promise<Exit> {
	return launchBoost(options).ended();
}

/** Starts boost and waits until one of its upstreams would take a transaction; throws with what it printed where it ends. */
export function startBoostProcess(options: BoostProcessOptions): Promise<BoostProcess> {
	return startRelayProcess({ ...options, entry: BOOST });
}

/** Starts relay and boost behind one port, and waits for nothing. */
export function launchPair(options: BoostProcessOptions): LaunchedRelay {
	return launchRelay({ ...options, entry: PAIR });
}
