// Tests what searchers see of submissions on each path, over several blocks, and what the status says of it, against
// the table of endpoints.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { EMITS, REVERTS } from "../../support/contracts.ts";
import { FeedClient } from "../../support/feeds.ts";
import { type Actor, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";

/** Blocks over which what must not be shown is watched. */
const WATCHED = 4;

let system: TestSystem;
let fixture: RelayFixture;
let searcher: FeedClient;
let feed: string;
let emitter: string;

before(async () => {
	system = await startSystem({ builders: [{ name: "vault", fullPrivacy: true }, { name: "plain" }] });
	fixture = new RelayFixture(system);
	emitter = await fixture.place(EMITS);
	searcher = await FeedClient.open(`${system.client.url.replace("http", "ws")}/ws`);
	feed = await searcher.subscribe("service_partialPendingTransactions");
});
after(async () => {
	searcher.close();
	await system.stop();
});

const times = (tx: Signed): number => searcher.times(feed, tx.hash);

/** A transaction that is shared: whatever was shared before has been heard once this one is. */
async function fence(): Promise<void> {
	const tx = (await fixture.actor()).sign();
	await fixture.submit("/maxbackruns", tx);
	await searcher.shown(feed, tx.hash);
}

/** Blocks pass without it in them; it is never heard of, and its status says so. */
async function staysHidden(...transactions: readonly Signed[]): Promise<void> {
	for (let block = 0; block < WATCHED; block++) {
		await fence();
		for (const tx of transactions) assert.equal(times(tx), 0, `block ${block}`);
		await fixture.passBlock();
	}
	for (const tx of transactions) {
		assert.equal((await fixture.status(tx)).shared, false);
		assert.ok(!(await fixture.life(tx)).includes("shared"));
	}
}

/** It is heard of once, and its status says so; blocks that pass change nothing. */
async function isSharedOnce(tx: Signed): Promise<void> {
	await searcher.shown(feed, tx.hash);
	await fixture.event(tx, "shared");
	assert.equal((await fixture.status(tx)).shared, true);
	await fixture.passBlock();
	await fixture.passBlock();
	await fence();
	assert.equal(times(tx), 1);
	assert.equal((await fixture.life(tx)).filter((event) => event === "shared").length, 1);
}

describe("the table of endpoints, column `shared`", () => {
	for (const path of ["/fast", "/noreverts"]) {
		it(`${path}: what emits an event is shared, once`, async () => {
			const tx = (await fixture.actor()).sign({ to: emitter });
			await fixture.submit(path, tx);
			await isSharedOnce(tx);
			await fixture.sent(tx);
		});

		it(`${path}: a plain transfer is not`, async () => {
			const tx = (await fixture.actor()).sign({ value: 5n });
			await fixture.submit(path, tx);
			await fixture.sent(tx);
			await staysHidden(tx);
		});

		it(`${path}: what fails is shared when it passes, and not before`, async () => {
			const contract = await fixture.place(REVERTS);
			const tx = (await fixture.actor()).sign({ to: contract });
			await fixture.submit(path, tx);
			await fixture.reaches(tx, "SIMULATION_FAILED");
			await fixture.passBlock();
			await fence();
			assert.equal(times(tx), 0);
			await system.chain.rpc("anvil_setCode", [contract, EMITS]);
			await fixture.passBlock();
			await isSharedOnce(tx);
			await fixture.sent(tx);
		});
	}

	for (const path of ["/fullprivacy", "/nochecks"]) {
		it(`${path}: never, whatever it does, and however many blocks pass`, async () => {
			const contract = await fixture.place(REVERTS);
			const emits = (await fixture.actor()).sign({ to: emitter });
			const transfer = (await fixture.actor()).sign({ value: 1n });
			const failing = (await fixture.actor()).sign({ to: contract });
			const gapped = (await fixture.actor()).sign({ to: emitter, nonce: 1 });
			await fixture.submit(path, emits, transfer, failing, gapped);
			await fixture.sent(emits, { builders: ["vault"] });
			await staysHidden(emits, transfer, failing, gapped);
			await system.chain.rpc("anvil_setCode", [contract, EMITS]);
			await staysHidden(failing);
			await fixture.sent(emits, { builders: ["vault"] });
			await system.nextBlock();
			await fence();
			for (const tx of [emits, transfer, failing, gapped]) assert.equal(times(tx), 0);
			assert.equal((await fixture.reaches(emits, "INCLUDED")).shared, false);
		});
	}

	it("/maxbackruns: always, at once", async () => {
		const plain = (await fixture.actor()).sign({ value: 5n });
		const emits = (await fixture.actor()).sign({ to: emitter });
		await fixture.submit("/maxbackruns", plain, emits);
		await isSharedOnce(plain);
		await isSharedOnce(emits);
	});

	it("/maxbackruns: also what fails, and what waits behind a gap of nonces", async () => {
		const failing = (await fixture.actor()).sign({ to: await fixture.place(REVERTS) });
		const gapped = (await fixture.actor()).sign({ nonce: 3 });
		await fixture.submit("/maxbackruns", failing, gapped);
		await isSharedOnce(failing);
		await isSharedOnce(gapped);
		assert.ok(!(await fixture.life(failing)).some((event) => event.startsWith("broadcast")));
	});
});

describe("chains of nonces", () => {
	let actor: Actor;
	const chain = async () => {
		actor = await fixture.actor();
		return [actor.sign({ to: emitter, nonce: 0 }), actor.sign({ to: emitter, nonce: 1 })] as const;
	};

	it("are shared together, in order", async () => {
		const [first, second] = await chain();
		await fixture.submit("/fast", second, first);
		await searcher.shown(feed, second.hash);
		const hashes = searcher.told(feed).map(({ hash }) => hash);
		assert.ok(hashes.indexOf(first.hash) >= 0 && hashes.indexOf(first.hash) < hashes.indexOf(second.hash));
		await isSharedOnce(first);
		await isSharedOnce(second);
	});

	it("say nothing of a link that is private, nor is its follower shown while it is there", async () => {
		const [secret, behind] = await chain();
		await fixture.submit("/fullprivacy", secret);
		await fixture.submit("/fast", behind);
		await fixture.sent(behind, { builders: ["vault"] });
		await staysHidden(secret, behind);
		await fixture.sent(secret, { builders: ["vault"] });
		await system.nextBlock();
		await fixture.reaches(secret, "INCLUDED");
		await fence();
		assert.equal(times(secret), 0);
	});
});

it("all that was ever told is shared by its status as well", async () => {
	const told = searcher.told(feed);
	assert.ok(told.length > 20);
	for (const { hash } of told) assert.equal((await system.client.status(String(hash))).shared, true);
});
