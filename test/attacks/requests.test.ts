// The limits of a request: none keeps the event loop busy, large ones weigh more, and reads that take the node long, of one
// address, do not keep another one's waiting.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { attackerAddress, HONEST, send } from "../support/attacks/wire.ts";

const MIB = 1024 * 1024;
/** Each large attack is sent so often. */
const TIMES = 4;

let fixture: AttackFixture;
before(async () => {
	fixture = await startAttackFixture();
});
after(() => fixture?.stop());

const LARGE = [
	{ name: "emptyCalls", size: 690_000, what: "eth_callMany of 690,000 empty calls" },
	{ name: "blockObjects", size: 150_000, what: "blocks that are objects of 150,000 keys" },
];
for (const [i, { name, size, what }] of LARGE.entries()) {
	it(`${what} do not hold up the event loop`, async () => {
		const earlier = await fixture.during("before");
		const from = attackerAddress(1 + i);
		const attack = fixture.attacker.attack(name, { count: TIMES, size, connections: 1, from });
		const meanwhile = await fixture.during(what, attack);
		const { outcomes } = await attack;
		fixture.say("they came to", outcomes);
		assertServed(earlier, meanwhile, await fixture.during("after"));
		assert.equal(outcomes.accepted, undefined, JSON.stringify(outcomes));
	});
}

it("a request of a MiB uses more of the rate limit than a small one", async () => {
	const small = await fixture.attacker.attack("largeCalls", { count: 60, size: 0, from: attackerAddress(5) });
	const large = await fixture.attacker.attack("largeCalls", {
		count: 60,
		size: MIB,
		from: attackerAddress(6),
	});
	fixture.say("they came to", small.outcomes, large.outcomes);
	assert.deepEqual(small.outcomes, { accepted: 60 });
	// Ten seconds' worth of a hundred a second is 1,000; one of a MiB is 64, in which its call is.
	const most = (1_000 + large.ms / 10) / 64;
	assert.ok((large.outcomes.accepted ?? 0) <= most, JSON.stringify(large.outcomes));
});

it("the answer of rpc.discover is computed once, so the call is cheap", async () => {
	const order = { count: 300, connections: 4 };
	const simple = await fixture.attacker.attack("largeCalls", { ...order, from: attackerAddress(7) });
	const discoveries = await fixture.attacker.attack("discoveries", { ...order, from: attackerAddress(8) });
	fixture.say(`300 simple calls took ${simple.ms} ms, 300 rpc.discover`, discoveries.ms);
	assert.deepEqual([simple.outcomes, discoveries.outcomes], [{ accepted: 300 }, { accepted: 300 }]);
	assert.ok(discoveries.ms < 3 * simple.ms + 300, `${discoveries.ms} ms beside ${simple.ms} ms`);
});

it("only the operator can read the metrics", async () => {
	const url = `${fixture.relay.url}/metrics`;
	const statusWith = async (headers: Readonly<Record<string, string>>) =>
		(await send({ url, from: HONEST, headers, deadlineMs: 5_000 })).status;
	assert.equal(await statusWith({}), 404);
	assert.equal(await statusWith({ authorization: "Bearer another" }), 404);
	assert.equal(await statusWith(fixture.operator), 200);
});

const SLOW_READS = [
	{ name: "calls", method: "eth_call", count: 100, ms: 5_000 },
	{ name: "proofs", method: "eth_getProof", count: 600, ms: 1_000 },
];
for (const [i, { name, method, count, ms }] of SLOW_READS.entries()) {
	it(`${count} ${method} of ${ms / 1000} s delay nobody else's reads, submissions and bids`, async () => {
		const earlier = await fixture.during("before");
		fixture.node.setDelay(ms, [method]);
		const order = { count, connections: count, lastingMs: 1_000, from: attackerAddress(9 + i) };
		const attack = fixture.attacker.attack(name, { ...order, patienceMs: 5_000 });
		const meanwhile = await fixture.during(`${count} ${method}`, attack);
		fixture.say("they came to", (await attack).outcomes);
		fixture.node.setDelay(0);
		assertServed(earlier, meanwhile, await fixture.during("after"));
	});
}
