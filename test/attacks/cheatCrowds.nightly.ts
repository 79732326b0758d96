// Cheats from up to 24 networks keep out no searcher with a record, and ten of them no newcomer.
// They never pay, revert, or pay first and lie later. Bids that come and go take no refund out of a
// target's record. Shares of slots: slotsSimulation.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
	type CheatAuction,
	ETHER,
	type Searcher,
	startCheatAuction,
} from "../support/attacks/auctionFixture.ts";
import { until } from "../support/until.ts";

const CHEAT_WEI = 5n * ETHER;
const HONEST_WEI = ETHER / 10n;
/** With the searcher as many as there are slots by record. */
const BUYERS = 7;
/** A record of events keeps so many: the first quarter and the last ones. */
const EVENTS = 200;
/** Bids under way at the same time. */
const AT_ONCE = 10;

let auction: CheatAuction;
before(async () => {
	auction = await startCheatAuction({ env: { RATE_LIMIT_RPS: "0" } });
});
after(() => auction?.stop());

/**
 * The cheats and then the honest one bid on a target: asserts that the honest one lands and the
 * refund is paid.
 */
async function assertLands(honest: Searcher, cheats: readonly Searcher[] = [], { reverts = false } = {}) {
	const target = await auction.target();
	const lies = cheats.map((cheat) => auction.lyingBackrun(cheat, CHEAT_WEI, { reverts }));
	for (const [i, lie] of lies.entries()) await auction.accepted(cheats[i] as Searcher, target, lie);
	const backrun = auction.backrun(honest, HONEST_WEI);
	const bundle = await auction.accepted(honest, target, backrun);
	await auction.behind(target, backrun);
	if (cheats.length > 0) await auction.nameBlock(cheats);
	const { transactions } = await auction.nextBlock();
	assert.equal(transactions[transactions.indexOf(target.hash) + 1], backrun.hash);
	assert.ok((await auction.balance(target.recipient)) >= (HONEST_WEI * 89n) / 100n, "the refund is paid");
	await auction.becomes(honest, bundle, { stage: "INCLUDED", paid: String(HONEST_WEI) });
	for (const one of [honest, ...cheats]) await auction.readNonce(one);
	return { target, bundle };
}

/** Has the searcher land once, so that it has a record. */
async function buyRecord(searcher: Searcher): Promise<void> {
	const { bundle } = await assertLands(searcher);
	await until("it has a record", () => auction.hasRecord(searcher, bundle));
}

describe("a searcher with a record", () => {
	let honest: Searcher;
	before(async () => {
		honest = await auction.honest();
		await buyRecord(honest);
	});

	for (const size of [2, 3, 10, 24]) {
		for (const reverts of [false, true]) {
			const how = reverts ? "revert in the block" : "pay a wei in the block";
			it(`lands before, during and after ${size} networks bid fifty times as much and ${how}`, async () => {
				await assertLands(honest);
				await assertLands(honest, await auction.cheaters(size), { reverts });
				await assertLands(honest);
			});
		}
	}

	it(`lands in each block while ${BUYERS} networks with paid records lie`, async () => {
		const { contract } = await auction.honest();
		const cheats = await auction.cheaters(BUYERS);
		for (const cheat of cheats) {
			const paying = { ...cheat, contract };
			await buyRecord(paying);
			cheat.nonce = paying.nonce;
		}
		for (let block = 0; block < 4; block += 1) await assertLands(honest, cheats);
		await assertLands(honest);
	});
});

it("a newcomer lands in each block in which ten networks lie", async () => {
	const cheats = await auction.cheaters(10);
	await assertLands(await auction.honest());
	for (let block = 0; block < 4; block += 1) await assertLands(await auction.honest(), cheats);
	await assertLands(await auction.honest());
});

it("higher bids that come and go take no refund out of the record", async () => {
	const [target, flooder, honest] = [await auction.target(), await auction.honest(), await auction.honest()];
	let next = 0;
	const flood = async (count: number): Promise<void> => {
		for (const end = next + count; next < end; ) {
			const some = Array.from({ length: Math.min(AT_ONCE, end - next) }, () => HONEST_WEI + BigInt(++next));
			await Promise.all(
				some.map((wei) => auction.accepted(flooder, target, auction.backrun(flooder, wei), "again")),
			);
		}
	};
	await flood(EVENTS / 4);
	const backrun = auction.backrun(honest, HONEST_WEI);
	const bundle = await auction.accepted(honest, target, backrun);
	await auction.behind(target, backrun);
	await flood((EVENTS * 3) / 4);
	await auction.withdraw(flooder, "again");
	await auction.onlyBehind(target, [backrun]);
	await auction.nextBlock();
	await auction.becomes(honest, bundle, { stage: "INCLUDED", paid: String(HONEST_WEI) });
	const refund = await auction.balance(target.recipient);
	assert.ok(refund >= (HONEST_WEI * 89n) / 100n, `the refund is ${refund} wei`);
	await until("the refund is in the record", async () => {
		const { refundWei } = await auction.relay.client.status(target.hash);
		return refundWei === String(refund);
	});
});
