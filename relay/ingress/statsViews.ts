// `GET /stats`, `/stats.json` and `/stats/builders.json`: the public statistics, for everybody.
// They are of whole days that have been over for a day, and of final blocks. So they reveal nothing
// about a transaction that is pending or may still leave the chain, not even by two looks. Wei are
// decimal strings.

import type { Clock } from "../../shared/clock.ts";
import { dayText, shownDays } from "../../shared/days.ts";
import { type HttpAnswer, jsonAnswer, VARY_ACCEPT } from "../../shared/http/messages.ts";
import type { Route } from "../../shared/http/routes.ts";
import { SERVICE_PATH, serviceRoute } from "../../shared/http/serviceRoute.ts";
import type { Uptime } from "../../shared/uptime.ts";
import { earlierTime, type Tip } from "../domain/chain.ts";
import { type DayStats, WAIT_CLASSES } from "../domain/dayStats.ts";
import type { ConductTable } from "../transactions/conductTable.ts";
import type { PublicDay, StatsTable } from "../transactions/statsTable.ts";
import { conductShares } from "./builderConduct.ts";

export interface StatsRouteDependencies {
	readonly table: Pick<StatsTable, "days">;
	readonly conduct: Pick<ConductTable, "final">;
	readonly uptime: Pick<Uptime, "days">;
	readonly tip: Pick<Tip, "head">;
	readonly clock: Clock;
}

const BUILDERS_PATH = "/stats/builders.json";

/** The paths of {@link statsRoutes}. */
export const STATS_PATHS: readonly Pick<Route, "path">[] = [
	{ path: "/stats" },
	{ path: "/stats.json" },
	{ path: BUILDERS_PATH },
	{ path: SERVICE_PATH },
];

const NO_HEAD = jsonAnswer(503, { error: "no head yet, try again" }, { "retry-after": "1", ...VARY_ACCEPT });

/** The routes. Clients that request a page get it at `/stats`. */
export function statsRoutes(dependencies: StatsRouteDependencies): readonly Route[] {
	const { table, conduct, uptime, tip, clock } = dependencies;
	const ofDays = (view: (first: number, last: number) => unknown) => (): HttpAnswer => {
		const head = tip.head();
		if (head === null) return NO_HEAD;
		return jsonAnswer(200, view(...shownDays(earlierTime(clock.now(), head))), VARY_ACCEPT);
	};
	const days = ofDays((first, last) => table.days(first, last).map(dayView));
	const builders = ofDays((first, last) =>
		conductShares(conduct.final().filter(({ day }) => first <= day && day <= last)),
	);
	return [
		{ path: "/stats", handle: days },
		{ path: "/stats.json", handle: days },
		{ path: BUILDERS_PATH, handle: builders },
		serviceRoute(uptime, clock),
	];
}

/** A day; null is not known. */
function dayView({ day, totals, stats }: PublicDay) {
	return {
		day: dayText(day),
		transactions: totals?.transactions ?? null,
		refundedWei: totals && String(totals.refunded),
		broughtWei: stats && String(stats.brought),
		blocksUntilMined: stats && waitsView(stats),
		builders: stats && buildersView(stats),
		otherBuilders: stats?.others ?? null,
		unknownBuilders: stats?.unknown ?? null,
	};
}

/** Transactions by the class of their wait: `5` is 4 or 5 blocks. */
function waitsView({ waits }: DayStats): Readonly<Record<string, number>> {
	const named = WAIT_CLASSES.map((most, i) => [Number.isFinite(most) ? most : "more", waits[i] ?? 0]);
	return Object.fromEntries(named) as Record<string, number>;
}

/** Transactions by the builder of their block, the one with the most first. */
function buildersView({ builders }: DayStats) {
	return Object.entries(builders)
		.map(([builder, transactions]) => ({ builder, transactions }))
		.sort((a, b) => b.transactions - a.transactions || (a.builder < b.builder ? -1 : 1));
}
