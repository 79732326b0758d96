// Which engines a node serves: the node comes in, asked with one cheap call for each; those in use go out, the best
// one first. It runs once, at the start; what a node refuses later is passed to the next engine call by call.

import { UpstreamError } from "../../shared/jsonrpc/client.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { Engine, SimulationNode } from "./engines/engine.ts";
import { ENGINES } from "./engines/index.ts";
import { readAnswer } from "./engines/verdicts.ts";

/** How long a probe may take, in ms. */
const PROBE_MS = 5_000;

/**
 * The engines that `node` serves with overrides honoured; the log says which. One that could not be asked, since
 * the node gave no verdict, is kept: should it refuse, each call finds the next one. May be empty.
 */
export async function chooseEngines(node: SimulationNode, log: Logger): Promise<readonly Engine[]> {
	const served = await Promise.all(ENGINES.map((engine) => isServed(engine, node, log)));
	const engines = ENGINES.filter((_, i) => served[i]);
	for (const { name } of engines) log.info("simulation engine in use", { engine: name });
	if (engines.length === 0) log.error("the node serves no way to simulate");
	else if (!engines.some((engine) => engine.sequences)) {
		log.warn("the node simulates single transactions alone: chains wait, and bids are not possible");
	}
	return engines;
}

async function isServed(engine: Engine, node: SimulationNode, log: Logger): Promise<boolean> {
	const fields = { engine: engine.name };
	try {
		const answer = await node.call(engine.probe, PROBE_MS);
		const read = readAnswer(answer);
		if (read.kind === "fault") {
			log.warn("a simulation engine could not be probed", fields);
			return true;
		}
		if (read.kind === "result" && engine.probed(read.value)) return true;
		log.warn(
			"the node does not serve a simulation engine",
			answer.ok ? fields : { ...fields, code: answer.error.code },
		);
		return false;
	} catch (thrown) {
		if (!(thrown instanceof UpstreamError)) throw thrown;
		log.warn("a simulation engine could not be probed", { ...fields, fault: safeError(thrown) });
		return true;
	}
}
