// Tests a sender's chain where a running relay comes only by chance: simulations that are overtaken by events, a node
// that was silent, and what each head costs the node.

import assert from "node:assert/strict";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { blocks, cancel, DEAR, type StagesFixture, scenario } from "./stagesFixture.ts";

const GWEI = 10n ** 9n;
const CROWD = 40;
const LOW = { maxFeePerGas: GWEI / 2n, maxPriorityFeePerGas: 1 };

/** Accounts asked for, simulations and deliveries since the last time. */
function work(fixture: StagesFixture): readonly [number, number, number] {
	const { asked } = fixture.node;
	fixture.node.asked = 0;
	return [asked, fixture.simulated.splice(0).length, fixture.builders.take().length];
}

/** Simulations wait from now on, until the answer is called. */
function holdSimulations(fixture: StagesFixture): () => void {
	let open = () => {};
	fixture.simulationGate = new Promise((resolve) => {
		open = resolve;
	});
	return open;
}

/** What happens while it is simulated; what became of it; what is sent; simulations that were taken out of the queue. */
const OVERTAKEN: readonly (readonly [
	string,
	(fixture: StagesFixture, tx: PrivateTransaction) => Promise<unknown>,
	string,
	readonly string[],
	number,
])[] = [
	["a block comes", (fixture) => fixture.block(), "BROADCAST", ["send 0 for 102 to a,b"], 0],
	[
		"it is replaced",
		(fixture) => fixture.submit(privateTransaction(DEAR)),
		"REPLACED",
		["send 0 for 101 to a,b"],
		1,
	],
	["it is cancelled", cancel, "CANCELLED", [], 1],
];

for (const [event, happens, stage, sent, withdrawn] of OVERTAKEN) {
	scenario(`what its simulation found out does not count where ${event} meanwhile`, async (fixture) => {
		const tx = privateTransaction();
		const open = holdSimulations(fixture);
		await fixture.submit(tx);
		await fixture.clock.advance(0);
		assert.deepEqual(fixture.simulated, ["0"]);
		const happening = happens(fixture, tx);
		await fixture.clock.advance(0);
		open();
		await happening;
		await fixture.quiet();
		assert.deepEqual([fixture.stage(tx), fixture.builders.take()], [stage, sent]);
		assert.equal(fixture.withdrawn, withdrawn);
	});
}

for (const [what, silence] of [
	["can't simulate", { simulates: false, down: false }],
	["does not tell the account", { simulates: true, down: true }],
] as const) {
	scenario(`a node that ${what} is asked again a second later, without a block`, async (fixture) => {
		await fixture.take(privateTransaction());
		fixture.builders.take();
		fixture.nodeSimulates = silence.simulates;
		fixture.disk.hold = true;
		const submitting = fixture.submit(privateTransaction({ nonce: 1 }));
		await fixture.quiet();
		fixture.node.down = silence.down;
		fixture.disk.finish(true);
		await submitting;
		await fixture.quiet();
		assert.deepEqual(fixture.builders.take(), []);
		fixture.nodeSimulates = true;
		fixture.node.down = false;
		await fixture.clock.advance(1_000);
		await fixture.quiet();
		assert.deepEqual(fixture.builders.take(), ["send 1 for 101 to a,b"]);
	});
}

scenario("a chain that comes while its first link is simulated is one simulation more", async (fixture) => {
	const chain = Array.from({ length: 20 }, (_, nonce) => privateTransaction({ nonce }));
	const open = holdSimulations(fixture);
	for (const tx of chain) await fixture.submit(tx);
	await fixture.clock.advance(0);
	open();
	await fixture.quiet();
	assert.deepEqual(fixture.simulated, ["0", chain.map((_, nonce) => nonce).join()]);
	assert.equal(fixture.builders.take().length, chain.length);
});

for (const [what, options] of [
	["wait for the base fee to fall", LOW],
	["wait for it, of the path that is simulated again for each block", { ...LOW, path: "noreverts" }],
	["wait for it, of the path that is never simulated", { ...LOW, path: "nochecks" }],
	["wait behind a gap", { nonce: 3 }],
	["wait for a blob fee", { type: 3, maxFeePerBlobGas: 1, nonce: 0 }],
] satisfies [string, TxOptions & Partial<PrivateTransaction>][]) {
	scenario(`those that ${what} cost nothing at a head`, async (fixture) => {
		fixture.blobBaseFee = 10n;
		await fixture.block();
		const crowd = Array.from({ length: CROWD }, (_, i) =>
			privateTransaction({ by: testAccount(100 + i), ...options }),
		);
		await fixture.take(...crowd, privateTransaction({ path: "noreverts" }));
		work(fixture);
		for (let i = 0; i < 3; i += 1) {
			await fixture.block();
			// The one that can be in the next block: its account is asked for before and in its simulation.
			assert.deepEqual(work(fixture), [2, 1, 1]);
		}
	});
}

scenario("who waited for the base fee goes out at once when it has fallen", async (fixture) => {
	const [first, second, dearer] = [
		privateTransaction(LOW),
		privateTransaction({ ...LOW, by: testAccount(1), path: "noreverts" }),
		privateTransaction({ ...LOW, by: testAccount(2), maxFeePerGas: GWEI / 4n }),
	];
	await fixture.take(first, second, dearer);
	await blocks(fixture, 2);
	assert.deepEqual(work(fixture).slice(1), [0, 0]);
	for (const tx of [first, second, dearer]) {
		assert.equal(fixture.records.get(tx.tx.hash)?.record.simulationError?.code, "FEE_CAP_TOO_LOW");
		assert.equal(fixture.life(tx).filter((type) => type === "simulationFailed").length, 1, "told once");
	}
	await fixture.block({ baseFee: GWEI / 2n });
	assert.deepEqual(work(fixture).slice(1), [2, 2]);
	assert.deepEqual(fixture.stages(first, second, dearer), ["BROADCAST", "BROADCAST", "SIMULATION_FAILED"]);
});

scenario("what must pass again is told as held once the base fee has risen above it", async (fixture) => {
	const [checked, once] = [
		privateTransaction({ path: "noreverts" }),
		privateTransaction({ by: testAccount(1) }),
	];
	await fixture.take(checked, once);
	fixture.builders.take();
	await fixture.block({ baseFee: 30n * GWEI });
	assert.deepEqual(fixture.builders.take(), []);
	assert.deepEqual(fixture.stages(checked, once), ["SIMULATION_FAILED", "BROADCAST"]);
	work(fixture);
	await fixture.block({ baseFee: 30n * GWEI });
	assert.deepEqual(work(fixture), [0, 0, 0]);
	await fixture.block();
	assert.deepEqual(fixture.builders.take().sort(), ["send 0 for 104 to a,b", "send 0 for 104 to a,b"]);
});

scenario("a link that waits for its fee is not simulated, and holds up those behind it", async (fixture) => {
	const waits = privateTransaction({ ...LOW, nonce: 1 });
	const chain = [privateTransaction(), waits, privateTransaction({ nonce: 2 })];
	await fixture.take(...chain);
	assert.deepEqual(fixture.stages(...chain), ["BROADCAST", "SIMULATION_FAILED", "QUEUED"]);
	work(fixture);
	await fixture.block();
	assert.deepEqual(work(fixture).slice(1), [0, 1]);
	assert.deepEqual(fixture.life(waits), ["received", "ready", "simulationFailed"], "told once");
	await fixture.block({ baseFee: GWEI / 2n });
	assert.deepEqual(work(fixture).slice(1), [1, 3]);
});
