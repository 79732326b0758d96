// Waits for the receipt of a transaction (EIP-7966). It polls, since the upstream that has the
// transaction may change. Only our relay knows why there will be no receipt soon, so a wait ends
// early only while the relay is available.

import { pause } from "../../shared/clock.ts";
import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import type { RpcCall } from "../../shared/jsonrpc/client.ts";
import { isObject } from "../../shared/jsonrpc/fields.ts";
import {
	failingSimulation,
	notSoon,
	type SyncCall,
	SyncWaits,
	WHY_NOT_SOON,
} from "../../shared/syncWaits.ts";
import { type RequestState, relayStages, stagesCall } from "../domain/request.ts";
import { isHolder, isLive, type Row } from "../domain/row.ts";
import type { ViewsDependencies } from "./statusView.ts";

type SyncWaitDependencies = Pick<ViewsDependencies, "rows" | "upstreams" | "chain" | "clock">;

/** A call that waits for a receipt. */
export interface SyncRequest extends SyncCall {
	/** The state of its request. */
	readonly state: RequestState;
}

/**
 * The maximum number of waits. Each polls every second, so there are fewer than on the relay, where
 * events end a wait.
 */
const MAX_WAITS = 2_000;
/** The first polling interval, its growth, and the longest one, in ms. */
const FIRST_MS = 250;
const GROWTH = 1.5;
const LATEST_MS = 1_000;
/** Deadline of one request, in ms, so that a hanging request does not use up the whole wait. */
const QUESTION_MS = 3_000;

const STOPPING = "boost is shutting down, and the transaction is kept";

/** All waits of the process. Beyond the limit, a call gets a time-out at once. */
export function createSyncWaits(dependencies: SyncWaitDependencies): SyncWaits<SyncRequest> {
	return new SyncWaits(
		{ limits: { maxWaits: MAX_WAITS }, stopping: STOPPING },
		{ clock: dependencies.clock, find: (request, signal) => findReceipt(request, dependencies, signal) },
	);
}

/** Polls for the receipt, and every second time also for the reason why there is none. */
async function findReceipt(
	{ hash, state, until }: SyncRequest,
	dependencies: SyncWaitDependencies,
	signal: AbortSignal,
): Promise<unknown> {
	const { clock } = dependencies;
	const questionMs = () => Math.max(1, Math.min(QUESTION_MS, until - clock.monotonic()));
	let delayMs = FIRST_MS;
	for (let asked = 1; ; asked += 1) {
		await pause(clock, delayMs, signal);
		if (signal.aborted) return null;
		delayMs = Math.min(delayMs * GROWTH, LATEST_MS);
		const receipt = await receiptOf(hash, state, questionMs(), dependencies);
		if (receipt !== null) return receipt;
		if (signal.aborted || asked % 2 === 1) continue;
		const why = await whyNotSoon(hash, questionMs(), dependencies);
		if (why !== null) throw notSoon(hash, why);
	}
}

/** Why there will be no receipt, by the stage of a transaction that has ended. */
const WHY_ENDED: Readonly<Record<string, string | undefined>> = WHY_NOT_SOON.ended;
/**
 * The maximum number of an account's lower nonces to check: as many as the relay accepts from one
 * sender.
 */
const MAX_BEFORE = 64;

/**
 * The receipt, from the relay while it is available, else from the chain; null if there is none in
 * time.
 */
async function receiptOf(
	hash: string,
	{ caller }: RequestState,
	deadlineMs: number,
	{ upstreams, chain }: SyncWaitDependencies,
): Promise<unknown> {
	const { relay } = upstreams;
	const call = { method: "eth_getTransactionReceipt", params: [hash] };
	const ofRelay = relay.breaker.isUnavailable ? null : await relay.call(call, { deadlineMs, caller });
	const answer = ofRelay?.ok === true ? ofRelay : ((await chain.batch([call], deadlineMs)) ?? [])[0];
	return answer?.ok === true && isObject(answer.result) ? answer.result : null;
}

/**
 * Why a transaction can't be mined soon, for {@link notSoon}; null if it can, or if the reason is
 * not known in time.
 */
async function whyNotSoon(
	hash: string,
	deadlineMs: number,
	dependencies: SyncWaitDependencies,
): Promise<string | null> {
	const { relay } = dependencies.upstreams;
	const row = await dependencies.rows.findIfReadable(hash);
	if (row !== null && !isLive(row)) return WHY_ENDED[row.desired.toUpperCase()] ?? null;
	// The fallback may get it mined even if the relay can't.
	if ((row !== null && isHolder(row.at.fallback)) || relay.breaker.isUnavailable) return null;
	const page = await relay.statusPage(hash, { deadlineMs, caller: null });
	if (!isObject(page) || typeof page.stage !== "string") return null;
	if (page.stage === "QUEUED") return row === null ? null : whyQueued(row, deadlineMs, dependencies);
	// It waits for a fee to fall.
	if (page.stage === "PENDING" && typeof page.reason === "string") return failingSimulation(page.reason);
	if (page.stage !== "SIMULATION_FAILED") return WHY_ENDED[page.stage] ?? null;
	const error = page.simulationError;
	// The relay's node did not answer, so the simulation is not known to fail.
	if (!isObject(error) || error.code === "NODE_UNAVAILABLE") return null;
	return failingSimulation(String(error.message));
}

/**
 * Why it is queued, which the relay's stage does not show. An earlier nonce is missing, or is not
 * sent because its simulation fails.
 */
async function whyQueued(
	{ from, nonce }: Row,
	deadlineMs: number,
	{ rows, upstreams }: SyncWaitDependencies,
): Promise<string | null> {
	const { relay } = upstreams;
	const before = rows.liveOf(from).filter((row) => row.nonce < nonce);
	// An earlier nonce is at the fallback and may be mined there.
	if (before.some(({ at }) => !isHolder(at.relay))) return null;
	const hashes = before.slice(-MAX_BEFORE).map(({ hash }) => hash);
	const calls: RpcCall[] = [{ method: "eth_getTransactionCount", params: [from, "pending"] }];
	if (hashes.length > 0) calls.push(stagesCall(hashes));
	const [count, answer] = (await relay.batch(calls, { deadlineMs, caller: null })) ?? [];
	const next = count?.ok === true ? parseNodeQuantity(count.result) : null;
	if (next !== null && next < nonce) return WHY_NOT_SOON.nonceGap;
	const isHeld = relayStages(answer)?.some((one) => one.isHeld) === true;
	return isHeld ? WHY_NOT_SOON.behindHeld : null;
}
