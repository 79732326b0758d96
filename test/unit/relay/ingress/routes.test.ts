// What the relay's routes answer, without a server: a bundle's record and who sees it, the forms of a transaction's events
// and what a client that comes back is told, and what the relay says of itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleBlockStatus, BundleRecord, Standing } from "../../../../relay/domain/bundleStatus.ts";
import { fold, newRecord } from "../../../../relay/domain/record.ts";
import { bundleBlockView, bundleRoute, bundleView } from "../../../../relay/ingress/bundleViews.ts";
import { infoReport } from "../../../../relay/ingress/info.ts";
import { transactionEventsRoute } from "../../../../relay/ingress/transactionEvents.ts";
import { Followers } from "../../../../relay/status/announcer.ts";
import { createBodySigner, verifyBody } from "../../../../shared/ethereum/signatures.ts";
import { EventStreams } from "../../../../shared/http/eventStreams.ts";
import type { HttpAnswer } from "../../../../shared/http/messages.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { privateTransaction } from "../../../support/txFactory.ts";
import { ADDRESS } from "./bundleFixture.ts";

const HASH = `0x${"0a".repeat(32)}`;
const TARGET = `0x${"0b".repeat(32)}`;
const BLOCK_HASH = `0x${"0c".repeat(32)}`;
const BACKRUN = `0x${"0d".repeat(32)}`;
const AT = Date.UTC(2026, 1, 3, 4, 5, 6, 7);

const outbid: BundleBlockStatus = {
	block: 7,
	stage: "NOT_INCLUDED",
	reason: "outbid",
	bid: 10n ** 18n + 1n,
	winner: { backrun: BACKRUN, paid: 10n ** 18n + 4n },
	paid: null,
	blockHash: null,
	at: AT + 1000,
	deliveries: [{ at: AT, builder: "one", kind: "bundle", answer: "accepted", ms: 12.5 }],
};
const waiting: BundleBlockStatus = {
	block: 8,
	stage: "ACCEPTED",
	reason: null,
	bid: null,
	winner: null,
	paid: 5n,
	blockHash: BLOCK_HASH,
	at: AT,
	deliveries: [],
};
const record: BundleRecord = {
	owner: "me",
	hash: HASH,
	bidder: null,
	target: TARGET,
	receivedAt: AT,
	firstBlock: 7,
	lastBlock: 8,
	blocks: [outbid, waiting],
};

const OUTBID = {
	blockNumber: 7,
	status: "NOT_INCLUDED",
	reason: "outbid",
	bid: "1000000000000000001",
	paid: null,
	winner: { backrun: BACKRUN, paid: "1000000000000000004" },
	outbidBy: "3",
	blockHash: null,
	at: "2026-02-03T04:05:07.007Z",
	builders: [
		{ builder: "one", kind: "bundle", answer: "accepted", ms: 12.5, at: "2026-02-03T04:05:06.007Z" },
	],
};
const WAITING = {
	blockNumber: 8,
	status: "ACCEPTED",
	reason: null,
	bid: null,
	paid: "5",
	winner: null,
	outbidBy: null,
	blockHash: BLOCK_HASH,
	at: "2026-02-03T04:05:06.007Z",
	builders: [],
};

test("a bundle with all its blocks, as JSON", () => {
	assert.deepEqual(bundleView(record, null), {
		bundleHash: HASH,
		target: TARGET,
		receivedAt: "2026-02-03T04:05:06.007Z",
		blocks: [OUTBID, WAITING],
	});
});

test("one block of it, as a subscriber is told", () => {
	assert.deepEqual(bundleBlockView(record, outbid, null), { bundleHash: HASH, target: TARGET, ...OUTBID });
	assert.deepEqual(bundleBlockView({ ...record, target: null }, waiting, null), {
		bundleHash: HASH,
		target: null,
		...WAITING,
	});
});

test("one whose bidder is barred or ranks behind says so, and why", () => {
	const bar = { until: 40, bid: 10n, paid: 1n, block: 8 };
	const barred = { until: 40, bid: "10", paid: "1", block: 8 };
	const plain = bundleView(record, null) as object;
	for (const [standing, told] of [
		[
			{ bar, behindUntil: null },
			{ barred, rankedBehindUntil: null },
		],
		[
			{ bar: null, behindUntil: 72 },
			{ barred: null, rankedBehindUntil: 72 },
		],
	] as const satisfies readonly (readonly [Standing, object])[]) {
		assert.deepEqual(bundleView(record, standing), { ...plain, ...told });
	}
});

test("by how much it was outbid is what the other really paid more: nothing where it paid less, or that is not known", () => {
	for (const [paid, told] of [
		[10n ** 18n + 1n, "0"],
		[10n ** 18n, null],
		[null, null],
	] as const) {
		const winner = { backrun: BACKRUN, paid };
		const view = bundleBlockView(record, { ...outbid, winner }, null) as { outbidBy: unknown };
		assert.equal(view.outbidBy, told);
	}
});

const signer = createBodySigner(`0x${"11".repeat(32)}`);
const stranger = createBodySigner(`0x${"22".repeat(32)}`);
const UNKNOWN = `0x${"0e".repeat(32)}`;
const ELSEWHERE = "198.51.100.7";

/** What is answered for a hash: HASH is a bundle of the address, TARGET is taken for one of the signer. */
async function get(hash: string, headers: Record<string, string> = {}, address = ADDRESS) {
	const owners = new Map([
		[`${ADDRESS} ${HASH}`, record],
		[`${signer.address} ${TARGET}`, { ...record, hash: TARGET }],
	]);
	const bundle = (owner: string, wanted: string) => owners.get(`${owner} ${wanted}`) ?? null;
	const route = bundleRoute({ bundles: { bundle, standing: () => null }, verifySignature: verifyBody });
	const query = new URLSearchParams();
	const { status, body } = await route.handle({ path: "", params: { hash }, query, headers, address });
	return [status, JSON.parse(String(body))];
}

const signed = (by: typeof signer, text: string) => ({ "x-flashbots-signature": by.sign(text) });

test("the client that sent it sees it, by its address or from anywhere by its signature, its hash in any case", async () => {
	const own = [200, bundleView(record, null)];
	const ofSigner = [200, bundleView({ ...record, hash: TARGET }, null)];
	assert.deepEqual(await get(HASH), own);
	assert.deepEqual(await get(HASH.toUpperCase()), own);
	assert.deepEqual(await get(TARGET.toUpperCase(), signed(signer, TARGET), ELSEWHERE), ofSigner);
});

test("everybody else gets what unknown hashes get", async () => {
	const unknown = [404, { error: "no bundle of yours with this hash was seen here" }];
	for (const [hash, headers, address] of [
		[UNKNOWN],
		[HASH, {}, ELSEWHERE],
		[HASH, signed(stranger, HASH)],
		[HASH, signed(signer, HASH)],
		[HASH, { origin: "https://app.example" }],
		[TARGET],
		[TARGET, signed(stranger, TARGET)],
	] as const) {
		assert.deepEqual(await get(hash, headers, address), unknown);
	}
});

test("what is no hash, and a signature that does not verify, is refused whether the bundle is known or not", async () => {
	for (const hash of ["0x", "nope", HASH.slice(2), `${HASH}0a`, HASH.slice(0, -2), `${HASH.slice(0, -1)}g`]) {
		assert.deepEqual(await get(hash), [400, { error: "expected a bundle hash of 32 bytes as 0x hex" }]);
	}
	for (const hash of [HASH, TARGET, UNKNOWN]) {
		for (const [header, reason] of [
			["", "malformed"],
			["nope", "malformed"],
			[signer.sign(HASH.toUpperCase()), "mismatch"],
			[signer.sign(""), "mismatch"],
			[`${stranger.address}${signer.sign(hash).slice(42)}`, "mismatch"],
			[`${signer.address}:0x${"00".repeat(65)}`, "invalid"],
		] as const) {
			const expected = "expected a signature over the bundle's hash as lower-case hex";
			const error = `X-Flashbots-Signature does not verify: ${reason}: ${expected}`;
			assert.deepEqual(await get(hash, { "x-flashbots-signature": header }), [400, { error }]);
		}
	}
});

const STREAM = "text/event-stream";

/** A stream that keeps what is written. */
class Written {
	text = "";
	isOpen = true;
	readonly #onClose: (() => void)[] = [];
	write(text: string): void {
		this.text += text;
	}
	end(): void {
		this.isOpen = false;
		for (const listener of this.#onClose.splice(0)) listener();
	}
	onClose(listener: () => void): void {
		if (this.isOpen) this.#onClose.push(listener);
		else listener();
	}
}

/** A record with events at 0, 5, 5 and 9 ms, which is live or settled. */
function fixture(isOpen: boolean) {
	const record = newRecord(privateTransaction());
	for (const [type, ms] of [
		["received", 0],
		["ready", 5],
		["broadcast", 5],
		["broadcast", 9],
	] as const) {
		assert.ok(fold(record, { type, at: AT + ms, block: 100 }), type);
	}
	const followers = new Followers({ log: silentLogger });
	const clock = new ManualClock();
	const streams = new EventStreams({ clock });
	const news = (at: number, type: string) => ({ at, data: { type } });
	const route = transactionEventsRoute({
		records: { record: async (hash) => (hash === record.hash ? record : null) },
		following: followers,
		views: {
			events: ({ stage }) => ({ stage }),
			history: ({ events }) => events.map(({ at, type }) => news(at, type)),
			news: (_record, { at, type }) => (type === "bid" ? null : news(at, type)),
		},
		isOpen: () => isOpen,
		streams,
	});
	const ask = async (headers: Record<string, string>, hash: string = record.hash): Promise<HttpAnswer> =>
		route.handle({
			...{ path: "", params: { hash }, query: new URLSearchParams(), headers, address: "192.0.2.1" },
		});
	return { record, followers, streams, ask };
}

const bodyOf = ({ body }: HttpAnswer): string => String(body);
const idsOf = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => Number(id) - AT);

test("JSON unless a stream is asked for, and caches are told of it", async () => {
	const { ask } = fixture(true);
	for (const headers of [{}, { accept: "*/*" }, { accept: "text/html, */*" }] as Record<string, string>[]) {
		const answer = await ask(headers);
		assert.deepEqual([answer.status, answer.open, bodyOf(answer)], [200, undefined, '{"stage":"BROADCAST"}']);
		assert.deepEqual(answer.headers, { vary: "accept" });
	}
	const answer = await ask({ accept: STREAM });
	assert.deepEqual([answer.status, answer.body, answer.headers?.vary], [200, null, "accept"]);
	assert.ok(answer.open !== undefined, "it goes on");
});

/** What a client that comes back names as last, and the events that it gets; what is no time is ignored. */
const SINCE: readonly (readonly [string, readonly number[]])[] = [
	[String(AT), [0, 5, 5, 9]],
	[String(AT + 1), [5, 5, 9]],
	[String(AT + 5), [5, 5, 9]],
	["0", [0, 5, 5, 9]],
	...["", "x", "-1", "1e3", "0x10", ` ${AT + 9}x`, "9".repeat(16), "1.5"].map(
		(bad) => [bad, [0, 5, 5, 9]] as const,
	),
];

/** How it goes on for a live transaction, and what is answered of a settled one. */
async function comeBack(id: string) {
	const headers = { accept: STREAM, "last-event-id": id };
	const stream = new Written();
	(await fixture(true).ask(headers)).open?.(stream);
	const { ask, streams } = fixture(false);
	const settled = await ask(headers);
	assert.deepEqual([settled.open, streams.size], [undefined, 0]);
	return { live: idsOf(stream.text), settled };
}

test("a client that comes back gets what happened at that time or after, and the end where all is settled", async () => {
	for (const [id, expected] of SINCE) {
		const { live, settled } = await comeBack(id);
		assert.deepEqual(live, expected, `live, ${id}`);
		assert.deepEqual([settled.status, idsOf(bodyOf(settled))], [200, expected], `settled, ${id}`);
		assert.equal(settled.contentType, "text/event-stream; charset=utf-8");
	}
});

test("who comes back to a settled one with nothing new to hear is told to stop; JSON knows no coming back", async () => {
	for (const [id, expected] of [
		[String(AT + 9), [9]],
		[String(AT + 10), []],
	] as const) {
		const { live, settled } = await comeBack(id);
		assert.deepEqual([live, settled.status, settled.body], [expected, 204, null]);
		assert.equal((await fixture(false).ask({ "last-event-id": id })).status, 200);
	}
});

const SETTINGS = {
	FEE_RECIPIENT: undefined,
	REFUND_PERCENT: 90,
	TX_TTL_BLOCKS: 25,
	SLOT_SECONDS: 12,
	MAX_BODY_BYTES: 1_000,
	MAX_BATCH: 100,
	RATE_LIMIT_RPS: 50,
};

test("what the relay says of itself", () => {
	assert.deepEqual(infoReport(SETTINGS, "1.2.3", 31_337n, 64, true), {
		name: "leeward",
		version: "1.2.3",
		chainId: "0x7a69",
		feeRecipient: null,
		pay: "block.coinbase",
		bidding: true,
		refundPercent: 90,
		txTtlBlocks: 25,
		slotSeconds: 12,
		limits: {
			maxBodyBytes: 1_000,
			maxBatch: 100,
			rateLimitRps: 50,
			maxPendingPerSender: 64,
			maxBundleBlocksAhead: 30,
			maxBundleTransactions: 100,
			maxReplacementUuidLength: 256,
		},
	});
});

test("a shared coinbase is named; without an engine for bids it says so", () => {
	const FEE_RECIPIENT = `0x${"5a".repeat(20)}`;
	const info = infoReport({ ...SETTINGS, FEE_RECIPIENT }, "1", 1n, 64, false) as Record<string, unknown>;
	assert.deepEqual([info.feeRecipient, info.bidding], [FEE_RECIPIENT, false]);
});
