// A day of auctions on the relay's own slots: honest bidders against addresses that claim more than
// anybody and pay 1 wei, with and without records that these have bought, and an honest crowd
// against sending everything. A builder runs the bids that it has in its block, and keeps those
// that pay the most.

import type { Bid } from "../../relay/auction/bid.ts";
import { drawing, slotsOf } from "../../relay/auction/slots.ts";
import { bidderKey } from "../../relay/domain/bundleStatus.ts";
import { SeededRandom } from "../support/seededRandom.ts";

const SLOTS = 16;
/** How long a payment counts in a record, and the length of a day, in blocks. */
const DAY_BLOCKS = 7_200;
const MILLIETHER = 10n ** 15n;
/**
 * The payment of an honest bidder, in milliether, drawn from this range for each target. In a crowd
 * it is drawn from 0 on.
 */
const [LEAST, MOST] = [14_000, 16_000];
/** The claim of a bid that pays 1 wei. */
const CLAIM = 100_000;
/** The part of a payment that is not refunded: a landed bid leaves it at the builder. */
const LEFT = 0.1;
/** Left by a landed cheat's priority fee, in milliether. */
const FEES_LEFT = 0.005;

/** Addresses that lie. */
export const CHEATS: readonly number[] = [1, 8, 16, 32, 64, 256];
export const CROWD = { size: 40, failing: 0.25 } as const;
/** The whole of it. */
export const LONG: SlotsOptions = {
	targets: 720,
	ways: [
		...[0.01, 0.1, 0.2, 0.4, 0.8].map((bought) => ({ bought })),
		...[0.4, 0.85].map((bought) => ({ bought, buyers: SLOTS / 2 })),
		{ outbids: 0.91 },
	],
};

/** Which bids go to the builder: the 16 highest; 16 drawn; or the relay's slots. */
export type Rule = "bid" | "lot" | "slots";

export interface Scenario {
	readonly rule: Rule;
	/** Targets of a day. */
	readonly targets: number;
	/** Honest bidders, and addresses that lie, each in a network of its own. */
	readonly honest: number;
	readonly cheats: number;
	/** Whether the honest ones have bid for a day before. */
	readonly isEstablished?: boolean;
	/** The day of the attack that is measured. The first unless said. */
	readonly day?: number;
	/**
	 * The cheats' payment for records as each day begins, as a part of the sum of one honest bidder's
	 * bids of a day.
	 */
	readonly bought?: number;
	/** How many of them share these records. All unless said. */
	readonly buyers?: number;
	/**
	 * For this part of the targets one cheat after the other pays the most that an honest bidder may,
	 * for its record.
	 */
	readonly outbids?: number;
}

/** The outcome, as parts of the sum of the best honest bids of the day. */
export interface Outcome {
	/** The payments that users got their share of. */
	readonly kept: number;
	/**
	 * The cheats' gain, less their payments: a backrun is worth to them what the best honest bid
	 * pays.
	 */
	readonly gain: number;
}

interface Actor {
	readonly sender: string;
	readonly client: string;
	/** As of the ledger. */
	readonly key: string;
	readonly isHonest: boolean;
}

/** The amounts that bidders have left within a day, in milliether. */
class Records {
	readonly #payments: { readonly block: number; readonly key: string; readonly left: bigint }[] = [];
	readonly #sums = new Map<string, bigint>();
	#expired = 0;

	of(key: string): bigint {
		return this.#sums.get(key) ?? 0n;
	}

	add(block: number, { key }: Actor, milliether: number): void {
		const left = BigInt(Math.round(milliether * 1_000)) * (MILLIETHER / 1_000n);
		this.#payments.push({ block, key, left });
		this.#sums.set(key, this.of(key) + left);
	}

	expire(block: number): void {
		for (let one = this.#payments[this.#expired]; one && one.block + DAY_BLOCKS <= block; ) {
			this.#sums.set(one.key, this.of(one.key) - one.left);
			this.#expired += 1;
			one = this.#payments[this.#expired];
		}
	}
}

/** Plays the days up to the measured one. The same scenario has the same outcome. */
export function playDay(scenario: Scenario): Outcome {
	const { targets, isEstablished = false, day = 1, bought = 0, buyers, outbids } = scenario;
	const random = new SeededRandom(48);
	const secret = Buffer.alloc(32, 48);
	const records = new Records();
	const honest = actors(scenario.honest, true);
	const cheats = actors(scenario.cheats, false);
	const tally = { best: 0, kept: 0, gain: 0 };
	const before = isEstablished ? targets : 0;
	const end = before + day * targets;
	for (let i = 0; i < end; i += 1) {
		const block = Math.floor((i * DAY_BLOCKS) / targets);
		const [isAttacked, isMeasured] = [i >= before, i >= end - targets];
		records.expire(block);
		if (isAttacked && i % targets === 0 && bought > 0) {
			const paid = bought * targets * ((LEAST + MOST) / 2);
			const buying = cheats.slice(0, buyers);
			for (const buyer of buying) records.add(block, buyer, paid / buying.length);
			if (isMeasured) tally.gain -= paid;
		}
		const pays = new Map<Bid, number>();
		const offer = (actor: Actor, claim: number, paid: number) =>
			pays.set(bidOf(actor, claim, pays.size), paid);
		const worths = honest.map(() => LEAST + random.below(MOST - LEAST + 1));
		for (const [at, worth] of worths.entries()) offer(honest[at] as Actor, worth, worth);
		const payer = outbids !== undefined && random.below(1_000) < outbids * 1_000 ? i % cheats.length : -1;
		if (isAttacked)
			for (const [at, cheat] of cheats.entries())
				offer(cheat, at === payer ? CLAIM + 1 : CLAIM, at === payer ? MOST : 0);
		const draw = drawing(secret, block, `target ${i}`);
		const placed = placedBy(scenario.rule, [...pays.keys()], draw, (key) => records.of(key));
		const paidBy = (bid: Bid) => pays.get(bid) ?? 0;
		const winner = placed.reduce((best, bid) => (paidBy(bid) > paidBy(best) ? bid : best));
		const actor = [...honest, ...cheats].find(({ sender }) => sender === winner.backrun.from) as Actor;
		const paid = paidBy(winner);
		records.add(block, actor, paid === 0 ? FEES_LEFT : paid * LEFT);
		if (!isMeasured) continue;
		const best = Math.max(...worths);
		tally.best += best;
		tally.kept += Math.min(paid, best);
		if (!actor.isHonest) tally.gain += best - paid;
	}
	return { kept: tally.kept / tally.best, gain: tally.gain / tally.best };
}

/**
 * The payment of an honest crowd's bids in the slots, as a part of their payment if the builder had
 * them all. `failing` of them fail in the block, and those that have landed have records.
 */
export function playCrowd(targets: number, size: number, failing: number): number {
	const random = new SeededRandom(48);
	const secret = Buffer.alloc(32, 48);
	const records = new Records();
	const crowd = actors(size, true);
	let [kept, best] = [0, 0];
	for (let i = 0; i < targets; i += 1) {
		const block = Math.floor((i * DAY_BLOCKS) / targets);
		const pays = new Map<Bid, number>();
		for (const actor of crowd) {
			const worth = random.below(MOST + 1);
			pays.set(bidOf(actor, worth, pays.size), random.below(1_000) < failing * 1_000 ? 0 : worth);
		}
		const draw = drawing(secret, block, `target ${i}`);
		const placed = placedBy("slots", [...pays.keys()], draw, (key) => records.of(key));
		const paidBy = (bid: Bid) => pays.get(bid) ?? 0;
		const winner = placed.reduce((high, bid) => (paidBy(bid) > paidBy(high) ? bid : high));
		const actor = crowd.find(({ sender }) => sender === winner.backrun.from) as Actor;
		records.add(block, actor, paidBy(winner) * LEFT);
		kept += paidBy(winner);
		best += Math.max(...pays.values());
	}
	return kept / best;
}

/** The results with so many cheats. */
export interface SlotsRow {
	readonly cheats: number;
	/**
	 * By each rule, where nobody has a record before; of `lot` also with six honest bidders instead
	 * of one.
	 */
	readonly bid: Outcome;
	readonly lot: Outcome;
	readonly lotOfSix: Outcome;
	readonly slots: Outcome;
	/** With records got in each way, against a bidder with one. */
	readonly bought: readonly Outcome[];
}

export interface SlotsOptions {
	readonly targets: number;
	/** How the cheats get records. */
	readonly ways: readonly Pick<Scenario, "bought" | "buyers" | "outbids">[];
}

export function playRow(cheats: number, options: SlotsOptions): SlotsRow {
	const play = (about: Partial<Scenario>) =>
		playDay({ rule: "slots", targets: options.targets, honest: 1, cheats, ...about });
	return {
		cheats,
		bid: play({ rule: "bid" }),
		lot: play({ rule: "lot" }),
		lotOfSix: play({ rule: "lot", honest: 6 }),
		slots: play({}),
		bought: playBought(cheats, options, { isEstablished: true }),
	};
}

/** A day with records got in each way. */
function playBought(
	cheats: number,
	{ targets, ways }: SlotsOptions,
	about: Pick<Scenario, "isEstablished" | "day">,
): readonly Outcome[] {
	return ways.map((way) => playDay({ rule: "slots", targets, honest: 1, cheats, ...about, ...way }));
}

/**
 * Plays all of it; true where an attack on a bidder with a record costs more on its first day than
 * it brings, in every way.
 */
export async function longSlots({
	say,
	write,
}: {
	readonly say: (line: string) => void;
	/** Takes the table, in Markdown. */
	readonly write: (table: string) => void;
}): Promise<boolean> {
	const percent = (part: number) => `${Math.round(part * 100)} %`.replace("-", "−");
	const range = (all: readonly Outcome[]) =>
		`${percent(Math.min(...all.map(({ kept }) => kept)))}; ${percent(Math.max(...all.map(({ gain }) => gain)))}`;
	const lines = [
		[
			...["networks that lie", "the 16 highest bids", "16 drawn by lot", "the slots"],
			...["the slots, records bought: first day", "third day", "first day, nobody has a record before"],
		],
		Array.from({ length: 7 }, () => "---"),
	];
	let isLoss = true;
	for (const cheats of CHEATS) {
		const { bid, lot, slots, bought } = playRow(cheats, LONG);
		const third = playBought(cheats, LONG, { isEstablished: true, day: 3 });
		const young = playBought(cheats, LONG, {});
		for (const [when, all] of Object.entries({ first: bought, third, young }))
			for (const [i, one] of all.entries())
				say(
					`slots: ${cheats} ${when} ${JSON.stringify(LONG.ways[i])}: ${percent(one.kept)}; ${percent(one.gain)}`,
				);
		lines.push([
			...[String(cheats), ...[bid, lot, slots].map(({ kept }) => percent(kept))],
			...[bought, third, young].map(range),
		]);
		isLoss &&= bought.every(({ gain }) => gain < 0);
	}
	const crowd = playCrowd(LONG.targets, CROWD.size, CROWD.failing);
	say(`slots: ${(crowd * 100).toFixed(2)} % of what an honest crowd of ${CROWD.size} would pay is kept`);
	const table = lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
	say(table);
	write(table);
	return isLoss;
}

function actors(count: number, isHonest: boolean): readonly Actor[] {
	return Array.from({ length: count }, (_, i) => {
		const client = `${isHonest ? 10 : 20}.${i >> 8}.${i & 255}.1`;
		const sender = `${isHonest ? "honest" : "cheat"} ${i}`;
		return { sender, client, isHonest, key: bidderKey({ owner: client, client, sender }) };
	});
}

function bidOf({ sender, client }: Actor, milliether: number, seq: number): Bid {
	return {
		...{ bidder: { owner: client, client, sender }, owner: client, client },
		...{ backrun: { from: sender }, value: BigInt(milliether) * MILLIETHER, seq },
	} as unknown as Bid;
}

function placedBy(
	rule: Rule,
	bids: readonly Bid[],
	draw: (name: string) => number,
	recordOf: (key: string) => bigint,
): readonly Bid[] {
	if (rule === "slots") return slotsOf(bids, { slots: SLOTS, recordOf, draw });
	const order = (bid: Bid) => (rule === "bid" ? -Number(bid.value) : draw(bid.client));
	return [...bids].sort((one, other) => order(one) - order(other)).slice(0, SLOTS);
}
