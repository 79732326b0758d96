// The exact calls to builders that hand over more than a target alone: backruns with refunds and plain bundles, in
// both dialects, as JSON written by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { DIALECTS } from "../../../../../relay/broadcast/dialects.ts";
import { type BuilderRow, parseBuilders } from "../../../../../relay/domain/builder.ts";
import type { BundleRefund, OutgoingBundle } from "../../../../../relay/domain/bundle.ts";
import { signedTransaction, testAccount } from "../../../../support/txFactory.ts";

const TARGET = signedTransaction();
const BACKRUN = signedTransaction({ by: testAccount(7), nonce: 3 });
const RAW = [TARGET, BACKRUN].map(({ raw }) => `0x${raw.toString("hex")}`);
const RECIPIENT = `0x${"7e".repeat(20)}`;
const UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";
const REFUND: BundleRefund = { percent: 90, recipient: RECIPIENT, bodyIdx: 0, of: BACKRUN.hash };

interface Options {
	readonly row?: Partial<BuilderRow>;
	readonly refund?: BundleRefund | null;
	readonly targetMayRevert?: boolean;
	readonly backrunMayRevert?: boolean;
	readonly mayDrop?: boolean;
}

/** The only param of the call, as it goes over the wire. */
function sent(method: string, options: Options): unknown {
	const dialect = method === "eth_sendBundle" ? "bundle" : "mev-share";
	const parsed = parseBuilders([{ name: "b", url: "https://b.example", dialect, ...options.row }]);
	assert.ok(parsed.ok && parsed.rows[0] !== undefined);
	const bundle: OutgoingBundle = {
		name: "a name of ours",
		transactions: [
			{ tx: TARGET, mayRevert: options.targetMayRevert ?? true, mayDrop: false },
			{ tx: BACKRUN, mayRevert: options.backrunMayRevert ?? false, mayDrop: options.mayDrop ?? true },
		],
		...{ client: "192.0.2.1", isPlain: false, block: 255 },
		refund: options.refund === undefined ? REFUND : options.refund,
	};
	const call = DIALECTS[dialect].bundle(parsed.rows[0], bundle, UUID);
	assert.equal(call.method, method);
	assert.equal(call.params.length, 1);
	assert.ok(!JSON.stringify(call).includes("a name of ours"));
	return JSON.parse(JSON.stringify(call.params[0]));
}

const BUNDLE = {
	txs: RAW,
	blockNumber: "0xff",
	revertingTxHashes: [TARGET.hash],
	replacementUuid: UUID,
};
const ASKED = { refundPercent: 90, refundRecipient: RECIPIENT, refundTxHashes: [BACKRUN.hash] };

/** Options, and what stands in eth_sendBundle beside or in place of {@link BUNDLE}. */
const COMMON: Readonly<Record<string, readonly [Options, object]>> = {
	"a backrun with its refund": [{}, ASKED],
	"a target that may not revert": [{ targetMayRevert: false }, { ...ASKED, revertingTxHashes: [] }],
	"a plain bundle whose entries may revert": [
		{ backrunMayRevert: true, refund: null, mayDrop: false },
		{ revertingTxHashes: [TARGET.hash, BACKRUN.hash] },
	],
	"a builder that knows dropping": [
		{ row: { dropping: true } },
		{ ...ASKED, droppingTxHashes: [BACKRUN.hash] },
	],
	"a builder that knows dropping, where nothing may drop": [
		{ row: { dropping: true }, mayDrop: false },
		ASKED,
	],
	"a builder that pays less": [{ row: { maxRefundPercent: 50 } }, { ...ASKED, refundPercent: 50 }],
	"a builder that pays more": [{ row: { maxRefundPercent: 99 } }, ASKED],
	"the default of the builder": [
		{ refund: { ...REFUND, of: null } },
		{ refundPercent: 90, refundRecipient: RECIPIENT },
	],
	"a refund of the target": [
		{ refund: { ...REFUND, of: TARGET.hash } },
		{ ...ASKED, refundTxHashes: [TARGET.hash] },
	],
	"a refund of nothing": [{ refund: { ...REFUND, percent: 0 } }, {}],
	"no refund": [{ refund: null }, {}],
	"a builder that pays none": [{ row: { refund: false } }, {}],
};

for (const [what, [options, fields]] of Object.entries(COMMON)) {
	test(`eth_sendBundle: ${what}`, () => {
		assert.deepEqual(sent("eth_sendBundle", options), { ...BUNDLE, ...fields });
	});
}

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
const shared = (bodyIdx: number, percent: number) => ({
	validity: { refund: [{ bodyIdx, percent }], refundConfig: [{ address: RECIPIENT, percent: 100 }] },
});

/** The same for mev_sendBundle. */
const SHARE: Readonly<Record<string, readonly [Options, object]>> = {
	"a backrun with its refund": [{}, shared(0, 90)],
	"a refund of another entry": [{ refund: { ...REFUND, bodyIdx: 1 } }, shared(1, 90)],
	"a builder that pays less": [{ row: { maxRefundPercent: 50 } }, shared(0, 50)],
	"a plain bundle whose last entry may revert": [
		{ targetMayRevert: false, backrunMayRevert: true, refund: null },
		{
			body: [
				{ tx: RAW[0], canRevert: false },
				{ tx: RAW[1], canRevert: true },
			],
		},
	],
	"a builder that is said to know dropping": [{ row: { dropping: true } }, shared(0, 90)],
	"a refund of nothing": [{ refund: { ...REFUND, percent: 0 } }, {}],
	"no refund": [{ refund: null }, {}],
	"a builder that pays none": [{ row: { refund: false } }, {}],
};

for (const [what, [options, fields]] of Object.entries(SHARE)) {
	test(`mev_sendBundle: ${what}`, () => {
		assert.deepEqual(sent("mev_sendBundle", options), { ...SHARE_BUNDLE, ...fields });
	});
}
