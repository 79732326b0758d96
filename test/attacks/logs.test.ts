// Tests what one client's subscriptions to logs, its filters and its pings may cost the others: no turn of the event loop is long,
// no memory is filled by what nobody reads, and an honest user's submissions, bids, reads and logs come in time.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { EMITS_MANY } from "../support/attacks/attackContracts.ts";
import { Attacker } from "../support/attacks/attacker.ts";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { HonestUser } from "../support/attacks/honestUser.ts";
import { assertServed, Measuring } from "../support/attacks/measuring.ts";
import { forgetPeak, memoryOf } from "../support/attacks/processFigures.ts";
import { attackerAddress, HONEST } from "../support/attacks/wire.ts";
import { heldSoFar, metered, turnLimit } from "../support/eventLoopTime.ts";
import { FeedClient } from "../support/feeds.ts";
import { type RelayProcess, startRelayProcess } from "../support/processes.ts";
import { rawTransaction, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const EMITTER = `0x${"e3".repeat(20)}`;
const MIB = 1024 * 1024;
const EMITTING = testAccount(3_000_000);
/** Events of a block; the relay reads 8 MiB of them at most. */
const EVENTS = 4_000;
/** Of the longest turns of the event loop in some rounds the shortest counts: the machine is busy with five processes. */
const ROUNDS = 5;

let fixture: AttackFixture;
let boost: RelayProcess;
let folder: string;
/** Of boost. */
let attacker: Attacker;
/** Of a user of boost. */
let measuring: Measuring;
let limitMs: number;
let nonce = 0;
let addresses = 10;

/** A relay of its own: what it is filled with by one kind of attack is not counted against the next. */
async function begin(): Promise<void> {
	fixture = await startAttackFixture({ isMetered: true, env: { BOOST_SECRET: "of both" } });
	limitMs = turnLimit();
	nonce = 0;
	await fixture.chain.rpc("anvil_setCode", [EMITTER, EMITS_MANY]);
	await fixture.fund(EMITTING.address, 10n ** 21n);
}

async function beginBoost(): Promise<void> {
	folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	boost = await startRelayProcess({
		...metered("boost-proxy/main.ts"),
		env: {
			...{ PORT: "0", HOST: "127.0.0.1", RELAY_URL: fixture.relay.url, DATA_DIR: folder },
			...{ ETH_RPC_URL: fixture.chain.url, FALLBACK_URL: "none", BOOST_SECRET: "of both" },
		},
	});
	attacker = new Attacker(boost.url);
	const { chain, builder } = fixture;
	const user = await HonestUser.arrive({
		relay: boost,
		chain,
		builder,
		patienceMs: 6_000,
		accounts: 700_000,
	});
	measuring = new Measuring({ user, pid: boost.pid, say: (line) => fixture.say(line) });
}

/** Mines a block with {@link EVENTS} events. */
async function emit(): Promise<void> {
	const data = `0x${EVENTS.toString(16).padStart(64, "0")}`;
	const call = { by: EMITTING, nonce, to: EMITTER, data, gasLimit: 8_000_000 };
	nonce += 1;
	await fixture.chain.rpc("eth_sendRawTransaction", [`0x${rawTransaction(call).toString("hex")}`]);
	await fixture.passBlock();
}

/** An honest client of `url` with one subscription to the events; `seen` waits until it has those of so many blocks. */
async function follow(url: string) {
	const client = await FeedClient.open(`${url.replace("http", "ws")}/ws`, { localAddress: HONEST });
	const id = await client.subscribe("logs", { address: EMITTER });
	let blocks = 0;
	return {
		client,
		async next(): Promise<void> {
			blocks += 1;
			await until("its logs", () => client.received(id).length >= blocks * EVENTS);
			assert.equal(client.received(id).length, blocks * EVENTS);
		},
	};
}

/** An attacker's that has its whole share of everything. */
function newAddress(): string {
	addresses += 1;
	return attackerAddress(addresses);
}

/** The shortest, in ms, of the longest turns of `one` while some rounds of `work` go on, each behind its preparation. */
async function heldBy(
	one: RelayProcess,
	prepare: () => Promise<unknown>,
	work: () => Promise<unknown>,
): Promise<number> {
	const held: number[] = [];
	do {
		await prepare();
		await heldSoFar(one);
		await work();
		held.push(await heldSoFar(one));
	} while (held.length < ROUNDS && Math.min(...held) >= limitMs);
	fixture.say("the longest turns in ms:", held.map(Math.round));
	return Math.min(...held);
}

/** Sixteen subscriptions get more than a connection may leave unread, one gets less. */
const READERS = [
	{ size: 16, isEqual: true, reads: false },
	{ size: 16, isEqual: false, reads: true },
	{ size: 1, isEqual: false, reads: false },
	{ size: 1, isEqual: true, reads: true },
];
const titleOf = ({ size, isEqual, reads }: (typeof READERS)[number]): string =>
	`60 websockets with ${size} ${isEqual ? "equal" : "different"} filters of logs each, ${reads ? "read at once" : "never read"}`;

/** In each round an attacker at a new address subscribes, and a block comes. */
async function assertReadersHarmless(
	kind: (typeof READERS)[number],
	one: { readonly process: RelayProcess; readonly attacker: Attacker; readonly measuring: Measuring },
): Promise<void> {
	const honest = await follow(one.process.url);
	let held = 0;
	const rounds = async () => {
		held = await heldBy(
			one.process,
			() => one.attacker.attack("logReaders", { ...kind, count: 60, to: EMITTER, from: newAddress() }),
			async () => {
				await emit();
				await honest.next();
			},
		);
	};
	const meanwhile = await one.measuring.during(titleOf(kind), rounds());
	honest.client.close();
	assertServed(meanwhile);
	assert.ok(held < limitMs, `a turn of the event loop took ${Math.round(held)} ms`);
}

describe("filters and pings at the relay", () => {
	before(begin);
	after(() => fixture?.stop());

	for (const isEqual of [true, false]) {
		it(`64 ${isEqual ? "equal" : "different"} filters of logs, polled by one batch`, async () => {
			let held = 0;
			let from = "";
			const open = async () => {
				from = newAddress();
				await fixture.attacker.attack("filters", { isEqual, count: 64, to: EMITTER, from });
				for (let i = 0; i < 3; i++) await emit();
				await fixture.workedOff();
			};
			const poll = async () => {
				const { outcomes } = await fixture.attacker.attack("polls", { count: 1, from });
				fixture.say("the polls came to", outcomes);
			};
			const rounds = async () => {
				held = await heldBy(fixture.relay, open, poll);
			};
			assertServed(await fixture.measuring.during("polled filters", rounds()));
			assert.ok(held < limitMs, `a turn of the event loop took ${Math.round(held)} ms`);
		});
	}

	it("filters of four addresses, each polled by a dozen batches at a time", async () => {
		const from = [0, 1, 2, 3].map(newAddress);
		const { attacker, relay } = fixture;
		const polls = async () => {
			for (const one of from)
				await attacker.attack("filters", { isEqual: false, count: 32, to: EMITTER, from: one });
			for (let i = 0; i < 4; i++) await emit();
			await fixture.workedOff();
			forgetPeak(relay.pid);
			const polling = { count: 12, connections: 12 };
			const tallies = await Promise.all(
				from.map((one) => attacker.attack("polls", { ...polling, from: one })),
			);
			fixture.say("the polls came to", tallies[0]?.outcomes);
		};
		assertServed(await fixture.measuring.during("filters polled at the same time", polls()));
	});

	for (const reads of [true, false]) {
		it(`200 websockets that send pings without an end, ${reads ? "and read" : "and never read"}`, async () => {
			const from = newAddress();
			const attack = fixture.attacker.attack("pings", { count: 200, lastingMs: 3_000, reads, from });
			await until("all are open", async () => (await fixture.connectionsFrom(from)) === 200);
			let held = 0;
			const rounds = async () => {
				held = await heldBy(
					fixture.relay,
					async () => {},
					() => fixture.workedOff(),
				);
				fixture.say("they came to", (await attack).outcomes);
			};
			const meanwhile = await fixture.measuring.during("pings", rounds());
			assertServed(meanwhile);
			assert.ok(held < limitMs, `a turn of the event loop took ${Math.round(held)} ms`);
		});
	}
});

describe("subscriptions", () => {
	before(async () => {
		await begin();
		await beginBoost();
	});
	after(async () => {
		await attacker?.stop();
		await boost?.kill();
		await fixture?.stop();
		rmSync(folder, { recursive: true, force: true });
	});

	for (const kind of READERS) {
		it(`at the relay: ${titleOf(kind)}`, () => {
			const { relay: process, attacker, measuring } = fixture;
			return assertReadersHarmless(kind, { process, attacker, measuring });
		});
	}

	for (const kind of READERS) {
		it(`at boost: ${titleOf(kind)}`, () =>
			assertReadersHarmless(kind, { process: boost, attacker, measuring }));
	}

	it("at boost: the same while the relay is out, when boost reads the logs itself", async () => {
		const honest = await follow(boost.url);
		await fixture.relay.kill();
		let held = 0;
		for (const kind of READERS.slice(1)) {
			forgetPeak(boost.pid);
			const order = { ...kind, count: 60, to: EMITTER };
			const ms = await heldBy(
				boost,
				() => attacker.attack("logReaders", { ...order, from: newAddress() }),
				async () => {
					await emit();
					await honest.next();
				},
			);
			held = Math.max(held, ms);
			const { peak } = memoryOf(boost.pid);
			fixture.say("the most memory in MiB:", Math.round(peak / MIB));
			assert.ok(peak < 512 * MIB, `${Math.round(peak / MIB)} MiB of memory`);
		}
		honest.client.close();
		assert.ok(held < limitMs, `a turn of the event loop took ${Math.round(held)} ms`);
	});
});
