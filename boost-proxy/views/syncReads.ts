// What waits for receipts ask: a hash comes in, its receipt goes out, or why it can't be mined soon, as our relay tells it
// of its own. While the relay is out the chain alone speaks, and nothing is said of what may come.

import { readQuantity } from "../../shared/ethereum/hex.ts";
import { failingSimulation, WHY_NOT_SOON } from "../../shared/jsonrpc/sendSync.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { Call, ChainReads, Upstreams } from "../domain/ports.ts";
import { relayStages, stagesCall } from "../domain/relayStages.ts";
import { isObject } from "./chainFacts.ts";
import type { SyncWaitDependencies } from "./syncWait.ts";
import type { JournalReads } from "./views.ts";

export interface SyncReadsDependencies {
	readonly journal: JournalReads;
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
	const { journal, upstreams } = dependencies;
	const { relay } = upstreams;
	return async (hash, deadlineMs) => {
		const ended = journal.ended(hash);
		if (ended !== null) return STAGES[ended.ending.toUpperCase()] ?? null;
		const entry = journal.get(hash);
		// Another holder may mine what the relay can't.
		if (entry?.holders.some((holder) => holder !== relay.name) || relay.breaker.isOut) return null;
		const page = await relay.statusPage(hash, { deadlineMs, asker: null });
		if (!isObject(page) || typeof page.stage !== "string") return null;
		if (page.stage === "QUEUED") return entry === null ? null : whyQueued(entry, deadlineMs, dependencies);
		if (page.stage !== "SIMULATION_FAILED") return STAGES[page.stage] ?? null;
		const error = page.simulationError;
		// The relay's node could not tell: it is asked again.
		if (!isObject(error) || error.code === "NODE_UNAVAILABLE") return null;
		return failingSimulation(String(error.message));
	};
}

/** The relay's stage does not say what it waits for: a nonce that nobody has, or one that is held. */
async function whyQueued(
	{ from, nonce }: OpenEntry,
	deadlineMs: number,
	{ journal, upstreams }: SyncReadsDependencies,
): Promise<string | null> {
	const { relay } = upstreams;
	const before = journal.of(from).filter((entry) => entry.nonce < nonce);
	// It comes when that one is mined there.
	if (before.some(({ holders }) => !holders.includes(relay.name))) return null;
	const hashes = before.slice(-MAX_BEFORE).map(({ hash }) => hash);
	const calls: Call[] = [{ method: "eth_getTransactionCount", params: [from, "pending"] }];
	if (hashes.length > 0) calls.push(stagesCall(hashes));
	const [count, rows] = (await relay.batch(calls, { deadlineMs, asker: null })) ?? [];
	const next = count?.ok === true ? readQuantity(count.result) : null;
	if (next !== null && next < nonce) return WHY_NOT_SOON.nonceGap;
	const isHeld = relayStages(rows)?.some(({ stage }) => stage === "SIMULATION_FAILED") === true;
	return isHeld ? WHY_NOT_SOON.behindHeld : null;
}
