// Sent means that a request with the transaction was written. A queued transaction is with no
// builder: it is not BROADCAST, and its end needs no cancel.

import assert from "node:assert/strict";
import { privateTransaction } from "../../support/txFactory.ts";
import { cancel, DEAR, type StagesFixture, scenario } from "./stagesFixture.ts";

function typesOf({ records }: StagesFixture, { tx }: ReturnType<typeof privateTransaction>): string[] {
	return (records.get(tx.hash)?.record.events ?? []).map(({ type }) => type);
}

for (const path of ["fast", "noreverts", "fullprivacy", "nochecks"] as const) {
	scenario(`on /${path} becomes BROADCAST when it is sent, once for each block`, async (fixture) => {
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

	scenario(`on /${path} a cancel before it is sent reaches no builder`, async (fixture) => {
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
		`on /${path} a replacement before it is sent reaches no builder; the new one is sent`,
		async (fixture) => {
			const [tx, replacement] = [privateTransaction({ path }), privateTransaction({ path, ...DEAR })];
			fixture.builders.holding = true;
			await fixture.take(tx, replacement);
			fixture.builders.leave();
			assert.deepEqual(fixture.stages(tx, replacement), ["REPLACED", "BROADCAST"]);
			assert.ok(!fixture.builders.take().some((line) => line.startsWith("cancel")));
		},
	);
}

scenario(
	"a failed simulation before it is sent removes it from the queues without a cancel",
	async (fixture) => {
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
	},
);

scenario("a cancel after a restart goes to all builders that may have it", async (fixture) => {
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
});
