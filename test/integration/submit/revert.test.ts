// Transactions that revert, or can't run, at first or later, against contracts whose gate opens and
// shuts: what is held, what is sent, and how it ends on each path.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { errorString, gate, LOOPS, panic, REVERTS, revertingWith } from "../../support/contracts.ts";
import { type Actor, ETHER, GWEI, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const SHUT = errorString("the gate is shut");
const IS_SHUT = {
	code: "EXECUTION_REVERTED",
	message: "execution reverted: the gate is shut",
	data: SHUT,
};

let system: TestSystem;
let fixture: RelayFixture;
/** Opens and shuts gates, as anybody may, by public transactions. */
let keeper: Actor;
let keeperNonce = 0;

before(async () => {
	system = await startSystem({ builders: [{ name: "dev", fullPrivacy: true }, { name: "other" }] });
	fixture = new RelayFixture(system);
	keeper = await fixture.actor();
});
after(() => system.stop());

/** Calldata that sets a gate. */
function word(value: 0 | 1): string {
	return `0x${value.toString().padStart(64, "0")}`;
}

/** A stranger's public transaction sets the gate, in a block of its own that the relay has seen. */
async function setGate(to: string, value: 0 | 1): Promise<number> {
	const tx = keeper.sign({ nonce: keeperNonce, to, data: word(value) });
	keeperNonce += 1;
	await fixture.publish(tx);
	const block = await fixture.passBlock();
	assert.deepEqual(await fixture.receipt(tx), { block, ok: true, index: 0 });
	return block;
}

/** Waits until `tx` was simulated for the next block and failed. */
async function failsNow(tx: Signed): Promise<void> {
	const block = (await fixture.head()) + 1;
	await fixture.event(tx, "simulationFailed", (event) => event.block === block);
}

function sentAnywhere(tx: Signed): number {
	return system.builders.reduce((sum, builder) => sum + fixture.deliveries(builder, tx).length, 0);
}

describe("/fast, failing first", () => {
	it("is held, FAILED with the exact error; once it passes it goes out and is mined", async () => {
		const to = await fixture.placeCode(gate(SHUT));
		const actor = await fixture.actor();
		const tx = actor.sign({ to });
		await fixture.submit("/fast?referrer=app", tx);
		const held = await fixture.reaches(tx, "SIMULATION_FAILED");
		assert.match(String(held.rpc_timestamp), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
		assert.deepEqual(
			{ ...held, rpc_timestamp: null },
			{
				status: "FAILED",
				hash: tx.hash,
				rpc_timestamp: null,
				transaction: { from: actor.address, to, gas: "100000", nonce: "0", value: "0" },
				fastMode: true,
				shared: false,
				simulationError: IS_SHUT,
				backruns: 0,
				referrer: "app",
				refundRecipient: null,
				refund: 0,
				...{ stage: "SIMULATION_FAILED", state: "failing", blockNumber: null, refundWei: "0" },
				...{
					reason: IS_SHUT.message,
					nextStep: "wait, as it is tried again with each block, or cancel it",
				},
			},
		);
		await system.nextBlock();
		await failsNow(tx);
		assert.equal(sentAnywhere(tx), 0);
		assert.equal(await fixture.pendingNonce(actor), 1, "a held one keeps its nonce");
		const opened = await setGate(to, 1);
		await fixture.waitUntilSent(tx);
		const out = await fixture.status(tx);
		assert.deepEqual([out.status, out.stage, out.simulationError], ["UNKNOWN", "BROADCAST", null]);
		await system.nextBlock();
		const record = await fixture.reaches(tx, "INCLUDED");
		assert.deepEqual([record.status, record.simulationError], ["INCLUDED", null]);
		assert.deepEqual(await fixture.receipt(tx), { block: opened + 1, ok: true, index: 0 });
		const life = (await fixture.life(tx)).slice(-4);
		const block = opened + 1;
		assert.deepEqual(life, [
			`simulationFailed ${opened}`,
			`simulated ${block}`,
			`broadcast ${block}`,
			`included ${block}`,
		]);
	});

	const REASONS = [
		{ name: "no data", code: REVERTS, error: { message: "execution reverted" } },
		{
			name: "a panic",
			code: revertingWith(panic(0x12)),
			error: { message: "execution reverted: panic 0x12 (division by zero)", data: panic(0x12) },
		},
		{
			name: "a custom error",
			code: revertingWith("0xdeadbeef00"),
			error: { message: "execution reverted: custom error 0xdeadbeef", data: "0xdeadbeef00" },
		},
		{
			name: "out of gas",
			code: LOOPS,
			gasLimit: 50_000,
			error: { code: "OUT_OF_GAS", message: "out of gas" },
		},
	] as const;
	it("tells exactly why, and is sent to nobody", async () => {
		for (const { name, code, error, ...options } of REASONS) {
			const tx = (await fixture.actor()).sign({ to: await fixture.placeCode(code), ...options });
			await fixture.submit("/fast", tx);
			const { status, simulationError } = await fixture.reaches(tx, "SIMULATION_FAILED");
			assert.deepEqual([status, simulationError], ["FAILED", { code: "EXECUTION_REVERTED", ...error }], name);
			assert.equal(sentAnywhere(tx), 0, name);
		}
	});
});

describe("what would revert", () => {
	it("is mined as reverted on /nochecks", async () => {
		const tx = (await fixture.actor()).sign({ to: await fixture.placeCode(REVERTS) });
		await fixture.submit("/nochecks", tx);
		await fixture.waitUntilSent(tx);
		const block = await system.nextBlock();
		const { status, simulationError } = await fixture.reaches(tx, "REVERTED");
		assert.deepEqual([status, simulationError], ["INCLUDED", null]);
		assert.deepEqual((await fixture.receipt(tx))?.ok, false);
		const life = await fixture.life(tx);
		assert.equal(life.at(-1), `included ${block}`);
		assert.ok(!life.some((event) => event.startsWith("simul")), "it is never simulated");
	});

	it("is still sent on /fast and /maxbackruns once it has passed, and mined as reverted", async () => {
		const to = await fixture.placeCode(gate(SHUT));
		await setGate(to, 1);
		const both: Signed[] = [];
		for (const path of ["/fast", "/maxbackruns"]) {
			const tx = (await fixture.actor()).sign({ to });
			await fixture.submit(path, tx);
			await fixture.waitUntilSent(tx);
			both.push(tx);
		}
		await setGate(to, 0);
		for (const tx of both) await fixture.waitUntilSent(tx);
		await system.nextBlock();
		for (const tx of both) {
			const { status } = await fixture.reaches(tx, "REVERTED");
			assert.equal(status, "INCLUDED");
			assert.equal((await fixture.receipt(tx))?.ok, false);
			assert.equal((await fixture.life(tx)).filter((event) => event.startsWith("simul")).length, 1);
		}
	});

	for (const [path, builders] of [
		["/noreverts", ["dev", "other"]],
		["/fullprivacy", ["dev"]],
	] as const) {
		it(`is not sent for the next block on ${path}, and again once it passes`, async () => {
			const to = await fixture.placeCode(gate(SHUT));
			const opened = await setGate(to, 1);
			const tx = (await fixture.actor()).sign({ to });
			await fixture.submit(path, tx);
			await fixture.waitUntilSent(tx, { builders });
			const shut = await setGate(to, 0);
			await failsNow(tx);
			const { status, stage, simulationError } = await fixture.status(tx);
			assert.deepEqual([status, stage, simulationError], ["FAILED", "SIMULATION_FAILED", IS_SHUT]);
			await system.nextBlock();
			await failsNow(tx);
			assert.equal(await fixture.receipt(tx), null);
			const reopened = await setGate(to, 1);
			await fixture.waitUntilSent(tx, { builders });
			assert.deepEqual((await fixture.status(tx)).simulationError, null);
			for (const name of builders) {
				// Not for the two blocks behind the one in which the gate was shut.
				assert.deepEqual(fixture.blocks(fixture.builder(name), tx), [opened + 1, reopened + 1]);
			}
			assert.equal(reopened, shut + 2);
			await system.nextBlock();
			await fixture.reaches(tx, "INCLUDED");
			assert.equal((await fixture.receipt(tx))?.ok, true);
		});
	}
});

describe("what stops passing within the slot", () => {
	for (const { path, builders } of [
		{ path: "/noreverts", builders: ["dev", "other"] },
		{ path: "/fullprivacy", builders: ["dev"] },
	]) {
		it(`has the bundle that was sent on ${path} cancelled, and goes out again when it passes`, async () => {
			const to = await fixture.placeCode(gate(SHUT));
			const actor = await fixture.actor();
			const opening = actor.sign({ nonce: 0, to, data: word(1) });
			const passing = actor.sign({ nonce: 1, to });
			await fixture.submit("/fast", opening);
			await fixture.submit(path, passing);
			await fixture.waitUntilSent(passing, { builders });
			const other = actor.sign({ nonce: 0, maxFeePerGas: 30n * GWEI, maxPriorityFeePerGas: 2n * GWEI });
			await fixture.submit("/fast", other);
			assert.deepEqual((await fixture.reaches(passing, "SIMULATION_FAILED")).simulationError, IS_SHUT);
			await fixture.waitUntilSent(other);
			for (const name of builders) {
				const uuid = fixture.deliveries(fixture.builder(name), passing)[0]?.uuid;
				const block = `0x${((await fixture.head()) + 1).toString(16)}`;
				const cancels = await until("both cancels", () => {
					const all = fixture.cancels(fixture.builder(name), passing);
					return all.length === 2 && all;
				});
				// Each on a connection of its own: either may be first.
				assert.deepEqual(
					new Map(cancels.map(({ method, params }) => [method, params])),
					new Map<string, unknown>([
						["eth_cancelBundle", [{ replacementUuid: uuid }]],
						["eth_sendBundle", [{ txs: [], blockNumber: block, replacementUuid: uuid }]],
					]),
				);
				await fixture.event(
					passing,
					"delivered",
					(event) => event.kind === "cancel" && event.builder === name && event.answer === "accepted",
				);
			}
			await system.nextBlock();
			await fixture.reaches(other, "INCLUDED");
			assert.equal(await fixture.receipt(passing), null, "it was cancelled, and yet mined");
			await setGate(to, 1);
			await fixture.waitUntilSent(passing, { builders });
			await system.nextBlock();
			await fixture.reaches(passing, "INCLUDED");
		});
	}
});

describe("what can't run", () => {
	it("for want of funds behind the account's other transaction is held until they are there", async () => {
		const actor = await fixture.actor(ETHER);
		const spending = actor.sign({ nonce: 0, value: ETHER / 2n });
		const poor = actor.sign({ nonce: 1, value: ETHER / 2n });
		await fixture.submit("/fast", spending, poor);
		const cost = ETHER / 2n + 100_000n * 20n * GWEI;
		const { simulationError } = await fixture.reaches(poor, "SIMULATION_FAILED");
		assert.equal(simulationError?.code, "INSUFFICIENT_FUNDS");
		const [, balance, needed, overshot] =
			/^insufficient funds for gas \* price \+ value: balance (\d+), tx cost (\d+), overshot (\d+)$/.exec(
				simulationError?.message ?? "",
			) ?? [];
		assert.equal(BigInt(needed ?? 0), cost);
		assert.equal(BigInt(needed ?? 0) - BigInt(balance ?? 0), BigInt(overshot ?? -1));
		await fixture.waitUntilSent(spending);
		assert.equal(sentAnywhere(poor), 0);
		await system.nextBlock();
		await fixture.reaches(spending, "INCLUDED");
		await fixture.setBalance(actor.address, ETHER);
		await fixture.passBlock();
		await fixture.waitUntilSent(poor);
		await system.nextBlock();
		await fixture.reaches(poor, "INCLUDED");
	});

	it("for a fee cap under the next base fee is held, and goes out when the base fee has fallen", async () => {
		const { chain } = system;
		const next = (await chain.rpc("eth_feeHistory", ["0x1", "latest", []])) as { baseFeePerGas: string[] };
		const baseFee = BigInt(next.baseFeePerGas[1] ?? 0);
		const tx = (await fixture.actor()).sign({ maxFeePerGas: baseFee - 1n, maxPriorityFeePerGas: 1n });
		await fixture.submit("/fast", tx);
		// It has not failed: what it waits for is said, and nothing of it is shown.
		const message = `max fee per gas less than block base fee: max fee ${baseFee - 1n}, base fee ${baseFee}`;
		const record = await until("it waits", async () => {
			const found = await fixture.status(tx);
			return found.reason === message && found;
		});
		assert.deepEqual(
			[record.status, record.stage, record.state, record.simulationError, record.transaction.from],
			["UNKNOWN", "PENDING", "waiting for the base fee to fall", null, ""],
		);
		assert.match(
			String(record.nextStep),
			/^raise the fee cap to [\d.]+ gwei, or wait until the base fee falls$/,
		);
		const { result } = await system.client.ask("service_transactionStatuses", [[tx.hash]]);
		assert.deepEqual(result, [{ hash: tx.hash, status: "UNKNOWN", stage: "PENDING", held: true }]);
		assert.equal(sentAnywhere(tx), 0);
		await fixture.passBlock();
		await fixture.waitUntilSent(tx);
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
	});
});
