// Bad JSON-RPC against a running relay: envelopes, parameters, refused methods and the REST paths. Each row gets its
// exact answer, and the relay is well behind them all.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ENVELOPE_ROWS } from "./badInput/envelopes.ts";
import { METHOD_PARAM_ROWS } from "./badInput/methodParams.ts";
import { REFUSED_METHOD_ROWS, VICTIM } from "./badInput/refusedMethods.ts";
import { testCallRows, testHttpRows } from "./badInput/rows.ts";
import { type BadInputScene, startScene } from "./badInput/scene.ts";

let scene: BadInputScene;
before(async () => {
	scene = await startScene();
});
after(() => scene.stop());

testHttpRows(ENVELOPE_ROWS, () => scene);
testCallRows(METHOD_PARAM_ROWS, () => scene);
testCallRows(REFUSED_METHOD_ROWS, () => scene);

test("the node has heard of none of the refused calls", async () => {
	const { chain } = scene.system;
	for (const method of ["eth_getBalance", "eth_getTransactionCount"]) {
		assert.equal(await chain.rpc(method, [VICTIM, "latest"]), "0x0", method);
	}
	assert.equal(await chain.rpc("eth_getCode", [VICTIM, "latest"]), "0x");
	assert.equal(await chain.rpc("eth_blockNumber"), "0x0");
});

test("the relay is well after all of it", () => scene.stillWell());
