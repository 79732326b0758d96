// What became of a bundle, as JSON for the one who sent it. Wei are decimal strings, times ISO 8601. Who may see a record
// is decided elsewhere.

import type { BundleBlockStatus, BundleRecord, Standing } from "../domain/bundleStatus.ts";

/** The answer of `GET /bundle/{hash}`. */
export function bundleView(record: BundleRecord, standing: Standing | null): unknown {
	return {
		bundleHash: record.hash,
		target: record.target,
		receivedAt: isoTime(record.receivedAt),
		...standingFields(standing),
		blocks: record.blocks.map(blockFields),
	};
}

/** What a subscriber is told of a bundle in one block. */
export function bundleBlockView(
	record: BundleRecord,
	status: BundleBlockStatus,
	standing: Standing | null,
): unknown {
	return {
		...{ bundleHash: record.hash, target: record.target, ...standingFields(standing) },
		...blockFields(status),
	};
}

/** How its bidder stands: absent for one who stands as anybody. */
function standingFields(standing: Standing | null) {
	if (standing === null) return {};
	const { bar, behindUntil } = standing;
	const barred =
		bar === null ? null : { until: bar.until, bid: `${bar.bid}`, paid: `${bar.paid}`, block: bar.block };
	return { barred, rankedBehindUntil: behindUntil };
}

/** Wei that the bid in the block really paid more than was bid here; null where that is not known, or none did. */
function outbidBy({ bid, winner }: BundleBlockStatus): bigint | null {
	const paid = winner?.paid ?? null;
	return bid === null || paid === null || paid < bid ? null : paid - bid;
}

function blockFields(status: BundleBlockStatus) {
	const { winner } = status;
	return {
		blockNumber: status.block,
		status: status.stage,
		reason: status.reason,
		bid: status.bid?.toString() ?? null,
		paid: status.paid?.toString() ?? null,
		winner: winner === null ? null : { backrun: winner.backrun, paid: winner.paid?.toString() ?? null },
		outbidBy: outbidBy(status)?.toString() ?? null,
		blockHash: status.blockHash,
		at: isoTime(status.at),
		builders: status.deliveries.map(({ builder, kind, answer, ms, at }) => ({
			builder,
			kind,
			answer,
			ms,
			at: isoTime(at),
		})),
	};
}

function isoTime(ms: number): string {
	return new Date(ms).toISOString();
}
