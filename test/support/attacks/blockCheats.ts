// Backruns that pay five ether where they take the block for a simulation, and one wei in the block, or revert there,
// against an honest bid of a tenth: whatever they go by, the honest one is in the block, and the user has his refund.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { sized } from "../length.ts";
import { until } from "../until.ts";
import {
	BACKRUN_GAS,
	type CheatAuction,
	COINBASE_WEI,
	ETHER,
	FEE_CAP,
	type Searcher,
	type Signed,
	type Target,
	TIP,
} from "./auctionFixture.ts";
import type { Outcome } from "./wire.ts";

const CHEAT_WEI = 5n * ETHER;
const HONEST_WEI = ETHER / 10n;
/** The first version put a contract, and an account that called it, where nothing else is. */
const MEASURING = [
	"0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b71",
	"0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b72",
];
/** Where nodes say that transfers come from, when asked to trace them. */
const TRANSFERS = "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
/** EIP-2935. */
const HISTORY = "0x0000f90827f1c53a10cb7a02335b175320002935";
const ALL_PLACES = 3;

/** What a cheat goes by: how its contract is told, once its account is known. */
type Tell = readonly [
	tell: number,
	told: (about: { cheat: Searcher; head: Awaited<ReturnType<CheatAuction["head"]>> }) => Promise<{
		readonly addresses?: readonly string[];
		readonly values?: readonly bigint[];
	}>,
];

let auction: CheatAuction;

const TELLS: Readonly<Record<string, Tell>> = {
	"a contract that measures": [0, async () => ({ addresses: MEASURING })],
	"a coinbase that was never seen": [1, async () => ({ addresses: [auction.builder.coinbase] })],
	"what the coinbase holds": [
		2,
		async () => ({ values: [COINBASE_WEI - 10n * ETHER, COINBASE_WEI + 10n * ETHER] }),
	],
	"the coinbase's code": [3, async () => ({})],
	"the randomness": [4, async () => ({ values: [0n] })],
	"the base fee": [5, async ({ head }) => ({ values: [head.nextBaseFee] })],
	"the gas limit": [6, async ({ head }) => ({ values: [head.gasLimit] })],
	"the parent's hash": [7, async ({ head }) => ({ values: [BigInt(head.hash)] })],
	"the parent's hash in the history": [
		8,
		async ({ head }) => ({ addresses: [HISTORY], values: [BigInt(head.hash)] }),
	],
	"warm addresses": [9, async () => ({ addresses: [...MEASURING, TRANSFERS] })],
	"what accounts hold": [
		10,
		async ({ cheat, head }) => {
			const spent = CHEAT_WEI + BACKRUN_GAS * priceAt(head.nextBaseFee);
			return { addresses: MEASURING, values: [(await auction.balance(cheat.account.address)) - spent] };
		},
	],
	"the gas price": [11, async ({ head }) => ({ values: [priceAt(head.nextBaseFee)] })],
};

function priceAt(baseFee: bigint): bigint {
	assert.ok(baseFee + TIP < FEE_CAP);
	return baseFee + TIP;
}

/** A cheat's backrun that goes by `tell`. */
function cheatsBackrun(
	cheat: Searcher,
	tell: number,
	{
		addresses = [],
		values = [],
		reverts = false,
	}: { addresses?: readonly string[]; values?: readonly bigint[]; reverts?: boolean } = {},
): Signed {
	const data = auction.cheat.abi.encodeFunctionData("run", [tell, addresses, values, reverts]);
	return auction.backrun(cheat, CHEAT_WEI, data);
}

/** The honest searcher's bid on `target`, which the relay has taken. */
async function honestBid(target: Target): Promise<Signed> {
	const searcher = await auction.honest();
	const backrun = auction.backrun(searcher, HONEST_WEI);
	const { error } = await auction.bid(searcher, target, backrun);
	assert.equal(error, undefined, JSON.stringify(error));
	return backrun;
}

/** That the block has the honest backrun right behind its target, and that the user has his part of it. */
async function assertHonestWon(
	{ transactions }: { readonly transactions: readonly string[] },
	target: Target,
	honest: Signed,
): Promise<void> {
	const at = transactions.indexOf(target.hash);
	assert.ok(at >= 0, "the target is in the block");
	assert.equal(transactions[at + 1], honest.hash, "the honest backrun is right behind it");
	const refund = await auction.balance(target.recipient);
	assert.ok(refund >= (HONEST_WEI * 89n) / 100n, `the refund is ${refund} wei`);
}

/** The tests of this file, on an auction that runs. */
export function blockCheats(auctionOf: () => CheatAuction): void {
	before(() => {
		auction = auctionOf();
	});

	describe("against an honest bid of 0.1 ether", () => {
		interface Row {
			readonly target: Target;
			readonly honest: Signed;
			readonly cheat: Searcher;
			readonly cheats: Signed;
			readonly outcome: Outcome;
		}
		const rows = new Map<string, Row>();
		/** Cheats whose transactions went to the builder past the relay, and what they had before. */
		const direct = new Map<string, { readonly cheat: Searcher; readonly before: bigint }>();
		let block: { readonly number: number; readonly transactions: readonly string[] };
		/** What the relay detects does not depend on how the cheat goes on: the short run has one way each. */
		const names = Object.keys(TELLS).flatMap((name, i) => {
			const both = [`${name}, 1 wei in the block`, `${name}, a revert in the block`];
			return sized([both[i % 2] as string], both);
		});

		before(async () => {
			const head = await auction.head();
			for (const name of names) {
				const [tell, told] = TELLS[name.replace(/, (1 wei|a revert) in the block$/, "")] ?? [];
				assert.ok(tell !== undefined && told !== undefined);
				const [target, cheat] = [await auction.target(), await auction.cheater()];
				const cheats = cheatsBackrun(cheat, tell, {
					...(await told({ cheat, head })),
					reverts: name.endsWith("a revert in the block"),
				});
				const outcome = await auction.bid(cheat, target, cheats);
				rows.set(name, { target, cheat, cheats, outcome, honest: await honestBid(target) });
			}
			for (const [name, [tell, told]] of Object.entries(TELLS)) {
				const cheat = await auction.cheater();
				const cheats = cheatsBackrun(cheat, tell, await told({ cheat, head }));
				await auction.sendToBuilder([cheats.raw]);
				direct.set(name, { cheat, before: await auction.balance(cheat.account.address) });
			}
			for (const { honest } of rows.values()) await auction.delivered(honest);
			block = await auction.nextBlock();
		});

		it("each cheat recognises the real block, otherwise it would not test anything", async () => {
			const mistaken: string[] = [];
			for (const [name, { cheat, before: had }] of direct) {
				const paid = had - (await auction.balance(cheat.account.address));
				if (paid === 0n || paid > ETHER) mistaken.push(`${name}: ${paid} wei`);
			}
			assert.deepEqual(mistaken, []);
		});

		for (const name of names) {
			it(`a cheat that goes by ${name}`, async () => {
				const row = rows.get(name);
				assert.ok(row !== undefined);
				const { target, honest, cheats } = row;
				await assertHonestWon(block, target, honest);
				assert.ok(!block.transactions.includes(cheats.hash), "the cheat is not in the block");
			});
		}

		it("no cheat is ranked above what it pays in the block", async () => {
			const fooled: string[] = [];
			for (const [name, { cheat, outcome }] of rows) {
				if (outcome.error !== undefined) continue;
				const { blocks } = await auction.told(cheat, String(outcome.result));
				if (blocks.some(({ bid }) => BigInt(bid ?? 0) > 1n)) fooled.push(name);
			}
			assert.deepEqual(fooled, []);
		});
	});

	describe("cheats that no simulation can detect: their owner tells the contract in the block itself", () => {
		it("a single cheat lands for a wei, is barred, and its next bids are refused for that reason", async () => {
			const [cheat, owner, target] = [
				await auction.cheater(),
				await auction.honest(),
				await auction.target(),
			];
			const cheats = auction.lyingBackrun(cheat, CHEAT_WEI);
			const { result, error } = await auction.bid(cheat, target, cheats);
			assert.equal(error, undefined);
			await auction.delivered(cheats);
			await auction.nameBlock(owner, cheat);
			const { number, transactions } = await auction.nextBlock();
			assert.ok(transactions.includes(cheats.hash), "it is in the block");
			cheat.nonce += 1;
			const barred = new RegExp(
				`^bidder is barred until block ${number + 32}: bid ${CHEAT_WEI} wei, paid 1 wei in block ${number}$`,
			);
			const told = await until(
				"its owner is told",
				async () => (await auction.told(cheat, String(result))).barred ?? undefined,
			);
			assert.deepEqual(told, { until: number + 32, bid: String(CHEAT_WEI), paid: "1", block: number });
			const fresh = await auction.cheater();
			const others: Readonly<Record<string, Searcher>> = {
				"all of it": cheat,
				"its key": { ...fresh, key: cheat.key },
				"its account": { ...fresh, account: cheat.account, nonce: cheat.nonce },
				"its address": { ...fresh, from: cheat.from },
			};
			for (const [what, searcher] of Object.entries(others)) {
				const answer = await auction.bid(
					searcher,
					await auction.target(),
					auction.lyingBackrun(searcher, CHEAT_WEI),
				);
				assert.equal(answer.error?.code, -32000, `${what}: ${JSON.stringify(answer)}`);
				assert.match(answer.error?.message ?? "", barred, what);
			}
			const user = await auction.honest();
			const through = { ...user, contract: cheat.contract };
			const answer = await auction.bid(
				through,
				await auction.target(),
				auction.lyingBackrun(through, CHEAT_WEI),
			);
			assert.equal(answer.error, undefined, "nobody is barred for the contract that he calls");
		});

		it("against an honest bid it does not land", async () => {
			const [cheat, owner, target] = [
				await auction.cheater(),
				await auction.honest(),
				await auction.target(),
			];
			const cheats = auction.lyingBackrun(cheat, CHEAT_WEI);
			assert.equal((await auction.bid(cheat, target, cheats)).error, undefined);
			const honest = await honestBid(target);
			for (const backrun of [cheats, honest]) await auction.delivered(backrun);
			await auction.nameBlock(owner, cheat);
			await assertHonestWon(await auction.nextBlock(), target, honest);
		});

		it("three cheats together win one block; from the second block on the honest bid lands", async () => {
			const cheats = [await auction.cheater(), await auction.cheater(), await auction.cheater()];
			const owner = await auction.honest();
			assert.equal(cheats.length, ALL_PLACES);
			for (const round of [1, 2]) {
				const target = await auction.target();
				for (const cheat of cheats) {
					const backrun = auction.lyingBackrun(cheat, CHEAT_WEI);
					await auction.bid(cheat, target, backrun);
				}
				const honest = await honestBid(target);
				await auction.delivered(round === 2 ? honest : target);
				for (const cheat of cheats) await auction.nameBlock(owner, cheat);
				const block = await auction.nextBlock();
				if (round === 2) await assertHonestWon(block, target, honest);
				for (const cheat of cheats) await auction.readNonce(cheat);
			}
		});

		it("three free keys of one address have one place", async () => {
			const [first, owner, target] = [
				await auction.cheater(),
				await auction.honest(),
				await auction.target(),
			];
			const cheats = [
				first,
				await auction.cheater(undefined, first.from),
				await auction.cheater(undefined, first.from),
			];
			for (const cheat of cheats) await auction.bid(cheat, target, auction.lyingBackrun(cheat, CHEAT_WEI));
			const honest = await honestBid(target);
			await auction.delivered(honest);
			for (const cheat of cheats) await auction.nameBlock(owner, cheat);
			await assertHonestWon(await auction.nextBlock(), target, honest);
		});

		it("more addresses than places keep out nobody who has paid before, at a price of nothing", async () => {
			const searcher = await auction.honest();
			const proof = await auction.target();
			const paying = auction.backrun(searcher, HONEST_WEI);
			assert.equal((await auction.bid(searcher, proof, paying)).error, undefined);
			await auction.delivered(paying);
			await auction.nextBlock();
			searcher.nonce += 1;
			const owner = await auction.honest();
			const cheats: Searcher[] = [];
			for (let i = 0; i < sized(ALL_PLACES + 1, 10); i += 1) cheats.push(await auction.cheater());
			for (let block = 0; block < sized(2, 3); block += 1) {
				const target = await auction.target();
				for (const cheat of cheats) await auction.bid(cheat, target, auction.lyingBackrun(cheat, CHEAT_WEI));
				const honest = auction.backrun(searcher, HONEST_WEI);
				const { result, error } = await auction.bid(searcher, target, honest);
				assert.equal(error, undefined);
				await auction.delivered(honest);
				const told = await auction.told(searcher, String(result));
				assert.equal(told.provenUpTo, String(8n * HONEST_WEI));
				for (const cheat of cheats) await auction.nameBlock(owner, cheat);
				await assertHonestWon(await auction.nextBlock(), target, honest);
				searcher.nonce += 1;
			}
		});

		it("what is mined elsewhere in the block is judged by nothing: the one right behind the target has paid", async () => {
			const [cheat, target] = [await auction.cheater(), await auction.target()];
			const searcher = await auction.honest();
			const decoy = { ...cheat, contract: searcher.contract };
			const lowPaying = auction.backrun(decoy, 1n);
			assert.equal((await auction.bid(decoy, target, lowPaying)).error, undefined);
			const honest = auction.backrun(searcher, HONEST_WEI);
			const { result } = await auction.bid(searcher, target, honest);
			for (const one of [lowPaying, honest]) await auction.delivered(one);
			// By itself, as from the public mempool, behind everything else.
			await auction.sendToBuilder([lowPaying.raw]);
			const block = await auction.nextBlock();
			await assertHonestWon(block, target, honest);
			assert.ok(block.transactions.indexOf(lowPaying.hash) > block.transactions.indexOf(honest.hash));
			const told = await until("what was paid", async () => {
				const now = await auction.told(searcher, String(result));
				return now.provenUpTo !== undefined && now;
			});
			assert.equal(told.provenUpTo, String(8n * HONEST_WEI));
			assert.ok(!told.barred);
		});

		it("a newcomer with places in three blocks that it did not land in stands behind everybody for 64", async () => {
			const [cheat, owner] = [await auction.cheater(), await auction.honest()];
			let bundle = "";
			for (let block = 0; block < 3; block++) {
				const target = await auction.target();
				const cheats = auction.lyingBackrun(cheat, CHEAT_WEI);
				const { result, error } = await auction.bid(cheat, target, cheats);
				assert.equal(error, undefined);
				bundle = String(result);
				const honest = await honestBid(target);
				for (const backrun of [cheats, honest]) await auction.delivered(backrun);
				await auction.nameBlock(owner, cheat);
				await assertHonestWon(await auction.nextBlock(), target, honest);
			}
			const { number } = await auction.head();
			assert.equal((await auction.told(cheat, bundle)).spentUntil, number + 64);
			const target = await auction.target();
			const { result } = await auction.bid(cheat, target, auction.lyingBackrun(cheat, CHEAT_WEI));
			// As many newcomers as there are places, at other addresses.
			for (let i = 0; i < ALL_PLACES; i += 1) {
				const newcomer = await auction.cheater();
				const paying = { ...newcomer, contract: owner.contract };
				const bid = auction.backrun(paying, BigInt(i + 1));
				assert.equal((await auction.bid(paying, target, bid)).error, undefined);
				await auction.delivered(bid);
			}
			const told = await until("it has no place though it bids the most", async () => {
				const now = await auction.told(cheat, String(result));
				return now.blocks.at(-1)?.stage === "OUTBID" && now;
			});
			assert.equal(told.provenUpTo, "0");
		});
	});
}
