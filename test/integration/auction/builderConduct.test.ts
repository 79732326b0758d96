// Builders that break their promises, on a real chain: each is named to the operator by what it
// does, and the honest one is not.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { id } from "ethers";
import type { Finding } from "../../../relay/domain/conductFindings.ts";
import type { ConductSum } from "../../../relay/ingress/builderConduct.ts";
import type { CoreState } from "../../../relay/ingress/operators.ts";
import type { DevBuilder } from "../../devnet/devBuilder.ts";
import { MISCONDUCTS, type Misconduct } from "../../devnet/misconduct.ts";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { EMITTER } from "../../support/biddingFixture.ts";
import { snippet } from "../../support/documents.ts";
import { isEdge } from "../../support/engine.ts";
import { LeapingClock } from "../../support/leapingClock.ts";
import { ADMIN_TOKEN } from "../../support/relayClient.ts";
import { ETHER } from "../../support/relayFixture.ts";
import { accountOf } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

/** Every builder is called as what it does. */
const NAMES = ["honest", ...MISCONDUCTS] as const;
const NAMED: Readonly<Record<string, Finding>> = {
	leaks: "leaks",
	strips: "strips",
	halfRefunds: "underpays",
	ignoresCancels: "ignoresCancels",
};
/** At this length every head sends a canary. */
const SLOT_SECONDS = 60;
const CANARY = accountOf(id("the account of the canaries"));
const BID = ETHER / 100n;
const AUTHORIZATION = { authorization: `Bearer ${ADMIN_TOKEN}` };
/** Longer than before its block a builder must have answered, in ms. */
const WELL_BEFORE_MS = 5_000;

const skip = isEdge ? "the core is a process with a clock of its own" : false;
const run = promisify(execFile);
const clock = new LeapingClock();
let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction({
		clock,
		chain: { slotSeconds: SLOT_SECONDS },
		builders: NAMES.map((name) => ({ name })),
		builder: (name) => ({
			builds: true,
			coinbaseKey: id(`coinbase of ${name}`),
			misconduct: MISCONDUCTS.find((one): one is Misconduct => one === name),
		}),
		env: { CANARY_KEY: CANARY.keyHex, CANARY_PER_DAY: "1440" },
	});
	await fixture.setBalance(CANARY.address, ETHER);
});
after(() => fixture.system.stop());

async function coreState(): Promise<CoreState> {
	const answer = await fetch(`${fixture.system.client.url}/admin/state`, { headers: AUTHORIZATION });
	return ((await answer.json()) as { core: CoreState }).core;
}

async function sums(): Promise<readonly ConductSum[]> {
	const answer = await fetch(`${fixture.system.client.url}/operator/builders.json`, {
		headers: AUTHORIZATION,
	});
	return (await answer.json()) as readonly ConductSum[];
}

async function sumOf(name: string): Promise<Partial<ConductSum>> {
	return (await sums()).find(({ builder }) => builder === name) ?? {};
}

/** Has the builder build the next block, and waits until the relay has handled it. */
async function blockOf(builder: DevBuilder): Promise<void> {
	const { number } = await builder.buildBlock();
	await fixture.seesHead(number);
}

for (const name of NAMES) {
	// To name a builder that leaves out backruns takes ten.
	const count = name === "strips" || name === "honest" ? 10 : 3;
	test(`${name}: ${count} transactions with bids, and two that are cancelled`, { skip }, async () => {
		const builder = fixture.builder(name);
		const path = `/fast?hint=calldata&builder=${name}`;
		const bids = Array.from({ length: count }, async () => {
			const user = await fixture.actor(ETHER);
			const target = user.sign({ to: EMITTER });
			await fixture.submit(path, target);
			await until("it is shared", async () => (await fixture.status(target)).shared);
			const { backrun } = await fixture.offer(target, BID);
			await fixture.out(Object.assign(target, { user }), backrun, builder);
			return target;
		});
		const targets = await Promise.all(bids);
		const users = await Promise.all([fixture.actor(ETHER), fixture.actor(ETHER)]);
		const cancelled = users.map((user) => user.sign());
		await fixture.submit(path, ...cancelled);
		for (const tx of cancelled) await fixture.waitUntilSent(tx, { builders: [name] });
		for (const { hash } of cancelled) await fixture.system.client.call("eth_cancelTransaction", [hash]);
		for (const tx of cancelled)
			await fixture.event(tx, "delivered", ({ kind, answer }) => kind === "cancel" && answer === "accepted");
		// Anybody may mine public transactions. The relay sees them first: the leap may time out a call
		// that is reading them from the node.
		for (const tx of name === "leaks" ? cancelled : []) await fixture.event(tx, "seenInPublic");
		clock.leap(WELL_BEFORE_MS);
		await blockOf(builder);
		for (const target of targets) await fixture.reaches(target, "INCLUDED");
		const told = await until(`what ${name} did`, async () => {
			const sum = await sumOf(name);
			const { backrun = 0, noBackrun = 0, otherBackrun = 0 } = sum;
			return backrun + noBackrun + otherBackrun === count && sum;
		});
		const { sent, accepted, refused, failed, mined, backrun, shortRefunds, minedAfterCancel } = told;
		const isCancelled = name !== "ignoresCancels";
		assert.deepEqual([sent, accepted, refused, failed], [count + 2, count + 2, 0, 0]);
		assert.deepEqual(
			[mined, minedAfterCancel],
			name === "leaks" ? [count + 2, 0] : isCancelled ? [count, 0] : [count + 2, 2],
		);
		assert.equal(backrun, name === "strips" ? 0 : count);
		assert.equal(shortRefunds, name === "halfRefunds" ? count : 0);
		const [owed, paid] = [BigInt(told.owedWei ?? 0), BigInt(told.paidWei ?? 0)];
		if (name === "strips") assert.equal(owed, 0n);
		else assert.equal(paid < owed, name === "halfRefunds", `${paid} of ${owed} wei`);
	});
}

test("with more canaries, each dishonest builder is named, and the honest one is not", { skip }, async () => {
	const honest = fixture.builder("honest");
	const leaked = async () => (await sumOf("leaks")).leakedCanaries ?? 0;
	while ((await leaked()) < 2) {
		// The last one is cancelled, and if the public mempool has it, that is a sighting.
		clock.leap((SLOT_SECONDS * 1_000) / 2);
		await until("no canary is pending", async () => (await coreState()).pool.pending === 0);
		const sent = await canariesAccepted();
		await blockOf(honest);
		await until("another canary", async () => (await canariesAccepted()) > sent);
	}
	const found = (await sums()).map(({ builder, findings }) => [builder, findings.join()]);
	const expected = NAMES.map((name) => [name, NAMED[name] ?? ""]);
	assert.deepEqual(found.sort(), expected.sort());
	for (const { builder, leakedCanaries } of await sums())
		assert.equal(leakedCanaries > 0, builder === "leaks", builder);
});

test("the table by day is a CSV for the operator alone, and a restart keeps it", { skip }, async () => {
	const url = `${fixture.system.client.url}/operator/builders.csv`;
	assert.equal((await fetch(url)).status, 401);
	const answer = await fetch(url, { headers: AUTHORIZATION });
	assert.equal(answer.headers.get("content-type"), "text/csv; charset=utf-8; header=present");
	const text = await answer.text();
	const command = snippet("docs/operators.md", 'curl -H "Authorization: Bearer $ADMIN_TOKEN"');
	const here = command.replace("http://127.0.0.1:8080", fixture.system.client.url);
	const { stdout } = await run("sh", ["-c", here], { env: { ...process.env, ADMIN_TOKEN } });
	assert.equal(stdout, text);
	const [header = "", ...rows] = text.trimEnd().split("\r\n");
	const names = header.split(",");
	const sumsOfRows = new Map<string, number>();
	for (const row of rows.map((line) => line.split(","))) {
		const [builder = "", mined] = [row[names.indexOf("builder")], row[names.indexOf("mined")]];
		sumsOfRows.set(builder, (sumsOfRows.get(builder) ?? 0) + Number(mined));
	}
	const told = await sums();
	assert.deepEqual(
		[...sumsOfRows].sort(),
		told.map(({ builder, mined }) => [builder, mined] as [string, number]).sort(),
	);
	await fixture.system.restart();
	const withoutCanaries = (all: readonly ConductSum[]) =>
		all.map(({ canaries: _, leakedCanaries: __, findings: ___, ...rest }) => rest);
	assert.deepEqual(withoutCanaries(await sums()), withoutCanaries(told));
});

async function canariesAccepted(): Promise<number> {
	return (await sums()).reduce((sum, { canaries }) => sum + canaries, 0);
}
