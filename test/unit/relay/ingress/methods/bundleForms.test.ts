// Bundles whose form is wrong never reach the market, and each is told what was expected.

import assert from "node:assert/strict";
import { test } from "node:test";
import { BUNDLE_ROWS } from "../../../../integration/transport/badInput/bundleRows.ts";
import { startBundleMethods } from "../bundleFixture.ts";

const methods = startBundleMethods();

for (const { name, method, params, error } of BUNDLE_ROWS) {
	test(`${method}: ${name}`, async () => {
		const answer = await methods.call(method, params, {}, name);
		assert.deepEqual(answer, { jsonrpc: "2.0", id: name, error });
		assert.equal(methods.market.asked, 0);
		assert.deepEqual(methods.charges, []);
	});
}

test("no row is there twice, and there are many", () => {
	const names = BUNDLE_ROWS.map(
		({ method, params }) => `${method} ${JSON.stringify(params).slice(0, 2_000)}`,
	);
	assert.ok(names.length >= 120, `${names.length}`);
	assert.equal(new Set(names).size, names.length);
});

test("half a million bad entries cost little", async () => {
	const many = Array(500_000).fill({});
	const begun = performance.now();
	await methods.call("mev_sendBundle", [
		{
			version: "v0.1",
			inclusion: { block: "0x1" },
			body: many,
			validity: { refund: many, refundConfig: many },
		},
	]);
	await methods.call("eth_sendBundle", [{ txs: many }]);
	// An issue for each of them takes several seconds.
	assert.ok(performance.now() - begun < 3_000, `${performance.now() - begun} ms`);
});
