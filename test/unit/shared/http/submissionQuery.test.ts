// What a submission's query asks for: both spellings of the flag, each parameter once, bad ones refused by name.

import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_REFERRER_LENGTH, readSubmissionQuery } from "../../../../shared/http/submissionQuery.ts";

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
		"?REFUNDRECIPIENT=0xABcdef0123456789abcdef0123456789ABCDEF01&SoftCancel=1",
		{ softCancellations: true, refundRecipient: "0xabcdef0123456789abcdef0123456789abcdef01" },
	],
	["?referrer=", {}],
	[`?referrer=${encodeURIComponent(SMILES)}`, { referrer: SMILES }],
];

for (const [search, expected] of TAKEN) {
	test(`${search.slice(0, 50) || "no query"} is taken`, () => {
		assert.deepEqual(readSubmissionQuery(new URLSearchParams(search)), { ...NOTHING, ...expected });
	});
}

const REFUSED: readonly (readonly [string, string])[] = [
	["?softCancellations=yes", "softCancellations: expected true or false"],
	["?softCancellations=", "softCancellations: expected true or false"],
	["?softcancel=True", "softcancel: expected true or false"],
	["?softcancel=1&softcancel=1", "softcancel: expected once"],
	["?softCancellations=true&softcancel=maybe", "softcancel: expected true or false"],
	["?refundRecipient=0x12", "refundRecipient: expected an address of 20 bytes as 0x hex"],
	["?refundRecipent=0x12", "refundRecipent: expected the name refundRecipient"],
	["?softCancelation=true", "softCancelation: expected the name softCancellations"],
	["?referer=a", "referer: expected the name referrer"],
	["?REFERRER=a&referrer=b", "referrer: expected once"],
	["?refundRecipient=", "refundRecipient: expected an address of 20 bytes as 0x hex"],
	["?referrer=a&referrer=b", "referrer: expected once"],
	[`?referrer=${"x".repeat(MAX_REFERRER_LENGTH + 1)}`, "referrer: expected 64 characters at most"],
];

for (const [search, message] of REFUSED) {
	test(`${search.slice(0, 50)} is refused`, () => {
		assert.throws(() => readSubmissionQuery(new URLSearchParams(search)), {
			kind: "invalidParams",
			message: `invalid params: ${message}`,
		});
	});
}
