// Tests chains of one account's nonces whose links came on different paths: to which builders each link is sent, when
// and in which order. And the cap on a chain.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Actor, GWEI, RelayScene, type Signed } from "../support/relayScene.ts";
import { errorString, gate, REVERTS } from "../support/simulationContracts.ts";
import { startSystem, type TestSystem } from "../support/startSystem.ts";
import { until } from "../support/until.ts";

const BUMPED = { maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const BUMPED_AGAIN = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 3n * GWEI };
const WORD_ONE = `0x${"1".padStart(64, "0")}`;

let system: TestSystem;
let scene: RelayScene;

before(async () => {
	system = await startSystem({ builders: [{ name: "vault", fullPrivacy: true }, { name: "other" }] });
	scene = new RelayScene(system);
});
after(() => system.stop());

function chainOf(actor: Actor, length: number): Signed[] {
	return Array.from({ length }, (_, nonce) => actor.sign({ nonce }));
}

function assertNeverSent(tx: Signed, builders = system.builders): void {
	for (const builder of builders) assert.deepEqual(scene.deliveries(builder, tx), [], builder.name);
}

/** A transaction of a stranger's that every builder has: what was to be sent before it is there too. */
async function fence(): Promise<void> {
	const tx = (await scene.actor()).sign();
	await scene.submit("/fast", tx);
	await scene.sent(tx);
}

describe("the order on the wire", () => {
	for (const path of ["/fast", "/nochecks"]) {
		it(`a chain on ${path} reaches each builder in the order of its nonces`, async () => {
			for (let round = 0; round < 3; round += 1) {
				const [first, ...rest] = chainOf(await scene.actor(), 16);
				assert.ok(first);
				await scene.submit(path, ...rest);
				for (const tx of rest) await scene.reaches(tx, "QUEUED");
				await scene.submit(path, first);
				const chain = [first, ...rest];
				for (const tx of chain) await scene.sent(tx);
				for (const builder of system.builders) {
					const places = chain.map((tx) => scene.deliveries(builder, tx)[0]?.seq ?? -1);
					assert.deepEqual(
						places,
						[...places].sort((a, b) => a - b),
						`${builder.name} got them in another order`,
					);
				}
				await system.nextBlock();
			}
		});
	}
});

describe("/nochecks in a chain", () => {
	it("links behind one another go out at once, reverting or not, and are mined in one block", async () => {
		const actor = await scene.actor();
		const to = await scene.place(REVERTS);
		const chain = [actor.sign({ nonce: 0, to }), actor.sign({ nonce: 1 }), actor.sign({ nonce: 2, to })];
		await scene.submit("/nochecks", ...chain);
		for (const tx of chain) await scene.sent(tx);
		const block = await system.nextBlock();
		const stages = ["REVERTED", "INCLUDED", "REVERTED"];
		for (const [i, tx] of chain.entries()) {
			await scene.reaches(tx, stages[i] ?? "");
			const receipt = await scene.receipt(tx);
			assert.deepEqual([receipt?.block, receipt?.ok], [block, stages[i] === "INCLUDED"]);
		}
	});

	it("a simulated link behind one waits until that is mined, and so do those behind it", async () => {
		const actor = await scene.actor();
		const [unchecked, simulated, behind] = chainOf(actor, 3);
		assert.ok(unchecked && simulated && behind);
		await scene.submit("/nochecks", unchecked);
		await scene.submit("/fast", simulated);
		await scene.submit("/nochecks", behind);
		await scene.sent(unchecked);
		for (const tx of [simulated, behind]) {
			const queued = await scene.event(tx, "queued");
			assert.equal(queued.reason, "behindUnchecked");
			assert.equal((await scene.status(tx)).stage, "QUEUED");
		}
		assert.equal(await scene.pendingNonce(actor), 3);
		await scene.passBlock();
		await fence();
		for (const tx of [simulated, behind]) assertNeverSent(tx);
		await system.nextBlock();
		assert.equal((await scene.receipt(unchecked))?.ok, true);
		for (const tx of [simulated, behind]) await scene.sent(tx);
		const block = await system.nextBlock();
		for (const tx of [simulated, behind]) assert.equal((await scene.receipt(tx))?.block, block);
	});

	it("a simulated link before one is simulated alone, and the two are mined together", async () => {
		const actor = await scene.actor();
		const checked = actor.sign({ nonce: 0 });
		const unchecked = actor.sign({ nonce: 1, to: await scene.place(REVERTS) });
		await scene.submit("/noreverts", checked);
		await scene.submit("/nochecks", unchecked);
		for (const tx of [checked, unchecked]) await scene.sent(tx);
		const block = await system.nextBlock();
		await scene.reaches(checked, "INCLUDED");
		await scene.reaches(unchecked, "REVERTED");
		assert.deepEqual((await scene.receipt(unchecked))?.block, block);
	});
});

describe("/fullprivacy in a chain", () => {
	it("no link behind it goes to a builder that may not have it, until it is mined", async () => {
		const actor = await scene.actor();
		const [before, hidden, behind, last] = chainOf(actor, 4);
		assert.ok(before && hidden && behind && last);
		await scene.submit("/fast", before);
		await scene.submit("/fullprivacy", hidden);
		await scene.submit("/fast", behind);
		await scene.submit("/nochecks", last);
		await scene.sent(before);
		for (const tx of [hidden, behind, last]) await scene.sent(tx, { builders: ["vault"] });
		await scene.passBlock();
		await fence();
		for (const tx of [hidden, behind, last]) assertNeverSent(tx, [scene.builder("other")]);
		// A public transaction with the nonce of the first, and one with that of the hidden: what is behind is free.
		const [open0, open1] = [0, 1].map((nonce) => actor.sign({ nonce, value: 5n }));
		assert.ok(open0 && open1);
		await scene.publish(open0);
		await scene.publish(open1);
		await scene.passBlock();
		for (const tx of [before, hidden]) await scene.reaches(tx, "DROPPED");
		for (const tx of [behind, last]) await scene.sent(tx);
		assertNeverSent(hidden, [scene.builder("other")]);
		const block = await system.nextBlock();
		for (const tx of [behind, last]) assert.equal((await scene.receipt(tx))?.block, block);
	});
});

describe("a chain that is looked at twice in one slot", () => {
	it("a link that went to fewer builders goes to the others once the narrow link is replaced", async () => {
		const actor = await scene.actor();
		const [hidden, behind] = chainOf(actor, 2);
		assert.ok(hidden && behind);
		await scene.submit("/fullprivacy", hidden);
		await scene.submit("/fast", behind);
		await scene.sent(behind, { builders: ["vault"] });
		const open = actor.sign({ nonce: 0, ...BUMPED });
		await scene.submit("/fast", open);
		for (const tx of [open, behind]) await scene.sent(tx);
		assertNeverSent(hidden, [scene.builder("other")]);
	});

	it("tells BROADCAST of a link that is out, though a link before it failed for a moment", async () => {
		const actor = await scene.actor();
		const to = await scene.place(gate(errorString("shut")));
		const opening = actor.sign({ nonce: 0, to, data: WORD_ONE });
		const guarded = actor.sign({ nonce: 1, to });
		const last = actor.sign({ nonce: 2 });
		await scene.submit("/fast", opening);
		await scene.submit("/noreverts", guarded, last);
		for (const tx of [opening, guarded, last]) await scene.sent(tx);
		await scene.submit("/fast", actor.sign({ nonce: 0, ...BUMPED }));
		await scene.reaches(guarded, "SIMULATION_FAILED");
		await scene.reaches(last, "QUEUED");
		const openingAgain = actor.sign({ nonce: 0, to, data: WORD_ONE, ...BUMPED_AGAIN });
		await scene.submit("/fast", openingAgain);
		for (const tx of [openingAgain, guarded, last]) {
			await scene.reaches(tx, "BROADCAST");
			for (const builder of system.builders) await until("it is live", () => scene.live(builder, tx) === 1);
		}
		const block = await system.nextBlock();
		for (const tx of [openingAgain, guarded, last]) {
			await scene.reaches(tx, "INCLUDED");
			assert.equal((await scene.receipt(tx))?.block, block);
		}
	});
});

describe("the cap on an account", () => {
	it("64 transactions are taken, one more is refused with its scope; a place that is free is taken again", async () => {
		const actor = await scene.actor();
		const other = await scene.actor();
		// The first one is missing: nothing of the chain goes out, and all of it is held.
		const chain = Array.from({ length: 64 }, (_, i) => actor.sign({ nonce: i + 1 }));
		await scene.submit("/fast", ...chain);
		const first = actor.sign({ nonce: 0 });
		const { error } = await system.client.ask("eth_sendRawTransaction", [first.raw], "/fast");
		assert.deepEqual(
			[error?.code, error?.message.startsWith("txpool is full"), error?.data],
			[-32000, true, { reason: "SENDER_FULL", scope: "sender" }],
		);
		assert.equal((await scene.status(first)).stage, undefined);
		assert.equal(await scene.pendingNonce(actor), 0);
		const [, second] = chain;
		assert.ok(second);
		await scene.submit("/fast", second);
		await scene.submit("/fast", actor.sign({ nonce: 2, ...BUMPED }));
		await scene.submit("/fast", other.sign());
		await scene.reaches(second, "REPLACED");
	});
});
