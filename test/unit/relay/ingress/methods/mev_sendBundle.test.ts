// mev_sendBundle before a market that remembers what it was asked: plain bundles, bids and refunds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDRESS, HASH, SIGNER, startBundleMethods } from "../bundleFixture.ts";

const TARGET = `0x${"Ab".repeat(32)}`;
const SOMEBODY = `0x${"5A".repeat(20)}`;
const raw = (byte: string) => `0x02${byte.repeat(60)}`;
const bytes = (text: string) => Buffer.from(text.slice(2), "hex");

const PLAIN = {
	version: "v0.1",
	inclusion: { block: "0x8", maxBlock: "0x26" },
	body: [
		{ tx: raw("aa"), canRevert: true },
		{ tx: raw("bb"), canRevert: false },
	],
};
const BID = { ...PLAIN, inclusion: { block: "0x8" }, body: [{ hash: TARGET }, { tx: raw("cc") }] };
const envelope = { owner: ADDRESS, network: ADDRESS, uuid: null, builders: null };

/** What the market is asked for `bundle`. */
async function asked(bundle: object, caller = {}) {
	const { market, result } = startBundleMethods();
	assert.deepEqual(await result("mev_sendBundle", [bundle], caller), { bundleHash: HASH });
	assert.equal(market.asked, 1);
	return { bid: market.bids[0], plain: market.bundles[0] };
}

test("a plain bundle over a range of blocks", async () => {
	const { plain } = await asked(PLAIN);
	assert.deepEqual(plain, {
		...envelope,
		blocks: { first: 8n, last: 38n },
		body: [
			{ raw: bytes(raw("aa")), canRevert: true },
			{ raw: bytes(raw("bb")), canRevert: false },
		],
		refund: null,
	});
});

test("a bid with the target's hash first", async () => {
	const { bid } = await asked(BID);
	assert.deepEqual(bid, {
		...envelope,
		blocks: { first: 8n, last: null },
		target: TARGET.toLowerCase(),
		backrun: bytes(raw("cc")),
	});
});

test("a bid over a range, under a uuid, for chosen builders", async () => {
	const more = { inclusion: { block: "0x8", maxBlock: "0x9" }, replacementUuid: "mine" };
	const { bid } = await asked(
		{ ...BID, ...more, privacy: { builders: ["two", "one"], hints: ["hash", "calldata"] } },
		{ signer: SIGNER },
	);
	assert.deepEqual(
		[bid?.owner, bid?.blocks, bid?.uuid, bid?.builders],
		[SIGNER, { first: 8n, last: 9n }, "mine", ["two", "one"]],
	);
});

test("a body of one and of a hundred entries; canRevert absent or null is false", async () => {
	assert.deepEqual((await asked({ ...PLAIN, body: [{ tx: raw("aa") }] })).plain?.body, [
		{ raw: bytes(raw("aa")), canRevert: false },
	]);
	const body = Array(100).fill({ tx: raw("aa"), canRevert: null });
	const { plain } = await asked({ ...PLAIN, body });
	assert.deepEqual([plain?.body.length, plain?.body.some(({ canRevert }) => canRevert)], [100, false]);
});

test("everything that may be left out may be null", async () => {
	const nothing = { validity: null, privacy: null, metadata: null, replacementUuid: null };
	const inside = { validity: { refund: null, refundConfig: null }, privacy: { hints: null, builders: null } };
	for (const more of [
		nothing,
		inside,
		{ metadata: { originId: null } },
		{ inclusion: { block: "0x8", maxBlock: null } },
	]) {
		const { plain } = await asked({ ...PLAIN, ...more });
		assert.deepEqual([plain?.refund, plain?.builders, plain?.uuid], [null, null, null]);
	}
	await asked({ ...PLAIN, metadata: { originId: "me" }, validity: {}, privacy: {} });
});

const own = { bodyIdx: 1, percent: 90 };
for (const [name, validity, refund] of [
	["to the sender of the entry", { refund: [own] }, { bodyIdx: 1, percent: 90, recipient: null }],
	[
		"to an address",
		{ refund: [own], refundConfig: [{ address: SOMEBODY, percent: 100 }] },
		{ bodyIdx: 1, percent: 90, recipient: SOMEBODY.toLowerCase() },
	],
	[
		"of a part of the part, rounded down",
		{ refund: [{ bodyIdx: 0, percent: 99 }], refundConfig: [{ address: SOMEBODY, percent: 50 }] },
		{ bodyIdx: 0, percent: 49, recipient: SOMEBODY.toLowerCase() },
	],
	["of all", { refund: [{ bodyIdx: 0, percent: 100 }] }, { bodyIdx: 0, percent: 100, recipient: null }],
	["of nothing", { refund: [{ bodyIdx: 0, percent: 0 }] }, null],
	[
		"that comes to nothing",
		{ refund: [{ bodyIdx: 0, percent: 1 }], refundConfig: [{ address: SOMEBODY, percent: 99 }] },
		null,
	],
	["that nobody is owed", { refund: [], refundConfig: [{ address: SOMEBODY, percent: 100 }] }, null],
] as const) {
	test(`a refund ${name}`, async () => {
		assert.deepEqual((await asked({ ...PLAIN, validity })).plain?.refund, refund);
	});
}

test("a bid may repeat its user's terms, promise more, and say to whom: it changes nothing", async () => {
	for (const validity of [
		{ refund: [] },
		{ refund: [{ bodyIdx: 0, percent: 90 }] },
		{ refund: [{ bodyIdx: 0, percent: 100 }] },
		{
			refund: [],
			refundConfig: [
				{ address: SOMEBODY, percent: 40 },
				{ address: SOMEBODY, percent: 60 },
			],
		},
	]) {
		assert.deepEqual((await asked({ ...BID, validity })).bid, (await asked(BID)).bid);
	}
});

test("a web page's bundle is not in the visitor's name", async () => {
	const { plain } = await asked({ ...PLAIN, replacementUuid: "mine" }, { origin: "https://app.example" });
	assert.equal(plain?.owner, `web ${ADDRESS}`);
});

// A plain bundle weighs one for each of its transactions, beside the call itself.
for (const [name, bundle, each] of [
	["bid", BID, []],
	["plain bundle", PLAIN, [1]],
] as const) {
	test(`a refused ${name} is told why; what it costs the node is charged for`, async () => {
		const { market, charges, call } = startBundleMethods();
		market.outcome = {
			outcome: "refused",
			code: "BACKRUN_REVERTED",
			message: "backrun reverted",
			simulated: true,
		};
		const { error } = await call("mev_sendBundle", [bundle]);
		assert.deepEqual(error, {
			code: -32000,
			message: "backrun reverted",
			data: { reason: "BACKRUN_REVERTED" },
		});
		assert.deepEqual(
			charges.map(([, weight]) => weight),
			[...each, 9],
		);
		market.outcome = { outcome: "refused", code: "LIMIT", message: "limit exceeded: x", simulated: false };
		assert.deepEqual((await call("mev_sendBundle", [bundle])).error, {
			code: -32005,
			message: "limit exceeded: x",
			data: { reason: "LIMIT" },
		});
		assert.deepEqual(
			charges.map(([, weight]) => weight),
			[...each, 9, ...each],
		);
	});
}
