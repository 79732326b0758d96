// Work over turns of the event loop: how much of it one turn has, whose is next, and what becomes of what is of no use.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLoopTurns } from "../../../../shared/shares/scheduler.ts";

/** Pieces of work take as long as they are told, and the time between them stands still. */
function fixture() {
	let ms = 0;
	const done: string[] = [];
	const turns = new EventLoopTurns({ clock: { monotonic: () => ms } });
	const run = (name: string, takesMs: number) =>
		turns.run(name.slice(0, 1), () => {
			done.push(name);
			ms += takesMs;
		});
	return { run, done };
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("in a calm turn work is done at once", () => {
	const { run, done } = fixture();
	for (const name of ["a1", "a2", "b1"]) run(name, 3);
	assert.deepEqual(done, ["a1", "a2", "b1"]);
});

test("what is more than a turn's waits for the next one, as much as fits into each; clients take turns", async () => {
	const { run, done } = fixture();
	for (let i = 1; i <= 6; i++) run(`a${i}`, 6);
	run("b1", 6);
	assert.deepEqual(done, ["a1", "a2"]);
	await nextTurn();
	assert.deepEqual(done, ["a1", "a2", "a3", "b1"]);
	await nextTurn();
	await nextTurn();
	assert.deepEqual(done.slice(4), ["a4", "a5", "a6"]);
});

test("a flood of small pieces behind a large one is over in a turn", async () => {
	const { run, done } = fixture();
	run("a0", 50);
	for (let i = 0; i < 5_000; i++) run("b", 0);
	assert.equal(done.length, 1);
	await nextTurn();
	assert.equal(done.length, 5_001);
});

test("one that waits may be had at once, or not at all", async () => {
	const { run, done } = fixture();
	run("a1", 20);
	const [hurried, dropped] = [run("a2", 1), run("a3", 1)];
	run("a4", 1);
	hurried.hurry();
	dropped.drop();
	hurried.hurry();
	await nextTurn();
	assert.deepEqual(done, ["a1", "a2", "a4"]);
});
