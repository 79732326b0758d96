// A rolling restart of three relays and two boost instances under 10,000 searchers, with a drain of
// the usual length.

import { judgeRolling } from "../scale/rollingJudge.ts";
import { rollingRestart } from "../scale/rollingRestart.ts";

/** Says what was seen; resolves to whether all was as it should be. */
export async function longRolling(say: (line: string) => void): Promise<boolean> {
	const outcome = await rollingRestart({ websockets: 10_000, drainSeconds: 20 });
	const { backMs, endMs, heldMs, boostEndMs, codes, disclosed, lost, twice, sent } = outcome;
	const seconds = (all: readonly number[]) => all.map((ms) => (ms / 1000).toFixed(1)).join(", ");
	say(`rolling: ended after ${seconds(endMs)} s, all websockets back after ${seconds(backMs)} s`);
	const refused = sent.filter(({ outcome: { kind } }) => kind !== "acknowledged").length;
	say(`rolling: boost instances ended after ${seconds(boostEndMs)} s`);
	say(`rolling: ${disclosed} disclosed; ${lost} times not sent to an open websocket, ${twice} times twice`);
	say(
		`rolling: ${sent.length} submissions, ${refused} refused; event loops held ${heldMs.toFixed(0)} ms at most; closed ${JSON.stringify(codes)}`,
	);
	const faults = judgeRolling(outcome);
	for (const fault of faults) say(`rolling: ${fault}`);
	return faults.length === 0;
}
