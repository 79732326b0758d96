// Runs a flood of the table (floods.ts) at a door while an honest user is served beside it.

import assert from "node:assert/strict";
import { until } from "../until.ts";
import type { AttackOrder } from "./attacker.ts";
import type { AttackFixture, Door } from "./attackFixture.ts";
import type { Tally } from "./flood.ts";
import { attackerAddress } from "./wire.ts";

/** Small counts for `npm test`, or the full size. */
export type Size = "short" | "full";

/** The beginning of a flood, and its size. */
interface Start {
	readonly fixture: AttackFixture;
	readonly door: Door;
	readonly size: Size;
	/** The number of its first account, and its network address. */
	readonly accounts: number;
	readonly from: string;
	/** The network address of a second attacker. */
	readonly other: string;
}

/** A flood that is ready. */
interface Prepared {
	readonly order?: Partial<AttackOrder>;
	/** Attacks in another way than by one order. */
	readonly run?: (order: AttackOrder) => Promise<Tally>;
	/**
	 * The node answers this method only after `ms`, and in `npm test` only after the honest user was
	 * served. `most`: calls of one client that the node is asked at a time.
	 */
	readonly slow?: { readonly method: string; readonly ms: number; readonly most: number };
	/** Asserts what must hold besides the service of the honest user. */
	readonly holds?: (tally: Tally) => Promise<void> | void;
}

/** One row of the table. */
export interface Flood {
	readonly title: string;
	/** Its name among the attacks of attackKinds.ts. */
	readonly attack: string;
	/** Requests or connections. Without a full size, another nightly file measures it. */
	readonly count: { readonly short: number; readonly full?: number };
	/**
	 * All that it opens stays open, and the honest user is served when all is open. The server can't
	 * know whose a connection is before its first request, so a slow one may close the user's while
	 * it opens.
	 */
	readonly isHeld?: boolean;
	readonly prepare: (start: Start) => Promise<Prepared> | Prepared;
}

const FIRST_ACCOUNT = 2_000_000;
const ACCOUNTS_EACH = 100_000;
/** The number of the first second attacker. */
const OTHERS = 100;
let floods = 0;

/** Runs `flood` while `served` measures the honest user of `door`, and asserts what must hold. */
export async function runFlood(
	{ title, attack, count, isHeld, prepare }: Flood,
	{ fixture, door, size }: Pick<Start, "fixture" | "door" | "size">,
	served: (attacking: Promise<unknown>) => Promise<unknown>,
): Promise<void> {
	floods += 1;
	const [from, other] = [attackerAddress(floods), attackerAddress(OTHERS + floods)];
	const accounts = FIRST_ACCOUNT + floods * ACCOUNTS_EACH;
	const { order, run, slow, holds } = await prepare({ fixture, door, size, accounts, from, other });
	const whole = { accounts, from, count: count[size] ?? count.short, ...order };
	fixture.node.reset();
	const release = slow === undefined ? () => {} : slowDown(fixture, size, slow);
	const attacking = run === undefined ? door.attacker.attack(attack, whole) : run(whole);
	if (isHeld === true) await attacking;
	if (slow === undefined || size === "full") await served(attacking);
	else {
		const { method, most } = slow;
		const asked = () => fixture.node.calls(method).length;
		await until(`the node is asked for ${most} ${method}`, () => asked() >= most);
		await served(Promise.resolve());
		assert.equal(asked(), most, `${method} under way`);
	}
	release();
	const tally = await attacking;
	fixture.say(title, tally);
	await holds?.(tally);
}

function slowDown(
	{ node }: AttackFixture,
	size: Size,
	{ method, ms }: NonNullable<Prepared["slow"]>,
): () => void {
	if (size === "short") return node.hold([method]);
	node.setDelay(ms, [method]);
	return () => node.setDelay(0);
}
