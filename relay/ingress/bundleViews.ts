// The sender's views of a bundle: `GET /bundle/{hash}`, news for subscribers, a row of the list,
// and figures by day. For other clients, `GET /bundle/{hash}` answers as for an unknown hash. Wei
// are decimal strings, times ISO 8601.

import { READ_SIGNATURE, type VerifySignature } from "../../shared/client.ts";
import { isoTime } from "../../shared/clock.ts";
import { dayOf, dayText } from "../../shared/days.ts";
import { parseHash } from "../../shared/ethereum/hex.ts";
import { type HttpAnswer, jsonAnswer } from "../../shared/http/messages.ts";
import type { Route, RouteRequest } from "../../shared/http/routes.ts";
import type { BundleBlockStatus, BundleRecord } from "../domain/bundleStatus.ts";
import type { DayFigures } from "../domain/searcherFigures.ts";
import type { SearcherMarket } from "../market/market.ts";
import { bundleReader } from "./bundleReaders.ts";
import type { VerifyRead } from "./readSignatures.ts";

export interface BundleRouteDependencies {
	readonly bundles: Pick<SearcherMarket, "bundle">;
	/**
	 * Verifies `X-Flashbots-Signature`, which signs the bundle's hash as lower-case hex, because a
	 * GET has no body.
	 */
	readonly verifySignature: VerifySignature;
	readonly verifyRead: VerifyRead;
}

const NOT_FOUND: HttpAnswer = jsonAnswer(404, {
	error: "the relay has received no bundle of yours with this hash",
});

export function bundleRoute({ bundles, verifySignature, verifyRead }: BundleRouteDependencies): Route {
	const handle = ({ params, headers, address }: RouteRequest): HttpAnswer => {
		const hash = parseHash(params.hash ?? "");
		if (hash === null) return jsonAnswer(400, { error: "expected a bundle hash of 32 bytes as 0x hex" });
		const header = headers["x-flashbots-signature"];
		const readSignature = headers[READ_SIGNATURE];
		let signer: string | null = null;
		if (header !== undefined && readSignature === undefined) {
			const check = verifySignature(String(header), hash);
			if (!check.ok) {
				const expected = "expected a signature over the bundle's hash as lower-case hex";
				return jsonAnswer(400, {
					error: `X-Flashbots-Signature does not verify: ${check.reason}: ${expected}`,
				});
			}
			signer = check.address;
		}
		const client = { address, signer, vouched: false, readSignature: readSignature && String(readSignature) };
		const reader = bundleReader({ transport: "http", client, origin: headers.origin ?? null }, verifyRead);
		if ("error" in reader) return jsonAnswer(401, reader);
		const record = bundles.bundle(reader, hash);
		return record === null ? NOT_FOUND : jsonAnswer(200, bundleView(record));
	};
	return { path: "/bundle/{hash}", handle };
}

/** The answer of `GET /bundle/{hash}`. */
export function bundleView(record: BundleRecord): unknown {
	return {
		bundleHash: record.hash,
		target: record.target,
		receivedAt: isoTime(record.receivedAt),
		blocks: record.blocks.map(blockFields),
	};
}

/** A bundle's status in one block, for subscribers. */
export function bundleBlockView(record: BundleRecord, status: BundleBlockStatus): unknown {
	return { bundleHash: record.hash, target: record.target, ...blockFields(status) };
}

/** A bundle in the last of its blocks so far, as a row of its owner's list. */
export function bundleRow(record: BundleRecord): unknown {
	const last = record.blocks.at(-1);
	return {
		bundleHash: record.hash,
		target: record.target,
		receivedAt: isoTime(record.receivedAt),
		...(last === undefined ? {} : stageFields(last)),
	};
}

/** One day of an owner's figures. */
export function dayView({ day, paid, lost, timed, feedMs, ...counts }: DayFigures): object {
	const feedToBidMs = timed === 0 ? null : Math.round(feedMs / timed);
	return { day: dayText(day), ...counts, paid: `${paid}`, lost, feedToBidMs };
}

/**
 * The owner's bundles in their blocks, the last block first, by day; `records` the newest first. At
 * most `most`.
 */
export function blockRows(records: readonly BundleRecord[], most: number): ReadonlyMap<number, object[]> {
	const rows = records.flatMap((record) => record.blocks.map((status) => ({ record, status })));
	const byDay = new Map<number, object[]>();
	for (const { record, status } of rows.sort((a, b) => b.status.block - a.status.block).slice(0, most)) {
		const { hash: bundleHash, target, feedMs: feedToBidMs } = record;
		const day = dayOf(status.since);
		const row = { bundleHash, target, ...stageFields(status), feedToBidMs };
		byDay.set(day, [...(byDay.get(day) ?? []), row]);
	}
	return byDay;
}

function blockFields(status: BundleBlockStatus) {
	return {
		...stageFields(status),
		builders: (status.isDisclosed ? status.deliveries : []).map(({ builder, kind, answer, ms, at }) => ({
			builder,
			kind,
			answer,
			ms,
			at: isoTime(at),
		})),
	};
}

/** The fields that are known without the builders' answers. */
function stageFields(status: BundleBlockStatus) {
	return {
		blockNumber: status.block,
		stage: status.stage,
		reason: status.reason,
		bid: status.bid?.toString() ?? null,
		paid: status.paid?.toString() ?? null,
		blockHash: status.blockHash,
		at: isoTime(status.at),
	};
}
