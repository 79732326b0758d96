// Answers `GET /tx/{hash}` from the relay, the journal, the fallback and the chain. It is an error
// only if none of them answers. Fields that boost cannot know (bids, refunds) stay blank.

import { type Clock, isoTime } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { RpcTransaction, SignatureHiding } from "../../shared/ethereum/rpcObjects.ts";
import { type StatusRecord, stageReport, unknownStatus } from "../../shared/ethereum/statusRecord.ts";
import { isObject } from "../../shared/jsonrpc/fields.ts";
import { keptQuery, NO_QUERY } from "../../shared/submissionQuery.ts";
import type { DeliveryState } from "../domain/deliveryState.ts";
import type { ChainReads, OtherBoosts, Upstreams } from "../domain/ports.ts";
import { onBehalfOf, type RoutingInfo, type UpstreamName } from "../domain/request.ts";
import { type Ending, isEndedByUser, isHolder, isLive, type Row } from "../domain/row.ts";
import type { Rows } from "../rows/rows.ts";
import { type Mined, minedOnChain, readFallbackPage } from "./thirdParties.ts";

export interface ViewsDependencies {
	readonly rows: Pick<Rows, "findIfReadable" | "has" | "live" | "liveOf" | "rawOf">;
	readonly others: OtherBoosts;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
	/** Receives the stages that the relay's answers contain. */
	readonly observer: { learn(hash: string, stage: string): void };
	readonly clock: Clock;
	readonly signatureHiding: SignatureHiding;
	/** Null until it is known. */
	readonly chainId: () => bigint | null;
}

/** HTTP status, JSON, and its source. */
export interface StatusAnswer {
	readonly status: 200 | 503;
	readonly body: StatusRecord | { readonly error: string };
	readonly by: UpstreamName | "journal" | "boost";
}

/**
 * Ms for each source. Sources are queried one after another; three fit into the time that clients
 * wait.
 */
const SOURCE_MS = 3_000;
const NO_ANSWER = "no relay available: no upstream that might know the transaction responds";

/**
 * `address`: the client's. Throws RpcError `unavailable` if the answer depends on the unknown state
 * of another instance.
 */
export async function readStatus(
	hash: string,
	address: string,
	routing: RoutingInfo | undefined,
	dependencies: ViewsDependencies,
): Promise<StatusAnswer> {
	const page = await relayPage(hash, address, routing, dependencies);
	const found = findAnywhere(hash, address, dependencies);
	// No row overrules a block, so a mined transaction has a page even if the rows are unreadable.
	const isMined = page?.stage !== undefined && page.status === "INCLUDED";
	const known = await (isMined ? found.catch(() => null) : found);
	// A transaction whose client got an error is observed, but not shown.
	const row = known !== null && (known.acknowledged || !isLive(known)) ? known : null;
	if (page?.stage !== undefined && !isOverruled(page, row)) {
		const theirs = row !== null && wasGiven(row) ? await fallbackRecord(hash, routing, dependencies) : null;
		return answer("relay", row === null || theirs === null ? page : completed(page, row, [theirs]));
	}
	if (row !== null) return ofRow(row, page, routing, dependencies);
	return page === null ? elsewhere(hash, routing, dependencies) : answer("relay", page);
}

/**
 * The row of a hash, whatever boost instance wrote it. `address`: the client's. Throws RpcError
 * `unavailable` if the state of another instance is unknown.
 */
export async function findAnywhere(
	hash: string,
	address: string,
	{ rows, others }: Pick<ViewsDependencies, "rows" | "others">,
): Promise<Row | null> {
	return others.isAlone ? rows.findIfReadable(hash) : others.find(hash, address);
}

/** The relay's record; null if it is unavailable or gave none. */
async function relayPage(
	hash: string,
	address: string,
	routing: RoutingInfo | undefined,
	{ upstreams, observer }: ViewsDependencies,
): Promise<StatusRecord | null> {
	const { relay } = upstreams;
	if (relay.breaker.isUnavailable) return null;
	const page = await relay.statusPage(hash, { ...options(routing), caller: onBehalfOf({ address }) });
	if (!isObject(page) || page.hash !== hash || typeof page.status !== "string") return null;
	// Our own relay's record is shown unchanged.
	const record = page as unknown as StatusRecord;
	if (record.stage !== undefined) observer.learn(hash, record.stage);
	return record;
}

/**
 * Whether the row is newer than the relay's record. Either its user ended it while the relay was
 * unavailable, and the relay has not received the cancel yet. Or the relay has abandoned it but the
 * fallback still has it.
 */
function isOverruled(page: StatusRecord, row: Row | null): boolean {
	if (page.status === "INCLUDED" || row === null) return false;
	// A relay that has never had it does not watch whether it is mined all the same.
	if (isEndedByUser(row)) return wasGiven(row) || (page.stage !== "CANCELLED" && page.stage !== "REPLACED");
	const isAbandoned = page.stage === "EXPIRED" || page.stage === "DROPPED";
	return isAbandoned && isLive(row) && isHolder(row.at.fallback);
}

/** The fallback is not queried about transactions that it never got. */
function wasGiven({ at }: Row): boolean {
	return at.fallback.presence !== "absent";
}

/** The status of a transaction in the journal. It may have been mined even if its user ended it. */
async function ofRow(
	row: Row,
	page: StatusRecord | null,
	routing: RoutingInfo | undefined,
	dependencies: ViewsDependencies,
): Promise<StatusAnswer> {
	const [onChain, theirs] = await Promise.all([
		minedOnChain(dependencies.chain, row.hash, SOURCE_MS),
		wasGiven(row) ? fallbackRecord(row.hash, routing, dependencies) : null,
	]);
	const mined = onChain === undefined ? minedByPage(theirs) : onChain;
	if (mined) return answer("journal", completed(minedRecord(row.hash, mined, row), row, [page, theirs]));
	const isFailing = theirs?.status === "FAILED" && isHolder(row.at.fallback);
	const error = isFailing ? theirs.simulationError : null;
	const own = recordOf(row, dependencies.upstreams.relay.breaker.isUnavailable);
	const record: StatusRecord =
		isLive(row) && error !== null
			? { ...own, status: "FAILED", ...stageReport("SIMULATION_FAILED", { error }) }
			: own;
	return answer("journal", completed(record, row, [page, theirs]));
}

/** The block that a fallback's page reports; null if the page does not report it as mined. */
function minedByPage(page: StatusRecord | null): Mined | null {
	if (page?.status !== "INCLUDED") return null;
	return { transaction: null, reverted: page.stage === "REVERTED", blockNumber: page.blockNumber ?? null };
}

/**
 * Fills fields that the record lacks from a page that has them. That is the relay's page, or the
 * fallback's, which does not decide the stage.
 */
function completed(record: StatusRecord, row: Row, pages: readonly (StatusRecord | null)[]): StatusRecord {
	const shared = record.shared || pages.some((one) => one?.shared === true);
	// The blank record of the interface.
	if (record.status === "UNKNOWN") return { ...record, shared };
	const reports = [
		record,
		...pages.flatMap((one) => (one === null || one.status === "UNKNOWN" ? [] : [one])),
	];
	const { referrer, refundRecipient } = keptQuery(row.search) ?? NO_QUERY;
	const { from, nonce, fields } = row;
	const paid = reports.find(({ refund }) => refund > 0);
	return {
		...record,
		rpc_timestamp: record.rpc_timestamp ?? isoTime(row.receivedAt),
		transaction: { from, nonce: nonce.toString(), ...fields },
		fastMode: reports.some((one) => one.fastMode),
		shared,
		simulationError:
			record.status === "INCLUDED" ? record.simulationError : firstOf(reports, (one) => one.simulationError),
		backruns: Math.max(...reports.map((one) => one.backruns)),
		referrer: record.referrer ?? referrer ?? firstOf(reports, (one) => one.referrer),
		refundRecipient:
			record.refundRecipient ?? refundRecipient ?? firstOf(reports, (one) => one.refundRecipient),
		refund: paid?.refund ?? record.refund,
		...(paid?.refundWei === undefined ? {} : { refundWei: paid.refundWei }),
	};
}

function firstOf<T>(pages: readonly StatusRecord[], read: (page: StatusRecord) => T | null): T | null {
	return pages.map(read).find((value) => value !== null) ?? null;
}

/** The fallback's record; null if it has no page, or gave none. */
async function fallbackRecord(
	hash: string,
	routing: RoutingInfo | undefined,
	{ upstreams: { fallback } }: ViewsDependencies,
): Promise<StatusRecord | null> {
	const format = fallback?.dialect?.pages ?? null;
	if (fallback === null || format === null) return null;
	const page = await fallback.statusPage(hash, options(routing));
	return page === undefined || page === null ? null : readFallbackPage(format, page, hash);
}

/** The status of a transaction that neither the relay nor the journal knows. */
async function elsewhere(
	hash: string,
	routing: RoutingInfo | undefined,
	dependencies: ViewsDependencies,
): Promise<StatusAnswer> {
	const record = await fallbackRecord(hash, routing, dependencies);
	if (record !== null && (record.stage !== undefined || record.status !== "UNKNOWN")) {
		return answer("fallback", record);
	}
	const mined: Mined | null | undefined = await minedOnChain(dependencies.chain, hash, SOURCE_MS);
	if (mined) return answer("boost", minedRecord(hash, mined, null));
	if (record !== null) return answer("fallback", record);
	if (mined === null) return answer("boost", unknownStatus(hash));
	return { status: 503, body: { error: NO_ANSWER }, by: "boost" };
}

function options(routing: RoutingInfo | undefined) {
	return { deadlineMs: SOURCE_MS, caller: null, ...(routing === undefined ? {} : { routing }) };
}

function answer(by: StatusAnswer["by"], body: StatusRecord): StatusAnswer {
	return { status: 200, body, by };
}

const STAGES: Readonly<Record<Ending, string>> = {
	mined: "INCLUDED",
	replaced: "REPLACED",
	cancelled: "CANCELLED",
	expired: "EXPIRED",
	dropped: "DROPPED",
};

/** A row's own status: pending, or how it ended. */
function recordOf(row: Row, isRelayOut: boolean): StatusRecord {
	const { hash, path, desired } = row;
	const blank = { ...unknownStatus(hash), fastMode: path === "fast" };
	if (desired === "live") {
		const reason = isRelayOut ? {} : { reason: whyHeld(row.at.fallback) };
		return { ...blank, ...stageReport("HELD"), ...reason };
	}
	const status = desired === "mined" ? "INCLUDED" : "FAILED";
	const isBlind = desired === "expired" && isRelayOut;
	return { ...blank, status, ...stageReport(STAGES[desired]), ...(isBlind ? ASK_LATER : {}) };
}

/**
 * For an expired row while the relay is down: only the relay's record has the verdict of the
 * simulations.
 */
const ASK_LATER = {
	reason: "no block included it in time; the relay, which is down, may know why",
	nextStep: "look again when the relay is back, before you send it again",
};

/** Why a row has the stage HELD although the relay is up. */
function whyHeld(fallback: DeliveryState): string {
	if (!isHolder(fallback)) return "the relay reports nothing about it now: boost keeps it";
	return `another private relay ${fallback.presence === "has" ? "has" : "may have"} it`;
}

/** The status of a transaction in a block; `row`: its row, if any. */
function minedRecord(hash: string, mined: Mined, row: Row | null): StatusRecord {
	const blank = unknownStatus(hash);
	const { transaction, reverted, blockNumber } = mined;
	return {
		...blank,
		status: "INCLUDED",
		fastMode: row?.path === "fast",
		transaction: transaction === null ? blank.transaction : fieldsOf(transaction),
		...stageReport(reverted ? "REVERTED" : "INCLUDED", { blockNumber }),
	};
}

/** Converts a node's transaction object into the record's fields. */
function fieldsOf({ from, to, gas, nonce, value }: RpcTransaction): StatusRecord["transaction"] {
	const text = (field: unknown) => (typeof field === "string" ? field.toLowerCase() : "");
	const decimal = (field: unknown) => parseNodeQuantity(field)?.toString() ?? "";
	return {
		from: text(from),
		to: text(to),
		gas: decimal(gas),
		nonce: decimal(nonce),
		value: decimal(value),
	};
}
