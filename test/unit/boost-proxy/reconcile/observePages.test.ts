// Following a fallback that gives up or loses what it alone holds: the relay, which is well, gets it.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	endingOf,
	hashOf,
	type ReconcileScene,
	reconcileScene,
	SLOT_MS,
	senderOf,
} from "./reconcileScene.ts";

const BY_HASH = "eth_getTransactionByHash";
const BLANK = { status: "UNKNOWN" };

async function followed(options: Parameters<typeof reconcileScene>[0] = {}): Promise<ReconcileScene> {
	const scene = await reconcileScene(options);
	await scene.observer.start();
	scene.handover.wake();
	await scene.clock.advance(100);
	return scene;
}

for (const stage of ["EXPIRED", "DROPPED"]) {
	test(`what the fallback has ${stage} goes to the relay and not to the fallback again`, async () => {
		const scene = await followed();
		const { relay, fallback, clock } = scene;
		const hash = await scene.opened(1, ["fallback"]);
		fallback.pages.set(hash, { status: "FAILED", stage });
		await clock.advance(2_000);
		assert.deepEqual(relay.hashes, [hash]);
		assert.deepEqual(scene.holders(hash), ["relay"]);
		relay.breaker.set(true);
		await clock.advance(SLOT_MS);
		assert.deepEqual(fallback.hashes, []);
		await scene.stop();
	});
}

test("what the fallback has no record of, twice in a row and by hash neither, goes to the relay", async () => {
	const scene = await followed();
	const { relay, fallback, clock } = scene;
	const hash = await scene.opened(1, ["fallback"]);
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
	assert.deepEqual(scene.holders(hash), ["relay", "fallback"], "a cancel reaches both, in case it was wrong");
	await clock.advance(5 * SLOT_MS);
	assert.deepEqual([relay.hashes, fallback.hashes], [[hash], []]);
	assert.equal(endingOf(scene, hash), null);
	relay.breaker.set(true);
	await clock.advance(2_000);
	assert.deepEqual(fallback.hashes, [hash], "it is not there");
	await scene.stop();
});

test("while the relay is out the fallback gets what it has lost again, more and more rarely", async () => {
	const scene = await followed();
	const { relay, fallback, clock } = scene;
	relay.breaker.set(true);
	const hash = await scene.opened(1, ["fallback"]);
	fallback.pages.set(hash, BLANK);
	fallback.answerCall = ({ method }) => (method === BY_HASH ? { ok: true, result: null } : undefined);
	await clock.advance(3 * SLOT_MS);
	assert.deepEqual(fallback.hashes, [hash]);
	await clock.advance(20 * SLOT_MS);
	assert.ok(fallback.hashes.length <= 4, `${fallback.hashes.length} deliveries`);
	assert.deepEqual(scene.holders(hash), ["fallback"]);
	await scene.stop();
});

test("a page without an answer, a hash that it knows or an error say nothing of a loss", async () => {
	for (const [page, answer] of [
		[null, { ok: true, result: null }],
		[{ status: "PENDING" }, { ok: true, result: null }],
		[BLANK, { ok: true, result: { hash: hashOf(1) } }],
		[BLANK, { ok: false, error: { code: -32601, message: "no such method" } }],
		[BLANK, null],
	] as const) {
		const scene = await followed();
		const { relay, fallback, clock } = scene;
		const hash = await scene.opened(1, ["fallback"]);
		if (page !== null) fallback.pages.set(hash, page);
		fallback.answerCall = ({ method }) => (method === BY_HASH ? answer : undefined);
		await clock.advance(6 * SLOT_MS);
		assert.deepEqual([relay.hashes, scene.holders(hash)], [[], ["fallback"]], JSON.stringify([page, answer]));
		await scene.stop();
	}
});

test("a word that comes when the relay has it too: a cancel reaches the relay, a loss is none", async () => {
	for (const page of [
		{ status: "FAILED", stage: "CANCELLED" },
		{ status: "FAILED", stage: "EXPIRED" },
	]) {
		const scene = await followed();
		const { journal, relay, fallback, clock } = scene;
		const hash = await scene.opened(1, ["fallback"]);
		fallback.statusPage = async () => {
			await journal.held(hash, "relay");
			relay.stages.set(hash, "BROADCAST");
			return page;
		};
		await clock.advance(2_000);
		const isCancel = page.stage === "CANCELLED";
		assert.deepEqual(relay.asked("eth_cancelTransaction"), isCancel ? [hash] : []);
		assert.deepEqual(scene.holders(hash), isCancel ? null : ["relay", "fallback"]);
		await scene.stop();
	}
});

test("one that was not acknowledged is forgotten where the fallback does not have it, and goes nowhere", async () => {
	for (const page of [BLANK, { status: "FAILED", stage: "EXPIRED" }]) {
		const scene = await followed();
		const { relay, fallback, clock } = scene;
		const hash = await scene.opened(1, ["fallback"], { acknowledged: false });
		fallback.pages.set(hash, page);
		await clock.advance(4 * SLOT_MS);
		assert.deepEqual([scene.holders(hash), endingOf(scene, hash)], [null, null]);
		assert.deepEqual([relay.hashes, fallback.hashes], [[], []]);
		await scene.stop();
	}
});

test("at most ten questions a look, pages and hashes together; nobody starves", async () => {
	const scene = await followed();
	const { relay, fallback, clock } = scene;
	const hashes: string[] = [];
	for (let n = 1; n <= 30; n += 1) {
		hashes.push(await scene.opened(n, ["fallback"], { from: senderOf(n) }));
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
	await scene.stop();
});
