// Tests what is sent of a sender's chain of nonces, as a table copied by hand from the interface.

import assert from "node:assert/strict";
import { test } from "node:test";
import { policyOf, type SubmissionPath } from "../../../relay/domain/endpoints.ts";
import type { SimulationOutcome } from "../../../relay/domain/simulation.ts";
import { countToSimulate, planTransactions, type TransactionFacts } from "../../../relay/senderPlan.ts";

const ALL = ["a", "b", "c"];
const PRIVATE = ["b"];

/** `fast`: not simulated yet; `fast+`: it has passed before. */
type PathName = SubmissionPath | `${SubmissionPath}+`;

function factsOf(name: PathName): TransactionFacts {
	const path = name.replace("+", "") as SubmissionPath;
	const eligible = path === "fullprivacy" ? PRIVATE : ALL;
	return { policy: policyOf(path), passed: name.endsWith("+"), eligible, bytes: 1 };
}

const OK: SimulationOutcome = { ok: true, gasUsed: 21_000n, emitsEvents: false, paid: 0n };
const FAIL: SimulationOutcome = {
	ok: false,
	error: { code: "EXECUTION_REVERTED", message: "execution reverted" },
};

const IMPOSSIBLE: SimulationOutcome = {
	ok: false,
	isImpossible: true,
	error: { code: "NODE_UNAVAILABLE", message: "simulation not possible: the node runs 1 gas at most" },
};

/**
 * The paths of a sender's transactions; how many must be simulated; how they fare (`+` passed, `-`
 * failed, `?` the node can't simulate it; what is behind a failure has none); for each its builders
 * (with `?` if it is sent unsimulated), `hold`, or what it waits for.
 */
const CHAINS: readonly (readonly [paths: string, simulated: number, outcomes: string, plan: string])[] = [
	["fast", 1, "+", "abc"],
	["fast", 1, "-", "hold"],
	["noreverts", 1, "-", "hold"],
	["fullprivacy", 1, "+", "b"],
	["maxbackruns", 1, "-", "hold"],
	["nochecks", 0, "", "abc"],
	// A transaction that the node can't simulate is sent where a revert is allowed, and so is one
	// behind it there.
	["fast", 1, "?", "abc?"],
	["maxbackruns", 1, "?", "abc?"],
	["noreverts", 1, "?", "hold"],
	["fullprivacy", 1, "?", "hold"],
	["fast fast maxbackruns", 3, "+?", "abc abc? abc?"],
	["fast noreverts fast", 3, "?", "abc? behindUnchecked behindUnchecked"],
	["noreverts fast", 2, "?", "hold behindHeld"],
	["noreverts fast", 2, "+?", "abc abc?"],
	["fast fast+ fast", 3, "?", "abc? abc abc?"],
	["fast nochecks fast", 1, "?", "abc? abc behindUnchecked"],
	// Passed before: these two are not simulated again, those two are in each block.
	["fast+", 0, "", "abc"],
	["maxbackruns+", 0, "", "abc"],
	["noreverts+", 1, "+", "abc"],
	["noreverts+", 1, "-", "hold"],
	["fullprivacy+", 1, "-", "hold"],
	// A transaction that was not simulated at all (the node had no time) is not sent.
	["fast", 1, "", "behindHeld"],
	// A held one keeps its nonce: all behind it wait, on whatever path.
	["fast fast noreverts", 3, "+++", "abc abc abc"],
	["fast fast noreverts nochecks", 3, "-", "hold behindHeld behindHeld behindHeld"],
	["fast noreverts fast", 3, "+-", "abc hold behindHeld"],
	["noreverts+ fast+", 1, "-", "hold behindHeld"],
	// Simulated up to the last that must pass, since that needs the state those before it leave.
	["fast+ fast+ noreverts+", 3, "+++", "abc abc abc"],
	["fast+ fast fast+", 2, "++", "abc abc abc"],
	["fast+ maxbackruns+", 0, "", "abc abc"],
	// A transaction that has passed is still sent though it would revert now. Nothing is known of
	// those behind it.
	["fast+ noreverts+", 2, "-", "abc behindUnchecked"],
	// Those on /nochecks go out at once; a simulated one behind them waits until they are mined, and
	// all behind it.
	["nochecks nochecks nochecks", 0, "", "abc abc abc"],
	["fast nochecks nochecks", 1, "+", "abc abc abc"],
	["nochecks fast+", 0, "", "abc behindUnchecked"],
	["nochecks nochecks maxbackruns nochecks", 0, "", "abc abc behindUnchecked behindUnchecked"],
	["noreverts nochecks fullprivacy", 1, "+", "abc abc behindUnchecked"],
	// A builder that may not have one gets none behind it.
	["fast fullprivacy fast", 3, "+++", "abc b b"],
	["fullprivacy nochecks", 1, "+", "b b"],
];

test("each of a sender's transactions is sent, held or waits as its row says", () => {
	for (const [chain, simulated, outcomes, plan] of CHAINS) {
		const facts = chain.split(" ").map((name) => factsOf(name as PathName));
		assert.equal(countToSimulate(facts), simulated, chain);
		const plans = planTransactions(
			facts,
			[...outcomes].map((one) => (one === "+" ? OK : one === "?" ? IMPOSSIBLE : FAIL)),
		);
		const results = plans.map((one) =>
			one.do === "send"
				? `${one.builders.join("")}${one.unsimulated === undefined ? "" : "?"}`
				: one.do === "hold"
					? "hold"
					: one.reason,
		);
		assert.equal(results.join(" "), plan, `${chain} with outcomes "${outcomes}"`);
	}
});

test("transactions behind a MiB of their sender's are not simulated, and wait", () => {
	const large = (name: PathName) => ({ ...factsOf(name), bytes: 128 * 1024 });
	const chain = (...names: PathName[]) => names.map(large);
	const ten = Array.from({ length: 10 }, (): PathName => "fast");
	assert.equal(countToSimulate(chain(...ten)), 8);
	const plans = planTransactions(
		chain(...ten),
		ten.slice(2).map(() => OK),
	);
	assert.deepEqual(
		plans.map((plan) => plan.do),
		[...ten.slice(2).map(() => "send"), "wait", "wait"],
	);
	// Those that have passed need no simulation, and those behind them are still too far away.
	assert.equal(countToSimulate(chain(...ten.map((): PathName => "fast+"), "fast")), 0);
	// One alone may be larger.
	assert.equal(countToSimulate([{ ...factsOf("fast"), bytes: 2 * 1024 * 1024 }, factsOf("fast")]), 1);
});
