// Judges a rolling restart.

import type { RollingOutcome } from "./rollingRestart.ts";

/** All websockets are back after so long, in ms. */
const BACK_MS = 60_000;
/** No relay keeps its event loop for longer, in ms. */
const HELD_MS = 100;
/** RFC 6455's registry: service restart. */
const RESTART = "1012";

/** Deviations from the expected, a line each. */
export function judgeRolling(outcome: RollingOutcome): readonly string[] {
	const { backMs, heldMs, codes, disclosed, lost, twice, sent, mined } = outcome;
	const faults: string[] = [];
	if (disclosed === 0) faults.push("nothing was disclosed to searchers");
	if (lost > 0) faults.push(`${lost} times a searcher's open websocket was not sent what others were`);
	if (twice > 0) faults.push(`${twice} times a websocket was sent the same transaction again`);
	for (const [i, ms] of backMs.entries())
		if (ms > BACK_MS) faults.push(`restart ${i + 1}: all were back after ${Math.round(ms)} ms`);
	if (heldMs > HELD_MS) faults.push(`a relay kept its event loop for ${Math.round(heldMs)} ms`);
	const others = Object.entries(codes).filter(([code]) => code !== RESTART);
	if (others.length > 0) faults.push(`websockets were closed with ${JSON.stringify(codes)}`);
	const failed = sent.filter(({ outcome }) => outcome.kind !== "acknowledged");
	for (const { hash, outcome } of failed) faults.push(`${hash}: ${JSON.stringify(outcome)}`);
	for (const { hash } of sent) if (!mined.has(hash)) faults.push(`${hash} is not mined`);
	return faults;
}
