// The node is shared by client: reads that take it long, of one address, do not keep another one's waiting.

import { after, before, it } from "node:test";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { attackerAddress } from "../support/attacks/wire.ts";

let fixture: AttackFixture;
before(async () => {
	fixture = await startAttackFixture();
});
after(() => fixture?.stop());

const ROWS = [
	{ name: "calls", method: "eth_call", count: 100, ms: 5_000 },
	{ name: "proofs", method: "eth_getProof", count: 600, ms: 1_000 },
];
for (const [i, { name, method, count, ms }] of ROWS.entries()) {
	it(`${count} ${method} of ${ms / 1000} s delay nobody else's reads, submissions and bids`, async () => {
		const earlier = await fixture.during("before");
		fixture.node.setDelay(ms, [method]);
		const order = { count, connections: count, lastingMs: 1_000, from: attackerAddress(1 + i) };
		const attack = fixture.attacker.attack(name, { ...order, patienceMs: 5_000 });
		const meanwhile = await fixture.during(`${count} ${method}`, attack);
		fixture.say("they came to", (await attack).outcomes);
		fixture.node.setDelay(0);
		assertServed(earlier, meanwhile, await fixture.during("after"));
	});
}
