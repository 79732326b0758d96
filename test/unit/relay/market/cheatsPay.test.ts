// Properties of the auction: what cheats can gain and take in 7,200 blocks, by the real ledger and the real places: a run of auctions against cheats that
// know all of the rules and choose what is best for them, and honest bidders beside them. It prints what was paid and gained.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Bid } from "../../../../relay/auction/bid.ts";
import { paymentOf } from "../../../../relay/auction/payments.ts";
import { placesOf } from "../../../../relay/auction/places.ts";
import type { Bidder } from "../../../../relay/domain/bundleStatus.ts";
import { ChainTip } from "../../../../relay/domain/chain.ts";
import { PaymentLedger } from "../../../../relay/market/ledger.ts";
import { Background } from "../../../../shared/background.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { sized } from "../../../support/length.ts";
import { SeededRandom } from "../../../support/seededRandom.ts";
import { FakeDisk } from "../fakeDisk.ts";
import { FakeChain, nextOf } from "./auctionFakes.ts";

const BLOCKS = sized(300, 7_200);
/** Newcomers' blocks: many times what a place in vain is remembered. */
const NEWCOMERS = 200;
const PLACES = 3;
/** A user's transaction comes in one of so many blocks. */
const EVERY = 4;

/** A bid as the places need it, and what it pays in the block: null where it reverts there. */
interface Offer {
	readonly bidder: Bidder;
	readonly target: string;
	readonly value: bigint;
	readonly pays: bigint | null;
}

/** The chain, the ledger and the builder, which keeps what pays the most of what is out. */
class Auctions {
	readonly #chain = new FakeChain();
	readonly #tip = new ChainTip();
	readonly ledger: PaymentLedger;

	constructor() {
		this.ledger = new PaymentLedger({
			...{ kv: new FakeDisk(), tip: this.#tip, log: silentLogger, onPayment: () => {} },
			background: new Background({}, { log: silentLogger }),
			payments: {
				block: async () => null,
				brought: async () => ({ fees: 0n, transfers: null }),
				isEmpty: async () => false,
				canonicalHash: async (number) => this.#chain.hashAt(number),
			},
		});
		this.#tip.set(this.#chain.head, nextOf(this.#chain.head));
	}

	/** Whether nothing bars the bidder, and it is not spent. */
	isFree(bidder: Bidder): boolean {
		return this.ledger.bar(bidder) === null && this.ledger.spentUntil(bidder) === null;
	}

	/** The next block, with these bids: those that land in it. Who is barred is refused; a sender's nonce is used once. */
	async block(offers: readonly Offer[]): Promise<readonly Offer[]> {
		const { ledger } = this;
		const taken = offers.filter(({ bidder }) => ledger.bar(bidder) === null);
		const offerOf = new Map<Bid, Offer>(taken.map((offer, seq) => [bidOf(offer, seq), offer]));
		const placed = placesOf([...offerOf.keys()], {
			places: PLACES,
			buildersOf: () => ["a"],
			provenUpTo: ({ bidder }) => ledger.provenUpTo(bidder),
			isSpent: ({ bidder }) => ledger.spentUntil(bidder) !== null,
		});
		const out = [...placed.keys()].map((bid) => offerOf.get(bid) as Offer);
		const landed: Offer[] = [];
		const byPay = out
			.filter(({ pays }) => pays !== null)
			.sort((a, b) => Number((b.pays ?? 0n) - (a.pays ?? 0n)));
		for (const one of byPay) {
			if (landed.some(({ target, bidder }) => target === one.target || bidder.sender === one.bidder.sender))
				continue;
			landed.push(one);
		}
		const block = this.#chain.make();
		this.#tip.set(block, nextOf(block));
		ledger.onChainUpdate({ applied: [block], reverted: [], head: block, gap: false });
		for (const one of out) if (!landed.includes(one)) ledger.hadPlace(one.bidder, one.value, block.number);
		const payments = landed.map(({ target, bidder, value, pays }) => paymentOf(target, bidder, value, pays));
		await ledger.record(block, payments);
		return landed;
	}
}

function bidOf({ bidder, target, value }: Offer, seq: number): Bid {
	const { client, sender, owner } = bidder;
	return {
		...{ bidder, target, value, seq, client, owner, builders: null },
		backrun: { from: sender, nonce: 0 },
	} as unknown as Bid;
}

let fresh = 0;
/** A key costs nothing: this one was never seen. */
function freshKey(): string {
	fresh += 1;
	return `key ${fresh}`;
}

/** How cheats of one run go about it. */
interface Manner {
	readonly addresses: number;
	/** What they pay to be proven: the first payment, and each further one so many times the last. */
	readonly pays: bigint;
	readonly grows: bigint;
	/** Hundredths of what was bid that they pay in full. */
	readonly percent: bigint;
	/** In how many of a hundred payments a sender or signer is one that has paid before. */
	readonly again: number;
	/** Payments before the first lie. */
	readonly ahead: number;
}

const HONEST: Bidder = { owner: "honest", client: "honest", sender: "honest" };
const HONEST_BID = 1_000n;
const FILLER_BID = 10n ** 12n;

/** What they paid, and what they bid and did not pay, in a run against an honest bidder that has paid before. */
async function run(manner: Manner): Promise<{ paid: bigint; gained: bigint; lies: number }> {
	const auctions = new Auctions();
	const random = new SeededRandom(31);
	const addresses = Array.from({ length: manner.addresses }, (_, i) => `address ${i}`);
	const pick = (known: readonly string[]) =>
		known.length > 0 && random.below(100) < manner.again ? random.pick(known) : freshKey();
	const payers: Bidder[] = [];
	const honest = { bidder: HONEST, target: "user's", value: HONEST_BID, pays: HONEST_BID };
	await auctions.block([honest]);
	let [paid, gained, lies, next, ahead] = [0n, 0n, 0, manner.pays, manner.ahead];
	for (let block = 0; block < BLOCKS; block += 1) {
		const isUsers = block % EVERY === 0;
		const offers: Offer[] = [];
		const free = addresses.filter((client) =>
			auctions.isFree({ owner: freshKey(), client, sender: freshKey() }),
		);
		const lead = free.length === 0 ? null : bestOf(auctions, payers.slice(-3), free);
		if (lead !== null && ahead <= 0) {
			// A lie is worth it in the user's block, where two others keep the honest bid out.
			const others = free.filter((client) => client !== lead.bidder.client).slice(0, PLACES - 1);
			if (isUsers && others.length === PLACES - 1) {
				offers.push(honest, { bidder: lead.bidder, target: "user's", value: lead.upTo, pays: 1n });
				for (const client of others)
					offers.push({
						...{ bidder: { owner: freshKey(), client, sender: freshKey() }, target: "user's" },
						...{ value: FILLER_BID, pays: null },
					});
			}
		} else if (free.length > 0) {
			const bidder = {
				owner: pick(payers.map(({ owner }) => owner ?? "")),
				client: random.pick(free),
				sender: pick(payers.map(({ sender }) => sender)),
			};
			offers.push({ bidder, target: "own", value: next, pays: (next * manner.percent) / 100n });
			next = next * manner.grows;
			ahead -= 1;
		}
		for (const one of await auctions.block(offers)) {
			if (one === honest) continue;
			const pays = one.pays ?? 0n;
			paid += pays;
			gained += one.value - pays;
			if (one.target === "own") payers.push(one.bidder);
			else {
				lies += 1;
				ahead = manner.ahead;
			}
		}
	}
	return { paid, gained, lies };
}

/** Of all that can be made of the senders, signers and addresses that have paid, who may lie the most now; or null. */
function bestOf(
	auctions: Auctions,
	payers: readonly Bidder[],
	free: readonly string[],
): { readonly bidder: Bidder; readonly upTo: bigint } | null {
	const owners = [...new Set([...payers.map(({ owner }) => owner), freshKey()])];
	const clients = [...new Set([...payers.map(({ client }) => client), ...free])];
	let best: { readonly bidder: Bidder; readonly upTo: bigint } | null = null;
	for (const sender of new Set(payers.map((one) => one.sender))) {
		for (const owner of owners) {
			for (const client of clients) {
				const bidder = { owner, client, sender };
				const upTo = auctions.ledger.provenUpTo(bidder);
				if (upTo <= HONEST_BID || upTo <= (best?.upTo ?? 0n) || auctions.ledger.bar(bidder) !== null)
					continue;
				best = { bidder, upTo };
			}
		}
	}
	return best;
}

const MANNERS: Readonly<Record<string, Manner>> = {
	"pay one per cent less": { addresses: 6, pays: 1_000n, grows: 1n, percent: 99n, again: 0, ahead: 1 },
	"pay by one identity again and again": {
		addresses: 6,
		pays: 1_000n,
		grows: 1n,
		percent: 100n,
		again: 100,
		ahead: 1,
	},
	"mix senders, signers and addresses": {
		addresses: 8,
		pays: 1_000n,
		grows: 1n,
		percent: 100n,
		again: 50,
		ahead: 3,
	},
	"lie for more each time": { addresses: 6, pays: 200n, grows: 2n, percent: 100n, again: 30, ahead: 1 },
	"many addresses": { addresses: 12, pays: 1_000n, grows: 1n, percent: 100n, again: 30, ahead: 1 },
};

test("cheats gain at most eight times what they have paid, however they go about it", async (t) => {
	for (const [name, manner] of Object.entries(MANNERS)) {
		const { paid, gained, lies } = await run(manner);
		t.diagnostic(`${name}: ${lies} lies, paid ${paid}, gained ${gained}`);
		assert.ok(lies > 0, `${name}: no lie`);
		assert.ok(gained <= 8n * paid, `${name}: paid ${paid}, gained ${gained}`);
	}
});

/** Blocks that honest newcomers lose, each from an address of his own, to so many cheats' addresses. */
async function lostBy(t: TestContext, cheats: number, paysOnOwn: boolean): Promise<readonly number[]> {
	const auctions = new Auctions();
	const addresses = Array.from({ length: cheats }, (_, i) => `address ${i}`);
	const lost: number[] = [];
	const used = new Map<string, number>();
	for (let block = 0; block < NEWCOMERS; block += 1) {
		const newcomer: Offer = {
			...{ bidder: { owner: freshKey(), client: freshKey(), sender: freshKey() }, target: "user's" },
			...{ value: HONEST_BID, pays: HONEST_BID },
		};
		const offers: Offer[] = [newcomer];
		// Each in its turn as long as it is not spent, three at a time: fewer keep nobody out.
		const ready = addresses.map((client) => ({ owner: freshKey(), client, sender: freshKey() }));
		const free = ready
			.filter((bidder) => auctions.isFree(bidder))
			.sort((a, b) => (used.get(a.client) ?? 0) - (used.get(b.client) ?? 0))
			.slice(0, PLACES);
		if (free.length === PLACES)
			for (const bidder of free) {
				used.set(bidder.client, (used.get(bidder.client) ?? 0) + 1);
				offers.push({ bidder, target: "user's", value: FILLER_BID, pays: null });
			}
		// A wei on targets of their own.
		if (paysOnOwn)
			for (const bidder of ready)
				offers.push({ bidder, target: `own ${bidder.client}`, value: 1n, pays: 1n });
		const landed = await auctions.block(offers);
		if (!landed.includes(newcomer)) lost.push(block);
	}
	t.diagnostic(`${cheats} addresses: newcomers lose ${lost.length} of ${NEWCOMERS} blocks`);
	return lost;
}

for (const [name, paysOnOwn] of [
	["that pay nothing", false],
	["that land with a wei on targets of their own in each block", true],
] as const) {
	test(`of 64 blocks, honest newcomers lose as many as there are cheats' addresses, ${name}`, async (t) => {
		for (const cheats of [2, 3, 10]) {
			const lost = await lostBy(t, cheats, paysOnOwn);
			const most = Math.max(
				0,
				...lost.map((from) => lost.filter((one) => one >= from && one < from + 64).length),
			);
			assert.equal(most, cheats < PLACES ? 0 : cheats, `${cheats} addresses`);
		}
	});
}
