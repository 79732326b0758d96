// Tests MetaMask's own code on /fast through send, speed-up and cancel: what it asks the relay,
// what it shows its user, what is mined, and that no nonce is ever stuck.

import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import { REVERTS } from "../support/contracts.ts";
import { type Actor, GWEI, RelayFixture } from "../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../support/systems.ts";
import { until } from "../support/until.ts";
import { cancelBy } from "../support/userFixtures.ts";
import { type MetaMaskTransaction, MetaMaskWallet, signedBy } from "./metaMaskWallet.ts";

const TO = "0x00000000000000000000000000000000000be11e";
const LIFE_BLOCKS = 7;
/**
 * Fees that 110 % of are no whole numbers of wei: MetaMask cuts the rest off, as go-ethereum does.
 */
const CROOKED = { maxFeePerGas: 20n * GWEI + 7n, maxPriorityFeePerGas: GWEI + 3n };

let system: TestSystem;
let fixture: RelayFixture;
before(async () => {
	system = await startSystem({ env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS), TRUST_PROXY: "1" } });
	fixture = new RelayFixture(system);
});
after(() => system.stop());

async function open(
	t: TestContext,
	{ path = "/fast", resubmits = true } = {},
): Promise<{ actor: Actor; wallet: MetaMaskWallet }> {
	const actor = await fixture.actor();
	const rpcUrl = `${system.client.url}${path}`;
	const wallet = new MetaMaskWallet({ rpcUrl, account: actor.account, resubmits });
	t.after(() => wallet.close());
	await wallet.open();
	return { actor, wallet };
}

/** Passes a block without the builders' transactions, which MetaMask looks at. */
async function passBlock(wallet: MetaMaskWallet): Promise<number> {
	const block = await fixture.passBlock();
	await wallet.looked(block);
	return block;
}

/** One that fails, at the end of its life. */
async function expired(wallet: MetaMaskWallet, resubmits = true): Promise<MetaMaskTransaction> {
	const failing = await wallet.send({ to: await fixture.placeCode(REVERTS) });
	await fixture.reaches(signedBy(failing), "SIMULATION_FAILED");
	const head = resubmits ? await wallet.firstLook(failing) : await fixture.head();
	for (let passed = 1; passed <= LIFE_BLOCKS; passed += 1) {
		assert.equal(await passBlock(wallet), head + passed);
	}
	await fixture.reaches(signedBy(failing), "EXPIRED");
	return failing;
}

describe("MetaMask on /fast", () => {
	it("looks at receipt and count, sends its bytes again at growing distances, and sees it mined", async (t) => {
		const { actor, wallet } = await open(t);
		const tx = await wallet.send({ to: TO, value: 5n });
		const { hash } = signedBy(tx);
		const first = await wallet.firstLook(tx);
		for (let passed = 1, sent = 1; passed <= 6; passed += 1) {
			await fixture.waitUntilSent(signedBy(tx));
			assert.equal(await passBlock(wallet), first + passed);
			if ([1, 2, 4].includes(passed)) sent += 1;
			const answers = await wallet.sent(tx, sent);
			assert.deepEqual(answers, new Array(sent).fill(hash), `after ${passed} blocks`);
			assert.equal(await wallet.nextNonce(), 1);
		}
		await fixture.waitUntilSent(signedBy(tx));
		const { status, retryCount, warning } = wallet.see(tx);
		assert.deepEqual([status, retryCount, warning], ["submitted", 3, undefined]);
		const receipts = wallet.requests("eth_getTransactionReceipt", hash);
		assert.deepEqual(new Set(receipts.map(({ answer }) => answer.result)), new Set([null]));
		assert.equal(fixture.liveOrders(system.builder, signedBy(tx)), 1);
		await system.nextBlock();
		await wallet.shows(tx, "confirmed");
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 1]);
	});

	it("speeds up: the new one is confirmed, the old one dropped, whose bytes change nothing", async (t) => {
		const { actor, wallet } = await open(t);
		const old = await wallet.send({ to: TO, value: 5n, ...CROOKED });
		await fixture.waitUntilSent(signedBy(old));
		const fresh = await wallet.speedUp(old);
		assert.equal(fresh.txParams.maxFeePerGas, `0x${(22n * GWEI + 7n).toString(16)}`);
		await fixture.reaches(signedBy(old), "REPLACED");
		await fixture.waitUntilSent(signedBy(fresh));
		await Promise.all([wallet.firstLook(old), wallet.firstLook(fresh)]);
		const deliveries = fixture.deliveries(system.builder, signedBy(old)).length;
		await passBlock(wallet);
		assert.deepEqual(await wallet.sent(old, 2), [old.hash, old.hash]);
		assert.deepEqual(await wallet.sent(fresh, 2), [fresh.hash, fresh.hash]);
		await fixture.waitUntilSent(signedBy(fresh));
		assert.deepEqual(
			[wallet.see(old).status, wallet.see(fresh).status, await fixture.byHash(signedBy(old))],
			["submitted", "submitted", null],
		);
		await system.nextBlock();
		await wallet.shows(fresh, "confirmed");
		const dropped = await wallet.shows(old, "dropped");
		assert.equal(dropped.replacedBy, fresh.hash);
		assert.equal(fixture.deliveries(system.builder, signedBy(old)).length, deliveries);
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 1]);
	});

	it("cancels: nothing to itself is mined in its place, and the next nonce is right", async (t) => {
		const { actor, wallet } = await open(t);
		const old = await wallet.send({ to: TO, value: 5n, ...CROOKED });
		await fixture.waitUntilSent(signedBy(old));
		const cancelling = await wallet.cancel(old);
		const { to, value, nonce } = cancelling.txParams;
		assert.deepEqual([to, value, nonce, cancelling.type], [actor.address, "0x0", "0x0", "cancel"]);
		await fixture.reaches(signedBy(old), "REPLACED");
		await fixture.waitUntilSent(signedBy(cancelling));
		assert.equal(fixture.liveOrders(system.builder, signedBy(old)), 0);
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 1]);
		await system.nextBlock();
		await wallet.shows(cancelling, "confirmed");
		await wallet.shows(old, "dropped");
		const next = await wallet.send({ to: TO });
		assert.equal(next.txParams.nonce, "0x1");
		await fixture.waitUntilSent(signedBy(next));
		await system.nextBlock();
		await wallet.shows(next, "confirmed");
	});

	it("in another network revives nothing that was cancelled, warns, and cancels it by its nonce", async (t) => {
		const { actor, wallet } = await open(t);
		wallet.network = "198.51.100.1";
		const tx = await wallet.send({ to: TO, value: 5n });
		await fixture.waitUntilSent(signedBy(tx));
		await wallet.firstLook(tx);
		assert.equal(await cancelBy(system, signedBy(tx), { from: wallet.network }), true);
		wallet.network = "203.0.113.9";
		await passBlock(wallet);
		const [, refused] = await wallet.sent(tx, 2);
		const message = `transaction was cancelled by another owner; add again=${tx.hash} to submit it anew`;
		assert.deepEqual(refused, { code: -32_000, message, data: { reason: "CANCELLED_BY_OTHER" } });
		await until("MetaMask warns", () => wallet.see(tx).warning !== undefined);
		assert.equal((await fixture.status(signedBy(tx))).stage, "CANCELLED");
		const cancelling = await wallet.cancel(tx);
		await fixture.waitUntilSent(signedBy(cancelling));
		await system.nextBlock();
		await wallet.shows(cancelling, "confirmed");
		await wallet.shows(tx, "dropped");
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 1]);
	});

	it("tells its user who was too late that the transaction is confirmed already", async (t) => {
		const { wallet } = await open(t);
		const tx = await wallet.send({ to: TO });
		await fixture.waitUntilSent(signedBy(tx));
		await system.nextBlock();
		await wallet.shows(tx, "confirmed");
		await assert.rejects(wallet.cancel(tx), /^Error: Previous transaction is already confirmed$/);
		await assert.rejects(wallet.speedUp(tx), /^Error: Previous transaction is already confirmed$/);
	});

	it("shows one that fails as pending until its nonce is used, which cancelling does", async (t) => {
		const { actor, wallet } = await open(t);
		const failing = await wallet.send({ to: await fixture.placeCode(REVERTS) });
		await fixture.reaches(signedBy(failing), "SIMULATION_FAILED");
		const behind = await wallet.send({ to: TO, value: 5n });
		assert.equal(behind.txParams.nonce, "0x1");
		await fixture.reaches(signedBy(behind), "QUEUED");
		const cancelling = await wallet.cancel(failing);
		await fixture.waitUntilSent(signedBy(cancelling));
		await fixture.waitUntilSent(signedBy(behind));
		await system.nextBlock();
		await wallet.shows(cancelling, "confirmed");
		await wallet.shows(behind, "confirmed");
		await wallet.shows(failing, "dropped");
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [2, 2]);
	});

	it("brings one that has expired back by sending it again, and is not stuck with it", async (t) => {
		const { actor, wallet } = await open(t);
		const failing = await expired(wallet);
		assert.deepEqual([wallet.see(failing).status, await wallet.nextNonce()], ["submitted", 1]);
		assert.deepEqual([await fixture.byHash(signedBy(failing)), await fixture.pendingNonce(actor)], [null, 0]);
		await passBlock(wallet);
		assert.deepEqual(await wallet.sent(failing, 5), new Array(5).fill(failing.hash));
		await fixture.reaches(signedBy(failing), "SIMULATION_FAILED");
		const cancelling = await wallet.cancel(failing);
		await fixture.waitUntilSent(signedBy(cancelling));
		await system.nextBlock();
		await wallet.shows(cancelling, "confirmed");
		await wallet.shows(failing, "dropped");
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 1]);
	});

	it("is not stuck with an expired one where it sends nothing again, as its latest versions", async (t) => {
		const { actor, wallet } = await open(t, { resubmits: false });
		const failing = await expired(wallet, false);
		await passBlock(wallet);
		assert.equal((await wallet.sent(failing, 1)).length, 1);
		const behind = await wallet.send({ to: TO, value: 5n });
		await fixture.reaches(signedBy(behind), "QUEUED");
		const cancelling = await wallet.cancel(failing);
		await fixture.waitUntilSent(signedBy(behind));
		await system.nextBlock();
		for (const tx of [cancelling, behind]) await wallet.shows(tx, "confirmed");
		await wallet.shows(failing, "dropped");
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [2, 2]);
	});

	it("drops what another wallet with the same key has overtaken in public", async (t) => {
		const { actor, wallet } = await open(t);
		const tx = await wallet.send({ to: TO, value: 5n });
		await fixture.waitUntilSent(signedBy(tx));
		await wallet.firstLook(tx);
		await fixture.publish(actor.sign({ value: 9n }));
		for (let passed = 1; passed <= 4; passed += 1) await passBlock(wallet);
		await fixture.reaches(signedBy(tx), "DROPPED");
		const answers = wallet.requests("eth_sendRawTransaction").map(({ answer }) => answer);
		// The relay may see the block after MetaMask does, and then holds the transaction when its
		// bytes come again.
		for (const { result, error } of answers)
			assert.match(error?.message ?? String(result), /^0x|^nonce too low: /);
		assert.match(answers.at(-1)?.error?.message ?? "", /^nonce too low: /);
		await wallet.shows(tx, "dropped");
		assert.deepEqual([await wallet.nextNonce(), await fixture.pendingNonce(actor)], [1, 1]);
	});

	it("numbers several at once in a row, which are mined in one block", async (t) => {
		const { wallet } = await open(t);
		const sent = [
			await wallet.send({ to: TO }),
			await wallet.send({ to: TO }),
			await wallet.send({ to: TO }),
		];
		assert.deepEqual(
			sent.map(({ txParams }) => txParams.nonce),
			["0x0", "0x1", "0x2"],
		);
		for (const tx of sent) await fixture.waitUntilSent(signedBy(tx));
		await system.nextBlock();
		for (const tx of sent) await wallet.shows(tx, "confirmed");
		assert.equal(await wallet.nextNonce(), 3);
	});

	it("shows one that reverted on the chain as failed, and its nonce as used", async (t) => {
		const { wallet } = await open(t, { path: "/nochecks" });
		const tx = await wallet.send({ to: await fixture.placeCode(REVERTS) });
		await fixture.waitUntilSent(signedBy(tx));
		await system.nextBlock();
		await wallet.shows(tx, "failed");
		assert.equal(await wallet.nextNonce(), 1);
	});
});
