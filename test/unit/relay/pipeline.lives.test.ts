// Tests what a running relay meets only by chance or after hours: long waits, the end of watching,
// a node or disk that is slow or fails, writes of one nonce in any order, and what each head costs
// the node.

import assert from "node:assert/strict";
import { GAP_LIFE_S } from "../../../relay/domain/lifetime.ts";
import { type PrivateTransaction, WATCH_BLOCKS } from "../../../relay/domain/transaction.ts";
import { privateTransaction, type TxOptions, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";
import {
	accepted,
	blocks,
	cancel,
	DEAR,
	LIFE_BLOCKS,
	SENDER,
	STORE_OUT,
	type StagesFixture,
	scenario,
} from "./stagesFixture.ts";

const GAP_BLOCKS = GAP_LIFE_S / 12;
const at = (nonce: number, path: PrivateTransaction["path"] = "fast") => privateTransaction({ nonce, path });

scenario("a transaction behind a gap expires after three hours", async (fixture) => {
	const tx = at(5);
	await fixture.take(tx);
	await blocks(fixture, GAP_BLOCKS - 1);
	assert.equal(fixture.stage(tx), "QUEUED");
	await fixture.block();
	assert.equal(await fixture.stageOrKept(tx), "EXPIRED");
});

for (const [name, end] of [
	["mined", (fixture: StagesFixture, tx: PrivateTransaction) => fixture.block({ mined: [tx] })],
	["dropped", (fixture: StagesFixture) => fixture.block({ used: { [SENDER]: 1n } })],
	["expired", (fixture: StagesFixture) => blocks(fixture, LIFE_BLOCKS)],
] as const) {
	scenario(
		`a transaction that is ${name} is watched for 64 blocks; then its bytes are deleted`,
		async (fixture) => {
			const tx = at(0);
			await fixture.take(tx);
			await end(fixture, tx);
			const stage = fixture.stage(tx);
			await blocks(fixture, WATCH_BLOCKS - 1);
			assert.equal(fixture.stage(tx), stage);
			await fixture.block();
			assert.deepEqual([fixture.records.size, await fixture.stageOrKept(tx)], [0, stage]);
			for (const value of fixture.disk.map.values()) assert.equal(value.indexOf(tx.tx.raw), -1);
			const owners = (await fixture.store.archived(tx.tx.hash))?.owners.map(({ address }) => address);
			assert.deepEqual(owners, [null], "who submitted it is forgotten");
			const bySender = { hash: tx.tx.hash, address: null, signer: SENDER };
			assert.equal(await fixture.pipeline.cancel(bySender), "notPending");
		},
	);
}

scenario("blobs that came before the fork get cell proofs at it, also after a restart", async (fixture) => {
	const tx = privateTransaction({ type: 3, sidecarVersion: 0 });
	await fixture.take(tx);
	await fixture.block();
	fixture.builders.take();
	fixture.transactions.blobs.convert(1);
	const sent = "send 0 with cell proofs for 102 to a,b";
	await until("it goes out with them", () => fixture.builders.lines.includes(sent));
	const { size } = privateTransaction({ type: 3 }).tx;
	assert.equal(fixture.pool.get(tx.tx.hash)?.transaction.tx.size, size);
	// On disk it is as it came.
	const next = await fixture.restart();
	assert.equal(next.pool.get(tx.tx.hash)?.transaction.tx.sidecar?.version, 0);
	next.transactions.blobs.convert(1);
	await until("it has them again", () => next.pool.get(tx.tx.hash)?.transaction.tx.size === size);
});

scenario("no block is skipped while the node does not answer", async (fixture) => {
	const tx = at(0);
	await fixture.take(tx);
	fixture.node.down = true;
	const working = fixture.block({ mined: [tx] });
	await fixture.clock.advance(2_000);
	assert.deepEqual([fixture.stage(tx), fixture.tip.head()?.number], ["BROADCAST", 100]);
	fixture.node.down = false;
	await fixture.clock.advance(500);
	await working;
	assert.deepEqual([fixture.stage(tx), fixture.tip.head()?.number], ["INCLUDED", 101]);
});

for (const [when, watched, stage] of [
	["a block comes", 10, "BROADCAST"],
	["its former end is archived", WATCH_BLOCKS - 1, "BROADCAST"],
	["a block with it comes", 10, "INCLUDED"],
] as const) {
	scenario(
		`a transaction that is resubmitted while ${when} is ${stage}, in memory and on disk`,
		async (fixture) => {
			const tx = at(0);
			await fixture.take(tx);
			await blocks(fixture, LIFE_BLOCKS + watched);
			assert.equal(fixture.stage(tx), "EXPIRED");
			fixture.disk.hold = true;
			const submitting = fixture.submit(tx);
			await fixture.clock.advance(0);
			const working = fixture.block({ mined: stage === "INCLUDED" ? [tx] : [] });
			for (let i = 0; i < 20; i += 1) {
				fixture.disk.finish(true, 1);
				await fixture.clock.advance(0);
			}
			fixture.disk.hold = false;
			await Promise.all([submitting, working]);
			await fixture.quiet();
			const pending = stage === "BROADCAST" ? 1 : 0;
			assert.deepEqual([fixture.pool.size, fixture.stage(tx)], [pending, stage]);
			await fixture.transactions.keeper.flush(false);
			assert.equal((await fixture.restart()).pool.size, pending, "on disk it is not so");
		},
	);
}

scenario("a block that comes while one is replaced does not undo that on disk", async (fixture) => {
	const [old, fresh] = [at(0), privateTransaction(DEAR)];
	await fixture.take(old);
	fixture.disk.hold = true;
	const submitting = fixture.submit(fresh);
	await fixture.quiet();
	const working = fixture.block();
	await fixture.quiet();
	fixture.disk.finish(true);
	await submitting;
	fixture.disk.finish(true);
	await working;
	// Killed here: what was answered is on disk.
	const next = await fixture.restart();
	assert.deepEqual([next.stage(old), next.pool.get(fresh.tx.hash)?.durable], ["REPLACED", true]);
});

const GWEI = 10n ** 9n;
const CROWD = 40;
const LOW = { maxFeePerGas: GWEI / 2n, maxPriorityFeePerGas: 1 };

/** Accounts asked for, simulations and deliveries since the last time. */
function work(fixture: StagesFixture): readonly [number, number, number] {
	const { asked } = fixture.node;
	fixture.node.asked = 0;
	return [asked, fixture.simulated.splice(0).length, fixture.builders.take().length];
}

/** Simulations wait from now on, until the returned function is called. */
function holdSimulations(fixture: StagesFixture): () => void {
	let open = () => {};
	fixture.simulationGate = new Promise((resolve) => {
		open = resolve;
	});
	return open;
}

/** The event while it is simulated, its stage, and the requests to builders. */
const OVERTAKEN: readonly (readonly [
	string,
	(fixture: StagesFixture, tx: PrivateTransaction) => Promise<unknown>,
	string,
	readonly string[],
])[] = [
	["a block comes", (fixture) => fixture.block(), "BROADCAST", ["send 0 for 102 to a,b"]],
	[
		"it is replaced",
		(fixture) => fixture.submit(privateTransaction(DEAR)),
		"REPLACED",
		["send 0 for 101 to a,b"],
	],
	["it is cancelled", cancel, "CANCELLED", []],
];

for (const [event, happens, stage, sent] of OVERTAKEN) {
	scenario(`the result of a simulation is ignored if ${event} meanwhile`, async (fixture) => {
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
	});
}

for (const [what, silence] of [
	["can't simulate", { simulates: false, down: false }],
	["does not return the account", { simulates: true, down: true }],
] as const) {
	scenario(`a node that ${what} is asked again a second later, without a block`, async (fixture) => {
		const first = privateTransaction({ path: "noreverts" });
		await fixture.take(first);
		fixture.builders.take();
		fixture.nodeSimulates = silence.simulates;
		fixture.disk.hold = true;
		const submitting = fixture.submit(privateTransaction({ nonce: 1 }));
		await fixture.quiet();
		fixture.node.down = silence.down;
		fixture.disk.finish(true);
		await submitting;
		await fixture.quiet();
		// The one that has passed for this block stays with builders.
		assert.deepEqual([fixture.builders.take(), fixture.stage(first)], [[], "BROADCAST"]);
		fixture.nodeSimulates = true;
		fixture.node.down = false;
		await fixture.clock.advance(1_000);
		await fixture.quiet();
		assert.deepEqual(fixture.builders.take(), ["send 1 for 101 to a,b"]);
	});
}

for (const [what, options] of [
	["wait for the base fee to fall", LOW],
	["wait for it, of the path that is simulated again for each block", { ...LOW, path: "noreverts" }],
	["wait for it, of the path that is never simulated", { ...LOW, path: "nochecks" }],
	["wait behind a gap", { nonce: 3 }],
	["wait for a blob fee", { type: 3, maxFeePerBlobGas: 1, nonce: 0 }],
] satisfies [string, TxOptions & Partial<PrivateTransaction>][]) {
	scenario(`transactions that ${what} cost nothing at a head`, async (fixture) => {
		fixture.blobBaseFee = 10n;
		await fixture.block();
		const crowd = Array.from({ length: CROWD }, (_, i) =>
			privateTransaction({ by: testAccount(100 + i), ...options }),
		);
		await fixture.take(...crowd, privateTransaction({ path: "noreverts" }));
		work(fixture);
		for (let i = 0; i < 3; i += 1) {
			await fixture.block();
			// The one that can be in the next block: its account is asked for before and in its
			// simulation.
			assert.deepEqual(work(fixture), [2, 1, 1]);
		}
	});
}

scenario("a resimulated transaction is held once the base fee has risen above its cap", async (fixture) => {
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

/** One nonce, with fees that rise by ten percent or more at each step. */
function bid(step: number) {
	const fee = 10n ** 10n * 2n ** BigInt(step);
	return privateTransaction({ maxFeePerGas: fee, maxPriorityFeePerGas: fee });
}

scenario("a submission is answered when it is on disk, and nothing is sent before", async (fixture) => {
	const tx = bid(0);
	fixture.disk.hold = true;
	let answer: unknown = null;
	const submitting = fixture.submit(tx).then((outcome) => {
		answer = outcome;
	});
	await fixture.quiet();
	assert.deepEqual([answer, fixture.disk.waiting, fixture.builders.take()], [null, 1, []]);
	assert.equal(fixture.pool.pending(tx.tx.hash), null);
	fixture.disk.finish(true);
	await submitting;
	assert.deepEqual(answer, accepted(tx));
	await fixture.quiet();
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	assert.equal((await fixture.restart()).stage(tx), "PENDING");
});

/**
 * Steps of one nonce that come at once, the first one held already where `held` says so; which of
 * their writes succeed; where each is then, a dot for one of which nothing is kept.
 */
const WRITES: readonly (readonly [held: boolean, writes: string, stages: string])[] = [
	[false, "-", "."],
	[false, "+-", "BROADCAST ."],
	[false, "-+", ". BROADCAST"],
	[false, "--", ". ."],
	[false, "++", "REPLACED BROADCAST"],
	[true, "-", "BROADCAST ."],
	[true, "+-", "REPLACED BROADCAST ."],
	[true, "-+", "REPLACED . BROADCAST"],
	[true, "--", "BROADCAST . ."],
	[true, "++", "REPLACED REPLACED BROADCAST"],
];

for (const [held, writes, expected] of WRITES) {
	const name = held ? "of what would replace one that is held" : "of what has one nonce";
	scenario(`the writes ${name} end as ${writes}: ${expected}`, async (fixture) => {
		const all = Array.from({ length: writes.length + Number(held) }, (_, step) => bid(step));
		const stages = expected.split(" ");
		if (held) await fixture.take(bid(0));
		fixture.disk.hold = true;
		const answers = Promise.allSettled(all.slice(Number(held)).map((tx) => fixture.submit(tx)));
		for (const write of writes) {
			await fixture.quiet();
			fixture.disk.finish(write === "+");
		}
		fixture.disk.hold = false;
		assert.deepEqual(
			(await answers).map((one) => (one.status === "fulfilled" ? one.value.outcome : one.reason.message)),
			[...writes].map((write) => (write === "+" ? "accepted" : STORE_OUT.message)),
		);
		await fixture.quiet();
		assert.deepEqual(
			fixture.stages(...all).map((stage) => stage ?? "."),
			stages,
		);
		assert.equal(fixture.pool.size, stages.includes("BROADCAST") ? 1 : 0);
		fixture.builders.take();
		// No block came in between: a process that dies now has nothing but these writes.
		const next = await fixture.restart();
		for (const [i, tx] of all.entries()) {
			const kept = (await next.stageOrKept(tx)) ?? ".";
			assert.equal(kept, stages[i] === "BROADCAST" ? "PENDING" : stages[i]);
		}
		await fixture.block();
		assert.equal(fixture.builders.take().join(), stages.includes("BROADCAST") ? "send 0 for 102 to a,b" : "");
		// A transaction that was refused because its write failed may come again.
		const last = all.at(-1);
		if (last !== undefined && stages.at(-1) === ".")
			assert.deepEqual(await fixture.take(last), [accepted(last)]);
	});
}

for (const isMinedAgain of [false, true]) {
	const outcome = isMinedAgain ? "mined again" : "pending again";
	scenario(
		`what a reorganisation takes back while its nonce is in use is ${outcome} behind that`,
		async (fixture) => {
			const tx = at(0);
			await fixture.take(tx);
			await fixture.block({ mined: [tx] });
			const entry = fixture.records.get(tx.tx.hash);
			assert.ok(entry);
			let end = (): void => {};
			const turn = fixture.transactions.exclusively(
				tx.tx,
				() => new Promise<void>((resolve) => (end = resolve)),
			);
			fixture.node.nonces.clear();
			fixture.node.mined.clear();
			fixture.transactions.reorged(entry);
			assert.deepEqual([fixture.stage(tx), fixture.pool.get(tx.tx.hash)], ["PENDING", undefined]);
			if (isMinedAgain) await fixture.block({ mined: [tx] });
			end();
			await turn;
			await fixture.quiet();
			assert.equal(fixture.pool.get(tx.tx.hash) !== undefined, !isMinedAgain);
		},
	);
}

scenario(
	"what a reorganisation takes back goes out again at once, for a life that starts again",
	async (fixture) => {
		const [first, ...others] = [at(0), at(1), at(2)];
		await fixture.take(first);
		await blocks(fixture, 1);
		await fixture.take(...others);
		await fixture.block({ mined: [first, ...others] });
		const mined = fixture.head;
		await blocks(fixture, LIFE_BLOCKS - 3);
		fixture.builders.take();
		await fixture.block({ reverted: [mined] });
		const all = [first, ...others];
		assert.deepEqual(fixture.stages(...all), ["BROADCAST", "BROADCAST", "BROADCAST"]);
		assert.equal(fixture.builders.take().length, 3);
		// The block that came in place of the head was the first of it.
		await blocks(fixture, LIFE_BLOCKS - 2);
		assert.deepEqual(fixture.stages(...all), ["BROADCAST", "BROADCAST", "BROADCAST"]);
		await blocks(fixture, 1);
		assert.deepEqual(fixture.stages(...all), ["EXPIRED", "EXPIRED", "EXPIRED"]);
	},
);

scenario(
	"a transaction in a block that left before its receipt came is reported as exposed, and is sent again",
	async (fixture) => {
		const tx = at(0);
		await fixture.take(tx);
		fixture.builders.take();
		const { head } = fixture;
		const transactions = [{ hash: tx.tx.hash, from: SENDER }];
		const block = { ...head, number: head.number + 1, hash: "0xshort", parentHash: head.hash, transactions };
		const seen = fixture.loop.onUpdate({ head: block, applied: [block], reverted: [], gap: false });
		// Other work behind the head does not wait long for it.
		await fixture.clock.advance(300);
		await seen;
		assert.deepEqual([fixture.stage(tx), fixture.pool.get(tx.tx.hash)], ["BROADCAST", undefined]);
		await fixture.work([], [block]);
		const { exposed, events } = fixture.records.get(tx.tx.hash)?.record ?? {};
		assert.deepEqual(exposed, { block: block.number, depth: 1 });
		assert.equal(events?.filter(({ type }) => type === "exposed").length, 1);
		assert.equal(fixture.builders.take().join(), `send 0 for ${block.number} to a,b`);
	},
);

scenario("a replacement is recorded with the time at which it is on disk", async (fixture) => {
	const old = at(0);
	await fixture.take(old);
	fixture.disk.hold = true;
	const replacing = fixture.submit(privateTransaction({ nonce: 0, ...DEAR }));
	await fixture.clock.advance(500);
	fixture.disk.hold = false;
	fixture.disk.finish(true);
	await replacing;
	const event = fixture.records.get(old.tx.hash)?.record.events.find(({ type }) => type === "replaced");
	assert.equal(event?.at, fixture.clock.now());
});
