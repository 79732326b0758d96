// The routes for operators: /status, /admin/* with the data of the operator's page, and the checks
// of /readyz. A forced breaker stays forced until `/admin/auto`.

import { bearerCheck } from "../../shared/client.ts";
import type { Clock } from "../../shared/clock.ts";
import type { SlotLength } from "../../shared/ethereum/slots.ts";
import type { History } from "../../shared/history.ts";
import { ADMIN_WEIGHT, adminRoutes } from "../../shared/http/adminRoutes.ts";
import { type HttpAnswer, jsonAnswer } from "../../shared/http/messages.ts";
import { type OperatorState, operatorData } from "../../shared/http/operatorData.ts";
import type { checkRunner, ReadinessCheck } from "../../shared/http/opsRoutes.ts";
import type { Route, RouteRequest } from "../../shared/http/routes.ts";
import type { OtherInstance, SharedStore } from "../../shared/kv/port.ts";
import { PROBLEMS, problemElsewhere, problemsOf } from "../../shared/problems.ts";
import type { Build } from "../../shared/version.ts";
import type { Breaker, BreakerState, BreakerStatus, TripReason, Upstream } from "../domain/ports.ts";
import { BOOST_PATHS, type UpstreamName } from "../domain/request.ts";
import { holdersOf } from "../domain/row.ts";
import type { Rows } from "../rows/rows.ts";

export interface OperatorRoutesDependencies {
	readonly relay: Breaker;
	readonly fallback: Breaker | null;
	readonly rows: Rows;
	readonly homes: Instances | null;
	readonly slot: SlotLength;
	readonly build: Build;
	/** Figures over time. */
	readonly figures: Pick<History, "report">;
	/** Runs the checks of /readyz. */
	readonly runChecks: ReturnType<typeof checkRunner>;
	readonly clock: Clock;
}

/** A change of a breaker. */
interface BreakerChange {
	/** ISO 8601. */
	readonly at: string;
	readonly upstream: UpstreamName;
	readonly state: BreakerState;
	readonly reason: TripReason | null;
}

/** The most changes kept, in memory only. */
const MAX_CHANGES = 100;

/** The answer of `GET /status` to an operator. */
export interface BoostStatus {
	readonly relay: BreakerStatus;
	readonly fallback: BreakerStatus | null;
	/** The time between blocks as it is known now, in ms. */
	readonly slotMs: number;
	readonly journal: {
		/** Transactions that are not final. */
		readonly depth: number;
		/** Whether new transactions are stored: the last write succeeded and there is room. */
		readonly durable: boolean;
		/** How many of them each upstream has; a transaction at both counts for both. */
		readonly held: Readonly<Record<UpstreamName, number>>;
		/** The boost instances on this one's database; null without a database. */
		readonly instances: InstancesStatus | null;
	};
}

/** This boost instance among those on its database. */
export interface InstancesStatus {
	/** Its name, new with each start. */
	readonly own: string;
	/** How many there are, including this one. */
	readonly count: number;
	/** Accounts that it has taken over from instances that had ended or did not reach the relay. */
	readonly takenOver: number;
}

/** The answer of `GET /admin/state`. */
export interface BoostState extends OperatorState {
	readonly status: BoostStatus;
	/** The boost instances on its database; null without a database. */
	readonly instances: readonly OtherInstance[] | null;
	/** The breakers' changes, oldest first. */
	readonly history: readonly BreakerChange[];
}

/** All boost instances on a database. */
export interface Instances extends InstancesStatus {
	/** With their last reports; this one first. */
	readonly list: readonly OtherInstance[];
}

/**
 * The answer for everybody: states and reasons. Counts could be polled and compared with the
 * searchers' feed, which would reveal hidden transactions and their cancels.
 */
export interface PublicStatus {
	readonly relay: PublicBreakerStatus;
	readonly fallback: PublicBreakerStatus | null;
	readonly slotMs: number;
	readonly journal: Pick<BoostStatus["journal"], "durable">;
}

type PublicBreakerStatus = Omit<BreakerStatus, "inFlight" | "oldestInFlightMs">;

/** The checks whose notes report nothing wrong. */
const NAMES = ["instance"];
/** The forced state by path. */
const FORCES = { open: "open", close: "closed", auto: null } as const;

/**
 * `GET /status`, and with the token the routes of {@link operatorData} and `POST /admin/open`,
 * `/admin/close` and `/admin/auto`.
 */
export function operatorRoutes(
	/**
	 * Without an admin token the /admin paths do not exist. Either token makes /status show the
	 * counts.
	 */
	{
		adminToken,
		metricsToken,
	}: { readonly adminToken: string | undefined; readonly metricsToken: string | undefined },
	dependencies: OperatorRoutesDependencies,
): Route[] {
	const mayCount = [bearerCheck(adminToken), bearerCheck(metricsToken)];
	const historyOf = historyReader(dependencies);
	const { build, figures, runChecks } = dependencies;
	return [
		{
			path: "/status",
			weight: ADMIN_WEIGHT,
			handle({ headers: { authorization } }) {
				const isOperator = mayCount.some((check) => check?.(authorization) === true);
				return jsonAnswer(200, isOperator ? statusOf(dependencies) : publicStatusOf(dependencies));
			},
		},
		...adminRoutes("boost", adminToken, [
			...operatorData(
				{
					async state(): Promise<BoostState> {
						const instances = dependencies.homes?.list ?? null;
						const [, ...others] = instances ?? [];
						const problems = [
							...problemsOf(await runChecks(), NAMES),
							...others
								.filter(({ isSilent, reaches }) => !isSilent && !reaches)
								.map(({ name }) => problemElsewhere(PROBLEMS.otherUnreaching.text, name.slice(0, 8))),
						];
						return { ...build, problems, status: statusOf(dependencies), history: historyOf(), instances };
					},
					history: async () => ({ own: figures.report(), core: null }),
					sign: () => JSON.stringify(publicStatusOf(dependencies)),
				},
				dependencies,
			),
			...Object.entries(FORCES).map(([path, force]) => ({
				path: `/admin/${path}`,
				verb: "POST" as const,
				handle: (request: RouteRequest) => forceOne(request, force, dependencies),
			})),
		]),
	];
}

/** Records the breakers' changes. Returns a function that returns the last ones, oldest first. */
function historyReader({ relay, fallback }: OperatorRoutesDependencies): () => readonly BreakerChange[] {
	let history: readonly BreakerChange[] = [];
	for (const breaker of fallback === null ? [relay] : [relay, fallback]) {
		const { upstream } = breaker;
		breaker.onChange(() => {
			const { state, reason, since: at } = breaker.status();
			const last = history.findLast((change) => change.upstream === upstream);
			if (last?.state === state && last.reason === reason) return;
			history = [...history, { at, upstream, state, reason }].slice(-MAX_CHANGES);
		});
	}
	return () => history;
}

/**
 * Ready if at least one upstream accepts transactions: the relay, or a fallback that some path
 * allows.
 */
export function upstreamCheck({
	relay,
	fallback,
}: {
	readonly relay: Pick<Upstream, "breaker">;
	readonly fallback: Pick<Upstream, "breaker" | "whyUnfit"> | null;
}): ReadinessCheck {
	return {
		name: "upstream",
		check() {
			if (!relay.breaker.isUnavailable) {
				const isAlone = fallback?.breaker.isUnavailable === true;
				return isAlone ? { ok: true, note: PROBLEMS.fallbackDown.text } : { ok: true };
			}
			if (fallback === null) return { ok: false, reason: PROBLEMS.relayDownAlone.text };
			if (BOOST_PATHS.every((path) => fallback.whyUnfit({ path, search: "" }) !== null)) {
				return { ok: false, reason: PROBLEMS.relayDownUnfit.text };
			}
			if (fallback.breaker.isUnavailable) return { ok: false, reason: PROBLEMS.bothDown.text };
			const { relayForced, relayDown } = PROBLEMS;
			return { ok: true, note: (relay.breaker.status().reason === "forced" ? relayForced : relayDown).text };
		},
	};
}

/** Reports why the journal is in memory only. Boost still serves. */
export function journalCheck(
	store: Pick<SharedStore, "trouble">,
	rows: Pick<Rows, "isDurable" | "isFull">,
): ReadinessCheck {
	return {
		name: "journal",
		check() {
			if (store.trouble !== null) return { ok: true, note: store.trouble };
			return isDurable(rows) ? { ok: true } : { ok: true, note: PROBLEMS.journalInMemory.text };
		},
	};
}

/** Names the boost instance; it never fails. */
export function instanceCheck({ own }: InstancesStatus): ReadinessCheck {
	return { name: "instance", check: () => ({ ok: true, note: own }) };
}

function publicStatusOf({ relay, fallback, rows, slot }: OperatorRoutesDependencies): PublicStatus {
	return {
		relay: publicBreakerStatus(relay),
		fallback: fallback === null ? null : publicBreakerStatus(fallback),
		slotMs: slot.ms,
		journal: { durable: isDurable(rows) },
	};
}

function publicBreakerStatus(breaker: Breaker): PublicBreakerStatus {
	const { state, reason, hint, since, nextProbeAt } = breaker.status();
	return { state, reason, hint, since, nextProbeAt };
}

function isDurable(rows: Pick<Rows, "isDurable" | "isFull">): boolean {
	return rows.isDurable && !rows.isFull;
}

function statusOf({ relay, fallback, rows, slot, homes }: OperatorRoutesDependencies): BoostStatus {
	const held = { relay: 0, fallback: 0 };
	for (const row of rows.allLive()) for (const holder of holdersOf(row)) held[holder]++;
	return {
		relay: relay.status(),
		fallback: fallback?.status() ?? null,
		slotMs: slot.ms,
		journal: {
			depth: rows.liveCount,
			durable: isDurable(rows),
			held,
			instances: homes === null ? null : instancesOf(homes),
		},
	};
}

function instancesOf({ own, count, takenOver }: InstancesStatus): InstancesStatus {
	return { own, count, takenOver };
}

function forceOne(
	{ query }: RouteRequest,
	force: (typeof FORCES)[keyof typeof FORCES],
	{ relay, fallback }: OperatorRoutesDependencies,
): HttpAnswer {
	const [name = "relay", ...more] = query.getAll("upstream");
	const isKnown = more.length === 0 && [...query.keys()].every((key) => key === "upstream");
	if (!isKnown || (name !== "relay" && name !== "fallback")) {
		return jsonAnswer(400, {
			error: "expected upstream=relay or upstream=fallback, or nothing for the relay",
		});
	}
	const breaker = name === "relay" ? relay : fallback;
	if (breaker === null) return jsonAnswer(400, { error: "there is no fallback" });
	breaker.force(force);
	return jsonAnswer(200, { [name]: breaker.status() });
}
