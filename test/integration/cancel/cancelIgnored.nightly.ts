// A builder that confirms a cancel and mines the transaction nevertheless: relay and boost say the
// same of it by every interface, which is what the chain says, before and after its block leaves
// the chain. One that was cancelled beside it, and is mined by nobody, is the control.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { FeedClient, type Told } from "../../support/feeds.ts";
import { metricsOf, RelayClient } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";
import { NOT_PENDING } from "../../support/userFixtures.ts";

let fixture: BoostFixture;
let doors: readonly RelayClient[];
before(async () => {
	fixture = await startBoostFixture({ system: { proxied: true }, unwired: true });
	doors = [fixture.system.client, new RelayClient(fixture.boost.url)];
});
after(() => fixture?.stop());

/** A user's transaction, and what all its followers receive. */
async function followed() {
	const actor = await fixture.users.actor();
	const tx = actor.sign();
	const sockets: FeedClient[] = [];
	for (const { url } of doors) {
		const socket = await FeedClient.open(`${url.replace("http", "ws")}/ws`);
		await socket.subscribe("service_transactionStatus", tx.hash);
		sockets.push(socket);
	}
	assert.equal(await fixture.boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	await fixture.users.waitUntilSent(tx);
	const streams = await Promise.all(
		doors.map(({ url }) => EventStreamReader.open(`${url}/tx/${tx.hash}/events`)),
	);
	return { actor, tx, sockets, streams };
}
type Followed = Awaited<ReturnType<typeof followed>>;

/** Boost's answer to a cancel: the result, or code and message. */
async function cancels({ hash }: Signed): Promise<unknown> {
	const { result, error } = await (doors[1] as RelayClient).ask("eth_cancelTransaction", [hash], "/fast");
	return error === undefined ? result : `${error.code} ${error.message}`;
}

/** The stages that a websocket received, each change once. */
function stagesOf(told: readonly Told[]): readonly unknown[] {
	return told.map(({ stage }) => stage).filter((stage, i, all) => stage !== all[i - 1]);
}

/**
 * Waits until both doors, and those who follow it, say that it is at `stage`, as the chain does.
 */
async function isEverywhere({ actor, tx, sockets, streams }: Followed, stage: string): Promise<void> {
	const receipt = (await fixture.system.chain.rpc("eth_getTransactionReceipt", [tx.hash])) as Record<
		string,
		unknown
	> | null;
	assert.equal(receipt !== null, stage === "INCLUDED", "the chain decides");
	for (const door of doors) {
		await until(`${stage} at ${door.url}`, async () => (await door.stage(tx.hash)) === stage);
		const { status, blockNumber } = await door.status(tx.hash);
		assert.equal(status, receipt === null ? "FAILED" : "INCLUDED");
		assert.equal(blockNumber ?? null, receipt === null ? null : Number(receipt.blockNumber));
		assert.deepEqual(await door.call("eth_getTransactionReceipt", [tx.hash]), receipt);
		const found = (await door.call("eth_getTransactionByHash", [tx.hash])) as Record<string, unknown> | null;
		assert.equal(found?.blockNumber ?? null, receipt?.blockNumber ?? null);
		assert.equal(await pendingNonce(door, actor), receipt === null ? 0 : 1);
		const page = (await (await fetch(`${door.url}/tx/${tx.hash}/events`)).json()) as { stage: unknown };
		assert.equal(page.stage, stage);
	}
	for (const socket of sockets)
		await until(`its websocket receives ${stage}`, () => socket.told.at(-1)?.stage === stage);
	const [first, second] = streams.map(({ messages }) => messages.map(({ data }) => data.type));
	await until("both streams tell the same", () => first?.join() === second?.join());
	assert.equal((await fixture.boost.status()).journal.depth, 0, "boost's status");
}

async function pendingNonce(door: RelayClient, { address }: Actor): Promise<number> {
	return Number(await door.call("eth_getTransactionCount", [address, "pending"]));
}

/** How many transactions came to a stage, as the metrics say. */
async function counted(stage: string): Promise<number> {
	const text = await metricsOf(fixture.system.core.url);
	return Number(new RegExp(`^relay_stage_total\\{stage="${stage}"\\} (\\d+)$`, "m").exec(text)?.[1]);
}

it("is INCLUDED for everybody, and CANCELLED again when its block has left the chain", async () => {
	const [mined, control] = [await followed(), await followed()];
	const before = { cancelled: await counted("CANCELLED"), included: await counted("INCLUDED") };
	for (const { tx } of [mined, control]) {
		assert.equal(await cancels(tx), true);
		await fixture.users.event(
			tx,
			"delivered",
			({ kind, answer }) => kind === "cancel" && answer === "accepted",
		);
	}
	for (const one of [mined, control]) await isEverywhere(one, "CANCELLED");
	assert.deepEqual(
		[await counted("CANCELLED"), await counted("INCLUDED")],
		[before.cancelled + 2, before.included],
	);

	await fixture.users.publish(mined.tx);
	await fixture.users.passBlock();
	await isEverywhere(mined, "INCLUDED");
	await isEverywhere(control, "CANCELLED");
	assert.deepEqual(
		[await counted("CANCELLED"), await counted("INCLUDED")],
		[before.cancelled + 2, before.included + 1],
	);
	assert.equal(await cancels(mined.tx), NOT_PENDING);
	assert.equal(await cancels(control.tx), true, "again by its owner");
	// Boost knows it from the chain as well.
	await fixture.goesOut();
	const boost = doors[1] as RelayClient;
	assert.deepEqual(
		[await boost.stage(mined.tx.hash), await boost.stage(control.tx.hash)],
		["INCLUDED", "CANCELLED"],
	);
	await fixture.comesBack();

	const release = fixture.system.node?.hold();
	await fixture.system.chain.rpc("anvil_reorg", [1, []]).finally(release);
	for (const one of [mined, control]) await isEverywhere(one, "CANCELLED");
	for (const { told } of mined.sockets)
		assert.deepEqual(stagesOf(told).slice(-3), ["CANCELLED", "INCLUDED", "CANCELLED"]);
	for (const { told } of control.sockets) assert.equal(stagesOf(told).at(-1), "CANCELLED");
	assert.ok(control.sockets.every(({ told }) => told.every(({ stage }) => stage !== "INCLUDED")));
	for (const { sockets, streams } of [mined, control]) {
		for (const socket of sockets) socket.close();
		for (const stream of streams) stream.leave();
	}
});
