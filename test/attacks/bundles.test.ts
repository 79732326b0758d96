// Bundles are free for their senders: neither floods of plain ones nor bids that burn gas may delay other users.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { BURNS_AND_PAYS } from "../support/attacks/attackContracts.ts";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { attackerAddress } from "../support/attacks/wire.ts";
import { rawTransaction, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const ETHER = 10n ** 18n;
const BURNER = `0x${"b7".repeat(20)}`;
/** Where the transactions of plain bundles send their ether, and how much, as they are on the wire. */
const RECEIVER = `00000000000000be11e88${ETHER.toString(16).padStart(16, "0")}`;

let fixture: AttackFixture;
before(async () => {
	fixture = await startAttackFixture();
});
after(() => fixture?.stop());

it("700 bids that burn 16 million gas each under one uuid do not delay an honest bid", async () => {
	const accounts = 2_000_000;
	await fixture.chain.rpc("anvil_setCode", [BURNER, BURNS_AND_PAYS]);
	const owner = testAccount(accounts + 1);
	for (const { address } of [testAccount(accounts), owner]) await fixture.fund(address, ETHER);
	const raw = `0x${rawTransaction({ by: owner }).toString("hex")}`;
	const target = await fixture.relay.client.send(raw, "/maxbackruns");
	await until("the target is shown", async () => (await fixture.relay.client.status(target)).shared);
	const earlier = await fixture.during("before");
	const order = { count: 700, connections: 256, size: 16_000_000, accounts, target, to: BURNER };
	const attack = fixture.attacker.attack("heavyBids", {
		...order,
		lastingMs: 4_000,
		from: attackerAddress(1),
	});
	const meanwhile = await fixture.during("700 heavy bids", attack);
	fixture.say("they came to", await attack);
	assertServed(earlier, meanwhile, await fixture.during("after"));
});

it("200 plain bundles of 100 accounts each cost the node one batch each", async () => {
	const earlier = await fixture.during("before");
	const block = await fixture.nextBlock();
	fixture.node.reset();
	const order = { count: 200, size: 100, accounts: 3_000_000, block, from: attackerAddress(2) };
	const attack = fixture.attacker.attack("crowdedBundles", order);
	const meanwhile = await fixture.during("200 bundles of 100 accounts", attack);
	fixture.say(
		"they came to",
		await attack,
		`${fixture.node.calls().length} calls, ${fixture.node.requests} requests`,
	);
	assertServed(earlier, meanwhile, await fixture.during("after"));
});

it("4,000 plain bundles of empty accounts, signed by 8 keys, delay no delivery and reach no builder", async () => {
	const earlier = await fixture.during("before");
	const block = await fixture.nextBlock();
	const reached = fixture.builder.count(RECEIVER);
	const attack = fixture.attacker.attack("plainBundles", {
		...{ count: 4_000, keys: 8, connections: 64, lastingMs: 4_000 },
		...{ block, accounts: 4_000_000 },
	});
	const meanwhile = await fixture.during("4,000 plain bundles", attack);
	fixture.say("they came to", await attack);
	assertServed(earlier, meanwhile, await fixture.during("after"));
	assert.equal(reached(), 0, "requests with one of them at the builder");
});
