// Who holds a replacementUuid: the last sent one that was found good, until it ends, is replaced or cancelled.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Overtaken, UuidSlots } from "../../../../relay/auction/slots.ts";

/** Enters; `take` answers how it was overtaken, and notes how it is ended later. */
function entered(slots: UuidSlots, owner = "me", uuid: string | null = "u") {
	const ticket = slots.enter(owner, uuid);
	const ends: Overtaken[] = [];
	const take = () => {
		const overtaken = ticket.overtaken();
		ticket.take((how) => void ends.push(how));
		return overtaken;
	};
	return { ticket, ends, take };
}

test("the later one takes the place of the earlier one, which is ended once", () => {
	const slots = new UuidSlots();
	const [a, b] = [entered(slots), entered(slots)];
	assert.equal(a.take(), null);
	assert.equal(b.take(), null);
	assert.deepEqual([a.ends, b.ends], [["REPLACED"], []]);
});

test("the earlier one is found good after the later one: it is replaced on the way, and ends nothing", () => {
	const slots = new UuidSlots();
	const [a, b] = [entered(slots), entered(slots)];
	assert.equal(b.take(), null);
	assert.equal(a.take(), "REPLACED");
	assert.deepEqual([a.ends, b.ends], [[], []]);
});

test("a later one that is found bad replaces nothing", () => {
	const slots = new UuidSlots();
	const [a, b] = [entered(slots), entered(slots)];
	a.take();
	b.ticket.leave();
	assert.deepEqual(a.ends, []);
	slots.cancel("me", "u");
	assert.deepEqual(a.ends, ["CANCELLED"]);
});

test("a cancel ends the holder and all that is on its way, and nothing that is sent after it", () => {
	const slots = new UuidSlots();
	const [held, onTheWay] = [entered(slots), entered(slots)];
	held.take();
	slots.cancel("me", "u");
	const after = entered(slots);
	assert.deepEqual([held.ends, onTheWay.take(), after.take()], [["CANCELLED"], "CANCELLED", null]);
	assert.deepEqual(after.ends, []);
});

test("a later one that was good and has ended by itself has replaced the earlier one all the same", () => {
	const slots = new UuidSlots();
	const [a, b] = [entered(slots), entered(slots)];
	b.take();
	b.ticket.release();
	b.ticket.leave();
	assert.equal(a.take(), "REPLACED");
});

test("what has ended by itself is not ended again", () => {
	const slots = new UuidSlots();
	const a = entered(slots);
	a.take();
	a.ticket.leave();
	a.ticket.release();
	slots.cancel("me", "u");
	entered(slots).take();
	assert.deepEqual(a.ends, []);
});

test("an old one that gives the uuid back does not take it from the new one", () => {
	const slots = new UuidSlots();
	const [a, b] = [entered(slots), entered(slots)];
	a.take();
	b.take();
	a.ticket.release();
	slots.cancel("me", "u");
	assert.deepEqual(b.ends, ["CANCELLED"]);
});

test("an end that gives the uuid back at once, as the auctioneer's does, changes nothing", () => {
	const slots = new UuidSlots();
	const first = slots.enter("me", "u");
	first.take(() => first.release());
	first.leave();
	const b = entered(slots);
	assert.equal(b.take(), null);
	b.ticket.leave();
	slots.cancel("me", "u");
	assert.deepEqual(b.ends, ["CANCELLED"]);
});

test("owners never meet, whatever their uuids look like; nor do bundles without one", () => {
	const slots = new UuidSlots();
	const all = [
		entered(slots, "me", "u"),
		entered(slots, "you", "u"),
		entered(slots, "me", '","u'),
		entered(slots, 'me","', "u"),
		entered(slots, "me", ""),
		entered(slots, "me", null),
		entered(slots, "me", null),
	];
	for (const one of all) assert.equal(one.take(), null);
	slots.cancel("me", "u");
	assert.deepEqual(
		all.map(({ ends }) => ends.join()),
		["CANCELLED", "", "", "", "", "", ""],
	);
});

test("whether it would end another one is told before it does, and not of one that was overtaken", () => {
	const slots = new UuidSlots();
	const [a, b, c] = [entered(slots), entered(slots), entered(slots)];
	assert.equal(b.ticket.replaces(), false);
	b.take();
	assert.deepEqual([a.ticket.replaces(), c.ticket.replaces()], [false, true]);
	slots.cancel("me", "u");
	assert.deepEqual([a.ticket.replaces(), c.ticket.replaces()], [false, false]);
	assert.equal(entered(slots, "me", null).ticket.replaces(), false);
});

test("a cancel of what is unknown is nothing", () => {
	const slots = new UuidSlots();
	slots.cancel("me", "u");
	assert.equal(entered(slots).take(), null);
});

test("uuids that nothing is known of any more take no memory", () => {
	setFlagsFromString("--expose-gc");
	const collect: () => void = runInNewContext("gc");
	const slots = new UuidSlots();
	const used = () => {
		collect();
		return process.memoryUsage().heapUsed;
	};
	const live = (i: number) => {
		const [a, b] = [slots.enter("me", `uuid ${i}`), slots.enter("me", `uuid ${i}`)];
		a.take(() => a.release());
		if (i % 3 > 0) b.take(() => b.release());
		a.leave();
		b.leave();
		if (i % 3 === 1) slots.cancel("me", `uuid ${i}`);
		else for (const ticket of [a, b]) ticket.release();
		slots.cancel("me", `unknown ${i}`);
	};
	live(0);
	const before = used();
	for (let i = 0; i < 60_000; i += 1) live(i);
	// Each would take some 200 bytes at the very least.
	assert.ok(used() - before < 4 * 1024 * 1024);
	slots.cancel("me", "uuid 0");
});
