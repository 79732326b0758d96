// Cheats from two, three and ten network addresses keep out no honest searcher. They never pay, revert, or pay first and lie later; the
// searcher bids on each target before, during and after, and its bid and the user's refund are read from each block. Its short form
// is in cheats.test.ts.

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

let auction: CheatAuction;
before(async () => {
	auction = await startCheatAuction();
});
after(() => auction?.stop());

/** What a block with a target was for the honest searcher and the user. */
interface Round {
	/** Whether his backrun is right behind the target. */
	readonly won: boolean;
	/** Wei that the user got. */
	readonly refund: bigint;
	/** Cheats whose backruns are right behind it. */
	readonly lied: readonly Searcher[];
}

/** One block with a target on which the cheats bid `value`, told in the block itself that this is it, and then the honest one. */
async function round(
	honest: Searcher,
	cheats: readonly Searcher[] = [],
	{ value = CHEAT_WEI, reverts = false } = {},
): Promise<Round> {
	const [owner, target] = [await auction.honest(), await auction.target()];
	const backruns = new Map(cheats.map((cheat) => [auction.lyingBackrun(cheat, value, { reverts }), cheat]));
	// Whoever is barred is refused.
	for (const [backrun, cheat] of backruns) await auction.bid(cheat, target, backrun);
	const backrun = auction.backrun(honest, HONEST_WEI);
	const { result, error } = await auction.bid(honest, target, backrun);
	assert.equal(error, undefined, JSON.stringify(error));
	const stage = await until("whether it has a place", async () => {
		const now = (await auction.told(honest, String(result))).blocks.at(-1)?.stage;
		return now !== "ACCEPTED" && now;
	});
	if (stage !== "OUTBID") await auction.behind(target, backrun);
	for (const cheat of cheats) await auction.nameBlock(owner, cheat);
	const { transactions } = await auction.nextBlock();
	const behind = transactions[transactions.indexOf(target.hash) + 1];
	for (const one of [honest, ...cheats]) await auction.readNonce(one);
	return {
		won: behind === backrun.hash,
		refund: await auction.balance(target.recipient),
		lied: [...backruns].filter(([{ hash }]) => hash === behind).map(([, cheat]) => cheat),
	};
}

function assertWon({ won, refund }: Round, when: string): void {
	assert.ok(won, `${when}: the honest backrun is right behind its target`);
	assert.ok(refund >= (HONEST_WEI * 89n) / 100n, `${when}: the refund is ${refund} wei`);
}

async function crowd(size: number): Promise<readonly Searcher[]> {
	const cheats: Searcher[] = [];
	for (let i = 0; i < size; i += 1) cheats.push(await auction.cheater());
	return cheats;
}

describe("a searcher that has paid once", () => {
	let honest: Searcher;
	before(async () => {
		honest = await auction.honest();
		await auction.prove(honest, HONEST_WEI);
	});

	for (const size of [2, 3, 10]) {
		for (const reverts of [false, true]) {
			const how = reverts ? "revert in the block" : "pay a wei in the block";
			it(`wins each block before, during and after ${size} addresses bid fifty times as much and ${how}`, async () => {
				assertWon(await round(honest), "before");
				const cheats = await crowd(size);
				assertWon(await round(honest, cheats, { reverts }), "during");
				assertWon(await round(honest), "after");
			});
		}
	}

	it("loses one block to three addresses that pay first and lie later, for at most eight times what they paid", async () => {
		assertWon(await round(honest), "before");
		const cheats = await crowd(3);
		const paying = await auction.honest();
		for (const cheat of cheats) await auction.prove({ ...cheat, contract: paying.contract }, HONEST_WEI);
		for (const cheat of cheats) await auction.readNonce(cheat);
		const rounds: Round[] = [];
		for (let block = 0; block < 4; block += 1)
			rounds.push(await round(honest, cheats, { value: 8n * HONEST_WEI }));
		assert.deepEqual(
			rounds.map(({ won }) => won),
			[false, true, true, true],
		);
		assert.equal(rounds[0]?.lied.length, 1, "one of them has lied");
		for (const [block, one] of rounds.slice(1).entries()) assertWon(one, `after the lie, block ${block}`);
		assertWon(await round(honest), "after");
	});
});

it("a newcomer each block: ten addresses that never pay keep out ten of them at most", async () => {
	assertWon(await round(await auction.honest()), "before");
	const cheats = await crowd(10);
	const won: boolean[] = [];
	for (let block = 0; block < 12; block += 1) {
		const one = await round(await auction.honest(), cheats, { reverts: true });
		if (one.won) assertWon(one, `block ${block}`);
		won.push(one.won);
	}
	assert.ok(won.filter((one) => !one).length <= 10, `lost ${won.filter((one) => !one).length}`);
	assert.deepEqual(won.slice(10), [true, true], "from then on they win");
	assertWon(await round(await auction.honest()), "after");
});
