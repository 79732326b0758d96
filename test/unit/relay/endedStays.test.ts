// What its user has ended, in the narrow moments: while the disk or the node is slow or fails, when a week is nearly
// over, on a disk of an older version, and by the hundred. It never comes back, and costs the relay little.

import assert from "node:assert/strict";
import { MAX_TAKEN_BACK } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { blocks, scenario } from "./scenarios.ts";
import { STORE_OUT } from "./stagesFixture.ts";

const SENDER = testAccount(0).address;
const GWEI = 10n ** 9n;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** A life of 25 blocks, and the 64 that its end is watched for. */
const UNTIL_SETTLED = 25 + 65;

const soft = () => privateTransaction({ path: "noreverts", softCancellations: true });
const toSelf = (value = 0, more: Partial<TxOptions> = {}) =>
	privateTransaction({ to: SENDER, gasLimit: 21_000, value, maxFeePerGas: 2n * GWEI, ...more });

scenario(
	"a disk that can't be read when an expired one comes again leaves nothing behind",
	async (fixture) => {
		const tx = soft();
		await fixture.take(tx);
		await blocks(fixture, UNTIL_SETTLED);
		const { disk } = fixture;
		const read = disk.get.bind(disk);
		let reads = 0;
		disk.get = (key) => {
			reads += 1;
			// The first one says that it had expired; the second one is for its record.
			return reads === 2 ? Promise.reject(new Error("read")) : read(key);
		};
		await assert.rejects(fixture.submit(tx), STORE_OUT);
		await fixture.quiet();
		disk.get = read;
		assert.deepEqual([fixture.pool.size, fixture.pool.pendingNonce(SENDER, 0n)], [0, 0n]);
		// A cancel now waits for nobody.
		const [cancel] = await fixture.take(toSelf());
		assert.equal(cancel?.outcome, "cancels");
		assert.equal((await fixture.take(tx))[0]?.outcome, "known");
	},
);

scenario("a soft cancel late in the week counts from itself", async (fixture) => {
	const tx = soft();
	await fixture.take(tx);
	await blocks(fixture, UNTIL_SETTLED);
	await fixture.pass(WEEK_MS - HOUR_MS);
	assert.equal((await fixture.take(toSelf()))[0]?.outcome, "cancels");
	await fixture.pass(2 * HOUR_MS);
	assert.equal((await fixture.take(tx))[0]?.outcome, "known");
	assert.equal((await fixture.take(toSelf(1)))[0]?.outcome, "cancels");
	await blocks(fixture, UNTIL_SETTLED);
	await fixture.pass(WEEK_MS + HOUR_MS);
	assert.deepEqual([...fixture.disk.map.keys()], [], "nothing is kept longer than that");
	assert.equal((await fixture.take(tx))[0]?.outcome, "accepted");
});

scenario("the same self-transfer twice at once does not take itself back", async (fixture) => {
	const tx = privateTransaction({
		...{ to: SENDER, gasLimit: 21_000, maxFeePerGas: 2n * GWEI },
		...{ path: "noreverts", softCancellations: true },
	});
	const outcomes = await Promise.all([fixture.submit(tx), fixture.submit(tx)]);
	assert.deepEqual(
		outcomes.map(({ outcome }) => outcome),
		["accepted", "known"],
	);
	await fixture.quiet();
	assert.equal(fixture.stage(tx), "BROADCAST");
});

scenario("a reorganisation between two looks at its nonce does not let it in", async (fixture) => {
	const tx = soft();
	await fixture.take(tx, toSelf());
	await fixture.block({ used: { [SENDER]: 1n } });
	const get = fixture.node.get.bind(fixture.node);
	let looks = 0;
	fixture.node.get = async (address) => {
		looks += 1;
		const account = await get(address);
		return looks === 1 ? account : { ...account, nonce: 0n };
	};
	const [again] = await fixture.take(tx);
	assert.equal(again?.outcome, "known");
	assert.equal(fixture.stage(tx), "CANCELLED");
	fixture.builders.take();
	assert.deepEqual(fixture.builders.take(), []);
});

scenario("records from before builders were noted stop no block", async (fixture) => {
	const dear = { maxFeePerGas: 2_000n * GWEI, maxPriorityFeePerGas: 1_000n * GWEI };
	const old = privateTransaction({ path: "nochecks" });
	await fixture.take(old, privateTransaction({ path: "nochecks", ...dear }));
	await fixture.transactions.flush(true);
	for (const [key, bytes] of fixture.disk.map) {
		if (!key.startsWith("s/")) continue;
		const record = JSON.parse(bytes.toString());
		for (const event of record.events) delete event.builders;
		fixture.disk.map.set(key, Buffer.from(JSON.stringify(record)));
	}
	const next = await fixture.restart();
	await next.block();
	assert.deepEqual([next.stage(old), next.faults], ["REPLACED", []]);
});

scenario("what has ended keeps no bytes in memory, also after a restart", async (fixture) => {
	const large = privateTransaction({ data: Buffer.alloc(50_000, 1), gasLimit: 2_500_000 });
	await fixture.take(large);
	const request = { hash: large.tx.hash, address: large.origin, signer: null };
	assert.equal(await fixture.cancellations.cancel(request), true);
	const next = await fixture.restart();
	for (const one of [fixture, next]) {
		const { tx } = one.records.get(large.tx.hash)?.transaction ?? {};
		assert.deepEqual([tx?.raw.length, tx?.data.length, tx?.from, tx?.hash], [0, 0, SENDER, large.tx.hash]);
	}
	assert.equal(await next.cancellations.cancel(request), true);
});

scenario(
	"one sender takes back so many in so many blocks; then they are remembered no more",
	async (fixture) => {
		for (let i = 0; i < MAX_TAKEN_BACK; i += 1) {
			const tx = privateTransaction({ value: i + 1 });
			assert.equal((await fixture.submit(tx)).outcome, "accepted");
			await fixture.cancellations.cancel({ hash: tx.tx.hash, address: tx.origin, signer: null });
		}
		const more = await fixture.submit(soft());
		assert.ok(more.outcome === "refused" && more.rejection.code === "SENDER_FULL", more.outcome);
		const other = privateTransaction({ by: testAccount(1) });
		assert.equal((await fixture.submit(other)).outcome, "accepted");
		await fixture.quiet();
		await blocks(fixture, 65);
		assert.equal((await fixture.submit(soft())).outcome, "accepted");
		await fixture.quiet();
	},
);
