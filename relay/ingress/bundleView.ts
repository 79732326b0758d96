// What became of a bundle, as the one who sent it sees it: records come in, JSON values go out. Wei are decimal
// strings, times ISO 8601. It knows no owners: who may see a record is decided elsewhere.

import type { BundleBlockStatus, BundleRecord } from "../domain/bundleStatus.ts";

/** The answer of `GET /bundle/{hash}`. */
export function bundleView(record: BundleRecord): unknown {
	return {
		bundleHash: record.hash,
		target: record.target,
		receivedAt: isoTime(record.receivedAt),
		blocks: record.blocks.map(blockFields),
	};
}

/** What a subscriber is told of a bundle in one block. */
export function bundleBlockView(record: BundleRecord, status: BundleBlockStatus): unknown {
	return { bundleHash: record.hash, target: record.target, ...blockFields(status) };
}

function blockFields(status: BundleBlockStatus) {
	return {
		blockNumber: status.block,
		status: status.stage,
		reason: status.reason,
		bid: status.bid?.toString() ?? null,
		outbidBy: status.outbidBy?.toString() ?? null,
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
