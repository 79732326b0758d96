// Log lines: where an error was thrown, and nothing of its message or other secrets.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger, type LOG_LEVELS, safeError } from "../../../shared/log.ts";

/** Looks like a path with a line in our own sources, and like a key. */
const CANARY = "c0ffee5ecretc0ffee5ecretc0ffee5ecretc0ffee5ecretc0ffee5ecretc0ff";

function capture(level: (typeof LOG_LEVELS)[number] = "trace") {
	const lines: Record<string, unknown>[] = [];
	const log = createLogger(level, "relay", { write: (line: string) => lines.push(JSON.parse(line)) });
	return { log, lines };
}

class Coded extends Error {
	readonly code: unknown;
	constructor(message: string, code: unknown) {
		super(message);
		this.name = "Coded";
		this.code = code;
	}
}

test("an error is logged by name, code and where it was thrown", () => {
	const { name, code, at } = safeError(new Coded("x", "ECONNREFUSED"));
	assert.deepEqual([name, code], ["Coded", "ECONNREFUSED"]);
	assert.match(at ?? "", /\btest\/unit\/shared\/log\.test\.ts:\d+$/);
});

const LEAKY: readonly unknown[] = [
	...["", "a\nb ", "https://node.example/relay/", "POST shared/", "x\n    at f (/app/relay/"].map(
		(before) => new Error(`${before}${CANARY}.ts:1:2`),
	),
	Object.assign(new Error("x"), { stack: `Error: x\n    at relay/${CANARY}` }),
	...[`${CANARY}${CANARY}`, `https://${CANARY}`, { [CANARY]: CANARY }].map((code) => new Coded("x", code)),
	Object.assign(new Error("x"), { name: `Error: ${CANARY}` }),
	new Error("x", { cause: new Error(CANARY) }),
	new AggregateError([new Error(CANARY)], CANARY),
	{ message: CANARY, name: CANARY, code: CANARY },
	CANARY,
];

test("no message or other secret of an error is logged", () => {
	for (const [row, thrown] of LEAKY.entries()) {
		const { log, lines } = capture();
		log.error("fault", { fault: safeError(thrown) });
		const text = JSON.stringify(lines);
		assert.ok(!text.includes("c0ffee"), `row ${row}: ${text}`);
		assert.match(text, /"fault":\{"name":"/);
	}
});
