// Cheats at auctions, on one chain: claims that the block does not keep, bids of one client under
// many names, withdrawals, baits, blocks of a proposer's own, and the signed backruns of others.
// Nothing is held against anybody: a builder has enough of the bids and keeps what pays. An honest
// searcher lands and the user gets the refund before, during and after each. Crowds are nightly.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, afterEach, before, describe, it } from "node:test";
import {
	type CheatAuction,
	ETHER,
	type Searcher,
	type Signed,
	startCheatAuction,
	type Target,
	TELLS,
} from "../support/attacks/auctionFixture.ts";
import { type BeaconServer, startBeaconServer } from "../support/beaconServer.ts";
import { until } from "../support/until.ts";

const CHEAT_WEI = 5n * ETHER;
const HONEST_WEI = ETHER / 10n;
/** Bids of one target at a builder: two by record, one by bid, one by lot. */
const SLOTS = 4;
const REFUSES_ETHER = "0x5f5ffd";
/** More than a block of this file brings it. */
const COINBASE_RANGE = 200n * ETHER;

/** A bid that a builder has. */
interface Placed {
	readonly searcher: Searcher;
	readonly backrun: Signed;
	readonly bundle: string;
}

let auction: CheatAuction;
let beacon: BeaconServer;
before(async () => {
	beacon = await startBeaconServer();
	const env = { RATE_LIMIT_RPS: "0", BIDS_PER_TARGET: String(SLOTS), BEACON_URL: beacon.url };
	auction = await startCheatAuction({ env });
	await assertNewcomerLands();
});
after(async () => {
	await auction?.stop();
	await beacon?.stop();
});

async function bid(searcher: Searcher, target: Signed, backrun: Signed): Promise<Placed> {
	return { searcher, backrun, bundle: await auction.accepted(searcher, target, backrun) };
}

/** The bid of an honest searcher, by default a newcomer. */
async function honestBid(target: Signed, { wei = HONEST_WEI, by }: { wei?: bigint; by?: Searcher } = {}) {
	const searcher = by ?? (await auction.honest());
	return bid(searcher, target, auction.backrun(searcher, wei));
}

/** The cheats' bids, each lower than the one before. */
async function lyingBids(cheats: readonly Searcher[], target: Signed): Promise<readonly Placed[]> {
	const bids: Placed[] = [];
	for (const [i, cheat] of cheats.entries())
		bids.push(await bid(cheat, target, auction.lyingBackrun(cheat, CHEAT_WEI - BigInt(i))));
	return bids;
}

/**
 * Checks that the block has the honest backrun right behind its target, that its owner is notified,
 * and that the refund is paid.
 */
async function assertLanded(
	{ transactions }: { readonly transactions: readonly string[] },
	target: Target,
	{ searcher, backrun, bundle }: Placed,
): Promise<void> {
	assert.equal(behind(transactions, target), backrun.hash, "the honest backrun is right behind its target");
	const wei = String(HONEST_WEI);
	await auction.becomes(searcher, bundle, { stage: "INCLUDED", reason: null, bid: wei, paid: wei });
	const refund = await auction.balance(target.recipient);
	assert.ok(refund >= (HONEST_WEI * 89n) / 100n, `the refund is ${refund} wei`);
	await assertRefundReported(target, refund);
}

async function assertRefundReported({ hash }: Target, wei: bigint): Promise<void> {
	await until("the refund is reported", async () => {
		const { refundWei } = await auction.relay.client.status(hash);
		return refundWei === String(wei);
	});
}

function behind(transactions: readonly string[], { hash }: Signed): string | undefined {
	const at = transactions.indexOf(hash);
	assert.ok(at >= 0, "the target is in the block");
	return transactions[at + 1];
}

async function assertNewcomerLands(): Promise<void> {
	const target = await auction.target();
	const honest = await honestBid(target);
	await auction.behind(target, honest.backrun);
	await assertLanded(await auction.nextBlock(), target, honest);
}

/** The next block as the builder has it by now: it takes nothing more. */
async function sealedBlock(meanwhile: () => Promise<unknown>) {
	auction.builder.setFaults({ reject: true });
	try {
		await meanwhile();
		return await auction.nextBlock();
	} finally {
		auction.builder.setFaults({});
	}
}

describe("a backrun that pays 1 wei where it recognises the block, or reverts there", () => {
	interface Way {
		readonly tell: number;
		readonly values?: readonly bigint[];
		readonly addresses?: readonly string[];
		readonly reverts?: boolean;
		readonly gas?: bigint;
	}
	/** How it recognises the block. No simulation shows these: they claim five ether. */
	const LIES: Readonly<Record<string, () => Promise<Way>>> = {
		"its owner says so": async () => ({ tell: TELLS.owner }),
		"its owner says so, and it reverts": async () => ({ tell: TELLS.owner, reverts: true }),
		"its owner says so, and its trace is too long to be read": async () => ({
			...{ tell: TELLS.ownerUnseen, gas: 280_000n },
		}),
		"PREVRANDAO is not the published one": async () => ({ tell: TELLS.randomness, values: [published] }),
	};
	const SEEN: typeof LIES = {
		"the coinbase is the builder's": async () => ({
			...{ tell: TELLS.coinbase, addresses: [auction.builder.coinbase] },
		}),
		"the coinbase holds what the builder's does": async () => {
			const held = await auction.balance(auction.builder.coinbase);
			return { tell: TELLS.coinbaseBalance, values: [held - COINBASE_RANGE, held + COINBASE_RANGE] };
		},
		"the coinbase has code": async () => ({ tell: TELLS.coinbaseCode }),
	};
	interface Row {
		readonly target: Target;
		readonly lie: Placed;
		readonly honest: Placed;
		/** The same lie on a target without any other bid. */
		readonly alone: { readonly target: Target; readonly lie: Placed };
	}
	const rows = new Map<string, Row>();
	let published = 0n;
	let block: { readonly transactions: readonly string[] };

	before(async () => {
		const prevRandao = `0x${randomBytes(32).toString("hex")}`;
		published = BigInt(prevRandao);
		const { hash, number, timestamp } = await auction.head();
		const slot = { parentHash: hash, parentNumber: number, timestamp: timestamp + 12 };
		beacon.publish({ ...slot, prevRandao, beaconRoot: prevRandao });
		await until("the relay has it", async () => {
			const info = await (await fetch(`${auction.relay.url}/info`)).json();
			return (info as { readonly randomness: string }).randomness === "real";
		});
		const row = async (name: string, way: Way) => {
			const lied = async () => {
				const [target, cheat] = [await auction.target(), await auction.cheater()];
				return { target, lie: await bid(cheat, target, auction.lyingBackrun(cheat, CHEAT_WEI, way)) };
			};
			const [contested, alone] = [await lied(), await lied()];
			rows.set(name, { ...contested, alone, honest: await honestBid(contested.target) });
		};
		await Promise.all(
			Object.entries({ ...LIES, ...SEEN }).map(async ([name, way]) => row(name, await way())),
		);
		for (const { target, lie, honest, alone } of rows.values()) {
			for (const one of [lie, honest]) await auction.behind(target, one.backrun);
			await auction.behind(alone.target, alone.lie.backrun);
		}
		await auction.nameBlock(
			[...rows.values()].flatMap(({ lie, alone }) => [lie.searcher, alone.lie.searcher]),
		);
		block = await auction.nextBlock();
	});
	after(assertNewcomerLands);

	for (const name of Object.keys({ ...LIES, ...SEEN })) {
		const claimed = String(name in LIES ? CHEAT_WEI : 1n);
		it(`if ${name}, claims ${claimed} wei, and loses to an honest bid of 0.1 ether`, async () => {
			const { target, lie, honest, alone } = rows.get(name) as Row;
			await assertLanded(block, target, honest);
			const paid = String(HONEST_WEI);
			await auction.becomes(lie.searcher, lie.bundle, { stage: "LOST", reason: null, bid: claimed, paid });
			// Without any other bid it is kept if it pays at all: it has recognised the block.
			const isKept = behind(block.transactions, alone.target) === alone.lie.backrun.hash;
			assert.equal(isKept, !name.endsWith("it reverts"));
			const told = isKept ? { stage: "INCLUDED", paid: "1" } : { stage: "LOST" };
			await auction.becomes(alone.lie.searcher, alone.lie.bundle, { ...told, bid: claimed });
		});
	}
});

describe("slots", () => {
	afterEach(assertNewcomerLands);

	it(`a client with 17 keys and senders has one of ${SLOTS}; ${SLOTS} clients have one each`, async () => {
		const [target, other] = [await auction.target(), await auction.target()];
		const crowd = await lyingBids(await auction.cheaters(17, auction.network()), target);
		const apart = await lyingBids(await auction.cheaters(SLOTS), other);
		const honest = [await honestBid(target)];
		while (honest.length < SLOTS - 1) honest.push(await honestBid(target, { wei: 1n }));
		const [best] = honest as [Placed];
		const [highest, ...rest] = crowd as [Placed, ...Placed[]];
		const held = [highest, ...honest];
		await auction.onlyBehind(
			target,
			held.map(({ backrun }) => backrun),
		);
		await auction.onlyBehind(
			other,
			apart.map(({ backrun }) => backrun),
		);
		await auction.nameBlock([highest.searcher]);
		await assertLanded(await auction.nextBlock(), target, best);
		const paid = String(HONEST_WEI);
		for (const { searcher, bundle } of rest)
			await auction.becomes(searcher, bundle, { stage: "NOT_PLACED", paid: null });
		for (const { searcher, bundle } of [highest, ...honest.slice(1)])
			await auction.becomes(searcher, bundle, { stage: "LOST", paid });
	});

	it("a neighbour's higher bid takes none by record, but the one of a newcomer at its address", async () => {
		const searcher = await auction.honest();
		const first = await auction.target();
		const paying = await honestBid(first, { by: searcher });
		await auction.behind(first, paying.backrun);
		await auction.nextBlock();
		await until("it has a record", () => auction.hasRecord(searcher, paying.bundle));
		searcher.nonce += 1;
		const newcomer = await auction.honest();
		const [target, other] = [await auction.target(), await auction.target()];
		const neighbour = await auction.cheater(searcher.from);
		const cheats = [neighbour, ...(await auction.cheaters(SLOTS))];
		await lyingBids(cheats, target);
		const [higher] = await lyingBids([await auction.cheater(newcomer.from)], other);
		const honest = await honestBid(target, { by: searcher });
		const shut = await honestBid(other, { by: newcomer });
		await auction.behind(target, honest.backrun);
		await auction.onlyBehind(other, [(higher as Placed).backrun]);
		await auction.nameBlock(cheats);
		await assertLanded(await auction.nextBlock(), target, honest);
		await auction.becomes(newcomer, shut.bundle, { stage: "NOT_PLACED", reason: null });
	});

	it("a block of a proposer's own gives it no record, whatever it pays itself there", async () => {
		const [proposer, target] = [await auction.honest(), await auction.target()];
		const wei = 90n * ETHER;
		const { backrun, bundle } = await honestBid(target, { by: proposer, wei });
		await auction.behind(target, backrun);
		const coinbase = await auction.place("0x00");
		const { transactions } = await auction.blockBy(coinbase, [target.raw, backrun.raw]);
		assert.equal(behind(transactions, target), backrun.hash);
		await auction.becomes(proposer, bundle, { stage: "INCLUDED", bid: String(wei), paid: String(wei) });
		assert.equal(await auction.hasRecord(proposer, bundle), false);
		const [control, own] = [await auction.honest(), await auction.target()];
		const paying = await honestBid(own, { by: control, wei: 1n });
		await auction.behind(own, paying.backrun);
		await auction.nextBlock();
		await until("a block of the builder's gives one", () => auction.hasRecord(control, paying.bundle));
		assert.equal(await auction.hasRecord(proposer, bundle), false);
	});
});

describe("withdrawals", () => {
	afterEach(assertNewcomerLands);

	it("withdrawing and bidding the same bytes again until a simulation shows five ether gains nothing", async () => {
		const [cheat, target] = [await auction.cheater(), await auction.target()];
		const backrun = auction.lyingBackrun(cheat, CHEAT_WEI, { tell: TELLS.ownerDrawn });
		const seen = new Set<string | null>();
		let bundle = "";
		await until("it claims five ether, and has claimed a wei", async () => {
			if (bundle !== "") await auction.withdraw(cheat, "again");
			bundle = await auction.accepted(cheat, target, backrun, "again");
			const claimed = (await auction.told(cheat, bundle)).bid;
			seen.add(claimed);
			return seen.size === 2 && claimed === String(CHEAT_WEI);
		});
		const honest = await honestBid(target);
		for (const one of [backrun, honest.backrun]) await auction.behind(target, one);
		await auction.nameBlock([cheat]);
		await assertLanded(await auction.nextBlock(), target, honest);
		const [claimed, paid] = [String(CHEAT_WEI), String(HONEST_WEI)];
		await auction.becomes(cheat, bundle, { stage: "LOST", bid: claimed, paid });
	});

	it("a withdrawal after the block is sealed takes no slot from a newcomer and hides no refund", async () => {
		const [target, other] = [await auction.target(), await auction.target()];
		const cheats = await auction.cheaters(SLOTS);
		const lies: { readonly cheat: Searcher; readonly backrun: Signed; readonly bundle: string }[] = [];
		for (const [i, cheat] of cheats.entries()) {
			const [backrun, on] = [auction.lyingBackrun(cheat, CHEAT_WEI), i === 0 ? other : target];
			lies.push({ cheat, backrun, bundle: await auction.accepted(cheat, on, backrun, "mine") });
			await auction.behind(on, backrun);
		}
		const honest = await honestBid(target);
		await auction.behind(target, honest.backrun);
		await auction.nameBlock(cheats);
		const block = await sealedBlock(() =>
			Promise.all(cheats.map((cheat) => auction.withdraw(cheat, "mine"))),
		);
		await assertLanded(block, target, honest);
		const [alone, ...lost] = lies as [(typeof lies)[0]];
		assert.equal(behind(block.transactions, other), alone.backrun.hash);
		await auction.becomes(alone.cheat, alone.bundle, { stage: "INCLUDED", paid: "1" });
		await assertRefundReported(other, await auction.balance(other.recipient));
		for (const { cheat, bundle } of lost) await auction.becomes(cheat, bundle, { stage: "CANCELLED" });
	});
});

describe("targets and transactions of others", () => {
	afterEach(assertNewcomerLands);

	it("baits with a refund recipient that accepts no ether cost their bidders no slot later", async () => {
		const refuses = await auction.place(REFUSES_ETHER);
		const baits = await Promise.all([1, 2, 3].map(() => auction.target(refuses)));
		const newcomer = await auction.honest();
		const bids: Placed[] = [];
		for (const bait of baits) {
			bids.push(await honestBid(bait, { by: newcomer }));
			await auction.behind(bait, (bids.at(-1) as Placed).backrun);
		}
		const { transactions } = await auction.nextBlock();
		assert.ok(baits.every(({ hash }) => transactions.includes(hash)));
		assert.ok(bids.every(({ backrun }) => !transactions.includes(backrun.hash)));
		for (const { bundle } of bids) await auction.becomes(newcomer, bundle, { stage: "LOST", reason: null });
		const target = await auction.target();
		const cheats = await auction.cheaters(SLOTS - 1);
		const lies = await lyingBids(cheats, target);
		const honest = await honestBid(target, { by: newcomer });
		await auction.onlyBehind(
			target,
			[...lies, honest].map(({ backrun }) => backrun),
		);
		await auction.nameBlock(cheats);
		await assertLanded(await auction.nextBlock(), target, honest);
	});

	it("a runner-up of 1 wei mined elsewhere in the block changes no report of the winner or the refund", async () => {
		const [target, decoy] = [await auction.target(), await auction.honest()];
		const low = await honestBid(target, { by: decoy, wei: 1n });
		const honest = await honestBid(target);
		for (const { backrun } of [low, honest]) await auction.behind(target, backrun);
		// By itself, as from the public mempool.
		await auction.sendToBuilder([low.backrun.raw]);
		const block = await auction.nextBlock();
		assert.ok(block.transactions.includes(low.backrun.hash));
		await assertLanded(block, target, honest);
		const paid = String(HONEST_WEI);
		await auction.becomes(decoy, low.bundle, { stage: "LOST", reason: "transactionMined", bid: "1", paid });
	});

	it("a stranger does not take a searcher's signed backrun from its target by bringing it behind a bait", async () => {
		const [searcher, stranger] = [await auction.honest(), await auction.cheater()];
		const [bait, target] = [await auction.target(), await auction.target()];
		const backrun = auction.backrun(searcher, HONEST_WEI);
		await auction.accepted({ ...searcher, from: stranger.from, key: stranger.key }, bait, backrun);
		await auction.behind(bait, backrun);
		const honest = await bid(searcher, target, backrun);
		await auction.behind(target, backrun);
		await auction.replaceAtBuilder(bait);
		await assertLanded(await auction.nextBlock(), target, honest);
		await until("the record is the searcher's", () => auction.hasRecord(searcher, honest.bundle));
	});
});
