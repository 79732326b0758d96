// The exact calls to builders as JSON: each path, backruns with refunds, plain bundles, cancels and
// private methods.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	type BuilderCall,
	bundleCall,
	cancelBundleCalls,
	cancelPrivateCalls,
	privateCall,
	refundTerms,
} from "../../../../relay/broadcast/builderClient.ts";
import { targetBundle } from "../../../../relay/broadcast/fanout.ts";
import { type BuilderRow, parseBuilders } from "../../../../relay/domain/builder.ts";
import type { BundleRefund, OutgoingBundle, TimeRange } from "../../../../relay/domain/bundle.ts";
import { AMSTERDAM, OSAKA } from "../../../support/forks.ts";
import { privateTransaction, signedTransaction, testAccount } from "../../../support/txFactory.ts";

const TARGET = signedTransaction();
const BACKRUN = signedTransaction({ by: testAccount(7), nonce: 3 });
const RAW = [TARGET, BACKRUN].map(({ raw }) => `0x${raw.toString("hex")}`);
const RECIPIENT = `0x${"7e".repeat(20)}`;
const UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const REFUND: BundleRefund = { percent: 90, recipient: RECIPIENT, bodyIdx: 0, of: BACKRUN.hash };
const DIALECT_NAMES = ["bundle", "mev-share"] as const;

function row(options: Partial<BuilderRow>): BuilderRow {
	const parsed = parseBuilders([{ name: "b", url: "https://b.example", ...options }]);
	assert.ok(parsed.ok && parsed.rows[0] !== undefined);
	return parsed.rows[0];
}

/** As it goes over the wire. */
function json(calls: BuilderCall | readonly BuilderCall[]): unknown {
	return JSON.parse(JSON.stringify(calls));
}

const BUNDLE = {
	txs: RAW,
	blockNumber: "0xff",
	revertingTxHashes: [TARGET.hash],
	replacementUuid: UUID,
};
const SHARE_BUNDLE = {
	version: "v0.1",
	inclusion: { block: "0xff", maxBlock: "0xff" },
	body: [
		{ tx: RAW[0], canRevert: true },
		{ tx: RAW[1], canRevert: false },
	],
	validity: { refund: [], refundConfig: [] },
	privacy: { hints: [] },
	replacementUuid: UUID,
};

for (const [path, mayRevert] of [
	["fast", true],
	["noreverts", false],
	["fullprivacy", false],
	["maxbackruns", true],
] as const) {
	test(`a transaction of /${path} alone, in both dialects, with no data of its client`, () => {
		const said = { referrer: "s3cret-ref", submitterAddress: "203.0.113.7", refundRecipient: RECIPIENT };
		const transaction = privateTransaction({ path, ...said });
		const bundle = targetBundle({ transaction, block: 255, lastBlock: 256 });
		const sent = DIALECT_NAMES.map((dialect) => json(bundleCall(row({ dialect }), bundle, UUID)));
		const revertingTxHashes = mayRevert ? [TARGET.hash] : [];
		const body = [{ tx: RAW[0], canRevert: mayRevert }];
		assert.deepEqual(sent, [
			{ method: "eth_sendBundle", params: [{ ...BUNDLE, txs: [RAW[0]], revertingTxHashes }] },
			{ method: "mev_sendBundle", params: [{ ...SHARE_BUNDLE, body }] },
		]);
	});
}

interface Options {
	readonly row?: Partial<BuilderRow>;
	readonly refund?: BundleRefund | null;
	readonly targetMayRevert?: boolean;
	readonly backrunMayRevert?: boolean;
	readonly mayDrop?: boolean;
	readonly times?: TimeRange;
}

/** The call that forwards a target with its backrun. */
function sent(dialect: BuilderRow["dialect"], options: Options): unknown {
	const bundle: OutgoingBundle = {
		name: "a name of ours",
		transactions: [
			{ tx: TARGET, mayRevert: options.targetMayRevert ?? true, mayDrop: false },
			{ tx: BACKRUN, mayRevert: options.backrunMayRevert ?? false, mayDrop: options.mayDrop ?? true },
		],
		...{
			client: "192.0.2.1",
			requestId: null,
			kind: "bid" as const,
			block: 255,
			times: options.times ?? null,
		},
		refund: options.refund === undefined ? REFUND : options.refund,
	};
	return json(bundleCall(row({ dialect, ...options.row }), bundle, UUID));
}

const ASKED = { refundPercent: 90, refundRecipient: RECIPIENT, refundTxHashes: [BACKRUN.hash] };
const shared = (bodyIdx: number, percent: number) => ({
	validity: { refund: [{ bodyIdx, percent }], refundConfig: [{ address: RECIPIENT, percent: 100 }] },
});
const shareBody = (...canRevert: readonly boolean[]) => ({
	body: canRevert.map((may, i) => ({ tx: RAW[i], canRevert: may })),
});

/** Options, and what then differs from {@link BUNDLE} and from {@link SHARE_BUNDLE}. */
const BACKRUNS: Readonly<Record<string, readonly [Options, object, object]>> = {
	"a backrun with its refund": [{}, ASKED, shared(0, 90)],
	"a target that may not revert": [
		{ targetMayRevert: false },
		{ ...ASKED, revertingTxHashes: [] },
		{ ...shared(0, 90), ...shareBody(false, false) },
	],
	"a plain bundle whose entries may revert": [
		{ backrunMayRevert: true, refund: null, mayDrop: false },
		{ revertingTxHashes: [TARGET.hash, BACKRUN.hash] },
		shareBody(true, true),
	],
	"a builder that knows dropping": [
		{ row: { dropping: true } },
		{ ...ASKED, droppingTxHashes: [BACKRUN.hash] },
		shared(0, 90),
	],
	"a builder that pays less": [
		{ row: { maxRefundPercent: 50 } },
		{ ...ASKED, refundPercent: 50 },
		shared(0, 50),
	],
	"the default of the builder": [
		{ refund: { ...REFUND, of: null } },
		{ refundPercent: 90, refundRecipient: RECIPIENT },
		shared(0, 90),
	],
	"a refund of another entry": [
		{ refund: { ...REFUND, of: TARGET.hash, bodyIdx: 1 } },
		{ ...ASKED, refundTxHashes: [TARGET.hash] },
		shared(1, 90),
	],
	"a time from which it is valid": [
		{ times: { from: 12, until: Number.POSITIVE_INFINITY } },
		{ ...ASKED, minTimestamp: 12 },
		shared(0, 90),
	],
	"a time until which it is valid": [
		{ times: { from: 0, until: 24 } },
		{ ...ASKED, maxTimestamp: 24 },
		shared(0, 90),
	],
	"a refund of nothing": [{ refund: { ...REFUND, percent: 0 } }, {}, {}],
	"no refund": [{ refund: null }, {}, {}],
	"a builder that pays none": [{ row: { refund: false } }, {}, {}],
};

for (const [what, [options, bundle, share]] of Object.entries(BACKRUNS)) {
	test(`a bundle in both dialects: ${what}`, () => {
		const params = [{ ...BUNDLE, ...bundle }];
		assert.deepEqual(sent("bundle", options), { method: "eth_sendBundle", params });
		const shareParams = [{ ...SHARE_BUNDLE, ...share }];
		assert.deepEqual(sent("mev-share", options), { method: "mev_sendBundle", params: shareParams });
	});
}

const ENDPOINT = { method: "eth_cancelBundle", params: [{ replacementUuid: UUID }] };
const EMPTY = {
	method: "eth_sendBundle",
	params: [{ txs: [], blockNumber: "0x101", replacementUuid: UUID }],
};
const PRIVATE = { method: "eth_cancelPrivateTransaction", params: [{ txHash: TARGET.hash }] };

for (const [cancel, ofBundle, ofPrivate] of [
	["endpoint", [ENDPOINT], [PRIVATE]],
	["empty", [EMPTY], [PRIVATE]],
	["both", [ENDPOINT, EMPTY], [PRIVATE]],
	["none", [], []],
] as const) {
	test(`a builder with cancel ${cancel} gets its own form of cancel`, () => {
		for (const dialect of DIALECT_NAMES) {
			const builder = row({ dialect, cancel });
			assert.deepEqual(json(cancelBundleCalls(builder, UUID, 257)), ofBundle, dialect);
			assert.deepEqual(json(cancelPrivateCalls(builder, TARGET.hash)), ofPrivate, dialect);
		}
	});
}

for (const [method, param] of [
	["eth_sendPrivateRawTransaction", RAW[0]],
	["eth_sendPrivateTransaction", { tx: RAW[0], maxBlockNumber: "0x100" }],
	["eth_sendRawTransaction", RAW[0]],
] as const) {
	test(`/nochecks goes out by ${method}, in no bundle`, () => {
		for (const dialect of DIALECT_NAMES) {
			const call = json(privateCall(row({ dialect, privateMethod: method }), TARGET, 256));
			assert.deepEqual(call, { method, params: [param] });
		}
	});
}

test("a builder refunds what is asked, within its row; one that pays nothing has no terms", () => {
	for (const [asked, options, terms] of [
		[90, { maxRefundPercent: 99, refundGas: 21_000 }, { percent: 90, refundGas: 21_000 }],
		[100, { maxRefundPercent: 99 }, { percent: 99, refundGas: "usual" }],
		[90, { maxRefundPercent: 50, refundGas: "transfer" }, { percent: 50, refundGas: "transfer" }],
		[90, { maxRefundPercent: 90, refundGas: 0 }, { percent: 90, refundGas: 0 }],
		[0, {}, { percent: 0, refundGas: "usual" }],
		[90, { refund: false }, null],
		[90, { refund: true, maxRefundPercent: 0 }, null],
	] as const) {
		assert.deepEqual(refundTerms(row(options), asked), terms, `${asked} of ${JSON.stringify(options)}`);
	}
});

test("a builder is asked for no refund that costs more to pay than it is", () => {
	const brings = 1_000_000n;
	for (const [fork, baseFee, isNew, isAsked] of [
		[OSAKA, 100n, true, true],
		[AMSTERDAM, 4n, true, true],
		[AMSTERDAM, 5n, true, false],
		[AMSTERDAM, 42n, false, true],
		[AMSTERDAM, 43n, false, false],
	] as const) {
		const refund = { ...REFUND, payout: { fork, baseFee, isNew, brings } };
		for (const dialect of DIALECT_NAMES) {
			const text = JSON.stringify(sent(dialect, { refund }));
			assert.equal(text.includes(RECIPIENT), isAsked, `${fork.name} ${baseFee} ${isNew} ${dialect}`);
		}
	}
});
