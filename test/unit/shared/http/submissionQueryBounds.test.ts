// A query is kept with a transaction and sent on to third parties: what is known of it is kept, noise without end is not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { boundedQuery, readSubmissionQuery } from "../../../../shared/http/submissionQuery.ts";

test("a query of ordinary length is kept as it came", () => {
	for (const search of ["", "softcancel=1", "%", "a&a&b=%zz", `x=${"y".repeat(1_022)}`]) {
		assert.equal(boundedQuery(search), search);
	}
});

test("of a longer one the known parameters are kept, and mean what they meant", () => {
	const address = `0x${"ab".repeat(20)}`;
	const search = `x=${"y".repeat(9_000)}&softcancel=1&refundRecipient=${address}&referrer=%C3%A9`;
	const kept = boundedQuery(search);
	assert.ok(kept.length < 200, kept);
	assert.deepEqual(readSubmissionQuery(new URLSearchParams(kept)), {
		softCancellations: true,
		refundRecipient: address,
		referrer: "é",
	});
});

test("what was refused is refused still", () => {
	const long = `x=${"y".repeat(2_000)}`;
	for (const bad of [`referrer=${"z".repeat(5_000)}`, "softcancel=1&softcancel=0", "refundRecipient=0x12"]) {
		const kept = boundedQuery(`${bad}&${long}`);
		assert.ok(kept.length <= 1_024, String(kept.length));
		assert.throws(() => readSubmissionQuery(new URLSearchParams(kept)), /invalid params/);
	}
});
