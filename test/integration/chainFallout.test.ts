// Tests a chain of nonces one of whose links is cancelled, expires, is replaced, fails or is overtaken: the rest
// waits, unsent and without ageing, says why, and goes on when the gap closes, whatever closes it.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ChainScene, type Link } from "../support/chainScene.ts";
import { type Actor, GWEI } from "../support/relayScene.ts";
import { errorString, gate, REVERTS } from "../support/simulationContracts.ts";
import { startSystem, type TestSystem } from "../support/startSystem.ts";

const LIFE_BLOCKS = 4;
const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const WORD_ONE = `0x${"1".padStart(64, "0")}`;
const WORD_ZERO = `0x${"0".padStart(64, "0")}`;

let system: TestSystem;
let scene: ChainScene;

before(async () => {
	system = await startSystem({
		builders: [{ name: "vault", fullPrivacy: true }, { name: "other" }],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	scene = new ChainScene(system);
});
after(() => system.stop());

/** The link at `i`, which is there. */
function at(chain: readonly Link[], i: number): Link {
	const link = chain[i];
	if (link === undefined) throw new RangeError(`no link ${i}`);
	return link;
}

const PATHS = ["/fast", "/noreverts", "/maxbackruns", "/fast"];

describe("a link that is cancelled", () => {
	for (const path of ["/fast", "/noreverts", "/maxbackruns"]) {
		it(`leaves the rest waiting until a new one on ${path} has its nonce, cheaper than the old one`, async () => {
			const actor = await scene.actor();
			const [first, gone, ...rest] = await scene.chainOut(actor, PATHS);
			assert.ok(first && gone, "the first two");
			await scene.cancel(gone);
			await scene.assertStayBack(rest, "nonceGap", 2);
			const instead = actor.sign({ nonce: 1, maxFeePerGas: 19n * GWEI });
			await scene.submit(path, instead);
			await scene.assertYoung(rest);
			await scene.assertGoOn([first, instead, ...rest]);
			assert.equal(await scene.receipt(gone), null);
		});
	}

	it("softly leaves the rest waiting in the same way", async () => {
		const actor = await scene.actor();
		const paths = ["/noreverts", "/noreverts?softcancel=1", "/fullprivacy", "/noreverts"];
		const chain = scene.chainOf(actor, paths);
		await scene.submitAll(chain);
		for (const link of chain) await scene.sent(link, { builders: ["vault"] });
		await scene.submit("/noreverts", actor.sign({ nonce: 1, to: actor.address }));
		await scene.reaches(at(chain, 1), "CANCELLED");
		await scene.assertStayBack(chain.slice(2), "nonceGap", 2);
		const instead = actor.sign({ nonce: 1, value: 1n });
		await scene.submit("/fast", instead);
		await scene.assertYoung(chain.slice(2));
		await scene.assertGoOn([at(chain, 0), instead, ...chain.slice(2)], ["vault"]);
	});

	it("and replaced on /fullprivacy: the rest goes on to those builders alone that may have it", async () => {
		const actor = await scene.actor();
		const [gone, ...rest] = await scene.chainOut(actor, ["/fast", "/fast", "/nochecks"]);
		assert.ok(gone, "the first one");
		await scene.cancel(gone);
		await scene.assertWaiting(rest, "nonceGap");
		await scene.passBlock();
		const instead = actor.sign({ nonce: 0, value: 1n });
		await scene.submit("/fullprivacy", instead);
		const atOther = () => scene.timesSent(rest).map(([, times]) => times);
		const before = atOther();
		await scene.assertGoOn([instead, ...rest], ["vault"]);
		assert.deepEqual(atOther(), before);
	});

	it("and has another one in its place within the slot: the rest is BROADCAST again for the same block", async () => {
		const actor = await scene.actor();
		const [first, gone, ...rest] = await scene.chainOut(actor, PATHS);
		assert.ok(first && gone, "the first two");
		await scene.cancel(gone);
		await scene.assertWaiting(rest, "nonceGap");
		const instead = actor.sign({ nonce: 1, value: 1n });
		await scene.submit("/fast", instead);
		for (const link of rest) await scene.reaches(link, "BROADCAST");
		await scene.assertGoOn([first, instead, ...rest]);
	});

	it("keeps the rest waiting over a restart, unsent; then a public one closes the gap", async () => {
		const actor = await scene.actor();
		const [first, gone, ...rest] = await scene.chainOut(actor, PATHS);
		assert.ok(first && gone, "the first two");
		await scene.cancel(gone);
		await scene.assertWaiting(rest, "nonceGap");
		await system.restart();
		await scene.assertStayBack(rest, "nonceGap", 1);
		await scene.publish(first);
		await scene.publish(actor.sign({ nonce: 1, value: 5n }));
		await scene.assertStayBack(rest, "nonceGap", 0);
		await scene.passBlock();
		await scene.assertYoung(rest);
		await scene.assertGoOn(rest);
		assert.equal((await scene.status(gone)).stage, "CANCELLED");
	});

	it("and is mined all the same takes the rest on behind it", async () => {
		const actor = await scene.actor();
		const [first, gone, ...rest] = await scene.chainOut(actor, PATHS);
		assert.ok(first && gone, "the first two");
		await scene.cancel(gone);
		await scene.assertWaiting(rest, "nonceGap");
		await scene.publish(first);
		await scene.publish(gone);
		await scene.passBlock();
		await scene.reaches(gone, "INCLUDED");
		await scene.assertYoung(rest);
		await scene.assertGoOn(rest);
	});

	it("two of them: the rest goes on to the second gap when the first one closes", async () => {
		const actor = await scene.actor();
		const chain = await scene.chainOut(actor, [...PATHS, "/fast"]);
		const [first, third, fifth] = [at(chain, 0), at(chain, 2), at(chain, 4)];
		await scene.cancel(at(chain, 1));
		await scene.cancel(at(chain, 3));
		await scene.assertStayBack([third, fifth], "nonceGap", 1);
		const instead = actor.sign({ nonce: 1, value: 1n });
		await scene.submit("/fast", instead);
		await scene.sent(third);
		await scene.assertStayBack([fifth], "nonceGap", 0);
		await scene.assertGoOn([first, instead, third]);
		const last = actor.sign({ nonce: 3, value: 1n });
		await scene.submit("/fast", last);
		await scene.assertGoOn([last, fifth]);
	});
});

describe("a link that expires", () => {
	it("leaves the rest waiting, longer than a life; the same bytes again take them on", async () => {
		const actor = await scene.actor();
		const [gone] = await scene.chainOut(actor, ["/fast"]);
		assert.ok(gone, "the first one");
		await scene.passBlock();
		await scene.sent(gone);
		const rest = await scene.chainOut(actor, ["/fast", "/noreverts", "/nochecks"], 1);
		for (let i = 1; i < LIFE_BLOCKS; i += 1) await scene.passBlock();
		await scene.reaches(gone, "EXPIRED");
		await scene.assertStayBack(rest, "nonceGap", LIFE_BLOCKS + 1);
		await scene.submit("/maxbackruns", gone);
		await scene.assertYoung([gone, ...rest.slice(0, 2)]);
		// Its new life is a whole one.
		for (let i = 1; i < LIFE_BLOCKS; i += 1) await scene.passBlock();
		await scene.assertGoOn([gone, ...rest]);
	});
});

describe("a link that fails now", () => {
	/** Opens or shuts a gate for those that pass it. */
	async function turn(to: string, data: string): Promise<void> {
		const tx = (await scene.actor()).sign({ to, data });
		await scene.publish(tx);
		await scene.passBlock();
	}

	/** A chain whose second link passes while the gate at `to` is open. */
	async function guarded(actor: Actor, to: string): Promise<Link[]> {
		await turn(to, WORD_ONE);
		return scene.chainOut(actor, ["/fast", "/noreverts", "/maxbackruns", "/nochecks"], 0, { 1: { to } });
	}

	it("on /noreverts leaves the rest waiting behind it, until it passes again", async () => {
		const actor = await scene.actor();
		const to = await scene.place(gate(errorString("shut")));
		const chain = await guarded(actor, to);
		await turn(to, WORD_ZERO);
		await scene.reaches(at(chain, 1), "SIMULATION_FAILED");
		await scene.assertStayBack(chain.slice(2), "behindHeld", 1);
		await turn(to, WORD_ONE);
		await scene.assertGoOn(chain);
	});

	it("for good leaves the rest waiting for its nonce, though they were out as long as it was", async () => {
		const actor = await scene.actor();
		const to = await scene.place(gate(errorString("shut")));
		const [first, gone, ...rest] = await guarded(actor, to);
		assert.ok(first && gone, "the first two");
		await scene.publish(first);
		await turn(to, WORD_ZERO);
		await scene.reaches(first, "INCLUDED");
		await scene.assertWaiting(rest, "behindHeld");
		while ((await scene.status(gone)).stage !== "EXPIRED") await scene.passBlock();
		await scene.assertStayBack(rest, "nonceGap", LIFE_BLOCKS + 1);
		const instead = actor.sign({ nonce: 1, value: 1n });
		await scene.submit("/fast", instead);
		await scene.assertGoOn([instead, ...rest]);
	});

	it("because it was replaced leaves the rest waiting, until it is replaced again", async () => {
		const actor = await scene.actor();
		const [first, second, ...rest] = await scene.chainOut(actor, PATHS);
		assert.ok(first && second, "the first two");
		const failing = actor.sign({ nonce: 1, to: await scene.place(REVERTS), ...BUMPED });
		await scene.submit("/fast", failing);
		await scene.reaches(second, "REPLACED");
		await scene.reaches(failing, "SIMULATION_FAILED");
		await scene.assertStayBack(rest, "behindHeld", 1);
		const instead = actor.sign({ nonce: 1, maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI });
		await scene.submit("/noreverts", instead);
		await scene.assertGoOn([first, instead, ...rest]);
	});

	it("and is cancelled leaves a gap in its place", async () => {
		const actor = await scene.actor();
		const options = { 0: { to: await scene.place(REVERTS) } };
		const [held, ...rest] = scene.chainOf(actor, ["/fast", "/nochecks", "/nochecks"], 0, options);
		assert.ok(held, "the first one");
		await scene.submitAll([held, ...rest]);
		await scene.reaches(held, "SIMULATION_FAILED");
		await scene.assertStayBack(rest, "behindHeld", 1);
		await scene.cancel(held);
		await scene.assertStayBack(rest, "nonceGap", 1);
		const instead = actor.sign({ nonce: 0, value: 1n });
		await scene.submit("/nochecks", instead);
		await scene.assertGoOn([instead, ...rest]);
	});
});

describe("a link whose nonce was used publicly", () => {
	it("is DROPPED, and the rest goes on at once; a reorganisation brings it back before them", async () => {
		const actor = await scene.actor();
		const [gone, ...rest] = await scene.chainOut(actor, ["/fast", "/noreverts", "/nochecks"]);
		assert.ok(gone, "the first one");
		await scene.publish(actor.sign({ nonce: 0, value: 5n }));
		await scene.passBlock();
		await scene.reaches(gone, "DROPPED");
		for (const link of rest) await scene.sent(link);
		await system.chain.rpc("anvil_reorg", [1, []]);
		await scene.event(gone, "reorged");
		await scene.assertGoOn([gone, ...rest]);
	});
});

describe("a /nochecks link", () => {
	it("that closes a gap: the simulated ones behind it wait until it is mined, and all behind those", async () => {
		const actor = await scene.actor();
		const [gone, ...rest] = await scene.chainOut(actor, ["/fast", "/noreverts", "/nochecks"]);
		assert.ok(gone, "the first one");
		await scene.cancel(gone);
		await scene.assertWaiting(rest, "nonceGap");
		const [instead] = scene.chainOf(actor, ["/nochecks"], 0, { 0: { value: 1n } });
		assert.ok(instead, "another one");
		await scene.submitAll([instead]);
		await scene.sent(instead);
		await scene.assertStayBack(rest, "behindUnchecked", 1);
		await scene.assertGoOn([instead]);
		await scene.assertYoung(rest);
		await scene.assertGoOn(rest);
	});

	it("that falls out: one of /fast in its place takes on those that need wait for no other", async () => {
		const actor = await scene.actor();
		const chain = scene.chainOf(actor, ["/nochecks", "/nochecks", "/fast"]);
		await scene.submitAll(chain);
		const [gone, second, last] = chain;
		assert.ok(gone && second && last, "three of them");
		await scene.sent(second);
		await scene.assertWaiting([last], "behindUnchecked");
		await scene.cancel(gone);
		await scene.assertStayBack([second, last], "nonceGap", 1);
		const instead = actor.sign({ nonce: 0, value: 1n });
		await scene.submit("/fast", instead);
		await scene.sent(second);
		await scene.assertWaiting([last], "behindUnchecked");
		await scene.assertGoOn([instead, second]);
		await scene.assertGoOn([last]);
	});

	it("in the place of a simulated one holds back what went out behind that; the other way round it frees it", async () => {
		const actor = await scene.actor();
		const [, ...rest] = await scene.chainOut(actor, ["/fast", "/fast", "/noreverts"]);
		await scene.submit("/nochecks", actor.sign({ nonce: 0, ...BUMPED }));
		await scene.assertStayBack(rest, "behindUnchecked", 1);
		const instead = actor.sign({ nonce: 0, maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI });
		await scene.submit("/maxbackruns", instead);
		await scene.assertGoOn([instead, ...rest]);
	});
});
