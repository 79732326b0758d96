// Cancels that meet strangers, silence, and submissions that are still under way: nothing of an honest user is lost, and
// nothing that was taken back goes anywhere.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallResult, Delivery } from "../../../../boost-proxy/domain/request.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { ACKNOWLEDGED, rejected, requestFixture, TIMED_OUT } from "./requestFixture.ts";

const YES: CallResult = { ok: true, result: true };
const tx = (value = 0n) => signedTransaction({ nonce: 0n, value, by: testAccount(0) });

test("a stranger whose cancel gets no verdict ends nothing, whoever judges", async () => {
	const { submissions, cancels, journal, relay, request } = await requestFixture();
	const one = tx();
	await submissions.submit(one.raw, request());
	relay.answers = [null];
	const stranger = request({ address: "198.51.100.9" });
	await assert.rejects(cancels.cancel(one.hash, stranger), /no relay available/);
	assert.deepEqual(journal.get(one.hash)?.holders, ["relay"]);
	assert.equal(journal.ended(one.hash), null);
	assert.equal(journal.get(one.hash)?.underWay, false);
});

test("what is cancelled while its submission hangs goes to nobody else", async () => {
	const { submissions, cancels, journal, relay, fallback, request } = await requestFixture();
	const one = tx();
	let answer = (_: Delivery): void => {};
	relay.deliveries = [() => new Promise((resolve) => (answer = resolve))];
	const submitted = submissions.submit(one.raw, request());
	while (relay.sent.length === 0) await Promise.resolve();
	relay.answers = [YES];
	assert.equal(await cancels.cancel(one.hash, request()), true);
	answer(TIMED_OUT);
	assert.equal((await submitted).tx.hash, one.hash);
	assert.equal(fallback.sent.length, 0, "it was handed over after its user took it back");
	assert.equal(journal.ended(one.hash)?.ending, "cancelled");
});

test("a holder that could not be told is told soon, not when a breaker changes", async () => {
	const { submissions, cancels, journal, relay, fallback, request, wakes } = await requestFixture();
	relay.deliveries = [TIMED_OUT, ACKNOWLEDGED];
	const one = tx();
	await submissions.submit(one.raw, request());
	relay.answers = [YES];
	fallback.answers = [null];
	const before = wakes();
	assert.equal(await cancels.cancel(one.hash, request()), true);
	assert.deepEqual(journal.ended(one.hash)?.untold, ["fallback"]);
	assert.ok(wakes() > before, "nobody was woken to tell it");
});

test("one that was cancelled while it was acknowledged elsewhere is taken back there", async () => {
	const { submissions, cancels, journal, relay, fallback, request, wakes } = await requestFixture();
	const one = tx();
	relay.deliveries = [TIMED_OUT];
	let answer = (_: Delivery): void => {};
	fallback.deliveries = [() => new Promise((resolve) => (answer = resolve))];
	const submitted = submissions.submit(one.raw, request());
	while (fallback.sent.length === 0) await Promise.resolve();
	relay.answers = [YES];
	await cancels.cancel(one.hash, request());
	const before = wakes();
	answer(ACKNOWLEDGED);
	await submitted;
	assert.deepEqual(journal.ended(one.hash)?.untold, ["fallback"]);
	assert.ok(wakes() > before, "nobody was woken to take it back");
});

test("a cancel that fails leaves a submission that is still under way to its own request", async () => {
	const { submissions, cancels, journal, relay, request } = await requestFixture();
	const one = tx();
	let answer = (_: Delivery): void => {};
	relay.deliveries = [() => new Promise((resolve) => (answer = resolve))];
	const submitted = submissions.submit(one.raw, request());
	while (relay.sent.length === 0) await Promise.resolve();
	relay.answers = [
		{ ok: false, error: { code: -32000, message: "transaction not found or no longer pending" } },
	];
	await assert.rejects(cancels.cancel(one.hash, request()), /not found/);
	assert.equal(journal.get(one.hash)?.underWay, true);
	answer(ACKNOWLEDGED);
	await submitted;
	assert.equal(journal.get(one.hash)?.underWay, false);
});

test("a relay that has lost it says that it is not pending: it is taken back all the same, and not sent again", async () => {
	const { submissions, cancels, journal, relay, request } = await requestFixture();
	const one = tx();
	await submissions.submit(one.raw, request());
	const notFound = { code: -32000, message: "transaction not found or no longer pending" };
	relay.answers = [
		{ ok: false, error: notFound },
		{ ok: true, result: [{ hash: one.hash, status: "UNKNOWN", stage: null }] },
	];
	assert.equal(await cancels.cancel(one.hash, request()), true);
	assert.equal(journal.ended(one.hash)?.ending, "cancelled");
	const mined = signedTransaction({ nonce: 1n, by: testAccount(0) });
	await submissions.submit(mined.raw, request());
	relay.answers = [
		{ ok: false, error: notFound },
		{ ok: true, result: [{ hash: mined.hash, status: "INCLUDED", stage: "INCLUDED" }] },
	];
	await assert.rejects(cancels.cancel(mined.hash, request()), /no longer pending/);
	assert.notEqual(journal.get(mined.hash), null);
});

test("a holder behind an open breaker hears of a cancel at once where it can", async () => {
	const { submissions, cancels, journal, relay, request } = await requestFixture();
	const one = tx();
	await submissions.submit(one.raw, request());
	relay.isUnavailable = true;
	relay.isReachable = true;
	relay.answers = [YES];
	assert.equal(await cancels.cancel(one.hash, request()), true);
	assert.deepEqual(journal.ended(one.hash)?.untold, []);
});

test("what was refused is not on disk any more when its client hears of that", async () => {
	const { submissions, relay, request, disk } = await requestFixture();
	const one = tx();
	relay.deliveries = [rejected("insufficient funds")];
	await assert.rejects(submissions.submit(one.raw, request()), /insufficient funds/);
	assert.deepEqual(
		[...disk.map.keys()].filter((key) => key.includes(one.hash)),
		[],
	);
});

test("two cancels at once: the entry is left alone until both are over", async () => {
	const { submissions, journal, relay, request } = await requestFixture();
	const one = tx();
	await submissions.submit(one.raw, request({ path: "noreverts", search: "softCancellations=true" }));
	const soft = (value: bigint) =>
		signedTransaction({ nonce: 0n, to: testAccount(0).address, value, by: testAccount(0) });
	journal.setUnderWay(one.hash, true);
	relay.deliveries = [rejected("nonce too low: next nonce 1, tx nonce 0")];
	await assert.rejects(submissions.submit(soft(1n).raw, request()), /nonce too low/);
	assert.equal(journal.get(one.hash)?.underWay, true);
	journal.setUnderWay(one.hash, false);
	assert.equal(journal.get(one.hash)?.underWay, false);
});

test("one that becomes a holder while another is told is told as well", async () => {
	const { submissions, cancels, journal, relay, fallback, request } = await requestFixture();
	relay.isUnavailable = true;
	const one = tx();
	await submissions.submit(one.raw, request());
	relay.isUnavailable = false;
	fallback.onCall = () => journal.held(one.hash, "relay");
	fallback.answers = [YES];
	relay.answers = [YES];
	assert.equal(await cancels.cancel(one.hash, request()), true);
	assert.equal(relay.called.length, 1);
	assert.deepEqual(journal.ended(one.hash)?.untold, []);
});

test("a relay that takes all our clients for one judges no stranger, in or out", async () => {
	const { cancels, relay, request } = await requestFixture({ relayKnowsClient: false });
	relay.isReachable = true;
	for (const isUnavailable of [false, true]) {
		relay.isUnavailable = isUnavailable;
		relay.answers = [YES];
		await assert.rejects(cancels.cancel(`0x${"34".repeat(32)}`, request()), /no longer pending/);
	}
	assert.equal(relay.called.length, 0);
});

test("who had no time to be asked holds nothing", async () => {
	const { submissions, journal, request } = await requestFixture();
	const one = tx();
	await assert.rejects(submissions.submit(one.raw, request({ until: 0 })), /no relay available/);
	assert.equal(journal.get(one.hash), null);
});
