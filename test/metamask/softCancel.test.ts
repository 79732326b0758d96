// Tests MetaMask's own code on /noreverts with soft cancellations, and beside
// eth_cancelTransaction: it knows neither, and whatever its user does next must work.

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { type Actor, RelayFixture } from "../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../support/systems.ts";
import { type MetaMaskTransaction, MetaMaskWallet, signedBy } from "./metaMaskWallet.ts";

const TO = "0x00000000000000000000000000000000000be11e";
const SOFT = "/noreverts?softCancellations=true";
/**
 * Origins of the extension's requests in Chrome and in Firefox; the app's requests have no Origin.
 */
const EXTENSIONS = [
	"chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn",
	"moz-extension://c2480724-8a32-4afc-a7aa-c1d18a8bf229",
];

let system: TestSystem;
let fixture: RelayFixture;
before(async () => {
	system = await startSystem();
	fixture = new RelayFixture(system);
});
after(() => system.stop());

async function open(t: TestContext, path = SOFT): Promise<{ actor: Actor; wallet: MetaMaskWallet }> {
	const actor = await fixture.actor();
	const wallet = new MetaMaskWallet({ rpcUrl: `${system.client.url}${path}`, account: actor.account });
	t.after(() => wallet.close());
	await wallet.open();
	return { actor, wallet };
}

interface Cancelled {
	readonly actor: Actor;
	readonly wallet: MetaMaskWallet;
	readonly tx: MetaMaskTransaction;
	readonly cancelling: MetaMaskTransaction;
}

/**
 * A transaction that its user has cancelled in MetaMask, and MetaMask has sent both again since.
 */
async function cancelled(t: TestContext): Promise<Cancelled> {
	const { actor, wallet } = await open(t);
	const tx = await wallet.send({ to: TO, value: 5n });
	await fixture.waitUntilSent(signedBy(tx));
	const cancelling = await wallet.cancel(tx);
	await fixture.reaches(signedBy(tx), "CANCELLED");
	await Promise.all([wallet.firstLook(tx), wallet.firstLook(cancelling)]);
	const block = await fixture.passBlock();
	await wallet.looked(block);
	assert.deepEqual(await wallet.sent(tx, 2), [tx.hash, tx.hash]);
	assert.deepEqual(await wallet.sent(cancelling, 2), [cancelling.hash, cancelling.hash]);
	await assertOver([tx, cancelling]);
	return { actor, wallet, tx, cancelling };
}

/** Neither pending nor with a builder, however often the bytes came. */
async function assertOver(ended: readonly MetaMaskTransaction[]): Promise<void> {
	for (const one of ended.map(signedBy)) {
		assert.deepEqual([(await fixture.status(one)).stage, await fixture.byHash(one)], ["CANCELLED", null]);
		assert.equal(fixture.liveOrders(system.builder, one), 0, "live at the builder");
	}
}

/** `tx` is mined, and MetaMask then drops `ended`. */
async function assertComesRight(all: Cancelled, tx: MetaMaskTransaction, next: number): Promise<void> {
	const { actor, wallet, cancelling } = all;
	await fixture.waitUntilSent(signedBy(tx));
	await system.nextBlock();
	await wallet.shows(tx, "confirmed");
	for (const one of [all.tx, cancelling]) {
		const { replacedBy } = await wallet.shows(one, "dropped");
		assert.equal(replacedBy, tx.hash);
		assert.equal(await fixture.receipt(signedBy(one)), null);
	}
	assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [next, next]);
}

describe("MetaMask's cancel with soft cancellations", () => {
	it("goes on showing both, and puts the next transaction behind the free nonce", async (t) => {
		const all = await cancelled(t);
		const { actor, wallet, tx, cancelling } = all;
		assert.deepEqual([wallet.see(tx).status, wallet.see(cancelling).status], ["submitted", "submitted"]);
		assert.deepEqual([wallet.see(tx).warning, wallet.see(cancelling).warning], [undefined, undefined]);
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 0]);
		const stranded = await wallet.send({ to: TO });
		await fixture.reaches(signedBy(stranded), "QUEUED");
		// A custom nonce closes the gap, and what waits goes out behind it.
		const closing = await wallet.send({ to: TO, customNonce: 0 });
		assert.equal(closing.txParams.nonce, "0x0");
		await fixture.waitUntilSent(signedBy(stranded));
		await assertComesRight(all, closing, 2);
		await wallet.shows(stranded, "confirmed");
	});

	it("comes right by a transaction with that custom nonce, at no higher fee", async (t) => {
		const all = await cancelled(t);
		const low = { maxFeePerGas: 15n * 10n ** 9n, maxPriorityFeePerGas: 5n * 10n ** 8n };
		await assertComesRight(all, await all.wallet.send({ to: TO, value: 7n, customNonce: 0, ...low }), 1);
	});

	it("comes right by speeding the cancelled transaction up: it is wanted again", async (t) => {
		const all = await cancelled(t);
		await assertComesRight(all, await all.wallet.speedUp(all.tx), 1);
	});

	it("comes right by clearing the activity data: the next transaction gets the free nonce", async (t) => {
		const { actor, wallet } = await cancelled(t);
		wallet.clearActivity();
		assert.deepEqual([wallet.list, await wallet.nextNonce()], [[], 0]);
		const next = await wallet.send({ to: TO });
		assert.equal(next.txParams.nonce, "0x0");
		await fixture.waitUntilSent(signedBy(next));
		await system.nextBlock();
		await wallet.shows(next, "confirmed");
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 1]);
	});

	it("does not use the nonce up by cancelling once more, or by speeding the cancelling one up", async (t) => {
		const all = await cancelled(t);
		const { actor, wallet, cancelling } = all;
		const again = [await wallet.cancel(cancelling), await wallet.speedUp(cancelling)];
		await assertOver(again);
		assert.equal(await fixture.pendingNonce(actor), 0);
		await assertComesRight(all, await wallet.send({ to: TO, customNonce: 0 }), 1);
		for (const one of again) await wallet.shows(one, "dropped");
	});
});

describe("eth_cancelTransaction beside MetaMask", () => {
	for (const path of ["/fast", SOFT]) {
		it(`holds on ${path} while MetaMask sends the bytes again and again`, async (t) => {
			const { actor, wallet } = await open(t, path);
			const tx = await wallet.send({ to: TO, value: 5n });
			await fixture.waitUntilSent(signedBy(tx));
			await wallet.firstLook(tx);
			assert.equal(await system.client.call("eth_cancelTransaction", [tx.hash]), true);
			for (let passed = 1; passed <= 4; passed += 1) await wallet.looked(await fixture.passBlock());
			assert.deepEqual(await wallet.sent(tx, 4), new Array(4).fill(tx.hash));
			await assertOver([tx]);
			const seen = wallet.see(tx);
			assert.deepEqual([seen.status, seen.warning], ["submitted", undefined]);
			assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 0]);
			const fresh = await wallet.speedUp(tx);
			await fixture.waitUntilSent(signedBy(fresh));
			await system.nextBlock();
			await wallet.shows(fresh, "confirmed");
			await wallet.shows(tx, "dropped");
			assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 1]);
		});
	}

	for (const origin of EXTENSIONS) {
		it(`is taken from ${origin.split(":")[0]}, and not from a web page`, async (t) => {
			const { wallet } = await open(t, "/fast");
			const tx = await wallet.send({ to: TO });
			const cancel = async (from: string): Promise<unknown> => {
				const response = await fetch(`${system.client.url}/fast`, {
					method: "POST",
					headers: { "content-type": "application/json", origin: from },
					body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_cancelTransaction", params: [tx.hash] }),
				});
				const { result, error } = (await response.json()) as {
					result?: unknown;
					error?: { message: string };
				};
				return error?.message ?? result;
			};
			const refused =
				"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key";
			for (const page of ["https://app.example.org", "null"]) assert.equal(await cancel(page), refused, page);
			assert.equal(await cancel(origin), true);
		});
	}
});
