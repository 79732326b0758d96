// The head that the relay's is compared with: whose it is, when it is read, and when it counts for
// nothing.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createHeadReference } from "../../../../boost-proxy/health/headReference.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { FakeTransport } from "./probeFixture.ts";

/** A reference that asks a node that is set, or a fallback. */
async function referenceFixture(t: TestContext, of: "node" | "fallback") {
	const clock = new ManualClock();
	const transport = new FakeTransport(clock);
	const warned: string[] = [];
	const log: Logger = { ...silentLogger, warn: (message) => warned.push(message) };
	const set = { head: "0x64", chainId: "0x1", isUp: true };
	let calls = 0;
	const node = {
		async call({ method }: { readonly method: string }) {
			calls++;
			if (!set.isUp) throw new UpstreamError("timeout");
			return { ok: true, result: method === "eth_chainId" ? set.chainId : set.head } as const;
		},
	};
	const reference = createHeadReference(
		{ slot: { ms: 12_000 } },
		{ node: of === "node" ? node : null, fallback: transport, clock, log },
	);
	assert.equal(reference.head, null);
	await reference.start();
	t.after(() => reference.stop());
	await clock.advance(0);
	return { clock, transport, set, reference, warned, calls: () => calls };
}

test("the reference is the independent node's head, read once a slot, and nothing once it is old", async (t) => {
	const { clock, transport, set, reference, calls } = await referenceFixture(t, "node");
	assert.equal(reference.head, 100n);
	assert.equal(reference.headOf(1n), 100n);
	set.head = "0x65";
	await clock.advance(11_999);
	assert.equal(reference.head, 100n);
	await clock.advance(1);
	assert.equal(reference.head, 101n);
	assert.equal(calls(), 3, "its chain id was asked once");
	set.isUp = false;
	await clock.advance(36_000);
	assert.equal(reference.head, 101n);
	await clock.advance(1);
	assert.equal(reference.head, null);
	assert.equal(reference.headOf(1n), null);
	set.isUp = true;
	await clock.advance(12_000);
	assert.equal(reference.head, 101n);
	assert.deepEqual(transport.asked, [], "with a node of one's own nobody else is asked");
	await reference.stop();
	assert.equal(clock.timers, 0);
});

test("a reference of another chain is not used, which is logged once", async (t) => {
	const { clock, set, reference, warned } = await referenceFixture(t, "node");
	for (const _ of [1, 2, 3]) {
		assert.equal(reference.headOf(5n), null);
		await clock.advance(12_000);
	}
	assert.equal(warned.length, 1);
	// It turns out that it was put right.
	set.chainId = "0x5";
	assert.equal(reference.headOf(5n), null);
	await clock.advance(12_000);
	assert.equal(reference.headOf(5n), 100n);
});

test("without a node it is the fallback's head, whose word alone does not suffice", async (t) => {
	const { reference, transport, calls } = await referenceFixture(t, "fallback");
	assert.deepEqual([reference.head, reference.isThirdParty], [100n, true]);
	assert.deepEqual([transport.asked, calls()], [["eth_chainId", "eth_blockNumber"], 0]);
});
