// The actions for a client's request, as a table: the next upstream for its transaction after the
// results so far, and the upstreams that receive its cancel.

import assert from "node:assert/strict";
import { test } from "node:test";
import { NOWHERE } from "../../../../boost-proxy/domain/deliveryState.ts";
import type { Delivery, RequestState, UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import type { Row } from "../../../../boost-proxy/domain/row.ts";
import type { CancelAsk, CancelOutcome, SubmitAsk, Tried } from "../../../../boost-proxy/reconcile/asks.ts";
import { planCancel, planSubmission, type UpstreamHealths } from "../../../../boost-proxy/reconcile/plan.ts";
import { decodeTransaction } from "../../../../shared/ethereum/transaction.ts";
import { signedTransaction } from "../../../support/txFactory.ts";
import { HEALTHY, NOW, rowOf, STATES } from "./planFixture.ts";

const STATE: RequestState = {
	caller: {
		address: "192.0.2.1",
		...{ signer: null, origin: null, via: null, signature: null, requestId: null },
		life: { bytes: 0, onGone: () => {} },
	},
	...{ path: "fast", target: null, search: "", whole: null, until: 1 },
	routing: { answeredBy: new Set(), attempts: 0, dropped: new Set() },
};
const { absent, given, has } = STATES;
const AT_RELAY = { relay: has, fallback: absent };
const AT_FALLBACK = { relay: absent, fallback: has };
const AT_BOTH = { relay: has, fallback: has };

/** Row `n` while its request is under way. */
function submittedRow(n: number, changed: Partial<Row> = {}): Row {
	return { ...rowOf(n, NOWHERE), requests: 1, ...changed };
}

function askOf({ hash, from, nonce, path }: Row): SubmitAsk {
	const tx = { hash, from, raw: Buffer.from([2]), path, search: "" };
	return { tx, agreed: tx, nonce, state: STATE };
}

const out = (...names: readonly UpstreamName[]): UpstreamHealths => ({
	relay: { ...HEALTHY.relay, isUnavailable: names.includes("relay") },
	fallback: { ...HEALTHY.fallback, isUnavailable: names.includes("fallback") },
});
const WELL = out();
const ALONE: UpstreamHealths = { relay: HEALTHY.relay };
const FAST_ONLY: UpstreamHealths = {
	...WELL,
	fallback: { ...HEALTHY.fallback, accepts: ({ path }) => path === "fast" },
};

const ACKNOWLEDGED: Delivery = { kind: "acknowledged", known: false };
const REJECTED: Delivery = { kind: "rejected", error: { code: -32000, message: "no" } };
const TIMED_OUT: Delivery = { kind: "failed", fault: "timeout", sent: true };
const BROKEN: Delivery = { kind: "failed", fault: "reset", sent: true };
const by = (name: UpstreamName, delivery: Delivery | null): Tried => ({ by: name, delivery });
const MINE = submittedRow(5);

interface Case {
	readonly health?: UpstreamHealths;
	/** The account's other rows. */
	readonly others?: readonly Row[];
	readonly mine?: Row;
	readonly came?: readonly Tried[];
	readonly next: string;
}
const SUBMISSIONS: Readonly<Record<string, Case>> = {
	"the relay first": { next: "submit 5 at the relay, others" },
	"it alone": { health: ALONE, next: "submit 5 at the relay" },
	"the relay is down": { health: out("relay"), next: "submit 5 at the fallback" },
	"the fallback is down": { health: out("fallback"), next: "submit 5 at the relay" },
	"both are down": { health: out("relay", "fallback"), next: "nothing" },
	"the fallback may not have it": {
		health: FAST_ONLY,
		mine: submittedRow(5, { path: "noreverts" }),
		next: "submit 5 at the relay",
	},
	"the relay acknowledged it": { came: [by("relay", ACKNOWLEDGED)], next: "nothing" },
	"the relay rejected it": { came: [by("relay", REJECTED)], next: "nothing" },
	"the relay gave no verdict": {
		came: [by("relay", TIMED_OUT)],
		mine: submittedRow(5, { at: { relay: given, fallback: absent } }),
		next: "submit 5 at the fallback",
	},
	"nothing was sent to the relay": { came: [by("relay", null)], next: "submit 5 at the fallback" },
	"the connection to the relay broke, and the fallback can take it": {
		came: [by("relay", BROKEN)],
		next: "submit 5 at the fallback",
	},
	"it broke, and nobody else can": {
		health: ALONE,
		came: [by("relay", BROKEN)],
		next: "submit 5 at the relay",
	},
	"the relay had no core, and nobody else can take it": {
		health: ALONE,
		came: [by("relay", { kind: "failed", fault: "internal", sent: true })],
		next: "submit 5 at the relay",
	},
	"it broke twice": { health: ALONE, came: [by("relay", BROKEN), by("relay", BROKEN)], next: "nothing" },
	"it timed out, and nobody else can take it": {
		health: ALONE,
		came: [by("relay", TIMED_OUT)],
		next: "nothing",
	},
	"it broke, and the relay is down": {
		health: out("relay", "fallback"),
		came: [by("relay", BROKEN)],
		next: "nothing",
	},
	"neither gave a verdict": {
		came: [by("relay", TIMED_OUT), by("fallback", TIMED_OUT)],
		next: "nothing",
	},
	"the account is at the fallback": {
		others: [rowOf(4, AT_FALLBACK)],
		next: "submit 5 at the fallback, others",
	},
	"the account is at both": {
		others: [rowOf(3, AT_FALLBACK), rowOf(4, AT_RELAY)],
		next: "submit 5 at the relay, others",
	},
	"the fallback has the nonce, the relay the rest": {
		others: [rowOf(4, AT_RELAY), { ...rowOf(5, AT_FALLBACK), hash: "0x5" }],
		next: "submit 5 at the fallback, others",
	},
	"its lower nonces go first while the relay is down": {
		health: out("relay"),
		others: [rowOf(3, AT_BOTH), rowOf(4, AT_RELAY), rowOf(6, AT_RELAY)],
		next: "send 4 at the fallback for handover",
	},
	"a lower nonce that waits holds nothing up": {
		health: out("relay"),
		others: [rowOf(3, { relay: has, fallback: STATES.later }), rowOf(4, AT_RELAY)],
		next: "submit 5 at the fallback",
	},
	"lower nonces stay with an available relay": {
		others: [rowOf(4, AT_RELAY)],
		came: [by("relay", TIMED_OUT)],
		next: "submit 5 at the fallback",
	},
};
for (const [what, { health = WELL, others = [], mine = MINE, came = [], next }] of Object.entries(
	SUBMISSIONS,
)) {
	test(`a submission: ${what}`, () => {
		const rows = [...others, mine].sort((one, other) => Number(one.nonce - other.nonce));
		const action = planSubmission(askOf(mine), came, rows, health, NOW);
		assert.equal(said(action), next);
	});
}

test("what has ended meanwhile is not sent", () => {
	assert.equal(planSubmission(askOf(MINE), [], [], WELL, NOW), null);
});

function said(action: ReturnType<typeof planSubmission>): string {
	if (action === null) return "nothing";
	const what = `${action.kind} ${action.row.nonce} at the ${action.to}`;
	if (action.kind === "send") return `${what} for ${action.need}`;
	return action.others ? `${what}, others` : what;
}

const SELF = signedTransaction({ nonce: 5n });
const decoded = decodeTransaction(SELF.raw);
assert.ok(decoded.ok);
const SOFTLY = { tx: decoded.tx };
const NO_METHOD: UpstreamHealths = {
	...WELL,
	fallback: { ...HEALTHY.fallback, canCancel: false, softCancels: false },
};
/** The row, what is asked for, the health, what came of it, and the next step. */
const CANCELS: Readonly<
	Record<
		string,
		readonly [
			Row["at"],
			Partial<CancelAsk>,
			UpstreamHealths,
			Partial<Record<UpstreamName, CancelOutcome>>,
			string,
		]
	>
> = {
	"a holder": [AT_FALLBACK, {}, WELL, {}, "cancel at the fallback"],
	"the relay before the fallback": [AT_BOTH, {}, WELL, {}, "cancel at the relay"],
	"the other one after it": [AT_BOTH, {}, WELL, { relay: { kind: "unsure" } }, "cancel at the fallback"],
	"nobody twice": [AT_RELAY, {}, WELL, { relay: { kind: "unsure" } }, "nothing"],
	"nobody without a holder": [NOWHERE, {}, WELL, {}, "nothing"],
	"a relay that may have it from others": [AT_FALLBACK, { asksRelay: true }, WELL, {}, "cancel at the relay"],
	"an unavailable one as well": [AT_RELAY, {}, out("relay"), {}, "cancel at the relay"],
	"no fallback of a stranger's": [AT_FALLBACK, { byRight: false }, WELL, {}, "unreached at the fallback"],
	"none that has no method": [AT_FALLBACK, {}, NO_METHOD, {}, "forget at the fallback"],
	"softly, the relay": [AT_RELAY, SOFTLY, WELL, {}, "cancelSoftly at the relay"],
	"softly, no unavailable one": [AT_RELAY, SOFTLY, out("relay"), {}, "unreached at the relay"],
	"softly, no fallback that takes gas": [AT_FALLBACK, SOFTLY, NO_METHOD, {}, "forget at the fallback"],
	"softly, no fallback without the flag": [AT_FALLBACK, SOFTLY, WELL, {}, "unreached at the fallback"],
};
for (const [what, [at, asked, health, came, next]] of Object.entries(CANCELS)) {
	test(`a cancel is sent to ${what}`, () => {
		const row = rowOf(5, at);
		const ask = { rows: [row], tx: null, byRight: true, asksRelay: false, state: STATE, ...asked };
		const outcomes = new Map(Object.entries(came) as [UpstreamName, CancelOutcome][]);
		const action = planCancel(ask, outcomes, [row], health);
		assert.equal(action === null ? "nothing" : `${action.kind} at the ${action.to}`, next);
	});
}

test("softly at a fallback: on the path and query of the row that allows it", () => {
	const rows = [rowOf(5, AT_FALLBACK), { ...rowOf(5, AT_FALLBACK), hash: "0x5", softCancellations: true }];
	const ask = { rows, byRight: true, asksRelay: false, state: STATE, ...SOFTLY };
	const action = planCancel(ask, new Map(), rows, WELL);
	assert.deepEqual([action?.kind, action?.row.hash], ["cancelSoftly", "0x5"]);
});
