// Tests SIGKILL around cancels: what was answered `true` stays cancelled and is never sent again,
// and builders that may still have it get the cancel again after the restart. The relay is a real
// process.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { RecordedRequest } from "../../devnet/builderRecord.ts";
import { holds, type Signed, signed, signedOn } from "../../support/crashFixture.ts";
import { sized } from "../../support/length.ts";
import type { RelayProcess } from "../../support/processes.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const SOFT = "/noreverts?softCancellations=true";
const CROWD = sized(45, 120);
const CANCEL_METHODS = ["eth_cancelBundle", "eth_cancelPrivateTransaction"];

type Signeds = [Signed, Signed, Signed];

let system: ProcessSystem;
/** The one that runs; each test goes on with what the one before has left behind. */
let relay: RelayProcess;
before(async () => {
	system = await startProcessSystem({ builders: [{ name: "dev", cancel: "endpoint" }] });
	relay = await system.start();
});
after(() => system.stop());

/**
 * SIGKILL, what happens `meanwhile`, and another start, when builders answer again; the last
 * request before it.
 */
async function killAndStart(meanwhile: () => Promise<void> = () => Promise.resolve()): Promise<number> {
	await relay.kill();
	const mark = await system.lastRequest();
	system.builder.setFaults({});
	await meanwhile();
	relay = await system.start();
	return mark;
}

function cancel({ hash }: Signed): Promise<unknown> {
	return relay.client.call("eth_cancelTransaction", [hash]);
}

/** A transfer of the chain's account with this index to itself. */
function toSelf(account: number, value: bigint): Signed {
	const to = system.chain.accounts[account]?.address.toLowerCase() ?? "";
	return signedOn(system.chain, account, { to, value, gasLimit: 21_000 });
}

/** The identifier under which the builder was sent the bundle with `tx`. */
function uuidOf(tx: Signed): unknown {
	const request = system.builder.requests("eth_sendBundle").find(({ params }) => holds(params, tx.raw));
	return (request?.params[0] as { replacementUuid?: unknown } | undefined)?.replacementUuid;
}

/** Cancels of `tx` among what the builder got behind request number `after`. */
function cancels(tx: Signed, after = 0): readonly RecordedRequest[] {
	const uuid = String(uuidOf(tx));
	return system.builder.requests(
		({ seq, method, params }) =>
			seq > after &&
			CANCEL_METHODS.includes(method) &&
			(JSON.stringify(params).includes(uuid) || JSON.stringify(params).includes(tx.hash)),
	);
}

function wasSent(tx: Signed, after: number): boolean {
	return system.builder.requests(({ seq, params }) => seq > after && holds(params, tx.raw)).length > 0;
}

/** It is cancelled, and stays so when its bytes are sent again; the nonce is free. */
async function assertDead(tx: Signed): Promise<void> {
	assert.equal(await relay.client.stage(tx.hash), "CANCELLED");
	assert.equal(await relay.client.call("eth_getTransactionByHash", [tx.hash]), null);
	for (const path of ["/fast", SOFT, "/nochecks"])
		assert.equal(await relay.client.send(tx.raw, path), tx.hash);
	assert.equal(await relay.client.stage(tx.hash), "CANCELLED");
	assert.equal(await cancel(tx), true);
}

test("killed right after the answer true: they stay cancelled, and builders that have not answered get the cancel again", async () => {
	const [bundle, single, soft] = [0, 1, 2].map((account) => signedOn(system.chain, account)) as Signeds;
	const own = toSelf(2, 0n);
	await relay.client.send(bundle.raw, "/fast");
	await relay.client.send(single.raw, "/nochecks");
	await relay.client.send(soft.raw, SOFT);
	await system.delivered([bundle, single, soft].map(({ raw }) => raw));
	// It never answers, so the relay cannot know whether the cancel arrived.
	system.builder.setFaults({ hang: true });
	for (const tx of [bundle, single]) assert.equal(await cancel(tx), true);
	assert.equal(await relay.client.send(own.raw, SOFT), own.hash);
	const mark = await killAndStart();

	const expected: readonly [Signed, string, object][] = [
		[bundle, "eth_cancelBundle", { replacementUuid: uuidOf(bundle) }],
		[single, "eth_cancelPrivateTransaction", { txHash: single.hash }],
		[soft, "eth_cancelBundle", { replacementUuid: uuidOf(soft) }],
	];
	for (const [tx, method, param] of expected) {
		const told = await until("the builder told again", () => cancels(tx, mark)[0]);
		assert.deepEqual([told.method, told.params], [method, [param]]);
		assert.match(told.effects.join(), /cancelled/);
	}
	const ended = [bundle, single, soft, own];
	for (const tx of ended) await assertDead(tx);
	const another = toSelf(2, 1n);
	assert.equal(await relay.client.send(another.raw, "/fast"), another.hash);
	await system.nextBlock(relay);
	for (const tx of [...ended, another]) {
		await assertDead(tx);
		assert.equal(wasSent(tx, mark), false);
	}
	for (const tx of [own, another]) assert.equal(wasSent(tx, 0), false);
	const fresh = [0, 1, 2].map((account) => signedOn(system.chain, account, { value: 9n })) as Signeds;
	for (const tx of fresh) await relay.client.send(tx.raw, "/nochecks");
	await system.delivered(
		fresh.map(({ raw }) => raw),
		mark,
	);
	await system.nextBlock(relay);
	for (const tx of fresh) assert.equal(await relay.client.stage(tx.hash), "INCLUDED");
	for (const tx of [bundle, single, soft]) assert.equal(cancels(tx, mark).length, 1, "told more than once");
});

test("a clean stop after a cancel sends no builder a second one", async () => {
	const tx = signedOn(system.chain, 4);
	await relay.client.send(tx.raw, "/nochecks");
	await system.delivered([tx.raw]);
	assert.equal(await cancel(tx), true);
	await until("the builder told", () => cancels(tx).length === 1);
	assert.equal((await relay.kill("SIGTERM")).code, 0);
	relay = await system.start();
	await assertDead(tx);
	await system.nextBlock(relay);
	assert.equal(cancels(tx).length, 1);
});

test("killed, and the cancelled one is mined meanwhile: it is INCLUDED at the start", async () => {
	const tx = signedOn(system.chain, 3);
	await relay.client.send(tx.raw);
	await system.delivered([tx.raw]);
	system.builder.setFaults({ hang: true });
	assert.equal(await cancel(tx), true);
	await killAndStart(async () => {
		const built = await system.builder.buildBlock();
		assert.deepEqual(built.transactions, [tx.hash]);
	});
	await until("it is included", async () => (await relay.client.stage(tx.hash)) === "INCLUDED");
	const { error } = await relay.client.ask("eth_cancelTransaction", [tx.hash]);
	assert.equal(
		error?.message,
		"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key",
	);
});

test("killed during many cancels: all that were answered true stay cancelled, the others are pending or cancelled", async () => {
	const crowd = await prepareCrowd();
	await Promise.all(crowd.map((tx) => relay.client.send(tx.raw)));
	await system.delivered(crowd.map(({ raw }) => raw));
	const confirmed = new Set<Signed>();
	await Promise.all(
		crowd.map(async (tx) => {
			// Connections break when it is killed, as expected.
			const answer = await cancel(tx).catch(() => null);
			if (answer !== true) return;
			confirmed.add(tx);
			if (confirmed.size === CROWD / 3) relay.signal("SIGKILL");
		}),
	);
	assert.equal((await relay.ended()).signal, "SIGKILL");
	assert.ok(confirmed.size >= CROWD / 3, `${confirmed.size} were confirmed`);
	const mark = await system.lastRequest();
	relay = await system.start();

	const stages = new Map<Signed, string | undefined>();
	for (const tx of crowd) stages.set(tx, await relay.client.stage(tx.hash));
	for (const tx of confirmed) assert.equal(stages.get(tx), "CANCELLED");
	const alive = crowd.filter((tx) => stages.get(tx) !== "CANCELLED");
	await system.delivered(
		alive.map(({ raw }) => raw),
		mark,
	);
	await until("every cancel at the builder", () =>
		crowd.every((tx) => alive.includes(tx) || cancels(tx).length > 0),
	);
	await system.nextBlock(relay);
	for (const tx of crowd) {
		const isAlive = alive.includes(tx);
		assert.equal(await relay.client.stage(tx.hash), isAlive ? "INCLUDED" : "CANCELLED");
		assert.equal(wasSent(tx, mark), isAlive);
	}
});

async function prepareCrowd(): Promise<readonly Signed[]> {
	const accounts = Array.from({ length: CROWD }, (_, i) => testAccount(20_000 + i));
	await system.chain.fund(accounts);
	return accounts.map((by) => signed({ by, gasLimit: 21_000 }));
}
