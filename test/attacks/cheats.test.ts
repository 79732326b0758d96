// Cheats at auctions, all on one chain: backruns that lie to a simulation, bids that try to be judged by nothing, and payments and
// backruns that belong to others.

import { after, before, describe } from "node:test";
import { type CheatAuction, startCheatAuction } from "../support/attacks/auctionFixture.ts";
import { bidTricks } from "../support/attacks/bidTricks.ts";
import { blockCheats } from "../support/attacks/blockCheats.ts";
import { judgedCheats } from "../support/attacks/judgedCheats.ts";

let auction: CheatAuction;
before(async () => {
	auction = await startCheatAuction({ env: { RATE_LIMIT_RPS: "0" } });
});
after(() => auction?.stop());

// The first: a cheat goes by what the coinbase held at the start.
describe("backruns that lie", () => blockCheats(() => auction));
describe("bids that nobody can judge", () => judgedCheats(() => auction));
describe("other tricks", () => bidTricks(() => auction));
