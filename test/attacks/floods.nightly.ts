// The floods of floods.test.ts at full size delay no honest user beyond LIMITS_MS, before, during
// and after each; the relay's memory stays below 512 MiB; one client fills its sixteenth of boost's
// journal, and no more.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { BOOST_SECRET, type BoostBeside, startBoostBeside } from "../support/attacks/boostBeside.ts";
import { FLOODS, FLOODS_OF_BOOST } from "../support/attacks/floods.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { type Flood, runFlood } from "../support/attacks/runFlood.ts";
import { startTaker } from "../support/attacks/taker.ts";
import { attackerAddress, HONEST, resultOf } from "../support/attacks/wire.ts";
import { rawTransaction, testAccount } from "../support/txFactory.ts";

const ANSWER_MS = 30_000;
/** The share of one client in boost's journal, and what each entry counts beside its bytes. */
const [CLIENT_BYTES, ENTRY_BYTES] = [16 * 1024 * 1024, 512];

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

// Last, because it ends the relay.
it("one client has at most a sixteenth of boost's journal", async (t) => {
	const taker = await startTaker();
	t.after(() => taker.stop());
	const toTaker = { FALLBACK_URL: taker.url, FALLBACK_DIALECT: "mevblocker" };
	// For 16 MiB from one client.
	const boost = await startBoostBeside(fixture, { env: { ...toTaker, RATE_LIMIT_RPS: "220" } });
	t.after(() => boost.stop());
	await fixture.relay.kill();
	const size = 128 * 1024 - 200;
	const bytes = rawTransaction({
		data: Buffer.alloc(size, 0x5a),
		nonce: 9,
		gasLimit: 16_000_000,
		maxFeePerGas: 0,
		maxPriorityFeePerGas: 0,
	}).length;
	const share = Math.floor(CLIENT_BYTES / (bytes + ENTRY_BYTES));
	const order = {
		count: share + 4,
		size,
		fee: 0,
		connections: 4,
		accounts: 1_000_000,
		from: attackerAddress(99),
	};
	const { outcomes } = await boost.attacker.attack("gapped", order);
	assert.deepEqual(outcomes, {
		accepted: share,
		"-32005 too many pending transactions from this client": 4,
	});
	const raw = `0x${rawTransaction({ by: testAccount(900_000) }).toString("hex")}`;
	const other = { url: `${boost.process.url}/fast`, from: HONEST, deadlineMs: ANSWER_MS };
	assert.match(String(await resultOf("eth_sendRawTransaction", [raw], other)), /^0x/);
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
