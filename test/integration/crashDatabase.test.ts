// SIGKILL of PostgreSQL, of the relay on it, and of both at once in the middle of submissions and cancels: what was answered
// is held, and what was cancelled is never sent again. All three are real processes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
	allSent,
	assertHeld,
	assertMined,
	prepareCrowd,
	SENDERS,
	type Submissions,
	submitCrowd,
} from "../support/crashCrowd.ts";
import { type PlainBuilder, startPlainBuilder } from "../support/plainBuilder.ts";
import { type PostgresServer, startPostgres } from "../support/postgresServer.ts";
import { type ProcessSystem, startProcessSystem } from "../support/processSystem.ts";
import { RelayClient } from "../support/relayClient.ts";
import { readyStatus } from "../support/relayProcess.ts";
import { until } from "../support/until.ts";

/** Builders that get a transaction by itself are told its hash when it is cancelled. */
const PATH = "/nochecks";
const KILL_AT = 900;
/** One in so many is cancelled as soon as it is answered. */
const CANCELLED_EVERY = 10;

let system: ProcessSystem;
let builder: PlainBuilder;
let postgres: PostgresServer;
before(async () => {
	postgres = await startPostgres();
	builder = await startPlainBuilder();
	system = await startProcessSystem({ builders: [{ name: "plain", url: builder.url }] });
});
after(async () => {
	await system.stop();
	await builder.stop();
	await postgres.stop();
});

for (const [round, victims] of [["database"], ["relay"], ["database", "relay"]].entries()) {
	test(`SIGKILL of ${victims.join(" and ")} after ${KILL_AT} of 2,000 answers: nothing is lost, and nothing cancelled is sent`, async () => {
		const submissions = await prepareCrowd(system, round);
		const env = { DATABASE_URL: await postgres.newDatabase() };
		const first = await system.start(env);
		const client = new RelayClient(first.url);
		/** Cancelled, and what may be: the kill swallowed the answer. */
		const cancelled = new Set<string>();
		const tried = new Set<string>();
		const cancels: Promise<unknown>[] = [];
		let killed: Promise<void> | null = null;
		const kill = async (): Promise<void> => {
			if (victims.includes("relay")) first.signal("SIGKILL");
			if (victims.includes("database")) await postgres.kill();
		};
		builder.reset();
		const answered = await submitCrowd(first.url, PATH, submissions, {
			mayFail: victims.includes("database"),
			onAnswer(count, hash) {
				if (count === KILL_AT) killed = kill();
				if (count % CANCELLED_EVERY !== 0) return;
				tried.add(hash);
				const cancel = client.call("eth_cancelTransaction", [hash], PATH);
				cancels.push(cancel.then((done) => done === true && cancelled.add(hash)).catch(() => {}));
			},
		});
		await Promise.all(cancels);
		await killed;
		assert.ok(answered.size >= KILL_AT, `${answered.size} were answered`);
		assert.ok(answered.size < submissions.size, "all were answered before the kill");
		assert.ok(cancelled.size > 0, "nothing was cancelled");

		if (victims.includes("database")) await postgres.start();
		if (!victims.includes("relay")) {
			await until("it is ready again", async () => (await readyStatus(first.url)) === 200, 20_000);
			assertNoneSentAgain(cancelled, submissions);
			await first.kill();
		}
		assertNoneSentAgain(cancelled, submissions);
		builder.reset();
		const relay = await system.start(env);
		const kept = [...answered].filter((hash) => !tried.has(hash));
		await assertHeld(relay.url, kept);
		for (const hash of cancelled) assert.equal((await relay.client.status(hash)).stage, "CANCELLED", hash);

		const left = new Map([...submissions].filter(([hash]) => !tried.has(hash)));
		assert.equal((await submitCrowd(relay.url, PATH, left)).size, left.size);
		// What is behind one that was cancelled waits: its nonce may still be used.
		const minable = unbroken(submissions, tried);
		await allSent(builder, [...minable.values()]);
		const sent = builder.raws();
		for (const hash of cancelled) assert.ok(!sent.has(submissions.get(hash) ?? ""), `${hash} was sent`);
		await assertMined(system, relay, minable);
		await relay.kill();
	});
}

/** What can be mined where `cancelled` can't: of each sender all before his first cancelled one. */
function unbroken(submissions: Submissions, cancelled: ReadonlySet<string>): Submissions {
	const stopped = new Set<number>();
	return new Map(
		[...submissions].filter(([hash], i) => {
			const sender = i % SENDERS;
			if (cancelled.has(hash)) stopped.add(sender);
			return !stopped.has(sender);
		}),
	);
}

/** What the builder was told to forget it is not sent again. */
function assertNoneSentAgain(cancelled: ReadonlySet<string>, submissions: Submissions): void {
	for (const hash of cancelled) {
		const told = builder.bodies.findIndex(
			(body) => body.includes("eth_cancelPrivateTransaction") && body.includes(hash),
		);
		if (told === -1) continue;
		const raw = submissions.get(hash) ?? "";
		assert.ok(!builder.bodies.slice(told).some((body) => body.includes(raw)), `${hash} was sent again`);
	}
}
