// The words for problems: alerts have the same ones, and every reason of /readyz has advice.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { PROBLEMS, type ProblemWords, problemElsewhere, problemsOf } from "../../../shared/problems.ts";
import { ROOT } from "../../support/documents.ts";

interface Alerts {
	readonly groups: readonly {
		readonly rules: readonly { readonly alert: string; readonly annotations: { readonly summary: string } }[];
	}[];
}

const ROWS: readonly ProblemWords[] = Object.values(PROBLEMS);

test("an alert has the words of its problem", () => {
	const { groups } = parse(readFileSync(join(ROOT, "docs/monitoring/alerts.yml"), "utf8")) as Alerts;
	const rules = groups.flatMap((group) => group.rules);
	for (const { alert, text } of ROWS) {
		if (alert === undefined) continue;
		const summary = rules.find((rule) => rule.alert === alert)?.annotations.summary ?? "";
		// The alert does not know why the breaker is open.
		if (text === PROBLEMS.relayForced.text) continue;
		const words = summary.replace(/ (of|for|from) \{\{ \$labels\.instance \}\}/, "");
		assert.ok(words.startsWith(text), `${alert}: ${summary}`);
	}
});

test("lists failed checks first, and gives the advice of the row that a text begins with", () => {
	const { clock, noCore, storeFailed } = PROBLEMS;
	const found = problemsOf(
		[
			["node", { ok: true }],
			["head", { ok: true, note: `${clock.text} 9 s behind the chain's` }],
			["store", { ok: false, reason: `${noCore.text}: there is none` }],
			["delivery", { ok: false, reason: "something else" }],
			["instance", { ok: true, note: "a name" }],
		],
		["instance"],
	);
	assert.deepEqual(found, [
		{ text: `${noCore.text}: there is none`, todo: noCore.todo, isSerious: true },
		{ text: "something else", todo: "", isSerious: true },
		{ text: `${clock.text} 9 s behind the chain's`, todo: clock.todo, isSerious: false },
	]);
	assert.notEqual(storeFailed.todo, "");
});

test("a problem of another process has its name, and is not serious here", () => {
	const { text, todo } = PROBLEMS.headStale;
	assert.deepEqual(problemElsewhere(`${text}: 70 s`, "relay-2:8080"), {
		text: `${text}: 70 s (relay-2:8080)`,
		todo,
		isSerious: false,
	});
});

test("no text is the beginning of another one, whose advice would be hidden", () => {
	for (const one of ROWS) {
		const others = ROWS.filter((other) => other !== one && other.text.startsWith(one.text));
		assert.deepEqual(others, []);
	}
});
