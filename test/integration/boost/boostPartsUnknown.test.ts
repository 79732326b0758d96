// Two boost instances, of which the second one gets no answer from the database: it does not know
// what the first one has, so it refuses what depends on that. Only the first one's way to the
// upstreams fails; the second one reaches the relay.

import assert from "node:assert/strict";
import { after, afterEach, before, it } from "node:test";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { newDatabase } from "../../support/engine.ts";
import type { WireAnswer, WireStatus } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { mineAll } from "../../support/systems.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcpProxy.ts";
import { until } from "../../support/until.ts";

const UNKNOWN = /^the database did not answer, so it is not known whether another boost instance has /;

let fixture: BoostFixture;
/** Between the database and the second instance. */
let wire: TcpProxy;
let one: BoostClient;
let other: BoostClient;
before(async () => {
	const DATABASE_URL = new URL(await newDatabase());
	wire = await startTcpProxy(Number(DATABASE_URL.port));
	fixture = await startBoostFixture({
		system: { env: { CANCEL_POLICY: "origin" } },
		boost: { DATABASE_URL: DATABASE_URL.toString(), BREAKER_HOLD_MAX_MS: "100" },
	});
	one = fixture.boost;
	DATABASE_URL.port = String(wire.port);
	const env = { DATABASE_URL: DATABASE_URL.toString(), RELAY_URL: fixture.system.client.url };
	other = await fixture.startBoost({ env });
	await until("the first one knows of it", async () => (await one.status()).journal.part?.count === 2);
});
after(async () => {
	await fixture?.stop();
	await wire?.stop();
});
afterEach(async () => {
	wire.mend();
	await fixture.recovers();
	await other.reaches("its journal is on disk", ({ journal }) => journal.durable);
});

const send = async (boost: BoostClient, { raw }: Signed) =>
	(await boost.call("eth_sendRawTransaction", [raw])).json as WireAnswer;
const cancel = async (boost: BoostClient, { hash }: Signed) =>
	(await boost.call("eth_cancelTransaction", [hash])).json as WireAnswer;
const byHash = async (boost: BoostClient, { hash }: Signed) =>
	(await boost.call("eth_getTransactionByHash", [hash])).json as WireAnswer;
const pending = async (boost: BoostClient, { address }: Actor) =>
	(await boost.call("eth_getTransactionCount", [address, "pending"])).json as WireAnswer;
/** How often the fallback was sent it. */
const sentToFallback = ({ raw }: Signed) =>
	fixture.wires.fallback
		.requests()
		.flatMap(({ calls }) => calls)
		.filter(({ method, params }) => method === "eth_sendRawTransaction" && params[0] === raw).length;

function refuses(answer: WireAnswer, what: string): void {
	assert.equal(answer.error?.code, -32603, `${what}: ${JSON.stringify(answer)}`);
	assert.match(answer.error.message, UNKNOWN);
}

/** A transaction that the first instance has. */
async function held(by: Actor): Promise<Signed> {
	const tx = by.sign();
	assert.equal((await send(one, tx)).result, tx.hash);
	return tx;
}

async function firstIsCutOff(): Promise<void> {
	await fixture.wires.fallback.set({ kind: "refuse" });
	await fixture.wires.relay.set({ kind: "refuse" });
	await one.reaches("it reaches nobody", ({ relay, fallback }) => {
		return relay.state !== "closed" && fallback?.state !== "closed";
	});
}

async function actors(): Promise<[Actor, Actor]> {
	const made = [await fixture.users.actor(), await fixture.users.actor()] as [Actor, Actor];
	await fixture.users.passBlock();
	return made;
}

for (const [how, begin] of [
	["is cut off", () => wire.cut()],
	["hangs", () => wire.freeze()],
] as const) {
	it(`refuses a cancel while its database ${how}, and sends nothing once one was accepted`, async () => {
		const [by, control] = await actors();
		const [tx, kept] = [await held(by), await held(control)];
		await firstIsCutOff();
		begin();
		refuses(await cancel(other, tx), "the cancel");
		wire.mend();
		const isAccepted = async () => (await cancel(other, tx)).result === true;
		await until("the cancel is accepted", isAccepted);
		await fixture.wires.fallback.set(null);
		await until("the first one sends what it has", () => sentToFallback(kept) > 0);
		assert.equal(sentToFallback(tx), 0);
		await fixture.recovers();
		await mineAll(fixture.system, [kept]);
		assert.equal(((await one.get(`/tx/${tx.hash}`)).json as WireStatus).stage, "CANCELLED");
	});
}

it("refuses a submission, and so revives nothing that was cancelled at the other instance", async () => {
	const [by, stranger] = await actors();
	const tx = await held(by);
	await firstIsCutOff();
	assert.match((await cancel(one, tx)).error?.message ?? "", /cancels it there as soon as possible/);
	wire.cut();
	refuses(await send(other, tx), "the cancelled transaction");
	refuses(await send(other, stranger.sign()), "a new transaction");
	wire.mend();
	await until("it is known again", async () => (await send(other, tx)).result === tx.hash);
	await fixture.recovers();
	await until("the relay knows", async () => (await fixture.users.status(tx)).stage === "CANCELLED");
	assert.equal(sentToFallback(tx), 0);
});

it("refuses what the other instance's rows decide: status, journal, pending nonce and transaction", async () => {
	const [by, control] = await actors();
	const mined = await held(control);
	await mineAll(fixture.system, [mined]);
	const tx = await held(by);
	wire.cut();
	refuses(await byHash(other, tx), "the transaction");
	refuses(await pending(other, by), "the pending nonce");
	for (const path of [`/tx/${tx.hash}`, `/tx/${tx.hash}/journal`]) {
		const { status, json } = await other.get(path);
		assert.equal(status, 503, path);
		assert.match((json as { error: string }).error, UNKNOWN);
	}
	// In a block it is whatever anybody has of it. On a busy machine a probe of the relay may have
	// come late.
	await until("the mined one is returned", async () => {
		return ((await byHash(other, mined)).result as { hash: string } | null | undefined)?.hash === mined.hash;
	});
	await until("its status is returned", async () => {
		return ((await other.get(`/tx/${mined.hash}`)).json as WireStatus).status === "INCLUDED";
	});
	wire.mend();
	await until("the nonce is known again", async () => (await pending(other, by)).result === "0x1");
	await mineAll(fixture.system, [tx]);
});
