// Tests that connections and their unread answers are shared by client: one address keeps nobody else out, and
// readers that do not read cost no memory.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { attackerAddress } from "../support/attacks/wire.ts";
import { FeedClient } from "../support/feeds.ts";
import { testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const PENDING = "service_partialPendingTransactions";
const MAX_CONNECTIONS = 256;
const ETHER = 10n ** 18n;

let fixture: AttackFixture;
before(async () => {
	fixture = await startAttackFixture();
});
after(() => fixture?.stop());

it("a connection has one subscription to pending transactions", async () => {
	const client = await FeedClient.open(`${fixture.relay.url.replace("http", "ws")}/ws`);
	try {
		const first = await client.subscribe(PENDING);
		const second = await client.ask("eth_subscribe", [PENDING]);
		assert.ok(second.error?.code === -32005 || second.result === first, JSON.stringify(second));
	} finally {
		client.close();
	}
});

it("9,999 idle connections of one address don't keep other clients out", async () => {
	const earlier = await fixture.during("before");
	const from = attackerAddress(3);
	const attack = fixture.attacker.attack("idle", { count: 9_999, from });
	const meanwhile = await fixture.during("9,999 connections are opened", attack);
	fixture.say("they came to", (await attack).outcomes);
	assertServed(earlier, meanwhile, await fixture.during("9,999 idle connections"));
	// The system shows one for a moment that has come and is not refused yet.
	await until(
		`${MAX_CONNECTIONS} connections are open at most`,
		async () => (await fixture.connectionsFrom(from)) <= MAX_CONNECTIONS,
	);
});

it("100 websockets that never read what they subscribed to cost no memory", async () => {
	const accounts = 2_000_000;
	const from = attackerAddress(1);
	for (let i = 0; i < 4; i++) await fixture.fund(testAccount(accounts + i).address, ETHER);
	const earlier = await fixture.during("before");
	const opened = await fixture.attacker.attack("unread", { count: 100, size: 11, from });
	fixture.say("the websockets came to", opened.outcomes);
	// Twice what one client may have.
	const order = { count: 4, size: 127 * 1024, accounts, connections: 1, from: attackerAddress(2) };
	const attack = fixture.attacker.attack("shown", order);
	const meanwhile = await fixture.during("100 websockets that are not read", attack);
	fixture.say("the transactions came to", (await attack).outcomes);
	assertServed(earlier, meanwhile, await fixture.during("after"));
});
