// Sent means that it has left for a builder: what waits in the lanes alone is with nobody. Its stage and its event say so, and an end
// before that needs no cancel.

import assert from "node:assert/strict";
import { privateTransaction } from "../../support/txFactory.ts";
import { cancel, DEAR, type StagesFixture, scenario } from "./stagesFixture.ts";

function typesOf({ records }: StagesFixture, { tx }: ReturnType<typeof privateTransaction>): string[] {
	return (records.get(tx.hash)?.record.events ?? []).map(({ type }) => type);
}

for (const path of ["fast", "noreverts", "fullprivacy", "nochecks"] as const) {
	scenario(`on /${path} it is BROADCAST when it leaves, once for each block`, async (fixture) => {
		const tx = privateTransaction({ path });
		fixture.builders.holding = true;
		await fixture.take(tx);
		const before = typesOf(fixture, tx);
		assert.ok(!before.includes("broadcast"), before.join());
		assert.equal(fixture.stage(tx), "PENDING");
		fixture.builders.leave();
		assert.deepEqual([fixture.stage(tx), typesOf(fixture, tx)], ["BROADCAST", [...before, "broadcast"]]);
		fixture.builders.leave();
		fixture.runner.run(tx.tx.from, "new", false);
		await fixture.quiet();
		assert.deepEqual(typesOf(fixture, tx), [...before, "broadcast"]);
	});

	scenario(`on /${path} what is cancelled before it leaves is with nobody`, async (fixture) => {
		const tx = privateTransaction({ path });
		fixture.builders.holding = true;
		await fixture.take(tx);
		fixture.builders.take();
		assert.equal(await cancel(fixture, tx), true);
		fixture.builders.leave();
		assert.deepEqual([fixture.builders.take(), fixture.stage(tx)], [[], "CANCELLED"]);
		const last = fixture.records.get(tx.tx.hash)?.record.events.at(-1);
		assert.deepEqual(last?.type === "cancelled" && last.builders, []);
	});

	scenario(
		`on /${path} what is replaced before it leaves is with nobody; its successor leaves`,
		async (fixture) => {
			const [tx, dearer] = [privateTransaction({ path }), privateTransaction({ path, ...DEAR })];
			fixture.builders.holding = true;
			await fixture.take(tx, dearer);
			fixture.builders.leave();
			assert.deepEqual(fixture.stages(tx, dearer), ["REPLACED", "BROADCAST"]);
			assert.ok(!fixture.builders.take().some((line) => line.startsWith("cancel")));
		},
	);
}

scenario("what fails its simulation before it leaves is taken back without a cancel", async (fixture) => {
	const tx = privateTransaction({ path: "noreverts" });
	fixture.builders.holding = true;
	await fixture.take(tx);
	fixture.failing.add(tx.tx.hash);
	fixture.runner.run(tx.tx.from, "new", false);
	await fixture.quiet();
	fixture.builders.leave();
	assert.equal(fixture.stage(tx), "SIMULATION_FAILED");
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	// It goes out again when it passes.
	fixture.failing.clear();
	await fixture.block();
	fixture.builders.leave();
	assert.deepEqual([fixture.builders.take(), fixture.stage(tx)], [["send 0 for 102 to a,b"], "BROADCAST"]);
});

scenario(
	"after a restart what had left still needs its cancel, and what waited may need it",
	async (fixture) => {
		const tx = privateTransaction({ path: "nochecks" });
		fixture.builders.holding = true;
		await fixture.take(tx);
		const next = await fixture.restart();
		next.builders.holding = true;
		await next.block();
		next.builders.take();
		assert.equal(await cancel(next, tx), true);
		assert.deepEqual(
			next.builders.take(),
			["cancel 0 for 102 at a,b"],
			"its last events may not have been written",
		);
	},
);
