// A fork begins while transactions are pending that its rules do not allow. They are reported as
// failing and no longer sent, on each path. New transactions are judged by the new rules, and a
// replacement that they allow is mined. The node is an anvil whose eth_config is the test's.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { GWEI, RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const PATHS = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"];
const CURRENT = { activationTime: 0, precompiles: { P256VERIFY: "0x0100" }, systemContracts: {} };
const AMSTERDAM = { ...CURRENT, systemContracts: { BUILDER_DEPOSIT_CONTRACT_ADDRESS: "0x02" } };
/** Least gas until Osaka, 31,000; since Amsterdam 79,000. */
const SHAPE = { data: new Uint8Array(1_000) };
const NEEDED = 79_000;
const WORDS = "insufficient gas for floor data gas cost: gas 40000, minimum needed 79000";

let system: TestSystem;
let fixture: RelayFixture;

before(async () => {
	system = await startSystem({ proxied: true });
	fixture = new RelayFixture(system);
});
after(() => system.stop());

/**
 * The node announces the fork, which the relay learns within a hundred blocks; returns its time in
 * seconds.
 */
async function announced(): Promise<number> {
	const head = (await system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as { timestamp: string };
	const since = Number(head.timestamp) + 100_000;
	const result = { current: CURRENT, next: { ...AMSTERDAM, activationTime: since }, last: null };
	const { node } = system;
	assert.ok(node);
	node.reset();
	node.setFault({ kind: "result", result }, { methods: ["eth_config"] });
	await system.chain.rpc("anvil_mine", ["0x64", "0x1"]);
	await fixture.seesHead(100);
	await until("the relay has asked", () => node.calls().some(({ method }) => method === "eth_config"));
	return since;
}

it("holds what the new rules do not allow, and loses nothing", async () => {
	const since = await announced();
	const actors = await Promise.all(PATHS.map(() => fixture.actor()));
	const pending = actors.map((actor) => actor.sign({ ...SHAPE, gasLimit: 40_000 }));
	await Promise.all(pending.map((tx, i) => fixture.submit(PATHS[i] ?? "", tx)));
	await Promise.all(pending.map((tx) => fixture.waitUntilSent(tx)));

	const number = (await fixture.head()) + 1;
	await system.chain.rpc("evm_mine", [{ timestamp: since }]);
	await fixture.seesHead(number);
	for (const [i, tx] of pending.entries()) {
		const { simulationError } = await fixture.reaches(tx, "SIMULATION_FAILED");
		assert.deepEqual(simulationError, { code: "FORK_RULES", message: WORDS }, PATHS[i]);
	}
	const sent = pending.map((tx) => fixture.deliveries(system.builder, tx).length);
	await fixture.passBlock();

	// The same rules for what comes now, and for what takes the place of the old.
	const [actor] = actors;
	assert.ok(actor);
	const replacing = { ...SHAPE, maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
	const short = actor.sign({ ...replacing, gasLimit: NEEDED - 1 });
	await assert.rejects(fixture.submit("/fast", short), /gas 78999, minimum needed 79000/);
	const enough = actor.sign({ ...replacing, gasLimit: NEEDED });
	await fixture.submit("/fast", enough);
	await fixture.waitUntilSent(enough);
	const block = await system.nextBlock();
	assert.equal((await fixture.receipt(enough))?.block, block);
	const sentSince = pending.map((tx) => fixture.deliveries(system.builder, tx).length);
	assert.deepEqual(sentSince, sent, "what no block can have goes out no more");
});
