// Merges two boost instances' rows of one transaction into one, by a table: its owners, and the
// upstreams that must still cancel it. The last of two transactions with one nonce counts, except
// where an upstream has both.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mergedRow, replacedAmong } from "../../../../boost-proxy/domain/mergedRow.ts";
import { onlyOwner } from "../../../../boost-proxy/domain/owners.ts";
import type { UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import {
	cancelsPendingAt,
	type Ending,
	endRow,
	holdersOf,
	type Row,
	stripRow,
} from "../../../../boost-proxy/domain/row.ts";
import { rowOf, STATES, type StateName } from "../reconcile/planFixture.ts";

const live = (relay: StateName, fallback: StateName = "absent"): Row =>
	rowOf(1, { relay: STATES[relay], fallback: STATES[fallback] });
const ended = (how: Ending, cancelAt: readonly UpstreamName[] = []): Row =>
	endRow(live("has"), how, 7, cancelAt);
const settled = (how: Ending): Row => stripRow(ended(how));

/**
 * `at`: the pending cancels of an ended row, the holders of a live one. `theirs`: the row of the
 * other instance has all of it.
 */
const CASES: readonly (readonly [
	what: string,
	own: Row,
	other: Row,
	expected: "theirs" | { readonly desired: Row["desired"]; readonly at: readonly UpstreamName[] },
])[] = [
	["live twice", live("has"), live("has"), { desired: "live", at: ["relay"] }],
	[
		"at one upstream each",
		live("has"),
		live("absent", "has"),
		{ desired: "live", at: ["relay", "fallback"] },
	],
	["held by nobody", live("absent"), live("rejected"), { desired: "live", at: [] }],
	[
		"cancelled here, live there",
		ended("cancelled"),
		live("absent", "has"),
		{ desired: "cancelled", at: ["fallback"] },
	],
	[
		"cancelled long ago here, live there",
		settled("cancelled"),
		live("has"),
		{ desired: "cancelled", at: ["relay"] },
	],
	[
		"live here, cancelled there",
		live("has"),
		ended("cancelled", ["fallback"]),
		{ desired: "cancelled", at: ["relay", "fallback"] },
	],
	[
		"live here, replaced long ago there",
		live("absent", "given"),
		settled("replaced"),
		{ desired: "replaced", at: ["fallback"] },
	],
	["live here, expired there", live("has"), settled("expired"), { desired: "live", at: ["relay"] }],
	["live here, mined there", live("has"), ended("mined"), { desired: "live", at: ["relay"] }],
	["expired here, live there", settled("expired"), live("has"), "theirs"],
	["mined here, live there", ended("mined"), live("has"), "theirs"],
	["mined here, cancelled there", settled("mined"), ended("cancelled"), "theirs"],
	["expired twice", settled("expired"), settled("expired"), { desired: "expired", at: [] }],
	[
		"cancelled here, and still to be there",
		settled("cancelled"),
		ended("cancelled", ["relay"]),
		{ desired: "cancelled", at: ["relay"] },
	],
];

for (const [what, own, other, expected] of CASES) {
	test(`${what}: ${typeof expected === "string" ? expected : `${expected.desired} at ${expected.at.join(" and ") || "nobody"}`}`, () => {
		const merged = mergedRow(own, other);
		const at = merged?.desired === "live" ? holdersOf : cancelsPendingAt;
		assert.deepEqual(merged === null ? "theirs" : { desired: merged.desired, at: at(merged) }, expected);
		if (merged !== null) assert.equal(merged.id, own.id);
	});
}

test("a merged row has the owners of both, notifies the relay, and is acknowledged if one of them was", () => {
	const asked = { path: "noreverts", search: "", softCancellations: true, address: "198.51.100.1" } as const;
	const other: Row = {
		...live("has"),
		...asked,
		owners: [onlyOwner(asked)],
		receivedAt: -5,
		aliveUntil: 9e9,
	};
	const merged = mergedRow({ ...live("has"), acknowledged: false }, other);
	assert.deepEqual(
		merged?.owners.map(({ address }) => address),
		[live("has").address, "198.51.100.1"],
	);
	const { path, softCancellations, ownersPending, acknowledged, receivedAt, aliveUntil } = merged as Row;
	assert.deepEqual(
		{ path, softCancellations, ownersPending, acknowledged, receivedAt, aliveUntil },
		{
			...{ path: "noreverts", softCancellations: false, ownersPending: true, acknowledged: true },
			...{ receivedAt: -5, aliveUntil: 9e9 },
		},
	);
});

/** The first row of a nonce, the second, and where the first is replaced. */
const NONCES: readonly (readonly [first: Row, second: Partial<Row>, at: readonly UpstreamName[]])[] = [
	[live("has"), { at: live("absent", "has").at }, ["relay"]],
	[live("has", "has"), { at: live("absent", "has").at }, ["relay"]],
	[live("has"), { at: live("has").at }, []],
	[live("absent"), { at: live("has").at }, []],
	[live("has"), { at: live("absent", "has").at, acknowledged: false }, []],
	[live("has"), { at: live("absent", "has").at, requests: 1 }, []],
	[live("has"), { at: live("absent", "has").at, nonce: 2n }, []],
];

for (const [i, [first, changed, at]] of NONCES.entries()) {
	test(`two of one nonce, case ${i}: ${at.length === 0 ? "nothing is ended" : `the first is replaced at ${at}`}`, () => {
		const second: Row = { ...first, hash: "0xsecond", ...changed };
		const expected = at.length === 0 ? [] : [{ row: first, by: second, at }];
		assert.deepEqual(replacedAmong([first, second]), expected);
	});
}
