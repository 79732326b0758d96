// Tests the domain's rules as tables, copied by hand from the interface: submission paths, plans of nonce chains, refunds, and
// the rules of admission.

import assert from "node:assert/strict";
import { test } from "node:test";
import { feeProblem } from "../../../../relay/domain/blockProblems.ts";
import type { AccountState, NextBlock } from "../../../../relay/domain/chain.ts";
import {
	DEFAULT_PATH,
	ENDPOINTS,
	isSubmissionPath,
	policyOf,
	type SubmissionPath,
} from "../../../../relay/domain/endpoints.ts";
import { owedRefund } from "../../../../relay/domain/refund.ts";
import type { Rejection } from "../../../../relay/domain/rejection.ts";
import type { SimulationOutcome } from "../../../../relay/domain/simulation.ts";
import {
	ACCOUNT_RULES,
	firstRejection,
	hopelessFeeCap,
	STATIC_RULES,
} from "../../../../relay/domain/transactionRules.ts";
import { countToSimulate, planTransactions, type TransactionFacts } from "../../../../relay/senderPlan.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { AMSTERDAM, OSAKA, PRAGUE } from "../../../support/forks.ts";
import { signedTransaction, type TxOptions, testAccount } from "../../../support/txFactory.ts";

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

test("there are five paths, / is /fast, and each has the policy of its row", () => {
	assert.deepEqual([Object.keys(ENDPOINTS), DEFAULT_PATH], [PATHS.map(([path]) => path), "fast"]);
	for (const row of PATHS) {
		const [path, simulated, resimulated, sharing, mayRevert, builders, form, fastMode, soft] = row;
		assert.deepEqual(
			policyOf(path),
			{ simulated, resimulated, sharing, mayRevert, builders, form, fastMode, softCancellations: soft },
			path,
		);
		assert.ok(isSubmissionPath(path), path);
	}
});

const ALL = ["a", "b", "c"];
const PRIVATE = ["b"];

/** `fast`: not simulated yet; `fast+`: it has passed before. */
type PathName = SubmissionPath | `${SubmissionPath}+`;

function factsOf(name: PathName): TransactionFacts {
	const path = name.replace("+", "") as SubmissionPath;
	const eligible = path === "fullprivacy" ? PRIVATE : ALL;
	return { policy: policyOf(path), passed: name.endsWith("+"), eligible };
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
 * The paths of a sender's transactions; how many must be simulated; how they fare (`+` passed, `-` failed, `?` the node can't simulate
 * it; what is behind a failure has none); for each its builders (with `?` if it is sent unsimulated), `hold`, or what it waits for.
 */
const CHAINS: readonly (readonly [paths: string, simulated: number, outcomes: string, plan: string])[] = [
	["fast", 1, "+", "abc"],
	["fast", 1, "-", "hold"],
	["noreverts", 1, "-", "hold"],
	["fullprivacy", 1, "+", "b"],
	["maxbackruns", 1, "-", "hold"],
	["nochecks", 0, "", "abc"],
	// What the node can't simulate goes out where a revert is allowed, and so does what stands behind it there.
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
	// What was not simulated at all (the node had no time) is not sent.
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
	// What has passed goes on being sent though it would revert now; of what is behind it nothing is known.
	["fast+ noreverts+", 2, "-", "abc behindUnchecked"],
	// Those on /nochecks go out at once; a simulated one behind them waits until they are mined, and all behind it.
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
		const payout = { fork: AMSTERDAM, baseFee, isNew: true };
		assert.deepEqual(owedRefund(brought, { percent, refundGas }, payout), { cost, owed }, `${brought}`);
	}
});

/** What a builder takes off 90 % of a million wei, at a base fee of 1 wei: to an account that is there, and to a new one. */
const COSTS = [
	[OSAKA, "usual", 0n, 0n],
	[OSAKA, "transfer", 21_000n, 21_000n],
	[AMSTERDAM, "usual", 21_000n, 204_600n],
	[AMSTERDAM, "transfer", 21_000n, 204_600n],
	[AMSTERDAM, 0, 0n, 0n],
	[AMSTERDAM, 5, 5n, 5n],
] as const;
test("paying a refund costs what the fork makes of it, unless the builder's row says otherwise", () => {
	for (const [fork, refundGas, ...costs] of COSTS) {
		const found = [false, true].map((isNew) =>
			owedRefund(1_000_000n, { percent: 90, refundGas }, { fork, baseFee: 1n, isNew }),
		);
		const expected = costs.map((cost) => ({ cost, owed: 900_000n - cost }));
		assert.deepEqual(found, expected, `${fork.name} ${refundGas}`);
	}
});

const GWEI = 10n ** 9n;
const ACCOUNT: AccountState = {
	...{ address: testAccount(0).address, block: 100, nonce: 10n, balance: 10n ** 20n, code: "none" },
};
const CHAIN = { chainId: 31_337n };
const NEXT: NextBlock = {
	...{ number: 101, timestamp: 1_700_000_000, baseFee: GWEI, blobBaseFee: 1n, gasLimit: 30_000_000n },
	fork: OSAKA,
};

interface Row {
	readonly tx?: TxOptions;
	/** What the decoder would not let through, or what is dear to sign. */
	readonly fields?: Partial<DecodedTransaction>;
	readonly next?: Partial<NextBlock>;
}
/** Null where it is taken, else `CODE: message`. */
type Expected = string | null;

/** What is asked; the row; what is refused. Most boundaries are tested from outside: see test/integration/transport/badInput. */
const TABLE: readonly (readonly [string, Row, Expected])[] = [
	["the usual", {}, null],
	["a fee cap under the next base fee", { tx: { maxFeePerGas: 1, maxPriorityFeePerGas: 0 } }, null],
	[
		"another chain, and everything else wrong",
		{ tx: { chainId: 1n, gasLimit: 0, nonce: 0 } },
		"WRONG_CHAIN: invalid chain id for signer: have 1 want 31337",
	],
	["blobs, 1 MiB", { tx: { type: 3 }, fields: { size: 1_048_576 } }, null],
	[
		"a delegation, 128 KiB and a byte",
		{ tx: { type: 4 }, fields: { size: 131_073 } },
		"OVERSIZED: oversized data: transaction size 131073, limit 131072",
	],
	["six blobs", { tx: { type: 3, blobs: 6 } }, null],
	["one proof a blob, which is changed", { tx: { type: 3, sidecarVersion: 0 } }, null],
	["one proof a blob before Osaka", { tx: { type: 3, sidecarVersion: 0 }, next: { fork: PRAGUE } }, null],
	[
		"no blobs",
		{ tx: { type: 3 }, fields: { blobVersionedHashes: [] } },
		"BLOBS: blobless blob transaction: expected at least one blob",
	],
	["gas of the whole block", { tx: { gasLimit: 16_777_216 }, next: { gasLimit: 16_777_216n } }, null],
	[
		"gas over the block",
		{ tx: { gasLimit: 16_777_216 }, next: { gasLimit: 16_777_215n } },
		"BLOCK_GAS_LIMIT: exceeds block gas limit: gas limit 16777216, block gas limit 16777215",
	],
	[
		"EIP-7825, over the cap",
		{ tx: { gasLimit: 16_777_217 } },
		"TX_GAS_LIMIT: transaction gas limit too high (cap: 16777216, tx: 16777217)",
	],
	["over the cap, where the chain has none", { tx: { gasLimit: 16_777_217 }, next: { fork: PRAGUE } }, null],
	// Too little for both is reported as intrinsic gas.
	[
		"a byte, under its intrinsic gas",
		{ tx: { data: "0x01", gasLimit: 21_015 } },
		"INTRINSIC_GAS: intrinsic gas too low: gas 21015, minimum needed 21016",
	],
	[
		"a byte, under the floor",
		{ tx: { data: "0x01", gasLimit: 21_039 } },
		"FLOOR_DATA_GAS: insufficient gas for floor data gas cost: gas 21039, minimum needed 21040",
	],
	["a byte, at the floor", { tx: { data: "0x01", gasLimit: 21_040 } }, null],
];

test("a transaction is refused by the first rule that it breaks, and only then", () => {
	for (const [name, row, expected] of TABLE) assert.equal(textOf(judge(row)), expected, name);
});

/** A refusal as text; it must have no other fields. */
function textOf(refusal: Rejection | null): Expected {
	if (refusal === null) return null;
	const { code, message, ...rest } = refusal;
	assert.deepEqual(rest, {});
	return `${code}: ${message}`;
}

function judge(row: Row): Rejection | null {
	const tx = { ...signedTransaction(row.tx), ...row.fields };
	return firstRejection(STATIC_RULES, tx, CHAIN, { ...NEXT, ...row.next });
}

test("a used nonce is reported before missing funds, since wallets match on the first", () => {
	const broke = { ...ACCOUNT, balance: 0n };
	const of = (nonce: number) => firstRejection(ACCOUNT_RULES, signedTransaction({ nonce }), broke)?.code;
	assert.deepEqual([9, 10, 74, 75].map(of), [
		...["NONCE_TOO_LOW", "INSUFFICIENT_FUNDS", "INSUFFICIENT_FUNDS", "NONCE_TOO_HIGH"],
	]);
	const contract = { ...broke, code: "contract" as const };
	assert.equal(
		firstRejection(ACCOUNT_RULES, signedTransaction({ nonce: 9 }), contract)?.code,
		"SENDER_NOT_EOA",
	);
});

/** Base fee; life in blocks; fee cap; whether it is refused. */
const HOPELESS: readonly (readonly [bigint, number, bigint, boolean])[] = [
	[8n ** 25n, 25, 7n ** 25n, false],
	[8n ** 25n, 25, 7n ** 25n - 1n, true],
	[GWEI, 25, 35_497_791n, false],
	[GWEI, 25, 35_497_790n, true],
	[7n, 25, 1n, false],
];

test("a fee cap is refused if the base fee can't fall to it within the lifetime", () => {
	for (const [baseFee, ttlBlocks, maxFeePerGas, isRefused] of HOPELESS) {
		const tx = signedTransaction({ maxFeePerGas, maxPriorityFeePerGas: 0 });
		const refusal = hopelessFeeCap(tx, { baseFee }, ttlBlocks);
		assert.equal(refusal !== null, isRefused, `${maxFeePerGas} at ${baseFee}, ${ttlBlocks} blocks`);
	}
});

test("fees below the block's keep a transaction out", () => {
	const block = { baseFee: 100n, blobBaseFee: 10n };
	for (const [maxFeePerGas, maxFeePerBlobGas, code] of [
		[100n, null, undefined],
		[99n, null, "FEE_CAP_TOO_LOW"],
		[100n, 10n, undefined],
		[100n, 9n, "BLOB_FEE_CAP_TOO_LOW"],
		[99n, 9n, "FEE_CAP_TOO_LOW"],
	] as const) {
		const fees = { maxFeePerGas, maxFeePerBlobGas };
		assert.equal(feeProblem(fees, block)?.code, code);
	}
});
