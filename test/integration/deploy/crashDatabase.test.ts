// SIGKILL of PostgreSQL, of the relay on it, and of both at once in the middle of submissions and cancels: what was answered
// is held, and what was cancelled is never sent again. All three are real processes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
	allSent,
	assertHeld,
	prepareCrowd,
	SENDERS,
	type Submissions,
	submitCrowd,
} from "../../support/crashCrowd.ts";
import { type PlainBuilder, startPlainBuilder } from "../../support/plainBuilder.ts";
import { type PostgresServer, startPostgres } from "../../support/postgresServer.ts";
import { readyStatus } from "../../support/processes.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

/** Builders that get a transaction by itself are told its hash when it is cancelled. */
const PATH = "/nochecks";
const KILL_AT = 450;
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
	test(`SIGKILL of ${victims.join(" and ")} after ${KILL_AT} of 1,000 answers: nothing is lost, and nothing cancelled is sent`, async () => {
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
			// On a busy machine one of a thousand writes may take longer than a relay waits: it is refused then, and not lost.
			mayFail: true,
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
		const kept = new Set([...answered].filter((hash) => !tried.has(hash)));
		await assertHeld(relay.url, [...kept]);
		for (const hash of cancelled) assert.equal((await relay.client.status(hash)).stage, "CANCELLED", hash);
		const due = unbroken(submissions, kept);
		assert.ok(due.length > 0, "nothing can be sent");
		await allSent(builder, due);
		const sent = builder.raws();
		for (const hash of cancelled) assert.ok(!sent.has(submissions.get(hash) ?? ""), `${hash} was sent`);
		await relay.kill();
	});
}

/** What of `held` does not wait for a nonce that is free. */
function unbroken(submissions: Submissions, held: ReadonlySet<string>): string[] {
	const stopped = new Set<number>();
	return [...submissions].flatMap(([hash, raw], i) => {
		const sender = i % SENDERS;
		if (!held.has(hash)) stopped.add(sender);
		return stopped.has(sender) ? [] : [raw];
	});
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
