// Cancels by hash and soft cancels behind boost: who is told, what the client hears, and that nothing which was taken
// back anywhere can be handed over.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallResult } from "../../../../boost-proxy/domain/delivery.ts";
import { signedTransaction, testAccount } from "../../../support/txFactory.ts";
import { ACKNOWLEDGED, rejected, requestScene, TIMED_OUT } from "./requestScene.ts";

const OWNER = testAccount(0);
const YES: CallResult = { ok: true, result: true };
const NOT_FOUND: CallResult = {
	ok: false,
	error: { code: -32000, message: "transaction not found or no longer pending" },
};
const tx = (value = 0n) => signedTransaction({ nonce: 0n, value, by: OWNER });
const selfTransfer = (value = 0n) => signedTransaction({ nonce: 0n, to: OWNER.address, value, by: OWNER });
const SOFT = { path: "noreverts", search: "softCancellations=true" } as const;
type Scene = Awaited<ReturnType<typeof requestScene>>;

async function heldByRelay(scene: Scene, changed = {}) {
	const one = tx();
	await scene.submissions.submit(one.raw, scene.request(changed));
	return one;
}

async function heldByFallback(scene: Scene, changed = {}) {
	scene.relay.isOut = true;
	const one = await heldByRelay(scene, changed);
	return one;
}

async function heldByBoth(scene: Scene, changed = {}) {
	scene.relay.deliveries = [TIMED_OUT, ACKNOWLEDGED];
	const one = await heldByRelay(scene, changed);
	assert.equal(scene.journal.get(one.hash)?.holders.length, 2);
	return one;
}

test("by hash at a well relay: true, ended in the journal, the fallback hears nothing", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene);
	scene.relay.answers = [YES];
	assert.equal(await scene.cancels.cancel(one.hash, scene.request()), true);
	assert.deepEqual(scene.relay.called, [{ method: "eth_cancelTransaction", params: [one.hash] }]);
	assert.equal(scene.journal.ended(one.hash)?.ending, "cancelled");
	assert.deepEqual(scene.journal.ended(one.hash)?.untold, []);
	assert.equal(scene.fallback.called.length, 0);
	assert.equal(await scene.cancels.cancel(one.hash, scene.request()), true, "again by one who may");
});

test("a well relay that says no: its words, and it stays held", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene);
	scene.relay.answers = [NOT_FOUND];
	await assert.rejects(scene.cancels.cancel(one.hash, scene.request()), /not found or no longer pending/);
	assert.equal(scene.journal.get(one.hash)?.underWay, false);
});

test("held by both: both are told; one that is out is told when it is back", async () => {
	const both = await requestScene();
	const one = await heldByBoth(both);
	both.relay.answers = [YES];
	both.fallback.answers = [YES];
	assert.equal(await both.cancels.cancel(one.hash, both.request()), true);
	assert.equal(both.fallback.called.length, 1);
	assert.deepEqual(both.journal.ended(one.hash)?.untold, []);
	const half = await requestScene();
	await heldByBoth(half);
	half.relay.isOut = true;
	half.fallback.answers = [YES];
	assert.equal(await half.cancels.cancel(one.hash, half.request()), true);
	assert.deepEqual(half.journal.ended(one.hash)?.untold, ["relay"]);
});

test("the only holder is out: that is said, it goes to nobody else, and the holder is told when it is back", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene);
	scene.relay.isOut = true;
	const stranger = scene.request({ address: "198.51.100.7" });
	await assert.rejects(scene.cancels.cancel(one.hash, stranger), /not found or no longer pending/);
	assert.notEqual(scene.journal.get(one.hash), null, "a stranger ended it");
	await assert.rejects(scene.cancels.cancel(one.hash, scene.request()), /^RpcError: no relay available/);
	assert.equal(scene.journal.ended(one.hash)?.ending, "cancelled");
	assert.deepEqual(scene.journal.ended(one.hash)?.untold, ["relay"]);
	assert.equal(await scene.cancels.cancel(one.hash, scene.request()), true, "again by one who may");
});

test("one that nobody holds is taken back at once; one that is mined is not pending any more", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene);
	await scene.journal.notHeld(one.hash, "relay");
	assert.equal(await scene.cancels.cancel(one.hash, scene.request()), true);
	const other = signedTransaction({ nonce: 1n, by: OWNER });
	await scene.submissions.submit(other.raw, scene.request());
	await scene.journal.end(other.hash, "mined");
	scene.relay.isOut = true;
	await assert.rejects(scene.cancels.cancel(other.hash, scene.request()), /not found or no longer pending/);
});

test("no verdict from who holds it: it may be taken back there, so it is ended and handed to no other", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene);
	scene.relay.answers = [null];
	await assert.rejects(scene.cancels.cancel(one.hash, scene.request()), /no relay available/);
	assert.equal(scene.journal.ended(one.hash)?.ending, "cancelled");
	assert.deepEqual(scene.journal.ended(one.hash)?.untold, ["relay"]);
});

for (const [name, changed] of [
	["another address", { address: "198.51.100.7" }],
	[
		"a web page",
		{
			asker: {
				...{ address: "192.0.2.1", signer: null, origin: "https://evil.example", signature: null },
				life: { bytes: 0, onGone: () => {} },
			},
		},
	],
] as const) {
	test(`${name} may not cancel what the fallback holds, with the relay's words`, async () => {
		const scene = await requestScene();
		const one = await heldByFallback(scene);
		await assert.rejects(
			scene.cancels.cancel(one.hash, scene.request(changed)),
			/^RpcError: transaction not found or no longer pending$/,
		);
		assert.equal(scene.fallback.called.length, 0);
	});
}

test("the sender's signature may, from anywhere", async () => {
	const scene = await requestScene();
	const one = await heldByFallback(scene);
	scene.fallback.answers = [YES];
	const life = { bytes: 0, onGone: () => {} };
	const asker = { address: "198.51.100.7", signer: OWNER.address, origin: null, signature: null, life };
	assert.equal(await scene.cancels.cancel(one.hash, scene.request({ asker })), true);
});

test("a relay that does not know the client: only the journal's own may be cancelled, by the rule here", async () => {
	const scene = await requestScene({ relayKnowsClient: false });
	const one = await heldByRelay(scene);
	await assert.rejects(
		scene.cancels.cancel(one.hash, scene.request({ address: "198.51.100.7" })),
		/not found/,
	);
	await assert.rejects(scene.cancels.cancel(`0x${"12".repeat(32)}`, scene.request()), /not found/);
	assert.equal(scene.relay.called.length, 0);
	scene.relay.answers = [YES];
	assert.equal(await scene.cancels.cancel(one.hash, scene.request()), true);
});

test("flashbots holds it: told how to take it back", async () => {
	const scene = await requestScene({ dialect: "flashbots" });
	const one = await heldByFallback(scene);
	await assert.rejects(
		scene.cancels.cancel(one.hash, scene.request()),
		/^RpcError: held by the fallback: send a self-transfer with nonce 0$/,
	);
	assert.notEqual(scene.journal.get(one.hash), null);
});

test("flashbots holds it too: the relay takes it back for good, and the self-transfer goes where it still is", async () => {
	const scene = await requestScene({ dialect: "flashbots" });
	const one = await heldByBoth(scene);
	scene.relay.answers = [YES];
	await assert.rejects(scene.cancels.cancel(one.hash, scene.request()), /send a self-transfer with nonce 0/);
	assert.deepEqual(scene.journal.get(one.hash)?.holders, ["fallback"]);
	const { presence, epoch } = scene.journal.rows.live(one.hash)?.at.relay ?? {};
	assert.deepEqual([presence, epoch], ["refused", null], "it may not be handed back to the relay");
	const before = scene.relay.sent.length;
	await scene.submissions.submit(selfTransfer().raw, scene.request());
	assert.equal(scene.relay.sent.length, before);
	assert.equal(scene.fallback.hashes.at(-1), selfTransfer().hash);
});

test("a hash that the journal does not hold is the relay's to judge; while that is out it can't be said", async () => {
	const scene = await requestScene();
	scene.relay.answers = [YES];
	assert.equal(await scene.cancels.cancel(`0x${"12".repeat(32)}`, scene.request()), true);
	scene.relay.isOut = true;
	await assert.rejects(scene.cancels.cancel(`0x${"12".repeat(32)}`, scene.request()), /no relay available/);
});

test("a soft cancel at a well relay ends the earlier one, is never journalled, and is known by its bytes", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene, SOFT);
	const cancel = selfTransfer();
	const { cancels } = await scene.submissions.submit(cancel.raw, scene.request());
	assert.equal(cancels, true);
	assert.equal(scene.journal.ended(one.hash)?.ending, "cancelled");
	assert.equal(scene.journal.get(cancel.hash), null);
	assert.equal(scene.journal.depth, 0);
	scene.relay.isOut = true;
	assert.equal((await scene.submissions.submit(cancel.raw, scene.request())).cancels, true);
	assert.equal((await scene.submissions.submit(one.raw, scene.request())).tx.hash, one.hash);
	assert.equal(scene.fallback.sent.length, 0, "neither may be revived");
});

test("a self-transfer is an ordinary replacement where the earlier one allows no soft cancel", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene, { path: "fast", search: "softCancellations=true" });
	const { cancels } = await scene.submissions.submit(selfTransfer().raw, scene.request());
	assert.equal(cancels, false);
	assert.equal(scene.journal.ended(one.hash)?.ending, "replaced");
});

test("a soft cancel that the relay refuses (it is mined) is that verdict, and ends nothing", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene, SOFT);
	scene.relay.deliveries = [rejected("nonce too low: next nonce 1, tx nonce 0")];
	await assert.rejects(scene.submissions.submit(selfTransfer().raw, scene.request()), /nonce too low/);
	assert.notEqual(scene.journal.get(one.hash), null);
});

test("a soft cancel during an outage goes to the fallback that holds it, with the flag that makes it free there", async () => {
	const scene = await requestScene();
	const one = await heldByFallback(scene, SOFT);
	await scene.submissions.submit(selfTransfer().raw, scene.request());
	assert.equal(scene.fallback.sent[1]?.tx.search, SOFT.search);
	assert.equal(scene.fallback.sent[1]?.tx.path, "noreverts");
	assert.equal(scene.journal.ended(one.hash)?.ending, "cancelled");
});

test("a soft cancel is not sent where it would cost: -32603 with the reason", async () => {
	const scene = await requestScene({ dialect: "plain" });
	const one = await heldByFallback(scene, SOFT);
	await assert.rejects(
		scene.submissions.submit(selfTransfer().raw, scene.request()),
		/^RpcError: no relay available: the fallback holds it and knows no cancel without cost$/,
	);
	assert.deepEqual(scene.fallback.hashes, [one.hash]);
	assert.notEqual(scene.journal.get(one.hash), null);
});

test("a soft cancel without a verdict: the earlier one goes nowhere else, and the holder is told when it is back", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene, SOFT);
	scene.relay.deliveries = [TIMED_OUT];
	await assert.rejects(scene.submissions.submit(selfTransfer().raw, scene.request()), /no relay available/);
	assert.equal(scene.journal.ended(one.hash)?.ending, "cancelled");
	assert.deepEqual(scene.journal.ended(one.hash)?.untold, ["relay"]);
	assert.equal(scene.fallback.sent.length, 0);
});

test("while a cancel is under way nobody else sees to the entry", async () => {
	const scene = await requestScene();
	const one = await heldByRelay(scene, SOFT);
	let seen: boolean | undefined;
	scene.relay.deliveries = [
		async () => {
			seen = scene.journal.get(one.hash)?.underWay;
			return ACKNOWLEDGED;
		},
	];
	await scene.submissions.submit(selfTransfer().raw, scene.request());
	assert.equal(seen, true);
});
