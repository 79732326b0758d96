// Tests the ownership of a transaction whose bytes several clients bring: which path applies, who
// gets the refund, who ends it, and which of these a restart keeps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isLive } from "../../../relay/domain/record.ts";
import type { CancelOutcome, PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { MAX_OWNERS } from "../../../shared/ownership.ts";
import { privateTransaction } from "../../support/txFactory.ts";
import {
	type Brought,
	bring,
	cancelBy,
	hash,
	holds,
	named,
	offer,
	R,
	S,
	stageOf,
	TX,
} from "./ownersFixture.ts";
import { blocks, LIFE_BLOCKS, STORE_OUT, StagesFixture, scenario } from "./stagesFixture.ts";

type Answered = readonly [by: string, answer: CancelOutcome];

/**
 * The submissions in this order before it is sent, and the terms that apply. Then the cancels in
 * this order, each with its answer.
 */
const BEFORE: readonly (readonly [readonly Brought[], holds: string, cancels: readonly Answered[]])[] = [
	[
		[{ by: "a" }],
		"fast likely sender",
		[
			["b", "notPending"],
			["a", "cancelled"],
			["a", "cancelled"],
		],
	],
	[
		[
			{ by: "stranger", refund: S },
			{ by: "a", refund: R },
		],
		"fast likely sender",
		[
			["stranger", "stillWanted"],
			["a", "cancelled"],
			["stranger", "cancelled"],
		],
	],
	[
		[{ by: "stranger" }, { by: "a", refund: R }],
		"fast likely sender",
		[
			["a", "stillWanted"],
			["stranger", "cancelled"],
		],
	],
	[
		[
			{ by: "a", refund: R },
			{ by: "b", refund: R },
		],
		"fast likely R",
		[
			["b", "stillWanted"],
			["b", "stillWanted"],
			["a", "cancelled"],
		],
	],
	[[{ by: "stranger", path: "maxbackruns" }, { by: "a" }], "fast likely sender", []],
	[
		[
			{ by: "stranger", path: "maxbackruns" },
			{ by: "a", path: "maxbackruns" },
		],
		"maxbackruns always sender",
		[],
	],
	[
		[{ by: "a" }, { by: "b", path: "nochecks" }, { by: "c", path: "noreverts" }],
		"noreverts never sender",
		[],
	],
	[[{ by: "stranger" }, { by: "a", path: "noreverts" }], "noreverts likely sender", []],
	[
		[
			{ by: "a", path: "noreverts" },
			{ by: "stranger", path: "fast" },
		],
		"noreverts likely sender",
		[["a", "stillWanted"]],
	],
	[
		[
			{ by: "stranger", path: "maxbackruns" },
			{ by: "a", path: "fullprivacy" },
		],
		"fullprivacy never sender",
		[],
	],
	[
		[
			{ by: "a", path: "fullprivacy" },
			{ by: "b", path: "maxbackruns" },
		],
		"fullprivacy never sender",
		[
			["a", "stillWanted"],
			["b", "cancelled"],
		],
	],
	[[{ by: "a", path: "maxbackruns", hidden: true }], "maxbackruns never sender", [["a", "cancelled"]]],
	[[{ by: "a" }, { by: "stranger", hidden: true }], "fast never sender", [["stranger", "stillWanted"]]],
	[[{ by: "a", builders: ["a"] }, { by: "b" }], "fast likely sender a", [["a", "stillWanted"]]],
	[[{ by: "a" }, { by: "b", builders: ["b"] }], "fast likely sender b", []],
	[
		[
			{ by: "a", builders: ["a", "b"] },
			{ by: "a", builders: ["b"] },
		],
		"fast likely sender b",
		[],
	],
	[
		[
			{ by: "a", builders: ["a"] },
			{ by: "a", builders: ["b"] },
		],
		"fast likely sender a",
		[],
	],
	// The same client again, and a wallet that sends again what it has taken back.
	[
		[
			{ by: "a", refund: R },
			{ by: "a", refund: R },
		],
		"fast likely R",
		[["a", "cancelled"]],
	],
	[
		[
			{ by: "a", refund: R },
			{ by: "a", refund: S },
			{ by: "a", refund: S },
		],
		"fast likely sender",
		[["a", "cancelled"]],
	],
	[[{ by: "a" }, { by: "a", path: "fullprivacy" }, { by: "a" }], "fullprivacy never sender", []],
	// A web page's transaction has no owner: nobody can cancel it by address, not even its visitor.
	[
		[{ by: "page" }],
		"fast likely sender",
		[
			["page", "notPending"],
			["a", "notPending"],
			["signature", "cancelled"],
		],
	],
	[
		[{ by: "page" }, { by: "a", path: "noreverts" }],
		"noreverts likely sender",
		[
			["a", "stillWanted"],
			["signature", "cancelled"],
		],
	],
	// The sender's signature ends it for all.
	[
		[{ by: "a" }, { by: "b" }],
		"fast likely sender",
		[
			["signature", "cancelled"],
			["a", "cancelled"],
			["c", "notPending"],
		],
	],
];

/** The submissions in this order, with the first already sent, and the terms that apply. */
const AFTER: readonly (readonly [readonly Brought[], holds: string])[] = [
	[[{ by: "a" }, { by: "stranger", path: "fullprivacy" }], "fast never sender"],
	[[{ by: "a" }, { by: "stranger", path: "noreverts" }], "fast likely sender"],
	[[{ by: "a" }, { by: "stranger", path: "nochecks" }], "fast never sender"],
	[[{ by: "a" }, { by: "stranger", builders: ["b"] }], "fast likely sender"],
	[[{ by: "a" }, { by: "stranger", hidden: true, builders: ["b"] }], "fast never sender"],
	[[{ by: "a" }, { by: "page", path: "fullprivacy" }], "fast never sender"],
	[
		[
			{ by: "a", refund: R },
			{ by: "stranger", refund: S },
		],
		"fast likely sender",
	],
	[[{ by: "a", path: "maxbackruns" }, { by: "stranger" }], "maxbackruns always sender"],
	[[{ by: "stranger", path: "nochecks" }, { by: "a" }], "nochecks never sender"],
	// The first owner may still be stricter, even if others have joined in between.
	[[{ by: "a" }, { by: "a", path: "noreverts" }], "noreverts likely sender"],
	[[{ by: "a" }, { by: "b" }, { by: "a", path: "fullprivacy" }], "fullprivacy never sender"],
	[[{ by: "a" }, { by: "b" }, { by: "b", path: "fullprivacy" }], "fast never sender"],
	[[{ by: "a" }, { by: "a", builders: ["b"] }], "fast likely sender b"],
	[[{ by: "page" }, { by: "a" }, { by: "a", path: "fullprivacy" }], "fast never sender"],
];

/** Nothing goes out while its simulation fails. */
async function bringBefore(fixture: StagesFixture, brought: readonly Brought[]): Promise<void> {
	fixture.failing.add(hash);
	for (const one of brought) await bring(fixture, one);
	fixture.failing.delete(hash);
	await blocks(fixture, 1);
}

for (const [brought, held, cancellations] of BEFORE) {
	scenario(`before it is sent: ${named(brought)}: ${held}`, async (first) => {
		let fixture = first;
		await bringBefore(fixture, brought);
		assert.equal(holds(fixture), held);
		const restart = async () => {
			fixture = await fixture.restart();
			await blocks(fixture, 1);
		};
		await restart();
		assert.equal(holds(fixture), held, "after a restart");
		let lives = true;
		for (const [by, answer] of cancellations) {
			assert.equal(await cancelBy(fixture, by), answer, `cancel by ${by}`);
			lives &&= answer !== "cancelled";
			const stage = await stageOf(fixture);
			assert.equal(isLive(stage), lives, `after the cancel by ${by}: ${stage}`);
			if (lives) assert.equal(holds(fixture), held, `after the cancel by ${by}`);
			await restart();
		}
	});
}

for (const [brought, held] of AFTER) {
	scenario(`once it is sent: ${named(brought)}: ${held}`, async (first) => {
		for (const one of brought) await bring(first, one);
		assert.equal(holds(first), held);
		const fixture = await first.restart();
		await blocks(fixture, 1);
		assert.equal(holds(fixture), held, "after a restart");
	});
}

scenario(
	"two clients with the same bytes at the same moment are both owners, and each is answered once that is on disk",
	async (fixture) => {
		fixture.disk.hold = true;
		const [one, other] = [fixture.submit(TX), bring(fixture, { by: "b", path: "noreverts" })];
		await fixture.quiet();
		fixture.disk.finish(true);
		assert.equal((await one).outcome, "accepted");
		let isAnswered = false;
		void other.then(() => {
			isAnswered = true;
		});
		await fixture.quiet();
		assert.deepEqual([isAnswered, fixture.disk.waiting > 0], [false, true]);
		fixture.disk.hold = false;
		fixture.disk.finish(true);
		await other;
		assert.equal(holds(fixture), "noreverts likely sender");
	},
);

scenario("a client whose write fails is not an owner", async (fixture) => {
	await fixture.take(TX);
	fixture.disk.broken = true;
	await assert.rejects(bring(fixture, { by: "b", path: "fullprivacy" }), STORE_OUT);
	assert.equal(holds(fixture), "fast likely sender");
	fixture.disk.broken = false;
	await bring(fixture, { by: "b", path: "fullprivacy" });
	assert.equal(holds(fixture), "fast never sender");
	fixture.disk.broken = true;
	await assert.rejects(fixture.pipeline.cancel({ hash, address: "ip-b", signer: null }), STORE_OUT);
	fixture.disk.broken = false;
	assert.deepEqual([await cancelBy(fixture, "b"), fixture.stage(TX)], ["stillWanted", "BROADCAST"]);
});

scenario(
	"if its first owner gets stricter, it is cancelled at builders and sent on the stricter terms",
	async (fixture) => {
		await bring(fixture, { by: "a" });
		assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
		for (const path of ["fast", "noreverts", "fullprivacy"] as const) await bring(fixture, { by: "b", path });
		await bring(fixture, { by: "stranger", builders: ["a"] });
		assert.deepEqual(fixture.builders.take(), [], "whatever others ask for");
		await bring(fixture, { by: "a", builders: ["b"] });
		assert.deepEqual(fixture.builders.take(), ["cancel 0 for 101 at a,b", "send 0 for 101 to b"]);
		await bring(fixture, { by: "a", path: "fullprivacy" });
		fixture.builders.take();
		fixture.failing.add(hash);
		await blocks(fixture, 1);
		assert.deepEqual([fixture.stage(TX), fixture.builders.take()], ["SIMULATION_FAILED", []]);
	},
);

scenario("while its simulation runs on the earlier path, nothing follows from that path", async (fixture) => {
	let answer = () => {};
	fixture.simulationGate = new Promise((resolve) => {
		answer = resolve;
	});
	await fixture.submit(TX);
	const joined = fixture.submit(privateTransaction({ path: "fullprivacy", submitterAddress: "ip-b" }));
	await joined;
	answer();
	await fixture.quiet();
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to b"]);
});

scenario("an expired one keeps its owners' requests when anyone submits it again", async (fixture) => {
	await bring(fixture, { by: "a", path: "fullprivacy", refund: R });
	await blocks(fixture, LIFE_BLOCKS);
	assert.equal(fixture.stage(TX), "EXPIRED");
	await bring(fixture, { by: "stranger", path: "maxbackruns", refund: S });
	assert.equal(holds(fixture), "fullprivacy never sender");
	// Its earlier owner wants it again, and is an owner again.
	await bring(fixture, { by: "a", path: "fullprivacy", refund: R });
	assert.deepEqual([await cancelBy(fixture, "stranger"), fixture.stage(TX)], ["stillWanted", "BROADCAST"]);
	assert.deepEqual([await cancelBy(fixture, "a"), fixture.stage(TX)], ["cancelled", "CANCELLED"]);
	assert.equal((await offer(fixture, { by: "c" })).outcome, "rejected");
});

test(`owners are bounded: beyond ${MAX_OWNERS} the strictest path still counts, and none of them is ended for another`, async () => {
	const fixture = new StagesFixture();
	fixture.failing.add(hash);
	for (let i = 0; i < 40; i += 1) await bring(fixture, { by: `bot${i}`, refund: S });
	assert.equal(holds(fixture), "fast likely S");
	await bring(fixture, { by: "a", path: "noreverts", refund: R });
	assert.equal(holds(fixture), "noreverts likely sender");
	const { record } = fixture.records.get(hash) ?? assert.fail();
	assert.ok(record.owners.length <= MAX_OWNERS + 1);
	for (let i = 0; i < 40; i += 1) await cancelBy(fixture, `bot${i}`);
	assert.ok(isLive(record.stage));
	assert.equal(await cancelBy(fixture, "signature"), "cancelled");
	assert.equal(record.stage, "CANCELLED");
});

test("no event names its clients, and none of the owners' addresses is kept once it is archived", async () => {
	const fixture = new StagesFixture();
	await bring(fixture, { by: "a" });
	await bring(fixture, { by: "b", path: "noreverts" });
	await cancelBy(fixture, "b");
	const told = (tx: PrivateTransaction) => fixture.records.get(tx.tx.hash)?.record.events ?? [];
	const types = told(TX).map(({ type }) => type);
	assert.deepEqual(
		types.filter((type) => type === "joined" || type === "left"),
		["joined", "left"],
	);
	assert.doesNotMatch(JSON.stringify(told(TX)), /ip-/);
	await fixture.block({ mined: [TX] });
	await blocks(fixture, 65);
	assert.equal(fixture.records.size, 0);
	for (const value of fixture.disk.map.values()) assert.doesNotMatch(value.toString("latin1"), /ip-/);
});

test("a client that submits after a cancel comes before a page that submits later, also after a restart", async () => {
	const fixture = new StagesFixture();
	fixture.failing.add(hash);
	await bring(fixture, { by: "a" });
	assert.equal(await cancelBy(fixture, "a"), "cancelled");
	await bring(fixture, { by: "b", again: true });
	await bring(fixture, { by: "page" });
	// A builder may have it from before the restart, so only its first owner may change its path.
	const next = await fixture.restart();
	assert.ok(next.builders.isOut(hash));
	await bring(next, { by: "page", path: "noreverts" });
	assert.equal(holds(next), "fast likely sender");
	await bring(next, { by: "b", path: "fullprivacy" });
	assert.equal(holds(next), "fullprivacy never sender");
});
