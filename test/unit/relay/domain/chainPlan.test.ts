// Tests the plan for each link of a chain of nonces, as a table written by hand from the decisions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Link, linksToSimulate, mustPass, planChain } from "../../../../relay/domain/chainPlan.ts";
import { policyOf, type SubmissionPath } from "../../../../relay/domain/endpoints.ts";
import type { SimulationOutcome } from "../../../../relay/domain/simulation.ts";

const ALL = ["a", "b", "c"];
const PRIVATE = ["b"];

/** `fast`: not simulated yet; `fast+`: it has passed before. */
type LinkName = SubmissionPath | `${SubmissionPath}+`;

function link(name: LinkName): Link {
	const path = name.replace("+", "") as SubmissionPath;
	const eligible = path === "fullprivacy" ? PRIVATE : ALL;
	return { policy: policyOf(path), passed: name.endsWith("+"), eligible };
}

const OK: SimulationOutcome = { ok: true, gasUsed: 21_000n, emitsEvents: false, paid: 0n };
const FAIL: SimulationOutcome = {
	ok: false,
	error: { code: "EXECUTION_REVERTED", message: "execution reverted" },
};

interface Row {
	readonly chain: readonly LinkName[];
	/** How many of them must be simulated. */
	readonly simulated: number;
	/** `+` passed, `-` failed; what is behind a failure has none. */
	readonly outcomes: string;
	/** For each link: its builders, `hold`, or what it waits for. */
	readonly plan: readonly string[];
}

const TABLE: readonly Row[] = [
	{ chain: [], simulated: 0, outcomes: "", plan: [] },
	// One link on each path: passing, failing.
	{ chain: ["fast"], simulated: 1, outcomes: "+", plan: ["abc"] },
	{ chain: ["fast"], simulated: 1, outcomes: "-", plan: ["hold"] },
	{ chain: ["noreverts"], simulated: 1, outcomes: "+", plan: ["abc"] },
	{ chain: ["noreverts"], simulated: 1, outcomes: "-", plan: ["hold"] },
	{ chain: ["fullprivacy"], simulated: 1, outcomes: "+", plan: ["b"] },
	{ chain: ["fullprivacy"], simulated: 1, outcomes: "-", plan: ["hold"] },
	{ chain: ["maxbackruns"], simulated: 1, outcomes: "+", plan: ["abc"] },
	{ chain: ["maxbackruns"], simulated: 1, outcomes: "-", plan: ["hold"] },
	{ chain: ["nochecks"], simulated: 0, outcomes: "", plan: ["abc"] },
	// Passed before: these two are not simulated again, those two are in each block.
	{ chain: ["fast+"], simulated: 0, outcomes: "", plan: ["abc"] },
	{ chain: ["maxbackruns+"], simulated: 0, outcomes: "", plan: ["abc"] },
	{ chain: ["noreverts+"], simulated: 1, outcomes: "+", plan: ["abc"] },
	{ chain: ["noreverts+"], simulated: 1, outcomes: "-", plan: ["hold"] },
	{ chain: ["fullprivacy+"], simulated: 1, outcomes: "-", plan: ["hold"] },
	// What was not simulated at all (the node had no time) is not sent.
	{ chain: ["fast"], simulated: 1, outcomes: "", plan: ["behindHeld"] },
	// A whole chain, delivered together.
	{ chain: ["fast", "fast", "noreverts"], simulated: 3, outcomes: "+++", plan: ["abc", "abc", "abc"] },
	// A held one keeps its nonce: all behind it wait, on whatever path.
	{
		chain: ["fast", "fast", "noreverts", "nochecks"],
		...{ simulated: 3, outcomes: "-", plan: ["hold", "behindHeld", "behindHeld", "behindHeld"] },
	},
	{ chain: ["fast", "noreverts", "fast"], simulated: 3, outcomes: "+-", plan: ["abc", "hold", "behindHeld"] },
	{ chain: ["noreverts+", "fast+"], simulated: 1, outcomes: "-", plan: ["hold", "behindHeld"] },
	{ chain: ["noreverts+", "nochecks"], simulated: 1, outcomes: "-", plan: ["hold", "behindHeld"] },
	// Simulated up to the last link that must pass, since that needs the state those before it leave.
	{ chain: ["fast+", "fast+", "noreverts+"], simulated: 3, outcomes: "+++", plan: ["abc", "abc", "abc"] },
	{ chain: ["fast+", "fast", "fast+"], simulated: 2, outcomes: "++", plan: ["abc", "abc", "abc"] },
	{ chain: ["fast+", "maxbackruns+"], simulated: 0, outcomes: "", plan: ["abc", "abc"] },
	// Links on /nochecks behind one another go out at once, in order.
	{ chain: ["nochecks", "nochecks", "nochecks"], simulated: 0, outcomes: "", plan: ["abc", "abc", "abc"] },
	{ chain: ["fast", "nochecks", "nochecks"], simulated: 1, outcomes: "+", plan: ["abc", "abc", "abc"] },
	// A simulated link behind a /nochecks one waits until that is mined, and with it all behind it.
	{ chain: ["nochecks", "fast"], simulated: 0, outcomes: "", plan: ["abc", "behindUnchecked"] },
	{ chain: ["nochecks", "fast+"], simulated: 0, outcomes: "", plan: ["abc", "behindUnchecked"] },
	{ chain: ["nochecks", "noreverts+"], simulated: 0, outcomes: "", plan: ["abc", "behindUnchecked"] },
	{
		chain: ["nochecks", "nochecks", "maxbackruns", "nochecks"],
		...{ simulated: 0, outcomes: "", plan: ["abc", "abc", "behindUnchecked", "behindUnchecked"] },
	},
	{
		chain: ["noreverts", "nochecks", "fullprivacy"],
		...{ simulated: 1, outcomes: "+", plan: ["abc", "abc", "behindUnchecked"] },
	},
	// A builder that may not have one link gets none behind it.
	{ chain: ["fullprivacy", "fast"], simulated: 2, outcomes: "++", plan: ["b", "b"] },
	{ chain: ["fast", "fullprivacy", "fast"], simulated: 3, outcomes: "+++", plan: ["abc", "b", "b"] },
	{ chain: ["fullprivacy", "nochecks"], simulated: 1, outcomes: "+", plan: ["b", "b"] },
	{ chain: ["fullprivacy+", "fast+"], simulated: 1, outcomes: "-", plan: ["hold", "behindHeld"] },
];

for (const { chain, simulated, outcomes, plan } of TABLE) {
	test(`${chain.join(", ") || "no links"} with outcomes "${outcomes}"`, () => {
		const links = chain.map(link);
		assert.equal(linksToSimulate(links), simulated, "links to simulate");
		const results = [...outcomes].map((one) => (one === "+" ? OK : FAIL));
		const told = planChain(links, results).map((one) => {
			if (one.do === "send") return one.builders.join("");
			return one.do === "hold" ? "hold" : one.reason;
		});
		assert.deepEqual(told, plan);
	});
}

test("a held link is told with the error of its own simulation", () => {
	const [first] = planChain([link("fast")], [FAIL]);
	assert.deepEqual(first, { do: "hold", error: FAIL.ok ? null : FAIL.error });
});

test("what is never simulated and what has passed where once is enough need not pass", () => {
	const names: LinkName[] = ["nochecks", "fast+", "maxbackruns+", "fast", "maxbackruns", "noreverts+"];
	assert.deepEqual(
		names.map((name) => mustPass(link(name))),
		[false, false, false, true, true, true],
	);
});

test("builders that have nothing in common leave none", () => {
	const links = [
		{ ...link("fast"), eligible: ["a"] },
		{ ...link("fast"), eligible: ["b", "c"] },
	];
	assert.deepEqual(planChain(links, [OK, OK]), [
		{ do: "send", builders: ["a"] },
		{ do: "send", builders: [] },
	]);
});

test("a link that is out and need not pass holds up nothing, even where it fails when run for those behind it", () => {
	// On /fast a transaction that has passed goes on being sent though it would revert now. What is behind it is
	// not behind a held one: it may wait for want of a simulation, but it must be told truthfully.
	const plans = planChain([link("fast+"), link("noreverts+")], [FAIL]);
	assert.deepEqual(plans[0], { do: "send", builders: ALL });
	assert.notDeepEqual(plans[1], { do: "wait", reason: "behindHeld" });
});
