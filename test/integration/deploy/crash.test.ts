// Tests SIGKILL in the middle of submissions: what was answered is kept, sent again and mined. The relay is a real
// process; clients see their connections break, as wallets would.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { allSent, assertHeld, assertMined, prepareCrowd, submitCrowd } from "../../support/crashCrowd.ts";
import { type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";

const ROUNDS = [
	{ killAt: 20, path: "/fast" },
	{ killAt: 450, path: "/nochecks" },
	// There are two hundred requests under way at once: with fewer left all may be answered before it is gone.
	{ killAt: 700, path: "/fast" },
];
let system: ProcessSystem;
let builder: PlainBuilder;
before(async () => {
	// The dev builder tries each bundle by itself: 1,000 would take it five seconds a round.
	builder = await startPlainBuilder();
	system = await startProcessSystem({ builders: [{ name: "plain", url: builder.url }] });
});
after(async () => {
	await system.stop();
	await builder.stop();
});

for (const [round, { killAt, path }] of ROUNDS.entries()) {
	test(`SIGKILL after ${killAt} of 1,000 answers on ${path}: all that was answered is held and mined`, async () => {
		const submissions = await prepareCrowd(system, round);
		// A folder of its own: what earlier rounds left behind would be read again at each start.
		const env = { DATA_DIR: join(system.folder, `round${round}`) };
		const killed = await system.start(env);
		const answered = await submitCrowd(killed.url, path, submissions, {
			onAnswer(count) {
				if (count === killAt) killed.signal("SIGKILL");
			},
		});
		assert.equal((await killed.ended()).signal, "SIGKILL");
		assert.ok(answered.size >= killAt, `${answered.size} were answered`);
		assert.ok(answered.size < submissions.size, "all were answered before it was killed");

		builder.reset();
		const relay = await system.start(env);
		await assertHeld(relay.url, [...answered]);

		// The others' senders never heard of theirs: they send them again, as wallets do.
		const again = await submitCrowd(relay.url, path, submissions);
		assert.equal(again.size, submissions.size);
		await allSent(builder, [...submissions.values()]);
		await assertMined(system, relay, submissions);
		await relay.kill();
	});
}
