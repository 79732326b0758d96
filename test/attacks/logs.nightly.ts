// One client's log subscriptions, filters and pings never block the event loop for long and fill no
// memory, and an honest user's submissions, bids, reads and logs arrive in time. The limits by
// count are in floods.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AttackFixture, type Door, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { BOOST_SECRET, type BoostBeside, startBoostBeside } from "../support/attacks/boostBeside.ts";
import { emit, follow, LOG_EMITTER } from "../support/attacks/logReaders.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { forgetPeak, memoryOf } from "../support/attacks/processFigures.ts";
import { attackerAddress } from "../support/attacks/wire.ts";
import { heldSoFar, turnLimit } from "../support/eventLoopTime.ts";
import type { RelayProcess } from "../support/processes.ts";
import { until } from "../support/until.ts";

const MIB = 1024 * 1024;
/**
 * Rounds. The shortest of their longest event loop delays counts: five processes keep the machine
 * busy.
 */
const ROUNDS = 5;

let fixture: AttackFixture;
let beside: BoostBeside;
let limitMs: number;
let addresses = 10;

/**
 * A relay of its own: what it is filled with by one kind of attack is not counted against the next.
 */
async function begin(): Promise<void> {
	fixture = await startAttackFixture({ isMetered: true, env: { BOOST_SECRET } });
	limitMs = turnLimit();
}

/** An attacker's that has its whole share of everything. */
function newAddress(): string {
	addresses += 1;
	return attackerAddress(addresses);
}

/**
 * The shortest, in ms, of the longest turns of `one` while some rounds of `work` go on, each behind
 * its preparation.
 */
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
async function assertReadersHarmless(kind: (typeof READERS)[number], one: Door): Promise<void> {
	const honest = await follow(one.process.url);
	let held = 0;
	const rounds = async () => {
		held = await heldBy(
			one.process,
			() => one.attacker.attack("logReaders", { ...kind, count: 60, to: LOG_EMITTER, from: newAddress() }),
			async () => {
				await emit(fixture);
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
				await fixture.attacker.attack("filters", { isEqual, count: 64, to: LOG_EMITTER, from });
				for (let i = 0; i < 3; i++) await emit(fixture);
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
				await attacker.attack("filters", { isEqual: false, count: 32, to: LOG_EMITTER, from: one });
			for (let i = 0; i < 4; i++) await emit(fixture);
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
		beside = await startBoostBeside(fixture, { isMetered: true });
	});
	after(async () => {
		await beside?.stop();
		await fixture?.stop();
	});

	for (const kind of READERS) {
		it(`at the relay: ${titleOf(kind)}`, () => assertReadersHarmless(kind, fixture.door));
	}

	for (const kind of READERS) {
		it(`at boost: ${titleOf(kind)}`, () => assertReadersHarmless(kind, beside));
	}

	it("at boost: the same while the relay is down, when boost reads the logs itself", async () => {
		const { process: boost, attacker } = beside;
		const honest = await follow(boost.url);
		await fixture.relay.kill();
		let held = 0;
		for (const kind of READERS.slice(1)) {
			forgetPeak(boost.pid);
			const order = { ...kind, count: 60, to: LOG_EMITTER };
			const ms = await heldBy(
				boost,
				() => attacker.attack("logReaders", { ...order, from: newAddress() }),
				async () => {
					await emit(fixture);
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
