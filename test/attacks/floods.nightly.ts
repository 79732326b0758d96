// The floods of floods.test.ts at full size delay no honest user beyond LIMITS_MS, before, during and after each; the relay's memory
// stays below 512 MiB.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { BOOST_SECRET, type BoostBeside, startBoostBeside } from "../support/attacks/boostBeside.ts";
import { FLOODS, FLOODS_OF_BOOST } from "../support/attacks/floods.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { type Flood, runFlood } from "../support/attacks/runFlood.ts";
import { attackerAddress } from "../support/attacks/wire.ts";

let fixture: AttackFixture;
let beside: BoostBeside;
before(async () => {
	fixture = await startAttackFixture({ env: { BOOST_SECRET } });
	beside = await startBoostBeside(fixture);
});
after(async () => {
	await beside?.stop();
	await fixture?.stop();
});

const DOORS = [
	{ name: "the relay", floods: FLOODS, doorOf: () => fixture.door },
	{ name: "boost", floods: FLOODS_OF_BOOST, doorOf: () => beside },
];

for (const { name, floods, doorOf } of DOORS) {
	describe(`at ${name}`, () => {
		for (const flood of floods.filter(({ count }) => count.full !== undefined))
			it(`${flood.count.full} times: ${flood.title}`, () => measured(flood, doorOf()));
	});
}

it("the answer of rpc.discover is computed once, so the call is cheap", async () => {
	const order = { count: 300, connections: 4 };
	const simple = await fixture.attacker.attack("largeCalls", { ...order, from: attackerAddress(90) });
	const discoveries = await fixture.attacker.attack("discoveries", { ...order, from: attackerAddress(91) });
	fixture.say(`300 simple calls took ${simple.ms} ms, 300 rpc.discover`, discoveries.ms);
	assert.deepEqual([simple.outcomes, discoveries.outcomes], [{ accepted: 300 }, { accepted: 300 }]);
	assert.ok(discoveries.ms < 3 * simple.ms + 300, `${discoveries.ms} ms beside ${simple.ms} ms`);
});

async function measured(flood: Flood, door: AttackFixture["door"]): Promise<void> {
	const during = (when: string, work?: Promise<unknown>) =>
		fixture.during(`${when}: ${flood.title}`, work, door.measuring);
	const earlier = await during("before");
	await runFlood(flood, { fixture, door, size: "full" }, async (attacking) => {
		assertServed(earlier, await during("during", attacking));
	});
	assertServed(await during("after"));
}
