// Chains of one account's nonces, with gaps and with links that came on different paths: to which
// builders each link is sent, when and in which order; the cap on a chain. When a link is
// cancelled, expires, is replaced, fails or is overtaken, the rest waits, unsent and without
// ageing, shows the reason, and continues when the gap closes.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { errorString, gate, REVERTS } from "../../support/contracts.ts";
import { sized } from "../../support/length.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";
import { ChainFixture, type Link } from "../../support/userFixtures.ts";

const LIFE_BLOCKS = 4;
const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const BUMPED_AGAIN = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI };
const WORD_ONE = `0x${"1".padStart(64, "0")}`;
const WORD_ZERO = `0x${"0".padStart(64, "0")}`;
const PATHS = ["/fast", "/noreverts", "/maxbackruns", "/fast"];

let system: TestSystem;
let fixture: ChainFixture;

before(async () => {
	system = await startSystem({
		builders: [{ name: "vault", fullPrivacy: true }, { name: "other" }],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	fixture = new ChainFixture(system);
});
after(() => system.stop());

function chainOf(actor: Actor, length: number): Signed[] {
	return Array.from({ length }, (_, nonce) => actor.sign({ nonce }));
}

/** The link at `i`, which is there. */
function at(chain: readonly Link[], i: number): Link {
	const link = chain[i];
	if (link === undefined) throw new RangeError(`no link ${i}`);
	return link;
}

function assertNeverSent(tx: Signed, builders = system.builders): void {
	for (const builder of builders) assert.deepEqual(fixture.deliveries(builder, tx), [], builder.name);
}

describe("a nonce gap", () => {
	it("makes it wait as QUEUED, longer than a life; its life begins when the gap closes", async () => {
		const actor = await fixture.actor();
		const [first, second, third] = fixture.chainOf(actor, ["/fast", "/fast", "/fast"]);
		assert.ok(first && second && third);
		await fixture.submitAll([third, second]);
		for (const tx of [second, third]) {
			const { status, rpc_timestamp, transaction } = await fixture.reaches(tx, "QUEUED");
			assert.deepEqual([status, rpc_timestamp, transaction.from], ["UNKNOWN", null, ""]);
		}
		assert.equal(await fixture.pendingNonce(actor), 0);
		await fixture.assertStayBack([second, third], "nonceGap", LIFE_BLOCKS + 1);
		for (const tx of [second, third]) assertNeverSent(tx);
		await fixture.submit("/fast", first);
		assert.equal(await fixture.pendingNonce(actor), 3);
		const begins = (await fixture.head()) + 1;
		for (let i = 0; i < LIFE_BLOCKS; i += 1) {
			for (const tx of [first, second, third]) await fixture.waitUntilSent(tx, { block: begins + i });
			await fixture.passBlock();
		}
		for (const tx of [first, second, third]) await fixture.reaches(tx, "EXPIRED");
		const life = await fixture.life(second);
		assert.deepEqual(life.slice(1, 3), ["queued", `ready ${begins}`]);
		assert.equal(life.at(-1), `expired ${begins + LIFE_BLOCKS - 1}`);
	});
});

describe("the order on the wire", () => {
	for (const path of ["/fast", "/nochecks"]) {
		it(`a chain on ${path} reaches each builder in the order of its nonces`, async () => {
			const [first, ...rest] = chainOf(await fixture.actor(), sized(6, 16));
			assert.ok(first);
			await fixture.submit(path, ...rest);
			for (const tx of rest) await fixture.reaches(tx, "QUEUED");
			await fixture.submit(path, first);
			const chain = [first, ...rest];
			for (const tx of chain) await fixture.waitUntilSent(tx);
			for (const builder of system.builders) {
				const places = chain.map((tx) => fixture.deliveries(builder, tx)[0]?.seq ?? -1);
				assert.deepEqual(
					places,
					[...places].sort((a, b) => a - b),
					`${builder.name} got them in another order`,
				);
			}
			await system.nextBlock();
		});
	}
});

describe("/nochecks in a chain", () => {
	it("links behind one another go out at once, reverting or not, and are mined in one block", async () => {
		const actor = await fixture.actor();
		const to = await fixture.placeCode(REVERTS);
		const chain = [actor.sign({ nonce: 0, to }), actor.sign({ nonce: 1 }), actor.sign({ nonce: 2, to })];
		await fixture.submit("/nochecks", ...chain);
		for (const tx of chain) await fixture.waitUntilSent(tx);
		const block = await system.nextBlock();
		const stages = ["REVERTED", "INCLUDED", "REVERTED"];
		for (const [i, tx] of chain.entries()) {
			await fixture.reaches(tx, stages[i] ?? "");
			const receipt = await fixture.receipt(tx);
			assert.deepEqual([receipt?.block, receipt?.ok], [block, stages[i] === "INCLUDED"]);
		}
	});

	it("a simulated link behind one waits until that is mined, and so do those behind it", async () => {
		const actor = await fixture.actor();
		const chain = fixture.chainOf(actor, ["/nochecks", "/fast", "/nochecks"]);
		await fixture.submitAll(chain);
		await fixture.waitUntilSent(at(chain, 0));
		assert.equal(await fixture.pendingNonce(actor), 3);
		await fixture.assertStayBack(chain.slice(1), "behindUnchecked", 1);
		for (const tx of chain.slice(1)) assertNeverSent(tx);
		await fixture.assertGoOn(chain.slice(0, 1));
		await fixture.assertGoOn(chain.slice(1));
	});

	it("a simulated link before one is simulated alone, and the two are mined together", async () => {
		const to = await fixture.placeCode(REVERTS);
		const paths = ["/noreverts", "/nochecks"];
		const chain = await fixture.chainOut(await fixture.actor(), paths, 0, { 1: { to } });
		const block = await system.nextBlock();
		await fixture.reaches(at(chain, 0), "INCLUDED");
		await fixture.reaches(at(chain, 1), "REVERTED");
		assert.equal((await fixture.receipt(at(chain, 1)))?.block, block);
	});
});

describe("/fullprivacy in a chain", () => {
	it("no link behind it goes to a builder that may not have it, until it is mined", async () => {
		const actor = await fixture.actor();
		const [before, hidden, behind, last] = chainOf(actor, 4);
		assert.ok(before && hidden && behind && last);
		await fixture.submit("/fast", before);
		await fixture.submit("/fullprivacy", hidden);
		await fixture.submit("/fast", behind);
		await fixture.submit("/nochecks", last);
		await fixture.waitUntilSent(before);
		for (const tx of [hidden, behind, last]) await fixture.waitUntilSent(tx, { builders: ["vault"] });
		await fixture.passBlock();
		await fixture.fence();
		for (const tx of [hidden, behind, last]) assertNeverSent(tx, [fixture.builder("other")]);
		// A public transaction with the nonce of the first, and one with that of the hidden: what is
		// behind is free.
		for (const nonce of [0, 1]) await fixture.publish(actor.sign({ nonce, value: 5n }));
		await fixture.passBlock();
		for (const tx of [before, hidden]) await fixture.reaches(tx, "DROPPED");
		for (const tx of [behind, last]) await fixture.waitUntilSent(tx);
		assertNeverSent(hidden, [fixture.builder("other")]);
		const block = await system.nextBlock();
		for (const tx of [behind, last]) assert.equal((await fixture.receipt(tx))?.block, block);
	});
});

describe("a chain that is looked at twice in one slot", () => {
	it("a link that went to fewer builders goes to the others once the narrow link is replaced", async () => {
		const actor = await fixture.actor();
		const [hidden, behind] = chainOf(actor, 2);
		assert.ok(hidden && behind);
		await fixture.submit("/fullprivacy", hidden);
		await fixture.submit("/fast", behind);
		await fixture.waitUntilSent(behind, { builders: ["vault"] });
		const open = actor.sign({ nonce: 0, ...BUMPED });
		await fixture.submit("/fast", open);
		for (const tx of [open, behind]) await fixture.waitUntilSent(tx);
		assertNeverSent(hidden, [fixture.builder("other")]);
	});

	it("reports BROADCAST for a link that was sent, though a link before it failed for a moment", async () => {
		const actor = await fixture.actor();
		const to = await fixture.placeCode(gate(errorString("shut")));
		const opening = actor.sign({ nonce: 0, to, data: WORD_ONE });
		const [guarded, last] = [actor.sign({ nonce: 1, to }), actor.sign({ nonce: 2 })];
		await fixture.submit("/fast", opening);
		await fixture.submit("/noreverts", guarded, last);
		for (const tx of [opening, guarded, last]) await fixture.waitUntilSent(tx);
		await fixture.submit("/fast", actor.sign({ nonce: 0, ...BUMPED }));
		await fixture.reaches(guarded, "SIMULATION_FAILED");
		await fixture.reaches(last, "QUEUED");
		const openingAgain = actor.sign({ nonce: 0, to, data: WORD_ONE, ...BUMPED_AGAIN });
		await fixture.submit("/fast", openingAgain);
		for (const tx of [openingAgain, guarded, last]) {
			await fixture.reaches(tx, "BROADCAST");
			for (const builder of system.builders)
				await until("it is live", () => fixture.liveOrders(builder, tx) === 1);
		}
		await fixture.assertGoOn([openingAgain, guarded, last]);
	});
});

describe("the cap on an account", () => {
	it("64 transactions are taken, one more is refused with its scope; a place that is free is taken again", async () => {
		const actor = await fixture.actor();
		const other = await fixture.actor();
		// The first one is missing: nothing of the chain goes out, and all of it is held.
		const chain = Array.from({ length: 64 }, (_, i) => actor.sign({ nonce: i + 1 }));
		await fixture.submit("/fast", ...chain);
		const first = actor.sign({ nonce: 0 });
		const { error } = await system.client.ask("eth_sendRawTransaction", [first.raw], "/fast");
		assert.deepEqual(
			[error?.code, error?.message.startsWith("txpool is full"), error?.data],
			[-32000, true, { reason: "SENDER_FULL", scope: "sender" }],
		);
		assert.equal((await fixture.status(first)).stage, undefined);
		assert.equal(await fixture.pendingNonce(actor), 0);
		const [, second] = chain;
		assert.ok(second);
		await fixture.submit("/fast", second);
		await fixture.submit("/fast", actor.sign({ nonce: 2, ...BUMPED }));
		await fixture.submit("/fast", other.sign());
		await fixture.reaches(second, "REPLACED");
	});
});

describe("a link that is cancelled", () => {
	it("leaves the rest waiting until a new one has its nonce, on whatever path, cheaper than the old one", async () => {
		for (const path of sized(["/maxbackruns"], ["/noreverts", "/maxbackruns"])) {
			const actor = await fixture.actor();
			const [first, gone, ...rest] = await fixture.chainOut(actor, PATHS);
			assert.ok(first && gone, "the first two");
			await fixture.cancel(gone);
			await fixture.assertStayBack(rest, "nonceGap", 2);
			const instead = actor.sign({ nonce: 1, maxFeePerGas: 19n * GWEI });
			await fixture.submit(path, instead);
			await fixture.assertYoung(rest);
			await fixture.assertGoOn([first, instead, ...rest]);
			assert.equal(await fixture.receipt(gone), null);
		}
	});

	it("and replaced on /fullprivacy: the rest goes on to those builders alone that may have it", async () => {
		const actor = await fixture.actor();
		const [gone, ...rest] = await fixture.chainOut(actor, ["/fast", "/fast", "/nochecks"]);
		assert.ok(gone, "the first one");
		await fixture.cancel(gone);
		await fixture.assertWaiting(rest, "nonceGap");
		await fixture.passBlock();
		const instead = actor.sign({ nonce: 0, value: 1n });
		await fixture.submit("/fullprivacy", instead);
		const atOther = () => rest.map((link) => fixture.timesSent(link)[1]);
		const before = atOther();
		await fixture.assertGoOn([instead, ...rest], ["vault"]);
		assert.deepEqual(atOther(), before);
	});

	it("keeps the rest waiting over a restart, unsent; then a public one closes the gap", async () => {
		const actor = await fixture.actor();
		const [first, gone, ...rest] = await fixture.chainOut(actor, PATHS);
		assert.ok(first && gone, "the first two");
		await fixture.cancel(gone);
		await fixture.assertWaiting(rest, "nonceGap");
		await system.restart();
		await fixture.assertStayBack(rest, "nonceGap", 1);
		await fixture.publish(first);
		await fixture.publish(actor.sign({ nonce: 1, value: 5n }));
		await fixture.assertStayBack(rest, "nonceGap", 0);
		await fixture.passBlock();
		await fixture.assertYoung(rest);
		await fixture.assertGoOn(rest);
		assert.equal((await fixture.status(gone)).stage, "CANCELLED");
	});

	it("and is mined all the same takes the rest on behind it", async () => {
		const actor = await fixture.actor();
		const [first, gone, ...rest] = await fixture.chainOut(actor, PATHS);
		assert.ok(first && gone, "the first two");
		await fixture.cancel(gone);
		await fixture.assertWaiting(rest, "nonceGap");
		await fixture.publish(first);
		await fixture.publish(gone);
		await fixture.passBlock();
		await fixture.reaches(gone, "INCLUDED");
		await fixture.assertYoung(rest);
		await fixture.assertGoOn(rest);
	});
});

describe("a link that expires", () => {
	it("leaves the rest waiting, longer than a life; the same bytes again take them on", async () => {
		const actor = await fixture.actor();
		const [gone] = await fixture.chainOut(actor, ["/fast"]);
		assert.ok(gone, "the first one");
		await fixture.passBlock();
		await fixture.waitUntilSent(gone);
		const rest = await fixture.chainOut(actor, ["/fast", "/noreverts", "/nochecks"], 1);
		for (let i = 1; i < LIFE_BLOCKS; i += 1) await fixture.passBlock();
		await fixture.reaches(gone, "EXPIRED");
		await fixture.assertStayBack(rest, "nonceGap", LIFE_BLOCKS + 1);
		await fixture.submit("/maxbackruns", gone);
		await fixture.assertYoung([gone, ...rest.slice(0, 2)]);
		// Its new life is a whole one.
		for (let i = 1; i < LIFE_BLOCKS; i += 1) await fixture.passBlock();
		await fixture.assertGoOn([gone, ...rest]);
	});
});

describe("a link that fails now", () => {
	/** Opens or shuts a gate for those that pass it. */
	async function turn(to: string, data: string): Promise<void> {
		const tx = (await fixture.actor()).sign({ to, data });
		await fixture.publish(tx);
		await fixture.passBlock();
	}

	/** A chain whose second link passes while the gate at `to` is open. */
	async function guarded(actor: Actor, to: string): Promise<Link[]> {
		await turn(to, WORD_ONE);
		return fixture.chainOut(actor, ["/fast", "/noreverts", "/maxbackruns", "/nochecks"], 0, { 1: { to } });
	}

	it("on /noreverts leaves the rest waiting behind it, until it passes again", async () => {
		const actor = await fixture.actor();
		const to = await fixture.placeCode(gate(errorString("shut")));
		const chain = await guarded(actor, to);
		await turn(to, WORD_ZERO);
		await fixture.reaches(at(chain, 1), "SIMULATION_FAILED");
		await fixture.assertStayBack(chain.slice(2), "behindHeld", 1);
		await turn(to, WORD_ONE);
		await fixture.assertGoOn(chain);
	});

	it("for good leaves the rest waiting for its nonce, though they were sent as long as it was", async () => {
		const actor = await fixture.actor();
		const to = await fixture.placeCode(gate(errorString("shut")));
		const [first, gone, ...rest] = await guarded(actor, to);
		assert.ok(first && gone, "the first two");
		await fixture.publish(first);
		await turn(to, WORD_ZERO);
		await fixture.reaches(first, "INCLUDED");
		await fixture.assertWaiting(rest, "behindHeld");
		while ((await fixture.status(gone)).stage !== "EXPIRED") await fixture.passBlock();
		await fixture.assertStayBack(rest, "nonceGap", LIFE_BLOCKS + 1);
		const instead = actor.sign({ nonce: 1, value: 1n });
		await fixture.submit("/fast", instead);
		await fixture.assertGoOn([instead, ...rest]);
	});

	it("because it was replaced leaves the rest waiting, until it is replaced again", async () => {
		const actor = await fixture.actor();
		const [first, second, ...rest] = await fixture.chainOut(actor, PATHS);
		assert.ok(first && second, "the first two");
		const failing = actor.sign({ nonce: 1, to: await fixture.placeCode(REVERTS), ...BUMPED });
		await fixture.submit("/fast", failing);
		await fixture.reaches(second, "REPLACED");
		await fixture.reaches(failing, "SIMULATION_FAILED");
		await fixture.assertStayBack(rest, "behindHeld", 1);
		const instead = actor.sign({ nonce: 1, ...BUMPED_AGAIN });
		await fixture.submit("/noreverts", instead);
		await fixture.assertGoOn([first, instead, ...rest]);
	});
});

describe("a link whose nonce was used publicly", () => {
	it("is DROPPED, and the rest goes on at once; a reorganisation brings it back before them", async () => {
		const actor = await fixture.actor();
		const [gone, ...rest] = await fixture.chainOut(actor, ["/fast", "/noreverts", "/nochecks"]);
		assert.ok(gone, "the first one");
		await fixture.publish(actor.sign({ nonce: 0, value: 5n }));
		await fixture.passBlock();
		await fixture.reaches(gone, "DROPPED");
		for (const link of rest) await fixture.waitUntilSent(link);
		await system.chain.rpc("anvil_reorg", [1, []]);
		await fixture.event(gone, "reorged");
		await fixture.assertGoOn([gone, ...rest]);
	});
});

describe("a /nochecks link", () => {
	it("that closes a gap: the simulated ones behind it wait until it is mined, and all behind those", async () => {
		const actor = await fixture.actor();
		const [gone, ...rest] = await fixture.chainOut(actor, ["/fast", "/noreverts", "/nochecks"]);
		assert.ok(gone, "the first one");
		await fixture.cancel(gone);
		await fixture.assertWaiting(rest, "nonceGap");
		const [instead] = fixture.chainOf(actor, ["/nochecks"], 0, { 0: { value: 1n } });
		assert.ok(instead, "another one");
		await fixture.submitAll([instead]);
		await fixture.waitUntilSent(instead);
		await fixture.assertStayBack(rest, "behindUnchecked", 1);
		await fixture.assertGoOn([instead]);
		await fixture.assertYoung(rest);
		await fixture.assertGoOn(rest);
	});

	it("in the place of a simulated one holds back what went out behind that; the other way round it frees it", async () => {
		const actor = await fixture.actor();
		const [, ...rest] = await fixture.chainOut(actor, ["/fast", "/fast", "/noreverts"]);
		await fixture.submit("/nochecks", actor.sign({ nonce: 0, ...BUMPED }));
		await fixture.assertStayBack(rest, "behindUnchecked", 1);
		const instead = actor.sign({ nonce: 0, ...BUMPED_AGAIN });
		await fixture.submit("/maxbackruns", instead);
		await fixture.assertGoOn([instead, ...rest]);
	});
});
