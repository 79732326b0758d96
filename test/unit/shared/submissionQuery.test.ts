// The query of a submission: its spellings, what is refused, and what is kept of a long one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { boundedQuery, MAX_REFERRER_LENGTH, readSubmissionQuery } from "../../../shared/submissionQuery.ts";

const NOTHING = { softCancellations: false, refundRecipient: null, referrer: null };
const ADDRESS = `0x${"Ab".repeat(20)}`;
const SMILES = "\u{1f600}".repeat(MAX_REFERRER_LENGTH);

const TAKEN: readonly (readonly [string, object])[] = [
	["", {}],
	["?unknown=1&cancelSoftly=true", {}],
	["?softCancellations=true", { softCancellations: true }],
	["?softCancellations=1", { softCancellations: true }],
	["?softcancel=1", { softCancellations: true }],
	["?softcancel=true", { softCancellations: true }],
	["?softcancel=0&softCancellations=false", {}],
	["?softcancel=0&softCancellations=true", { softCancellations: true }],
	[`?refundRecipient=${ADDRESS}`, { refundRecipient: ADDRESS.toLowerCase() }],
	["?referrer=a%20wallet", { referrer: "a wallet" }],
	[
		`?REFUNDRECIPIENT=${ADDRESS}&SoftCancel=1`,
		{ softCancellations: true, refundRecipient: ADDRESS.toLowerCase() },
	],
	["?referrer=", {}],
	[`?referrer=${encodeURIComponent(SMILES)}`, { referrer: SMILES }],
];

test("each spelling of a submission's parameters is accepted", () => {
	for (const [search, expected] of TAKEN) {
		assert.deepEqual(readSubmissionQuery(new URLSearchParams(search)), { ...NOTHING, ...expected }, search);
	}
});

test("a misspelt name is refused with the right one; of a long query only known parameters are kept", () => {
	const long = `x=${"y".repeat(9_000)}`;
	for (const [search, message] of [
		["refundRecipent=0x12", "refundRecipent: expected the name refundRecipient"],
		["softCancelation=true", "softCancelation: expected the name softCancellations"],
		["REFERRER=a&referrer=b", "referrer: expected once"],
		["softcancel=1&softcancel=0", "softcancel: expected once"],
		[`referrer=${"z".repeat(5_000)}`, "referrer: expected 64 characters at most"],
	] as const) {
		const refusal = { kind: "invalidParams", message: `invalid params: ${message}` };
		for (const given of [search, boundedQuery(`${search}&${long}`)]) {
			assert.throws(() => readSubmissionQuery(new URLSearchParams(given)), refusal);
		}
	}
	for (const search of ["", "%", "a&a&b=%zz", `x=${"y".repeat(1_022)}`])
		assert.equal(boundedQuery(search), search);
	const kept = boundedQuery(`${long}&softcancel=1&refundRecipient=${ADDRESS}&referrer=%C3%A9`);
	assert.ok(kept.length < 200, kept);
	const query = { softCancellations: true, refundRecipient: ADDRESS.toLowerCase(), referrer: "é" };
	assert.deepEqual(readSubmissionQuery(new URLSearchParams(kept)), query);
});
