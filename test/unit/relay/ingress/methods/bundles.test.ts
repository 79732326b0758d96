// mev_sendBundle, eth_sendBundle and eth_cancelBundle on a fake market: plain bundles, bids,
// refunds, refusals, and the order in a batch.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	type BidRequest,
	BUNDLE_REJECTIONS,
	type BundleOutcome,
	type PlainBundleRequest,
} from "../../../../../relay/domain/bundle.ts";
import type { CoreNeeds } from "../../../../../relay/ingress/methodDependencies.ts";
import {
	eth_cancelBundle,
	eth_sendBundle,
	mev_sendBundle,
} from "../../../../../relay/ingress/methods/bundles.ts";
import type { SearcherMarket } from "../../../../../relay/market/market.ts";
import type { Client } from "../../../../../shared/client.ts";
import { keccak256 } from "../../../../../shared/ethereum/signatures.ts";
import { type CallContext, callContext } from "../../../../../shared/http/callContext.ts";
import { createDispatcher } from "../../../../../shared/jsonrpc/dispatch.ts";
import { methodTable } from "../../../../../shared/jsonrpc/method.ts";
import { silentLogger } from "../../../../../shared/log.ts";
import { ManualClock } from "../../../../support/manualClock.ts";

const ADDRESS = "192.0.2.1";
const SIGNER = `0x${"51".repeat(20)}`;
/** The default answer of the market. */
const HASH = `0x${"0a".repeat(32)}`;
const BUILDERS = ["one", "two"];

const METHODS = [eth_sendBundle, eth_cancelBundle, mev_sendBundle];

/** A market that records requests and answers `outcome`. */
class FakeMarket implements Pick<SearcherMarket, "bid" | "submit" | "cancel"> {
	outcome: BundleOutcome = { outcome: "accepted", hash: HASH };
	readonly bids: BidRequest[] = [];
	readonly bundles: PlainBundleRequest[] = [];
	readonly cancels: [string, string][] = [];

	async bid(request: BidRequest): Promise<BundleOutcome> {
		this.bids.push(request);
		return this.outcome;
	}

	async submit(request: PlainBundleRequest): Promise<BundleOutcome> {
		this.bundles.push(request);
		return this.outcome;
	}

	cancel(owner: string, uuid: string): void {
		this.cancels.push([owner, uuid]);
	}

	/** The number of requests. */
	get asked(): number {
		return this.bids.length + this.bundles.length + this.cancels.length;
	}
}

/** A request over HTTP from {@link ADDRESS}, without an `Origin`. */
function context(signer: string | null): CallContext {
	const client = { address: ADDRESS, signer, vouched: false };
	return callContext({ path: "/", search: "" }, client, null, null);
}

/** The methods on a fake market, and what they charged. */
function startBundleMethods() {
	const market = new FakeMarket();
	const charges: [Client, number][] = [];
	const dependencies: Pick<CoreNeeds, "market" | "digests" | "builderNames" | "refundPercent" | "charge"> = {
		market,
		digests: { check() {} },
		builderNames: BUILDERS,
		refundPercent: 90,
		charge: (client, weight) => void charges.push([client, weight]),
	};
	const dispatcher = createDispatcher<CallContext>(
		{ maxBatch: 100 },
		{
			methods: methodTable(METHODS, dependencies as CoreNeeds),
			log: silentLogger,
			clock: new ManualClock(),
		},
	);
	const send = async (body: unknown, signer: string | null = null) => {
		const answer = await dispatcher.dispatch(await dispatcher.read(JSON.stringify(body)), context(signer));
		return JSON.parse(String(answer.text));
	};
	return { market, charges, send };
}

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
const envelope = { owner: ADDRESS, network: ADDRESS, uuid: null, times: null, builders: null };

const RAW = `0x02${"Cd".repeat(99)}`;
const SEND = { txs: [TARGET, RAW] };
const NO_BUNDLE = `0x${keccak256(Buffer.alloc(0)).toString("hex")}`;

/** The market's request for `bundle`. */
async function asked(bundle: object) {
	const { market, send } = startBundleMethods();
	const answer = await send({ jsonrpc: "2.0", id: 1, method: "mev_sendBundle", params: [bundle] });
	assert.deepEqual(answer, { jsonrpc: "2.0", id: 1, result: { bundleHash: HASH } });
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

test("everything that may be left out may be null", async () => {
	const { plain: expected } = await asked(PLAIN);
	for (const more of [
		{ validity: null, privacy: null, metadata: null, replacementUuid: null },
		{ validity: { refund: null, refundConfig: null }, privacy: { hints: null, builders: null } },
		{ metadata: { originId: null } },
		{ metadata: { originId: "me" }, validity: {}, privacy: {} },
	]) {
		assert.deepEqual((await asked({ ...PLAIN, ...more })).plain, expected);
	}
	const open = { inclusion: { block: "0x8", maxBlock: null } };
	assert.deepEqual((await asked({ ...PLAIN, ...open })).plain?.blocks, { first: 8n, last: null });
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
	["of nothing", { refund: [{ bodyIdx: 0, percent: 0 }] }, null],
	[
		"that comes to nothing",
		{ refund: [{ bodyIdx: 0, percent: 1 }], refundConfig: [{ address: SOMEBODY, percent: 99 }] },
		null,
	],
] as const) {
	test(`a refund ${name}`, async () => {
		assert.deepEqual((await asked({ ...PLAIN, validity })).plain?.refund, refund);
	});
}

test("a bid may repeat the user's refund, promise more or name recipients: the market gets the same bid", async () => {
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

test("every refusal has its code, and a simulation before it is charged to the client", async () => {
	const client = { address: ADDRESS, signer: null, vouched: false };
	for (const code of BUNDLE_REJECTIONS) {
		for (const simulated of [true, false]) {
			const { market, charges, send } = startBundleMethods();
			market.outcome = { outcome: "rejected", code, message: `message for ${code}`, simulated };
			const { error } = await send({ id: 1, method: "eth_sendBundle", params: [SEND] }, SIGNER);
			const number = code === "LIMIT" ? -32005 : -32000;
			assert.deepEqual(error, { code: number, message: `message for ${code}`, data: { reason: code } });
			assert.deepEqual(charges, simulated ? [[{ ...client, signer: SIGNER }, 9]] : []);
		}
	}
});

test("in a batch bids, replacements and cancels stay in their order", async () => {
	const { market, send } = startBundleMethods();
	const order: string[] = [];
	market.bid = async (request) => {
		order.push(`bid ${request.blocks.first}`);
		await Promise.resolve();
		order.push(`bid ${request.blocks.first} done`);
		return { outcome: "accepted", hash: HASH };
	};
	market.cancel = (_owner, uuid) => void order.push(`cancel ${uuid}`);
	const answers = await send([
		{ id: 1, method: "eth_sendBundle", params: [{ ...SEND, blockNumber: "0x1", replacementUuid: "a" }] },
		{ id: 2, method: "eth_cancelBundle", params: [{ replacementUuid: "a" }] },
		{ id: 3, method: "eth_sendBundle", params: [{ ...SEND, blockNumber: "0x2", replacementUuid: "a" }] },
		{ id: 4, method: "eth_sendBundle", params: [{ txs: [], replacementUuid: "a" }] },
	]);
	assert.deepEqual(
		answers.map((answer: { result: unknown }) => answer.result),
		[HASH, 200, HASH, NO_BUNDLE],
	);
	assert.deepEqual(order, ["bid 1", "bid 1 done", "cancel a", "bid 2", "bid 2 done", "cancel a"]);
});
