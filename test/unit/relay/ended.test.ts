// Tests that what has ended stays ended and is not forgotten: what came before and behind it with its nonce, races about
// one that expired and comes again, and a machine whose clock is wrong by days.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import {
	blocks,
	cancel,
	cancels,
	DEAR,
	known,
	LIFE_BLOCKS,
	type StagesFixture,
	scenario,
	soft,
	toSelf,
} from "./stagesFixture.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const UNTIL_SETTLED = 65;

const outcome = async (fixture: StagesFixture, tx: PrivateTransaction) =>
	(await fixture.take(tx))[0]?.outcome;

/** How long after its life: one that has expired is watched still, or settled. */
const EXPIRED = [
	["watched", LIFE_BLOCKS],
	["settled", LIFE_BLOCKS + UNTIL_SETTLED],
] as const;

/** Transactions of one nonce. The first one is there at the start. */
const OF_ONE_NONCE: Readonly<Record<string, PrivateTransaction>> = {
	first: soft(),
	next: soft({ value: 1 }),
	fast: privateTransaction({ value: 2 }),
	dear: soft(DEAR),
	self: toSelf(),
};
/**
 * What happens to the nonce, the last of which builders hear of as the next column says; how the first one has ended.
 * Submissions are answered `accepted`, but for the self-transfer's.
 */
const LIVES: readonly (readonly [steps: string, builders: RegExp, stage: string])[] = [
	["expire next", /^send 0 for \d+ to a,b$/, "REPLACED"],
	["expire next self", /^cancel 0 for \d+ at a,b$/, "REPLACED"],
	["expire self", /^$/, "CANCELLED"],
	["expire first expire first", /^send 0 for \d+ to a,b$/, "BROADCAST"],
	["expire first self", /^cancel 0 for \d+ at a,b$/, "CANCELLED"],
	["expire first dear", /^cancel 0 for \d+ at a,b,send 0 for \d+ to a,b$/, "REPLACED"],
	["expire first cancel next", /^send 0 for \d+ to a,b$/, "CANCELLED"],
	["cancel fast expire self", /^$/, "CANCELLED"],
];

for (const [steps, told, stage] of LIVES) {
	for (const [when, wait] of EXPIRED) {
		scenario(`${steps}, expired ones being ${when}: ${stage}`, async (fixture) => {
			const first = OF_ONE_NONCE.first ?? soft();
			await fixture.take(first);
			const came = new Set([first]);
			for (const step of steps.split(" ")) {
				fixture.builders.take();
				const tx = OF_ONE_NONCE[step];
				if (step === "expire") await blocks(fixture, wait);
				else if (tx === undefined) assert.equal(await cancel(fixture, first), true);
				else {
					came.add(tx);
					assert.equal(await outcome(fixture, tx), step === "self" ? "cancels" : "accepted", step);
				}
			}
			assert.match(fixture.builders.take().join(), told);
			assert.equal(await fixture.stageOrKept(first), stage);
			const next = await fixture.restart();
			await next.work([], [], true);
			next.builders.take();
			for (const each of [fixture, next]) {
				for (const tx of came) assert.deepEqual(await each.take(tx), [known(tx)]);
				assert.deepEqual([each.pool.size, each.builders.take()], [told.source.includes("send") ? 1 : 0, []]);
			}
		});
	}
}

for (const [when, wait] of EXPIRED) {
	scenario(
		`an expired one, ${when}, that comes while a self-transfer ends it stays ended`,
		async (fixture) => {
			const tx = soft();
			await fixture.take(tx);
			await blocks(fixture, wait);
			fixture.builders.take();
			fixture.disk.hold = true;
			const ending = fixture.submit(toSelf());
			await fixture.quiet();
			const coming = fixture.submit(tx);
			await fixture.quiet();
			fixture.disk.hold = false;
			fixture.disk.finish(true);
			assert.deepEqual([await ending, await coming], [cancels(toSelf()), known(tx)]);
			await fixture.quiet();
			assert.deepEqual([fixture.pool.size, fixture.builders.take()], [0, []]);
			assert.equal(await outcome(await fixture.restart(), tx), "known");
		},
	);
}

scenario("the same self-transfer twice at once does not take itself back", async (fixture) => {
	const tx = { ...toSelf(), path: "noreverts", softCancellations: true } as const;
	const outcomes = await Promise.all([fixture.submit(tx), fixture.submit(tx)]);
	assert.deepEqual(
		outcomes.map((one) => one.outcome),
		["accepted", "known"],
	);
	await fixture.quiet();
	assert.equal(fixture.stage(tx), "BROADCAST");
});

scenario("what an expired one was is not written behind its coming again", async (fixture) => {
	const tx = privateTransaction({ path: "nochecks" });
	await fixture.take(tx);
	await blocks(fixture, LIFE_BLOCKS);
	const told = { at: fixture.clock.now(), block: 126, kind: "cancel", answer: "accepted", ms: 1 } as const;
	fixture.records.emit(tx.tx.hash, { type: "delivered", builder: "a", ...told });
	fixture.disk.hold = true;
	const coming = fixture.submit(tx);
	await fixture.quiet();
	const flushing = fixture.transactions.flush(false);
	await fixture.quiet();
	fixture.disk.hold = false;
	fixture.disk.finish(true);
	assert.equal((await coming).outcome, "accepted");
	await flushing;
	await fixture.quiet();
	assert.equal((await fixture.restart()).pool.size, 1);
});

scenario("what is found by its nonce is not forgotten while it is pending again", async (fixture) => {
	const tx = soft();
	await fixture.take(tx);
	await blocks(fixture, LIFE_BLOCKS + UNTIL_SETTLED);
	await fixture.pass(7 * DAY_MS - HOUR_MS);
	assert.equal(await outcome(fixture, tx), "accepted");
	await fixture.pass(2 * HOUR_MS);
	assert.equal(await cancel(fixture, tx), true);
	assert.equal(await outcome(fixture, toSelf()), "cancels");
});

scenario(
	"a self-transfer in the very write that settles the expired one outlives a kill",
	async (fixture) => {
		const tx = soft();
		await fixture.take(tx);
		await blocks(fixture, LIFE_BLOCKS + 63);
		fixture.disk.hold = true;
		const working = fixture.block();
		await fixture.quiet();
		const ending = fixture.submit(toSelf());
		await fixture.quiet();
		fixture.disk.hold = false;
		while (fixture.disk.waiting > 0) {
			fixture.disk.finish(true);
			await fixture.quiet();
		}
		assert.equal((await ending).outcome, "cancels");
		await working;
		const next = await fixture.restart();
		await next.work([], [], true);
		assert.equal(await outcome(next, tx), "known");
	},
);

/** One that was sent and one that waits behind a gap, of two accounts. */
const pair = (first: number) => [
	privateTransaction({ by: testAccount(first), path: "nochecks" }),
	privateTransaction({ by: testAccount(first + 1), nonce: 5 }),
];

for (const days of [8, -8, 400]) {
	scenario(`a clock ${days} days off for a while brings back nothing that was cancelled`, async (fixture) => {
		const [before, meanwhile] = [pair(0), pair(2)];
		await fixture.take(...before);
		for (const tx of before) await cancel(fixture, tx);
		await blocks(fixture, UNTIL_SETTLED);
		await fixture.take(...meanwhile);
		fixture.clock.set(days * DAY_MS);
		for (const tx of meanwhile) await cancel(fixture, tx);
		fixture.builders.take();
		for (let i = 0; i < 2; i += 1) {
			await blocks(fixture, UNTIL_SETTLED);
			for (const tx of [...before, ...meanwhile]) assert.deepEqual(await fixture.take(tx), [known(tx)]);
			fixture.clock.set(i === 0 ? -days * DAY_MS : 0);
		}
		await fixture.pass(6 * DAY_MS);
		for (const tx of [...before, ...meanwhile]) assert.deepEqual(await fixture.take(tx), [known(tx)]);
		assert.deepEqual([fixture.builders.take(), fixture.pool.size], [[], 0]);
	});

	scenario(
		`builders are not told of a cancel again and again for a clock ${days} days off`,
		async (fixture) => {
			const tx = privateTransaction({ path: "nochecks" });
			await fixture.take(tx);
			assert.equal(await cancel(fixture, tx), true);
			fixture.clock.set(days * DAY_MS);
			const told = { block: 101, kind: "cancel", answer: "accepted", ms: 1 } as const;
			for (const builder of ["a", "b"]) {
				fixture.records.emit(tx.tx.hash, { type: "delivered", at: fixture.clock.now(), builder, ...told });
			}
			fixture.builders.take();
			await blocks(fixture, 3);
			assert.deepEqual(fixture.builders.take(), []);
		},
	);
}

scenario("a head that is days ahead of the machine's clock makes nothing old either", async (fixture) => {
	const tx = privateTransaction();
	await fixture.take(tx);
	assert.equal(await cancel(fixture, tx), true);
	await blocks(fixture, UNTIL_SETTLED);
	await fixture.block({ after: (8 * DAY_MS) / 1000 });
	assert.deepEqual(await fixture.take(tx), [known(tx)]);
});
