// The teller of the demo: a claim that does not hold ends it, with its line told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Scenario, ScenarioBroken } from "../../../devnet/demo/scenario.ts";

function telling(): { readonly scenario: Scenario; readonly lines: string[] } {
	const lines: string[] = [];
	return { scenario: new Scenario((line) => lines.push(line)), lines };
}

test("claims that hold are told and counted", () => {
	const { scenario, lines } = telling();
	scenario.chapter("One");
	scenario.tell("something");
	scenario.claim("water is wet", true);
	scenario.same("it has", 5n * 10n ** 17n, 5n * 10n ** 17n);
	assert.deepEqual(lines, [
		"\nOne",
		"       something",
		"  ok   water is wet",
		"  ok   it has: 500000000000000000 wei (0.5 ETH)",
	]);
	assert.equal(scenario.claims, 2);
});

test("one that does not is told with what was found, and thrown", () => {
	const { scenario, lines } = telling();
	assert.throws(() => scenario.claim("water is dry", false, "wet"), ScenarioBroken);
	assert.throws(() => scenario.same("it has", 1n, 2n), ScenarioBroken);
	scenario.broken(new Error("no time left"));
	assert.deepEqual(lines, [
		"  FAIL water is dry",
		"       found: wet",
		"  FAIL it has: 2 wei (0.000000000000000002 ETH)",
		"       found: 1 wei (0.000000000000000001 ETH)",
		"  FAIL no time left",
	]);
	assert.equal(scenario.claims, 0);
});
