// Loops over many items: how long they block the event loop together.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inSlices, nextTurn, SLICE_MS, systemClock } from "../../../shared/clock.ts";

/** The time of eight items, after which a loop reads the clock, in ms. */
const READING_MS = 2;

/** Runs loops of `count` items each. */
type Run = (loop: (count: number) => Promise<unknown>) => Promise<unknown>;

const RUNS: Readonly<Record<string, Run>> = {
	async "ten loops, one after another"(loop) {
		for (let i = 0; i < 10; i += 1) await loop(8);
	},
	"three loops side by side": (loop) => Promise.all([loop(80), loop(80), loop(80)]),
};

for (const [what, run] of Object.entries(RUNS)) {
	test(`${what} share the time of each turn`, async () => {
		let ms = 0;
		const visit = () => {
			ms += READING_MS / 8;
		};
		const clock = { ...systemClock, monotonic: () => ms };
		let isOver = false;
		const running = run((count) => inSlices(Array(count).keys(), clock, visit)).then(() => {
			isOver = true;
		});
		const turns = [ms];
		for (let before = ms; !isOver; before = ms) {
			await nextTurn();
			turns.push(ms - before);
		}
		await running;
		// Loops that begin before a turn's immediates continue in these.
		const most = 2 * SLICE_MS + READING_MS;
		assert.ok(Math.max(...turns) <= most, `turns of ${turns.join(", ")} ms`);
	});
}
