// A cancel that boost sends for an owner may overtake the transaction. The relay then ends the
// transaction before it comes, for those who have cancelled it.

import assert from "node:assert/strict";
import type { CancelRequest, PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import {
	accepted,
	cancels,
	DEAR,
	known,
	SENDER,
	STORE_OUT,
	type StagesFixture,
	scenario,
	soft,
	toSelf,
} from "./stagesFixture.ts";

const DAY_MS = 24 * 3_600_000;
const [OWNER, OTHER] = ["ip-owner", "ip-other"];
const TX = privateTransaction({ submitterAddress: OWNER });

/** The transaction as boost names it in its cancel. */
function carriedOf({ tx }: PrivateTransaction): CancelRequest["carried"] {
	const { hash, from, to, nonce, gasLimit: gas, value } = tx;
	return { hash, from, to: to ?? "", nonce: String(nonce), gas: String(gas), value: String(value) };
}

/** Boost's cancel for `by`: an address, or the sender's signature. */
function cancelFor(fixture: StagesFixture, by: string | null, tx = TX) {
	const requester = by === SENDER ? { address: null, signer: SENDER } : { address: by, signer: null };
	return fixture.pipeline.cancel({ hash: tx.tx.hash, ...requester, carried: carriedOf(tx) });
}

/** A client submits it; `again`: although others have cancelled it. */
function submit(fixture: StagesFixture, address: string, again = false) {
	const { tx, receivedAt: _, owners: __, sharing: ___, ...options } = TX;
	const request = { ...options, submitterAddress: address, address, again: again ? tx.hash : null };
	return fixture.pipeline.submit({ ...request, raw: tx.raw, trace: null });
}

/** The outcome of a submission in short. */
async function comes(fixture: StagesFixture, address: string, again = false): Promise<string> {
	const answer = await submit(fixture, address, again);
	await fixture.quiet();
	const sent = fixture.builders.take().length > 0 ? ", sent" : "";
	return (answer.outcome === "rejected" ? String(answer.rejection.code) : answer.outcome) + sent;
}

const ENDS: readonly [
	string,
	{ readonly by: string; readonly owner: string; readonly other: string; readonly again: string },
][] = [
	["an owner's address", { by: OWNER, owner: "known", other: "CANCELLED_BY_OTHER", again: "accepted, sent" }],
	["the sender's signature", { by: SENDER, owner: "known", other: "known", again: "known" }],
];

for (const [name, { by, owner, other, again }] of ENDS) {
	scenario(
		`cancelled by ${name} before it comes, it is never sent for them, for seven days`,
		async (fixture) => {
			assert.equal(await cancelFor(fixture, by), "cancelled");
			assert.equal(await cancelFor(fixture, by), "cancelled", "a repeated cancel succeeds");
			assert.equal(await comes(fixture, OWNER), owner);
			assert.deepEqual([fixture.pool.size, fixture.records.size], [0, 0], "it takes no memory");
			const next = await fixture.restart();
			await next.pass(6 * DAY_MS);
			assert.equal(await comes(next, OWNER), owner);
			assert.equal(await comes(next, OTHER), other);
			assert.equal(await comes(next, OTHER, true), again);
			const { to, gas, nonce, value } = (await next.store.archived(TX.tx.hash)) ?? {};
			const { tx } = TX;
			assert.deepEqual([to, gas, nonce, value], [tx.to, ...[tx.gasLimit, tx.nonce, tx.value].map(String)]);
		},
	);
}

scenario("what is cancelled while it is being admitted is taken back", async (fixture) => {
	fixture.disk.hold = true;
	const submitted = submit(fixture, OWNER);
	const cancelled = cancelFor(fixture, OWNER);
	await fixture.quiet();
	assert.equal(fixture.pool.size, 1);
	fixture.disk.hold = false;
	fixture.disk.finish(true);
	assert.deepEqual(await submitted, accepted(TX));
	assert.equal(await cancelled, "cancelled");
	await fixture.quiet();
	assert.deepEqual([fixture.stage(TX), fixture.pool.size], ["CANCELLED", 0]);
});

const REFUSED: readonly [string, Partial<CancelRequest>][] = [
	["a client names it that is not boost", { carried: undefined }],
	["a web page cancels it, which owns nothing", { address: null }],
	["another key than the sender's signs", { address: null, signer: OTHER }],
];
for (const [name, request] of REFUSED) {
	scenario(`nothing is ended if ${name}`, async (fixture) => {
		const given = { hash: TX.tx.hash, address: OWNER, signer: null, carried: carriedOf(TX), ...request };
		assert.equal(await fixture.pipeline.cancel(given), "notPending");
		assert.equal(await comes(fixture, OWNER), "accepted, sent");
	});
}

scenario("a failing disk ends nothing, and says so", async (fixture) => {
	fixture.disk.broken = true;
	await assert.rejects(cancelFor(fixture, OWNER), STORE_OUT);
	fixture.disk.broken = false;
	assert.equal(await comes(fixture, OWNER), "accepted, sent");
});

scenario("a replacement ends it for everybody, as any cancelled transaction", async (fixture) => {
	await cancelFor(fixture, OWNER);
	const later = privateTransaction({ value: 7 });
	assert.deepEqual(await fixture.submit(later), accepted(later));
	assert.equal(await comes(fixture, OTHER, true), "known, sent");
});

/** The sender's later transaction of the nonce, which ends the first one, as boost sends it. */
function submitEnding(
	fixture: StagesFixture,
	later: PrivateTransaction,
	how: "cancels" | "replaces",
	...ended: readonly PrivateTransaction[]
) {
	const { tx, receivedAt: _, owners: __, sharing: ___, ...options } = later;
	const client = { submitterAddress: OWNER, address: OWNER, again: null, trace: null };
	const carried = (ended.length === 0 ? [TX] : ended).map((one) => carriedOf(one) ?? assert.fail());
	const ends = { how, carried };
	return fixture.pipeline.submit({ ...options, ...client, raw: tx.raw, ends });
}

scenario("a soft cancel ends it before it comes, and is not sent itself", async (fixture) => {
	assert.deepEqual(await submitEnding(fixture, toSelf(), "cancels"), cancels(toSelf()));
	assert.deepEqual(await submitEnding(fixture, toSelf(), "cancels"), known(toSelf()), "sent again");
	assert.equal(await comes(fixture, OWNER), "known");
	assert.equal(await comes(fixture, OTHER, true), "known");
	assert.deepEqual([fixture.stage(toSelf()), fixture.pool.size], ["CANCELLED", 0]);
});

scenario("a replacement ends it before it comes, even if that has ended too", async (fixture) => {
	const later = privateTransaction(DEAR);
	assert.deepEqual(await submitEnding(fixture, later, "replaces"), accepted(later));
	assert.equal(await cancelFor(fixture, SENDER, later), "cancelled");
	await fixture.quiet();
	fixture.builders.take();
	assert.equal(await comes(fixture, OWNER), "known");
	assert.equal((await fixture.store.archived(TX.tx.hash))?.stage, "REPLACED");
	assert.equal(fixture.pool.size, 0);
});

scenario(
	"a soft cancel of what is pending also ends a replacement that is still to come",
	async (fixture) => {
		const pending = soft();
		await fixture.take(pending);
		const late = soft({ ...DEAR, value: 3 });
		assert.deepEqual(await submitEnding(fixture, toSelf(), "cancels", pending, late), cancels(toSelf()));
		assert.deepEqual(await fixture.submit(late), known(late));
		assert.deepEqual([fixture.stage(pending), fixture.pool.size], ["CANCELLED", 0]);
	},
);

scenario("on a failing disk a replacement is not accepted, and ends nothing", async (fixture) => {
	const later = privateTransaction(DEAR);
	fixture.disk.broken = true;
	await assert.rejects(submitEnding(fixture, later, "replaces"), STORE_OUT);
	fixture.disk.broken = false;
	assert.equal(fixture.pool.size, 0);
	assert.equal(await comes(fixture, OWNER), "accepted, sent");
});

const NOT_ENDED: readonly [string, PrivateTransaction, "cancels" | "replaces", PrivateTransaction][] = [
	["a self-transfer that replaces it is mined", toSelf(), "replaces", TX],
	["the named one has another nonce", toSelf(), "cancels", privateTransaction({ nonce: 1 })],
	["a transaction that is no self-transfer cancels nothing", privateTransaction(DEAR), "cancels", TX],
];
for (const [name, later, how, ended] of NOT_ENDED) {
	scenario(`it is an ordinary transaction: ${name}`, async (fixture) => {
		assert.deepEqual(await submitEnding(fixture, later, how, ended), accepted(later));
		await fixture.quiet();
		assert.equal(fixture.stage(later), "BROADCAST");
	});
}
