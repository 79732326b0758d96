// Boost's table of methods against the relay's: reads have the same weight, and nothing else may reach a third party.

import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOf, labelOf, READS, RELAY_ONLY, weightOf } from "../../../../boost-proxy/ingress/methods.ts";
import { PASSED_METHODS } from "../../../../relay/chain/passthrough.ts";
import { METHODS } from "../../../../relay/ingress/methods/index.ts";

test("the reads are the relay's, with its weights", () => {
	const relays = [...PASSED_METHODS].map(([name, { weight }]) => [name, weight]);
	assert.deepEqual([...READS], relays);
});

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
