// Accounts with a delegation (EIP-7702), and authorizations in others' transactions. An account
// with a delegation sends and cancels like any other, and a soft cancel runs none of its code. An
// authorization that uses the nonce of a pending transaction ends it, at relay and boost, until its
// block leaves the chain. Accounts without, and authorizations that take no effect, are the
// controls.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { EMITS } from "../../support/contracts.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { cancelSignature } from "../../support/typedSignatures.ts";
import { until } from "../../support/until.ts";
import { CancelFixture, NOT_PENDING } from "../../support/userFixtures.ts";

const SOFT = "/noreverts?softCancellations=true";
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
/** Fees under those of what is cancelled. */
const CHEAP = { maxFeePerGas: GWEI, maxPriorityFeePerGas: 1n };

let boosted: BoostFixture;
let users: CancelFixture;
let proxy: BoostClient;
let boost: RelayClient;
let emitter: string;
before(async () => {
	boosted = await startBoostFixture({ system: { proxied: true } });
	users = new CancelFixture(boosted.system);
	// Without a node of its own it would know nothing of the chain while the relay is down.
	proxy = await boosted.startBoost({ env: { ETH_RPC_URL: boosted.system.chain.url } });
	boost = new RelayClient(proxy.url);
	emitter = await users.placeCode(EMITS);
});
after(() => boosted?.stop());

/**
 * A transaction of somebody else that carries authorizations of these accounts, with the nonces
 * that they have signed.
 */
async function authorizing(...signers: readonly (readonly [Actor, bigint])[]): Promise<Signed> {
	const authorizations = signers.map(([{ account }, nonce]) => ({ by: account, address: emitter, nonce }));
	return (await users.actor()).sign({ type: 4, gasLimit: 500_000, authorizations });
}

/** An account whose calls run code that emits an event; its next nonce is 1. */
async function delegated(): Promise<Actor> {
	const actor = await users.actor();
	await users.publish(await authorizing([actor, 0n]));
	await users.passBlock();
	return actor;
}

/** An account without code; its next nonce is 1. */
async function plain(): Promise<Actor> {
	const actor = await users.actor();
	await users.publish(actor.sign());
	await users.passBlock();
	return actor;
}

/** How often the account's own code has run. */
async function runs({ address }: Actor): Promise<number> {
	const filter = { address, fromBlock: "0x0", toBlock: "latest" };
	return ((await users.system.chain.rpc("eth_getLogs", [filter])) as unknown[]).length;
}

const ACCOUNTS = { "with a delegation": delegated, "without one": plain } as const;

for (const [name, account] of Object.entries(ACCOUNTS)) {
	describe(`an account ${name}`, () => {
		const WAYS = {
			"its address": async (_: Actor, tx: Signed) => assert.equal(await users.cancel(tx), true),
			"its signature": async ({ account: { keyHex } }: Actor, { hash }: Signed) => {
				const params = [hash, await cancelSignature(keyHex, hash)];
				assert.equal(await users.system.client.call("eth_cancelTransaction", params), true);
			},
			"a soft cancel": async (actor: Actor) => {
				const cancel = actor.sign({ ...CHEAP, nonce: 1, to: actor.address, gasLimit: 21_000 });
				await users.submit(SOFT, cancel);
				await users.assertCancelled(cancel);
				users.assertNeverSent(cancel);
			},
		} as const;
		for (const [way, cancels] of Object.entries(WAYS)) {
			it(`cancels by ${way}: nothing is mined, no code is run, and the nonce is free`, async () => {
				const [actor, other] = [await account(), await account()];
				const [tx, control] = [actor.sign({ nonce: 1 }), other.sign({ nonce: 1 })];
				await users.submit(SOFT, tx, control);
				for (const one of [tx, control]) await users.waitUntilSent(one);
				await cancels(actor, tx);
				await users.assertCancelled(tx);
				await users.withdrawn(tx);
				const before = await runs(actor);
				await users.system.nextBlock();
				await users.reaches(control, "INCLUDED");
				await users.assertCancelled(tx);
				assert.deepEqual([await users.receipt(tx), await runs(actor)], [null, before]);
				assert.equal(await users.pendingNonce(actor), 1);
				const fresh = actor.sign({ nonce: 1, value: 5n });
				await users.submit("/fast", fresh);
				await users.waitUntilSent(fresh);
				await users.system.nextBlock();
				await users.reaches(fresh, "INCLUDED");
			});
		}

		it("replaces what it sent by a self-transfer, which is mined", async () => {
			const actor = await account();
			const tx = actor.sign({ nonce: 1 });
			await users.submit("/fast", tx);
			await users.waitUntilSent(tx);
			const before = await runs(actor);
			const self = actor.sign({ ...BUMPED, nonce: 1, to: actor.address });
			await users.submit("/fast", self);
			await users.waitUntilSent(self);
			await users.system.nextBlock();
			await users.reaches(self, "INCLUDED");
			assert.equal((await users.receipt(self))?.ok, true);
			assert.equal((await users.status(tx)).stage, "REPLACED");
			assert.equal((await runs(actor)) - before, account === delegated ? 1 : 0, "its code is run");
		});
	});
}

describe("who has signed an authorization in another's transaction", () => {
	it("may not cancel it; its sender may", async () => {
		const [authority, sender] = [await users.actor(), await users.actor()];
		const authorizations = [{ by: authority.account, address: emitter }];
		const tx = sender.sign({ type: 4, gasLimit: 200_000, authorizations });
		await users.submit("/fast", tx);
		await users.waitUntilSent(tx);
		const cancelBy = async ({ account: { keyHex } }: Actor) => {
			const client = new RelayClient(users.system.client.url, { origin: "https://example.org" });
			const params = [tx.hash, await cancelSignature(keyHex, tx.hash)];
			const { result, error } = await client.ask("eth_cancelTransaction", params);
			return error === undefined ? result : `${error.code} ${error.message}`;
		};
		assert.equal(await cancelBy(authority), NOT_PENDING);
		assert.equal((await users.status(tx)).stage, "BROADCAST");
		assert.equal(await cancelBy(sender), true);
		await users.assertCancelled(tx);
	});
});

/** The block at the head goes, and an empty one comes. */
async function reorganise(): Promise<void> {
	const { node, chain } = users.system;
	const release = node?.hold();
	await chain.rpc("anvil_reorg", [1, []]).finally(release);
}

/** Waits until relay and boost say that it is at `stage`, and show it as pending or not at all. */
async function isAtBoth(tx: Signed, stage: string): Promise<void> {
	await users.reaches(tx, stage);
	await until(`${stage} at boost`, async () => (await boost.stage(tx.hash)) === stage);
	for (const client of [users.system.client, boost]) {
		const found = (await client.call("eth_getTransactionByHash", [tx.hash])) as { blockHash: unknown } | null;
		assert.deepEqual(found?.blockHash, stage === "BROADCAST" ? null : undefined);
		assert.equal(await client.call("eth_getTransactionReceipt", [tx.hash]), null);
	}
}

async function throughBoost(...txs: readonly Signed[]): Promise<void> {
	for (const { raw, hash } of txs) assert.equal(await boost.send(raw), hash);
}

describe("an authorization that uses the nonce of a pending transaction", () => {
	it("drops it, and nothing else; when its block has left the chain it is pending again, and is mined", async () => {
		const [victim, other] = [await users.actor(), await users.actor()];
		const [first, second] = [victim.sign(), victim.sign({ nonce: 1 })];
		const control = other.sign();
		const { depth } = (await proxy.status()).journal;
		await throughBoost(first, second, control);
		for (const tx of [first, second, control]) await users.waitUntilSent(tx);
		// The control's has a nonce that is not its next one, so it takes no effect.
		await users.publish(await authorizing([victim, 0n], [other, 5n]));
		await users.passBlock();
		await isAtBoth(first, "DROPPED");
		await proxy.reaches("boost has two open", ({ journal }) => journal.depth === depth + 2);
		for (const tx of [second, control]) {
			await users.waitUntilSent(tx);
			await isAtBoth(tx, "BROADCAST");
		}
		const { error } = await boost.ask("eth_cancelTransaction", [first.hash], "/fast");
		assert.match(error?.message ?? "", /^transaction not found or no longer pending/);
		const head = await users.head();
		for (const block of users.blocks(users.system.builder, first))
			assert.ok((block ?? 0) <= head, "sent again");
		assert.deepEqual([await users.pendingNonce(victim), await users.pendingNonce(other)], [2, 1]);

		await reorganise();
		for (const tx of [first, second, control]) {
			await users.waitUntilSent(tx);
			await isAtBoth(tx, "BROADCAST");
		}
		assert.equal(await users.pendingNonce(victim), 2);
		await proxy.reaches("boost has all open", ({ journal }) => journal.depth === depth + 3);
		await users.system.nextBlock();
		for (const tx of [first, second, control]) {
			await users.reaches(tx, "INCLUDED");
			await until("boost says so", async () => (await boost.stage(tx.hash)) === "INCLUDED");
		}
		assert.equal((await users.life(first)).filter((event) => event.startsWith("included")).length, 1);
	});

	it("ends it at boost while the relay is down; when the relay is back, it is nowhere pending", async () => {
		const [victim, other] = [await users.actor(), await users.actor()];
		const [tx, control] = [victim.sign(), other.sign()];
		const { depth } = (await proxy.status()).journal;
		await boosted.goesOut("relay", proxy);
		try {
			await throughBoost(tx, control);
			await users.publish(await authorizing([victim, 0n], [other, 5n]));
			await users.passBlock();
			await proxy.reaches("one of both has ended", ({ journal }) => journal.depth === depth + 1);
			assert.match((await boost.stage(tx.hash)) ?? "", /^(DROPPED|REPLACED)$/);
			assert.equal(await boost.call("eth_getTransactionReceipt", [tx.hash]), null);
		} finally {
			await boosted.comesBack();
			await proxy.force("auto");
		}
		await boost.send(control.raw);
		await until("it is with the builder", () => users.liveOrders(users.system.builder, control) > 0);
		assert.match((await boost.stage(tx.hash)) ?? "", /^(DROPPED|REPLACED)$/);
		await users.system.nextBlock();
		await until("the control is mined", async () => (await boost.stage(control.hash)) === "INCLUDED");
		assert.equal(await users.receipt(tx), null);
		await proxy.reaches("nothing is open", ({ journal }) => journal.depth === depth);
	});

	it("may be its own sender's: what it has sent with that nonce is dropped, and what comes behind goes on", async () => {
		const [actor, other] = [await users.actor(), await users.actor()];
		const by = (one: Actor, nonce: bigint) => {
			const authorizations = [{ by: one.account, address: emitter, nonce }];
			return [
				one.sign({ type: 4, gasLimit: 200_000, authorizations }),
				one.sign({ nonce: 1 }),
				one.sign({ nonce: 2 }),
			] as const;
		};
		const [[first, second, third], control] = [by(actor, 1n), by(other, 5n)];
		await users.submit("/fast", first, second, third, ...control);
		for (const tx of [first, ...control]) await users.waitUntilSent(tx);
		const block = await users.system.nextBlock();
		for (const tx of [first, ...control]) await users.reaches(tx, "INCLUDED");
		await users.reaches(second, "DROPPED");
		await users.waitUntilSent(third, { block: block + 1 });
		assert.equal(await users.pendingNonce(actor), 3);
		await users.system.nextBlock();
		await users.reaches(third, "INCLUDED");
		assert.deepEqual([await users.receipt(second), (await users.status(second)).stage], [null, "DROPPED"]);
	});
});
