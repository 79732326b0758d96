// The length of slots, learnt from real chains by relay and boost without a setting: 2 s, a change
// while they run, what must not change it, and 450 ms with the timestamps of the next blocks. The
// test sets all timestamps. slots.nightly.ts has real time.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Slots } from "../../../shared/ethereum/slots.ts";
import { ChainRpc, readHead } from "../../devnet/chainRpc.ts";
import { type AnvilProcess, startAnvil } from "../../devnet/nodeProcess.ts";
import { timestamps } from "../../devnet/slots.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { startHeadFixture } from "../../support/headFixture.ts";
import { sized } from "../../support/length.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { RelayFixture } from "../../support/relayFixture.ts";
import { seesHead, startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/** Neither of both is set. */
const UNSET = { SLOT_MS: "", SLOT_SECONDS: "" };

async function told(url: string): Promise<{ readonly slotMs?: number; readonly slotSeconds?: number }> {
	return (await (await fetch(url)).json()) as { slotMs?: number };
}

const ofRelay = async (url: string) => (await told(`${url}/info`)).slotMs;
const ofBoost = async ({ url }: BoostClient) => (await told(`${url}/status`)).slotMs;

describe("a chain whose blocks come when the test says so", () => {
	let fixture: BoostFixture;
	before(async () => {
		fixture = await startBoostFixture({ system: { env: UNSET }, fallback: UNSET, boost: UNSET });
	});
	after(() => fixture?.stop());

	const ask = (method: string, params: readonly unknown[]) => fixture.users.system.chain.rpc(method, params);
	/** Mines `count` blocks, `seconds` from one to the next. */
	async function mine(count: number, seconds: number): Promise<void> {
		const { chain, client } = fixture.users.system;
		await ask("anvil_mine", [`0x${count.toString(16)}`, `0x${seconds.toString(16)}`]);
		await seesHead(client, Number(await chain.rpc("eth_blockNumber", [])));
	}
	const both = async () => [await ofRelay(fixture.users.system.client.url), await ofBoost(fixture.boost)];
	const bothSay = (ms: number) =>
		until(`both say ${ms} ms`, async () => (await both()).every((one) => one === ms));

	test("before 32 heads it is Ethereum's", async () => {
		await mine(20, 2);
		assert.deepEqual(await both(), [12_000, 12_000]);
	});

	test("2 s are learnt, and known at once after a restart", async () => {
		await mine(20, 2);
		await bothSay(2_000);
		await fixture.users.system.restart();
		assert.deepEqual(
			await told(`${fixture.users.system.client.url}/info`).then((info) => [info.slotMs, info.slotSeconds]),
			[2_000, 2],
		);
		const again = await fixture.startBoost();
		await until("it has learnt it of the relay", async () => (await ofBoost(again)) === 2_000);
	});

	test("8 s are followed within 64 blocks", async () => {
		for (const seconds of sized([8], [12, 8])) {
			await mine(64, seconds);
			await bothSay(seconds * 1_000);
		}
	});

	test("a pause, missed slots, bursts, a reorganisation and a rollback change nothing", async () => {
		await mine(1, 3_600);
		for (let i = 0; i < sized(3, 6); i += 1) {
			await mine(1, 16);
			await mine(2, 8);
		}
		await mine(sized(20, 60), 0);
		await ask("anvil_setCoinbase", [`0x${"0c".repeat(20)}`]);
		await ask("anvil_reorg", [3, []]);
		const snapshot = await ask("evm_snapshot", []);
		await mine(5, 8);
		await ask("evm_revert", [snapshot]);
		for (let i = 0; i < sized(4, 8); i += 1) {
			await mine(5, 8);
			assert.deepEqual(await both(), [8_000, 8_000]);
		}
	});
});

/**
 * Blocks of a chain whose slots are 450 ms, before a relay starts: more than a length is learnt
 * from.
 */
const HISTORY = 40;
const near = (ms: number) => assert.ok(Math.abs(ms - 450) <= 45, `${ms}`);

interface TimedBlock {
	readonly timestamp: string;
}

describe("a chain whose blocks are 450 ms apart by their timestamps", () => {
	let anvil: AnvilProcess;
	let chain: ChainRpc;
	const timestampAfter = timestamps(0.45, true);
	before(async () => {
		anvil = await startAnvil(0, []);
		chain = new ChainRpc(anvil.url);
		for (let i = 0; i < HISTORY; i += 1) await mine();
	});
	after(async () => {
		await chain?.close();
		await anvil?.stop();
	});
	const ask = (method: string, params: readonly unknown[]) => chain.call(method, params);
	async function mine(): Promise<void> {
		await ask("evm_mine", [{ timestamp: timestampAfter(await readHead(chain)) }]);
	}

	const BLOCKS = 16;
	const TRANSPORTS = [
		["polling", () => ({})],
		["subscription", () => ({ wsUrl: anvil.url.replace("http", "ws") })],
	] as const;
	for (const [index, [transport, options]] of TRANSPORTS.entries()) {
		test(`by ${transport}: known at the start; it stays, and the next timestamps are foreseen`, async () => {
			const clock = new ManualClock();
			const slots = new Slots({ setMs: undefined }, { clock });
			const fixture = await startHeadFixture(anvil.url, ask, options(), slots);
			const height = () => fixture.mirror.head?.number ?? 0;
			try {
				await until("the first head", () => height() > 0);
				const begun = height();
				const off: number[] = [];
				for (let i = 1; i <= BLOCKS; i += 1) {
					near(slots.ms);
					const foreseen = fixture.tracker.next();
					await clock.advance(450);
					await mine();
					await until(`block ${begun + i}`, () => height() === begun + i);
					assert.equal(foreseen?.number, begun + i);
					off.push(Math.abs(foreseen.timestamp - (fixture.mirror.head?.timestamp ?? 0)));
				}
				near(slots.ms);
				assert.ok(off.filter((seconds) => seconds === 0).length >= 0.75 * BLOCKS, `${off}`);
				assert.ok(Math.max(...off) <= 1, `${off}`);
				if (index < TRANSPORTS.length - 1) return;
				await ask("anvil_mine", ["0x40"]);
				await until("the burst", () => height() >= begun + BLOCKS + 64);
				near(slots.ms);
			} finally {
				await fixture.stop();
			}
		});
	}
});

describe("the dev network with slots of 450 ms", () => {
	let system: TestSystem;
	before(async () => {
		system = await startSystem({ chain: { slotSeconds: 0.45 }, env: UNSET });
	});
	after(() => system?.stop());

	test("its blocks share seconds, the relay knows their length, and transactions of all paths are mined", async () => {
		const users = new RelayFixture(system);
		for (let i = 0; i < HISTORY; i += 1) await system.builder.buildBlock();
		await system.restart();
		near((await ofRelay(system.client.url)) ?? 0);
		const actors = [];
		for (const path of ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"])
			actors.push([path, await users.actor()] as const);
		// The relay knows a new account from the next head on.
		await system.nextBlock();
		const sent = [];
		for (const [path, actor] of actors) {
			const tx = actor.sign();
			await users.submit(path, tx);
			await users.waitUntilSent(tx);
			sent.push(tx);
		}
		const block = await system.nextBlock();
		for (const tx of sent) {
			await users.reaches(tx, "INCLUDED");
			assert.equal((await users.receipt(tx))?.block, block);
		}
		const timeOf = async (number: number) => {
			const params = [`0x${number.toString(16)}`, false];
			return Number(((await system.chain.rpc("eth_getBlockByNumber", params)) as TimedBlock).timestamp);
		};
		const passed = (await timeOf(block)) - (await timeOf(block - 19));
		assert.ok(passed === 8 || passed === 9, `${passed} s of 19 slots`);
	});
});
