// Gathers the data of the operator's page: this process's own view, and the state that only the
// core knows.

import { type Clock, inSlices, isoTime, type Timer, withDeadline } from "../shared/clock.ts";
import type { HistoryReport } from "../shared/history.ts";
import { RpcError } from "../shared/jsonrpc/errors.ts";
import type { Component } from "../shared/lifecycle.ts";
import type { RelayReport, RelayReports } from "./edge/relayReports.ts";
import type { CoreNeeds } from "./ingress/methodDependencies.ts";
import { core_history, core_report, core_state } from "./ingress/methods/betweenRelays.ts";
import type { CoreState, NodeState } from "./ingress/operators.ts";
import { OWN_CALL } from "./ingress/ownCall.ts";
import type { CoreModules, EdgeModules } from "./modules.ts";

/** A slower node is shown as not answering, in ms. */
const NODE_MS = 1_000;
/** A slower database is shown as not answering, in ms. */
const STORE_MS = 1_000;

/** The duration of the last write, for all of the core's life. */
export interface LastWrite {
	/** Null before the first. */
	ms: number | null;
}

/** How many records are in each stage. */
export class StageCounts {
	/** As they were counted last. */
	counts: Readonly<Record<string, number>> = {};
	readonly #records: CoreModules["transactions"]["records"];
	readonly #clock: Clock;

	constructor(records: CoreModules["transactions"]["records"], { clock }: { readonly clock: Clock }) {
		this.#records = records;
		this.#clock = clock;
	}

	/** Counts again. The records of a full pool take some ms. */
	async count(): Promise<Readonly<Record<string, number>>> {
		const counts: Record<string, number> = {};
		await inSlices(this.#records.entries(), this.#clock, ({ record: { stage } }) => {
			counts[stage] = (counts[stage] ?? 0) + 1;
		});
		this.counts = counts;
		return counts;
	}
}

type CoreStateModules = Pick<
	CoreModules,
	"kv" | "transactions" | "deliveries" | "fanout" | "market" | "abilities" | "edges"
>;

/** Returns a function that reads the state of the core. */
export function coreState({
	kv,
	transactions,
	deliveries,
	fanout,
	market,
	abilities,
	edges,
	stageCounts,
	relays,
	check,
	lastWrite,
	clock,
}: CoreStateModules & {
	readonly stageCounts: StageCounts;
	readonly relays: RelayReports;
	readonly check: CoreNeeds["check"];
	readonly lastWrite: LastWrite;
	readonly clock: Clock;
}): CoreNeeds["state"] {
	const { pool } = transactions;
	return async () => {
		const stages = await stageCounts.count();
		const oldest = pool.oldestReceivedAt();
		const ofStore = await inTime(clock, "store", STORE_MS, async () => check("store"));
		return {
			pool: {
				stages,
				pending: pool.size,
				oldestSeconds: oldest === null ? null : (clock.now() - oldest) / 1_000,
			},
			builders: fanout.states.map((one) => ({ ...one, last: deliveries.lastOf(one.name) })),
			simulation: abilities.report,
			store: {
				kind: kv.term === null ? "LMDB" : "PostgreSQL",
				trouble: ofStore?.ok === true ? null : (ofStore?.reason ?? "it does not answer"),
				bytes: await inTime(clock, "store", STORE_MS, () => kv.bytes()),
				writeMs: lastWrite.ms,
			},
			bids: market.bids.size,
			isBidding: market.isOpen,
			edges: edges?.size ?? 0,
			relays: relays.list(),
		};
	};
}

/** The node as this process sees it. */
export async function nodeState(
	{ node, tip, heads }: Pick<EdgeModules, "node" | "tip" | "heads">,
	clock: Clock,
): Promise<NodeState> {
	const begun = clock.monotonic();
	const asked = { method: "eth_blockNumber", params: [] };
	const answer = await inTime(clock, "node", NODE_MS, () => node.call(asked, NODE_MS));
	const ageMs = heads.times.ageMs();
	return {
		head: tip.head()?.number ?? null,
		headAgeSeconds: Number.isFinite(ageMs) ? ageMs / 1_000 : null,
		answerMs: answer === null ? null : clock.monotonic() - begun,
		clockDifferenceSeconds: heads.times.differenceMs() / 1_000,
	};
}

/** The core's state, wherever the core is; null if none answers. */
export async function askCoreState(core: EdgeModules["core"]): Promise<CoreState | null> {
	return (await askCore(core, core_state)) as CoreState | null;
}

/** The core's figures, wherever the core is; null if none answers. */
export async function askCoreHistory(core: EdgeModules["core"]): Promise<HistoryReport | null> {
	return (await askCore(core, core_history)) as HistoryReport | null;
}

async function askCore(
	core: EdgeModules["core"],
	method: typeof core_state | typeof core_history,
): Promise<unknown> {
	if (core.local === null && core.remote === null) return null;
	try {
		return await core.run(method, [], OWN_CALL);
	} catch (thrown) {
		if (thrown instanceof RpcError) return null;
		throw thrown;
	}
}

/** How often a relay reports to the core, in ms. */
const REPORT_MS = 5_000;

/**
 * Reports this relay to the core, which may be this relay. `own`: the report beside
 * its role.
 */
export function reportsToCore(
	own: () => Promise<Omit<RelayReport, "role" | "since">>,
	{ core, clock }: { readonly core: EdgeModules["core"]; readonly clock: Clock },
): Component {
	let role: RelayReport["role"] | null = null;
	let since = "";
	let timer: Timer | undefined;
	const report = async (): Promise<void> => {
		const now = core.local === null ? "edge" : "core";
		if (now !== role) since = isoTime(clock.now());
		role = now;
		if (core.local === null && core.remote === null) return;
		await core.run(core_report, [{ role, since, ...(await own()) }], OWN_CALL);
	};
	const next = (): void => {
		timer = clock.after(REPORT_MS, next);
		// A core that is away gets the next report.
		report().catch(() => {});
	};
	return {
		name: "reports",
		async start() {
			next();
		},
		async stop() {
			timer?.cancel();
		},
	};
}

/** The result of `ask`; null if it fails or takes longer than `ms`. */
async function inTime<T>(clock: Clock, what: string, ms: number, ask: () => Promise<T>): Promise<T | null> {
	try {
		return await withDeadline(clock, what, ms, ask);
	} catch {
		return null;
	}
}
