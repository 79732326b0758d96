// What waits for receipts ask: the receipt, and why there will be none soon, which only our relay can tell of its own. While
// that is out the chain alone speaks, and nothing is said of what may come.

import { readQuantity } from "../../shared/ethereum/hex.ts";
import { failingSimulation, WHY_NOT_SOON } from "../../shared/jsonrpc/sendSync.ts";
import type { Call, ChainReads, RowReads, Upstreams } from "../domain/ports.ts";
import { relayStages, stagesCall } from "../domain/relayStages.ts";
import { isHolder, isLive, type Row } from "../domain/row.ts";
import { isObject } from "./chainFacts.ts";
import type { SyncWaitDependencies } from "./syncWait.ts";

export interface SyncReadsDependencies {
	readonly rows: RowReads;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
}

const STAGES: Readonly<Record<string, string | undefined>> = WHY_NOT_SOON.ended;
/** Lower nonces of an account that are looked at; more than a pool takes of one sender. */
const MAX_BEFORE = 64;

/** What waits ask. */
export function createSyncReads(dependencies: SyncReadsDependencies): Omit<SyncWaitDependencies, "clock"> {
	return { readReceipt: receiptReader(dependencies), whyNotSoon: notSoonReader(dependencies) };
}

/** The receipt of a transaction, of the relay while it is well, else of the chain. */
function receiptReader(dependencies: SyncReadsDependencies): SyncWaitDependencies["readReceipt"] {
	const { upstreams, chain } = dependencies;
	const { relay } = upstreams;
	return async (hash, { asker }, deadlineMs) => {
		const call = { method: "eth_getTransactionReceipt", params: [hash] };
		const told = relay.breaker.isOut ? null : await relay.call(call, { deadlineMs, asker });
		const answer = told?.ok === true ? told : ((await chain.batch([call], deadlineMs)) ?? [])[0];
		return answer?.ok === true && isObject(answer.result) ? answer.result : null;
	};
}

/** Why a transaction can't be mined soon; null where it can, and where nobody can tell. */
function notSoonReader(dependencies: SyncReadsDependencies): SyncWaitDependencies["whyNotSoon"] {
	const { rows, upstreams } = dependencies;
	const { relay } = upstreams;
	return async (hash, deadlineMs) => {
		const row = rows.get(hash);
		if (row !== null && !isLive(row)) return STAGES[row.desired.toUpperCase()] ?? null;
		// Another holder may mine what the relay can't.
		if ((row !== null && isHolder(row.at.fallback)) || relay.breaker.isOut) return null;
		const page = await relay.statusPage(hash, { deadlineMs, asker: null });
		if (!isObject(page) || typeof page.stage !== "string") return null;
		if (page.stage === "QUEUED") return row === null ? null : whyQueued(row, deadlineMs, dependencies);
		if (page.stage !== "SIMULATION_FAILED") return STAGES[page.stage] ?? null;
		const error = page.simulationError;
		// The relay's node could not tell: it is asked again.
		if (!isObject(error) || error.code === "NODE_UNAVAILABLE") return null;
		return failingSimulation(String(error.message));
	};
}

/** The relay's stage does not say what it waits for: a nonce that nobody has, or one that is held. */
async function whyQueued(
	{ from, nonce }: Row,
	deadlineMs: number,
	{ rows, upstreams }: SyncReadsDependencies,
): Promise<string | null> {
	const { relay } = upstreams;
	const before = rows.of(from).filter((row) => row.nonce < nonce);
	// It comes when that one is mined there.
	if (before.some(({ at }) => !isHolder(at.relay))) return null;
	const hashes = before.slice(-MAX_BEFORE).map(({ hash }) => hash);
	const calls: Call[] = [{ method: "eth_getTransactionCount", params: [from, "pending"] }];
	if (hashes.length > 0) calls.push(stagesCall(hashes));
	const [count, answer] = (await relay.batch(calls, { deadlineMs, asker: null })) ?? [];
	const next = count?.ok === true ? readQuantity(count.result) : null;
	if (next !== null && next < nonce) return WHY_NOT_SOON.nonceGap;
	const isHeld = relayStages(answer)?.some(({ stage }) => stage === "SIMULATION_FAILED") === true;
	return isHeld ? WHY_NOT_SOON.behindHeld : null;
}
