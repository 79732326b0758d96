// Tests each head's cost to the node: work for what can be in the next block, none for what only waits.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { blocks, scenario } from "./scenarios.ts";
import type { StagesFixture } from "./stagesFixture.ts";

const GWEI = 10n ** 9n;
const CROWD = 40;
const crowd = (options: TxOptions & Partial<PrivateTransaction>) =>
	Array.from({ length: CROWD }, (_, i) => privateTransaction({ by: testAccount(100 + i), ...options }));
const low = (options: TxOptions & Partial<PrivateTransaction> = {}) =>
	privateTransaction({ maxFeePerGas: GWEI / 2n, maxPriorityFeePerGas: 1, ...options });
const LOW = { maxFeePerGas: GWEI / 2n, maxPriorityFeePerGas: 1 };

/** Accounts asked for, simulations and deliveries since the last time. */
function work(fixture: StagesFixture): readonly [number, number, number] {
	const asked = fixture.node.asked;
	fixture.node.asked = 0;
	return [asked, fixture.simulated.splice(0).length, fixture.builders.take().length];
}

for (const [what, options] of [
	["wait for the base fee to fall", LOW],
	["wait for it, of the path that is simulated again for each block", { ...LOW, path: "noreverts" }],
	["wait for it, of the path that is never simulated", { ...LOW, path: "nochecks" }],
	["wait behind a gap", { nonce: 3 }],
	["wait for a blob fee", { type: 3, maxFeePerBlobGas: 1, nonce: 0 }],
] as const) {
	scenario(`those that ${what} cost nothing at a head`, async (fixture) => {
		fixture.blobBaseFee = 10n;
		await fixture.block();
		const good = privateTransaction({ path: "noreverts" });
		await fixture.take(...crowd(options), good);
		work(fixture);
		for (let i = 0; i < 3; i += 1) {
			await fixture.block();
			// The one that can be in the next block: its account is asked for before and in its simulation.
			assert.deepEqual(work(fixture), [2, 1, 1]);
		}
	});
}

scenario("when the base fee has fallen, who waited for that goes out at once", async (fixture) => {
	const [first, second, dearer] = [
		low(),
		low({ by: testAccount(1), path: "noreverts" }),
		low({ by: testAccount(2), maxFeePerGas: GWEI / 4n }),
	];
	await fixture.take(first, second, dearer);
	assert.deepEqual(work(fixture).slice(1), [0, 0]);
	for (const tx of [first, second, dearer]) {
		assert.equal(fixture.records.get(tx.tx.hash)?.record.simulationError?.code, "FEE_CAP_TOO_LOW");
	}
	await blocks(fixture, 2);
	assert.equal(fixture.life(first).filter((type) => type === "simulationFailed").length, 1, "told once");
	await fixture.block({ baseFee: GWEI / 2n });
	assert.deepEqual(work(fixture).slice(1), [2, 2]);
	assert.deepEqual(
		[first, second, dearer].map((tx) => fixture.stage(tx)),
		["BROADCAST", "BROADCAST", "SIMULATION_FAILED"],
	);
});

scenario(
	"what was out and must pass again is told as held when the base fee has risen above it",
	async (fixture) => {
		const [checked, once] = [
			privateTransaction({ path: "noreverts" }),
			privateTransaction({ by: testAccount(1) }),
		];
		await fixture.take(checked, once);
		work(fixture);
		await fixture.block({ baseFee: 30n * GWEI });
		assert.deepEqual(fixture.builders.take(), []);
		assert.deepEqual([fixture.stage(checked), fixture.stage(once)], ["SIMULATION_FAILED", "BROADCAST"]);
		work(fixture);
		await fixture.block({ baseFee: 30n * GWEI });
		assert.deepEqual(work(fixture), [0, 0, 0]);
		await fixture.block();
		assert.deepEqual(fixture.builders.take().sort(), ["send 0 for 104 to a,b", "send 0 for 104 to a,b"]);
		assert.equal(fixture.stage(checked), "BROADCAST");
	},
);

scenario(
	"behind a link that goes out, one that waits for its fee is neither simulated nor sent",
	async (fixture) => {
		const [good, waits, behind] = [privateTransaction(), low({ nonce: 1 }), privateTransaction({ nonce: 2 })];
		await fixture.take(good, waits, behind);
		assert.deepEqual(
			[fixture.stage(good), fixture.stage(waits), fixture.stage(behind)],
			["BROADCAST", "SIMULATION_FAILED", "QUEUED"],
		);
		work(fixture);
		await fixture.block();
		assert.deepEqual(work(fixture).slice(1), [0, 1]);
		await fixture.block({ baseFee: GWEI / 2n });
		assert.deepEqual(work(fixture).slice(1), [1, 3]);
	},
);

scenario("after blocks that were missed, all that could go out by now is asked for", async (fixture) => {
	await fixture.take(...crowd({ nonce: 3 }));
	for (const { tx } of crowd({ nonce: 3 })) fixture.node.nonces.set(tx.from, 3n);
	work(fixture);
	await fixture.block();
	assert.deepEqual(work(fixture), [0, 0, 0]);
	await fixture.work([], [], true);
	assert.deepEqual(work(fixture).slice(1), [CROWD, CROWD]);
});

scenario("what was replaced or taken back leaves the queue of simulations", async (fixture) => {
	let open = () => {};
	fixture.simulationGate = new Promise((resolve) => {
		open = resolve;
	});
	const [tx, fresh] = [
		privateTransaction(),
		privateTransaction({ maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: 50n * GWEI }),
	];
	await fixture.submit(tx);
	await fixture.clock.advance(0);
	assert.equal(fixture.withdrawn, 0);
	await fixture.submit(fresh);
	await fixture.clock.advance(0);
	assert.equal(fixture.withdrawn, 1);
	await fixture.cancellations.cancel({ hash: fresh.tx.hash, address: "127.0.0.1", signer: null });
	await fixture.clock.advance(0);
	assert.equal(fixture.withdrawn, 2);
	open();
	await fixture.quiet();
	assert.deepEqual(
		[fixture.stage(tx), fixture.stage(fresh), fixture.builders.take()],
		["REPLACED", "CANCELLED", []],
	);
});
