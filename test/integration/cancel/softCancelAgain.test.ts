// Tests what follows a cancel: wallets resend the bytes of everything they think pending, cancelled and cancelling.
// Nothing that its user ended comes back by that, by other self-transfers, after a restart, or when the records are
// settled, until the nonce is used.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";
import { type CancelFixture, startCancels } from "../../support/userFixtures.ts";

const LIFE_BLOCKS = 4;
/** How many blocks behind its end a record is settled. */
const WATCH_BLOCKS = 64;
const SOFT = "/noreverts?softCancellations=true";
const PATHS = ["/fast", SOFT, "/nochecks", "/maxbackruns", "/fullprivacy?softcancel=1"];
const TOO_LOW = /^-32000 nonce too low: next nonce 1, tx nonce 0/;

let fixture: CancelFixture;
before(async () => {
	fixture = await startCancels({ env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) } });
	await fixture.passBlock();
});
after(() => fixture.system.stop());

/** A transfer of `actor` to himself; another one for each value. */
function toSelf(actor: Actor, value = 0): Signed {
	return actor.sign({ to: actor.address, gasLimit: 21_000, value });
}

/** What the relay says of each, and how often each went out. */
async function seen(transactions: readonly Signed[]): Promise<readonly unknown[]> {
	return Promise.all(transactions.map(async (tx) => [await fixture.life(tx), fixture.timesSent(tx)]));
}

/** Each is sent again on every path: its hash is answered, and nothing happens, in the next block either. */
async function assertDead(actor: Actor, transactions: readonly Signed[]): Promise<void> {
	const before = await seen(transactions);
	for (const path of PATHS) await fixture.submit(path, ...transactions);
	await fixture.fence();
	await fixture.passBlock();
	await fixture.fence();
	assert.deepEqual(await seen(transactions), before);
	for (const tx of transactions) await fixture.assertCancelled(tx);
	assert.equal(await fixture.pendingNonce(actor), 0);
}

async function passLife(): Promise<void> {
	const { chain } = fixture.system;
	await chain.rpc("anvil_mine", [`0x${WATCH_BLOCKS.toString(16)}`, `0x${chain.slotSeconds.toString(16)}`]);
	await fixture.passBlock();
}

/** Passes so many blocks that what has ended is settled. */
async function settle(ended: Signed): Promise<void> {
	await passLife();
	// Who submitted it is forgotten then.
	await until("it is settled", async () => (await fixture.cancel(ended)) !== true);
}

/** A fresh transaction uses the nonce; then all the others are refused. */
async function assertUsable(actor: Actor, ended: readonly Signed[]): Promise<void> {
	const fresh = actor.sign({ maxFeePerGas: 15n * GWEI, maxPriorityFeePerGas: GWEI / 2n, value: 77n });
	await fixture.submit("/fast", fresh);
	await fixture.sent(fresh);
	for (const tx of ended) await fixture.submit("/fast", tx);
	await fixture.system.nextBlock();
	await fixture.reaches(fresh, "INCLUDED");
	for (const tx of ended) {
		assert.match(await fixture.tried(tx, SOFT), TOO_LOW);
		await fixture.assertCancelled(tx);
	}
	assert.match(await fixture.tried(toSelf(actor, 99), SOFT), TOO_LOW);
}

describe("the bytes of what was cancelled", () => {
	it("by its hash: the hash is answered and nothing happens, after a restart and settled too", async () => {
		const { actor, tx } = await fixture.out();
		assert.equal(await fixture.cancel(tx), true);
		await fixture.withdrawn(tx);
		await assertDead(actor, [tx]);
		await fixture.system.restart();
		await assertDead(actor, [tx]);
		await settle(tx);
		await assertDead(actor, [tx]);
		await assertUsable(actor, [tx]);
	});

	it("softly, and of what cancelled it: nothing happens, after a restart and settled too", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		const cancel = toSelf(actor);
		await fixture.submit(SOFT, cancel);
		await fixture.withdrawn(tx);
		await assertDead(actor, [tx, cancel]);
		await fixture.system.restart();
		await assertDead(actor, [tx, cancel]);
		await settle(tx);
		await assertDead(actor, [tx, cancel]);
		fixture.assertUnheard(cancel);
		await assertUsable(actor, [tx, cancel]);
		fixture.assertUnheard(cancel);
	});
});

describe("another self-transfer with the nonce", () => {
	it("is a soft cancel again, on every path, after a restart and settled too", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		const cancels = [toSelf(actor)];
		await fixture.submit(SOFT, toSelf(actor));
		let value = 0;
		const more = async () => {
			for (const path of PATHS) {
				value += 1;
				const cancel = toSelf(actor, value);
				await fixture.submit(path, cancel);
				cancels.push(cancel);
			}
			await fixture.fence();
			for (const cancel of cancels) {
				fixture.assertUnheard(cancel);
				await fixture.assertCancelled(cancel);
			}
			assert.equal(await fixture.pendingNonce(actor), 0);
		};
		await more();
		await fixture.system.restart();
		await more();
		await settle(tx);
		await more();
		await fixture.system.restart();
		await assertDead(actor, [tx, ...cancels.slice(0, 3)]);
		await assertUsable(actor, [tx, ...cancels]);
	});

	it("is one too behind a cancel by hash of what was sent with soft cancellations", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		assert.equal(await fixture.cancel(tx), true);
		const cancel = toSelf(actor);
		await fixture.submit("/fast", cancel);
		await assertDead(actor, [tx, cancel]);
		fixture.assertUnheard(cancel);
	});

	it("is an ordinary one where a fresh one without soft cancellations has the nonce", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		const cancel = toSelf(actor);
		await fixture.submit(SOFT, cancel);
		const fresh = actor.sign({ value: 5n });
		await fixture.submit("/fast", fresh);
		await fixture.sent(fresh);
		assert.match(await fixture.tried(toSelf(actor, 1), SOFT), /^-32000 replacement transaction underpriced/);
		const fees = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
		const dear = actor.sign({ to: actor.address, gasLimit: 21_000, ...fees });
		await fixture.submit("/fast", dear);
		await fixture.reaches(fresh, "REPLACED");
		await fixture.sent(dear);
		await fixture.system.nextBlock();
		await fixture.reaches(dear, "INCLUDED");
		for (const one of [tx, cancel]) await fixture.assertCancelled(one);
	});

	it("takes back a fresh one that was sent with soft cancellations, as often as one likes", async () => {
		const actor = await fixture.actor();
		const ended: Signed[] = [];
		for (let round = 0; round < 4; round += 1) {
			const [tx, cancel] = [actor.sign({ value: 100 + round }), toSelf(actor, round)];
			await fixture.submit(SOFT, tx);
			await fixture.sent(tx);
			await fixture.submit(SOFT, cancel);
			await fixture.withdrawn(tx);
			ended.push(tx, cancel);
		}
		await assertDead(actor, ended);
		await assertUsable(actor, ended);
	});
});

describe("what has expired", () => {
	async function expired(path: string): Promise<{ readonly actor: Actor; readonly tx: Signed }> {
		const actor = await fixture.actor();
		const tx = actor.sign();
		await fixture.submit(path, tx);
		await fixture.sent(tx);
		for (let i = 0; i < LIFE_BLOCKS; i += 1) await fixture.passBlock();
		await fixture.reaches(tx, "EXPIRED");
		return { actor, tx };
	}

	it("comes back by its bytes; ended by a self-transfer it does not, after a restart and settled too", async () => {
		const { actor: reviver, tx: revived } = await expired(SOFT);
		await fixture.submit(SOFT, revived);
		await fixture.reaches(revived, "BROADCAST");
		assert.equal(await fixture.pendingNonce(reviver), 1);

		const { actor, tx } = await expired(SOFT);
		const cancel = toSelf(actor);
		await fixture.submit(SOFT, cancel);
		await assertDead(actor, [tx, cancel]);
		await fixture.system.restart();
		await assertDead(actor, [tx, cancel]);
		await settle(cancel);
		await assertDead(actor, [tx, cancel]);
		fixture.assertUnheard(cancel);
		await assertUsable(actor, [tx, cancel]);
	});

	it("and is settled is ended by a self-transfer all the same", async () => {
		const { actor, tx } = await expired(SOFT);
		await passLife();
		await fixture.system.restart();
		assert.equal((await fixture.status(tx)).stage, "EXPIRED");
		const cancel = toSelf(actor);
		await fixture.submit(SOFT, cancel);
		await assertDead(actor, [tx, cancel]);
		await fixture.system.restart();
		await assertDead(actor, [tx, cancel]);
		fixture.assertUnheard(cancel);
	});

	it("without soft cancellations is ended by no self-transfer, which is an ordinary one then", async () => {
		const { actor, tx } = await expired("/noreverts");
		const ordinary = toSelf(actor);
		await fixture.submit(SOFT, ordinary);
		await fixture.sent(ordinary);
		assert.equal((await fixture.status(tx)).stage, "REPLACED", "its nonce is another one's now");
		await fixture.system.nextBlock();
		await fixture.reaches(ordinary, "INCLUDED");
	});
});
