// SIGKILL in the middle of a thousand submissions, of the relay, of its PostgreSQL and of both at once: what was answered is
// kept, sent again and mined, and what was cancelled is never sent again. All of them are real processes; clients see their
// connections break, as wallets would.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
	allSent,
	assertHeld,
	assertMined,
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

const ROUNDS = [
	{ killAt: 20, path: "/fast" },
	{ killAt: 450, path: "/nochecks" },
	// There are two hundred requests under way at once: with fewer left all may be answered before it is gone.
	{ killAt: 700, path: "/fast" },
];
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
	// The dev builder tries each bundle by itself: 1,000 would take it five seconds a round.
	builder = await startPlainBuilder();
	system = await startProcessSystem({ builders: [{ name: "plain", url: builder.url }] });
});
after(async () => {
	await system.stop();
	await builder.stop();
	await postgres.stop();
});

for (const [round, { killAt, path }] of ROUNDS.entries()) {
	test(`SIGKILL after ${killAt} of 1,000 answers on ${path}: all that was answered is held and mined`, async () => {
		const submissions = await prepareCrowd(system, round);
		// A folder of its own: what earlier rounds left behind would be read again at each start.
		const env = { DATA_DIR: join(system.folder, `round${round}`) };
		const killed = await system.start(env);
		const answered = await submitCrowd(killed.url, path, submissions, {
			onAnswer(count) {
				if (count === killAt) killed.signal("SIGKILL");
			},
		});
		assert.equal((await killed.ended()).signal, "SIGKILL");
		assert.ok(answered.size >= killAt, `${answered.size} were answered`);
		assert.ok(answered.size < submissions.size, "all were answered before it was killed");

		builder.reset();
		const relay = await system.start(env);
		await assertHeld(relay.url, [...answered]);

		// The others' senders never heard of theirs: they send them again, as wallets do.
		const again = await submitCrowd(relay.url, path, submissions);
		assert.equal(again.size, submissions.size);
		await allSent(builder, [...submissions.values()]);
		await assertMined(system, relay, submissions);
		await relay.kill();
	});
}

for (const [round, victims] of [["database"], ["relay"], ["database", "relay"]].entries()) {
	test(`SIGKILL of ${victims.join(" and ")} after ${KILL_AT} of 1,000 answers: nothing is lost, and nothing cancelled is sent`, async () => {
		const submissions = await prepareCrowd(system, ROUNDS.length + round);
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
