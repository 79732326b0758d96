// The query of a submission: its spellings, what is refused, and what is kept of a long one.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	boundedQuery,
	MAX_REFERRER_LENGTH,
	NO_QUERY,
	readSubmissionQuery,
	submissionQuery,
} from "../../../shared/submissionQuery.ts";

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
	// Flashbots': whatever is asked for there, searchers see nothing unless the call data is hinted
	// at.
	["?hint=hash", { isHidden: true }],
	["?hint=hash&HINT=default_logs", { isHidden: true }],
	["?hint=contract_address&hint=function_selector", { isHidden: true }],
	["?hint=calldata", {}],
	["?hint=full", {}],
	["?hint=hash&hint=logs&hint=calldata", {}],
	["?useMempool=false", { isHidden: true }],
	["?originid=a%20wallet", { referrer: "a wallet", isHidden: true }],
	["?builder=titan&builder=b&builder=b", { builders: ["titan", "b"], isHidden: true }],
	["?builder=titan&hint=calldata", { builders: ["titan"] }],
	[
		`?refund=${ADDRESS}:90&blockRange=25`,
		{ refundRecipient: ADDRESS.toLowerCase(), refundPercent: 90, blockRange: 25, isHidden: true },
	],
];

test("each spelling of a submission's parameters is accepted", () => {
	for (const [search, expected] of TAKEN) {
		assert.deepEqual(readSubmissionQuery(new URLSearchParams(search)), { ...NO_QUERY, ...expected }, search);
	}
});

test("a query is read back as it was written", () => {
	for (const isHidden of [true, false]) {
		for (const builders of [null, ["titan"], ["a b", "c&d"]]) {
			const asked = { ...NO_QUERY, referrer: "é", isHidden, builders };
			assert.deepEqual(readSubmissionQuery(new URLSearchParams(submissionQuery(asked))), asked);
		}
	}
});

const HINTS =
	"calldata, full, logs, hash, tx_hash, contract_address, function_selector, default_logs, special_logs";

test("a misspelt name is refused with the right one; of a long query only known parameters are kept", () => {
	const long = `x=${"y".repeat(9_000)}`;
	for (const [search, message] of [
		["refundRecipent=0x12", "refundRecipent: expected the name refundRecipient"],
		["softCancelation=true", "softCancelation: expected the name softCancellations"],
		["REFERRER=a&referrer=b", "referrer: expected once"],
		["softcancel=1&softcancel=0", "softcancel: expected once"],
		["hints=hash", "hints: expected the name hint"],
		["builders=titan", "builders: expected the name builder"],
		["hint=", `hint: expected one of ${HINTS}`],
		["hint=hash,logs", `hint: expected one of ${HINTS}`],
		[
			"hint=logs",
			"hint: expected calldata with logs: searchers see everything but the signature, or nothing",
		],
		["useMempool=true", "useMempool: expected false: nothing goes to the public mempool"],
		["blockRange=soon", "blockRange: expected a number of blocks"],
		[`refund=${ADDRESS}`, "refund: expected an address and a percent: 0x…:90"],
		[`refund=${ADDRESS}:9.5`, "refund: expected an address and a percent: 0x…:90"],
		["refund=0x12:90", "refund: expected an address and a percent: 0x…:90"],
		[`refund=${ADDRESS}:45&refund=${SMILES}:45`, "refund: expected one recipient"],
		[`refund=${ADDRESS}:90&refundRecipient=${ADDRESS}`, "refund: expected no refundRecipient with it"],
		["originId=a&referrer=a", "originId: expected no referrer with it"],
		[`originId=${"z".repeat(65)}`, "originId: expected 64 characters at most"],
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
	const query = {
		...NO_QUERY,
		softCancellations: true,
		refundRecipient: ADDRESS.toLowerCase(),
		referrer: "é",
	};
	assert.deepEqual(readSubmissionQuery(new URLSearchParams(kept)), query);
});
