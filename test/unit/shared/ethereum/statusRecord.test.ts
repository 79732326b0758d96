// The blank status record, as the interface has it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";

test("a hash that was never seen has the given fields and no more", () => {
	const hash = `0x${"ab".repeat(32)}`;
	assert.deepEqual(unknownStatus(hash), {
		...{ status: "UNKNOWN", hash, rpc_timestamp: null },
		transaction: { from: "", to: "", gas: "", nonce: "", value: "" },
		...{ fastMode: false, shared: false, simulationError: null, backruns: 0 },
		...{ referrer: null, refundRecipient: null, refund: 0 },
	});
});
