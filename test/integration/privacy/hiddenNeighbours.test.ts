// A searcher who knows the hash of a shared transaction must not see its sender's private ones. The
// same life of a shared transaction is repeated with and without private transactions before it,
// behind it or in its place; everything the searcher can read must be the same, to the byte.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { EMITTER, REVERTER } from "../../support/biddingFixture.ts";
import { sized } from "../../support/length.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { firstDifference, SearcherView } from "../../support/searcherView.ts";
import { until } from "../../support/until.ts";

const BUILDERS = [
	{ name: "vault", fullPrivacy: true, cancel: "endpoint" },
	{ name: "plain", cancel: "endpoint" },
] as const;
const LIFE_BLOCKS = 5;
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const SOFT = "/noreverts?softCancellations=true";

let fixture: AuctionFixture;
before(async () => {
	const env = { TX_TTL_BLOCKS: String(LIFE_BLOCKS) };
	fixture = await startAuction({ builders: BUILDERS, proxied: true, env });
	await fixture.passBlock();
});
after(() => fixture.system.stop());

/** One life: the user, his shared transaction, and who looks at it. */
interface Life {
	readonly user: Actor;
	readonly tx: Signed;
	readonly view: SearcherView;
	/** Values that differ between the runs, by a common name. */
	readonly names: Record<string, string>;
}

/** The hidden act of a run, done at its time. */
type Hidden = (life: Life) => Promise<void>;
const nothing: Hidden = async () => {};

async function hide(path: string, tx: Signed, stage: string): Promise<void> {
	await fixture.submit(path, tx);
	await fixture.reaches(tx, stage);
}

/**
 * Waits until builders have answered all that was on its way to them; nobody may learn which were
 * asked.
 */
async function quiet(): Promise<void> {
	await until("all is answered", async () => {
		const text = await metricsOf(fixture.system.core.url);
		return /^relay_lane_depth 0$/m.test(text);
	});
}

/** Its user cancels it. */
async function takeBack(tx: Signed): Promise<void> {
	assert.equal(await fixture.system.client.call("eth_cancelTransaction", [tx.hash]), true);
	await quiet();
}

/**
 * Waits until `builders` (both unless given) have answered what `tx` was sent to them for the next
 * block.
 */
async function answered(tx: Signed, ...builders: readonly string[]): Promise<void> {
	await fixture.waitUntilSent(tx, builders.length === 0 ? {} : { builders });
	await quiet();
}

/** A disclosed transaction that is sent, followed and bid on. */
async function begin(path: string): Promise<Life> {
	const user = await fixture.actor();
	const tx = user.sign({ to: EMITTER });
	const view = await SearcherView.open(fixture, tx);
	await fixture.submit(path, tx);
	await fixture.open(tx);
	await answered(tx);
	await view.follow();
	await bidBy(view, tx);
	return { user, tx, view, names: {} };
}

/** Bids, and waits until the builders have it, unless it is refused. */
async function bidBy(view: SearcherView, tx: Signed): Promise<void> {
	const backrun = await view.bid(1_000n);
	if (backrun === null) return;
	for (const builder of fixture.system.builders) await fixture.out(tx, backrun, builder);
}

/** Leads each run's life, and holds what is seen of it against the first one's. */
async function assertAlike(runs: Readonly<Record<string, () => Promise<Life>>>): Promise<void> {
	let expected: readonly string[] | null = null;
	for (const [what, run] of Object.entries(runs)) {
		const { view, names } = await run();
		const seen = await view.end(names);
		expected ??= seen;
		assert.ok(seen.length > 12, `${what}: only ${seen.length} lines`);
		assert.equal(firstDifference(seen, expected), null, what);
	}
}

/** A run for each of `hidden`, by the same `life`. */
function runs(
	life: (hidden: Hidden) => Promise<Life>,
	hidden: Readonly<Record<string, Hidden>>,
): Record<string, () => Promise<Life>> {
	return Object.fromEntries(Object.entries(hidden).map(([what, one]) => [what, () => life(one)]));
}

/**
 * Another one takes its place, and is not shared: what is not likely to be backrun is not, whatever
 * its path.
 */
const replacing =
	(path: string, end: Hidden = nothing): Hidden =>
	async (life) => {
		const next = life.user.sign({ value: 1n, ...BUMPED });
		life.names[next.hash] = "NEXT";
		await hide(path, next, "BROADCAST");
		await end(life);
	};

const BEHIND: Readonly<Record<string, Hidden>> = {
	nothing,
	"one on /fullprivacy": ({ user }) => hide("/fullprivacy", user.sign({ nonce: 1 }), "BROADCAST"),
	"one on /nochecks": ({ user }) => hide("/nochecks", user.sign({ nonce: 1, to: EMITTER }), "BROADCAST"),
	"one that fails": ({ user }) =>
		hide("/fullprivacy", user.sign({ nonce: 1, to: REVERTER }), "SIMULATION_FAILED"),
	"one that is replaced and cancelled": async ({ user }) => {
		const next = user.sign({ nonce: 1, ...BUMPED });
		await hide("/fullprivacy", user.sign({ nonce: 1 }), "BROADCAST");
		await hide("/nochecks", next, "BROADCAST");
		await takeBack(next);
	},
};

/** Nothing, and one transaction on each of two paths: enough where another test has all. */
const FEW = Object.fromEntries(Object.entries(BEHIND).slice(0, 3));

describe("hidden transactions after a shared one", () => {
	for (const path of ["/fast", "/noreverts"]) {
		it(`on ${path}: while it is pending and when it is cancelled`, async () => {
			const life = async (hidden: Hidden): Promise<Life> => {
				const one = await begin(path);
				await hidden(one);
				await one.view.look("pending");
				await fixture.passBlock();
				await answered(one.tx);
				await one.view.look("in the next block");
				await takeBack(one.tx);
				await one.view.look("cancelled");
				await fixture.passBlock();
				return one;
			};
			await assertAlike(runs(life, path === "/noreverts" ? BEHIND : FEW));
		});
	}

	it("when it is mined, reorganised away and mined again", async () => {
		const life = async (hidden: Hidden): Promise<Life> => {
			const one = await begin("/fast");
			await hidden(one);
			// By itself, so that its place in the block is the same.
			await mineAlone(one.tx);
			await one.view.look("mined");
			const release = fixture.system.node?.hold();
			await fixture.system.chain.rpc("anvil_reorg", [1, []]).finally(release);
			await fixture.leftBlock(one.tx);
			await fixture.reaches(one.tx, "BROADCAST");
			await answered(one.tx);
			await one.view.look("pending again");
			await mineAlone(one.tx);
			return one;
		};
		await assertAlike(runs(life, sized(FEW, BEHIND)));
	});
});

describe("hidden transactions that replace a shared one", () => {
	const PLACE: Readonly<Record<string, Hidden>> = {
		"one on /fast that is not shared": replacing("/fast"),
		"one on /fullprivacy": replacing("/fullprivacy"),
		"one on /nochecks": replacing("/nochecks"),
		"one on /fullprivacy, with another behind it": replacing("/fullprivacy", ({ user }) =>
			hide("/fullprivacy", user.sign({ nonce: 1 }), "BROADCAST"),
		),
		"one that is cancelled": async (life) => {
			const next = life.user.sign({ value: 1n, ...BUMPED });
			await hide("/nochecks", next, "BROADCAST");
			await takeBack(next);
		},
	};

	it("nobody learns the path or outcome of the hidden one", async () => {
		const life = async (hidden: Hidden): Promise<Life> => {
			const one = await begin("/maxbackruns");
			await hidden(one);
			await fixture.reaches(one.tx, "REPLACED");
			await quiet();
			await one.view.look("replaced");
			await fixture.passBlock();
			await one.view.look("a block later");
			return one;
		};
		await assertAlike(runs(life, PLACE));
	});

	it("when it has expired, with or without later nonces", async () => {
		const life = (before: Hidden, after: Hidden) => async (): Promise<Life> => {
			const one = await begin("/maxbackruns");
			await before(one);
			for (let i = 1; i < LIFE_BLOCKS; i++) {
				await fixture.passBlock();
				await answered(one.tx);
			}
			await fixture.passBlock();
			await fixture.reaches(one.tx, "EXPIRED");
			await one.view.look("expired");
			await after(one);
			await one.view.look("later");
			return one;
		};
		const [, full = nothing, unchecked = nothing] = Object.values(BEHIND);
		await assertAlike({
			"one on /fast that is not shared": life(nothing, replacing("/fast")),
			"on /fullprivacy": life(full, replacing("/fullprivacy")),
			"on /nochecks": life(unchecked, replacing("/nochecks")),
		});
	});

	it("when it is cancelled by hash or softly, on any path, with or without a hidden one in its place", async () => {
		const softly =
			(path: string): Hidden =>
			async ({ user, tx }) => {
				await fixture.submit(path, user.sign({ to: user.address }));
				await fixture.reaches(tx, "CANCELLED");
			};
		const life = async (hidden: Hidden): Promise<Life> => {
			const one = await begin(SOFT);
			await hidden(one);
			await takeBack(one.tx);
			await one.view.look("cancelled");
			await fixture.passBlock();
			return one;
		};
		await assertAlike(
			runs(life, {
				"by hash": ({ tx }) => takeBack(tx),
				"softly on /fast": softly("/fast"),
				"softly on /fullprivacy": softly("/fullprivacy"),
				"softly, with a hidden one in its place": async (life) => {
					await softly("/nochecks")(life);
					await hide("/fullprivacy", life.user.sign({ value: 5n }), "BROADCAST");
				},
				"by hash, with a hidden one in its place": async (life) => {
					await takeBack(life.tx);
					await hide("/nochecks", life.user.sign({ value: 5n }), "BROADCAST");
				},
			}),
		);
	});
});

describe("hidden transactions before a shared one", () => {
	/** A shared one with nonce 1, behind what `hidden` has submitted. */
	const lifeBehind =
		(stage: string) =>
		async (hidden: Hidden): Promise<Life> => {
			const user = await fixture.actor();
			const tx = user.sign({ nonce: 1, to: EMITTER });
			const view = await SearcherView.open(fixture, tx);
			const one: Life = { user, tx, view, names: {} };
			await hidden(one);
			await fixture.submit("/maxbackruns", tx);
			await fixture.reaches(tx, stage);
			await quiet();
			await view.follow();
			await bidBy(view, tx);
			await view.look("pending");
			await fixture.passBlock();
			if (stage === "BROADCAST") await answered(tx, "vault");
			await view.look("in the next block");
			await takeBack(tx);
			await view.look("cancelled");
			return one;
		};

	it("one that waits: behind a gap, an unchecked one, or one that is held", () =>
		assertAlike(
			runs(lifeBehind("QUEUED"), {
				gap: nothing,
				"on /nochecks": ({ user }) => hide("/nochecks", user.sign(), "BROADCAST"),
				"on /fullprivacy, held": ({ user }) =>
					hide("/fullprivacy", user.sign({ to: REVERTER }), "SIMULATION_FAILED"),
				"on /noreverts, held": ({ user }) =>
					hide("/noreverts", user.sign({ to: REVERTER }), "SIMULATION_FAILED"),
			}),
		));

	it("one that is sent: behind one on /fullprivacy, or one that is only not disclosed", () =>
		assertAlike(
			runs(lifeBehind("BROADCAST"), {
				"on /fast, not shared": ({ user }) => hide("/fast", user.sign(), "BROADCAST"),
				"on /fullprivacy": ({ user }) => hide("/fullprivacy", user.sign(), "BROADCAST"),
			}),
		));
});

/** A block with `tx` and nothing else. */
async function mineAlone(tx: Signed): Promise<void> {
	await fixture.publish(tx);
	await fixture.passBlock();
	await fixture.reaches(tx, "INCLUDED");
}
