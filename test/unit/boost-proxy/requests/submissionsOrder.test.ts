// How transactions of one account go together: replacements, who is asked first, what stands before, and turns.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delivery } from "../../../../boost-proxy/domain/request.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { ACKNOWLEDGED, rejected, requestFixture, TIMED_OUT } from "./requestFixture.ts";

const tx = (nonce: number, value = 0n, index = 0) =>
	signedTransaction({ nonce: BigInt(nonce), value, by: testAccount(index) });
const HOLDERS = (entry: { readonly holders: readonly string[] } | null) => entry?.holders;

test("a replacement ends what it replaces, and whoever else had that is owed it", async () => {
	const { submissions, journal, relay, fallback, request, wakes } = await requestFixture();
	relay.deliveries = [TIMED_OUT, ACKNOWLEDGED];
	const [old, next] = [tx(0), tx(0, 1n)];
	await submissions.submit(old.raw, request());
	assert.deepEqual([...(HOLDERS(journal.get(old.hash)) ?? [])].sort(), ["fallback", "relay"]);
	await submissions.submit(next.raw, request());
	assert.equal(journal.ended(old.hash)?.ending, "replaced");
	assert.deepEqual(HOLDERS(journal.get(next.hash)), ["relay"]);
	assert.deepEqual(journal.get(next.hash)?.replacesAt, ["fallback"]);
	assert.deepEqual(
		journal.ended(old.hash)?.untold,
		["fallback"],
		"a cancel of the next one must not revive it",
	);
	assert.deepEqual(fallback.hashes, [old.hash]);
	assert.ok(wakes() > 0, "nobody sees to what is owed");
});

test("a replacement that is refused leaves what it would have replaced", async () => {
	const { submissions, journal, relay, request } = await requestFixture();
	const [old, next] = [tx(0), tx(0, 1n)];
	await submissions.submit(old.raw, request());
	relay.deliveries = [rejected("replacement transaction underpriced")];
	await assert.rejects(submissions.submit(next.raw, request()), /underpriced/);
	assert.deepEqual(HOLDERS(journal.get(old.hash)), ["relay"]);
	assert.equal(journal.get(next.hash), null);
});

test("an account stays with the fallback while that alone has its unmined ones, the nonce's holder first", async () => {
	const { submissions, journal, relay, fallback, request } = await requestFixture();
	relay.isUnavailable = true;
	await submissions.submit(tx(0).raw, request());
	relay.isUnavailable = false;
	await submissions.submit(tx(1).raw, request());
	await submissions.submit(tx(0, 1n).raw, request());
	assert.equal(relay.sent.length, 0);
	assert.equal(fallback.sent.length, 3);
	await submissions.submit(tx(0, 0n, 7).raw, request());
	assert.equal(relay.sent.length, 1, "another account goes to the relay");
	for (const entry of [...journal.open()]) await journal.end(entry.hash, "mined");
	await submissions.submit(tx(2).raw, request());
	assert.equal(relay.sent.length, 2, "once they are mined it is the relay's again");
});

test("an account that stays with the fallback goes to the relay when the fallback is out", async () => {
	const { submissions, relay, fallback, request } = await requestFixture();
	relay.isUnavailable = true;
	await submissions.submit(tx(0).raw, request());
	relay.isUnavailable = false;
	fallback.isUnavailable = true;
	await submissions.submit(tx(1).raw, request());
	assert.equal(relay.sent.length, 1);
});

test("while the relay is out, what stands before it at the relay is brought first", async () => {
	const { submissions, journal, relay, fallback, request } = await requestFixture();
	const [first, second] = [tx(0), tx(1)];
	await submissions.submit(first.raw, request());
	relay.isUnavailable = true;
	await submissions.submit(second.raw, request());
	assert.deepEqual(fallback.hashes, [first.hash, second.hash]);
	assert.deepEqual(HOLDERS(journal.get(first.hash)), ["relay", "fallback"]);
});

test("two of one nonce at the same time go one after the other", async () => {
	const { submissions, journal, relay, request } = await requestFixture();
	let answer = (_: Delivery): void => {};
	relay.deliveries = [() => new Promise((resolve) => (answer = resolve)), ACKNOWLEDGED];
	const [old, next] = [tx(0), tx(0, 1n)];
	const both = [submissions.submit(old.raw, request()), submissions.submit(next.raw, request())];
	while (relay.sent.length === 0) await Promise.resolve();
	assert.equal(relay.sent.length, 1);
	answer(ACKNOWLEDGED);
	await Promise.all(both);
	assert.equal(journal.ended(old.hash)?.ending, "replaced");
	assert.deepEqual(relay.hashes, [old.hash, next.hash]);
});
