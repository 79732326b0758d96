// Tests a chain of nonces one of whose links is cancelled, expires, is replaced, fails or is overtaken: the rest
// waits, unsent and without ageing, says why, and goes on when the gap closes, whatever closes it.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { errorString, gate, REVERTS } from "../../support/contracts.ts";
import { type Actor, GWEI } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { ChainFixture, type Link } from "../../support/userFixtures.ts";

const LIFE_BLOCKS = 4;
const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const WORD_ONE = `0x${"1".padStart(64, "0")}`;
const WORD_ZERO = `0x${"0".padStart(64, "0")}`;

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

/** The link at `i`, which is there. */
function at(chain: readonly Link[], i: number): Link {
	const link = chain[i];
	if (link === undefined) throw new RangeError(`no link ${i}`);
	return link;
}

const PATHS = ["/fast", "/noreverts", "/maxbackruns", "/fast"];

describe("a link that is cancelled", () => {
	it("leaves the rest waiting until a new one has its nonce, on whatever path, cheaper than the old one", async () => {
		for (const path of ["/noreverts", "/maxbackruns"]) {
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

	it("softly leaves the rest waiting in the same way", async () => {
		const actor = await fixture.actor();
		const paths = ["/noreverts", "/noreverts?softcancel=1", "/fullprivacy", "/noreverts"];
		const chain = fixture.chainOf(actor, paths);
		await fixture.submitAll(chain);
		for (const link of chain) await fixture.sent(link, { builders: ["vault"] });
		await fixture.submit("/noreverts", actor.sign({ nonce: 1, to: actor.address }));
		await fixture.reaches(at(chain, 1), "CANCELLED");
		await fixture.assertStayBack(chain.slice(2), "nonceGap", 2);
		const instead = actor.sign({ nonce: 1, value: 1n });
		await fixture.submit("/fast", instead);
		await fixture.assertYoung(chain.slice(2));
		await fixture.assertGoOn([at(chain, 0), instead, ...chain.slice(2)], ["vault"]);
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
		await fixture.sent(gone);
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
		const to = await fixture.place(gate(errorString("shut")));
		const chain = await guarded(actor, to);
		await turn(to, WORD_ZERO);
		await fixture.reaches(at(chain, 1), "SIMULATION_FAILED");
		await fixture.assertStayBack(chain.slice(2), "behindHeld", 1);
		await turn(to, WORD_ONE);
		await fixture.assertGoOn(chain);
	});

	it("for good leaves the rest waiting for its nonce, though they were out as long as it was", async () => {
		const actor = await fixture.actor();
		const to = await fixture.place(gate(errorString("shut")));
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
		const failing = actor.sign({ nonce: 1, to: await fixture.place(REVERTS), ...BUMPED });
		await fixture.submit("/fast", failing);
		await fixture.reaches(second, "REPLACED");
		await fixture.reaches(failing, "SIMULATION_FAILED");
		await fixture.assertStayBack(rest, "behindHeld", 1);
		const instead = actor.sign({ nonce: 1, maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI });
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
		for (const link of rest) await fixture.sent(link);
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
		await fixture.sent(instead);
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
		const instead = actor.sign({ nonce: 0, maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI });
		await fixture.submit("/maxbackruns", instead);
		await fixture.assertGoOn([instead, ...rest]);
	});
});
