// A builder that accepts 50 requests a second, and 100 targets with 16 bids each. Users'
// transactions and cancels wait for no bid, no second exceeds the builder's limit, and the first
// two bids of each target are sent.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lane, type LaneItem } from "../../../../relay/broadcast/lane.ts";
import { RequestBudget } from "../../../../relay/broadcast/requestBudget.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const LIMIT = 50;
const TARGETS = 100;
const BIDS = 16;
const SECONDS = 12;
/** Users' requests: 10 in a second. */
const EVERY_MS = 100;

interface Sent {
	readonly name: string;
	readonly at: number;
}

/** Sends for a chain slot, beside `bids` for each target. The builder answers after 20 ms. */
async function chainSlot(bids: number) {
	const clock = new ManualClock();
	const sent: Sent[] = [];
	const pushed = new Map<string, number>();
	const lane = new Lane(
		{ capacity: 100_000, concurrency: 8, perSecond: LIMIT },
		{
			clock,
			maySend: () => true,
			send({ body }) {
				sent.push({ name: String(body), at: clock.monotonic() });
				return new Promise((resolve) => void clock.after(20, () => resolve("accepted")));
			},
		},
	);
	const push = (name: string, more: Pick<LaneItem, "kind" | "client"> & Partial<LaneItem>): void => {
		pushed.set(name, clock.monotonic());
		lane.push({
			...{ key: name, subject: name, block: 101, requestId: null, urgent: false, answered: () => {} },
			make: () => ({ body: Buffer.from(name), signature: "" }),
			...more,
		});
	};
	for (let target = 0; target < TARGETS; target += 1)
		for (let slot = 0; slot < bids; slot += 1)
			push(`bid ${target} ${slot}`, { kind: "bid", client: `192.0.${slot}.1`, slot });
	for (let ms = 0; ms < SECONDS * 1_000; ms += 20) {
		if (ms % EVERY_MS === 0) {
			const urgent = ms % (2 * EVERY_MS) === 0;
			push(`user ${ms}`, { kind: "user", client: `198.51.100.${ms % 50}`, urgent });
		}
		await clock.advance(20);
	}
	const waits = sent
		.filter(({ name }) => name.startsWith("user"))
		.map(({ name, at }) => at - (pushed.get(name) ?? 0));
	return { sent, waits };
}

test("the budget is as quick behind a million requests of users as behind none", async () => {
	const clock = new ManualClock();
	const budget = new RequestBudget({ perSecond: LIMIT }, { clock });
	for (let i = 0; i < 1_000_000; i += 1) budget.take();
	await clock.advance(2_000);
	const begun = performance.now();
	assert.equal(budget.waitMs, 0);
	// Minutes, when each was moved as often as there were others.
	assert.ok(performance.now() - begun < 1_000);
});

for (const [what, times, now, waitMs] of [
	["no request", [], 0, 0],
	["fewer than searchers may send", [0, 0], 0, 0],
	["as many in the same second", [0, 100, 200], 300, 700],
	["more, of which the last ones count", [0, 0, 0, 100, 200], 300, 700],
	["as many, of which the first is a second old", [0, 100, 200], 1_000, 0],
	["as many, of which the first is nearly a second old", [0, 100, 200], 999.5, 1],
] as const)
	test(`a searcher waits behind ${what}: ${waitMs} ms`, async () => {
		const clock = new ManualClock();
		const start = clock.monotonic();
		const budget = new RequestBudget({ perSecond: 4 }, { clock });
		for (const at of times) {
			await clock.advance(start + at - clock.monotonic());
			budget.take();
		}
		await clock.advance(start + now - clock.monotonic());
		assert.equal(budget.waitMs, waitMs);
	});

test("1,600 bids delay no user and exceed no second's requests, and two bids of each target are sent", async () => {
	const [alone, beside] = [await chainSlot(0), await chainSlot(BIDS)];
	assert.equal(beside.waits.length, (SECONDS * 1_000) / EVERY_MS);
	assert.deepEqual(beside.waits, alone.waits, "users wait no longer than without bids");
	for (const { at } of beside.sent) {
		const inSecond = beside.sent.filter((one) => one.at >= at && one.at < at + 1_000).length;
		assert.ok(inSecond <= LIMIT, `${inSecond} from ${at} ms on`);
	}
	const bids = beside.sent.flatMap(({ name }) => (name.startsWith("bid") ? [name.split(" ")] : []));
	const slots = bids.map(([, , slot]) => Number(slot));
	// The first few began before the others were there.
	const later = slots.slice(4);
	const inOrder = [...later].sort((a, b) => a - b);
	assert.deepEqual(later, inOrder, "the first of every target before the second of any");
	for (const slot of [0, 1]) assert.equal(slots.filter((one) => one === slot).length, TARGETS);
});
