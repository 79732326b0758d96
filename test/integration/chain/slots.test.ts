// How long slots are, learnt from real chains by relay and boost without a setting: 450 ms, 2 s and 12 s, changes while they run, and
// what must not change it. And the timestamps of the next blocks of a chain that mines every 450 ms.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { systemClock } from "../../../shared/clock.ts";
import { Slots } from "../../../shared/ethereum/slots.ts";
import { ChainRpc } from "../../devnet/chainRpc.ts";
import { type AnvilProcess, startAnvil } from "../../devnet/nodeProcess.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { startHeadFixture } from "../../support/headFixture.ts";
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

	test("12 s, and then 8 s, are followed within 64 blocks", async () => {
		for (const seconds of [12, 8]) {
			await mine(64, seconds);
			await bothSay(seconds * 1_000);
		}
	});

	test("a pause, missed slots, bursts, a reorganisation and a rollback change nothing", async () => {
		await mine(1, 3_600);
		for (let i = 0; i < 6; i += 1) {
			await mine(1, 16);
			await mine(2, 8);
		}
		await mine(60, 0);
		await ask("anvil_setCoinbase", [`0x${"0c".repeat(20)}`]);
		await ask("anvil_reorg", [3, []]);
		const snapshot = await ask("evm_snapshot", []);
		await mine(5, 8);
		await ask("evm_revert", [snapshot]);
		for (let i = 0; i < 8; i += 1) {
			await mine(5, 8);
			assert.deepEqual(await both(), [8_000, 8_000]);
		}
	});
});

describe("a chain that mines every 450 ms", () => {
	let anvil: AnvilProcess;
	let chain: ChainRpc;
	before(async () => {
		const start = Math.floor(systemClock.now() / 1_000) - 60;
		anvil = await startAnvil(0, ["--block-time", "0.45", "--timestamp", String(start)]);
		chain = new ChainRpc(anvil.url);
		// What it would have mined in eighteen seconds.
		for (let i = 1; i <= 40; i += 1)
			await chain.call("evm_mine", [{ timestamp: start + Math.floor(i * 0.45) }]);
	});
	after(async () => {
		await chain?.close();
		await anvil?.stop();
	});
	const ask = (method: string, params: readonly unknown[]) => chain.call(method, params);

	const BLOCKS = 16;
	const TRANSPORTS = [
		["polling", () => ({ pollMs: undefined })],
		["subscription", () => ({ pollMs: undefined, wsUrl: anvil.url.replace("http", "ws") })],
	] as const;
	for (const [index, [transport, options]] of TRANSPORTS.entries()) {
		test(`by ${transport}: known at the start; it stays, and the next timestamps are foreseen`, async () => {
			const slots = new Slots({ setMs: undefined }, { clock: systemClock });
			const fixture = await startHeadFixture(anvil.url, ask, options(), slots);
			const near = () => assert.ok(Math.abs(slots.ms - 450) <= 45, `${slots.ms}`);
			const height = () => fixture.mirror.head?.number ?? 0;
			try {
				await until("the first head", () => height() > 0);
				const begun = height();
				const foreseen = new Map<number, number>();
				await until(`${BLOCKS} blocks`, () => {
					near();
					const next = fixture.tracker.next();
					if (next !== null) foreseen.set(next.number, next.timestamp);
					return height() >= begun + BLOCKS;
				});
				const off = fixture.mirror.blocks
					.filter(({ number }) => foreseen.has(number))
					.map(({ number, timestamp }) => Math.abs((foreseen.get(number) ?? 0) - timestamp));
				const right = off.filter((seconds) => seconds === 0);
				assert.ok(right.length >= 0.75 * (BLOCKS - 3), `${off}`);
				assert.ok(Math.max(...off) <= 1, `${off}`);
				if (index < TRANSPORTS.length - 1) return;
				await ask("anvil_mine", ["0x40"]);
				await until("the burst", () => height() >= begun + BLOCKS + 64);
				near();
			} finally {
				await fixture.stop();
			}
		});
	}
});

describe("the dev network with slots of 450 ms", () => {
	let system: TestSystem;
	before(async () => {
		system = await startSystem({
			chain: { slotSeconds: 0.45 },
			builder: { manual: false },
			env: { ...UNSET, HEAD_POLL_MS: "" },
		});
	});
	after(() => system?.stop());

	test("its blocks share seconds, the relay learns the length, and transactions of all paths are mined", async () => {
		const users = new RelayFixture(system);
		await until(
			"450 ms are learnt",
			async () => Math.abs(((await ofRelay(system.client.url)) ?? 0) - 450) <= 45,
		);
		const paths = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"];
		const begun = await users.head();
		const sent = await Promise.all(
			paths.map(async (path) => {
				const tx = (await users.actor()).sign();
				// The relay knows a new account from the next head on.
				await users.seesHead((await users.head()) + 1);
				await users.submit(path, tx);
				return tx;
			}),
		);
		await Promise.all(sent.map((tx) => users.reaches(tx, "INCLUDED")));
		const mined = await Promise.all(
			sent.map(async ({ hash }) =>
				Number(
					((await system.chain.rpc("eth_getTransactionReceipt", [hash])) as { blockNumber: string })
						.blockNumber,
				),
			),
		);
		assert.ok(Math.max(...mined) - begun <= 10, `${mined} after ${begun}`);
		const head = await users.head();
		const blocksOf = await system.chain.batch(
			Array.from({ length: 20 }, (_, i) => ({
				method: "eth_getBlockByNumber",
				params: [`0x${(head - i).toString(16)}`, false],
			})),
		);
		const times = blocksOf.map((one) => Number((one as { result: { timestamp: string } }).result.timestamp));
		const passed = (times[0] ?? 0) - (times.at(-1) ?? 0);
		assert.ok(passed === 8 || passed === 9, `${passed} s of 19 slots`);
	});
});
