// The attacks of test/attacks all together, at the rates that were seen and for minutes: honest
// users are all served. Then everything expires, and the same comes again: the relay's memory must
// be what it was after the first time.

import { systemClock } from "../../shared/clock.ts";
import { BURNS_AND_PAYS } from "../support/attacks/attackContracts.ts";
import type { AttackOrder } from "../support/attacks/attacker.ts";
import { type AttackFixture, startAttackFixture } from "../support/attacks/attackFixture.ts";
import { brokenIn, lineOf } from "../support/attacks/measuring.ts";
import { attackerAddress } from "../support/attacks/wire.ts";
import { rawTransaction, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

interface LongAttacksOptions {
	readonly minutes: number;
	/** Takes each line. */
	readonly say: (line: string) => void;
}

const MIB = 1024 * 1024;
const ETHER = 10n ** 18n;
const BURNER = `0x${"b7".repeat(20)}`;
/** Each of the two rounds of attacks is measured in so many parts, each with a line of its own. */
const PARTS = 10;
/**
 * Blocks after which every pending transaction has expired, also one behind a gap, and after which
 * it is archived.
 */
const LONGEST_LIFE = 1_000;
const LONGEST_WATCH = 100;
/** Allowed growth of live memory from the first round to the second, while nothing is pending. */
const GROWTH_BYTES = 16 * MIB;
/** Reads of the attacker's take the node so long. */
const SLOW_MS = 2_000;
const SLOW_METHODS = ["eth_call", "eth_getProof"];
/**
 * An attack that is over begins again so much later: a client's allowance of requests has filled up
 * by then.
 */
const AGAIN_MS = 10_000;
/** The first account of each round. */
const FIRST_ACCOUNTS = [10_000_000, 1_000_000_000];
const ACCOUNTS_EACH = 100_000;

/** One attack of the soak, as it is begun again and again. */
interface Row {
	readonly name: string;
	/** Beside address and accounts. */
	readonly order: (fixture: AttackFixture) => Promise<Record<string, unknown>>;
}

const ROWS: readonly Row[] = [
	{
		name: "plainBundles",
		order: async (fixture) => ({ count: 4_000, keys: 8, block: await fixture.nextBlock() }),
	},
	{
		name: "crowdedBundles",
		order: async (fixture) => ({ count: 200, size: 100, block: await fixture.nextBlock() }),
	},
	{ name: "gapped", order: async () => ({ count: 4_110, size: 128 * 1024 - 200, fee: 0, connections: 4 }) },
	{ name: "waiting", order: async () => ({ count: 5_000, fee: 0 }) },
	{ name: "heavyBids", order: heavyBids },
	{ name: "emptyCalls", order: async () => ({ count: 4, size: 690_000, connections: 1 }) },
	{ name: "blockObjects", order: async () => ({ count: 8, size: 150_000, connections: 1 }) },
	{ name: "calls", order: async () => ({ count: 100, connections: 100 }) },
	{ name: "proofs", order: async () => ({ count: 600, connections: 200 }) },
	{ name: "discoveries", order: async () => ({ count: 300, connections: 4 }) },
	{ name: "idle", order: async () => ({ count: 4_000 }) },
	{ name: "unread", order: async () => ({ count: 100, size: 11 }) },
	{ name: "shown", order: shown },
];

/** Runs it; true where everything held. */
export async function longAttacks({ minutes, say }: LongAttacksOptions): Promise<boolean> {
	const fixture = await startAttackFixture({ say: () => {}, isCollected: true });
	try {
		return await soak(fixture, { minutes, say });
	} finally {
		await fixture.stop();
	}
}

async function soak(fixture: AttackFixture, { minutes, say }: LongAttacksOptions): Promise<boolean> {
	await fixture.chain.rpc("anvil_setCode", [BURNER, BURNS_AND_PAYS]);
	let fine = true;
	const fail = (what: string): void => {
		say(`attacks: FAILED ${what}`);
		fine = false;
	};
	const memory: number[] = [];
	for (const firstAccount of FIRST_ACCOUNTS) {
		await attackAll(fixture, { minutes: minutes / 2, firstAccount, say, fail });
		memory.push(await emptied(fixture));
	}
	const [before = 0, behind = 0] = memory;
	say(`attacks: live memory after each round: ${memory.map((one) => Math.round(one / MIB)).join(", ")} MiB`);
	if (behind - before > GROWTH_BYTES) fail("memory is not flat");
	return fine;
}

/** Live memory in bytes after everything has expired. */
async function emptied(fixture: AttackFixture): Promise<number> {
	const slot = `0x${fixture.chain.slotSeconds.toString(16)}`;
	for (const count of [LONGEST_LIFE, LONGEST_WATCH]) {
		await fixture.chain.rpc("anvil_mine", [`0x${count.toString(16)}`, slot]);
		await fixture.seesHead((await fixture.nextBlock()) - 1, 120_000);
	}
	const pending = await fixture.metric("relay_pending_transactions");
	if (pending !== 0) throw new Error(`${pending} transactions are pending after the longest life`);
	return (await fixture.relay.figures("live memory")).bytes as number;
}

interface AttackRound extends LongAttacksOptions {
	/** The first of the accounts that nobody has seen. */
	readonly firstAccount: number;
	/** Takes what did not hold. */
	readonly fail: (what: string) => void;
}

/** All attacks for `minutes`, and what the honest user saw meanwhile. */
async function attackAll(fixture: AttackFixture, round: AttackRound): Promise<void> {
	const { minutes, say, fail } = round;
	fixture.node.setDelay(SLOW_MS, SLOW_METHODS);
	const end = systemClock.monotonic() + minutes * 60_000;
	const attacking = ROWS.map((row, i) =>
		again(fixture, { row, number: i, end, round }).catch((thrown: unknown) =>
			fail(`${row.name}: ${String(thrown)}`),
		),
	);
	for (let part = 0; part < PARTS; part++) {
		const over = systemClock.monotonic() + (end - systemClock.monotonic()) / (PARTS - part);
		const lasting = until(
			"a part of the soak",
			() => systemClock.monotonic() > over,
			minutes * 60_000 + 1_000,
		);
		const figures = await fixture.during(`part ${part + 1} of ${PARTS}`, lasting);
		fixture.node.reset();
		say(`attacks: ${lineOf(figures)}`);
		// Told alone: thirteen attacks and the attacker have the same processors as the relay.
		const { livez: _, ...slowest } = figures.slowest;
		// A limit of 512 MiB is for one attack: so many clients may hold more together. Growth is
		// reported at the end.
		for (const broken of brokenIn({ ...figures, slowest, memory: 0 })) fail(broken);
	}
	await Promise.all(attacking);
}

/**
 * One attack after another of the same kind, each from the same address, with accounts that nobody
 * has seen.
 */
async function again(
	fixture: AttackFixture,
	{
		row,
		number,
		end,
		round,
	}: { readonly row: Row; readonly number: number; readonly end: number; readonly round: AttackRound },
): Promise<void> {
	for (let i = 0; systemClock.monotonic() < end; i++) {
		const accounts = round.firstAccount + (i * ROWS.length + number) * ACCOUNTS_EACH;
		const order = await row.order(fixture);
		const lastingMs = Math.max(1, Math.min(60_000, end - systemClock.monotonic()));
		const from = attackerAddress(1 + number);
		const common = { from, accounts, lastingMs, ...order } as AttackOrder;
		const { outcomes } = await fixture.attacker.attack(row.name, common);
		if (i === 0) round.say(`attacks: ${row.name} came to ${JSON.stringify(outcomes)}`);
		const next = systemClock.monotonic() + AGAIN_MS;
		await until("the next time", () => systemClock.monotonic() > Math.min(next, end), AGAIN_MS + 1_000);
	}
}

let bids = 0;
/** Bids on a target of the attacker's own. */
async function heavyBids(fixture: AttackFixture): Promise<Record<string, unknown>> {
	bids += 2;
	const accounts = 9_000_000 + bids;
	const owner = testAccount(accounts + 1);
	for (const { address } of [testAccount(accounts), owner]) await fixture.fund(address, ETHER);
	await fixture.workedOff();
	const raw = `0x${rawTransaction({ by: owner }).toString("hex")}`;
	const target = await fixture.relay.client.send(raw, "/maxbackruns");
	await until("the target is shown", async () => (await fixture.relay.client.status(target)).shared, 30_000);
	return { count: 700, connections: 64, uuid: "one of mine", target, to: BURNER, accounts };
}

let shownAccounts = 0;
/** Large transactions that are disclosed to all subscribers. */
async function shown(fixture: AttackFixture): Promise<Record<string, unknown>> {
	shownAccounts += 2;
	const accounts = 9_500_000 + shownAccounts;
	for (let i = 0; i < 2; i++) await fixture.fund(testAccount(accounts + i).address, ETHER);
	await fixture.workedOff();
	return { count: 2, size: 127 * 1024, connections: 1, accounts };
}
