// Bids are sealed. A searcher records all that it can see of a target and of its own bid before the
// block. The record is the same, to the byte, whether a rival bids nothing, less, more, from the
// same network address, from many addresses, or bids and withdraws. The result is returned with the
// block.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { createKey } from "../../../shared/ethereum/signatures.ts";
import {
	type AuctionFixture,
	type Bidder,
	bundleOf,
	startAuction,
	type Target,
} from "../../support/bidder.ts";
import { BiddingFixture, EMITTER } from "../../support/biddingFixture.ts";
import { metricsOf } from "../../support/relayClient.ts";
import { ETHER, GWEI, type Signed } from "../../support/relayFixture.ts";
import { firstDifference, SearcherView } from "../../support/searcherView.ts";
import { until } from "../../support/until.ts";
import { cancelBy } from "../../support/userFixtures.ts";

/** The least: two by record, one by bid, one by lot. */
const SLOTS = 4;
const SHARE = 1_000_000n * GWEI;
const OWN_SHARES = 10n;
const CROWD = 12;
const SOFT = "/noreverts?softCancellations=true";

let fixture: AuctionFixture;
/** Bidders with a record at the builder: a slot each. */
const veterans: Bidder[] = [];
/** Targets that were mined, and wei that were refunded for them. */
const mined = { transactions: 0, refunded: 0n };
before(async () => {
	fixture = await startAuction({ env: { BIDS_PER_TARGET: String(SLOTS) } });
	const targets = [await fixture.target(), await fixture.target()];
	for (const target of targets) {
		const { bidder } = await fixture.offerOut(target, SHARE);
		bidder.nonce += 1;
		veterans.push(bidder);
	}
	await fixture.system.nextBlock();
	for (const target of targets) await settled(target);
});
after(() => fixture.system.stop());

/** Waits until the refund of a mined target is known, and counts it. */
async function settled(target: Signed): Promise<void> {
	const { paid } = await fixture.event(target, "refunded");
	mined.transactions += 1;
	mined.refunded += BigInt(String(paid));
}

/** A searcher's rivals on one target, who bid the same each time. */
class Rivals {
	readonly #target: Target;
	/** The address of the searcher whose rivals they are. */
	readonly #address: string;
	/** Signs what is sent from there: a key that has no record. */
	readonly #key = createKey();
	readonly #all: Bidder[] = [];

	constructor(target: Target, address: string) {
		this.#target = target;
		this.#address = address;
	}

	async #rival(index: number): Promise<Bidder> {
		this.#all[index] ??= await fixture.bidder();
		return this.#all[index];
	}

	/** The first of them bids so many shares; returns when the builder has it. */
	async bid(shares: bigint): Promise<void> {
		const rival = await this.#rival(0);
		const backrun = rival.backrun(shares * SHARE);
		await rival.bid(this.#target, backrun, { uuid: "first" });
		await fixture.holds(this.#target, backrun);
	}

	async withdraw(): Promise<void> {
		const rival = await this.#rival(0);
		const backrun = rival.backrun(20n * SHARE);
		await rival.cancel("first");
		const has = async () => (await fixture.behind(this.#target)).includes(backrun.raw);
		await until("the builder has it no more", async () => !(await has()));
	}

	/** Somebody else at the searcher's own address bids more, so that the address's slot is his. */
	async bidBesides(): Promise<void> {
		const rival = await this.#rival(0);
		const backrun = rival.backrun(20n * SHARE);
		const who = { from: this.#address, key: this.#key };
		const calls = new BiddingFixture(fixture.system);
		await calls.call("eth_sendBundle", [{ txs: [this.#target.hash, backrun.raw] }], who);
		await fixture.out(this.#target, backrun);
	}

	/**
	 * Many addresses bid more, some of them with a record; one replaces its bid, one withdraws it.
	 */
	async crowd(): Promise<void> {
		for (let i = 0; i < CROWD; i += 1) {
			const rival = await this.#rival(i);
			await rival.bid(this.#target, rival.backrun(BigInt(20 + i) * SHARE), { uuid: "first" });
		}
		const [one, other] = [await this.#rival(0), await this.#rival(1)];
		await one.bid(this.#target, one.backrun(50n * SHARE), { uuid: "first" });
		await other.cancel("first");
		const due = veterans.map((veteran) => veteran.backrun(15n * SHARE));
		for (const [i, backrun] of due.entries()) await veterans[i]?.bid(this.#target, backrun);
		for (const backrun of due) await fixture.holds(this.#target, backrun);
	}
}

/**
 * The acts of rivals before or after the searcher bids, and the result that it receives with the
 * block: its stage, and the amount paid, in shares.
 */
interface Case {
	readonly before?: (rivals: Rivals) => Promise<void>;
	readonly after?: (rivals: Rivals) => Promise<void>;
	readonly stages: readonly string[];
	readonly paid: bigint | null;
	/** Whether the builder had its bid; undefined: the lot decides. */
	readonly isPlaced?: boolean;
}

const CONTROL: Case = { stages: ["INCLUDED"], paid: OWN_SHARES, isPlaced: true };
const CASES: Readonly<Record<string, Case>> = {
	"bids less": { ...CONTROL, after: (rivals) => rivals.bid(2n) },
	"bids more": { after: (rivals) => rivals.bid(20n), stages: ["LOST"], paid: 20n, isPlaced: true },
	"bids more, and withdraws": {
		...CONTROL,
		async after(rivals) {
			await rivals.bid(20n);
			await rivals.withdraw();
		},
	},
	"bids more at the same address, later": {
		after: (rivals) => rivals.bidBesides(),
		...{ stages: ["LOST"], paid: 20n, isPlaced: true },
	},
	"bids more at the same address, before": {
		before: (rivals) => rivals.bidBesides(),
		...{ stages: ["NOT_PLACED"], paid: null, isPlaced: false },
	},
	"bids more from many addresses": {
		after: (rivals) => rivals.crowd(),
		...{ stages: ["LOST", "NOT_PLACED"], paid: 50n },
	},
};

async function readJson(path: string): Promise<Record<string, unknown>> {
	return (await (await fetch(`${fixture.system.client.url}${path}`)).json()) as Record<string, unknown>;
}

/** Waits until builders have answered all that was on its way to them. */
async function quiet(): Promise<void> {
	await until("all is answered", async () =>
		/^relay_lane_depth 0$/m.test(await metricsOf(fixture.system.core.url)),
	);
}

/** A searcher that has bid on a target, and its rivals. */
interface Round {
	readonly target: Target;
	readonly view: SearcherView;
	readonly backrun: Signed;
	readonly hash: string;
	readonly rivals: Rivals;
}

/** The searcher and its rivals bid on a new target. */
async function begin({ before, after, isPlaced }: Case): Promise<Round> {
	const user = await fixture.actor(ETHER);
	const target: Target = { ...user.sign({ to: EMITTER }), user };
	const view = await SearcherView.open(fixture, target);
	await fixture.submit(SOFT, target);
	await fixture.open(target);
	await view.follow();
	const rivals = new Rivals(target, view.bidder.from);
	await before?.(rivals);
	const backrun = (await view.bid(OWN_SHARES * SHARE)) ?? assert.fail("it is refused");
	if (isPlaced === true) await fixture.holds(target, backrun);
	await after?.(rivals);
	await quiet();
	await view.look("pending");
	return { target, view, backrun, hash: bundleOf(target, backrun), rivals };
}

/**
 * All that the searcher sees before the block while its rivals act. Then checks the result that it
 * receives with the block.
 */
async function seen(one: Case): Promise<readonly string[]> {
	await until("what was mined is counted", async () => {
		const { transactions, refundedWei } = await readJson("/totals");
		return transactions === mined.transactions && refundedWei === String(mined.refunded);
	});
	const totals = await readJson("/totals");
	const { target, view, backrun, hash, rivals } = await begin(one);
	const { bidder } = view;
	const lines = [
		JSON.stringify(await readJson("/info")),
		`${isDeepStrictEqual(await readJson("/totals"), totals)}`,
	];
	// A block of others: where its bid stood is not told with that.
	await fixture.passBlock();
	await fixture.open(target);
	await bidder.reaches(hash, "TARGET_NOT_MINED");
	await quiet();
	await view.look("in the next block");
	assert.deepEqual(
		view.bundleNews.map(({ stage, reason, builders }) => [stage, reason, builders]),
		[
			["ACCEPTED", null, []],
			["TARGET_NOT_MINED", null, []],
		],
	);
	lines.push(...(await view.end({})));

	const { before, after, stages, paid, isPlaced } = one;
	await before?.(rivals);
	assert.equal(await bidder.bid(target, backrun), hash);
	if (isPlaced === true) await fixture.holds(target, backrun);
	await after?.(rivals);
	await quiet();
	await fixture.system.nextBlock();
	await settled(target);
	const told = (await bidder.blocks(hash)).at(-1) ?? assert.fail("it has no block");
	assert.ok(stages.includes(told.stage), told.stage);
	if (told.stage !== "NOT_PLACED")
		assert.equal((await bidder.told(hash, told.stage)).paid, String((paid ?? 0n) * SHARE));
	assert.equal(told.builders.length > 0, told.stage !== "NOT_PLACED", "builders' answers");
	return lines;
}

/** All that the searcher sees of a target that its user cancels. */
async function seenCancelled(one: Case): Promise<readonly string[]> {
	const { target, view } = await begin(one);
	assert.equal(await cancelBy(fixture.system, target), true);
	await quiet();
	await view.look("cancelled");
	await fixture.passBlock();
	await view.look("a block later");
	return view.end({});
}

describe("what a searcher sees before the block", () => {
	let control: readonly string[];
	before(async () => {
		control = await seen(CONTROL);
	});

	it("tells neither of builders nor of places, of its own bid either", () => {
		const about = control.filter((line) =>
			/^(pending|in the next block) (bundle|service_|flashbots_)/.test(line),
		);
		assert.ok(about.length > 16);
		for (const line of about)
			assert.doesNotMatch(line, /"dev"|"places":[^0]|issenttominers":true|"paid":"[^0]/);
		const page = control.filter((line) => /^(pending|in the next block) (page|status)/.test(line));
		assert.ok(page.length > 8);
		for (const line of page) assert.doesNotMatch(line, /"bids"|"backruns":[^0]|bundled|"backrun":true/);
	});

	for (const [what, one] of Object.entries(CASES)) {
		it(`is the same if a rival ${what}`, async () => {
			assert.equal(firstDifference(await seen(one), control), null);
		});
	}

	it("of a target that is cancelled is the same if a rival bids more", async () => {
		const expected = await seenCancelled(CONTROL);
		const { "bids more": more = CONTROL } = CASES;
		assert.equal(firstDifference(await seenCancelled(more), expected), null);
	});
});
