// The page of a transaction runs in browsers and imports nothing of ours: the names of stages and events in it are those of the code.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { TRANSITIONS } from "../../../../relay/domain/record.ts";
import { LIVE_STAGES, STAGES } from "../../../../shared/ethereum/statusRecord.ts";

const PAGE = readFileSync(new URL("../../../../shared/pages/transaction.js", import.meta.url), "utf8");

/** The texts of a list of the page. */
function list(name: string): readonly string[] {
	const [, inner = ""] = new RegExp(`^const ${name} = \\[(.*)\\];$`, "m").exec(PAGE) ?? [];
	return [...inner.matchAll(/"(\w+)"/g)].map(([, text = ""]) => text);
}

test("it takes for live what is live, and boost's own", () => {
	assert.deepEqual(list("LIVE"), [...LIVE_STAGES, "HELD"]);
});

test("good and bad are stages", () => {
	const named = [...list("GOOD"), ...list("BAD")];
	assert.ok(named.length > 0);
	assert.deepEqual(
		named.filter((stage) => !STAGES.some((one) => one === stage)),
		[],
	);
});

test("its events are events", () => {
	const [, texts = ""] = /^const EVENT_TEXTS = \{\n([\s\S]*?)^\};/m.exec(PAGE) ?? [];
	const names = [...texts.matchAll(/^\t(\w+)(?::|\()/gm)].map(([, name = ""]) => name);
	assert.ok(names.length > 10);
	assert.deepEqual(
		names.filter((name) => !(name in TRANSITIONS) && name !== "delivered"),
		[],
	);
});
