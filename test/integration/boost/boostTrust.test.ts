// What may end a transaction that boost has acknowledged: its owner alone, by what he signed for this chain. Neither what he
// signed elsewhere nor a fallback's word does.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Clock, systemClock } from "../../../shared/clock.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";
import { startRecordingFallback } from "../../support/upstreams.ts";

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture();
});
after(() => fixture?.stop());

async function stage(hash: string): Promise<unknown> {
	return ((await fixture.boost.get(`/tx/${hash}`)).json as { stage?: unknown }).stage;
}

const SOFT = { path: "/noreverts?softCancellations=true" };

describe("a self-transfer that was signed for another chain with the same nonce", () => {
	for (const [name, isOut] of [
		["while the relay is out", true],
		["while the relay is well", false],
	] as const) {
		it(`ends nothing ${name}, whoever brings it; the one for this chain does`, async () => {
			const { sign, address } = await fixture.users.actor();
			const tx = sign({ gasLimit: 21_000n });
			assert.equal(await fixture.boost.result("eth_sendRawTransaction", [tx.raw], SOFT), tx.hash);
			if (isOut) await fixture.goesOut();
			for (const type of [0, 2] as const) {
				const elsewhere = sign({ type, to: address, chainId: 11_155_111n, gasLimit: 21_000n });
				const { json } = await fixture.boost.call("eth_sendRawTransaction", [elsewhere.raw]);
				const { message } = (json as WireAnswer).error ?? {};
				assert.equal(message, "invalid chain id for signer: have 11155111 want 31337");
			}
			const found = (await fixture.boost.result("eth_getTransactionByHash", [tx.hash])) as { hash?: string };
			assert.equal(found.hash, tx.hash);
			await fixture.comesBack();
			await until("it is where it was", async () => (await stage(tx.hash)) === "BROADCAST");
			const cancel = sign({ to: address, gasLimit: 21_000n });
			assert.equal(await fixture.boost.result("eth_sendRawTransaction", [cancel.raw], SOFT), cancel.hash);
			assert.equal(await stage(tx.hash), "CANCELLED");
		});
	}
});

it("/status, polled by a searcher, is the same before, with and after a hidden transaction", async () => {
	const polled = async () => {
		const { json } = await fixture.boost.get("/status");
		return JSON.stringify(json, (key, value) => (key === "nextProbeAt" ? undefined : value));
	};
	const before = await polled();
	const { sign } = await fixture.users.actor();
	const tx = sign();
	await fixture.boost.result("eth_sendRawTransaction", [tx.raw]);
	assert.ok((await fixture.boost.status()).journal.depth > 0, "its operator sees it");
	assert.equal(await polled(), before);
	assert.equal(await fixture.boost.result("eth_cancelTransaction", [tx.hash]), true);
	assert.equal(await polled(), before);
});

for (const days of [8, -8]) {
	it(`a machine's clock that is ${days} days wrong for a while expires nothing that boost has acknowledged`, async () => {
		let wrongBy = 0;
		const clock: Clock = { ...systemClock, now: () => systemClock.now() + wrongBy };
		const fallback = await startRecordingFallback();
		const boost = await fixture.startBoost({
			clock,
			env: { FALLBACK_URL: fallback.url, TX_TTL_BLOCKS: "25" },
		});
		await fixture.fails(undefined, boost);
		const before = (await fixture.users.actor()).sign();
		assert.equal(await boost.result("eth_sendRawTransaction", [before.raw]), before.hash);
		wrongBy = days * 24 * 3600 * 1000;
		const during = (await fixture.users.actor()).sign();
		assert.equal(await boost.result("eth_sendRawTransaction", [during.raw]), during.hash);
		const pages = () => fallback.posts.filter(({ target }) => target.startsWith("/tx/")).length;
		for (const wrong of [wrongBy, 0]) {
			wrongBy = wrong;
			const seen = pages();
			// Each pass of the observers looks at ages first.
			await until("some passes", () => pages() >= seen + 4);
		}
		assert.equal((await boost.status()).journal.depth, 2);
		await fixture.recovers(boost);
		await fallback.stop();
		for (const tx of [before, during]) await fixture.users.reaches(tx, "BROADCAST");
		await boost.stop();
	});
}
