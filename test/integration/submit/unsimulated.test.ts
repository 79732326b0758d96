// Transactions that the node can't simulate: all of them, because it (or its provider) refuses the
// methods, or only those that need too much. On the paths that allow a revert they go out
// unsimulated, on the others they are held. They are never reported as failing.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { BiddingFixture, backrunBy, prepareBidding } from "../../support/biddingFixture.ts";
import { REVERTS } from "../../support/contracts.ts";
import type { NodeRule } from "../../support/nodes.ts";
import { ETHER, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const NOT_POSSIBLE = { code: "NODE_UNAVAILABLE", message: "simulation not possible: the node refuses it" };
const GONE = { code: -32601, message: "the method does not exist/is not available" };
const NO_SIMULATION: NodeRule = {
	refuse: (method) => (method === "eth_simulateV1" || method === "debug_traceCall" ? GONE : null),
};
/** No trace, and no simulation of a transaction with a million gas. */
const LITTLE: NodeRule = {
	refuse: (method, params) =>
		method === "debug_traceCall" ||
		(method === "eth_simulateV1" && JSON.stringify(params).includes('"0xf4240"'))
			? { code: -38026, message: "Client adjustable limit reached" }
			: null,
};

let system: TestSystem;
let fixture: RelayFixture;
let bids: BiddingFixture;
before(async () => {
	system = await startSystem({ proxied: true, builders: [{ name: "dev", fullPrivacy: true }] });
	await prepareBidding(system);
	fixture = new RelayFixture(system);
	bids = new BiddingFixture(system);
});
after(() => system.stop());

async function info(): Promise<{ bidding: boolean; simulation: Record<string, unknown> }> {
	return (await (await fetch(`${system.client.url}/info`)).json()) as Awaited<ReturnType<typeof info>>;
}

/** Held without a verdict. */
async function isHeld(tx: Signed): Promise<void> {
	const held = await fixture.reaches(tx, "SIMULATION_FAILED");
	assert.deepEqual(held.simulationError, NOT_POSSIBLE);
	assert.equal(fixture.deliveries(fixture.builder("dev"), tx).length, 0);
}

/** Sent, with an event that says that it was not simulated. */
async function isSentUnsimulated(tx: Signed): Promise<void> {
	const { error } = await fixture.event(tx, "notSimulated");
	assert.deepEqual(error, NOT_POSSIBLE);
	await fixture.reaches(tx, "BROADCAST");
	await until("the builder has it", () => fixture.deliveries(fixture.builder("dev"), tx).length > 0);
}

describe("a node that has lost its simulations", () => {
	const sent: Signed[] = [];
	before(async () => {
		assert.deepEqual((await info()).bidding, true);
		system.node?.setRule(NO_SIMULATION);
	});
	after(() => system.node?.setRule(null));

	for (const path of ["/fast", "/maxbackruns"]) {
		it(`${path} sends it, whatever it would do`, async () => {
			const to = path === "/fast" ? await fixture.placeCode(REVERTS) : undefined;
			const actor = await fixture.actor();
			const tx = actor.sign(to === undefined ? {} : { to });
			await fixture.submit(path, tx);
			await isSentUnsimulated(tx);
			sent.push(tx);
		});
	}

	for (const path of ["/noreverts", "/fullprivacy"]) {
		it(`${path} holds it, without a verdict`, async () => {
			const tx = (await fixture.actor()).sign();
			await fixture.submit(path, tx);
			await isHeld(tx);
		});
	}

	it("/info says so at the next start, and bids are refused with the reason", async () => {
		await system.restart();
		const { bidding, simulation } = await info();
		assert.deepEqual([bidding, simulation], [false, { method: null, gasCap: null, missing: [] }]);
		const target = await bids.target(1);
		const { error } = await bids.ask("eth_sendBundle", [{ txs: [target, backrunBy(2, 1n).raw] }]);
		assert.equal(error?.message, "bidding is not available with this node");
	});

	it("what was sent is mined", async () => {
		const block = await system.nextBlock();
		const receipts = await Promise.all(sent.map((tx) => fixture.receipt(tx)));
		assert.deepEqual(
			receipts.map((receipt) => [receipt?.block, receipt?.ok]),
			[
				[block, false],
				[block, true],
			],
		);
	});
});

describe("a transaction that is too much for the node, in a chain of one sender", () => {
	before(async () => {
		await system.restart();
		assert.equal((await info()).bidding, true);
		system.node?.setRule(LITTLE);
	});
	after(() => system.node?.setRule(null));

	it("goes out on /fast unsimulated, with what stands behind it there; all are mined", async () => {
		const actor = await fixture.actor(1_000n * ETHER);
		const chain = [0, 1, 2].map((nonce) => actor.sign({ nonce, gasLimit: nonce === 1 ? 1_000_000 : 50_000 }));
		await fixture.submit("/fast", ...chain);
		const [first, ...others] = chain;
		assert.ok(first !== undefined);
		await fixture.event(first, "simulated");
		for (const tx of others) await isSentUnsimulated(tx);
		const block = await system.nextBlock();
		for (const tx of chain) assert.equal((await fixture.receipt(tx))?.block, block);
	});

	it("is held on /noreverts", async () => {
		const tx = (await fixture.actor()).sign({ gasLimit: 1_000_000 });
		await fixture.submit("/noreverts", tx);
		await isHeld(tx);
	});

	it("takes no bids, and says why", async () => {
		const target = await bids.target(3, { gasLimit: 1_000_000 });
		const { error } = await bids.ask("eth_sendBundle", [{ txs: [target, backrunBy(4, 1n).raw] }]);
		assert.equal(error?.message, `bidding is not available with this target: ${NOT_POSSIBLE.message}`);
		assert.deepEqual(error?.data, { reason: "NO_BIDDING" });
	});
});
