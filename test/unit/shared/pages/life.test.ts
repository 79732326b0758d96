// The page of a transaction runs in browsers and imports nothing of ours: the names of stages and
// events in it are those of the code.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Presence } from "../../../../boost-proxy/domain/deliveryState.ts";
import { ENDINGS } from "../../../../boost-proxy/domain/row.ts";
import { TRANSITIONS } from "../../../../relay/domain/record.ts";
import { LIVE_STAGES } from "../../../../shared/ethereum/statusRecord.ts";

const textOf = (name: string): string =>
	readFileSync(new URL(`../../../../shared/pages/${name}`, import.meta.url), "utf8");
const PATH = textOf("path.js");
const LIFE = textOf("life.js");

/** The texts of a list of the page. */
function list(name: string): readonly string[] {
	const [, inner = ""] = new RegExp(`^const ${name} = \\[(.*)\\];$`, "m").exec(PATH) ?? [];
	return [...inner.matchAll(/"(\w+)"/g)].map(([, text = ""]) => text);
}

test("it takes for live what is live, and boost's own", () => {
	assert.deepEqual(list("LIVE"), [...LIVE_STAGES, "HELD"]);
});

test("its events are events", () => {
	const [, texts = ""] = /^const EVENT_TEXTS = \{\n([\s\S]*?)^\};/m.exec(LIFE) ?? [];
	const names = [...texts.matchAll(/^\t(\w+)(?::|\()/gm)].map(([, name = ""]) => name);
	assert.ok(names.length > 10);
	assert.deepEqual(
		names.filter((name) => !(name in TRANSITIONS) && name !== "delivered"),
		[],
	);
});

/** All of them, as the compiler holds. */
const PRESENCES = Object.keys({
	...{ absent: 0, given: 0, unanswered: 0, has: 0, lost: 0, rejected: 0, abandoned: 0 },
} satisfies Record<Presence, number>);

/** The keys of a table of the page. */
function keys(name: string): readonly string[] {
	const [, texts = ""] = new RegExp(`^const ${name} = \\{\\n([\\s\\S]*?)^\\};`, "m").exec(LIFE) ?? [];
	return [...texts.matchAll(/^\t(\w+):/gm)].map(([, key = ""]) => key);
}

test("it has words for all that boost's journal says of the fallback, and of an end", () => {
	const words = [...keys("FALLBACK_TEXTS"), "absent"].sort();
	assert.deepEqual(words, [...PRESENCES].sort());
	assert.deepEqual([...keys("ENDINGS")].sort(), [...ENDINGS].sort());
	assert.deepEqual(
		list("HOLDERS").filter((one) => !PRESENCES.includes(one)),
		[],
	);
});
