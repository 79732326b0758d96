// What a searcher tries beside lying to a simulation: a payment that nobody can read, and the signed backruns of others.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { until } from "../until.ts";
import { type CheatAuction, ETHER, OWNER_UNSEEN, type Searcher, type Target } from "./auctionFixture.ts";

const CHEAT_WEI = 5n * ETHER;
const HONEST_WEI = ETHER / 10n;

let auction: CheatAuction;

/** The tests of this file, on an auction that runs. */
export function bidTricks(auctionOf: () => CheatAuction): void {
	before(() => {
		auction = auctionOf();
	});

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

	describe("a stranger who has a searcher's signed backrun, by a builder or another relay", () => {
		it("does not take it from its target by bringing it behind one of his own, which is never mined", async () => {
			const [searcher, stranger] = [await auction.honest(), await auction.cheater()];
			const [bait, target] = [await auction.target(), await auction.target()];
			const backrun = auction.backrun(searcher, HONEST_WEI);
			const brings = (where: Target) => auction.bid({ ...searcher, ...bringer(stranger) }, where, backrun);
			assert.equal((await brings(bait)).error, undefined);
			await auction.delivered(backrun);
			const { result, error } = await auction.bid(searcher, target, backrun);
			assert.equal(error, undefined);
			await auction.behind(target, backrun);
			// The stranger uses the nonce of his target for something else.
			await auction.sendToBuilder([auction.first(bait.account, { to: searcher.contract, nonce: 0 }).raw]);
			const { transactions } = await auction.nextBlock();
			assert.equal(transactions[transactions.indexOf(target.hash) + 1], backrun.hash);
			assert.ok((await auction.balance(target.recipient)) >= (HONEST_WEI * 89n) / 100n);
			const told = await until("what it has proven", async () => {
				const now = await auction.told(searcher, String(result));
				return now.provenUpTo !== undefined && now;
			});
			assert.equal(told.provenUpTo, String(8n * HONEST_WEI), "it is the searcher's own");
		});

		it("who makes it pay short behind a target of his own is barred himself; its sender is as proven as before", async () => {
			const [searcher, stranger] = [await auction.honest(), await auction.cheater()];
			await auction.prove(searcher, HONEST_WEI);
			// What it pays depends on a state that anybody can change.
			const moved = { ...searcher, contract: await auction.place(auction.cheat.runtime) };
			const backrun = auction.lyingBackrun(moved, HONEST_WEI);
			const bait = await auction.target();
			const brings = { ...moved, ...bringer(stranger) };
			const { result, error } = await auction.bid(brings, bait, backrun);
			assert.equal(error, undefined);
			await auction.delivered(backrun);
			await auction.nameBlock(await auction.honest(), moved);
			const { transactions } = await auction.nextBlock();
			assert.ok(transactions.includes(backrun.hash));
			await until(
				"the stranger is barred",
				async () => (await auction.told(brings, String(result))).barred ?? undefined,
			);
			searcher.nonce += 1;
			const target = await auction.target();
			const next = auction.backrun(searcher, 8n * HONEST_WEI);
			const outcome = await auction.bid(searcher, target, next);
			assert.equal(outcome.error, undefined);
			const { barred, provenUpTo } = await auction.told(searcher, String(outcome.result));
			assert.deepEqual([barred, provenUpTo], [null, String(8n * HONEST_WEI)]);
			const refused = await auction.bid({ ...searcher, ...bringer(await auction.cheater()) }, target, next);
			assert.match(
				refused.error?.message ?? "",
				/^bidder is barred until/,
				"for everybody else it is barred",
			);
		});

		it("has not the sender's bids used up", async () => {
			const [searcher, stranger] = [await auction.honest(), await auction.cheater()];
			const target = await auction.target();
			// 32 of one address on one transaction.
			for (const bait of [await auction.target(), await auction.target()]) {
				for (let i = 0; i < 32; i += 1) {
					const backrun = auction.backrun(searcher, BigInt(1_000 + i));
					const { error } = await auction.bid({ ...searcher, ...bringer(stranger) }, bait, backrun);
					assert.equal(error, undefined);
				}
			}
			const honest = auction.backrun(searcher, HONEST_WEI);
			assert.equal((await auction.bid(searcher, target, honest)).error, undefined);
		});
	});
}

/** What makes a bid the stranger's: his address and key. */
function bringer({ from, key }: Searcher): Pick<Searcher, "from" | "key"> {
	return { from, key };
}
