// Following a fallback that gives up or loses what it alone holds: the relay, which is well, gets it.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	endingOf,
	hashOf,
	type ReconcileFixture,
	reconcileFixture,
	SLOT_MS,
	senderOf,
} from "./reconcileFixture.ts";

const BY_HASH = "eth_getTransactionByHash";
const BLANK = { status: "UNKNOWN" };

async function followed(options: Parameters<typeof reconcileFixture>[0] = {}): Promise<ReconcileFixture> {
	const fixture = await reconcileFixture(options);
	await fixture.observer.start();
	fixture.handover.wake();
	await fixture.clock.advance(100);
	return fixture;
}

for (const stage of ["EXPIRED", "DROPPED"]) {
	test(`what the fallback has ${stage} goes to the relay and not to the fallback again`, async () => {
		const fixture = await followed();
		const { relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1, ["fallback"]);
		fallback.pages.set(hash, { status: "FAILED", stage });
		await clock.advance(2_000);
		assert.deepEqual(relay.hashes, [hash]);
		assert.deepEqual(fixture.holders(hash), ["relay"]);
		relay.breaker.set(true);
		await clock.advance(SLOT_MS);
		assert.deepEqual(fallback.hashes, []);
		await fixture.stop();
	});
}

test("what the fallback has no record of, twice in a row and by hash neither, goes to the relay", async () => {
	const fixture = await followed();
	const { relay, fallback, clock } = fixture;
	const hash = await fixture.opened(1, ["fallback"]);
	fallback.stages.delete(hash);
	fallback.pages.set(hash, BLANK);
	await clock.advance(2_000);
	assert.deepEqual([relay.hashes, fallback.asked(BY_HASH)], [[], []], "once");
	fallback.pages.set(hash, { ...BLANK, stage: "BROADCAST" });
	await clock.advance(SLOT_MS);
	fallback.pages.set(hash, BLANK);
	await clock.advance(SLOT_MS);
	assert.deepEqual(relay.hashes, [], "not in a row");
	await clock.advance(SLOT_MS);
	assert.deepEqual([relay.hashes, fallback.asked(BY_HASH)], [[hash], [hash]]);
	assert.deepEqual(fallback.hashes, [], "nobody else needs it where the relay has it");
	assert.deepEqual(
		fixture.holders(hash),
		["relay", "fallback"],
		"a cancel reaches both, in case it was wrong",
	);
	await clock.advance(5 * SLOT_MS);
	assert.deepEqual([relay.hashes, fallback.hashes], [[hash], []]);
	assert.equal(endingOf(fixture, hash), null);
	relay.breaker.set(true);
	await clock.advance(2_000);
	assert.deepEqual(fallback.hashes, [hash], "it is not there");
	await fixture.stop();
});

test("while the relay is out the fallback gets what it has lost again, more and more rarely", async () => {
	const fixture = await followed();
	const { relay, fallback, clock } = fixture;
	relay.breaker.set(true);
	const hash = await fixture.opened(1, ["fallback"]);
	fallback.pages.set(hash, BLANK);
	fallback.answerCall = ({ method }) => (method === BY_HASH ? { ok: true, result: null } : undefined);
	await clock.advance(3 * SLOT_MS);
	assert.deepEqual(fallback.hashes, [hash]);
	await clock.advance(20 * SLOT_MS);
	assert.ok(fallback.hashes.length <= 4, `${fallback.hashes.length} deliveries`);
	assert.deepEqual(fixture.holders(hash), ["fallback"]);
	await fixture.stop();
});

test("a page without an answer, a hash that it knows or an error say nothing of a loss", async () => {
	for (const [page, answer] of [
		[null, { ok: true, result: null }],
		[{ status: "PENDING" }, { ok: true, result: null }],
		[BLANK, { ok: true, result: { hash: hashOf(1) } }],
		[BLANK, { ok: false, error: { code: -32601, message: "no such method" } }],
		[BLANK, null],
	] as const) {
		const fixture = await followed();
		const { relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1, ["fallback"]);
		if (page !== null) fallback.pages.set(hash, page);
		fallback.answerCall = ({ method }) => (method === BY_HASH ? answer : undefined);
		await clock.advance(6 * SLOT_MS);
		assert.deepEqual(
			[relay.hashes, fixture.holders(hash)],
			[[], ["fallback"]],
			JSON.stringify([page, answer]),
		);
		await fixture.stop();
	}
});

test("a word that comes when the relay has it too: a cancel reaches the relay, a loss is none", async () => {
	for (const page of [
		{ status: "FAILED", stage: "CANCELLED" },
		{ status: "FAILED", stage: "EXPIRED" },
	]) {
		const fixture = await followed();
		const { journal, relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1, ["fallback"]);
		fallback.statusPage = async () => {
			await journal.held(hash, "relay");
			relay.stages.set(hash, "BROADCAST");
			return page;
		};
		await clock.advance(2_000);
		const isCancel = page.stage === "CANCELLED";
		assert.deepEqual(relay.asked("eth_cancelTransaction"), isCancel ? [hash] : []);
		assert.deepEqual(fixture.holders(hash), isCancel ? null : ["relay", "fallback"]);
		await fixture.stop();
	}
});

test("one that was not acknowledged is forgotten where the fallback does not have it, and goes nowhere", async () => {
	for (const page of [BLANK, { status: "FAILED", stage: "EXPIRED" }]) {
		const fixture = await followed();
		const { relay, fallback, clock } = fixture;
		const hash = await fixture.opened(1, ["fallback"], { acknowledged: false });
		fallback.pages.set(hash, page);
		await clock.advance(4 * SLOT_MS);
		assert.deepEqual([fixture.holders(hash), endingOf(fixture, hash)], [null, null]);
		assert.deepEqual([relay.hashes, fallback.hashes], [[], []]);
		await fixture.stop();
	}
});

test("at most ten questions a look, pages and hashes together; nobody starves", async () => {
	const fixture = await followed();
	const { relay, fallback, clock } = fixture;
	const hashes: string[] = [];
	for (let n = 1; n <= 30; n += 1) {
		hashes.push(await fixture.opened(n, ["fallback"], { from: senderOf(n) }));
		fallback.stages.delete(hashOf(n));
		fallback.pages.set(hashOf(n), BLANK);
	}
	const questions = () => fallback.pagesAsked.length + fallback.asked(BY_HASH).length;
	for (let look = 0, before = questions(); look < 40; look += 1) {
		await clock.advance(1_000);
		assert.ok(questions() - before <= 10, `${questions() - before} questions`);
		before = questions();
	}
	assert.deepEqual([...relay.hashes].sort(), hashes.sort());
	await fixture.stop();
});
