// Nobody but the owner ends what boost has acknowledged, with the relay out: not a cancel that was
// signed for another chain, not a fallback that lies in its status, not a clock or a node's head
// that is days ahead. And boost's status tells nobody of it.

import assert from "node:assert/strict";
import { after, afterEach, before, it } from "node:test";
import { statusOf } from "../faults/boostHere.ts";
import { type BoostWorld, startBoostWorld } from "../support/attacks/boostWorld.ts";
import { startTaker } from "../support/attacks/taker.ts";
import { ask, attackerAddress, HONEST, resultOf, send, type WireCall } from "../support/attacks/wire.ts";
import { sized } from "../support/length.ts";
import { mineAll } from "../support/systems.ts";
import { rawTransaction, signedTransaction, type TxOptions, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";
import { DAYS_OFF, HOURS_OFF, WrongClock } from "../support/wrongClock.ts";

const ETHER = 10n ** 18n;
const DAYS_S = 8 * 24 * 3600;
const ANSWER_MS = 10_000;
const SOFT = "/noreverts?softCancellations=true";
/** The false statuses of a fallback. */
const LIES = ["CANCELLED", "FAILED", "DROPPED", "REPLACED", "EXPIRED", "INCLUDED", "UNKNOWN"] as const;
/** How often boost reads a wrong answer before the test looks at what it has done about it. */
const READ = 3;

const clock = new WrongClock();
let world: BoostWorld;
let liar: Awaited<ReturnType<typeof startLiar>>;
let accounts = 9_500_000;
before(async () => {
	liar = await startLiar();
	world = await startBoostWorld({
		fallbackUrl: liar.url,
		entry: clock.entryOf("boost-proxy/main.ts"),
		env: { TX_TTL_BLOCKS: "60" },
	});
});
after(async () => {
	await world?.stop();
	await liar?.stop();
	clock.stop();
});

afterEach(async () => {
	liar.lies.clear();
	world.node.setFault(null);
	await world.recovers("fallback");
	await world.recovers();
});

const callAt = (path: string, from = HONEST): Omit<WireCall, "body"> => ({
	url: `${world.boost.url}${path}`,
	from,
	deadlineMs: ANSWER_MS,
});

/** A user's transaction that boost has acknowledged. */
async function acknowledged(path = "/fast") {
	const by = testAccount(accounts++);
	await world.system.chain.fund([by], ETHER);
	await world.system.nextBlock(world.relay);
	const sign = (more: Omit<TxOptions, "by">) => `0x${rawTransaction({ by, ...more }).toString("hex")}`;
	const tx = {
		by,
		sign,
		raw: sign({ gasLimit: 21_000 }),
		hash: signedTransaction({ by, gasLimit: 21_000 }).hash,
	};
	assert.equal(await resultOf("eth_sendRawTransaction", [tx.raw], callAt(path)), tx.hash);
	return tx;
}

/** Once the relay is up again it has the transactions, and a block includes them. */
async function assertMined(...hashes: readonly string[]): Promise<void> {
	const { system, relay } = world;
	const areAll = async (stage: RegExp) => {
		const stages = await Promise.all(hashes.map((hash) => relay.client.stage(hash)));
		return stages.every((one) => stage.test(one ?? ""));
	};
	liar.lies.clear();
	await world.fails("fallback");
	await until("the relay has them", () => areAll(/BROADCAST|INCLUDED/));
	await world.recovers("fallback");
	await mineAll(
		system,
		hashes.map((hash) => ({ hash })),
	);
	await until("they are mined", () => areAll(/INCLUDED/));
}

/** The number of transactions that boost keeps alive. */
async function depth(): Promise<number> {
	return (await statusOf(world.boost.url)).journal.depth;
}

/**
 * Waits until boost has asked its node for the state of these senders some times: that is when it
 * expires transactions.
 */
async function judges(...txs: readonly { readonly by: { readonly address: string } }[]): Promise<void> {
	const { node } = world;
	const asked = (address: string): number =>
		node
			.calls("eth_getTransactionCount")
			.filter(({ params }) => String(params[0]).toLowerCase() === address.toLowerCase()).length;
	const before = txs.map(({ by }) => asked(by.address));
	await until("boost has judged them", () =>
		txs.every(({ by }, i) => asked(by.address) >= (before[i] ?? 0) + READ),
	);
}

for (const isHeld of [true, false]) {
	it(`a cancel for another chain ends nothing, with ${isHeld ? "the relay" : "the fallback"} as the holder`, async () => {
		if (!isHeld) await world.fails();
		const tx = await acknowledgedWith(isHeld);
		for (const type of [0, 1, 2] as const) {
			const elsewhere = tx.sign({ type, to: tx.by.address, chainId: 1n, gasLimit: 21_000 });
			const { error } = await ask("eth_sendRawTransaction", [elsewhere], callAt(SOFT, attackerAddress()));
			assert.equal(error?.message, "invalid chain id for signer: have 1 want 31337");
		}
		await world.recovers();
		await assertMined(tx.hash);
	});
}

/** The relay has it and then goes down, or is down from the beginning. */
async function acknowledgedWith(relayHolds: boolean) {
	const tx = await acknowledged(SOFT);
	if (relayHolds) await world.fails();
	return tx;
}

it("no status of a fallback ends what it was given", async () => {
	await world.fails();
	const hashes: string[] = [];
	for (const lie of LIES) {
		const { hash } = await acknowledged();
		hashes.push(hash);
		liar.lies.set(hash, lie);
	}
	await until("boost has read each lie", () => hashes.every((hash) => liar.read(hash) >= READ));
	assert.equal(await depth(), LIES.length);
	await world.recovers();
	await assertMined(...hashes);
});

for (const [name, offMs] of Object.entries({ right: 0, ...DAYS_OFF, ...sized({}, HOURS_OFF) })) {
	it(`a clock that is ${name} for a while expires nothing, and revives nothing`, async () => {
		const cancelled = await acknowledged();
		const orders = () => world.system.builder.liveOrders(cancelled.hash).length;
		await until("the builder has it", () => orders() > 0);
		assert.equal(await resultOf("eth_cancelTransaction", [cancelled.hash], callAt("/fast")), true);
		await until("the builder has dropped it", () => orders() === 0);
		await world.fails();
		const early = await acknowledged();
		await clock.set(world.boost, offMs);
		const late = await acknowledged();
		await judges(early, late);
		assert.equal(await depth(), 2);
		await clock.set(world.boost, 0);
		await judges(early, late);
		assert.equal(await depth(), 2);
		const again = await resultOf("eth_sendRawTransaction", [cancelled.raw], callAt("/fast"));
		assert.equal(again, cancelled.hash, "wallets send again what they think is pending");
		await world.recovers();
		await assertMined(early.hash, late.hash);
		assert.equal(await world.relay.client.stage(cancelled.hash), "CANCELLED");
	});
}

it("heads of boost's node that are eight days ahead expire nothing", async () => {
	await world.fails();
	const tx = await acknowledged();
	const { node, system } = world;
	const block = (await system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const timestamp = `0x${(Number(block.timestamp) + DAYS_S).toString(16)}`;
	node.setFault({ kind: "result", result: { ...block, timestamp } }, { methods: ["eth_getBlockByNumber"] });
	node.reset();
	await until("boost has read some heads", () => node.calls("eth_getBlockByNumber").length >= READ);
	await judges(tx);
	assert.equal(await depth(), 1);
	node.setFault(null);
	await world.recovers();
	await assertMined(tx.hash);
});

it("a searcher who polls boost's status sees nothing of a hidden transaction and its cancel", async () => {
	const polled = async () => {
		const { body } = await send(callAt("/status", attackerAddress(3)));
		return body.replace(/"nextProbeAt":[^,}]*/g, "");
	};
	const earlier = await polled();
	const tx = await acknowledged("/noreverts");
	assert.ok((await statusOf(world.boost.url)).journal.depth > 0, "its operator sees it");
	assert.equal(await polled(), earlier);
	assert.equal(await resultOf("eth_cancelTransaction", [tx.hash], callAt("/fast")), true);
	assert.equal(await polled(), earlier);
});

/**
 * A fallback that accepts everything, and whose status of a transaction is the lie that the test
 * has set.
 */
async function startLiar() {
	const lies = new Map<string, (typeof LIES)[number]>();
	/** How often each lie was read, by the hash of the transaction. */
	const reads = new Map<string, number>();
	const taker = await startTaker((hash) => {
		const lie = lies.get(hash) ?? null;
		if (lie !== null) reads.set(hash, (reads.get(hash) ?? 0) + 1);
		return statusFor(lie);
	});
	return { ...taker, lies, read: (hash: string): number => reads.get(hash) ?? 0 };
}

function statusFor(lie: string | null): unknown {
	if (lie === null) return { status: "UNKNOWN", stage: "BROADCAST" };
	if (lie === "INCLUDED" || lie === "UNKNOWN") return { status: lie };
	return lie === "FAILED" ? { status: lie } : { status: "FAILED", stage: lie };
}
