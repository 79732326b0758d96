// What its user has ended, in the narrow moments: while the disk or the node is slow or fails, when a week is nearly
// over, on a disk of an older version, and by the hundred. It never comes back, and costs the relay little.

import assert from "node:assert/strict";
import { MAX_TAKEN_BACK } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { STORE_OUT } from "./stagesScene.ts";
import { blocks, story } from "./stories.ts";

const SENDER = testAccount(0).address;
const GWEI = 10n ** 9n;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** A life of 25 blocks, and the 64 that its end is watched for. */
const UNTIL_SETTLED = 25 + 65;

const soft = () => privateTransaction({ path: "noreverts", softCancellations: true });
const toSelf = (value = 0, more: Partial<TxOptions> = {}) =>
	privateTransaction({ to: SENDER, gasLimit: 21_000, value, maxFeePerGas: 2n * GWEI, ...more });

story("a disk that can't be read when an expired one comes again leaves nothing behind", async (scene) => {
	const tx = soft();
	await scene.take(tx);
	await blocks(scene, UNTIL_SETTLED);
	const { disk } = scene;
	const read = disk.get.bind(disk);
	let reads = 0;
	disk.get = (key) => {
		reads += 1;
		// The first one says that it had expired; the second one is for its record.
		return reads === 2 ? Promise.reject(new Error("read")) : read(key);
	};
	await assert.rejects(scene.submit(tx), STORE_OUT);
	await scene.quiet();
	disk.get = read;
	assert.deepEqual([scene.pool.size, scene.pool.pendingNonce(SENDER, 0n)], [0, 0n]);
	// A cancel now waits for nobody.
	const [cancel] = await scene.take(toSelf());
	assert.equal(cancel?.outcome, "cancels");
	assert.equal((await scene.take(tx))[0]?.outcome, "known");
});

story("a soft cancel late in the week counts from itself", async (scene) => {
	const tx = soft();
	await scene.take(tx);
	await blocks(scene, UNTIL_SETTLED);
	await scene.pass(WEEK_MS - HOUR_MS);
	assert.equal((await scene.take(toSelf()))[0]?.outcome, "cancels");
	await scene.pass(2 * HOUR_MS);
	assert.equal((await scene.take(tx))[0]?.outcome, "known");
	assert.equal((await scene.take(toSelf(1)))[0]?.outcome, "cancels");
	await blocks(scene, UNTIL_SETTLED);
	await scene.pass(WEEK_MS + HOUR_MS);
	assert.deepEqual([...scene.disk.map.keys()], [], "nothing is kept longer than that");
	assert.equal((await scene.take(tx))[0]?.outcome, "accepted");
});

story("the same self-transfer twice at once does not take itself back", async (scene) => {
	const tx = privateTransaction({
		...{ to: SENDER, gasLimit: 21_000, maxFeePerGas: 2n * GWEI },
		...{ path: "noreverts", softCancellations: true },
	});
	const outcomes = await Promise.all([scene.submit(tx), scene.submit(tx)]);
	assert.deepEqual(
		outcomes.map(({ outcome }) => outcome),
		["accepted", "known"],
	);
	await scene.quiet();
	assert.equal(scene.stage(tx), "BROADCAST");
});

story("a reorganisation between two looks at its nonce does not let it in", async (scene) => {
	const tx = soft();
	await scene.take(tx, toSelf());
	await scene.block({ used: { [SENDER]: 1n } });
	const get = scene.node.get.bind(scene.node);
	let looks = 0;
	scene.node.get = async (address) => {
		looks += 1;
		const account = await get(address);
		return looks === 1 ? account : { ...account, nonce: 0n };
	};
	const [again] = await scene.take(tx);
	assert.equal(again?.outcome, "known");
	assert.equal(scene.stage(tx), "CANCELLED");
	scene.builders.take();
	assert.deepEqual(scene.builders.take(), []);
});

story("records from before builders were noted stop no block", async (scene) => {
	const dear = { maxFeePerGas: 2_000n * GWEI, maxPriorityFeePerGas: 1_000n * GWEI };
	const old = privateTransaction({ path: "nochecks" });
	await scene.take(old, privateTransaction({ path: "nochecks", ...dear }));
	await scene.transactions.flush(true);
	for (const [key, bytes] of scene.disk.map) {
		if (!key.startsWith("s/")) continue;
		const record = JSON.parse(bytes.toString());
		for (const event of record.events) delete event.builders;
		scene.disk.map.set(key, Buffer.from(JSON.stringify(record)));
	}
	const next = await scene.restart();
	await next.block();
	assert.deepEqual([next.stage(old), next.faults], ["REPLACED", []]);
});

story("what has ended keeps no bytes in memory, also after a restart", async (scene) => {
	const large = privateTransaction({ data: Buffer.alloc(50_000, 1), gasLimit: 2_500_000 });
	await scene.take(large);
	const request = { hash: large.tx.hash, address: large.origin, signer: null };
	assert.equal(await scene.cancellations.cancel(request), true);
	const next = await scene.restart();
	for (const one of [scene, next]) {
		const { tx } = one.ledger.get(large.tx.hash)?.transaction ?? {};
		assert.deepEqual([tx?.raw.length, tx?.data.length, tx?.from, tx?.hash], [0, 0, SENDER, large.tx.hash]);
	}
	assert.equal(await next.cancellations.cancel(request), true);
});

story("one sender takes back so many in so many blocks; then they are remembered no more", async (scene) => {
	for (let i = 0; i < MAX_TAKEN_BACK; i += 1) {
		const tx = privateTransaction({ value: i + 1 });
		assert.equal((await scene.submit(tx)).outcome, "accepted");
		await scene.cancellations.cancel({ hash: tx.tx.hash, address: tx.origin, signer: null });
	}
	const more = await scene.submit(soft());
	assert.ok(more.outcome === "refused" && more.rejection.code === "SENDER_FULL", more.outcome);
	const other = privateTransaction({ by: testAccount(1) });
	assert.equal((await scene.submit(other)).outcome, "accepted");
	await scene.quiet();
	await blocks(scene, 65);
	assert.equal((await scene.submit(soft())).outcome, "accepted");
	await scene.quiet();
});
