// Hundreds of bids of one address whose senders bid with one nonce on many targets block the
// relay's event loop neither while they are made nor at a head. The limit for one sender is in
// floods.test.ts.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import {
	type CheatAuction,
	ETHER,
	type Searcher,
	startCheatAuction,
	type Target,
} from "../support/attacks/auctionFixture.ts";
import { attackerAddress } from "../support/attacks/wire.ts";
import { heldSoFar, turnLimit } from "../support/eventLoopTime.ts";

const SENDERS = 24;
const TARGETS = 16;
const MAX_PER_SENDER = 64;
/** Bids under way at the same time. */
const AT_ONCE = 16;
/** The shortest of some heads counts: the machine does other things. */
const HEADS = 6;

let auction: CheatAuction;
before(async () => {
	auction = await startCheatAuction({ env: { RATE_LIMIT_RPS: "0" }, isMetered: true });
});
after(() => auction?.stop());

/** Bids of each searcher on each target, some at a time, in blocks to come; their refusals. */
async function bidAll(
	searchers: readonly Searcher[],
	targets: readonly Target[],
): Promise<readonly string[]> {
	const all = searchers.flatMap((searcher) => targets.map((target) => ({ searcher, target })));
	const refusals: string[] = [];
	let next = 0;
	const work = async (): Promise<void> => {
		for (let i = next++; i < all.length; i = next++) {
			const { searcher, target } = all[i] as (typeof all)[number];
			const { error } = await auction.bid(
				searcher,
				target,
				auction.backrun(searcher, ETHER / BigInt(100 + i)),
			);
			if (error !== undefined) refusals.push(error.message);
		}
	};
	await Promise.all(Array.from({ length: AT_ONCE }, work));
	return refusals;
}

it(`${SENDERS * TARGETS} bids that share their senders' nonces keep the event loop of nobody`, async () => {
	const targets: Target[] = [];
	for (let i = 0; i < TARGETS; i += 1) targets.push(await auction.target());
	const from = attackerAddress(20);
	const searchers: Searcher[] = [];
	for (let i = 0; i < SENDERS; i += 1) {
		const { account, contract } = await auction.honest();
		searchers.push({ account, from, key: undefined, contract, nonce: 0 });
	}
	const limit = turnLimit();
	let best = Number.POSITIVE_INFINITY;
	for (let head = 0; head < HEADS && best >= limit; head += 1) {
		await heldSoFar(auction.relay);
		assert.deepEqual(await bidAll(searchers, targets), []);
		await auction.emptyBlock();
		best = Math.min(best, await heldSoFar(auction.relay));
	}
	assert.ok(best < limit, `${best.toFixed(1)} ms, at most ${limit.toFixed(1)}`);
});

it(`one sender has ${MAX_PER_SENDER} bids`, async () => {
	const { account, contract } = await auction.honest();
	const from = attackerAddress(21);
	const searcher: Searcher = { account, from, key: undefined, contract, nonce: 0 };
	const targets: Target[] = [];
	for (let i = 0; i < 3; i += 1) targets.push(await auction.target());
	const refusals: string[] = [];
	for (let i = 0; i < MAX_PER_SENDER + 3; i += 1) {
		const target = targets[i % targets.length] as Target;
		const { error } = await auction.bid(searcher, target, auction.backrun(searcher, BigInt(1_000 + i)));
		if (error !== undefined) refusals.push(error.message);
	}
	assert.deepEqual(refusals, new Array(3).fill(`limit exceeded: ${MAX_PER_SENDER} bids of one sender`));
});
