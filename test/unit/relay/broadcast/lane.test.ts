// One builder's lane with a wire held by hand: order, bounds, staleness, cancels, and its end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lane, type LaneOptions } from "../../../../relay/broadcast/lane.ts";
import type { DeliveryAnswer } from "../../../../relay/domain/events.ts";
import { ManualClock } from "../../../support/manualClock.ts";

/** A lane whose sends wait until they are answered by name. */
function scene(options: LaneOptions = { capacity: 10, concurrency: 1 }) {
	const clock = new ManualClock();
	const sent: string[] = [];
	const answers: [string, DeliveryAnswer, number][] = [];
	const open = new Map<string, (answer: DeliveryAnswer) => void>();
	let made = 0;
	const lane = new Lane(options, {
		clock,
		send: (body, signature) => {
			assert.equal(signature, `signed ${body}`);
			sent.push(String(body));
			return new Promise((resolve) => open.set(String(body), resolve));
		},
	});
	const push = (name: string, block = 101, urgent = false): void =>
		lane.push({
			block,
			urgent,
			make: () => {
				made += 1;
				return { body: Buffer.from(name), signature: `signed ${name}` };
			},
			answered: (answer, ms) => answers.push([name, answer, ms]),
		});
	const answer = async (name: string, how: DeliveryAnswer = "accepted"): Promise<void> => {
		const resolve = open.get(name);
		assert.ok(resolve !== undefined, `${name} was not sent`);
		open.delete(name);
		resolve(how);
		await clock.advance(0);
	};
	return { lane, push, answer, sent, answers, clock, made: () => made };
}

test("items go out in their order, and are answered with the time it took", async () => {
	const { push, answer, sent, answers, clock, lane } = scene();
	for (const name of ["a", "b", "c"]) push(name);
	assert.deepEqual(sent, ["a"]);
	await clock.advance(12);
	await answer("a");
	await clock.advance(30);
	await answer("b", "rejected");
	await answer("c", "timeout");
	assert.deepEqual(sent, ["a", "b", "c"]);
	assert.deepEqual(answers, [
		["a", "accepted", 12],
		["b", "rejected", 30],
		["c", "timeout", 0],
	]);
	assert.equal(lane.depth, 0);
});

test("no more are under way than may be, and a body is made when its turn comes", async () => {
	const { push, answer, sent, made, lane } = scene({ capacity: 10, concurrency: 3 });
	for (const name of ["a", "b", "c", "d", "e"]) push(name);
	assert.deepEqual(sent, ["a", "b", "c"]);
	assert.deepEqual([made(), lane.depth], [3, 5]);
	await answer("b");
	assert.deepEqual(sent, ["a", "b", "c", "d"]);
	assert.deepEqual([made(), lane.depth], [4, 4]);
});

test("one more than fits is answered overflow at once, and is never sent", async () => {
	const { push, answer, sent, answers } = scene({ capacity: 2, concurrency: 1 });
	for (const name of ["a", "b", "c", "d"]) push(name);
	assert.deepEqual(answers, [["d", "overflow", 0]]);
	for (const name of ["a", "b", "c"]) await answer(name);
	assert.deepEqual(sent, ["a", "b", "c"]);
	push("e");
	assert.deepEqual(sent, ["a", "b", "c", "e"]);
});

test("cancels go first, and have a bound of their own", async () => {
	const { push, answer, sent, answers } = scene({ capacity: 2, concurrency: 1 });
	for (const name of ["a", "b", "c"]) push(name);
	for (const name of ["x", "y", "z"]) push(name, 101, true);
	assert.deepEqual(answers, [["z", "overflow", 0]]);
	for (const name of ["a", "x", "y", "b", "c"]) await answer(name);
	assert.deepEqual(sent, ["a", "x", "y", "b", "c"]);
});

test("what waits for the head or a block before it is not sent any more; cancels are", async () => {
	const { push, answer, sent, lane } = scene();
	push("out", 101);
	push("stale", 101);
	push("older", 100);
	push("next", 102);
	push("cancel", 101, true);
	lane.setHead(101);
	for (const name of ["out", "cancel", "next"]) await answer(name);
	assert.deepEqual(sent, ["out", "cancel", "next"]);
	assert.equal(lane.depth, 0);
});

test("what is stale takes nobody's place", () => {
	const { push, answers, lane } = scene({ capacity: 2, concurrency: 1 });
	push("slow", 101);
	push("b", 101);
	push("c", 101);
	lane.setHead(101);
	push("d", 102);
	push("e", 102);
	assert.deepEqual(
		answers.filter(([name]) => name === "d" || name === "e"),
		[],
	);
	assert.equal(lane.depth, 3);
});

test("a head that goes back makes fresh again what comes after it", async () => {
	const { push, answer, sent, lane } = scene();
	lane.setHead(105);
	push("stale", 105);
	assert.deepEqual([sent, lane.depth], [[], 0]);
	lane.setHead(103);
	push("fresh", 104);
	assert.deepEqual(sent, ["fresh"]);
	await answer("fresh");
	assert.equal(lane.depth, 0);
});

test("thousands in a row keep their order", async () => {
	const { push, answer, sent, answers } = scene({ capacity: 5_000, concurrency: 1 });
	const names = Array.from({ length: 3_000 }, (_, i) => `n${i}`);
	for (const name of names) push(name);
	for (const name of names) await answer(name);
	assert.deepEqual(sent, names);
	assert.equal(answers.length, names.length);
});

test("closing answers what waits, waits for what is under way, and takes no more", async () => {
	const { push, answer, sent, answers, lane, clock } = scene();
	for (const name of ["a", "b", "c"]) push(name);
	push("cancel", 101, true);
	let closed = false;
	const closing = lane.close().then(() => {
		closed = true;
	});
	assert.deepEqual(
		answers.map(([name, how]) => `${name} ${how}`),
		["cancel overflow", "b overflow", "c overflow"],
	);
	push("late");
	assert.deepEqual(answers.at(-1), ["late", "overflow", 0]);
	await clock.advance(0);
	assert.equal(closed, false);
	await answer("a");
	await closing;
	assert.deepEqual(sent, ["a"]);
	assert.equal(lane.depth, 0);
	await lane.close();
});

test("settled resolves when nothing waits and nothing is under way", async () => {
	const { push, answer, lane, clock } = scene();
	await lane.settled();
	push("a");
	push("b");
	let settled = false;
	const waiting = lane.settled().then(() => {
		settled = true;
	});
	await answer("a");
	await clock.advance(0);
	assert.equal(settled, false);
	await answer("b");
	await waiting;
	assert.equal(settled, true);
});
