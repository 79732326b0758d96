// Chains of one account's nonces, with gaps and with links that came on different paths: to which builders each link is
// sent, when and in which order. And the cap on a chain. What becomes of the rest when a link falls out is in
// chainFallout.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { errorString, gate, REVERTS } from "../../support/contracts.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";
import { CancelFixture } from "../../support/userFixtures.ts";

const LIFE_BLOCKS = 4;
const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const BUMPED_AGAIN = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI };
const WORD_ONE = `0x${"1".padStart(64, "0")}`;

let system: TestSystem;
let fixture: CancelFixture;

before(async () => {
	system = await startSystem({
		builders: [{ name: "vault", fullPrivacy: true }, { name: "other" }],
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
	});
	fixture = new CancelFixture(system);
});
after(() => system.stop());

function chainOf(actor: Actor, length: number): Signed[] {
	return Array.from({ length }, (_, nonce) => actor.sign({ nonce }));
}

function assertNeverSent(tx: Signed, builders = system.builders): void {
	for (const builder of builders) assert.deepEqual(fixture.deliveries(builder, tx), [], builder.name);
}

describe("a nonce gap", () => {
	it("makes it wait as QUEUED, longer than a life; its life begins when the gap closes", async () => {
		const actor = await fixture.actor();
		const [first, second, third] = [0, 1, 2].map((nonce) => actor.sign({ nonce }));
		assert.ok(first && second && third);
		await fixture.submit("/fast", third, second);
		for (const tx of [second, third]) {
			const { status, rpc_timestamp, transaction, stage } = await fixture.reaches(tx, "QUEUED");
			assert.deepEqual([status, rpc_timestamp, transaction.from, stage], ["UNKNOWN", null, "", "QUEUED"]);
		}
		assert.equal(await fixture.pendingNonce(actor), 0);
		for (let i = 0; i <= LIFE_BLOCKS; i += 1) await fixture.passBlock();
		await fixture.fence();
		for (const tx of [second, third]) {
			assertNeverSent(tx);
			assert.equal((await fixture.status(tx)).stage, "QUEUED");
		}
		await fixture.submit("/fast", first);
		assert.equal(await fixture.pendingNonce(actor), 3);
		const begins = (await fixture.head()) + 1;
		for (let i = 0; i < LIFE_BLOCKS; i += 1) {
			for (const tx of [first, second, third]) await fixture.sent(tx, { block: begins + i });
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
			const [first, ...rest] = chainOf(await fixture.actor(), 16);
			assert.ok(first);
			await fixture.submit(path, ...rest);
			for (const tx of rest) await fixture.reaches(tx, "QUEUED");
			await fixture.submit(path, first);
			const chain = [first, ...rest];
			for (const tx of chain) await fixture.sent(tx);
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
		const to = await fixture.place(REVERTS);
		const chain = [actor.sign({ nonce: 0, to }), actor.sign({ nonce: 1 }), actor.sign({ nonce: 2, to })];
		await fixture.submit("/nochecks", ...chain);
		for (const tx of chain) await fixture.sent(tx);
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
		const [unchecked, simulated, behind] = chainOf(actor, 3);
		assert.ok(unchecked && simulated && behind);
		await fixture.submit("/nochecks", unchecked);
		await fixture.submit("/fast", simulated);
		await fixture.submit("/nochecks", behind);
		await fixture.sent(unchecked);
		for (const tx of [simulated, behind]) {
			const queued = await fixture.event(tx, "queued");
			assert.equal(queued.reason, "behindUnchecked");
			assert.equal((await fixture.status(tx)).stage, "QUEUED");
		}
		assert.equal(await fixture.pendingNonce(actor), 3);
		await fixture.passBlock();
		await fixture.fence();
		for (const tx of [simulated, behind]) assertNeverSent(tx);
		await system.nextBlock();
		assert.equal((await fixture.receipt(unchecked))?.ok, true);
		for (const tx of [simulated, behind]) await fixture.sent(tx);
		const block = await system.nextBlock();
		for (const tx of [simulated, behind]) assert.equal((await fixture.receipt(tx))?.block, block);
	});

	it("a simulated link before one is simulated alone, and the two are mined together", async () => {
		const actor = await fixture.actor();
		const checked = actor.sign({ nonce: 0 });
		const unchecked = actor.sign({ nonce: 1, to: await fixture.place(REVERTS) });
		await fixture.submit("/noreverts", checked);
		await fixture.submit("/nochecks", unchecked);
		for (const tx of [checked, unchecked]) await fixture.sent(tx);
		const block = await system.nextBlock();
		await fixture.reaches(checked, "INCLUDED");
		await fixture.reaches(unchecked, "REVERTED");
		assert.deepEqual((await fixture.receipt(unchecked))?.block, block);
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
		await fixture.sent(before);
		for (const tx of [hidden, behind, last]) await fixture.sent(tx, { builders: ["vault"] });
		await fixture.passBlock();
		await fixture.fence();
		for (const tx of [hidden, behind, last]) assertNeverSent(tx, [fixture.builder("other")]);
		// A public transaction with the nonce of the first, and one with that of the hidden: what is behind is free.
		const [open0, open1] = [0, 1].map((nonce) => actor.sign({ nonce, value: 5n }));
		assert.ok(open0 && open1);
		await fixture.publish(open0);
		await fixture.publish(open1);
		await fixture.passBlock();
		for (const tx of [before, hidden]) await fixture.reaches(tx, "DROPPED");
		for (const tx of [behind, last]) await fixture.sent(tx);
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
		await fixture.sent(behind, { builders: ["vault"] });
		const open = actor.sign({ nonce: 0, ...BUMPED });
		await fixture.submit("/fast", open);
		for (const tx of [open, behind]) await fixture.sent(tx);
		assertNeverSent(hidden, [fixture.builder("other")]);
	});

	it("tells BROADCAST of a link that is out, though a link before it failed for a moment", async () => {
		const actor = await fixture.actor();
		const to = await fixture.place(gate(errorString("shut")));
		const opening = actor.sign({ nonce: 0, to, data: WORD_ONE });
		const guarded = actor.sign({ nonce: 1, to });
		const last = actor.sign({ nonce: 2 });
		await fixture.submit("/fast", opening);
		await fixture.submit("/noreverts", guarded, last);
		for (const tx of [opening, guarded, last]) await fixture.sent(tx);
		await fixture.submit("/fast", actor.sign({ nonce: 0, ...BUMPED }));
		await fixture.reaches(guarded, "SIMULATION_FAILED");
		await fixture.reaches(last, "QUEUED");
		const openingAgain = actor.sign({ nonce: 0, to, data: WORD_ONE, ...BUMPED_AGAIN });
		await fixture.submit("/fast", openingAgain);
		for (const tx of [openingAgain, guarded, last]) {
			await fixture.reaches(tx, "BROADCAST");
			for (const builder of system.builders) await until("it is live", () => fixture.live(builder, tx) === 1);
		}
		const block = await system.nextBlock();
		for (const tx of [openingAgain, guarded, last]) {
			await fixture.reaches(tx, "INCLUDED");
			assert.equal((await fixture.receipt(tx))?.block, block);
		}
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
