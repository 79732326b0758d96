// Tests which readers are too slow, as a table with the clock of the test, and which one is closed
// if all readers together leave too much unread.

import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { UnreadBytes } from "../../../../shared/http/unreadBytes.ts";
import { ManualClock } from "../../../support/manualClock.ts";

/** At its time, so many bytes are written, or read if the number is below 0. */
type Step = readonly [second: number, bytes: number];

/** For limits of 1,000 bytes and 10 s: whether it was too slow at a write, or is at last. */
type Row = readonly [title: string, steps: readonly Step[], second: number, isBehind: boolean];

const LATER = written([0, 1_500], [5, 2_500], [9, -1_500]);

const ROWS: readonly Row[] = [
	["nothing was written", [], 60, false],
	["much has been unread for a short time", [[0, 4_000]], 9.9, false],
	["much has been unread for long", [[0, 4_000]], 10, true],
	["little has been unread for long", [[0, 1_000]], 60, false],
	["far too much is unread", [[0, 4_001]], 0, true],
	["all was read", written([0, 4_000], [9, -4_000]), 60, false],
	["much comes after all was read", written([0, 500], [50, -500], [60, 4_000]), 60, false],
	["much comes while a little is not read", written([0, 500], [60, 3_500]), 60, true],
	["a reader never catches up, but each byte is soon read", every(1, 60, 2_000), 60, false],
	["each byte is read after eleven seconds", every(11, 60, 300), 60, true],
	["a reader has stopped", [...every(1, 30, 2_000), [35, 1_500]], 40, true],
	["a reader reads a little", written([0, 4_000], [5, -1_000], [9, -1_000]), 10, true],
	["what was unread first was read since", LATER, 15, false],
	["what was left then is unread still", LATER, 19, true],
];

function written(...steps: readonly Step[]): readonly Step[] {
	return steps;
}

/** Each second until `end`, `bytes` are written, and read `lag` seconds later. */
function every(lag: number, end: number, bytes: number): readonly Step[] {
	const steps: Step[] = [];
	for (let second = 0; second <= end; second++) {
		if (second >= lag) steps.push([second, -bytes]);
		steps.push([second, bytes]);
	}
	return steps;
}

describe("whether a reader is too slow", () => {
	for (const [title, steps, second, isBehind] of ROWS) {
		it(`${isBehind ? "yes" : "no"}: ${title}`, async () => {
			const clock = new ManualClock();
			const unread = new UnreadBytes({ clock }, { maxBytesEach: 1_000, maxWaitMs: 10_000 });
			const reader = unread.reader("192.0.2.1", { close() {}, cut() {} });
			let wasBehind = false;
			for (const [at, bytes] of steps) {
				await clock.advance(at * 1_000 - clock.monotonic());
				wasBehind ||= bytes > 0 && reader.isBehind;
				if (bytes > 0) reader.take(bytes);
				else reader.release(-bytes);
			}
			await clock.advance(second * 1_000 - clock.monotonic());
			assert.equal(wasBehind || reader.isBehind, isBehind);
		});
	}
});

test("above the total of unread bytes, the largest reader of the client with the most is closed, then disconnected", () => {
	const unread = new UnreadBytes({ clock: new ManualClock() }, { maxBytes: 1_000, maxBytesEach: 1_000 });
	const ended: string[] = [];
	const reader = (name: string, address: string) =>
		unread.reader(address, {
			close: () => ended.push(`close ${name}`),
			cut: () => ended.push(`cut ${name}`),
		});
	const honest = reader("honest", "192.0.2.1");
	const many = [1, 2, 3].map((i) => reader(`${i}`, `2001:db8:0:${i}::1`));
	// Sent bytes are released, and only once.
	const left = honest.write(500);
	left();
	left();
	honest.write(400);
	for (const [i, one] of many.entries()) one.write(190 + i);
	assert.deepEqual(ended, []);
	// The /56 is one client and has the most, though each of its readers has less.
	honest.write(100);
	assert.deepEqual(ended, ["close 3"]);
	honest.write(1);
	assert.deepEqual(ended, ["close 3", "cut 3"]);
	assert.equal(unread.bytes, 882);
	honest.write(100);
	assert.equal(ended.length, 2);
});
