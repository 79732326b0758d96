// `GET /bundle/{hash}` without a server: a bundle's record as JSON, and who sees it. Everybody else sees what unknown hashes
// get.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleBlockStatus, BundleRecord, Standing } from "../../../../relay/domain/bundleStatus.ts";
import { bundleBlockView, bundleRoute, bundleView } from "../../../../relay/ingress/bundleViews.ts";
import { createBodySigner, verifyBody } from "../../../../shared/ethereum/signatures.ts";
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
