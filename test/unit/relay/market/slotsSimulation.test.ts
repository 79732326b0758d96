// Properties of the slots over a day of auctions: what users keep, and what cheats gain, on the
// relay's own slots. As a table for docs/searchers.md: `npm run test:long -- --only slots --write`.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { CHEATS, CROWD, LONG, playCrowd, playRow, type SlotsRow } from "../../../long/slots.ts";
import { sized } from "../../../support/length.ts";

const OPTIONS = sized(
	{ targets: 72, ways: [{ bought: 0.1 }, { bought: 0.85, buyers: 8 }, { outbids: 0.9 }] },
	LONG,
);
/**
 * The share that users keep if 16 bids are drawn by lot, by the number of addresses that lie,
 * beside six honest bidders.
 */
const BY_LOT: Readonly<Record<number, number>> = { 16: 0.99, 32: 0.94, 64: 0.73, 256: 0.32 };
/** Tolerance. The honest bidder must have landed once before the slots by record are its own. */
const OFF = 0.1;

describe("a day of auctions", () => {
	let rows: readonly SlotsRow[] = [];
	before(() => {
		rows = sized([16, 64], CHEATS).map((cheats) => playRow(cheats, OPTIONS));
	});

	it("users keep nothing if a builder has the highest bids alone, and little if it has bids by lot alone", () => {
		for (const { cheats, bid, lotOfSix } of rows.filter(({ cheats }) => cheats >= 16)) {
			assert.equal(bid.kept, 0, `${cheats}`);
			assert.ok(Math.abs(lotOfSix.kept - (BY_LOT[cheats] ?? 0)) < OFF, `${cheats}: ${lotOfSix.kept}`);
		}
	});

	it("with the slots users keep nearly all, though the honest bidder's record grows from nothing", () => {
		for (const { cheats, slots, lot } of rows) {
			assert.ok(slots.kept > 1 - OFF, `${cheats}: ${slots.kept}`);
			assert.ok(slots.kept >= lot.kept - OFF / 10, `${cheats}: ${slots.kept}, by lot ${lot.kept}`);
		}
	});

	it("records bought against an established bidder cost more than they bring, at every price and by outbidding it", () => {
		for (const { cheats, bought } of rows)
			for (const [i, { gain }] of bought.entries())
				assert.ok(gain < 0, `${cheats}, ${JSON.stringify(OPTIONS.ways[i])}: ${gain}`);
	});

	it("an honest crowd with many failing bids pays as much as if the builder had all of them", () => {
		const kept = playCrowd(sized(240, LONG.targets), CROWD.size, CROWD.failing);
		assert.ok(kept >= 0.99, `${kept}`);
	});
});
