// Tests transactions whose client has disclosed so much that they wait for their turn: builders get
// them at once, and they are disclosed only while that is still right.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import { cancel, type StagesFixture, scenario } from "./stagesFixture.ts";

const CLIENT = "192.0.2.1";
const LARGE = Buffer.alloc(128 * 1024 - 512);
const SOON_MS = 2_000;

const tx = (nonce: number, path: PrivateTransaction["path"] = "maxbackruns") =>
	privateTransaction({ nonce, path, submitterAddress: CLIENT });

/** Has the client disclose as much as it may at once. */
async function used(fixture: StagesFixture): Promise<void> {
	for (const i of [1, 2]) {
		const options = { by: testAccount(i), gasLimit: 16_000_000, data: LARGE, path: "maxbackruns" } as const;
		await fixture.take(privateTransaction({ ...options, submitterAddress: CLIENT }));
	}
	fixture.builders.take();
}

const shared = (fixture: StagesFixture, ...all: readonly PrivateTransaction[]) =>
	all.map((one) => fixture.records.get(one.tx.hash)?.record.shared);

scenario("builders have a transaction at once that waits to be disclosed", async (fixture) => {
	await used(fixture);
	const waiting = tx(0);
	await fixture.take(waiting);
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	assert.deepEqual([fixture.stage(waiting), ...shared(fixture, waiting)], ["BROADCAST", false]);
	await fixture.clock.advance(SOON_MS);
	assert.deepEqual([fixture.stage(waiting), ...shared(fixture, waiting)], ["BROADCAST", true]);
});

scenario(
	"a transaction that is mined before its turn is not disclosed, and is if that block goes",
	async (fixture) => {
		await used(fixture);
		const waiting = tx(0);
		await fixture.take(waiting);
		await fixture.block({ mined: [waiting] });
		await fixture.clock.advance(SOON_MS);
		assert.deepEqual([fixture.stage(waiting), ...shared(fixture, waiting)], ["INCLUDED", false]);
		await fixture.block({ reverted: [fixture.head] });
		assert.deepEqual([fixture.stage(waiting), ...shared(fixture, waiting)], ["BROADCAST", true]);
	},
);

scenario(
	"a transaction that is cancelled before its turn is not disclosed, until it comes again",
	async (fixture) => {
		await used(fixture);
		const waiting = tx(0);
		await fixture.take(waiting);
		assert.ok(await cancel(fixture, waiting));
		await fixture.clock.advance(SOON_MS);
		assert.deepEqual(shared(fixture, waiting), [false]);
		const other = privateTransaction({ nonce: 0, path: "maxbackruns", submitterAddress: "192.0.2.2" });
		assert.equal((await fixture.submit(other, other.tx.hash)).outcome, "accepted");
		assert.deepEqual(shared(fixture, other), [true]);
	},
);

scenario(
	"a transaction that waits for its turn hides nothing behind it, also at later heads",
	async (fixture) => {
		await used(fixture);
		fixture.emitsEvents = true;
		const [first, second] = [tx(0, "fast"), tx(1, "fast")];
		await fixture.take(first);
		await fixture.block();
		// It is simulated once, so that its later runs have no outcome.
		await fixture.take(second);
		await fixture.block();
		assert.deepEqual(shared(fixture, first, second), [false, false]);
		await fixture.clock.advance(SOON_MS);
		assert.deepEqual(shared(fixture, first, second), [true, true]);
		assert.equal(fixture.records.get(second.tx.hash)?.record.behindHidden, false);
	},
);

scenario("after a restart a transaction that waited is disclosed", async (fixture) => {
	await used(fixture);
	const waiting = tx(0);
	await fixture.take(waiting);
	const next = await fixture.restart();
	// The first head of a process comes after a gap.
	await next.work([], [], true);
	await next.clock.advance(SOON_MS);
	assert.deepEqual(shared(next, waiting), [true]);
});
