// Tests following a real node's chain by polling and by subscription: blocks, catching up, reorganisations, rollbacks
// and gaps.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { type HeadFixture, startHeadFixture } from "../../support/headFixture.ts";
import { until } from "../../support/until.ts";

for (const road of ["polling", "subscription"] as const) {
	describe(`heads by ${road}`, () => {
		let chain: DevChain;
		let fixture: HeadFixture;
		const ask = (method: string, params: readonly unknown[]) => chain.rpc(method, params);
		const mine = (count: number) => chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);
		const start = async (limits?: { kept: number; missed: number }) => {
			const options =
				road === "polling" ? {} : { wsUrl: chain.wsUrl, pollMs: 60_000, safetyPollMs: 300, slotSeconds: 12 };
			fixture = await startHeadFixture(
				chain.url,
				ask,
				limits === undefined ? options : { ...options, limits },
			);
			if (road === "subscription") {
				await until("the subscription", () =>
					fixture.logged.includes("info heads are announced by the node"),
				);
			}
			await fixture.inStep("the first head");
		};
		/** Another coinbase makes other blocks: anvil may else make the very same ones again. */
		const reorganise = async (depth: number) => {
			await ask("anvil_setCoinbase", [`0x${depth.toString(16).padStart(40, "0")}`]);
			await ask("anvil_reorg", [depth, []]);
		};
		/** Mines a block; the listener is at work on it until the function that is answered is called. */
		const holdAtBlock = async () => {
			const count = fixture.mirror.updates.length;
			const release = fixture.hold();
			await mine(1);
			await until("the listener at work", () => fixture.mirror.updates.length === count + 1);
			return release;
		};
		const transaction = async (index: number, fields: object = {}) => {
			const wallet = chain.wallet(index);
			const nonce = Number(await ask("eth_getTransactionCount", [wallet.address, "pending"]));
			return wallet.signTransaction({
				chainId: chain.chainId,
				to: wallet.address,
				nonce,
				gasLimit: 200_000n,
				maxFeePerGas: 10n ** 10n,
				maxPriorityFeePerGas: 1n,
				...fields,
			});
		};
		const send = async (raw: string) => String(await ask("eth_sendRawTransaction", [raw]));

		before(async () => {
			chain = await startDevChain();
		});
		afterEach(() => fixture.stop());
		after(() => chain.stop());

		test("a block tells its transactions, and everybody whose nonce it moved", async () => {
			await start();
			const authority = chain.wallet(5);
			const target = { chainId: chain.chainId, nonce: 0, address: `0x${"aa".repeat(20)}` };
			const authorizationList = [await authority.authorize(target)];
			const hashes = [
				await send(await transaction(0)),
				await send(await transaction(0)),
				await send(await transaction(1, { type: 4, authorizationList })),
				await send(await transaction(2, { to: null, data: "0x00" })),
			];
			await mine(1);
			await fixture.inStep("the block");
			const address = (i: number) => chain.wallet(i).address.toLowerCase();
			const block = fixture.tracker.current();
			assert.deepEqual(
				block?.transactions,
				[0, 0, 1, 2].map((sender, i) => ({ hash: hashes[i], from: address(sender) })),
			);
			assert.deepEqual(new Set(block?.touched), new Set([0, 1, 2, 5].map(address)));
			assert.equal(await ask("eth_getTransactionCount", [authority.address, "latest"]), "0x1");
		});

		test("a reorganisation of three blocks reverts three and applies three", async () => {
			await start();
			await mine(4);
			await fixture.inStep("four blocks");
			const old = fixture.mirror.blocks.slice(-3);
			const seen = fixture.mirror.updates.length;
			await reorganise(3);
			await fixture.inStep("the new branch");
			const updates = fixture.mirror.updates.slice(seen);
			const reverted = updates.flatMap((update) => update.reverted.map(({ hash }) => hash));
			for (const { hash } of old) assert.ok(reverted.includes(hash));
			assert.ok(updates.every(({ gap }) => !gap));
			assert.equal(fixture.tracker.current()?.number, old.at(-1)?.number);
			assert.ok(fixture.logged.includes("info reorganisation"));
		});

		test("while a listener is at work changes wait, and are one change then", async () => {
			await start();
			const release = await holdAtBlock();
			for (let i = 0; i < 10; i++) await mine(1);
			await reorganise(4);
			assert.equal(fixture.mirror.updates.length, 2);
			release();
			await fixture.inStep("the rest");
			assert.equal(fixture.mirror.updates.length, 3);
			const last = fixture.mirror.updates[2];
			assert.deepEqual([last?.applied.length, last?.reverted.length, last?.gap], [10, 0, false]);
		});

		test("64 missed blocks are caught up one by one, 65 are a gap", async () => {
			await start();
			for (const [missed, gap] of [
				[64, false],
				[65, true],
			] as const) {
				const release = await holdAtBlock();
				await mine(missed);
				release();
				await fixture.inStep(`${missed} blocks`);
				const update = fixture.mirror.updates.at(-1);
				assert.deepEqual([update?.applied.length, update?.gap], [gap ? 1 : missed, gap]);
			}
			assert.ok(fixture.logged.includes("warn blocks were missed"));
		});

		test("a reorganisation deeper than what is kept is a gap", async () => {
			await mine(10);
			await start({ kept: 4, missed: 64 });
			await mine(8);
			await fixture.inStep("eight blocks");
			const release = await holdAtBlock();
			await reorganise(3);
			release();
			await fixture.inStep("three deep");
			assert.equal(fixture.mirror.updates.at(-1)?.gap, false);
			const again = await holdAtBlock();
			await reorganise(6);
			again();
			await fixture.inStep("six deep");
			assert.equal(fixture.mirror.updates.at(-1)?.gap, true);
		});
	});
}
