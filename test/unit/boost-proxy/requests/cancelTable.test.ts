// The tables of a cancel by hash: the action for each set of facts, and the result for each set of
// answers.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { onlyOwner } from "../../../../boost-proxy/domain/owners.ts";
import { onBehalfOf, type UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import { endRow, type Row } from "../../../../boost-proxy/domain/row.ts";
import type { CancelOutcome } from "../../../../boost-proxy/reconcile/asks.ts";
import {
	type CancelAction,
	type CancelEnd,
	cancelAction,
	cancelEnd,
} from "../../../../boost-proxy/requests/cancelTable.ts";
import { NOW, rowOf, STATES } from "../reconcile/planFixture.ts";

const OWN = "192.0.2.7";
const OTHER = "192.0.2.8";

const AT = {
	...STATES,
	/** Another attempt has no answer. */
	hasAgain: { ...STATES.has, askedAt: NOW.now },
	/** Another attempt had no answer, and can't arrive any more. */
	hasLongSince: { ...STATES.has, askedAt: NOW.now - 31_000 },
	/** One more attempt was answered. */
	hasTwice: { ...STATES.has, attempts: STATES.has.attempts + 1 },
};
type State = keyof typeof AT;

function held(relay: State, fallback: State = "absent", changed: Partial<Row> = {}): Row {
	const row = rowOf(1, { relay: AT[relay], fallback: AT[fallback] });
	return { ...row, address: OWN, owners: [onlyOwner({ ...row, address: OWN })], ...changed };
}
const wantedByTwo = (row: Row): Row => ({
	...row,
	owners: [...row.owners, onlyOwner({ ...row, address: OTHER })],
});
const cancelled = (changed: Partial<Row> = {}): Row => ({
	...endRow(held("has"), "cancelled", 7, []),
	...changed,
});

type Caller = "owner" | "stranger" | "sender" | "sender softly";
const LIVE = held("has");
const BY_FALLBACK = held("absent", "has");
/**
 * Whether the relay trusts boost about clients, has not responded yet (`unheard`), or is down
 * (`out`).
 */
type Relay = "believes" | "doubts" | "unheard" | "out" | "unheard, out";

const ACTIONS: readonly (readonly [
	what: string,
	row: Row | null,
	who: Caller,
	relay: Relay,
	CancelAction,
])[] = [
	["no record", null, "owner", "believes", "askRelay"],
	["no record", null, "owner", "doubts", "notBelieved"],
	["no record", null, "owner", "unheard", "notAnswered"],
	["no record", null, "owner", "unheard, out", "notHere"],
	["no record", null, "owner", "out", "askRelay"],
	["live, at the relay", LIVE, "owner", "believes", "cancelEverywhere"],
	["live, at the relay", LIVE, "owner", "out", "cancelEverywhere"],
	["live, at the relay", LIVE, "owner", "unheard", "cancelEverywhere"],
	["live, at the relay", LIVE, "owner", "doubts", "notBelieved"],
	["live, at the relay", LIVE, "stranger", "believes", "askRelayFirst"],
	["live, at the relay", LIVE, "stranger", "out", "askRelay"],
	["live, at the relay", LIVE, "stranger", "unheard", "notAnswered"],
	["live, at the relay", LIVE, "stranger", "doubts", "notBelieved"],
	["live, at the relay", LIVE, "sender", "believes", "cancelEverywhere"],
	["live, at the fallback", BY_FALLBACK, "owner", "doubts", "cancelEverywhere"],
	["live, at the fallback", BY_FALLBACK, "stranger", "believes", "askRelay"],
	["live, wanted by two", wantedByTwo(LIVE), "owner", "believes", "takeBackWish"],
	["live, wanted by two", wantedByTwo(LIVE), "owner", "out", "takeBackWish"],
	["live, wanted by two", wantedByTwo(LIVE), "sender", "believes", "cancelEverywhere"],
	["cancelled", cancelled(), "owner", "believes", "isCancelled"],
	["cancelled", cancelled(), "stranger", "believes", "askRelay"],
	["cancelled", cancelled(), "sender", "believes", "cancelForAll"],
	["cancelled by the sender", cancelled({ bySender: true }), "sender", "out", "isCancelled"],
	["mined", endRow(LIVE, "mined", 7, []), "owner", "believes", "notPending"],
	["mined", endRow(LIVE, "mined", 7, []), "stranger", "believes", "askRelay"],
];

describe("a cancel by hash", () => {
	for (const [what, row, who, relay, expected] of ACTIONS)
		it(`${what}, ${who}, relay ${relay}: ${expected}`, () => {
			const signer = who === "sender" ? LIVE.from : null;
			const caller = onBehalfOf({ address: who === "owner" ? OWN : "192.0.2.99" }, { signer });
			const relayKnowsClient = relay.startsWith("unheard") ? null : relay !== "doubts";
			const isRelayOut = relay.endsWith("out");
			assert.equal(cancelAction({ row, caller, relayKnowsClient, isRelayOut }), expected);
		});
});

const VERDICT = { code: -32000, message: "no" } as const;
type Said = "done" | "stillWanted" | "unreached" | "unsure" | "cannot" | "rejected";
function outcome(said: Said): CancelOutcome {
	if (said === "rejected") return { kind: said, error: VERDICT };
	if (said === "done" || said === "stillWanted")
		return { kind: "done", isStillWanted: said === "stillWanted" };
	return { kind: said };
}
const ended = (answer: CancelEnd["answer"], ...laterAt: UpstreamName[]): CancelEnd => ({
	...{ abandonedBy: [], laterAt, answer },
});
const stays = (answer: CancelEnd["answer"], ...abandonedBy: UpstreamName[]): CancelEnd => ({
	...{ abandonedBy, laterAt: null, answer },
});
/**
 * The answers of relay and fallback, null if not asked. `who`: whether the client owns the
 * transaction.
 */
const ENDS: readonly (readonly [
	row: Row,
	relay: Said | null,
	fallback: Said | null,
	who: Caller,
	expected: CancelEnd,
	/** As it was when both were asked; by default as it is. */
	asked?: Row,
])[] = [
	[LIVE, "done", null, "owner", ended("done")],
	[LIVE, "stillWanted", null, "owner", ended("stillWanted")],
	[LIVE, "done", null, "stranger", ended("done")],
	[LIVE, "unreached", null, "owner", ended("unreached", "relay")],
	[LIVE, "unreached", null, "stranger", stays("holderIsOut")],
	[LIVE, "unsure", null, "owner", ended("unreached", "relay")],
	[LIVE, "unsure", null, "stranger", ended("unreached", "relay")],
	[LIVE, "rejected", null, "owner", stays(VERDICT)],
	[held("has", "has"), "unreached", "rejected", "owner", ended("unreached", "relay")],
	[held("has", "given"), "unreached", "rejected", "owner", ended("unreached", "relay", "fallback")],
	[held("has", "given"), "unreached", "rejected", "stranger", stays(VERDICT)],
	[held("absent", "given"), null, "rejected", "owner", ended("unreached", "fallback")],
	[held("absent", "has"), null, "rejected", "owner", stays(VERDICT)],
	[held("has", "given"), "rejected", "unreached", "owner", stays(VERDICT)],
	[held("absent"), null, null, "owner", ended("done")],
	[held("has", "has"), "done", "done", "owner", ended("done")],
	[held("has", "has"), "done", "unsure", "owner", ended("unreached", "fallback")],
	[held("has", "has"), "unreached", "done", "owner", ended("unreached", "relay")],
	[held("absent", "has"), "unreached", "done", "sender", ended("done", "relay")],
	[held("has", "given"), "done", "rejected", "owner", ended("unreached", "fallback")],
	[held("has", "given"), "done", "done", "owner", ended("done")],
	[held("has", "given"), "done", "done", "sender softly", ended("unreached", "fallback")],
	[held("has", "has"), "done", "done", "sender softly", ended("done")],
	[held("has", "later"), "done", "done", "owner", ended("unreached", "fallback")],
	[held("has", "hasAgain"), "done", "done", "owner", ended("unreached", "fallback")],
	[held("absent", "hasAgain"), null, "rejected", "owner", ended("unreached", "fallback")],
	[held("has", "hasLongSince"), "done", "done", "owner", ended("done")],
	[BY_FALLBACK, null, "rejected", "owner", ended("unreached", "fallback"), held("absent", "given")],
	[BY_FALLBACK, null, "done", "owner", ended("done"), held("absent", "given")],
	[held("absent", "hasTwice"), null, "done", "owner", ended("unreached", "fallback"), BY_FALLBACK],
	[held("absent", "hasTwice"), null, "rejected", "owner", ended("unreached", "fallback"), BY_FALLBACK],
	[held("hasTwice"), "done", null, "owner", ended("done"), LIVE],
	[held("hasAgain", "absent"), "done", null, "owner", ended("done")],
	[held("has", "has"), "rejected", "done", "owner", ended("done")],
	[held("has", "has"), "rejected", "unsure", "owner", ended(VERDICT, "fallback")],
	[held("has", "has"), "done", null, "stranger", ended("done", "fallback")],
	[held("has", "has"), "done", "cannot", "owner", stays("cannot", "relay")],
	[held("has", "has", { ownersPending: true }), "done", "done", "owner", ended("done", "relay")],
	[held("given", "has"), "rejected", "done", "owner", ended("unreached", "relay")],
	[held("has", "has", { ownersPending: true }), "done", "done", "sender", ended("done")],
];

describe("the result of a cancel", () => {
	for (const [row, relay, fallback, who, expected, before = row] of ENDS)
		it(`relay ${relay}, fallback ${fallback}, for a ${who}${row.ownersPending ? ", with others to tell" : ""}`, () => {
			const outcomes = new Map<UpstreamName, CancelOutcome>();
			if (relay !== null) outcomes.set("relay", outcome(relay));
			if (fallback !== null) outcomes.set("fallback", outcome(fallback));
			const asked = {
				byRight: who !== "stranger",
				bySender: who.startsWith("sender"),
				isSoft: who.endsWith("softly"),
				asked: new Map<UpstreamName, readonly Row[]>([
					["relay", [before]],
					["fallback", [before]],
				]),
				now: NOW.now,
			};
			assert.deepEqual(cancelEnd([row], outcomes, asked), expected);
		});
});
