// Waits for the receipt of a transaction (EIP-7966). It asks again and again, since the holder may change meanwhile. Why there
// will be none soon only our relay can tell of its own: while that is out nothing is said of what may come.

import { pause } from "../../shared/clock.ts";
import { readQuantity } from "../../shared/ethereum/hex.ts";
import {
	failingSimulation,
	notSoon,
	type SyncCall,
	SyncWaits,
	WHY_NOT_SOON,
} from "../../shared/http/syncWaits.ts";
import { type Call, type RequestState, relayStages, stagesCall } from "../domain/request.ts";
import { isHolder, isLive, type Row } from "../domain/row.ts";
import type { ViewsDependencies } from "./statusView.ts";
import { isObject } from "./thirdParties.ts";

type SyncWaitDependencies = Pick<ViewsDependencies, "rows" | "upstreams" | "chain" | "clock">;

/** What somebody waits for. */
export interface SyncRequest extends SyncCall {
	/** Of the request that it came with. */
	readonly state: RequestState;
}

/** Each wait asks every second: fewer than the relay's own, which is told. */
const MAX_WAITS = 2_000;
/** How soon it is asked for the first time, how much later each time, and how late at most, in ms. */
const FIRST_MS = 250;
const GROWTH = 1.5;
const LATEST_MS = 1_000;
/** How long one question may take: who hangs shall not take the whole time. */
const QUESTION_MS = 3_000;

const STOPPING = "boost is shutting down, and the transaction is kept";

/** All waits of the process. Who comes when there is no room is told at once that the time is up. */
export function createSyncWaits(dependencies: SyncWaitDependencies): SyncWaits<SyncRequest> {
	return new SyncWaits(
		{ limits: { maxWaits: MAX_WAITS }, stopping: STOPPING },
		{ clock: dependencies.clock, find: (request, signal) => findReceipt(request, dependencies, signal) },
	);
}

/** Asks for the receipt, and every second time, not the first, why there is none: it has just come. */
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

const STAGES: Readonly<Record<string, string | undefined>> = WHY_NOT_SOON.ended;
/** Lower nonces of an account that are looked at; more than a pool takes of one sender. */
const MAX_BEFORE = 64;

/** The receipt of a transaction, of the relay while it is well, else of the chain; null where nobody has one in time. */
async function receiptOf(
	hash: string,
	{ caller }: RequestState,
	deadlineMs: number,
	{ upstreams, chain }: SyncWaitDependencies,
): Promise<unknown> {
	const { relay } = upstreams;
	const call = { method: "eth_getTransactionReceipt", params: [hash] };
	const told = relay.breaker.isUnavailable ? null : await relay.call(call, { deadlineMs, caller });
	const answer = told?.ok === true ? told : ((await chain.batch([call], deadlineMs)) ?? [])[0];
	return answer?.ok === true && isObject(answer.result) ? answer.result : null;
}

/** Why a transaction can't be mined soon, in words for {@link notSoon}; null where it can, and where nobody can tell in time. */
async function whyNotSoon(
	hash: string,
	deadlineMs: number,
	dependencies: SyncWaitDependencies,
): Promise<string | null> {
	const { relay } = dependencies.upstreams;
	const row = dependencies.rows.get(hash);
	if (row !== null && !isLive(row)) return STAGES[row.desired.toUpperCase()] ?? null;
	// Another holder may mine what the relay can't.
	if ((row !== null && isHolder(row.at.fallback)) || relay.breaker.isUnavailable) return null;
	const page = await relay.statusPage(hash, { deadlineMs, caller: null });
	if (!isObject(page) || typeof page.stage !== "string") return null;
	if (page.stage === "QUEUED") return row === null ? null : whyQueued(row, deadlineMs, dependencies);
	if (page.stage !== "SIMULATION_FAILED") return STAGES[page.stage] ?? null;
	const error = page.simulationError;
	// The relay's node could not tell: it is asked again.
	if (!isObject(error) || error.code === "NODE_UNAVAILABLE") return null;
	return failingSimulation(String(error.message));
}

/** The relay's stage does not say what it waits for: a nonce that nobody has, or one that is held. */
async function whyQueued(
	{ from, nonce }: Row,
	deadlineMs: number,
	{ rows, upstreams }: SyncWaitDependencies,
): Promise<string | null> {
	const { relay } = upstreams;
	const before = rows.of(from).filter((row) => row.nonce < nonce);
	// It comes when that one is mined there.
	if (before.some(({ at }) => !isHolder(at.relay))) return null;
	const hashes = before.slice(-MAX_BEFORE).map(({ hash }) => hash);
	const calls: Call[] = [{ method: "eth_getTransactionCount", params: [from, "pending"] }];
	if (hashes.length > 0) calls.push(stagesCall(hashes));
	const [count, answer] = (await relay.batch(calls, { deadlineMs, caller: null })) ?? [];
	const next = count?.ok === true ? readQuantity(count.result) : null;
	if (next !== null && next < nonce) return WHY_NOT_SOON.nonceGap;
	const isHeld = relayStages(answer)?.some(({ stage }) => stage === "SIMULATION_FAILED") === true;
	return isHeld ? WHY_NOT_SOON.behindHeld : null;
}
