// The teller of the demo: a claim that does not hold ends it, with its line told.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Story, StoryBroken } from "../../../devnet/demo/story.ts";

function telling(): { readonly story: Story; readonly lines: string[] } {
	const lines: string[] = [];
	return { story: new Story((line) => lines.push(line)), lines };
}

test("claims that hold are told and counted", () => {
	const { story, lines } = telling();
	story.chapter("One");
	story.tell("something");
	story.claim("water is wet", true);
	story.same("it has", 5n * 10n ** 17n, 5n * 10n ** 17n);
	assert.deepEqual(lines, [
		"\nOne",
		"       something",
		"  ok   water is wet",
		"  ok   it has: 500000000000000000 wei (0.5 ETH)",
	]);
	assert.equal(story.claims, 2);
});

test("one that does not is told with what was found, and thrown", () => {
	const { story, lines } = telling();
	assert.throws(() => story.claim("water is dry", false, "wet"), StoryBroken);
	assert.throws(() => story.same("it has", 1n, 2n), StoryBroken);
	story.broken(new Error("no time left"));
	assert.deepEqual(lines, [
		"  FAIL water is dry",
		"       found: wet",
		"  FAIL it has: 2 wei (0.000000000000000002 ETH)",
		"       found: 1 wei (0.000000000000000001 ETH)",
		"  FAIL no time left",
	]);
	assert.equal(story.claims, 0);
});
