// What may end a transaction that boost has acknowledged: its owner alone, by what he signed for this chain. Neither what he
// signed elsewhere nor a fallback's word does.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";

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
			if (isOut) await fixture.fails();
			for (const type of [0, 2] as const) {
				const elsewhere = sign({ type, to: address, chainId: 11_155_111n, gasLimit: 21_000n });
				const { json } = await fixture.boost.call("eth_sendRawTransaction", [elsewhere.raw]);
				const { message } = (json as WireAnswer).error ?? {};
				assert.equal(message, "invalid chain id for signer: have 11155111 want 31337");
			}
			const found = (await fixture.boost.result("eth_getTransactionByHash", [tx.hash])) as { hash?: string };
			assert.equal(found.hash, tx.hash);
			await fixture.recovers();
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
