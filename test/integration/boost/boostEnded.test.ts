// Tests transactions that ended before a restart of boost, which has them on disk alone. It answers
// about them as before the restart, also while the relay is down and nobody else can. It revives
// nothing.

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import type { WireAnswer, WireStatus } from "../../support/relayClient.ts";
import type { Signed } from "../../support/relayFixture.ts";

const HERE = { "x-forwarded-for": "198.51.100.1" };
const THERE = { "x-forwarded-for": "198.51.100.2" };
const SOFT = "/noreverts?softCancellations=true";

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture({ boost: { TRUST_PROXY: "1" } });
});
after(() => fixture?.stop());

const send = (boost: BoostClient, { raw }: Signed, path = "/fast") =>
	boost.result("eth_sendRawTransaction", [raw], { path, headers: HERE });
const cancel = async (boost: BoostClient, { hash }: Signed, headers = HERE) => {
	const { json } = await boost.call("eth_cancelTransaction", [hash], { headers });
	const { result, error } = json as WireAnswer;
	return result ?? error;
};
const found = (boost: BoostClient, { hash }: Signed) =>
	boost.call("eth_getTransactionByHash", [hash]).then(({ json }) => (json as WireAnswer).result);
const statusAt = async (boost: BoostClient, { hash }: Signed) =>
	(await boost.get(`/tx/${hash}`)).json as WireStatus;

it("after a restart, with the relay down", async () => {
	const env = { DATA_DIR: mkdtempSync(join(fixture.folder, "ended-")) };
	const first = await fixture.startBoost({ env });
	const actors = await Promise.all([0, 1, 2, 3].map(() => fixture.users.actor()));
	const [cancelled, old, softly, mined] = actors.map((actor) => actor.sign({ nonce: 0 })) as [
		...[Signed, Signed, Signed, Signed],
	];
	const newer = actors[1]?.sign({
		nonce: 0,
		maxFeePerGas: 200n * 10n ** 9n,
		maxPriorityFeePerGas: 20n * 10n ** 9n,
	}) as Signed;
	const selfTransfer = actors[2]?.sign({ nonce: 0, to: actors[2].address, value: 0n }) as Signed;
	await send(first, cancelled);
	assert.equal(await cancel(first, cancelled), true);
	await send(first, old);
	await send(first, newer);
	await send(first, softly, SOFT);
	await send(first, selfTransfer, SOFT);
	await send(first, mined);
	for (const tx of [newer, mined]) await fixture.users.publish(tx);
	await fixture.users.passBlock();
	await first.reaches("all has ended", ({ journal }) => journal?.depth === 0);
	await first.stop();

	const second = await fixture.startBoost({ env });
	await fixture.fails({ kind: "refuse" }, second);
	const before = fixture.wires.fallback.requests().length;
	for (const [tx, stage] of [
		[cancelled, "CANCELLED"],
		[old, "REPLACED"],
		[softly, "CANCELLED"],
		[selfTransfer, "CANCELLED"],
		[mined, "INCLUDED"],
	] as const) {
		assert.equal((await statusAt(second, tx)).stage, stage);
		assert.equal(await send(second, tx), tx.hash, "its bytes again");
		assert.equal((await found(second, tx)) === null, tx !== mined, stage);
	}
	for (const tx of [cancelled, softly]) {
		assert.equal(await cancel(second, tx), true, "again by its owner");
		assert.match(JSON.stringify(await cancel(second, tx, THERE)), /no relay available|no longer pending/);
	}
	const sent = fixture.wires.fallback
		.requests()
		.slice(before)
		.flatMap(({ calls }) => calls.filter(({ method }) => method === "eth_sendRawTransaction"));
	assert.deepEqual(sent, [], "nothing is revived");
	await fixture.recovers(second);
	for (const tx of [cancelled, softly]) assert.equal((await statusAt(second, tx)).stage, "CANCELLED");
});
