// Soft cancels: a self-transfer with the nonce of a transaction that was sent with soft
// cancellations cancels that transaction, costs nothing and is never sent to builders; each rule
// has a counter-example. Wallets resend the bytes of everything they think pending: whatever the
// user ended must not come back, even after a restart, until the nonce is used.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { REVERTS } from "../../support/contracts.ts";
import { type Actor, ETHER, GWEI, type Signed } from "../../support/relayFixture.ts";
import type { TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";
import { type CancelFixture, startCancels } from "../../support/userFixtures.ts";

const LIFE_BLOCKS = 4;
/** How many blocks behind its end a record is archived. */
const WATCH_BLOCKS = 64;
const SOFT = "/noreverts?softCancellations=true";
/** Fees under those of what is cancelled. */
const CHEAP = { maxFeePerGas: GWEI, maxPriorityFeePerGas: 1n };
const PATHS = ["/fast", SOFT, "/nochecks", "/maxbackruns", "/fullprivacy?softcancel=1"];
const TOO_LOW = /^-32000 nonce too low: next nonce 1, tx nonce 0/;
const UNDERPRICED = /^-32000 replacement transaction underpriced/;

let fixture: CancelFixture;
before(async () => {
	fixture = await startCancels({ env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) } });
	await fixture.passBlock();
});
after(() => fixture.system.stop());

/** A transfer of `actor` to himself. */
function toSelf(actor: Actor, options: Omit<TxOptions, "by"> = {}): Signed {
	return actor.sign({ ...CHEAP, to: actor.address, gasLimit: 21_000, ...options });
}

/** Transactions that their user has ended, and the self-transfers that did. */
interface Ended {
	readonly actor: Actor;
	readonly txs: readonly Signed[];
}

/** The relay's events of each, and how often each was sent. */
async function seen(transactions: readonly Signed[]): Promise<readonly unknown[]> {
	return Promise.all(transactions.map(async (tx) => [await fixture.life(tx), fixture.timesSent(tx)]));
}

/**
 * Each is sent again on every path: its hash is answered, and nothing happens, in the next block
 * either.
 */
async function assertDead(...ended: readonly Ended[]): Promise<void> {
	const transactions = ended.flatMap(({ txs }) => txs);
	const before = await seen(transactions);
	for (const path of PATHS) await fixture.submit(path, ...transactions);
	await fixture.fence();
	await fixture.passBlock();
	await fixture.fence();
	assert.deepEqual(await seen(transactions), before);
	for (const tx of transactions) await fixture.assertCancelled(tx);
	for (const { actor } of ended) assert.equal(await fixture.pendingNonce(actor), 0);
}

async function passLife(): Promise<void> {
	const { chain } = fixture.system;
	await chain.rpc("anvil_mine", [`0x${WATCH_BLOCKS.toString(16)}`, `0x${chain.slotSeconds.toString(16)}`]);
	await fixture.passBlock();
}

/** Passes so many blocks that what has ended is archived. */
async function archive(ended: Signed): Promise<void> {
	await passLife();
	// The submitter is forgotten then.
	await until("it is archived", async () => (await fixture.cancel(ended)) !== true);
}

/** A fresh transaction uses the nonce; then all the others are refused. */
async function assertUsable({ actor, txs }: Ended): Promise<void> {
	const fresh = actor.sign({ maxFeePerGas: 15n * GWEI, maxPriorityFeePerGas: GWEI / 2n, value: 77n });
	await fixture.submit("/fast", fresh);
	await fixture.waitUntilSent(fresh);
	for (const tx of txs) await fixture.submit("/fast", tx);
	await fixture.system.nextBlock();
	await fixture.reaches(fresh, "INCLUDED");
	for (const tx of txs) {
		assert.match(await fixture.tried(tx, SOFT), TOO_LOW);
		await fixture.assertCancelled(tx);
	}
	assert.match(await fixture.tried(toSelf(actor, { value: 99 }), SOFT), TOO_LOW);
}

/** A soft cancel, and the transaction with its nonce that came before it. */
interface TakenBack {
	readonly actor: Actor;
	readonly tx: Signed;
	readonly cancel: Signed;
}

/** Each transaction has been taken back by its cancel, which has never been anywhere. */
async function assertTakenBack(...all: readonly TakenBack[]): Promise<void> {
	for (const { actor, tx, cancel } of all) {
		await fixture.assertCancelled(tx);
		await fixture.assertCancelled(cancel);
		assert.equal(await fixture.pendingNonce(actor), 0);
		await fixture.withdrawn(tx);
	}
	await fixture.fence();
	fixture.assertNeverSent(...all.map(({ cancel }) => cancel));
}

describe("a self-transfer with the nonce of what was sent with soft cancellations", () => {
	/**
	 * The cancelled transaction came on the first path. The self-transfer of this form comes on the
	 * second one.
	 */
	const ROWS: readonly (readonly [
		what: string,
		sentOn: string,
		form: Omit<TxOptions, "by">,
		path: string,
	])[] = [
		["sent with the other spelling", "/noreverts?softcancel=1", {}, "/noreverts?softcancel=1"],
		["sent on /fullprivacy", "/fullprivacy?softCancellations=true", {}, "/fullprivacy"],
		...["/", "/fast", SOFT, "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"].map(
			(path) => [`comes on ${path}`, SOFT, {}, path] as const,
		),
		["is legacy", SOFT, { type: 0, gasPrice: 1n }, "/fast"],
		["has an access list", SOFT, { type: 1, gasPrice: 1n, gasLimit: 30_000, accessList: [] }, "/fast"],
		["has a value, which it moves nowhere", SOFT, { value: 5n * ETHER }, "/fast"],
		["pays for no block", SOFT, { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }, "/fast"],
		["has high fees", SOFT, { maxFeePerGas: 900n * GWEI, maxPriorityFeePerGas: 90n * GWEI }, "/fast"],
		["wants more than its sender has", SOFT, { value: 1_000_000n * ETHER }, "/fast"],
	];

	it("cancels it, in any form and on any path; the nonce is free, and its next transaction is mined", async () => {
		const taken = await Promise.all(
			ROWS.map(async ([what, sentOn, form, path]) => {
				const { actor, tx } = await fixture.out(sentOn);
				const cancel = toSelf(actor, form);
				assert.equal(await fixture.tried(cancel, path), cancel.hash, what);
				const { status, transaction, rpc_timestamp } = await fixture.status(cancel);
				assert.deepEqual([status, transaction.to, transaction.nonce], ["FAILED", actor.address, "0"]);
				assert.notEqual(rpc_timestamp, null);
				return { actor, tx, cancel };
			}),
		);
		await assertTakenBack(...taken);
		const rounds = taken.map((one) => ({
			...one,
			fresh: one.actor.sign({ maxFeePerGas: 15n * GWEI, value: 1n }),
		}));
		for (const { fresh } of rounds) await fixture.submit("/fast", fresh);
		for (const { fresh } of rounds) await fixture.waitUntilSent(fresh);
		const block = await fixture.system.nextBlock();
		for (const { tx, cancel, fresh } of rounds) {
			await fixture.reaches(fresh, "INCLUDED");
			assert.equal((await fixture.receipt(fresh))?.block, block);
			for (const one of [tx, cancel]) assert.equal(await fixture.receipt(one), null);
		}
		fixture.assertNeverSent(...rounds.map(({ cancel }) => cancel));
	});

	it("works for an account that has no ether any more", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		await fixture.setBalance(actor.address, 0n);
		await fixture.passBlock();
		await fixture.reaches(tx, "SIMULATION_FAILED");
		const cancel = toSelf(actor);
		await fixture.submit(SOFT, cancel);
		await assertTakenBack({ actor, tx, cancel });
	});

	it("cancels what waits behind a gap, and what fails", async () => {
		const actor = await fixture.actor();
		const queued = actor.sign({ nonce: 2 });
		await fixture.submit(SOFT, queued);
		await fixture.reaches(queued, "QUEUED");
		const first = toSelf(actor, { nonce: 2 });
		await fixture.submit(SOFT, first);
		await assertTakenBack({ actor, tx: queued, cancel: first });
		fixture.assertNeverSent(queued);

		const failing = actor.sign({ to: await fixture.placeCode(REVERTS) });
		await fixture.submit(SOFT, failing);
		await fixture.reaches(failing, "SIMULATION_FAILED");
		const second = toSelf(actor);
		await fixture.submit(SOFT, second);
		await assertTakenBack({ actor, tx: failing, cancel: second });
		fixture.assertNeverSent(failing);
	});

	it("leaves later nonces QUEUED, and earlier ones unchanged", async () => {
		const actor = await fixture.actor();
		const links = [0, 1, 2].map((nonce) => actor.sign({ nonce }));
		const [first, second, third] = links as [Signed, Signed, Signed];
		await fixture.submit(SOFT, ...links);
		for (const link of links) await fixture.waitUntilSent(link);
		await fixture.submit(SOFT, toSelf(actor, { nonce: 1 }));
		await fixture.reaches(third, "QUEUED");
		await fixture.assertCancelled(second);
		assert.equal(await fixture.pendingNonce(actor), 1);
		await fixture.withdrawn(second);
		await fixture.system.nextBlock();
		await fixture.reaches(first, "INCLUDED");
		assert.deepEqual([await fixture.receipt(second), await fixture.receipt(third)], [null, null]);
	});

	it("may be cancelled by hash like any other that is cancelled: true", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		const cancel = toSelf(actor);
		await fixture.submit(SOFT, cancel);
		for (const one of [tx, cancel]) assert.equal(await fixture.cancel(one), true);
	});
});

describe("what does not count as a soft cancel", () => {
	it("the same for a transaction sent without soft cancellations, or where they have no effect", async () => {
		for (const path of [
			"/fast?softCancellations=true",
			"/noreverts",
			"/maxbackruns?softcancel=1",
			"/nochecks",
		]) {
			const { actor, tx } = await fixture.out(path);
			assert.match(await fixture.tried(toSelf(actor), SOFT), UNDERPRICED, path);
			assert.equal((await fixture.status(tx)).stage, "BROADCAST");
			const high = toSelf(actor, { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI });
			await fixture.submit("/fast", high);
			await fixture.reaches(tx, "REPLACED");
			await fixture.waitUntilSent(high);
			await fixture.system.nextBlock();
			await fixture.reaches(high, "INCLUDED");
		}
	});

	it("a transfer with data, to another, of another account or nonce, or with a delegation", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		const stranger = await fixture.actor();
		const to = actor.address;
		for (const options of [
			{ ...CHEAP, to, data: "0x00", gasLimit: 30_000 },
			{ ...CHEAP, to: stranger.address },
			{ ...CHEAP, to: null, data: "0x", gasLimit: 60_000 },
			// With blobs: see unit/shared/ethereum/transactionFields.test.ts, since proving one takes
			// seconds.
			{ ...CHEAP, to, type: 4 as const },
		]) {
			assert.match(await fixture.tried(actor.sign(options), SOFT), UNDERPRICED, JSON.stringify(options.to));
		}
		await fixture.submit(SOFT, stranger.sign({ to: stranger.address }));
		await fixture.submit(SOFT, actor.sign({ to, nonce: 1 }));
		assert.equal((await fixture.status(tx)).stage, "BROADCAST");
		assert.equal(await fixture.pendingNonce(actor), 2);
	});

	it("a self-transfer that no block of this chain could hold: it is refused without effect", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		for (const [options, refusal] of [
			[{ chainId: 1n }, /^-32000 invalid chain id for signer/],
			[{ gasLimit: 20_999 }, /^-32000 intrinsic gas too low/],
			[{ maxFeePerGas: 1n, maxPriorityFeePerGas: 2n }, /^-32000 max priority fee per gas higher/],
		] as const) {
			assert.match(await fixture.tried(toSelf(actor, options), SOFT), refusal);
		}
		assert.equal((await fixture.status(tx)).stage, "BROADCAST");
	});

	it("a self-transfer with an unused nonce: it is sent and mined, and may be soft-cancelled itself", async () => {
		const actor = await fixture.actor();
		const first = toSelf(actor, { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI });
		await fixture.submit(SOFT, first);
		await fixture.waitUntilSent(first);
		const second = toSelf(actor, { value: 1n });
		await fixture.submit(SOFT, second);
		await assertTakenBack({ actor, tx: first, cancel: second });
		const other = await fixture.actor();
		const lone = other.sign({ to: other.address });
		await fixture.submit("/fast", lone);
		await fixture.waitUntilSent(lone);
		await fixture.system.nextBlock();
		await fixture.reaches(lone, "INCLUDED");
	});
});

describe("another self-transfer with the nonce", () => {
	it("is a soft cancel again, on every path, after a restart and once archived", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		const cancels = [toSelf(actor)];
		await fixture.submit(SOFT, toSelf(actor));
		let value = 0;
		const more = async (...paths: readonly string[]) => {
			for (const path of paths) {
				value += 1;
				const cancel = toSelf(actor, { value });
				await fixture.submit(path, cancel);
				cancels.push(cancel);
			}
			await fixture.fence();
			fixture.assertNeverSent(...cancels);
			for (const cancel of cancels.slice(-paths.length)) await fixture.assertCancelled(cancel);
			assert.equal(await fixture.pendingNonce(actor), 0);
		};
		await more(...PATHS);
		await fixture.system.restart();
		await more("/fast", SOFT);
		await archive(tx);
		await more("/fast", SOFT);
		await fixture.system.restart();
		await assertDead({ actor, txs: [tx, ...cancels.slice(0, 3)] });
		await assertUsable({ actor, txs: [tx, ...cancels] });
	});

	it("is one too after a cancel by hash of what was sent with soft cancellations", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		assert.equal(await fixture.cancel(tx), true);
		const cancel = toSelf(actor);
		await fixture.submit("/fast", cancel);
		await assertDead({ actor, txs: [tx, cancel] });
		fixture.assertNeverSent(cancel);
	});

	it("is an ordinary one if a new transaction without soft cancellations has the nonce", async () => {
		const { actor, tx } = await fixture.out(SOFT);
		const cancel = toSelf(actor);
		await fixture.submit(SOFT, cancel);
		const fresh = actor.sign({ value: 5n });
		await fixture.submit("/fast", fresh);
		await fixture.waitUntilSent(fresh);
		assert.match(await fixture.tried(toSelf(actor, { value: 1n }), SOFT), UNDERPRICED);
		const fees = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
		const high = actor.sign({ to: actor.address, gasLimit: 21_000, ...fees });
		await fixture.submit("/fast", high);
		await fixture.reaches(fresh, "REPLACED");
		await fixture.waitUntilSent(high);
		await fixture.system.nextBlock();
		await fixture.reaches(high, "INCLUDED");
		for (const one of [tx, cancel]) await fixture.assertCancelled(one);
	});

	it("cancels a new one that was sent with soft cancellations, any number of times", async () => {
		const actor = await fixture.actor();
		const ended: Signed[] = [];
		for (let round = 0; round < 3; round += 1) {
			const [tx, cancel] = [actor.sign({ value: 100 + round }), toSelf(actor, { value: round })];
			await fixture.submit(SOFT, tx);
			await fixture.waitUntilSent(tx);
			await fixture.submit(SOFT, cancel);
			await fixture.withdrawn(tx);
			ended.push(tx, cancel);
		}
		await assertDead({ actor, txs: ended });
		await assertUsable({ actor, txs: ended });
	});
});

describe("a transaction that has ended", () => {
	async function expired(path: string): Promise<{ readonly actor: Actor; readonly tx: Signed }> {
		const actor = await fixture.actor();
		const tx = actor.sign();
		await fixture.submit(path, tx);
		await fixture.waitUntilSent(tx);
		for (let i = 0; i < LIFE_BLOCKS; i += 1) await fixture.passBlock();
		await fixture.reaches(tx, "EXPIRED");
		return { actor, tx };
	}

	it("by a cancel, also a soft one after it expired, stays so whatever bytes are sent again, also after a restart", async () => {
		const byHash = await fixture.out();
		assert.equal(await fixture.cancel(byHash.tx), true);
		await fixture.withdrawn(byHash.tx);
		const late = await expired(SOFT);
		const softly = await fixture.out(SOFT);
		const cancels = [toSelf(softly.actor), toSelf(late.actor)] as const;
		await fixture.submit(SOFT, ...cancels);
		await fixture.withdrawn(softly.tx);
		const ended = [
			{ actor: byHash.actor, txs: [byHash.tx] },
			{ actor: softly.actor, txs: [softly.tx, cancels[0]] },
			{ actor: late.actor, txs: [late.tx, cancels[1]] },
		];
		await assertDead(...ended);
		await fixture.system.restart();
		await assertDead(...ended);
		await archive(cancels[1]);
		await assertDead(...ended);
		for (const one of ended) await assertUsable(one);
		fixture.assertNeverSent(...cancels);
	});

	it("by expiry alone is accepted again with its bytes", async () => {
		const { actor, tx } = await expired(SOFT);
		await fixture.submit(SOFT, tx);
		await fixture.reaches(tx, "BROADCAST");
		assert.equal(await fixture.pendingNonce(actor), 1);
	});

	it("by expiry, and is archived, can still be soft-cancelled for good", async () => {
		const { actor, tx } = await expired(SOFT);
		await passLife();
		await fixture.system.restart();
		assert.equal((await fixture.status(tx)).stage, "EXPIRED");
		const cancel = toSelf(actor);
		await fixture.submit(SOFT, cancel);
		await assertDead({ actor, txs: [tx, cancel] });
		await fixture.system.restart();
		await assertDead({ actor, txs: [tx, cancel] });
		fixture.assertNeverSent(cancel);
	});

	it("by expiry, without soft cancellations, is replaced by a self-transfer, which is an ordinary transaction", async () => {
		const { actor, tx } = await expired("/noreverts");
		const ordinary = actor.sign({ to: actor.address, gasLimit: 21_000 });
		await fixture.submit(SOFT, ordinary);
		await fixture.waitUntilSent(ordinary);
		assert.equal((await fixture.status(tx)).stage, "REPLACED", "its nonce is another one's now");
		await fixture.system.nextBlock();
		await fixture.reaches(ordinary, "INCLUDED");
	});
});
