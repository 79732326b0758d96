// Tests soft cancels: a self-transfer with the nonce of what was sent with soft cancellations cancels it, costs
// nothing and is sent nowhere. Each rule has its counter-example.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type CancelScene, NOT_PENDING, startCancels } from "../support/cancelScene.ts";
import { type Actor, ETHER, GWEI, type Signed } from "../support/relayScene.ts";
import { REVERTS } from "../support/simulationContracts.ts";
import type { TxOptions } from "../support/txFactory.ts";

const SOFT = "/noreverts?softCancellations=true";
/** Fees under those of what is cancelled. */
const CHEAP = { maxFeePerGas: GWEI, maxPriorityFeePerGas: 1n };
const UNDERPRICED = /^-32000 replacement transaction underpriced/;

let scene: CancelScene;
before(async () => {
	scene = await startCancels({ proxied: true });
	await scene.passBlock();
});
after(() => scene.system.stop());

/** A transfer of `actor` to himself. */
function toSelf(actor: Actor, options: Omit<TxOptions, "by"> = {}): Signed {
	return actor.sign({ ...CHEAP, to: actor.address, gasLimit: 21_000, ...options });
}

/** The earlier one has been taken back by `cancel`, which has never been anywhere. */
async function assertTakenBack(actor: Actor, earlier: Signed, cancel: Signed): Promise<void> {
	await scene.assertCancelled(earlier);
	await scene.assertCancelled(cancel);
	assert.equal(await scene.pendingNonce(actor), 0);
	await scene.withdrawn(earlier);
	await scene.fence();
	scene.assertUnheard(cancel);
}

describe("a self-transfer with the nonce of what was sent with soft cancellations", () => {
	for (const path of [SOFT, "/noreverts?softcancel=1", "/fullprivacy?softCancellations=true"]) {
		it(`on ${path} takes it back, and the nonce is free`, async () => {
			const { actor, tx } = await scene.out(path);
			const cancel = toSelf(actor);
			assert.equal(await scene.tried(cancel, path), cancel.hash);
			await assertTakenBack(actor, tx, cancel);
			const { status, transaction, rpc_timestamp } = await scene.status(cancel);
			assert.deepEqual([status, transaction.to, transaction.nonce], ["FAILED", actor.address, "0"]);
			assert.notEqual(rpc_timestamp, null);
			const fresh = actor.sign({ maxFeePerGas: 15n * GWEI, value: 1n });
			await scene.submit("/fast", fresh);
			await scene.sent(fresh);
			const block = await scene.system.nextBlock();
			await scene.reaches(fresh, "INCLUDED");
			assert.equal((await scene.receipt(fresh))?.block, block);
			for (const one of [tx, cancel]) assert.equal(await scene.receipt(one), null);
			scene.assertUnheard(cancel);
		});
	}

	for (const path of ["/", "/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"]) {
		it(`may come on ${path}`, async () => {
			const { actor, tx } = await scene.out(SOFT);
			const cancel = toSelf(actor);
			await scene.submit(path, cancel);
			await assertTakenBack(actor, tx, cancel);
		});
	}

	const FORMS: Readonly<Record<string, Omit<TxOptions, "by">>> = {
		"is legacy": { type: 0, gasPrice: 1n },
		"has an access list": { type: 1, gasPrice: 1n, gasLimit: 30_000, accessList: [] },
		"has a value, which it moves nowhere": { value: 5n * ETHER },
		"has fees that pay for no block": { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n },
		"has much higher fees": { maxFeePerGas: 900n * GWEI, maxPriorityFeePerGas: 90n * GWEI },
		"wants more than its sender has": { value: 1_000_000n * ETHER },
	};
	for (const [name, form] of Object.entries(FORMS)) {
		it(`counts where it ${name}`, async () => {
			const { actor, tx } = await scene.out(SOFT);
			const cancel = toSelf(actor, form);
			await scene.submit("/fast", cancel);
			await assertTakenBack(actor, tx, cancel);
		});
	}

	it("needs no ether, of an account that has none any more", async () => {
		const { actor, tx } = await scene.out(SOFT);
		await scene.setBalance(actor.address, 0n);
		await scene.passBlock();
		await scene.reaches(tx, "SIMULATION_FAILED");
		const cancel = toSelf(actor);
		await scene.submit(SOFT, cancel);
		await assertTakenBack(actor, tx, cancel);
	});

	it("takes back what waits behind a gap, and what fails", async () => {
		const actor = await scene.actor();
		const queued = actor.sign({ nonce: 2 });
		await scene.submit(SOFT, queued);
		await scene.reaches(queued, "QUEUED");
		const first = toSelf(actor, { nonce: 2 });
		await scene.submit(SOFT, first);
		await assertTakenBack(actor, queued, first);
		scene.assertUnheard(queued);

		const failing = actor.sign({ to: await scene.place(REVERTS) });
		await scene.submit(SOFT, failing);
		await scene.reaches(failing, "SIMULATION_FAILED");
		const second = toSelf(actor);
		await scene.submit(SOFT, second);
		await assertTakenBack(actor, failing, second);
		scene.assertUnheard(failing);
	});

	it("leaves what is behind it QUEUED, and what is before it alone", async () => {
		const actor = await scene.actor();
		const links = [0, 1, 2].map((nonce) => actor.sign({ nonce }));
		const [first, second, third] = links as [Signed, Signed, Signed];
		await scene.submit(SOFT, ...links);
		for (const link of links) await scene.sent(link);
		await scene.submit(SOFT, toSelf(actor, { nonce: 1 }));
		await scene.reaches(third, "QUEUED");
		await scene.assertCancelled(second);
		assert.equal(await scene.pendingNonce(actor), 1);
		await scene.system.nextBlock();
		await scene.reaches(first, "INCLUDED");
		assert.deepEqual([await scene.receipt(second), await scene.receipt(third)], [null, null]);
	});

	it("in one batch with its submission takes it back", async () => {
		const actor = await scene.actor();
		const [tx, cancel] = [actor.sign(), toSelf(actor)];
		const body = [tx, cancel].map(({ raw }, id) => {
			return { jsonrpc: "2.0", id, method: "eth_sendRawTransaction", params: [raw] };
		});
		const headers = { "content-type": "application/json" };
		const url = `${scene.system.client.url}${SOFT}`;
		const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
		const answers = (await response.json()) as { result: string }[];
		assert.deepEqual(
			answers.map(({ result }) => result),
			[tx.hash, cancel.hash],
		);
		await assertTakenBack(actor, tx, cancel);
	});

	it("may be cancelled by hash like any other that is cancelled: true", async () => {
		const { actor, tx } = await scene.out(SOFT);
		const cancel = toSelf(actor);
		await scene.submit(SOFT, cancel);
		for (const one of [tx, cancel]) assert.equal(await scene.cancel(one), true);
	});
});

describe("what is no soft cancel", () => {
	it("the same on what was sent without soft cancellations, or where they have no effect", async () => {
		for (const path of [
			"/fast?softCancellations=true",
			"/noreverts",
			"/maxbackruns?softcancel=1",
			"/nochecks",
		]) {
			const { actor, tx } = await scene.out(path);
			assert.match(await scene.tried(toSelf(actor), SOFT), UNDERPRICED, path);
			assert.equal((await scene.status(tx)).stage, "BROADCAST");
			const dear = toSelf(actor, { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI });
			await scene.submit("/fast", dear);
			await scene.reaches(tx, "REPLACED");
			await scene.sent(dear);
			await scene.system.nextBlock();
			await scene.reaches(dear, "INCLUDED");
		}
	});

	it("a transfer with data, to another, of another account or nonce, with blobs or a delegation", async () => {
		const { actor, tx } = await scene.out(SOFT);
		const stranger = await scene.actor();
		const to = actor.address;
		for (const options of [
			{ ...CHEAP, to, data: "0x00", gasLimit: 30_000 },
			{ ...CHEAP, to: stranger.address },
			{ ...CHEAP, to: null, data: "0x", gasLimit: 60_000 },
			{ ...CHEAP, to, type: 3 as const, blobs: 1 },
			{ ...CHEAP, to, type: 4 as const },
		]) {
			assert.match(await scene.tried(actor.sign(options), SOFT), UNDERPRICED, JSON.stringify(options.to));
		}
		await scene.submit(SOFT, stranger.sign({ to: stranger.address }));
		await scene.submit(SOFT, actor.sign({ to, nonce: 1 }));
		assert.equal((await scene.status(tx)).stage, "BROADCAST");
		assert.equal(await scene.pendingNonce(actor), 2);
	});

	it("a self-transfer that could be in no block of this chain: refused, and nothing happens", async () => {
		const { actor, tx } = await scene.out(SOFT);
		for (const [options, refusal] of [
			[{ chainId: 1n }, /^-32000 invalid chain id for signer/],
			[{ gasLimit: 20_999 }, /^-32000 intrinsic gas too low/],
			[{ maxFeePerGas: 1n, maxPriorityFeePerGas: 2n }, /^-32000 max priority fee per gas higher/],
		] as const) {
			assert.match(await scene.tried(toSelf(actor, options), SOFT), refusal);
		}
		assert.equal((await scene.status(tx)).stage, "BROADCAST");
	});

	it("a self-transfer where nothing was before: it is sent and mined, and may be soft-cancelled itself", async () => {
		const actor = await scene.actor();
		const first = toSelf(actor, { maxFeePerGas: 20n * GWEI, maxPriorityFeePerGas: GWEI });
		await scene.submit(SOFT, first);
		await scene.sent(first);
		const second = toSelf(actor, { value: 1n });
		await scene.submit(SOFT, second);
		await assertTakenBack(actor, first, second);
		const other = await scene.actor();
		const lone = other.sign({ to: other.address });
		await scene.submit("/fast", lone);
		await scene.sent(lone);
		await scene.system.nextBlock();
		await scene.reaches(lone, "INCLUDED");
	});

	it("one that comes too late: nonce too low", async () => {
		const { actor, tx } = await scene.out(SOFT);
		await scene.system.nextBlock();
		await scene.reaches(tx, "INCLUDED");
		const late = toSelf(actor);
		assert.match(await scene.tried(late, SOFT), /^-32000 nonce too low: next nonce 1, tx nonce 0/);
		assert.equal((await scene.status(late)).stage, undefined);
		assert.equal((await scene.status(tx)).stage, "INCLUDED");
		assert.equal(await scene.cancel(late), NOT_PENDING);
	});
});
