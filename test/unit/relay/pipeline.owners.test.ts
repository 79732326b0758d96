// Tests who owns a transaction whose bytes several clients bring: which path holds, who gets the refund, who ends it, what of
// that a restart keeps, and the same for random sequences against a model that knows nothing of how the relay keeps it.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ENDPOINTS, type SubmissionPath } from "../../../relay/domain/endpoints.ts";
import { isLive } from "../../../relay/domain/record.ts";
import type { PrivateTransaction } from "../../../relay/domain/transaction.ts";
import { MAX_OWNERS, termsOf } from "../../../shared/ownership.ts";
import { privateTransaction, testAccount } from "../../support/txFactory.ts";
import { blocks, known, LIFE_BLOCKS, SENDER, STORE_OUT, StagesFixture, scenario } from "./stagesFixture.ts";

const TX = privateTransaction();
const { hash } = TX.tx;
const [R, S] = [testAccount(7).address, testAccount(8).address];

/** One client's submission, in short: who, on which path, for whom the refund is. A client `sender` signs the request too. */
interface Brought {
	readonly by: string;
	readonly path?: SubmissionPath;
	readonly refund?: string | null;
	readonly soft?: boolean;
	readonly hidden?: boolean;
	readonly builders?: readonly string[];
}

const ADDRESSES: Readonly<Record<string, string | null>> = { sender: "198.51.100.9", page: null };
const addressOf = (name: string): string | null => ADDRESSES[name] ?? (name === "page" ? null : `ip-${name}`);

async function bring(fixture: StagesFixture, one: Brought): Promise<void> {
	const { by, path = "fast", refund = null, soft = false, hidden = false, builders = null } = one;
	const outcome = await fixture.pipeline.submit({
		...{
			raw: TX.tx.raw,
			path,
			softCancellations: soft,
			refundRecipient: refund,
			referrer: null,
			isHidden: hidden,
			builders,
		},
		submitterAddress: addressOf(by) ?? "ip-of-visitor",
		...{ requestId: null, trace: null },
		requester: { address: addressOf(by), signer: by === "sender" ? SENDER : null },
	});
	assert.ok(outcome.outcome === "accepted" || outcome.outcome === "known", JSON.stringify(outcome));
	await fixture.quiet();
}

/** What holds, as searchers, builders and the status page would see it. */
function holds(fixture: StagesFixture): string {
	const { owners } = fixture.records.get(hash)?.record ?? TX;
	const { path, refundRecipient } = termsOf(owners);
	const pending = fixture.pool.get(hash)?.transaction ?? TX;
	const { sharing, builders } = pending;
	assert.deepEqual(
		[pending.path, pending.refundRecipient],
		[path, refundRecipient],
		"the pool and the record",
	);
	const refund = refundRecipient === R ? "R" : refundRecipient === S ? "S" : "sender";
	return [path, sharing, refund, ...(builders ?? [])].join(" ");
}

async function cancelBy(fixture: StagesFixture, name: string): Promise<boolean> {
	const request =
		name === "signature" ? { address: null, signer: SENDER } : { address: addressOf(name), signer: null };
	const answer = await fixture.pipeline.cancel({ hash, ...request });
	await fixture.quiet();
	return answer;
}

/** Who brings what in this order; what holds; who cancels in this order, with what each is answered and whether it lives. */
const TABLE: readonly (readonly [
	brought: readonly Brought[],
	holds: string,
	cancels: readonly (readonly [by: string, answer: boolean, lives: boolean])[],
])[] = [
	[
		[{ by: "a" }],
		"fast likely sender",
		[
			["b", false, true],
			["a", true, false],
			["a", true, false],
		],
	],
	[
		[
			{ by: "stranger", refund: S },
			{ by: "a", refund: R },
		],
		"fast likely sender",
		[
			["stranger", true, true],
			["a", true, false],
			["stranger", true, false],
		],
	],
	[
		[{ by: "stranger" }, { by: "a", refund: R }],
		"fast likely sender",
		[
			["a", true, true],
			["stranger", true, false],
		],
	],
	[
		[
			{ by: "a", refund: R },
			{ by: "b", refund: R },
		],
		"fast likely R",
		[
			["b", true, true],
			["b", true, true],
			["a", true, false],
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
	[[{ by: "stranger", path: "nochecks" }, { by: "a" }], "fast never sender", []],
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
		[["a", true, true]],
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
			["a", true, true],
			["b", true, false],
		],
	],
	[[{ by: "a", path: "maxbackruns", hidden: true }], "maxbackruns never sender", [["a", true, false]]],
	[[{ by: "a" }, { by: "stranger", hidden: true }], "fast never sender", [["stranger", true, true]]],
	[[{ by: "a", builders: ["a"] }, { by: "b" }], "fast likely sender a", [["a", true, true]]],
	[[{ by: "a" }, { by: "a", builders: ["b"] }], "fast likely sender b", []],
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
	// Who has it from a builder can't take it from the others.
	[[{ by: "a" }, { by: "stranger", builders: ["b"] }], "fast likely sender", []],
	[[{ by: "stranger", hidden: true, builders: ["b"] }, { by: "sender" }], "fast likely sender", []],
	// The same client again, and a wallet that sends again what it has taken back.
	[
		[
			{ by: "a", refund: R },
			{ by: "a", refund: R },
		],
		"fast likely R",
		[["a", true, false]],
	],
	[
		[
			{ by: "a", refund: R },
			{ by: "a", refund: S },
			{ by: "a", refund: S },
		],
		"fast likely sender",
		[["a", true, false]],
	],
	[[{ by: "a" }, { by: "a", path: "fullprivacy" }, { by: "a" }], "fullprivacy never sender", []],
	// What a web page sends is nobody's: it can't be taken back by address, by its visitor either.
	[
		[{ by: "page" }],
		"fast likely sender",
		[
			["page", false, true],
			["a", false, true],
			["signature", true, false],
		],
	],
	[
		[{ by: "page" }, { by: "a", path: "noreverts" }],
		"noreverts likely sender",
		[
			["a", true, true],
			["signature", true, false],
		],
	],
	// The sender's signature goes over all of that.
	[
		[
			{ by: "stranger", path: "fullprivacy", refund: S },
			{ by: "sender", refund: R },
			{ by: "b", path: "noreverts" },
		],
		"fast likely R",
		[
			["stranger", true, true],
			["b", true, true],
			["signature", true, false],
		],
	],
	[
		[
			{ by: "sender", path: "fullprivacy" },
			{ by: "stranger", refund: S },
		],
		"fullprivacy never sender",
		[
			["sender", true, true],
			["stranger", true, false],
		],
	],
	[
		[
			{ by: "sender", refund: S },
			{ by: "sender", refund: R },
		],
		"fast likely R",
		[
			["signature", true, false],
			["sender", true, false],
		],
	],
	[
		[{ by: "a" }, { by: "b" }],
		"fast likely sender",
		[
			["signature", true, false],
			["a", true, false],
			["c", false, false],
		],
	],
];

for (const [brought, held, cancellations] of TABLE) {
	const name = brought.map(
		({ by, path = "fast", refund, hidden, builders }) =>
			`${by} on /${path}${refund ? " with a refund" : ""}${hidden ? " hidden" : ""}${builders ? ` to ${builders}` : ""}`,
	);
	scenario(`${name.join(", then ")}: ${held}`, async (first) => {
		let fixture = first;
		for (const one of brought) await bring(fixture, one);
		assert.equal(holds(fixture), held);
		const restart = async () => {
			fixture = await fixture.restart();
			await blocks(fixture, 1);
		};
		await restart();
		assert.equal(holds(fixture), held, "after a restart");
		for (const [by, answer, lives] of cancellations) {
			assert.equal(await cancelBy(fixture, by), answer, `cancel by ${by}`);
			const { record } = fixture.records.get(hash) ?? {};
			const stage = record?.stage ?? (await fixture.store.archived(hash))?.stage;
			assert.equal(isLive(stage ?? "DROPPED"), lives, `after the cancel by ${by}: ${stage}`);
			if (lives) assert.equal(holds(fixture), held, `after the cancel by ${by}`);
			await restart();
		}
	});
}

scenario(
	"the same bytes at the same moment are of both, and each is told when that is on disk",
	async (fixture) => {
		fixture.disk.hold = true;
		const [one, other] = [fixture.submit(TX), bring(fixture, { by: "b", path: "noreverts" })];
		await fixture.quiet();
		fixture.disk.finish(true);
		assert.equal((await one).outcome, "accepted");
		let isTold = false;
		void other.then(() => {
			isTold = true;
		});
		await fixture.quiet();
		assert.deepEqual([isTold, fixture.disk.waiting > 0], [false, true]);
		fixture.disk.hold = false;
		fixture.disk.finish(true);
		await other;
		assert.equal(holds(fixture), "noreverts likely sender");
	},
);

scenario("whom the store fails is not an owner", async (fixture) => {
	await fixture.take(TX);
	fixture.disk.broken = true;
	await assert.rejects(bring(fixture, { by: "b", path: "fullprivacy" }), STORE_OUT);
	assert.equal(holds(fixture), "fast likely sender");
	fixture.disk.broken = false;
	await bring(fixture, { by: "b", path: "fullprivacy" });
	assert.equal(holds(fixture), "fullprivacy never sender");
	fixture.disk.broken = true;
	await assert.rejects(fixture.pipeline.cancel({ hash, address: "ip-b", signer: null }), STORE_OUT);
	fixture.disk.broken = false;
	assert.deepEqual([await cancelBy(fixture, "b"), fixture.stage(TX)], [true, "BROADCAST"]);
});

scenario("on a stricter path it is taken from the builders and sent again as it may be", async (fixture) => {
	await fixture.take(TX);
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	await bring(fixture, { by: "b" });
	assert.deepEqual(fixture.builders.take(), [], "the path stays");
	await bring(fixture, { by: "b", path: "fullprivacy" });
	assert.deepEqual(fixture.builders.take(), ["cancel 0 for 101 at a,b", "send 0 for 101 to b"]);
	fixture.failing.add(hash);
	await blocks(fixture, 1);
	assert.deepEqual([fixture.stage(TX), fixture.builders.take()], ["SIMULATION_FAILED", []]);
});

scenario("where its owner names builders, it is taken from the others", async (fixture) => {
	await bring(fixture, { by: "a" });
	assert.deepEqual(fixture.builders.take(), ["send 0 for 101 to a,b"]);
	await bring(fixture, { by: "stranger", builders: ["a"] });
	assert.deepEqual(fixture.builders.take(), []);
	await bring(fixture, { by: "a", builders: ["b"] });
	assert.deepEqual(fixture.builders.take(), ["cancel 0 for 101 at a,b", "send 0 for 101 to b"]);
});

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

scenario("one that has expired keeps what its owners asked for, whoever brings it again", async (fixture) => {
	await bring(fixture, { by: "a", path: "fullprivacy", refund: R });
	await blocks(fixture, LIFE_BLOCKS);
	assert.equal(fixture.stage(TX), "EXPIRED");
	await bring(fixture, { by: "stranger", path: "maxbackruns", refund: S });
	assert.equal(holds(fixture), "fullprivacy never sender");
	// Its earlier owner wants it again, and is an owner again.
	await bring(fixture, { by: "a", path: "fullprivacy", refund: R });
	assert.deepEqual([await cancelBy(fixture, "stranger"), fixture.stage(TX)], [true, "BROADCAST"]);
	assert.deepEqual([await cancelBy(fixture, "a"), fixture.stage(TX)], [true, "CANCELLED"]);
	assert.deepEqual(await fixture.take(TX), [known(TX)]);
});

test(`owners are bounded: beyond ${MAX_OWNERS} the strictest path still counts, and none of them is ended for another`, async () => {
	const fixture = new StagesFixture();
	for (let i = 0; i < 40; i += 1) await bring(fixture, { by: `bot${i}`, refund: S });
	assert.equal(holds(fixture), "fast likely S");
	await bring(fixture, { by: "a", path: "noreverts", refund: R });
	await bring(fixture, { by: "sender", path: "noreverts", refund: R });
	const { record } = fixture.records.get(hash) ?? assert.fail();
	assert.ok(record.owners.length <= MAX_OWNERS + 2);
	assert.equal(holds(fixture), "noreverts likely R");
	for (let i = 0; i < 40; i += 1) await cancelBy(fixture, `bot${i}`);
	await cancelBy(fixture, "sender");
	assert.ok(isLive(record.stage));
	assert.equal(await cancelBy(fixture, "signature"), true);
	assert.equal(record.stage, "CANCELLED");
});

/** What a model of a few lines says: of each client all that it asked for, and whether it still wants it. */
class Model {
	readonly asked: Brought[] = [];
	readonly gone = new Set<string>();
	isOver = false;

	get holds(): string {
		const signed = this.asked.findLast(({ by }) => by === "sender");
		const counted = signed === undefined ? this.asked : [signed];
		const paths = counted.map(({ path = "fast" }) => path);
		const order = ["fullprivacy", "noreverts", "fast", "maxbackruns", "nochecks"] as const;
		const path = order.find((one) => paths.includes(one)) ?? "fast";
		const shares = new Set(paths.map((one) => ENDPOINTS[one].sharing as string));
		const sharing = shares.has("never") ? "never" : shares.has("likely") ? "likely" : "always";
		const refunds = new Set(counted.map(({ refund }) => refund ?? null));
		const [refund] = refunds.size === 1 ? refunds : [null];
		return `${path} ${sharing} ${refund === R ? "R" : refund === S ? "S" : "sender"}`;
	}

	cancel(by: string): boolean {
		if (by === "signature") this.isOver = true;
		const isOwner = by !== "page" && this.asked.some((one) => one.by === by);
		if (isOwner) this.gone.add(by);
		if (this.asked.every((one) => this.gone.has(one.by))) this.isOver = true;
		return isOwner || by === "signature";
	}
}

const NAMES = ["a", "b", "c", "page", "sender"] as const;
const STEPS = fc.oneof(
	{
		weight: 4,
		arbitrary: fc.record({
			by: fc.constantFrom(...NAMES),
			path: fc.constantFrom(...(Object.keys(ENDPOINTS) as SubmissionPath[])),
			refund: fc.constantFrom(null, R, S),
		}),
	},
	{ weight: 3, arbitrary: fc.constantFrom(...NAMES, "d") },
	{ weight: 1, arbitrary: fc.constantFrom("restart" as const, "block" as const) },
	{ weight: 1, arbitrary: fc.constant("signature" as const) },
);

test("random submissions, cancels, blocks and restarts end as the model says", async () => {
	await fc.assert(
		fc.asyncProperty(fc.array(STEPS, { maxLength: 25 }), async (steps) => {
			let fixture = new StagesFixture();
			const model = new Model();
			let age = 0;
			for (const step of steps) {
				if (typeof step === "object") {
					await bring(fixture, step);
					// Its end stays, for whoever brings it.
					if (model.isOver) continue;
					model.asked.push(step);
					if (step.by === "sender") model.gone.delete("sender");
				} else if (step === "restart") fixture = await fixture.restart();
				else if (step === "block") {
					if (age < LIFE_BLOCKS - 5) await fixture.block();
					age += 1;
				} else if (model.asked.length > 0) {
					const wasOver = model.isOver;
					const expected = model.cancel(step);
					model.isOver ||= wasOver;
					assert.equal(await cancelBy(fixture, step), expected, `cancel by ${step}`);
				}
				if (model.asked.length === 0) continue;
				const { stage = "DROPPED" } =
					fixture.records.get(hash)?.record ?? (await fixture.store.archived(hash)) ?? {};
				assert.equal(isLive(stage), !model.isOver, stage);
				if (!model.isOver) assert.equal(holds(fixture), model.holds);
			}
			assert.deepEqual(fixture.faults, []);
		}),
		{ numRuns: 200 },
	);
});

test("who brought it is in no event, and none of the owners' addresses is kept once it is archived", async () => {
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
