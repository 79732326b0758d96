// Tests MetaMask's own code through an outage of everything that boost could ask: its breaker,
// which would keep a network off for 30 minutes, stays shut, and it goes on as soon as boost does.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type BoostFixture, startBoostFixture } from "../support/boostFixture.ts";
import { MetaMaskWallet, signedBy } from "./metaMaskWallet.ts";

const TO = "0x00000000000000000000000000000000000be11e";
/**
 * MetaMask takes a server for gone after this many failures in a row: three requests, each tried
 * five times.
 */
const FAILURES = 15;
const WHY = /^no relay available: /;

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture();
});
after(() => fixture.stop());
afterEach(() => fixture.recovers());

const OUTAGES: readonly (readonly [what: string, path: string, outage: () => Promise<unknown>])[] = [
	["relay and fallback are down", "/fast", () => bothOut()],
	["the relay is down, on a path that only it serves", "/fullprivacy", () => fixture.fails()],
];

for (const [what, path, outage] of OUTAGES) {
	test(`while ${what} MetaMask receives the reason, and it sends at once when boost is healthy again`, async (t) => {
		const { account } = await fixture.users.actor();
		const wallet = new MetaMaskWallet({ rpcUrl: `${fixture.boost.url}${path}`, account });
		t.after(() => wallet.close());
		await wallet.open();
		assert.equal(await wallet.nextNonce(), 0);
		await outage();
		const before = wallet.failures.length;
		while (wallet.failures.length < before + FAILURES)
			await assert.rejects(wallet.send({ to: TO, value: 5n }));
		for (const { answer } of wallet.failures) assert.match(answer.error?.message ?? "", WHY);
		await fixture.recovers();
		assert.equal(await wallet.nextNonce(), 0);
		const sent = signedBy(await wallet.send({ to: TO, value: 5n }));
		await fixture.users.waitUntilSent(sent);
	});
}

async function bothOut(): Promise<void> {
	await fixture.wires.fallback.set({ kind: "refuse" });
	await fixture.fails();
	await fixture.boost.reaches("both are down", ({ fallback }) => fallback?.state !== "closed");
}
