// Cancels by hash and soft cancels behind boost: who is told, what the client hears, and that nothing which was taken
// back anywhere can be handed over.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallResult } from "../../../../boost-proxy/domain/request.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { ACKNOWLEDGED, rejected, requestFixture, TIMED_OUT } from "./requestFixture.ts";

const OWNER = testAccount(0);
const YES: CallResult = { ok: true, result: true };
const NOT_FOUND: CallResult = {
	ok: false,
	error: { code: -32000, message: "transaction not found or no longer pending" },
};
const tx = (value = 0n) => signedTransaction({ nonce: 0n, value, by: OWNER });
const selfTransfer = (value = 0n) => signedTransaction({ nonce: 0n, to: OWNER.address, value, by: OWNER });
const SOFT = { path: "noreverts", search: "softCancellations=true" } as const;
type Fixture = Awaited<ReturnType<typeof requestFixture>>;

async function heldByRelay(fixture: Fixture, changed = {}) {
	const one = tx();
	await fixture.submissions.submit(one.raw, fixture.request(changed));
	return one;
}

async function heldByFallback(fixture: Fixture, changed = {}) {
	fixture.relay.isUnavailable = true;
	const one = await heldByRelay(fixture, changed);
	return one;
}

async function heldByBoth(fixture: Fixture, changed = {}) {
	fixture.relay.deliveries = [TIMED_OUT, ACKNOWLEDGED];
	const one = await heldByRelay(fixture, changed);
	assert.equal(fixture.journal.get(one.hash)?.holders.length, 2);
	return one;
}

test("by hash at a well relay: true, ended in the journal, the fallback hears nothing", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture);
	fixture.relay.answers = [YES];
	assert.equal(await fixture.cancels.cancel(one.hash, fixture.request()), true);
	assert.deepEqual(fixture.relay.called, [{ method: "eth_cancelTransaction", params: [one.hash] }]);
	assert.equal(fixture.journal.ended(one.hash)?.ending, "cancelled");
	assert.deepEqual(fixture.journal.ended(one.hash)?.untold, []);
	assert.equal(fixture.fallback.called.length, 0);
	assert.equal(await fixture.cancels.cancel(one.hash, fixture.request()), true, "again by one who may");
});

test("a well relay that says no: its words, and it stays held", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture);
	fixture.relay.answers = [NOT_FOUND];
	await assert.rejects(fixture.cancels.cancel(one.hash, fixture.request()), /not found or no longer pending/);
	assert.equal(fixture.journal.get(one.hash)?.underWay, false);
});

test("held by both: both are told; one that is out is told when it is back", async () => {
	const both = await requestFixture();
	const one = await heldByBoth(both);
	both.relay.answers = [YES];
	both.fallback.answers = [YES];
	assert.equal(await both.cancels.cancel(one.hash, both.request()), true);
	assert.equal(both.fallback.called.length, 1);
	assert.deepEqual(both.journal.ended(one.hash)?.untold, []);
	const half = await requestFixture();
	await heldByBoth(half);
	half.relay.isUnavailable = true;
	half.fallback.answers = [YES];
	assert.equal(await half.cancels.cancel(one.hash, half.request()), true);
	assert.deepEqual(half.journal.ended(one.hash)?.untold, ["relay"]);
});

test("the only holder is out: that is said, it goes to nobody else, and the holder is told when it is back", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture);
	fixture.relay.isUnavailable = true;
	const stranger = fixture.request({ address: "198.51.100.7" });
	await assert.rejects(fixture.cancels.cancel(one.hash, stranger), /not found or no longer pending/);
	assert.notEqual(fixture.journal.get(one.hash), null, "a stranger ended it");
	await assert.rejects(fixture.cancels.cancel(one.hash, fixture.request()), /^RpcError: no relay available/);
	assert.equal(fixture.journal.ended(one.hash)?.ending, "cancelled");
	assert.deepEqual(fixture.journal.ended(one.hash)?.untold, ["relay"]);
	assert.equal(await fixture.cancels.cancel(one.hash, fixture.request()), true, "again by one who may");
});

test("one that nobody holds is taken back at once; one that is mined is not pending any more", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture);
	await fixture.journal.notHeld(one.hash, "relay");
	assert.equal(await fixture.cancels.cancel(one.hash, fixture.request()), true);
	const other = signedTransaction({ nonce: 1n, by: OWNER });
	await fixture.submissions.submit(other.raw, fixture.request());
	await fixture.journal.end(other.hash, "mined");
	fixture.relay.isUnavailable = true;
	await assert.rejects(
		fixture.cancels.cancel(other.hash, fixture.request()),
		/not found or no longer pending/,
	);
});

test("no verdict from who holds it: it may be taken back there, so it is ended and handed to no other", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture);
	fixture.relay.answers = [null];
	await assert.rejects(fixture.cancels.cancel(one.hash, fixture.request()), /no relay available/);
	assert.equal(fixture.journal.ended(one.hash)?.ending, "cancelled");
	assert.deepEqual(fixture.journal.ended(one.hash)?.untold, ["relay"]);
});

for (const [name, changed] of [
	["another address", { address: "198.51.100.7" }],
	[
		"a web page",
		{
			caller: {
				...{ address: "192.0.2.1", signer: null, origin: "https://evil.example", signature: null },
				life: { bytes: 0, onGone: () => {} },
			},
		},
	],
] as const) {
	test(`${name} may not cancel what the fallback holds, with the relay's words`, async () => {
		const fixture = await requestFixture();
		const one = await heldByFallback(fixture);
		await assert.rejects(
			fixture.cancels.cancel(one.hash, fixture.request(changed)),
			/^RpcError: transaction not found or no longer pending$/,
		);
		assert.equal(fixture.fallback.called.length, 0);
	});
}

test("the sender's signature may, from anywhere", async () => {
	const fixture = await requestFixture();
	const one = await heldByFallback(fixture);
	fixture.fallback.answers = [YES];
	const life = { bytes: 0, onGone: () => {} };
	const caller = { address: "198.51.100.7", signer: OWNER.address, origin: null, signature: null, life };
	assert.equal(await fixture.cancels.cancel(one.hash, fixture.request({ caller })), true);
});

test("a relay that does not know the client: only the journal's own may be cancelled, by the rule here", async () => {
	const fixture = await requestFixture({ relayKnowsClient: false });
	const one = await heldByRelay(fixture);
	await assert.rejects(
		fixture.cancels.cancel(one.hash, fixture.request({ address: "198.51.100.7" })),
		/not found/,
	);
	await assert.rejects(fixture.cancels.cancel(`0x${"12".repeat(32)}`, fixture.request()), /not found/);
	assert.equal(fixture.relay.called.length, 0);
	fixture.relay.answers = [YES];
	assert.equal(await fixture.cancels.cancel(one.hash, fixture.request()), true);
});

test("flashbots holds it: told how to take it back", async () => {
	const fixture = await requestFixture({ dialect: "flashbots" });
	const one = await heldByFallback(fixture);
	await assert.rejects(
		fixture.cancels.cancel(one.hash, fixture.request()),
		/^RpcError: held by the fallback: send a self-transfer with nonce 0$/,
	);
	assert.notEqual(fixture.journal.get(one.hash), null);
});

test("flashbots holds it too: the relay takes it back for good, and the self-transfer goes where it still is", async () => {
	const fixture = await requestFixture({ dialect: "flashbots" });
	const one = await heldByBoth(fixture);
	fixture.relay.answers = [YES];
	await assert.rejects(
		fixture.cancels.cancel(one.hash, fixture.request()),
		/send a self-transfer with nonce 0/,
	);
	assert.deepEqual(fixture.journal.get(one.hash)?.holders, ["fallback"]);
	const { presence, epoch } = fixture.journal.rows.live(one.hash)?.at.relay ?? {};
	assert.deepEqual([presence, epoch], ["refused", null], "it may not be handed back to the relay");
	const before = fixture.relay.sent.length;
	await fixture.submissions.submit(selfTransfer().raw, fixture.request());
	assert.equal(fixture.relay.sent.length, before);
	assert.equal(fixture.fallback.hashes.at(-1), selfTransfer().hash);
});

test("a hash that the journal does not hold is the relay's to judge; while that is out it can't be said", async () => {
	const fixture = await requestFixture();
	fixture.relay.answers = [YES];
	assert.equal(await fixture.cancels.cancel(`0x${"12".repeat(32)}`, fixture.request()), true);
	fixture.relay.isUnavailable = true;
	await assert.rejects(
		fixture.cancels.cancel(`0x${"12".repeat(32)}`, fixture.request()),
		/no relay available/,
	);
});

test("a soft cancel at a well relay ends the earlier one, is never journalled, and is known by its bytes", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture, SOFT);
	const cancel = selfTransfer();
	const { cancels } = await fixture.submissions.submit(cancel.raw, fixture.request());
	assert.equal(cancels, true);
	assert.equal(fixture.journal.ended(one.hash)?.ending, "cancelled");
	assert.equal(fixture.journal.get(cancel.hash), null);
	assert.equal(fixture.journal.depth, 0);
	fixture.relay.isUnavailable = true;
	assert.equal((await fixture.submissions.submit(cancel.raw, fixture.request())).cancels, true);
	assert.equal((await fixture.submissions.submit(one.raw, fixture.request())).tx.hash, one.hash);
	assert.equal(fixture.fallback.sent.length, 0, "neither may be revived");
});

test("a self-transfer is an ordinary replacement where the earlier one allows no soft cancel", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture, { path: "fast", search: "softCancellations=true" });
	const { cancels } = await fixture.submissions.submit(selfTransfer().raw, fixture.request());
	assert.equal(cancels, false);
	assert.equal(fixture.journal.ended(one.hash)?.ending, "replaced");
});

test("a soft cancel that the relay refuses (it is mined) is that verdict, and ends nothing", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture, SOFT);
	fixture.relay.deliveries = [rejected("nonce too low: next nonce 1, tx nonce 0")];
	await assert.rejects(fixture.submissions.submit(selfTransfer().raw, fixture.request()), /nonce too low/);
	assert.notEqual(fixture.journal.get(one.hash), null);
});

test("a soft cancel during an outage goes to the fallback that holds it, with the flag that makes it free there", async () => {
	const fixture = await requestFixture();
	const one = await heldByFallback(fixture, SOFT);
	await fixture.submissions.submit(selfTransfer().raw, fixture.request());
	assert.equal(fixture.fallback.sent[1]?.tx.search, SOFT.search);
	assert.equal(fixture.fallback.sent[1]?.tx.path, "noreverts");
	assert.equal(fixture.journal.ended(one.hash)?.ending, "cancelled");
});

test("a soft cancel is not sent where it would cost: -32603 with the reason", async () => {
	const fixture = await requestFixture({ dialect: "plain" });
	const one = await heldByFallback(fixture, SOFT);
	await assert.rejects(
		fixture.submissions.submit(selfTransfer().raw, fixture.request()),
		/^RpcError: no relay available: the fallback holds it and knows no cancel without cost$/,
	);
	assert.deepEqual(fixture.fallback.hashes, [one.hash]);
	assert.notEqual(fixture.journal.get(one.hash), null);
});

test("a soft cancel without a verdict: the earlier one goes nowhere else, and the holder is told when it is back", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture, SOFT);
	fixture.relay.deliveries = [TIMED_OUT];
	await assert.rejects(
		fixture.submissions.submit(selfTransfer().raw, fixture.request()),
		/no relay available/,
	);
	assert.equal(fixture.journal.ended(one.hash)?.ending, "cancelled");
	assert.deepEqual(fixture.journal.ended(one.hash)?.untold, ["relay"]);
	assert.equal(fixture.fallback.sent.length, 0);
});

test("while a cancel is under way nobody else sees to the entry", async () => {
	const fixture = await requestFixture();
	const one = await heldByRelay(fixture, SOFT);
	let seen: boolean | undefined;
	fixture.relay.deliveries = [
		async () => {
			seen = fixture.journal.get(one.hash)?.underWay;
			return ACKNOWLEDGED;
		},
	];
	await fixture.submissions.submit(selfTransfer().raw, fixture.request());
	assert.equal(seen, true);
});
