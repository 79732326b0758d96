// A client's view of its own bundles: their list, their figures by day, and both in the shapes of
// Flashbots' methods. bundleReaders.ts identifies the client: over HTTP by the signature of the
// request, else by the network address.

import { z } from "zod";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { exactObject, hash, quantity } from "../../../shared/jsonrpc/method.ts";
import { type BundleReader, isKeys } from "../../domain/bundleStatus.ts";
import { bundleReader } from "../bundleReaders.ts";
import type { OwnerContext } from "../bundleRequests.ts";
import { blockRows, bundleRow, dayView } from "../bundleViews.ts";
import { bundleStats, bundleStatsV2, userFigures, userStats, userStatsV2 } from "../flashbotsStats.ts";
import { type CoreNeeds, coreMethod } from "../methodDependencies.ts";

const MAX_BUNDLES = 500;
const MAX_DAYS = 1_000;

/** The parameter that limits the entries of a page. */
function limitOf(most: number, usual: number, least = 1) {
	const error = `expected a whole number from ${least} to ${most}`;
	return z.int({ error }).min(least, { error }).max(most, { error }).default(usual);
}

const PAGE = "expected {limit, before}";
const DAYS = "expected {limit, byBlock}";
/** Bundles in their blocks, in all days of one answer. */
const MAX_ROWS = 500;

const wei = z.string().describe("wei as decimal text");
const time = z.string().describe("ISO 8601");

/** Fields of a bundle in one of its blocks. */
const inBlock = {
	blockNumber: z.number(),
	stage: z.string(),
	reason: z.string().nullable(),
	bid: wei.nullable(),
	paid: wei.nullable(),
	blockHash: z.string().nullable(),
	at: time,
};
const target = z.string().nullable().describe("null for a plain bundle");
const feedToBidMs = z.number().nullable().describe("from the disclosure of the target to the bid, in ms");

/**
 * The reader of the request. Throws RpcError for a bad signature, and for an unsigned client of a
 * proxy, whose address all its clients may share.
 */
function readerHere(context: OwnerContext, { verifyRead }: Pick<CoreNeeds, "verifyRead">): BundleReader {
	const reader = bundleReader(context, verifyRead);
	if ("error" in reader) throw new RpcError("invalidRequest", `invalid request: ${reader.error}`);
	if (isKeys(reader.owner) || context.client.isProxy !== true) return reader;
	throw new RpcError(
		"invalidRequest",
		"invalid request: expected a signed request over HTTP (X-Leeward-Signature): the address of an unknown proxy does not identify you",
	);
}

export const service_bundles = coreMethod({
	name: "service_bundles",
	summary: "Your bundles, newest first, with the outcome and payment of each in the latest of its blocks.",
	params: [
		{
			name: "page",
			schema: exactObject({ limit: limitOf(MAX_BUNDLES, 100), before: hash.optional() }, PAGE)
				.optional()
				.describe("before: the bundleHash of the last one of the page before"),
		},
	],
	result: z.array(
		z.object({
			bundleHash: z.string(),
			target,
			receivedAt: time,
			...inBlock,
		}),
	),
	weight: 10,
	handle([page], context, needs) {
		const { limit, before } = page ?? { limit: 100 };
		const found = needs.bundles.bundles(readerHere(context, needs), limit, before ?? null);
		if (found === null) {
			throw new RpcError(
				"invalidParams",
				"invalid params: page.before: expected the hash of one of your bundles that the relay still has",
			);
		}
		return found.map(bundleRow);
	},
});

export const service_searcherStats = coreMethod({
	name: "service_searcherStats",
	summary:
		"Your bundles by day: how many were sent to builders and landed, the amounts that they paid, and why the others did not land.",
	params: [
		{
			name: "page",
			schema: exactObject({ limit: limitOf(MAX_DAYS, 31), byBlock: limitOf(MAX_ROWS, 0, 0) }, DAYS)
				.optional()
				.describe("limit: how many days at most; byBlock: how many bundles in their blocks"),
		},
	],
	result: z
		.array(
			z.object({
				day: z.string().describe("2026-01-31, UTC"),
				bids: z.number().describe("once for each block"),
				bundles: z.number().describe("plain ones, once for each block"),
				places: z.number().describe("those that builders had, as far as reported"),
				landed: z.number(),
				withdrawn: z.number().describe("replaced or cancelled by you"),
				paid: wei,
				lost: z.record(z.string(), z.number()).describe("how many by stage, or by reason where there is one"),
				feedToBidMs: feedToBidMs.describe("mean, of the bids of which it is known"),
				byBlock: z
					.array(z.object({ bundleHash: z.string(), target, ...inBlock, feedToBidMs }))
					.optional()
					.describe("if asked for: those that the relay still has, the last block first"),
			}),
		)
		.describe("days with bundles, the last one first"),
	weight: 10,
	handle([page], context, needs) {
		const { limit, byBlock } = page ?? { limit: 31, byBlock: 0 };
		const reader = readerHere(context, needs);
		const days = needs.bundles.figuresOf(reader).slice(0, limit);
		if (byBlock === 0) return days.map(dayView);
		const rows = blockRows(needs.bundles.bundles(reader, MAX_ROWS, null) ?? [], byBlock);
		return days.map((one) => ({ ...dayView(one), byBlock: rows.get(one.day) ?? [] }));
	},
});

/** The parameter as libraries send it. */
const bundleInBlock = exactObject(
	{ bundleHash: hash, blockNumber: quantity },
	"expected {bundleHash, blockNumber}",
);
/**
 * Flashbots wants a late one, against replays. One version of one library sends the number alone.
 */
const lateBlock = z
	.union([exactObject({ blockNumber: quantity }), quantity], {
		error: "expected {blockNumber} or nothing",
	})
	.optional()
	.describe("accepted, no effect");

const BUNDLE_PARAMS = [{ name: "bundle", schema: bundleInBlock }] as const;
const USER_PARAMS = [{ name: "block", schema: lateBlock }] as const;
const flag = z.boolean();
const isHighPriority = flag.describe(
	"whether you have a record at a builder: half of the slots go by record",
);
const unknown = z.literal("0").describe("not counted here");
const builders = z.array(z.object({ pubkey: z.literal("0x"), builder: z.string(), timestamp: time }));
const bothBundleFields = {
	isSimulated: flag,
	isHighPriority,
	simulatedAt: time.nullable().optional(),
	consideredByBuildersAt: builders.describe("builders that have accepted it, and when"),
	sealedByBuildersAt: z.array(z.never()).describe("always empty: not known here"),
};
const receivedAt = time
	.optional()
	.describe("absent: you sent no such bundle for that block, or the relay no longer has it");

type StatsNeeds = Pick<CoreNeeds, "bundles" | "verifyRead" | "clock">;

/** The reader's bundle, and whether its bidder has a record. */
function ownBundle(hash: string, context: OwnerContext, needs: StatsNeeds) {
	const record = needs.bundles.bundle(readerHere(context, needs), hash);
	const hasRecord = record !== null && record.bidder !== null && needs.bundles.hasRecord(record.bidder);
	return { record, hasRecord };
}

export const flashbots_getBundleStatsV2 = coreMethod({
	name: "flashbots_getBundleStatsV2",
	summary: "A bundle of yours in a block, in the shape of Flashbots' method.",
	params: BUNDLE_PARAMS,
	result: z.object({ ...bothBundleFields, receivedAt }),
	handle: ([{ bundleHash, blockNumber }], context, needs) => {
		const { record, hasRecord } = ownBundle(bundleHash, context, needs);
		return bundleStatsV2(record, Number(blockNumber), hasRecord);
	},
});

export const flashbots_getBundleStats = coreMethod({
	name: "flashbots_getBundleStats",
	summary: "The same in the older shape, with the builders as miners.",
	params: BUNDLE_PARAMS,
	result: z.object({
		...bothBundleFields,
		submittedAt: receivedAt,
		isSentToMiners: flag,
		sentToMinersAt: time.nullable().optional(),
	}),
	handle: ([{ bundleHash, blockNumber }], context, needs) => {
		const { record, hasRecord } = ownBundle(bundleHash, context, needs);
		return bundleStats(record, Number(blockNumber), hasRecord);
	},
});

function ownFigures(context: OwnerContext, needs: StatsNeeds) {
	const { bundles, clock } = needs;
	const reader = readerHere(context, needs);
	return userFigures(bundles.figuresOf(reader), bundles.hasOwnRecord(reader), clock.now());
}

export const flashbots_getUserStatsV2 = coreMethod({
	name: "flashbots_getUserStatsV2",
	summary: "The amounts that your bids paid, in the shape of Flashbots' method.",
	params: USER_PARAMS,
	result: z.object({
		isHighPriority,
		allTimeValidatorPayments: wei.describe("wei, of all days that service_searcherStats has"),
		allTimeGasSimulated: unknown,
		last7dValidatorPayments: wei.describe("wei, today and the six days before, UTC"),
		last7dGasSimulated: unknown,
		last1dValidatorPayments: wei.describe("wei, today, UTC"),
		last1dGasSimulated: unknown,
	}),
	handle: (_params, context, needs) => userStatsV2(ownFigures(context, needs)),
});

export const flashbots_getUserStats = coreMethod({
	name: "flashbots_getUserStats",
	summary: "The same in the older shape.",
	params: USER_PARAMS,
	result: z.object({
		is_high_priority: isHighPriority,
		all_time_miner_payments: wei,
		all_time_gas_simulated: unknown,
		last_7d_miner_payments: wei,
		last_7d_gas_simulated: unknown,
		last_1d_miner_payments: wei,
		last_1d_gas_simulated: unknown,
	}),
	handle: (_params, context, needs) => userStats(ownFigures(context, needs)),
});
