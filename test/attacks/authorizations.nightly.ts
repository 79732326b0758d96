// Bundles full of authorizations (EIP-7702) at relay and boost delay no honest user, when they
// arrive and at the heads for which they stay. Their signers cost much computing for few bytes. Its
// short form is in floods.test.ts.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Attacker } from "../support/attacks/attacker.ts";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { BOOST_SECRET, type BoostBeside, startBoostBeside } from "../support/attacks/boostBeside.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { attackerAddress } from "../support/attacks/wire.ts";
import { heldSoFar, turnLimit } from "../support/eventLoopTime.ts";
import { testAccount } from "../support/txFactory.ts";

/** As many as fit into two of a bundle's hundred transactions and a block. */
const AUTHORIZATIONS = 600;
/** Accounts of a bundle. */
const ACCOUNTS = 101;
const ETHER = 10n ** 18n;
/**
 * Different bundles. The node recovers all of them at each head as well, and anvil answers no reads
 * while a block waits for its simulations, so they are few, and one is sent at a time.
 */
const MADE = 2;
/** Duration of the attack, in ms. */
const LASTING_MS = 3_000;
/** A third of the time between mainnet's blocks. */
const HEAD_EVERY_MS = 4_000;
/** Anvil and the attacker share the machine with what is measured. */
const SLACK = 3;
/**
 * Rounds. The shortest of their longest event loop delays counts: five processes keep the machine
 * busy.
 */
const ROUNDS = 3;

let fixture: AttackFixture;
let beside: BoostBeside;
let limitMs: number;
before(async () => {
	fixture = await startAttackFixture({
		isMetered: true,
		headEveryMs: HEAD_EVERY_MS,
		env: { BOOST_SECRET },
	});
	beside = await startBoostBeside(fixture, { isMetered: true });
	limitMs = SLACK * turnLimit();
});
after(async () => {
	await beside?.stop();
	await fixture?.stop();
});

const DOORS = {
	"the relay": () => fixture.door,
	boost: () => beside,
} as const;

for (const [i, [door, of]] of Object.entries(DOORS).entries()) {
	it(`bundles of 1,200 authorizations for 30 blocks at ${door}, one after another`, async () => {
		const { measuring, attacker } = of();
		const accounts = 6_000_000 + i * 1_000;
		await fixture.chain.fund(
			Array.from({ length: ACCOUNTS }, (_, j) => testAccount(accounts + j)),
			ETHER,
		);
		const earlier = await fixture.during("before", undefined, measuring);
		const held: number[] = [];
		do {
			await longestTurn();
			const from = attackerAddress(1 + i * ROUNDS + held.length);
			const attack = flood(attacker, { accounts: accounts, from });
			const meanwhile = await fixture.during("bundles of 1,200 authorizations", attack, measuring);
			const later = await fixture.during("the heads behind them", undefined, measuring);
			held.push(await longestTurn());
			const { outcomes } = await attack;
			fixture.say("they came to", outcomes);
			assertServed(earlier, meanwhile, later);
			assert.ok((outcomes.accepted ?? 0) > 0, JSON.stringify(outcomes));
		} while (held.length < ROUNDS && Math.min(...held) >= limitMs);
		fixture.say("the longest turns in ms:", held.map(Math.round));
		assert.ok(Math.min(...held) < limitMs, `a turn of the event loop took ${held.map(Math.round)} ms`);
	});
}

/** The longest turn of both since the last call, in ms. */
async function longestTurn(): Promise<number> {
	return Math.max(await heldSoFar(fixture.relay), await heldSoFar(beside.process));
}

/** Sends bundles as fast as they are answered. */
async function flood(attacker: Attacker, client: { readonly accounts: number; readonly from: string }) {
	const block = await fixture.nextBlock();
	const order = { count: 200, made: MADE, size: AUTHORIZATIONS, connections: 1, lastingMs: LASTING_MS };
	return attacker.attack("authorizations", { ...order, ...client, block });
}
