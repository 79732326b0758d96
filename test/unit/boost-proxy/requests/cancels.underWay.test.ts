// Cancels by hash of a transaction whose submission is under way.

import assert from "node:assert/strict";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { refusal, type Said } from "../wire.ts";
import { ACKNOWLEDGED, BROKEN_OFF, hanging, scenario } from "./requestFixture.ts";

const YES: Said = { result: true };
const GWEI = 1_000_000_000n;
const ONE = signedTransaction({ nonce: 0n, by: testAccount(0) });
const REPLACEMENT = signedTransaction({
	...{ nonce: 0n, by: testAccount(0), maxFeePerGas: 400n * GWEI, maxPriorityFeePerGas: 40n * GWEI },
});

scenario(
	"one that arrives while the relay is asked about it is cancelled wherever it has gone",
	async (fixture) => {
		const { relay, fallback, journal, submissions, cancels, request } = fixture;
		relay.onCall = async () => {
			relay.onCall = async () => {};
			relay.deliveries = [BROKEN_OFF];
			await submissions.submit(ONE.raw, request());
		};
		relay.answers = [YES, YES];
		fallback.answers = [YES];
		assert.equal(await cancels.cancel(ONE.hash, request()), true);
		assert.deepEqual([relay.called.length, fallback.called.length], [2, 1]);
		assert.equal(journal.justEnded(ONE.hash)?.ending, "cancelled");
	},
);

scenario(
	"a replacement that is cancelled before it is accepted leaves the earlier one, and its client learns that",
	async (fixture) => {
		const { relay, fallback, journal, submissions, cancels, request } = fixture;
		await submissions.submit(ONE.raw, request());
		const begun = hanging(relay);
		const replacing = submissions.submit(REPLACEMENT.raw, request());
		const answer = await begun;
		relay.answers = [YES, BROKEN_OFF];
		await assert.rejects(cancels.cancel(REPLACEMENT.hash, request()), /whether it had replaced an earlier/);
		relay.answers = [{ result: null }, { result: [{ hash: ONE.hash, stage: "BROADCAST" }] }];
		assert.equal(await cancels.cancel(REPLACEMENT.hash, request()), true);
		answer(BROKEN_OFF);
		await assert.rejects(
			replacing,
			/cancelled before an upstream accepted it, so the transaction that it would replace stays/,
		);
		assert.deepEqual(journal.get(ONE.hash)?.holders, ["relay"]);
		assert.deepEqual(fallback.hashes, []);
	},
);

scenario("a repeated cancel does not depend on later transactions of its nonce", async (fixture) => {
	const { relay, submissions, cancels, request } = fixture;
	await submissions.submit(ONE.raw, request());
	relay.answers = [YES];
	await cancels.cancel(ONE.hash, request());
	await fixture.clock.advance(1);
	await submissions.submit(REPLACEMENT.raw, request());
	assert.equal(await cancels.cancel(ONE.hash, request()), true);
});

scenario("a cancel ends what the relay has replaced, also if only the fallback had it", async (fixture) => {
	const { relay, fallback, journal, submissions, cancels, request } = fixture;
	relay.isUnavailable = true;
	await submissions.submit(ONE.raw, request());
	relay.isUnavailable = false;
	fallback.isUnavailable = true;
	const begun = hanging(relay);
	const replacing = submissions.submit(REPLACEMENT.raw, request());
	const answer = await begun;
	relay.answers = [YES, { result: [{ hash: ONE.hash, stage: "REPLACED" }] }];
	await assert.rejects(cancels.cancel(REPLACEMENT.hash, request()), /cancels it there as soon as possible/);
	const { ending, cancelAt } = journal.justEnded(ONE.hash) ?? {};
	assert.deepEqual([ending, cancelAt], ["replaced", ["fallback"]]);
	answer(BROKEN_OFF);
	await replacing;
});

scenario("a cancel that overtakes its transaction at the fallback is repeated there", async (fixture) => {
	const { relay, fallback, journal, submissions, cancels, request } = fixture;
	relay.isUnavailable = true;
	const begun = hanging(fallback);
	const submitting = submissions.submit(ONE.raw, request());
	const answer = await begun;
	fallback.onCall = async () => {
		answer(ACKNOWLEDGED);
		await submitting;
	};
	fallback.answers = [refusal("not found")];
	await assert.rejects(cancels.cancel(ONE.hash, request()), /cancels it there as soon as possible/);
	assert.deepEqual(journal.justEnded(ONE.hash)?.cancelAt, ["fallback"]);
});
