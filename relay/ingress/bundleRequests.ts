// The common base of all bundle requests: their parameters, the owner of a bundle, and the answer
// for the market's outcome. The owner is the verified signer, or else the client. A rejection after
// a simulation is charged to the client.
//
// An error names keys that the relay does not support, unless their value is empty. Otherwise an
// ignored `refundPercent` or a misspelt `privacy` would keep a refund or show a bundle to
// everybody. Empty values are allowed because libraries send every key that they know. Checks that
// depend on settings or on the chain are elsewhere.

import { z } from "zod";
import { type Client, clientOf, isWebPage, pageAddress } from "../../shared/client.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import {
	address,
	boundedList,
	exactObject,
	hash,
	quantity,
	rawBytes,
	time,
} from "../../shared/jsonrpc/method.ts";
import { type BundleOutcome, MAX_BLOCKS_AHEAD, type TimeRange } from "../domain/bundle.ts";

/**
 * The owner of a bundle: the address that signed the request, else the network address. Over a
 * websocket it is always the network address. A web page sends from its visitor's address without
 * the visitor's knowledge. So its bundles have a separate owner, and a page can't replace or watch
 * the visitor's bundles.
 */
export function bundleOwner({ transport, client, origin }: OwnerContext): string {
	if (transport === "http" && client.signer !== null) return client.signer;
	return isWebPage(origin) ? pageAddress(client.address) : client.address;
}

/**
 * The owner of a bundle, and the network that limits the number of bundles, no matter which keys
 * sign them.
 */
export function bundleClient(context: OwnerContext): { readonly owner: string; readonly network: string } {
	return { owner: bundleOwner(context), network: clientOf(context.client.address) };
}

/**
 * Whether the request may cancel its client's bundles; an unsigned request of a web page may not.
 * Throws RpcError `rejected` for an unsigned request from an untrusted boost instance. Its client
 * must learn that the bundle stays.
 */
export function mayCancel({ transport, client, origin }: OwnerContext): boolean {
	if (transport === "http" && client.signer !== null) return true;
	if (client.unbelieved !== undefined) throw NOT_BELIEVED;
	return !isWebPage(origin);
}

const NOT_BELIEVED = new RpcError(
	"rejected",
	"bundle not cancelled: the relay does not trust boost's client addresses; sign the request, or ask the operator to correct BOOST_SECRET or TRUST_PROXY",
);

export type OwnerContext = Pick<CallContext, "transport" | "client" | "origin">;

/**
 * Extra cost of a bundle that fails its simulation; with the cost of its own call, it equals an
 * eth_call.
 */
const FAILED_SIMULATION_WEIGHT = 9;

/**
 * The hash of an accepted bundle. Throws RpcError `limit` or `rejected`, with the rejection's code
 * as `data.reason`.
 */
export function acceptedHash(
	outcome: BundleOutcome,
	client: Client,
	charge: (client: Client, weight: number) => void,
): string {
	if (outcome.outcome === "accepted") return outcome.hash;
	const { code, message, simulated } = outcome;
	if (simulated) charge(client, FAILED_SIMULATION_WEIGHT);
	throw new RpcError(code === "LIMIT" ? "limit" : "rejected", message, { reason: code });
}

/** Maximum number of transactions of a plain bundle. */
export const MAX_BUNDLE_TRANSACTIONS = 100;
/** Maximum number of characters of a `replacementUuid`. */
export const MAX_UUID_LENGTH = 256;

interface Fault {
	readonly path: readonly (string | number)[];
	readonly expected: string;
}

/** Reports a faulty value, so that the whole parameter is invalid. */
function invalid(context: { issues: object[] }, { path, expected }: Fault): never {
	context.issues.push({ code: "custom", message: `expected ${expected}`, input: undefined, path: [...path] });
	return z.NEVER;
}

const BLOCK_TIME = "none, or 0: the simulated block's time is its timestamp";
const REFUND_BY = "none: GET /info has the user's share; for a plain bundle, use validity of mev_sendBundle";
const NO_OVERRIDE = "none: the simulated block follows from stateBlockNumber, blockNumber and timestamp";
/**
 * Bundle keys that other relays accept and this one does not: the expected value of each, and the
 * alternative.
 */
const NOT_TAKEN: Readonly<Record<string, string>> = {
	minTimestamp: BLOCK_TIME,
	maxTimestamp: BLOCK_TIME,
	revertingTxHashes: "none, or []: no backrun may revert; in a plain bundle say canRevert, by mev_sendBundle",
	droppingTxHashes: "none, or []: a bundle is mined whole or not at all",
	refundPercent: REFUND_BY,
	refundRecipient: REFUND_BY,
	refundTxHashes: REFUND_BY,
	delayedRefund: REFUND_BY,
	refundIdentity: REFUND_BY,
	builders: "none, or []: name builders in privacy.builders of mev_sendBundle",
	uuid: "none: a bundle is named by its replacementUuid",
	signingAddress: "none: sign the request in X-Flashbots-Signature",
	replacementNonce: "none: the later of two bundles with the same replacementUuid counts",
	baseFee: NO_OVERRIDE,
	coinbase: NO_OVERRIDE,
	gasLimit: NO_OVERRIDE,
	difficulty: NO_OVERRIDE,
	timeout: "none, or 0: the relay sets its own deadline",
};

/**
 * An object of a bundle's request, without its empty keys. A key is empty if it is optional and its
 * value is null or an empty text. Keys of {@link NOT_TAKEN} are also empty if they are 0, false or
 * an empty list or object. Any other key that is not in `shape` is an error.
 */
export function bundleObject<Shape extends z.core.$ZodLooseShape>(shape: Shape, error: string) {
	const optional = new Set(
		Object.entries(shape).flatMap(([key, one]) => (z.safeParse(one, undefined).success ? [key] : [])),
	);
	return z.preprocess(
		(value, context) => {
			if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
			const kept: [string, unknown][] = [];
			for (const [key, one] of Object.entries(value)) {
				const isOwn = Object.hasOwn(shape, key);
				const expected = !isOwn && Object.hasOwn(NOT_TAKEN, key) ? NOT_TAKEN[key] : undefined;
				if ((!isOwn || optional.has(key)) && (one === null || (isOwn && one === ""))) continue;
				if (expected !== undefined && saysNothing(one)) continue;
				if (expected !== undefined) return invalid(context, { path: [key], expected });
				kept.push([key, one]);
			}
			return Object.fromEntries(kept);
		},
		exactObject(shape, error),
	);
}

/**
 * A key that libraries send with every method because they have one bundle type; it does not affect
 * this method.
 */
export const withoutEffect = z.unknown().optional().describe("accepted, no effect");

function saysNothing(value: unknown): boolean {
	if (typeof value === "object" && value !== null) return Object.keys(value).length === 0;
	return [undefined, null, false, 0, "", "0x", "0x0"].includes(value as never);
}

const LATEST = "minTimestamp or later, or 0 for no limit";

const timeFields = {
	minTimestamp: time.nullish().describe("least time of its block, in seconds since the epoch; 0: any"),
	maxTimestamp: time.nullish().describe("greatest time of its block, in seconds since the epoch; 0: any"),
};

/** Null means any time. */
function timesOf(
	{ minTimestamp, maxTimestamp }: { readonly [K in keyof typeof timeFields]?: number | null | undefined },
	context: { issues: object[] },
): TimeRange | null {
	const times = { from: minTimestamp || 0, until: maxTimestamp || Number.POSITIVE_INFINITY };
	if (times.until < times.from) return invalid(context, { path: ["maxTimestamp"], expected: LATEST });
	return times.from === 0 && times.until === Number.POSITIVE_INFINITY ? null : times;
}

const UUID = `a text of 1 to ${MAX_UUID_LENGTH} characters`;

/** Any text of the searcher; it need not be a UUID. */
const uuid = z
	.string({ error: `expected ${UUID}` })
	.transform((text, context) =>
		text === "" || text.length > 2 * MAX_UUID_LENGTH || [...text].length > MAX_UUID_LENGTH
			? invalid(context, { path: [], expected: UUID })
			: text,
	)
	.meta({ description: UUID, minLength: 1, maxLength: MAX_UUID_LENGTH });

const rawTransaction = rawBytes("a signed transaction as 0x hex");
const BUNDLE = "expected an object";
const BID = "two entries, the target's hash and a signed backrun, or none to cancel";
const NO_TARGET = "the target's hash first: 32 bytes as 0x hex";
const NO_BACKRUN = "a signed transaction as 0x hex after the target's hash";

/** A parsed call of eth_sendBundle. */
export type SendBundle =
	| { readonly kind: "cancel"; readonly uuid: string }
	| {
			readonly kind: "bid";
			readonly target: string;
			readonly backrun: Uint8Array;
			/** Null for the next block. */
			readonly block: bigint | null;
			readonly times: TimeRange | null;
			readonly uuid: string | null;
	  };

/** The parameter of eth_sendBundle. */
export const sendBundle = bundleObject(
	{
		txs: boundedList(z.string({ error: `expected ${BID}` }), 2, BID).meta({ description: BID }),
		blockNumber: quantity.nullish(),
		...timeFields,
		replacementUuid: uuid.nullish(),
		stateBlockNumber: withoutEffect,
		timestamp: withoutEffect,
	},
	BUNDLE,
).transform(({ txs, blockNumber, replacementUuid, ...times }, context): SendBundle => {
	const [first, second] = txs;
	if (first === undefined) {
		return replacementUuid === null || replacementUuid === undefined
			? invalid(context, { path: ["replacementUuid"], expected: `${UUID}: an empty txs cancels by it` })
			: { kind: "cancel", uuid: replacementUuid };
	}
	if (second === undefined) return invalid(context, { path: ["txs"], expected: BID });
	const target = hash.safeParse(first);
	if (!target.success) return invalid(context, { path: ["txs", 0], expected: NO_TARGET });
	const backrun = rawTransaction.safeParse(second);
	// 32 bytes are too short for a transaction: most likely a hash.
	if (!backrun.success || backrun.data.length === 32) {
		return invalid(context, { path: ["txs", 1], expected: NO_BACKRUN });
	}
	return {
		kind: "bid",
		target: target.data,
		backrun: backrun.data,
		block: blockNumber ?? null,
		times: timesOf(times, context),
		uuid: replacementUuid ?? null,
	};
});

/**
 * The parameter of eth_cancelBundle: the replacementUuid. Other keys of the bundle are accepted
 * too.
 */
export const cancelBundle = bundleObject(
	{
		replacementUuid: uuid,
		txs: withoutEffect,
		blockNumber: withoutEffect,
		minTimestamp: withoutEffect,
		maxTimestamp: withoutEffect,
		stateBlockNumber: withoutEffect,
		timestamp: withoutEffect,
	},
	BUNDLE,
);

/**
 * The hints that MEV-Share may show searchers. Accepted but ignored: the relay shows bundles to
 * nobody.
 * https://docs.flashbots.net/flashbots-mev-share/searchers/understanding-bundles#bundle-privacy
 */
const HINTS = [
	...["calldata", "contract_address", "function_selector", "logs", "default_logs", "special_logs"],
	...["hash", "tx_hash", "full"],
];
const HINT_NAMES = `names of hints: ${HINTS.join(", ")}`;
const BUILDER_NAMES = "names of builders";
const MAX_NAMES = 100;

/** A transaction of the body, or the hash of the target that the bundle bids on. */
const bodyEntry = bundleObject(
	{
		hash: hash.optional(),
		tx: rawTransaction.optional(),
		canRevert: z.boolean({ error: "expected true or false" }).nullish(),
		bundle: z.never({ error: "expected none: nested bundles are not supported" }).optional(),
	},
	"expected {tx, canRevert}, or {hash} as the first one",
).transform((entry, context) => {
	if (entry.hash === undefined) {
		return entry.tx === undefined
			? invalid(context, { path: [], expected: "{tx, canRevert}, or {hash} as the first one" })
			: { kind: "tx" as const, raw: entry.tx, canRevert: entry.canRevert ?? false };
	}
	if (entry.tx !== undefined) return invalid(context, { path: ["tx"], expected: "none with hash" });
	return entry.canRevert === true
		? invalid(context, { path: ["canRevert"], expected: "none with hash" })
		: { kind: "hash" as const, hash: entry.hash };
});

function wholeNumber(max: number, expected: string) {
	const error = `expected ${expected}`;
	return z.int({ error }).min(0, { error }).max(max, { error });
}
const percent = wholeNumber(100, "a whole number from 0 to 100");
const bodyIdx = wholeNumber(MAX_BUNDLE_TRANSACTIONS, "the index of a body entry");

const inclusion = exactObject(
	{ block: quantity, maxBlock: quantity.nullish() },
	"expected {block, maxBlock}",
).transform(({ block, maxBlock }, context) => {
	const last = maxBlock ?? null;
	const span = last === null ? 0n : last - block;
	return span < 0n || span > BigInt(MAX_BLOCKS_AHEAD)
		? invalid(context, { path: ["maxBlock"], expected: `block to block + ${MAX_BLOCKS_AHEAD}` })
		: { first: block, last };
});

const REFUND = "at most one {bodyIdx, percent} for each entry of the body";
const REFUND_CONFIG = "a list of {address, percent}";
const SUM = "percents that add up to at most 100";

const validity = bundleObject(
	{
		refund: boundedList(
			bundleObject({ bodyIdx, percent }, "expected {bodyIdx, percent}"),
			MAX_BUNDLE_TRANSACTIONS,
			REFUND,
		).nullish(),
		refundConfig: boundedList(
			bundleObject({ address, percent }, "expected {address, percent}"),
			MAX_BUNDLE_TRANSACTIONS,
			REFUND_CONFIG,
		).nullish(),
	},
	"expected {refund, refundConfig}",
).transform(({ refund, refundConfig }, context) => {
	if (percents(refund) > 100) return invalid(context, { path: ["refund"], expected: SUM });
	if (percents(refundConfig) > 100) return invalid(context, { path: ["refundConfig"], expected: SUM });
	return { refund: refund ?? [], refundConfig: refundConfig ?? [] };
});

function percents(entries: readonly { readonly percent: number }[] | null | undefined): number {
	return (entries ?? []).reduce((sum, entry) => sum + entry.percent, 0);
}

/** A parsed call of mev_sendBundle. */
export type ShareBundle = z.output<typeof shareBundle>;

/**
 * The parameter of mev_sendBundle, v0.1.
 * https://github.com/flashbots/mev-share/blob/main/specs/bundles/v0.1.md
 */
export const shareBundle = bundleObject(
	{
		version: z.literal("v0.1", { error: "expected v0.1" }),
		inclusion,
		body: boundedList(
			bodyEntry,
			MAX_BUNDLE_TRANSACTIONS,
			`1 to ${MAX_BUNDLE_TRANSACTIONS} entries {tx, canRevert}, or {hash} and one of them behind it`,
		),
		validity: validity.nullish(),
		privacy: bundleObject(
			{
				hints: boundedList(
					z.enum(HINTS, { error: `expected ${HINT_NAMES}` }),
					MAX_NAMES,
					HINT_NAMES,
				).nullish(),
				builders: boundedList(
					z.string({ error: `expected ${BUILDER_NAMES}` }),
					MAX_NAMES,
					BUILDER_NAMES,
				).nullish(),
			},
			"expected {hints, builders}",
		).nullish(),
		metadata: bundleObject(
			{ originId: z.string({ error: "expected a text" }).nullish() },
			"expected {originId}",
		).nullish(),
		...timeFields,
		replacementUuid: uuid.nullish(),
	},
	BUNDLE,
).transform((bundle, context) => {
	const fault = faultOf(bundle.body, bundle.validity?.refund ?? []) ?? null;
	if (fault !== null) return invalid(context, fault);
	const builders = bundle.privacy?.builders ?? [];
	return {
		blocks: bundle.inclusion,
		times: timesOf(bundle, context),
		body: bundle.body,
		refund: bundle.validity?.refund ?? [],
		refundConfig: bundle.validity?.refundConfig ?? [],
		builders: builders.length === 0 ? null : builders,
		uuid: bundle.replacementUuid ?? null,
	};
});

/** The first fault of a body or of its refunds. */
function faultOf(
	body: readonly z.output<typeof bodyEntry>[],
	refund: readonly { readonly bodyIdx: number }[],
): Fault | null {
	if (body.length === 0) {
		return { path: ["body"], expected: `1 to ${MAX_BUNDLE_TRANSACTIONS} entries` };
	}
	const late = body.findIndex((entry, i) => i > 0 && entry.kind === "hash");
	if (late > 0) return { path: ["body", late], expected: "{tx, canRevert}: a hash may only be first" };
	if (body[0]?.kind === "hash" && body.length !== 2) {
		return { path: ["body"], expected: "exactly one {tx, canRevert} behind a hash" };
	}
	const wrong = refund.findIndex(({ bodyIdx: index }) => index >= body.length);
	if (wrong >= 0)
		return { path: ["validity", "refund", wrong, "bodyIdx"], expected: "the index of a body entry" };
	const again = refund.findIndex(({ bodyIdx: index }, i) =>
		refund.slice(0, i).some((one) => one.bodyIdx === index),
	);
	return again < 0
		? null
		: { path: ["validity", "refund", again, "bodyIdx"], expected: "each index at most once" };
}
