// A web page that makes its visitor's browser send everything at once, from the visitor's own
// address, delays no request of the visitor's wallet: submissions, bids, reads, filters, unread
// websockets and cancels. The limits by count are in floods.test.ts.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import type { Attacker } from "../support/attacks/attacker.ts";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { BOOST_SECRET, type BoostBeside, startBoostBeside } from "../support/attacks/boostBeside.ts";
import { assertServed } from "../support/attacks/measuring.ts";
import { HONEST, resultOf, send } from "../support/attacks/wire.ts";
import { EMITS } from "../support/contracts.ts";
import { rawTransaction, type TxOptions, testAccount } from "../support/txFactory.ts";

const ETHER = 10n ** 18n;
const GWEI = 10n ** 9n;
const EMITTER = `0x${"e4".repeat(20)}`;
/** As a wallet in the same browser sends. */
const EXTENSION = { origin: "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn" };
const PAGE = { from: HONEST, origin: "https://page.example" };
/** Cost that a page's requests may have in a second; the wallet's may have as much. */
const RATE_LIMIT_RPS = "60";
/** Longer than the ten seconds' worth that a page has at once takes. */
const LASTING_MS = 5_000;
/**
 * Chromium opens so many connections to a host by HTTP, and 255 websockets; more than a client may.
 */
const [CONNECTIONS, WEBSOCKETS] = [6, 300];
/** Accounts with an ether each, whose transactions the page submits. */
const ACCOUNTS = 400;

let fixture: AttackFixture;
let beside: BoostBeside;
before(async () => {
	fixture = await startAttackFixture({ env: { BOOST_SECRET, RATE_LIMIT_RPS } });
	beside = await startBoostBeside(fixture, { headers: EXTENSION, env: { RATE_LIMIT_RPS } });
	await fixture.chain.rpc("anvil_setCode", [EMITTER, EMITS]);
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
	it(`a page that calls what it can at ${door} costs its visitor nothing`, async () => {
		const { process, measuring, attacker } = of();
		const { url } = process;
		const accounts = 8_000_000 + i * 10_000;
		await fixture.chain.fund(
			Array.from({ length: ACCOUNTS }, (_, j) => testAccount(accounts + j)),
			ETHER,
		);
		await fixture.workedOff();
		// Held, since its fee is low: no block takes it.
		const fees = { maxFeePerGas: GWEI / 2n, maxPriorityFeePerGas: 0n };
		const own = await submit(url, { by: testAccount(accounts), ...fees });
		const target = await submit(url, { by: testAccount(accounts + 1), to: EMITTER });
		const earlier = await fixture.during("before", undefined, measuring);
		const attack = visit(attacker, { accounts: accounts + 2, own, target });
		const meanwhile = await fixture.during("a page", attack, measuring);
		const outcomes = await attack;
		fixture.say("they came to", outcomes);
		assertServed(earlier, meanwhile, await fixture.during("after", undefined, measuring));
		const { cancels } = outcomes;
		// All of a page's calls have one limit.
		const isLimited = Object.values(outcomes).some((one) =>
			Object.keys(one).some((text) => text.startsWith("-32005 limit exceeded: try again")),
		);
		assert.ok(isLimited, JSON.stringify(outcomes));
		assert.equal(cancels.accepted, undefined, JSON.stringify(cancels));
		const visitor = { url, from: HONEST, headers: EXTENSION, deadlineMs: 5_000 };
		assert.match(String(await resultOf("eth_newFilter", [{ address: EMITTER }], visitor)), /^0x/);
		const status = { url: `${url}/tx/${own}`, from: HONEST, deadlineMs: 5_000 };
		assert.match((await send(status)).body, /"stage":"(BROADCAST|SIMULATION_FAILED)"/);
	});
}

for (const [door, of] of Object.entries(DOORS)) {
	it(`a page that opens websockets at ${door}, all at once, leaves its visitor his connections`, async () => {
		const { measuring, attacker } = of();
		const attack = attacker.attack("unread", { ...PAGE, count: WEBSOCKETS, size: 1 });
		const meanwhile = await fixture.during("websockets", attack, measuring);
		const { outcomes } = await attack;
		fixture.say("they came to", outcomes);
		assertServed(meanwhile, await fixture.during("open websockets", undefined, measuring));
		assert.ok((outcomes.accepted ?? 0) < WEBSOCKETS, JSON.stringify(outcomes));
	});
}

/** The visitor's own submission. */
async function submit(url: string, tx: TxOptions): Promise<string> {
	const raw = `0x${rawTransaction(tx).toString("hex")}`;
	const call = { url: `${url}/fast`, from: HONEST, deadlineMs: 5_000 };
	return (await resultOf("eth_sendRawTransaction", [raw], call)) as string;
}

interface Visit {
	readonly accounts: number;
	/** A transaction of the visitor's, and one to bid on. */
	readonly own: string;
	readonly target: string;
}

/** All at the same time; what each came to. */
async function visit(attacker: Attacker, { accounts, own, target }: Visit) {
	const all = { ...PAGE, count: 100_000, connections: CONNECTIONS, lastingMs: LASTING_MS };
	const floods = {
		submissions: attacker.attack("shown", { ...all, accounts, size: 100 }),
		bids: attacker.attack("heavyBids", { ...all, accounts, size: 100_000, target }),
		reads: attacker.attack("calls", all),
		filters: attacker.attack("newFilters", all),
		cancels: attacker.attack("cancels", { ...all, target: own }),
	};
	const outcomes = {} as Record<keyof typeof floods, Readonly<Record<string, number>>>;
	for (const [name, one] of Object.entries(floods))
		outcomes[name as keyof typeof floods] = (await one).outcomes;
	return outcomes;
}
