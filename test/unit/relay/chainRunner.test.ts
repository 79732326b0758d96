// Tests one sender's chain of nonces, block by block: what each path promises, gaps, held links, and a node that is
// silent or overtaken by events.

import assert from "node:assert/strict";
import type { SubmissionPath } from "../../../relay/domain/endpoints.ts";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { scenario } from "./scenarios.ts";

const SENDER = testAccount(0).address;

function on(path: SubmissionPath, nonce = 0, options: TxOptions = {}): PrivateTransaction {
	return privateTransaction({ path, nonce, ...options });
}

const DEARER = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 12n };

/** A test on a fresh fixture, in which nothing illegal may happen. */
/** Path; to whom; whether it is simulated at arrival and in the next block. */
const PATHS = [
	["fast", "a,b", true, false],
	["noreverts", "a,b", true, true],
	["fullprivacy", "b", true, true],
	["maxbackruns", "a,b", true, false],
] as const;

for (const [path, names, first, again] of PATHS) {
	scenario(`/${path}: simulated, sent on arrival and again for each block`, async (fixture) => {
		const tx = on(path);
		await fixture.take(tx);
		assert.deepEqual(fixture.builders.take(), [`send 0 for 101 to ${names}`]);
		assert.deepEqual(fixture.simulated.splice(0), first ? ["0"] : []);
		for (const next of [102, 103]) {
			await fixture.block();
			assert.deepEqual(fixture.builders.take(), [`send 0 for ${next} to ${names}`]);
			assert.deepEqual(fixture.simulated.splice(0), again ? ["0"] : []);
		}
		assert.equal(fixture.stage(tx), "BROADCAST");
	});

	scenario(`/${path}: held while it fails, tried in each block, sent once it passes`, async (fixture) => {
		const tx = on(path);
		fixture.failing.add(tx.tx.hash);
		await fixture.take(tx);
		await fixture.block();
		assert.equal(fixture.stage(tx), "SIMULATION_FAILED");
		assert.deepEqual([fixture.builders.take(), fixture.simulated.splice(0)], [[], ["0", "0"]]);
		fixture.failing.clear();
		await fixture.block();
		assert.deepEqual(fixture.builders.take(), [`send 0 for 103 to ${names}`]);
		assert.equal(fixture.stage(tx), "BROADCAST");
	});

	scenario(
		`/${path}: once it has passed, failing ${again ? "stops it" : "changes nothing"}`,
		async (fixture) => {
			const tx = on(path);
			await fixture.take(tx);
			fixture.failing.add(tx.tx.hash);
			fixture.builders.take();
			await fixture.block();
			assert.deepEqual(fixture.builders.take(), again ? [] : [`send 0 for 102 to ${names}`]);
			fixture.failing.clear();
			await fixture.block();
			assert.deepEqual(fixture.builders.take(), [`send 0 for 103 to ${names}`]);
		},
	);
}

scenario("/nochecks: never simulated, sent at once with the end of its life", async (fixture) => {
	const tx = on("nochecks");
	fixture.failing.add(tx.tx.hash);
	await fixture.take(tx);
	await fixture.block();
	assert.deepEqual(fixture.builders.take(), [
		"send 0 for 101 until 125 to a,b",
		"send 0 for 102 until 125 to a,b",
	]);
	assert.deepEqual(fixture.simulated, []);
});

scenario(
	"what stops passing within the slot is cancelled where it is, and sent again once it passes",
	async (fixture) => {
		const tx = on("noreverts");
		await fixture.take(tx);
		fixture.failing.add(tx.tx.hash);
		await fixture.take(on("fast", 1));
		assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b", "cancel 0 for 101 at a,b"]);
		assert.equal(fixture.stage(tx), "SIMULATION_FAILED");
		fixture.failing.clear();
		await fixture.take(on("fast", 2));
		assert.deepEqual(
			fixture.builders.take(),
			[0, 1, 2].map((nonce) => `send ${nonce} for 101 to a,b`),
		);
	},
);

scenario("a chain is simulated and sent together, in order", async (fixture) => {
	await fixture.take(on("fast", 2), on("fast", 1));
	assert.deepEqual([fixture.builders.take(), fixture.simulated.splice(0)], [[], []]);
	await fixture.take(on("noreverts", 0));
	assert.deepEqual(fixture.simulated.at(-1), "0,1,2");
	assert.deepEqual(
		fixture.builders.take(),
		[0, 1, 2].map((nonce) => `send ${nonce} for 101 to a,b`),
	);
});

scenario("behind a gap it waits, and its life starts when the gap closes", async (fixture) => {
	const tx = on("fast", 1);
	await fixture.take(tx);
	assert.equal(fixture.stage(tx), "QUEUED");
	for (let i = 0; i < 30; i += 1) await fixture.block();
	assert.deepEqual([fixture.stage(tx), fixture.builders.take()], ["QUEUED", []]);
	// Another transaction of its sender, that never came here, is mined.
	await fixture.block({ used: { [SENDER]: 1n } });
	assert.deepEqual(fixture.builders.take(), ["send 1 for 132 to a,b"]);
	assert.equal(fixture.records.get(tx.tx.hash)?.record.firstBlock, 132);
	assert.deepEqual(fixture.life(tx), ["received", "queued", "ready", "simulated", "broadcast"]);
});

scenario(
	"what is behind a held one waits, and goes out when that is replaced by one that passes",
	async (fixture) => {
		const [held, behind] = [on("fast", 0), on("nochecks", 1)];
		fixture.failing.add(held.tx.hash);
		await fixture.take(held, behind);
		await fixture.block();
		assert.deepEqual([fixture.stage(held), fixture.stage(behind)], ["SIMULATION_FAILED", "QUEUED"]);
		assert.deepEqual(fixture.builders.take(), []);
		await fixture.take(on("fast", 0, DEARER));
		assert.deepEqual(fixture.builders.take(), ["send 0 for 102 to a,b", "send 1 for 102 until 126 to a,b"]);
		assert.equal(fixture.stage(held), "REPLACED");
	},
);

scenario("what is behind a held one that expires waits for its nonce", async (fixture) => {
	const [held, behind] = [on("noreverts", 0), on("fast", 1)];
	fixture.failing.add(held.tx.hash);
	await fixture.take(held, behind);
	for (let i = 0; i < 25; i += 1) await fixture.block();
	assert.deepEqual([fixture.stage(held), fixture.stage(behind)], ["EXPIRED", "QUEUED"]);
	assert.deepEqual(fixture.builders.take(), []);
});

scenario(
	"/nochecks links go out at once, a simulated one behind them when they are mined",
	async (fixture) => {
		const [first, second, third] = [on("nochecks", 0), on("nochecks", 1), on("fast", 2)];
		await fixture.take(first, second, third);
		assert.deepEqual(fixture.builders.take(), [
			"send 0 for 101 until 125 to a,b",
			"send 1 for 101 until 125 to a,b",
		]);
		assert.deepEqual([fixture.stage(third), fixture.simulated], ["QUEUED", []]);
		await fixture.block({ mined: [first] });
		assert.deepEqual(fixture.builders.take(), ["send 1 for 102 until 125 to a,b"]);
		await fixture.block({ mined: [second] });
		assert.deepEqual(fixture.builders.take(), ["send 2 for 103 to a,b"]);
	},
);

scenario("a builder that may not have one link gets none behind it until that is mined", async (fixture) => {
	const [secret, open] = [on("fullprivacy", 0), on("fast", 1)];
	await fixture.take(secret, open);
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to b", "send 1 for 101 to b"]);
	await fixture.block({ mined: [secret] });
	assert.deepEqual(fixture.builders.take(), ["send 1 for 102 to a,b"]);
});

scenario(
	"a node that can't simulate holds it up, says so, and is asked again a second later",
	async (fixture) => {
		const tx = on("fast");
		fixture.nodeSimulates = false;
		await fixture.take(tx);
		assert.equal(fixture.stage(tx), "SIMULATION_FAILED");
		assert.equal(fixture.records.get(tx.tx.hash)?.record.simulationError?.code, "NODE_UNAVAILABLE");
		fixture.nodeSimulates = true;
		await fixture.clock.advance(999);
		assert.deepEqual(fixture.builders.take(), []);
		await fixture.clock.advance(1);
		await fixture.quiet();
		assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	},
);

scenario(
	"a node that is silent about the account is asked again, and stopping ends that",
	async (fixture) => {
		const tx = on("fast");
		await fixture.take(tx);
		fixture.builders.take();
		fixture.node.down = true;
		fixture.runner.run(SENDER, "new", true);
		await fixture.quiet();
		assert.equal(fixture.clock.timers, 1);
		fixture.node.down = false;
		await fixture.clock.advance(1_000);
		await fixture.quiet();
		assert.equal(fixture.clock.timers, 0);
		fixture.node.down = true;
		fixture.runner.run(SENDER, "new", true);
		await fixture.quiet();
		fixture.runner.stop();
		assert.equal(fixture.clock.timers, 0);
		fixture.runner.run(SENDER, "new", true);
		assert.equal(fixture.background.size, 0);
	},
);

scenario("what a simulation found out for a head that is past does not count", async (fixture) => {
	const tx = on("fast");
	let open = () => {};
	fixture.simulationGate = new Promise((resolve) => {
		open = resolve;
	});
	await fixture.submit(tx);
	await fixture.clock.advance(0);
	assert.deepEqual(fixture.simulated, ["0"]);
	const working = fixture.block();
	await fixture.clock.advance(0);
	open();
	await working;
	await fixture.quiet();
	assert.deepEqual(fixture.builders.take(), ["send 0 for 102 to a,b"]);
});

scenario("nor what it found out about one that was replaced meanwhile", async (fixture) => {
	const old = on("fast");
	const fresh = on("fast", 0, DEARER);
	let open = () => {};
	fixture.simulationGate = new Promise((resolve) => {
		open = resolve;
	});
	await fixture.submit(old);
	await fixture.clock.advance(0);
	await fixture.submit(fresh);
	open();
	await fixture.quiet();
	assert.deepEqual([fixture.stage(old), fixture.stage(fresh)], ["REPLACED", "BROADCAST"]);
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
});

scenario("many looks at one sender are one more look", async (fixture) => {
	await fixture.take(on("noreverts"));
	fixture.simulated.splice(0);
	for (let i = 0; i < 50; i += 1) fixture.runner.run(SENDER, "again", false);
	await fixture.quiet();
	assert.ok(fixture.simulated.length <= 2, `${fixture.simulated.length} simulations`);
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
});

scenario("one whose nonce others used is dropped, and what is behind it goes out", async (fixture) => {
	const [first, second] = [on("fast", 0), on("fast", 1)];
	await fixture.take(first, second);
	fixture.builders.take();
	await fixture.block({ used: { [SENDER]: 1n } });
	assert.deepEqual([fixture.stage(first), fixture.stage(second)], ["DROPPED", "BROADCAST"]);
	assert.deepEqual(fixture.builders.take(), ["send 1 for 102 to a,b"]);
});
