// Tests one builder's lane with scripted answers: order, turns, shares, staleness, cancels, end.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lane, type LaneItem, type LaneOptions } from "../../../../relay/broadcast/lane.ts";
import type { DeliveryAnswer } from "../../../../relay/domain/events.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";

/** A lane whose sends wait until they are answered by name. A name begins with its key and client: `a1` is of `a`. */
function fixture(options: LaneOptions = { capacity: 100, concurrency: 1 }) {
	const clock = new ManualClock();
	const sent: string[] = [];
	const answers: [string, DeliveryAnswer, number][] = [];
	const open = new Map<string, (answer: DeliveryAnswer) => void>();
	const mayRepeat = new Map<string, () => boolean>();
	const held = { is: true };
	let made = 0;
	const lane = new Lane(options, {
		clock,
		maySend: () => held.is,
		send: (body, signature, rights) => {
			mayRepeat.set(String(body), rights.mayRepeat);
			assert.equal(signature, `signed ${body}`);
			sent.push(String(body));
			return new Promise((resolve) => open.set(String(body), resolve));
		},
	});
	const push = (name: string, block = 101, urgent = false, more: Partial<LaneItem> = {}): void =>
		lane.push({
			...{ key: name.slice(0, 1), subject: name, client: name.slice(0, 1), isPlain: false, block, urgent },
			make: () => {
				made += 1;
				return { body: Buffer.from(name), signature: `signed ${name}` };
			},
			answered: (answer, ms) => answers.push([name, answer, ms]),
			...more,
		});
	/** A searcher's plain bundle, which is its own key. */
	const bundle = (name: string, block = 101): void =>
		push(name, block, false, { key: `bundle ${name}`, isPlain: true });
	const answer = async (name: string, how: DeliveryAnswer = "accepted"): Promise<void> => {
		const resolve = open.get(name);
		assert.ok(resolve !== undefined, `${name} was not sent`);
		open.delete(name);
		resolve(how);
		await clock.advance(0);
	};
	/** Answers what is in flight, one by one, until nothing is. */
	const drain = async (): Promise<readonly string[]> => {
		for (let name = next(); name !== undefined; name = next()) await answer(name);
		return sent;
	};
	const next = () => open.keys().next().value;
	const unsent = () => answers.filter(([, how]) => how === "unsent").map(([name]) => name);
	const repeats = (name: string) => mayRepeat.get(name)?.();
	return { lane, push, bundle, answer, drain, sent, answers, unsent, repeats, clock, held, made: () => made };
}

test("while another relay may have the store nothing is sent or repeated but cancels; what waits for a later turn goes", async () => {
	const { push, answer, sent, unsent, repeats, held, clock } = fixture();
	push("a1");
	push("b1");
	push("a2", 101, true);
	assert.equal(repeats("a1"), true);
	held.is = false;
	assert.equal(repeats("a1"), false);
	await answer("a1");
	assert.deepEqual([sent, unsent()], [["a1", "a2"], []]);
	assert.equal(repeats("a2"), true);
	await answer("a2");
	assert.deepEqual([sent, unsent()], [["a1", "a2"], ["b1"]]);
	push("c1");
	assert.deepEqual(unsent(), ["b1", "c1"]);
	await clock.advance(0);
	held.is = true;
	push("d1");
	assert.deepEqual(sent, ["a1", "a2", "d1"]);
	await answer("d1");
});

test("items go out in their order, and are answered with the time it took", async () => {
	const { push, answer, sent, answers, clock, lane } = fixture();
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
	const { push, answer, sent, made, lane } = fixture({ capacity: 100, concurrency: 3 });
	for (const name of ["a", "b", "c", "d", "e"]) push(name);
	assert.deepEqual(sent, ["a", "b", "c"]);
	assert.deepEqual([made(), lane.depth], [3, 5]);
	await answer("b");
	assert.deepEqual(sent, ["a", "b", "c", "d"]);
	assert.deepEqual([made(), lane.depth], [4, 4]);
});

test("of one client's what was sent least recently goes first, so that none is left out for ever", async () => {
	const { lane, push, answer, drain, sent } = fixture();
	const one = (name: string, block: number) => push(name, block, false, { client: "one" });
	for (const name of ["a1", "b1", "c1"]) one(name, 101);
	await answer("a1");
	await answer("b1");
	// "c1" is under way; of the next block only two are sent before the one after it.
	lane.setHead(101);
	for (const name of ["a1", "b1", "c1", "d1"]) one(name, 102);
	await answer("c1");
	await answer("d1");
	lane.setHead(102);
	for (const name of ["a1", "b1", "c1", "d1"]) one(name, 103);
	push("e1", 103);
	sent.length = 0;
	assert.deepEqual(await drain(), ["e1", "b1", "c1", "d1", "a1"]);
});

test("a sender's items go one behind another, whatever they are answered; senders take turns", async () => {
	const { push, answer, sent, lane } = fixture({ capacity: 100, concurrency: 2 });
	for (const name of ["a1", "a2", "a3", "b1", "b2", "c1"]) push(name);
	assert.deepEqual(sent, ["a1", "b1"]);
	await answer("a1", "failed");
	assert.deepEqual(sent, ["a1", "b1", "c1"]);
	await answer("b1", "timeout");
	await answer("c1");
	assert.deepEqual(sent, ["a1", "b1", "c1", "a2", "b2"]);
	for (const name of ["a2", "b2", "a3"]) await answer(name);
	assert.deepEqual([sent.at(-1), lane.depth], ["a3", 0]);
	push("a4");
	assert.equal(sent.at(-1), "a4");
});

test("one more than fits is answered unsent at once, and is never sent", async () => {
	const { push, answer, sent, answers } = fixture({ capacity: 2, concurrency: 1 });
	for (const name of ["a", "b", "c", "d"]) push(name);
	assert.deepEqual(answers, [["d", "unsent", 0]]);
	for (const name of ["a", "b", "c"]) await answer(name);
	assert.deepEqual(sent, ["a", "b", "c"]);
	push("e");
	assert.deepEqual(sent, ["a", "b", "c", "e"]);
});

test("cancels go before all that waits, and are the last to find no place", async () => {
	const { push, answer, sent, unsent } = fixture({ capacity: 2, concurrency: 1 });
	for (const name of ["a", "b", "c"]) push(name);
	for (const name of ["x", "y", "z"]) push(name, 101, true);
	assert.deepEqual(unsent(), ["z"]);
	for (const name of ["a", "x", "y", "b", "c"]) await answer(name);
	assert.deepEqual(sent, ["a", "x", "y", "b", "c"]);
});

test("a cancel goes behind what is under way of its sender, and before what waits", async () => {
	const { push, answer, sent } = fixture({ capacity: 100, concurrency: 4 });
	for (const name of ["a1", "a2", "b1", "c1", "d1", "e1"]) push(name);
	push("aX", 101, true);
	push("eX", 101, true);
	assert.deepEqual(sent, ["a1", "b1", "c1", "d1"]);
	await answer("b1");
	await answer("a1");
	assert.deepEqual(sent, ["a1", "b1", "c1", "d1", "eX", "aX"]);
	for (const name of ["aX", "eX"]) await answer(name);
	assert.deepEqual(sent.slice(-2), ["a2", "e1"]);
});

test("what is withdrawn is not sent, is answered unsent, and makes room", async () => {
	const { push, answer, sent, unsent, lane } = fixture({ capacity: 16, concurrency: 1 });
	for (const name of ["a1", "a2", "a3", "b1"]) push(name);
	push("a2", 101, true);
	lane.withdraw("a", "a2");
	lane.withdraw("a", "nothing");
	lane.withdraw("z", "z1");
	// Not what is under way, and not the cancel.
	lane.withdraw("a", "a1");
	assert.deepEqual([unsent(), lane.depth], [["a2"], 4]);
	for (const name of ["a1", "a2", "b1", "a3"]) await answer(name);
	assert.deepEqual(sent, ["a1", "a2", "b1", "a3"]);
	assert.equal(lane.depth, 0);
});

test("what was withdrawn can be sent again", async () => {
	const { push, answer, sent, lane } = fixture();
	push("b1");
	push("a1");
	lane.withdraw("a", "a1");
	push("a1", 102);
	await answer("b1");
	await answer("a1");
	assert.deepEqual([sent, lane.depth], [["b1", "a1"], 0]);
});

test("what waits for the head or a block before it is answered unsent; cancels are sent", async () => {
	const { push, answer, sent, unsent, lane } = fixture();
	push("out", 101);
	push("stale", 101);
	push("late", 100);
	push("next", 102);
	push("cancel", 101, true);
	lane.setHead(101);
	for (const name of ["out", "cancel", "next"]) await answer(name);
	assert.deepEqual(sent, ["out", "cancel", "next"]);
	assert.deepEqual([unsent().sort(), lane.depth], [["late", "stale"], 0]);
});

test("what is stale takes nobody's place", () => {
	const { push, unsent, lane } = fixture({ capacity: 2, concurrency: 1 });
	for (const name of ["a", "b", "c"]) push(name, 101);
	lane.setHead(101);
	for (const name of ["d", "e"]) push(name, 102);
	assert.deepEqual(
		unsent().filter((name) => name === "d" || name === "e"),
		[],
	);
	assert.equal(lane.depth, 3);
});

test("a head that goes back makes fresh again what comes after it", async () => {
	const { push, answer, sent, lane, clock } = fixture();
	lane.setHead(105);
	push("stale", 105);
	await clock.advance(0);
	assert.deepEqual([sent, lane.depth], [[], 0]);
	lane.setHead(103);
	push("fresh", 104);
	assert.deepEqual(sent, ["fresh"]);
	await answer("fresh");
	assert.equal(lane.depth, 0);
});

test("thousands of senders, and thousands of one, keep their order", async () => {
	const { push, answer, sent, answers } = fixture({ capacity: 16_000, concurrency: 1 });
	const names = Array.from(
		{ length: 2_000 },
		(_, i) => `${i % 2 === 0 ? "a" : String.fromCodePoint(0x4e00 + i)}${i}`,
	);
	for (const name of names) push(name);
	for (let i = 0; i < names.length; i += 1) await answer(sent.at(-1) ?? "");
	assert.equal(answers.length, names.length);
	const ofA = (list: readonly string[]) => list.filter((name) => name.startsWith("a"));
	assert.deepEqual(ofA(sent), ofA(names));
	assert.deepEqual([...sent].sort(), [...names].sort());
});

test("closing answers what waits, sends the cancels, waits for what is under way, and takes no more", async () => {
	const { push, answer, sent, answers, unsent, lane, clock } = fixture();
	for (const name of ["a1", "a2", "b1"]) push(name);
	push("c1", 101, true);
	let closed = false;
	const closing = lane.close().then(() => {
		closed = true;
	});
	assert.deepEqual(unsent().sort(), ["a2", "b1"]);
	push("late");
	assert.deepEqual(answers.at(-1), ["late", "unsent", 0]);
	await clock.advance(0);
	assert.equal(closed, false);
	await answer("a1");
	assert.equal(closed, false);
	await answer("c1");
	await closing;
	assert.deepEqual([sent, lane.depth], [["a1", "c1"], 0]);
	await lane.close();
});

test("what is withdrawn while it is under way is not sent a second time; its cancel is", async () => {
	const { lane, push, answer, repeats } = fixture();
	push("a1");
	assert.equal(repeats("a1"), true);
	lane.withdraw("a", "a2");
	assert.equal(repeats("a1"), true);
	lane.withdraw("a", "a1");
	assert.equal(repeats("a1"), false);
	push("a1", 101, true);
	await answer("a1");
	lane.withdraw("a", "a1");
	assert.equal(repeats("a1"), true);
	await answer("a1");
});

test("a user's transaction among thousands of plain bundles is sent next, and so is its cancel", async () => {
	const { push, bundle, answer, sent, lane } = fixture({ capacity: 100_000, concurrency: 1 });
	bundle("first");
	for (let i = 0; i < 4_000; i += 1) bundle(`b${i}`);
	push("user", 101, false, { client: "b" });
	await answer("first");
	assert.equal(sent.at(-1), "user");
	push("user", 101, true, { client: "b" });
	await answer("user");
	assert.deepEqual(sent, ["first", "user", "user"]);
	await answer("user");
	assert.deepEqual([sent.at(-1), lane.depth], ["b0", 4_000]);
});

test("a builder that hangs on plain bundles has connections left for a user's transaction, which is sent at once", () => {
	const { push, bundle, sent } = fixture({ capacity: 100_000, concurrency: 8 });
	for (let i = 0; i < 1_000; i += 1) bundle(`${"abcdefghij"[i % 10]}${i}`);
	assert.equal(sent.length, 4);
	push("user");
	assert.equal(sent.at(-1), "user");
});

test("the cancel of a plain bundle goes behind users' transactions, and before its client's other bundles", async () => {
	const { push, bundle, answer, drain } = fixture();
	for (const name of ["a1", "a2", "b1", "a3"]) bundle(name);
	push("a1", 101, true, { key: "bundle a1", isPlain: true });
	for (const name of ["u1", "u2"]) push(name);
	await answer("a1");
	assert.deepEqual(await drain(), ["a1", "u1", "u2", "b1", "a1", "a2", "a3"]);
});

test("clients take turns, however many keys and items one of them has", async () => {
	const { push, drain } = fixture();
	for (let i = 0; i < 12; i += 1) push(`x${i}`, 101, false, { key: `key ${i}`, client: "crowd" });
	for (const name of ["a1", "a2", "b1"]) push(name);
	const sent = await drain();
	assert.deepEqual(sent.slice(0, 6), ["x0", "a1", "b1", "x1", "a2", "x2"]);
	assert.equal(sent.length, 15);
});

test("clients take turns with their plain bundles and their cancels too", async () => {
	const { push, bundle, drain } = fixture();
	push("running");
	for (const name of ["a1", "a2", "a3", "b1"]) bundle(name);
	for (const name of ["c1", "c2", "c3"]) push(name, 101, true, { key: name });
	push("d1", 101, true);
	assert.deepEqual(await drain(), ["running", "c1", "d1", "c2", "c3", "a1", "b1", "a2", "a3"]);
});

test("a client has an eighth of what may wait; others, its cancels and its other kind find room", async () => {
	const { push, bundle, drain, unsent, lane } = fixture({ capacity: 24, concurrency: 1 });
	push("running", 101, false, { client: "other" });
	for (let i = 1; i <= 4; i += 1) push(`a${i}`, 101, false, { key: `key ${i}` });
	assert.deepEqual(unsent(), ["a4"]);
	for (let i = 5; i <= 8; i += 1) bundle(`a${i}`);
	assert.deepEqual(unsent(), ["a4", "a8"]);
	for (let i = 1; i <= 4; i += 1) push(`a${i} cancel`, 101, true, { key: `key ${i}` });
	assert.deepEqual(unsent(), ["a4", "a8", "a4 cancel"]);
	push("b1");
	assert.deepEqual(lane.fullness, { all: 4 / 24, client: 1 });
	const sent = await drain();
	assert.deepEqual([sent.length, unsent().length], [11, 3]);
});

test("plain bundles of many clients take no user's room", () => {
	const { push, bundle, unsent } = fixture({ capacity: 8, concurrency: 1 });
	push("running");
	for (const client of "abcdefghij") bundle(`${client} bundle`);
	assert.deepEqual(unsent(), ["i bundle", "j bundle"]);
	push("user");
	assert.equal(unsent().length, 2);
});

test("what is pushed for a subject takes the place of what waits for it, and keeps its turn", async () => {
	const { push, drain, answers, repeats } = fixture();
	push("a1", 101, false, { key: "a" });
	push("a1", 102, false, { key: "a", answered: (how) => answers.push(["a1 again", how, 0]) });
	assert.equal(repeats("a1"), false);
	for (const name of ["b1", "c1"]) push(name);
	push("b1", 102, false, { answered: (how) => answers.push(["b1 again", how, 0]) });
	assert.deepEqual(answers, [["b1", "unsent", 0]]);
	assert.deepEqual(await drain(), ["a1", "b1", "c1", "a1"]);
	assert.deepEqual(
		answers.map(([name, how]) => `${name} ${how}`),
		["b1 unsent", "a1 accepted", "b1 again accepted", "c1 accepted", "a1 again accepted"],
	);
});

test("many thousands that wait are withdrawn, or swept out by a head in slices, without holding up anything", async () => {
	const { push, lane, unsent, drain } = fixture({ capacity: 100_000, concurrency: 1 });
	push("running", 999);
	const fill = () => {
		for (let i = 0; i < 30_000; i += 1) push(`${i}`, 101, false, { key: `key ${i}`, client: `c${i % 8}` });
	};
	fill();
	const begun = performance.now();
	// The last one first: a search from the front would take minutes.
	for (let i = 29_999; i >= 0; i -= 1) lane.withdraw(`key ${i}`, `${i}`);
	assert.deepEqual([lane.depth, unsent().length], [1, 30_000]);
	fill();
	lane.setHead(101);
	const first = unsent().length - 30_000;
	assert.ok(first > 0 && first <= 1_000, `${first} at once`);
	push("user", 102);
	await until("an empty lane", () => lane.depth === 2);
	assert.ok(performance.now() - begun < 30_000);
	assert.deepEqual(await drain(), ["running", "user"]);
});
