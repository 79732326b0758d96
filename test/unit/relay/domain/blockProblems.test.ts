// Tests which fees keep a transaction out of a block.

import assert from "node:assert/strict";
import { test } from "node:test";
import { feeProblem } from "../../../../relay/domain/blockProblems.ts";

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
