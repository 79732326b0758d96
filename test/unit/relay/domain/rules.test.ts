// The small rules of the domain as tables, copied by hand from interface and decisions: the submission paths, the plan for
// each link of a chain of nonces, who may cancel by hash, and what a builder owes of a backrun.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Link, linksToSimulate, planChain } from "../../../../relay/chainActions.ts";
import {
	DEFAULT_PATH,
	ENDPOINTS,
	isSubmissionPath,
	policyOf,
	type SubmissionPath,
} from "../../../../relay/domain/endpoints.ts";
import { owedRefund } from "../../../../relay/domain/refund.ts";
import type { SimulationOutcome } from "../../../../relay/domain/simulation.ts";
import {
	CANCEL_POLICIES,
	type CancelRequest,
	mayCancelTransaction,
	type TransactionOwner,
} from "../../../../relay/domain/transaction.ts";

const yes = true;
const no = false;

/** Path; simulated first; again each block; shared; may revert; builders; form; fastMode; soft cancellations. */
const PATHS = [
	["fast", yes, no, "likely", yes, "all", "bundle", yes, no],
	["noreverts", yes, yes, "likely", no, "all", "bundle", no, yes],
	["fullprivacy", yes, yes, "never", no, "fullPrivacy", "bundle", no, yes],
	["maxbackruns", yes, no, "always", yes, "all", "bundle", no, no],
	["nochecks", no, no, "never", yes, "all", "private", no, no],
] as const;

test("there are these five paths, / is /fast, and each is treated as its row says", () => {
	assert.deepEqual([Object.keys(ENDPOINTS), DEFAULT_PATH], [PATHS.map(([path]) => path), "fast"]);
	for (const row of PATHS) {
		const [path, simulated, resimulated, shared, mayRevert, builders, form, fastMode, soft] = row;
		assert.deepEqual(
			policyOf(path),
			{ simulated, resimulated, shared, mayRevert, builders, form, fastMode, softCancellations: soft },
			path,
		);
		assert.ok(isSubmissionPath(path), path);
	}
});

test("other names are no paths, those of every object's prototype included", () => {
	for (const name of ["", "/fast", "Fast", "fast ", "ws", "toString", "constructor", "__proto__"]) {
		assert.ok(!isSubmissionPath(name), name);
	}
});

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

interface ChainRow {
	readonly chain: readonly LinkName[];
	/** How many of them must be simulated. */
	readonly simulated: number;
	/** `+` passed, `-` failed; what is behind a failure has none. */
	readonly outcomes: string;
	/** For each link: its builders, `hold`, or what it waits for. */
	readonly plan: readonly string[];
}

const CHAINS: readonly ChainRow[] = [
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

for (const { chain, simulated, outcomes, plan } of CHAINS) {
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

const SENDER = "0x00000000000000000000000000000000000000aa";
const OTHER = "0x00000000000000000000000000000000000000bb";
const HERE = "198.51.100.1";
const THERE = "2001:db8::1";
const HELD: TransactionOwner = { from: SENDER, origin: HERE };
const SETTLED: TransactionOwner = { from: SENDER, origin: null };

type Client = Pick<CancelRequest, "address" | "signer">;

/** Whether each may cancel what is held, and what is settled, under `origin`. */
const CLIENTS: readonly (readonly [string, Client, boolean, boolean])[] = [
	["the address that submitted it", { address: HERE, signer: null }, true, false],
	["another address", { address: THERE, signer: null }, false, false],
	["no address", { address: null, signer: null }, false, false],
	["the sender's key from there", { address: HERE, signer: SENDER }, true, true],
	["the sender's key from elsewhere", { address: THERE, signer: SENDER }, true, true],
	["the sender's key in a web page", { address: null, signer: SENDER }, true, true],
	["another key from there", { address: HERE, signer: OTHER }, true, false],
	["another key from elsewhere", { address: THERE, signer: OTHER }, false, false],
	["another key in a web page", { address: null, signer: OTHER }, false, false],
	["an address that looks like it", { address: `${HERE}0`, signer: null }, false, false],
	["the sender's address in the place of the network's", { address: SENDER, signer: null }, false, false],
];

test("under `origin` who submitted it may cancel, and who signs with the sender's key; under `open` anybody", () => {
	assert.deepEqual(CANCEL_POLICIES, ["origin", "open"]);
	for (const [name, client, held, settled] of CLIENTS) {
		assert.equal(mayCancelTransaction("origin", client, HELD), held, name);
		assert.equal(mayCancelTransaction("origin", client, SETTLED), settled, name);
		for (const owner of [HELD, SETTLED]) assert.ok(mayCancelTransaction("open", client, owner), name);
	}
});

const ETHER = 10n ** 18n;

/** Brought, base fee, percent, gas; cost, owed. */
const REFUNDS: readonly (readonly [bigint, bigint, number, number, bigint, bigint])[] = [
	[1_000n, 10n, 90, 0, 0n, 900n],
	[1_000n, 10n, 90, 3, 30n, 870n],
	[1_000n, 10n, 99, 0, 0n, 990n],
	[1_000n, 10n, 100, 0, 0n, 1_000n],
	[1_000n, 10n, 0, 0, 0n, 0n],
	// Rounded down.
	[1n, 10n, 90, 0, 0n, 0n],
	[19n, 10n, 90, 0, 0n, 17n],
	// Never below zero.
	[1_000n, 10n, 90, 90, 900n, 0n],
	[1_000n, 10n, 90, 91, 910n, 0n],
	[0n, 10n, 90, 21_000, 210_000n, 0n],
	// Beyond what a number holds.
	[ETHER * 10n ** 9n + 1n, 10n ** 9n, 90, 21_000, 21_000n * 10n ** 9n, 9n * 10n ** 26n - 21_000n * 10n ** 9n],
];
test("a builder owes its percentage of what a backrun brought, less its gas, to the wei", () => {
	for (const [brought, baseFee, percent, refundGas, cost, owed] of REFUNDS) {
		assert.deepEqual(owedRefund(brought, baseFee, { percent, refundGas }), { cost, owed }, `${brought}`);
	}
});
