// The uuids against a naive model: random interleavings of bundles and cancels on their way, compared after each step.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type Overtaken, type Ticket, UuidSlots } from "../../../../relay/auction/slots.ts";
import { SeededRandom } from "../../../support/seededRandom.ts";

const STEPS = 3_000;

/** A bundle that was sent, as the world sees it. */
interface Sent {
	readonly key: string;
	readonly seq: number;
	readonly ticket: Ticket;
	/** On its way in, in its place, or over. */
	state: "entering" | "live" | "over";
	left: boolean;
	/** How it was ended, as it was told. */
	ended: Overtaken | null;
}

for (const seed of [21, 22, 23, 24, 25]) {
	test(`of each uuid the last sent good one is live, and a cancel ends what was sent before, seed ${seed}`, () => {
		const random = new SeededRandom(seed);
		const slots = new UuidSlots();
		const keys = [
			["me", "u"],
			["me", "v"],
			["you", "u"],
		] as const;
		/** All that was sent and is not quite over. */
		let sent: Sent[] = [];
		/** The last cancel of each key, and the last sent one that took it. */
		const cancels = new Map<string, number>();
		const taken = new Map<string, number>();
		const seen = new Set<string>();
		let seq = 0;
		const live = (key: string) => sent.filter((one) => one.key === key && one.state === "live");

		for (let i = 0; i < STEPS; i += 1) {
			const [owner, uuid] = random.pick(keys);
			const key = `${owner} ${uuid}`;
			const mine = sent.filter((one) => one.key === key);
			const kind = random.weighted({ enter: 6, take: 6, refuse: 2, end: 2, cancel: 2 });
			seq += 1;
			if (kind === "enter" && mine.length < 6) {
				sent.push({
					key,
					seq,
					ticket: slots.enter(owner, uuid),
					state: "entering",
					left: false,
					ended: null,
				});
			} else if (kind === "cancel") {
				const before = live(key);
				slots.cancel(owner, uuid);
				cancels.set(key, seq);
				for (const one of before) {
					assert.equal(one.ended, "CANCELLED");
					seen.add("cancelled");
				}
			} else if (kind === "take" || kind === "refuse") {
				const entering = mine.filter(({ state }) => state === "entering");
				if (entering.length === 0) continue;
				const one = random.pick(entering);
				seen.add(kind === "take" ? take(one, live(key), cancels.get(key) ?? 0, taken) : "refused");
				if (kind === "refuse") one.state = "over";
				one.ticket.leave();
				one.left = true;
			} else if (kind === "end") {
				const [one] = live(key);
				// What was sent before it and is still on its way has a test of its own.
				if (one === undefined || mine.some((other) => other.state === "entering" && other.seq < one.seq))
					continue;
				one.state = "over";
				one.ticket.release();
				seen.add("ended");
			}
			sent = sent.filter(({ state, left }) => state !== "over" || !left);
			for (const [o, u] of keys) assert.ok(live(`${o} ${u}`).length <= 1, `two live ones, step ${i}`);
		}
		for (const outcome of ["taken", "REPLACED", "CANCELLED", "replaced", "cancelled", "refused", "ended"]) {
			assert.ok(seen.has(outcome), `never ${outcome}`);
		}
	});
}

/** It was found good: it must take its place, or be told how it was overtaken. */
function take(one: Sent, live: readonly Sent[], cancelled: number, taken: Map<string, number>): string {
	const expected =
		cancelled > one.seq ? "CANCELLED" : (taken.get(one.key) ?? 0) > one.seq ? "REPLACED" : null;
	const outcome = one.ticket.overtaken();
	assert.equal(one.ticket.replaces(), expected === null && live.length > 0);
	one.ticket.take((how) => {
		assert.equal(one.state, "live", "ended though it is not live");
		one.ended = how;
		one.state = "over";
		one.ticket.release();
	});
	assert.equal(outcome, expected);
	if (outcome !== null) {
		one.state = "over";
		for (const other of live) assert.equal(other.state, "live");
		return outcome;
	}
	one.state = "live";
	taken.set(one.key, one.seq);
	for (const other of live) assert.deepEqual([other.state, other.ended], ["over", "REPLACED"]);
	return live.length > 0 ? "replaced" : "taken";
}
