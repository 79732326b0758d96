// An attempt that has left nothing at an upstream is undone, and nothing else is.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
	type Attempt,
	markAnswered,
	markAsBefore,
	markAsked,
	markGiven,
	markHeld,
} from "../../../../boost-proxy/domain/deliveries.ts";
import { ABSENT } from "../../../../boost-proxy/domain/deliveryState.ts";
import { endRow, type Row } from "../../../../boost-proxy/domain/row.ts";
import { rowOf, STATES } from "../reconcile/planFixture.ts";

/** When the attempt began, and another one. */
const [OWN, OTHER] = [1_000, 2_000];
const BEGUN = markAsked(rowOf(1, { relay: ABSENT, fallback: ABSENT }), "fallback", OWN);

const CASES: readonly (readonly [
	what: string,
	now: Row,
	presence: string,
	askedAt: number,
	attempts: number,
])[] = [
	["nothing else", BEGUN, "absent", 0, 1],
	["another attempt has begun", markAsked(BEGUN, "fallback", OTHER), "unanswered", OTHER, 2],
	["another one was answered", markHeld(BEGUN, "fallback"), "has", 0, 1],
	[
		"another one was answered, and a third one not",
		markHeld(markGiven(BEGUN, "fallback", OTHER), "fallback"),
		"has",
		OTHER,
		2,
	],
	["its user has ended it", endRow(BEGUN, "cancelled", OWN, ["fallback"]), "unanswered", 0, 1],
];

describe("an attempt has left nothing; in between:", () => {
	for (const [what, row, presence, askedAt, attempts] of CASES)
		it(what, () => {
			const { at } = markAsBefore(row, { by: "fallback", askedAt: OWN, before: ABSENT });
			assert.deepEqual(
				[at.fallback.presence, at.fallback.askedAt, at.fallback.attempts],
				[presence, askedAt, attempts],
			);
			assert.deepEqual(at.relay, ABSENT);
		});
});

it("an answer settles the attempt that it belongs to", () => {
	const row = rowOf(1, { relay: ABSENT, fallback: { ...STATES.has, askedAt: OTHER } });
	const before = { ...ABSENT, askedAt: OWN };
	const [latest, earlier] = [OTHER, OWN].map((askedAt) => ({ by: "fallback", askedAt, before }) as const);
	for (const marked of [markAnswered, (one: Row, attempt: Attempt) => markHeld(one, "fallback", attempt)]) {
		assert.equal(latest && marked(row, latest).at.fallback.askedAt, OWN);
		assert.equal(earlier && marked(row, earlier).at.fallback.askedAt, OTHER);
	}
});
