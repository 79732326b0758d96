// Boost's table of methods against the relay's: the weights are the same, and only reads may reach a third party.

import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOf, labelOf, RELAY_ONLY, weightOf } from "../../../../boost-proxy/ingress/methods.ts";
import { METHODS } from "../../../../relay/ingress/methods/index.ts";

test("every method of the relay is known to boost with the same weight, and is no read", () => {
	const wrong = METHODS.filter(({ name, weight }) => {
		const kind = kindOf(name);
		const isPlaced = kind === "relay" ? RELAY_ONLY.has(name) : kind !== "read";
		return !isPlaced || weightOf(name) !== weight;
	});
	assert.deepEqual(
		wrong.map(({ name }) => name),
		[],
	);
});

test("unknown methods go to the relay only", () => {
	for (const name of ["eth_sendTransaction", "admin_peers", "eth_newThing", "", "__proto__", "toString"]) {
		assert.equal(kindOf(name), "relay", name);
		assert.equal(labelOf(name), "unknown", name);
	}
});
