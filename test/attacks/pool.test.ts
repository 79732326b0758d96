// Tests that clients share the pool: transactions that cannot be in the next block, from an address without a wei,
// take no room or work from others.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { attackerAddress } from "../support/attacks/wire.ts";
import { testAccount } from "../support/txFactory.ts";

const KIB = 1024;
const GWEI = 1_000_000_000;
/** What one client may have that cannot go into the next block, and what each counts beside its bytes. */
const WAITING_BYTES = 4 * KIB * KIB;
const ENTRY_BYTES = 512;
/** A head may cost the node so many calls beside those for the transactions that go out. */
const CALLS_A_HEAD = 60;

let fixture: AttackFixture;
before(async () => {
	fixture = await startAttackFixture();
});
after(() => fixture?.stop());

/** Gives so many accounts from number `first` on a tenth of an ether each. */
async function fund(first: number, count: number): Promise<void> {
	const accounts = Array.from({ length: count }, (_, i) => testAccount(first + i));
	await fixture.chain.fund(accounts, 10n ** 17n);
}

/** Calls that one head costs the node. */
async function callsOfAHead(): Promise<number> {
	const before = await fixture.workedOff();
	fixture.node.reset();
	await fixture.seesHead(await fixture.passBlock());
	await fixture.workedOff();
	fixture.say(`from block ${before} on two heads cost`, fixture.node.calls().length);
	return fixture.node.calls().length / 2;
}

it("5,000 transactions without a fee are refused, and make no head expensive to handle", async () => {
	const earlier = await fixture.during("before");
	const order = { count: 5_000, fee: 0, accounts: 2_000_000, keys: 8, from: attackerAddress(1) };
	const attack = fixture.attacker.attack("waiting", { ...order, lastingMs: 4_000 });
	const meanwhile = await fixture.during("5,000 without a fee", attack);
	const { outcomes } = await attack;
	fixture.say("they came to", outcomes);
	const calls = await callsOfAHead();
	assertServed(earlier, meanwhile, await fixture.during("after"));
	assert.equal(outcomes.accepted, undefined, "accepted");
	const refused = Object.keys(outcomes).filter((wording) =>
		/^-32000 max fee per gas less than block/.test(wording),
	);
	assert.equal(refused.length, 1, JSON.stringify(outcomes));
	assert.ok(calls < CALLS_A_HEAD, `${calls} calls to the node for a head`);
});

it("transactions that wait for the base fee to fall cost nothing until it has fallen", async () => {
	const [count, accounts] = [400, 3_000_000];
	await fund(accounts, count);
	await fixture.workedOff();
	await fixture.chain.rpc("anvil_setNextBlockBaseFeePerGas", [`0x${GWEI.toString(16)}`]);
	await fixture.workedOff();
	// A fifth of the base fee is twelve blocks away.
	const order = { count, fee: GWEI / 5, accounts, from: attackerAddress(2) };
	const { outcomes } = await fixture.attacker.attack("waiting", order);
	assert.deepEqual(outcomes, { accepted: count });
	const calls = await callsOfAHead();
	assert.ok(calls < CALLS_A_HEAD, `${calls} calls to the node for a head`);
});

const SIZE = 128 * KIB - 200;
/** So many of {@link SIZE} one client may have that cannot go into the next block. */
const MOST = WAITING_BYTES / (SIZE + ENTRY_BYTES);

it("4,110 transactions of 128 KiB after a nonce gap, from empty accounts, leave room for other clients", async () => {
	const earlier = await fixture.during("before");
	const order = { count: 4_110, size: SIZE, fee: 0, keys: 8, accounts: 4_000_000, lastingMs: 4_000 };
	const attack = fixture.attacker.attack("gapped", { ...order, connections: 16, from: attackerAddress(3) });
	const meanwhile = await fixture.during("gapped transactions of 128 KiB without a wei", attack);
	const { outcomes, sent } = await attack;
	fixture.say(`${sent} came to`, outcomes);
	assertServed(earlier, meanwhile, await fixture.during("after"));
	assert.ok((outcomes.accepted ?? 0) <= MOST, `${outcomes.accepted} were taken, ${MOST} at most`);
});

it("the same from funded accounts take at most 4 MiB of the pool", async () => {
	const [count, accounts] = [48, 5_000_000];
	await fund(accounts, count);
	await fixture.workedOff();
	const order = { count, size: SIZE, fee: 2 * GWEI, accounts, connections: 4, from: attackerAddress(4) };
	const { outcomes } = await fixture.attacker.attack("gapped", order);
	fixture.say("they came to", outcomes);
	const refused = outcomes["-32005 too many pending transactions from this client"] ?? 0;
	assert.ok(refused > 0, JSON.stringify(outcomes));
	assert.ok((outcomes.accepted ?? 0) <= MOST, `${outcomes.accepted} were taken, ${MOST} at most`);
	assertServed(await fixture.during("after"));
});
