// eth_cancelBundle before a market that remembers what it was asked.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDRESS, SIGNER, startBundleMethods } from "../bundleFixture.ts";

const PAGE = "https://app.example";

test("it answers the number 200 and cancels what the client has under the uuid", async () => {
	const { market, result } = startBundleMethods();
	for (const [caller, owner] of [
		[{}, ADDRESS],
		[{ address: "2001:db8::1" }, "2001:db8::1"],
		[{ signer: SIGNER }, SIGNER],
		[{ signer: SIGNER, origin: PAGE }, SIGNER],
		[{ websocket: true }, ADDRESS],
		[{ origin: "chrome-extension://a" }, ADDRESS],
	] as const) {
		assert.equal(await result("eth_cancelBundle", [{ replacementUuid: "mine" }], caller), 200);
		assert.deepEqual(market.cancels.splice(0), [[owner, "mine"]]);
	}
});

test("more keys are ignored", async () => {
	const { market, result } = startBundleMethods();
	assert.equal(await result("eth_cancelBundle", [{ replacementUuid: "mine", signingAddress: SIGNER }]), 200);
	assert.deepEqual(market.cancels, [[ADDRESS, "mine"]]);
});

test("an unsigned one of a web page is answered the same, and nothing happens", async () => {
	const { market, result } = startBundleMethods();
	for (const origin of [PAGE, "http://localhost", "HTTPS://A", "null"]) {
		for (const websocket of [true, false]) {
			assert.equal(
				await result("eth_cancelBundle", [{ replacementUuid: "mine" }], { origin, websocket }),
				200,
			);
		}
	}
	assert.equal(market.asked, 0);
});
