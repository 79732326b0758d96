// Work that nobody awaits: it is counted, joined, and never lost when it fails.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Background } from "../../../shared/background.ts";
import { type Logger, silentLogger } from "../../../shared/log.ts";

function fixture() {
	const logged: string[] = [];
	const faults: string[] = [];
	const log: Logger = {
		...silentLogger,
		error: (message, fields) => logged.push(`${message} ${JSON.stringify(fields)}`),
	};
	const background = new Background({ onFault: (task) => faults.push(task) }, { log });
	return { background, logged, faults };
}

test("a task begins at once, is counted while it runs, and is joined", async () => {
	const { background } = fixture();
	let finish = () => {};
	let begun = false;
	background.run("task", () => {
		begun = true;
		return new Promise((resolve) => {
			finish = resolve;
		});
	});
	assert.deepEqual([begun, background.size], [true, 1]);
	let joined = false;
	const joining = background.join().then(() => {
		joined = true;
	});
	await Promise.resolve();
	assert.equal(joined, false);
	finish();
	await joining;
	assert.deepEqual([joined, background.size], [true, 0]);
});

test("joining an idle one returns", async () => {
	await fixture().background.join();
});

test("what a task starts is joined too", async () => {
	const { background } = fixture();
	const ran: string[] = [];
	background.run("first", async () => {
		await Promise.resolve();
		background.run("second", async () => {
			await Promise.resolve();
			ran.push("second");
		});
		ran.push("first");
	});
	await background.join();
	assert.deepEqual(ran, ["first", "second"]);
});

for (const [how, task] of [
	["rejects", () => Promise.reject(new TypeError("0xsecret"))],
	[
		"throws before it gives a promise",
		(): Promise<void> => {
			throw new TypeError("0xsecret");
		},
	],
] as const) {
	test(`a task that ${how} is logged without its message, counted, and stops nobody`, async () => {
		const { background, logged, faults } = fixture();
		background.run("broken", task);
		background.run("well", () => Promise.resolve());
		await background.join();
		assert.deepEqual([faults, background.size], [["broken"], 0]);
		assert.equal(logged.length, 1);
		assert.match(logged[0] ?? "", /^background task failed .*"task":"broken","fault":\{"name":"TypeError"/);
		assert.ok(!logged.join().includes("secret"));
	});
}
