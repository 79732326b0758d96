// Bundles cost whoever sends them nothing: neither floods of plain ones nor bids that burn gas may delay anybody else.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { BURNS_AND_PAYS } from "../support/attacks/attackContracts.ts";
import { type AttackScene, startAttackScene } from "../support/attacks/attackScene.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { attackerAddress } from "../support/attacks/wire.ts";
import { rawTransaction, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const ETHER = 10n ** 18n;
const BURNER = `0x${"b7".repeat(20)}`;
/** Where the transactions of plain bundles send their ether, and how much, as they are on the wire. */
const RECEIVER = `00000000000000be11e88${ETHER.toString(16).padStart(16, "0")}`;

let scene: AttackScene;
before(async () => {
	scene = await startAttackScene();
});
after(() => scene?.stop());

it("700 bids that burn 16 million gas each under one uuid do not delay an honest bid", async () => {
	const accounts = 2_000_000;
	await scene.chain.rpc("anvil_setCode", [BURNER, BURNS_AND_PAYS]);
	const owner = testAccount(accounts + 1);
	for (const { address } of [testAccount(accounts), owner]) await scene.fund(address, ETHER);
	const raw = `0x${rawTransaction({ by: owner }).toString("hex")}`;
	const target = await scene.relay.client.send(raw, "/maxbackruns");
	await until("the target is shown", async () => (await scene.relay.client.status(target)).shared);
	const earlier = await scene.during("before");
	const order = { count: 700, connections: 256, size: 16_000_000, accounts, target, to: BURNER };
	const attack = scene.attacker.attack("heavyBids", { ...order, lastingMs: 4_000, from: attackerAddress(1) });
	const meanwhile = await scene.during("700 heavy bids", attack);
	scene.say("they came to", await attack);
	assertServed(earlier, meanwhile, await scene.during("after"));
});

it("200 plain bundles of 100 accounts each cost the node a batch each", async () => {
	const earlier = await scene.during("before");
	const block = await scene.nextBlock();
	scene.node.reset();
	const order = { count: 200, size: 100, accounts: 3_000_000, block, from: attackerAddress(2) };
	const attack = scene.attacker.attack("crowdedBundles", order);
	const meanwhile = await scene.during("200 bundles of 100 accounts", attack);
	scene.say(
		"they came to",
		await attack,
		`${scene.node.calls().length} calls, ${scene.node.requests} requests`,
	);
	assertServed(earlier, meanwhile, await scene.during("after"));
});

it("4,000 plain bundles without a wei under 8 keys delay nobody's delivery and reach no builder", async () => {
	const earlier = await scene.during("before");
	const block = await scene.nextBlock();
	const reached = scene.builder.count(RECEIVER);
	const attack = scene.attacker.attack("plainBundles", {
		...{ count: 4_000, keys: 8, connections: 64, lastingMs: 4_000 },
		...{ block, accounts: 4_000_000 },
	});
	const meanwhile = await scene.during("4,000 plain bundles", attack);
	scene.say("they came to", await attack);
	assertServed(earlier, meanwhile, await scene.during("after"));
	assert.equal(reached(), 0, "requests with one of them at the builder");
});
