// Tests one sender's chain of nonces, block by block: what each path promises, gaps, held links, and a node that is
// silent or overtaken by events.

import assert from "node:assert/strict";
import type { SubmissionPath } from "../../../relay/domain/endpoints.ts";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { story } from "./stories.ts";

const SENDER = testAccount(0).address;

function on(path: SubmissionPath, nonce = 0, options: TxOptions = {}): PrivateTransaction {
	return privateTransaction({ path, nonce, ...options });
}

const DEARER = { maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 12n };

/** A test on a fresh scene, in which nothing illegal may happen. */
/** Path; to whom; whether it is simulated at arrival and in the next block. */
const PATHS = [
	["fast", "a,b", true, false],
	["noreverts", "a,b", true, true],
	["fullprivacy", "b", true, true],
	["maxbackruns", "a,b", true, false],
] as const;

for (const [path, names, first, again] of PATHS) {
	story(`/${path}: simulated, sent on arrival and again for each block`, async (scene) => {
		const tx = on(path);
		await scene.take(tx);
		assert.deepEqual(scene.builders.take(), [`send 0 for 101 to ${names}`]);
		assert.deepEqual(scene.simulated.splice(0), first ? ["0"] : []);
		for (const next of [102, 103]) {
			await scene.block();
			assert.deepEqual(scene.builders.take(), [`send 0 for ${next} to ${names}`]);
			assert.deepEqual(scene.simulated.splice(0), again ? ["0"] : []);
		}
		assert.equal(scene.stage(tx), "BROADCAST");
	});

	story(`/${path}: held while it fails, tried in each block, sent once it passes`, async (scene) => {
		const tx = on(path);
		scene.failing.add(tx.tx.hash);
		await scene.take(tx);
		await scene.block();
		assert.equal(scene.stage(tx), "SIMULATION_FAILED");
		assert.deepEqual([scene.builders.take(), scene.simulated.splice(0)], [[], ["0", "0"]]);
		scene.failing.clear();
		await scene.block();
		assert.deepEqual(scene.builders.take(), [`send 0 for 103 to ${names}`]);
		assert.equal(scene.stage(tx), "BROADCAST");
	});

	story(`/${path}: once it has passed, failing ${again ? "stops it" : "changes nothing"}`, async (scene) => {
		const tx = on(path);
		await scene.take(tx);
		scene.failing.add(tx.tx.hash);
		scene.builders.take();
		await scene.block();
		assert.deepEqual(scene.builders.take(), again ? [] : [`send 0 for 102 to ${names}`]);
		scene.failing.clear();
		await scene.block();
		assert.deepEqual(scene.builders.take(), [`send 0 for 103 to ${names}`]);
	});
}

story("/nochecks: never simulated, sent at once with the end of its life", async (scene) => {
	const tx = on("nochecks");
	scene.failing.add(tx.tx.hash);
	await scene.take(tx);
	await scene.block();
	assert.deepEqual(scene.builders.take(), [
		"send 0 for 101 until 125 to a,b",
		"send 0 for 102 until 125 to a,b",
	]);
	assert.deepEqual(scene.simulated, []);
});

story(
	"what stops passing within the slot is cancelled where it is, and sent again once it passes",
	async (scene) => {
		const tx = on("noreverts");
		await scene.take(tx);
		scene.failing.add(tx.tx.hash);
		await scene.take(on("fast", 1));
		assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b", "cancel 0 for 101 at a,b"]);
		assert.equal(scene.stage(tx), "SIMULATION_FAILED");
		scene.failing.clear();
		await scene.take(on("fast", 2));
		assert.deepEqual(
			scene.builders.take(),
			[0, 1, 2].map((nonce) => `send ${nonce} for 101 to a,b`),
		);
	},
);

story("a chain is simulated and sent together, in order", async (scene) => {
	await scene.take(on("fast", 2), on("fast", 1));
	assert.deepEqual([scene.builders.take(), scene.simulated.splice(0)], [[], []]);
	await scene.take(on("noreverts", 0));
	assert.deepEqual(scene.simulated.at(-1), "0,1,2");
	assert.deepEqual(
		scene.builders.take(),
		[0, 1, 2].map((nonce) => `send ${nonce} for 101 to a,b`),
	);
});

story("behind a gap it waits, and its life starts when the gap closes", async (scene) => {
	const tx = on("fast", 1);
	await scene.take(tx);
	assert.equal(scene.stage(tx), "QUEUED");
	for (let i = 0; i < 30; i += 1) await scene.block();
	assert.deepEqual([scene.stage(tx), scene.builders.take()], ["QUEUED", []]);
	// Another transaction of its sender, that never came here, is mined.
	await scene.block({ used: { [SENDER]: 1n } });
	assert.deepEqual(scene.builders.take(), ["send 1 for 132 to a,b"]);
	assert.equal(scene.ledger.get(tx.tx.hash)?.record.firstBlock, 132);
	assert.deepEqual(scene.life(tx), ["received", "queued", "ready", "simulated", "broadcast"]);
});

story(
	"what is behind a held one waits, and goes out when that is replaced by one that passes",
	async (scene) => {
		const [held, behind] = [on("fast", 0), on("nochecks", 1)];
		scene.failing.add(held.tx.hash);
		await scene.take(held, behind);
		await scene.block();
		assert.deepEqual([scene.stage(held), scene.stage(behind)], ["SIMULATION_FAILED", "QUEUED"]);
		assert.deepEqual(scene.builders.take(), []);
		await scene.take(on("fast", 0, DEARER));
		assert.deepEqual(scene.builders.take(), ["send 0 for 102 to a,b", "send 1 for 102 until 126 to a,b"]);
		assert.equal(scene.stage(held), "REPLACED");
	},
);

story("what is behind a held one that expires waits for its nonce", async (scene) => {
	const [held, behind] = [on("noreverts", 0), on("fast", 1)];
	scene.failing.add(held.tx.hash);
	await scene.take(held, behind);
	for (let i = 0; i < 25; i += 1) await scene.block();
	assert.deepEqual([scene.stage(held), scene.stage(behind)], ["EXPIRED", "QUEUED"]);
	assert.deepEqual(scene.builders.take(), []);
});

story("/nochecks links go out at once, a simulated one behind them when they are mined", async (scene) => {
	const [first, second, third] = [on("nochecks", 0), on("nochecks", 1), on("fast", 2)];
	await scene.take(first, second, third);
	assert.deepEqual(scene.builders.take(), [
		"send 0 for 101 until 125 to a,b",
		"send 1 for 101 until 125 to a,b",
	]);
	assert.deepEqual([scene.stage(third), scene.simulated], ["QUEUED", []]);
	await scene.block({ mined: [first] });
	assert.deepEqual(scene.builders.take(), ["send 1 for 102 until 125 to a,b"]);
	await scene.block({ mined: [second] });
	assert.deepEqual(scene.builders.take(), ["send 2 for 103 to a,b"]);
});

story("a builder that may not have one link gets none behind it until that is mined", async (scene) => {
	const [secret, open] = [on("fullprivacy", 0), on("fast", 1)];
	await scene.take(secret, open);
	assert.deepEqual(scene.builders.take(), ["send 0 for 101 to b", "send 1 for 101 to b"]);
	await scene.block({ mined: [secret] });
	assert.deepEqual(scene.builders.take(), ["send 1 for 102 to a,b"]);
});

story("a node that can't simulate holds it up, says so, and is asked again a second later", async (scene) => {
	const tx = on("fast");
	scene.nodeSimulates = false;
	await scene.take(tx);
	assert.equal(scene.stage(tx), "SIMULATION_FAILED");
	assert.equal(scene.ledger.get(tx.tx.hash)?.record.simulationError?.code, "NODE_UNAVAILABLE");
	scene.nodeSimulates = true;
	await scene.clock.advance(999);
	assert.deepEqual(scene.builders.take(), []);
	await scene.clock.advance(1);
	await scene.quiet();
	assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b"]);
});

story("a node that is silent about the account is asked again, and stopping ends that", async (scene) => {
	const tx = on("fast");
	await scene.take(tx);
	scene.builders.take();
	scene.node.down = true;
	scene.runner.run(SENDER, "new", true);
	await scene.quiet();
	assert.equal(scene.clock.timers, 1);
	scene.node.down = false;
	await scene.clock.advance(1_000);
	await scene.quiet();
	assert.equal(scene.clock.timers, 0);
	scene.node.down = true;
	scene.runner.run(SENDER, "new", true);
	await scene.quiet();
	scene.runner.stop();
	assert.equal(scene.clock.timers, 0);
	scene.runner.run(SENDER, "new", true);
	assert.equal(scene.background.size, 0);
});

story("what a simulation found out for a head that is past does not count", async (scene) => {
	const tx = on("fast");
	let open = () => {};
	scene.simulationGate = new Promise((resolve) => {
		open = resolve;
	});
	await scene.submit(tx);
	await scene.clock.advance(0);
	assert.deepEqual(scene.simulated, ["0"]);
	const working = scene.block();
	await scene.clock.advance(0);
	open();
	await working;
	await scene.quiet();
	assert.deepEqual(scene.builders.take(), ["send 0 for 102 to a,b"]);
});

story("nor what it found out about one that was replaced meanwhile", async (scene) => {
	const old = on("fast");
	const fresh = on("fast", 0, DEARER);
	let open = () => {};
	scene.simulationGate = new Promise((resolve) => {
		open = resolve;
	});
	await scene.submit(old);
	await scene.clock.advance(0);
	await scene.submit(fresh);
	open();
	await scene.quiet();
	assert.deepEqual([scene.stage(old), scene.stage(fresh)], ["REPLACED", "BROADCAST"]);
	assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b"]);
});

story("many looks at one sender are one more look", async (scene) => {
	await scene.take(on("noreverts"));
	scene.simulated.splice(0);
	for (let i = 0; i < 50; i += 1) scene.runner.run(SENDER, "again", false);
	await scene.quiet();
	assert.ok(scene.simulated.length <= 2, `${scene.simulated.length} simulations`);
	assert.deepEqual(scene.builders.take(), ["send 0 for 101 to a,b"]);
});

story("one whose nonce others used is dropped, and what is behind it goes out", async (scene) => {
	const [first, second] = [on("fast", 0), on("fast", 1)];
	await scene.take(first, second);
	scene.builders.take();
	await scene.block({ used: { [SENDER]: 1n } });
	assert.deepEqual([scene.stage(first), scene.stage(second)], ["DROPPED", "BROADCAST"]);
	assert.deepEqual(scene.builders.take(), ["send 1 for 102 to a,b"]);
});
