// Tests following a real node's chain by polling and by subscription: blocks, catching up, reorganisations, rollbacks
// and gaps.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { type HeadScene, startHeadScene } from "../support/headScene.ts";
import { until } from "../support/until.ts";

for (const road of ["polling", "subscription"] as const) {
	describe(`heads by ${road}`, () => {
		let chain: DevChain;
		let scene: HeadScene;
		const ask = (method: string, params: readonly unknown[]) => chain.rpc(method, params);
		const mine = (count: number) => chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);
		const start = async (limits?: { kept: number; missed: number }) => {
			const options =
				road === "polling" ? {} : { wsUrl: chain.wsUrl, pollMs: 60_000, safetyPollMs: 300, slotSeconds: 12 };
			scene = await startHeadScene(chain.url, ask, limits === undefined ? options : { ...options, limits });
			if (road === "subscription") {
				await until("the subscription", () => scene.logged.includes("info heads are announced by the node"));
			}
			await scene.inStep("the first head");
		};
		/** Another coinbase makes other blocks: anvil may else make the very same ones again. */
		const reorganise = async (depth: number) => {
			await ask("anvil_setCoinbase", [`0x${depth.toString(16).padStart(40, "0")}`]);
			await ask("anvil_reorg", [depth, []]);
		};
		/** Mines a block; the listener is at work on it until the function that is answered is called. */
		const holdAtBlock = async () => {
			const count = scene.mirror.updates.length;
			const release = scene.hold();
			await mine(1);
			await until("the listener at work", () => scene.mirror.updates.length === count + 1);
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
		afterEach(() => scene.stop());
		after(() => chain.stop());

		test("the first change has the head alone, and says that what was before is not known", async () => {
			await mine(3);
			await start();
			assert.equal(scene.mirror.updates.length, 1);
			assert.equal(scene.mirror.updates[0]?.gap, true);
			assert.equal(scene.tracker.current()?.number, 3);
			assert.deepEqual(
				scene.logged.filter((line) => !line.startsWith("info heads")),
				[],
			);
		});

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
			await scene.inStep("the block");
			const address = (i: number) => chain.wallet(i).address.toLowerCase();
			const block = scene.tracker.current();
			assert.deepEqual(
				block?.transactions,
				[0, 0, 1, 2].map((sender, i) => ({ hash: hashes[i], from: address(sender) })),
			);
			assert.deepEqual(new Set(block?.touched), new Set([0, 1, 2, 5].map(address)));
			assert.equal(block?.gasUsed, BigInt((await header()).gasUsed ?? 0));
			assert.equal(await ask("eth_getTransactionCount", [authority.address, "latest"]), "0x1");
		});

		const header = async () =>
			(await ask("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;

		test("header and next block are the node's", async () => {
			await start();
			await mine(1);
			await scene.inStep("the block");
			const { hash, parentHash, number, timestamp, gasLimit, baseFeePerGas, miner } = await header();
			const head = scene.tracker.current();
			assert.deepEqual(
				[
					head?.hash,
					head?.parentHash,
					head?.number,
					head?.timestamp,
					head?.gasLimit,
					head?.baseFee,
					head?.miner,
				],
				[
					hash,
					parentHash,
					Number(number),
					Number(timestamp),
					BigInt(gasLimit ?? 0),
					BigInt(baseFeePerGas ?? 0),
					miner,
				],
			);
			const next = scene.tracker.next();
			await mine(1);
			assert.equal(next?.baseFee, BigInt((await header()).baseFeePerGas ?? 0));
			assert.equal(next?.number, Number(number) + 1);
			assert.equal(next?.timestamp, Number(timestamp) + 12);
			assert.ok(scene.tracker.ageMs() < 60_000);
		});

		test("five blocks at once come one by one", async () => {
			await start();
			const first = scene.tracker.current()?.number ?? 0;
			await mine(5);
			await scene.inStep("five blocks");
			const numbers = scene.mirror.updates
				.slice(1)
				.flatMap(({ applied }) => applied.map(({ number }) => number));
			assert.deepEqual(
				numbers,
				[1, 2, 3, 4, 5].map((i) => first + i),
			);
			assert.ok(scene.mirror.updates.slice(1).every(({ gap, reverted }) => !gap && reverted.length === 0));
		});

		test("a reorganisation of three blocks reverts three and applies three", async () => {
			await start();
			await mine(4);
			await scene.inStep("four blocks");
			const old = scene.mirror.blocks.slice(-3);
			const seen = scene.mirror.updates.length;
			await reorganise(3);
			await scene.inStep("the new branch");
			const updates = scene.mirror.updates.slice(seen);
			const reverted = updates.flatMap((update) => update.reverted.map(({ hash }) => hash));
			for (const { hash } of old) assert.ok(reverted.includes(hash));
			assert.ok(updates.every(({ gap }) => !gap));
			assert.equal(scene.tracker.current()?.number, old.at(-1)?.number);
			assert.ok(scene.logged.includes("info reorganisation"));
		});

		test("a transaction goes out of the chain with its block, and comes back in another", async () => {
			await start();
			await mine(1);
			const snapshot = await chain.snapshot();
			const raw = await transaction(3);
			const hash = await send(raw);
			await mine(1);
			await scene.inStep("the block with it");
			assert.ok(scene.tracker.current()?.transactions.some((one) => one.hash === hash));
			await chain.revert(snapshot);
			await mine(1);
			await scene.inStep("the block without it");
			const update = scene.mirror.updates.find(({ reverted }) =>
				reverted.some(({ transactions }) => transactions.some((one) => one.hash === hash)),
			);
			assert.ok(update !== undefined);
			assert.ok(
				scene.mirror.blocks.every(({ transactions }) => transactions.every((one) => one.hash !== hash)),
			);
			await send(raw);
			await mine(1);
			await scene.inStep("the block with it again");
			assert.ok(scene.tracker.current()?.transactions.some((one) => one.hash === hash));
		});

		test("a chain that is rolled back, and stays so, is believed", async () => {
			await start();
			await mine(1);
			const snapshot = await chain.snapshot();
			await mine(3);
			await scene.inStep("three blocks");
			await chain.revert(snapshot);
			await scene.inStep("evm_revert");
			await mine(2);
			await scene.inStep("two other blocks");
			await ask("anvil_rollback", [2]);
			await scene.inStep("anvil_rollback");
			assert.ok(scene.mirror.updates.slice(1).every(({ gap }) => !gap));
		});

		test("while a listener is at work changes wait, and are one change then", async () => {
			await start();
			const release = await holdAtBlock();
			for (let i = 0; i < 10; i++) await mine(1);
			await reorganise(4);
			assert.equal(scene.mirror.updates.length, 2);
			release();
			await scene.inStep("the rest");
			assert.equal(scene.mirror.updates.length, 3);
			const last = scene.mirror.updates[2];
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
				await scene.inStep(`${missed} blocks`);
				const update = scene.mirror.updates.at(-1);
				assert.deepEqual([update?.applied.length, update?.gap], [gap ? 1 : missed, gap]);
			}
			assert.ok(scene.logged.includes("warn blocks were missed"));
		});

		test("a reorganisation deeper than what is kept is a gap", async () => {
			await mine(10);
			await start({ kept: 4, missed: 64 });
			await mine(8);
			await scene.inStep("eight blocks");
			const release = await holdAtBlock();
			await reorganise(3);
			release();
			await scene.inStep("three deep");
			assert.equal(scene.mirror.updates.at(-1)?.gap, false);
			const again = await holdAtBlock();
			await reorganise(6);
			again();
			await scene.inStep("six deep");
			assert.equal(scene.mirror.updates.at(-1)?.gap, true);
		});

		test("a listener that throws is logged, and the next change comes all the same", async () => {
			await start();
			scene.tracker.subscribe(async () => {
				throw new Error("of the listener");
			});
			await mine(1);
			await scene.inStep("the block");
			await mine(1);
			await scene.inStep("the next block");
			await until(
				"both in the log",
				() => scene.logged.filter((line) => line.startsWith("error")).length === 2,
			);
			assert.ok(scene.logged.includes("error a listener to heads failed"));
		});
	});
}
