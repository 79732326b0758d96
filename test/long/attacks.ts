// The attacks of test/attacks all together, at the rates that were seen and for minutes: honest users are all served, and
// the relay's memory is flat.

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
/** The soak is measured in so many parts, each with a line of its own. */
const PARTS = 20;
/** What live memory may grow by over the second half: requests under way, and users' new transactions. */
const GROWTH_BYTES = 48 * MIB;
/** Reads of the attacker's take the node so long. */
const SLOW_MS = 2_000;
const SLOW_METHODS = ["eth_call", "eth_getProof"];
/** An attack that is over begins again so much later: a client's allowance of requests has filled up by then. */
const AGAIN_MS = 10_000;
const FIRST_ACCOUNT = 10_000_000;
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
	fixture.node.setDelay(SLOW_MS, SLOW_METHODS);
	const end = systemClock.monotonic() + minutes * 60_000;
	let fine = true;
	const fail = (what: string): void => {
		say(`attacks: FAILED ${what}`);
		fine = false;
	};
	const attacking = ROWS.map((row, i) =>
		again(fixture, { row, number: i, end, say }).catch((thrown: unknown) =>
			fail(`${row.name}: ${String(thrown)}`),
		),
	);
	const memory: number[] = [];
	for (let part = 0; part < PARTS; part++) {
		const over = systemClock.monotonic() + (end - systemClock.monotonic()) / (PARTS - part);
		const lasting = until(
			"a part of the soak",
			() => systemClock.monotonic() > over,
			minutes * 60_000 + 1_000,
		);
		const figures = await fixture.during(`part ${part + 1} of ${PARTS}`, lasting);
		fixture.node.reset();
		if (part >= PARTS / 2) memory.push((await fixture.relay.figures("live memory")).bytes as number);
		say(`attacks: ${lineOf(figures)}`);
		// Told alone: thirteen attacks and the attacker have the same processors as the relay.
		const { livez: _, ...slowest } = figures.slowest;
		// 512 MiB are for one attack: so many clients may hold more together. Whether it grows is told at the end.
		for (const broken of brokenIn({ ...figures, slowest, memory: 0 })) fail(broken);
	}
	await Promise.all(attacking);
	const [before, behind] = [memory.slice(0, PARTS / 4), memory.slice(PARTS / 4)].map(median);
	const grown = (behind ?? 0) - (before ?? 0);
	say(
		`attacks: live memory of the second half: ${memory.map((one) => Math.round(one / MIB)).join(", ")} MiB`,
	);
	if (grown > GROWTH_BYTES) fail("memory is not flat");
	return fine;
}

/** One attack after another of the same kind, each from the same address, with accounts that nobody has seen. */
async function again(
	fixture: AttackFixture,
	{
		row,
		number,
		end,
		say,
	}: { readonly row: Row; readonly number: number; readonly end: number } & Pick<LongAttacksOptions, "say">,
): Promise<void> {
	for (let round = 0; systemClock.monotonic() < end; round++) {
		const accounts = FIRST_ACCOUNT + (round * ROWS.length + number) * ACCOUNTS_EACH;
		const order = await row.order(fixture);
		const lastingMs = Math.max(1, Math.min(60_000, end - systemClock.monotonic()));
		const from = attackerAddress(1 + number);
		const common = { from, accounts, lastingMs, ...order } as AttackOrder;
		const { outcomes } = await fixture.attacker.attack(row.name, common);
		if (round === 0) say(`attacks: ${row.name} came to ${JSON.stringify(outcomes)}`);
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
/** Large transactions that whoever subscribed is shown. */
async function shown(fixture: AttackFixture): Promise<Record<string, unknown>> {
	shownAccounts += 2;
	const accounts = 9_500_000 + shownAccounts;
	for (let i = 0; i < 2; i++) await fixture.fund(testAccount(accounts + i).address, ETHER);
	await fixture.workedOff();
	return { count: 2, size: 127 * 1024, connections: 1, accounts };
}

function median(values: readonly number[]): number {
	return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
