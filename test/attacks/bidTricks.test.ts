// What a searcher tries beside lying to a simulation: a payment that nobody can read, and the signed backruns of others.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import {
	type CheatAuction,
	ETHER,
	OWNER_UNSEEN,
	startCheatAuction,
} from "../support/attacks/auctionFixture.ts";
import { until } from "../support/until.ts";

const CHEAT_WEI = 5n * ETHER;

let auction: CheatAuction;
before(async () => {
	auction = await startCheatAuction();
});
after(() => auction?.stop());

it("who makes more calls than anybody can read is barred for what the coinbase did not get", async () => {
	const [cheat, owner, target] = [await auction.cheater(), await auction.honest(), await auction.target()];
	const cheats = auction.lyingBackrun(cheat, CHEAT_WEI, { tell: OWNER_UNSEEN, gas: 280_000n });
	const { result, error } = await auction.bid(cheat, target, cheats);
	assert.equal(error, undefined, JSON.stringify(error));
	await auction.delivered(cheats);
	await auction.nameBlock(owner, cheat);
	const { number, transactions } = await auction.nextBlock();
	assert.ok(transactions.includes(cheats.hash), "it is in the block");
	const told = await until(
		"its owner is told",
		async () => (await auction.told(cheat, String(result))).barred ?? undefined,
	);
	assert.deepEqual(told, { until: number + 32, bid: String(CHEAT_WEI), paid: "1", block: number });
});
