// Tests each head's cost to the node: work for what can be in the next block, none for what only waits.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import type { StagesScene } from "./stagesScene.ts";
import { blocks, story } from "./stories.ts";

const GWEI = 10n ** 9n;
const CROWD = 40;
const crowd = (options: TxOptions & Partial<PrivateTransaction>) =>
	Array.from({ length: CROWD }, (_, i) => privateTransaction({ by: testAccount(100 + i), ...options }));
const low = (options: TxOptions & Partial<PrivateTransaction> = {}) =>
	privateTransaction({ maxFeePerGas: GWEI / 2n, maxPriorityFeePerGas: 1, ...options });
const LOW = { maxFeePerGas: GWEI / 2n, maxPriorityFeePerGas: 1 };

/** Accounts asked for, simulations and deliveries since the last time. */
function work(scene: StagesScene): readonly [number, number, number] {
	const asked = scene.node.asked;
	scene.node.asked = 0;
	return [asked, scene.simulated.splice(0).length, scene.builders.take().length];
}

for (const [what, options] of [
	["wait for the base fee to fall", LOW],
	["wait for it, of the path that is simulated again for each block", { ...LOW, path: "noreverts" }],
	["wait for it, of the path that is never simulated", { ...LOW, path: "nochecks" }],
	["wait behind a gap", { nonce: 3 }],
	["wait for a blob fee", { type: 3, maxFeePerBlobGas: 1, nonce: 0 }],
] as const) {
	story(`those that ${what} cost nothing at a head`, async (scene) => {
		scene.blobBaseFee = 10n;
		await scene.block();
		const good = privateTransaction({ path: "noreverts" });
		await scene.take(...crowd(options), good);
		work(scene);
		for (let i = 0; i < 3; i += 1) {
			await scene.block();
			// The one that can be in the next block: its account is asked for before and in its simulation.
			assert.deepEqual(work(scene), [2, 1, 1]);
		}
	});
}

story("when the base fee has fallen, who waited for that goes out at once", async (scene) => {
	const [first, second, dearer] = [
		low(),
		low({ by: testAccount(1), path: "noreverts" }),
		low({ by: testAccount(2), maxFeePerGas: GWEI / 4n }),
	];
	await scene.take(first, second, dearer);
	assert.deepEqual(work(scene).slice(1), [0, 0]);
	for (const tx of [first, second, dearer]) {
		assert.equal(scene.ledger.get(tx.tx.hash)?.record.simulationError?.code, "FEE_CAP_TOO_LOW");
	}
	await blocks(scene, 2);
	assert.equal(scene.life(first).filter((type) => type === "simulationFailed").length, 1, "told once");
	await scene.block({ baseFee: GWEI / 2n });
	assert.deepEqual(work(scene).slice(1), [2, 2]);
	assert.deepEqual(
		[first, second, dearer].map((tx) => scene.stage(tx)),
		["BROADCAST", "BROADCAST", "SIMULATION_FAILED"],
	);
});

story(
	"what was out and must pass again is told as held when the base fee has risen above it",
	async (scene) => {
		const [checked, once] = [
			privateTransaction({ path: "noreverts" }),
			privateTransaction({ by: testAccount(1) }),
		];
		await scene.take(checked, once);
		work(scene);
		await scene.block({ baseFee: 30n * GWEI });
		assert.deepEqual(scene.builders.take(), []);
		assert.deepEqual([scene.stage(checked), scene.stage(once)], ["SIMULATION_FAILED", "BROADCAST"]);
		work(scene);
		await scene.block({ baseFee: 30n * GWEI });
		assert.deepEqual(work(scene), [0, 0, 0]);
		await scene.block();
		assert.deepEqual(scene.builders.take().sort(), ["send 0 for 104 to a,b", "send 0 for 104 to a,b"]);
		assert.equal(scene.stage(checked), "BROADCAST");
	},
);

story(
	"behind a link that goes out, one that waits for its fee is neither simulated nor sent",
	async (scene) => {
		const [good, waits, behind] = [privateTransaction(), low({ nonce: 1 }), privateTransaction({ nonce: 2 })];
		await scene.take(good, waits, behind);
		assert.deepEqual(
			[scene.stage(good), scene.stage(waits), scene.stage(behind)],
			["BROADCAST", "SIMULATION_FAILED", "QUEUED"],
		);
		work(scene);
		await scene.block();
		assert.deepEqual(work(scene).slice(1), [0, 1]);
		await scene.block({ baseFee: GWEI / 2n });
		assert.deepEqual(work(scene).slice(1), [1, 3]);
	},
);

story("after blocks that were missed, all that could go out by now is asked for", async (scene) => {
	await scene.take(...crowd({ nonce: 3 }));
	for (const { tx } of crowd({ nonce: 3 })) scene.node.nonces.set(tx.from, 3n);
	work(scene);
	await scene.block();
	assert.deepEqual(work(scene), [0, 0, 0]);
	await scene.work([], [], true);
	assert.deepEqual(work(scene).slice(1), [CROWD, CROWD]);
});

story("what was replaced or taken back leaves the queue of simulations", async (scene) => {
	let open = () => {};
	scene.simulationGate = new Promise((resolve) => {
		open = resolve;
	});
	const [tx, fresh] = [
		privateTransaction(),
		privateTransaction({ maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: 50n * GWEI }),
	];
	await scene.submit(tx);
	await scene.clock.advance(0);
	assert.equal(scene.withdrawn, 0);
	await scene.submit(fresh);
	await scene.clock.advance(0);
	assert.equal(scene.withdrawn, 1);
	await scene.cancellations.cancel({ hash: fresh.tx.hash, address: "127.0.0.1", signer: null });
	await scene.clock.advance(0);
	assert.equal(scene.withdrawn, 2);
	open();
	await scene.quiet();
	assert.deepEqual(
		[scene.stage(tx), scene.stage(fresh), scene.builders.take()],
		["REPLACED", "CANCELLED", []],
	);
});
