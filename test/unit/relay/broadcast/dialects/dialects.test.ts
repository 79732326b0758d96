// Tests the exact calls to builders, as JSON: every path, dialect, way to cancel and private method.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
	type BuilderCall,
	cancelBundleCalls,
	cancelPrivateCalls,
	DIALECTS,
	privateCall,
} from "../../../../../relay/broadcast/dialects.ts";
import { targetBundle } from "../../../../../relay/broadcast/targetBundle.ts";
import { type BuilderRow, parseBuilders } from "../../../../../relay/domain/builder.ts";
import type { SubmissionPath } from "../../../../../relay/domain/endpoints.ts";
import { privateTransaction, rawTransaction, signedTransaction } from "../../../../support/txFactory.ts";

const RAW = `0x${rawTransaction().toString("hex")}`;
const HASH = signedTransaction().hash;
const UUID = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";

/** Block 255 is for sending, block 256 the last of its life, block 257 for cancelling. */
const BUNDLE_PATHS: readonly (readonly [SubmissionPath, boolean])[] = [
	["fast", true],
	["noreverts", false],
	["fullprivacy", false],
	["maxbackruns", true],
];
const DIALECT_NAMES = ["bundle", "mev-share"] as const;
const CANCELS = ["endpoint", "empty", "both", "none"] as const;
const PRIVATE_METHODS = [
	...["eth_sendPrivateRawTransaction", "eth_sendPrivateTransaction", "eth_sendRawTransaction"],
] as BuilderRow["privateMethod"][];

function row(options: Partial<BuilderRow>): BuilderRow {
	const parsed = parseBuilders([{ name: "b", url: "https://b.example", ...options }]);
	assert.ok(parsed.ok && parsed.rows[0] !== undefined);
	return parsed.rows[0];
}

/** As it goes over the wire. */
function json(calls: BuilderCall | readonly BuilderCall[]): unknown {
	return JSON.parse(JSON.stringify(calls));
}

function sent(path: SubmissionPath, options: Partial<BuilderRow>): unknown {
	const builder = row(options);
	const bundle = targetBundle({ transaction: privateTransaction({ path }), block: 255, lastBlock: 256 });
	return json(DIALECTS[builder.dialect].bundle(builder, bundle, UUID));
}

for (const cancel of CANCELS) {
	for (const privateMethod of PRIVATE_METHODS) {
		for (const [path, mayRevert] of BUNDLE_PATHS) {
			test(`/${path} in both dialects, with cancel ${cancel} and ${privateMethod}`, () => {
				assert.deepEqual(sent(path, { dialect: "bundle", cancel, privateMethod }), {
					method: "eth_sendBundle",
					params: [
						{
							txs: [RAW],
							blockNumber: "0xff",
							revertingTxHashes: mayRevert ? [HASH] : [],
							replacementUuid: UUID,
						},
					],
				});
				assert.deepEqual(sent(path, { dialect: "mev-share", cancel, privateMethod }), {
					method: "mev_sendBundle",
					params: [
						{
							version: "v0.1",
							inclusion: { block: "0xff", maxBlock: "0xff" },
							body: [{ tx: RAW, canRevert: mayRevert }],
							validity: { refund: [], refundConfig: [] },
							privacy: { hints: [] },
							replacementUuid: UUID,
						},
					],
				});
			});
		}
	}
}

const ENDPOINT = { method: "eth_cancelBundle", params: [{ replacementUuid: UUID }] };
const EMPTY = {
	method: "eth_sendBundle",
	params: [{ txs: [], blockNumber: "0x101", replacementUuid: UUID }],
};
const CANCEL_CALLS = {
	endpoint: [ENDPOINT],
	empty: [EMPTY],
	both: [ENDPOINT, EMPTY],
	none: [],
} as const;

for (const cancel of CANCELS) {
	test(`a bundle is cancelled as a builder with cancel ${cancel} understands it`, () => {
		for (const dialect of DIALECT_NAMES) {
			const calls = json(cancelBundleCalls(row({ dialect, cancel }), UUID, 257));
			assert.deepEqual(calls, CANCEL_CALLS[cancel], dialect);
		}
	});
}

const PRIVATE_PARAMS: Readonly<Record<BuilderRow["privateMethod"], unknown>> = {
	eth_sendPrivateRawTransaction: [RAW],
	eth_sendPrivateTransaction: [{ tx: RAW, maxBlockNumber: "0x100" }],
	eth_sendRawTransaction: [RAW],
};

for (const privateMethod of PRIVATE_METHODS) {
	test(`/nochecks goes out by ${privateMethod}, in no bundle, and is cancelled by its hash`, () => {
		for (const dialect of DIALECT_NAMES) {
			const call = json(privateCall(row({ dialect, privateMethod }), signedTransaction(), 256));
			assert.deepEqual(call, { method: privateMethod, params: PRIVATE_PARAMS[privateMethod] });
			for (const cancel of ["endpoint", "empty", "both"] as const) {
				assert.deepEqual(json(cancelPrivateCalls(row({ dialect, privateMethod, cancel }), HASH)), [
					{ method: "eth_cancelPrivateTransaction", params: [{ txHash: HASH }] },
				]);
			}
			const silent = row({ dialect, privateMethod, cancel: "none" });
			assert.deepEqual(cancelPrivateCalls(silent, HASH), []);
		}
	});
}

test("nothing of what a client said with its transaction goes out", () => {
	const secrets = { referrer: "s3cret-ref", origin: "203.0.113.7", refundRecipient: `0x${"77".repeat(20)}` };
	for (const [path] of BUNDLE_PATHS) {
		for (const dialect of DIALECT_NAMES) {
			const builder = row({ dialect });
			const bundle = targetBundle({
				transaction: privateTransaction({ path, ...secrets }),
				block: 1,
				lastBlock: 2,
			});
			const text = JSON.stringify(DIALECTS[dialect].bundle(builder, bundle, UUID));
			for (const secret of Object.values(secrets))
				assert.ok(!text.includes(secret.replace("0x", "")), secret);
		}
	}
});
