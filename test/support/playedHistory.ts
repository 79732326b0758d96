// The figures of a day, as relay and boost would have them: their own metrics and figures, counted
// by a script, on a clock that is moved by hand.

import { boostFigures } from "../../boost-proxy/figures.ts";
import { boostMetrics } from "../../boost-proxy/metrics.ts";
import { coreFigures, edgeFigures } from "../../relay/figures.ts";
import { relayMetrics } from "../../relay/metrics.ts";
import { type Figure, History } from "../../shared/history.ts";
import type { OperatorHistory } from "../../shared/http/operatorData.ts";
import { Metrics } from "../../shared/metrics.ts";
import { ManualClock } from "./manualClock.ts";
import { SeededRandom } from "./seededRandom.ts";

type Figures = Readonly<Record<string, Figure>>;

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;
const BUILDERS = ["dev", "rude"] as const;
/** Minutes before the end in which the relay was down. */
const OUTAGE = { from: 25, to: 14 } as const;

/** The figures of a relay that is the core, up to `until` in ms since the epoch. */
export function playedRelay(until: number): Promise<OperatorHistory> {
	const metrics = new Metrics();
	const { submission, stage, blocks, bundle, refunded, delivery, deliverySeconds, built, step } =
		relayMetrics(metrics, BUILDERS);
	const random = new SeededRandom(7);
	let pending = 0;
	metrics.gauge("relay_subscriptions", "Subscriptions", () => 12 + (pending % 5));
	metrics.gauge("relay_head_age_seconds", "Age", () => 1 + (pending % 11));
	metrics.gauge("relay_edges", "Edges", () => 2);
	const simulated = metrics.histogram("relay_simulation_seconds", "Simulations", [{}]);
	const core = coreFigures(metrics, BUILDERS, (name) => (name === "BROADCAST" ? pending : pending >> 2));
	return play(until, { own: edgeFigures(metrics), core }, (minute) => {
		const count = busy(minute, random);
		pending = count + random.below(20);
		for (let i = 0; i < count; i++) {
			const isGood = !random.oneIn(9);
			submission({ path: "/fast", outcome: isGood ? "accepted" : "underpriced" } as Parameters<
				typeof submission
			>[0]);
			step({ step: "store" }, 0.001 + random.below(9) / 2_000);
			step({ step: "account" }, 0.002 + random.below(30) / 2_000);
			simulated({}, 0.01 + random.below(60) / 1_000);
			if (!isGood) continue;
			stage({ stage: random.oneIn(12) ? "EXPIRED" : random.oneIn(25) ? "REVERTED" : "INCLUDED" });
			blocks({}, 1 + (random.oneIn(3) ? random.below(5) : 0));
			bundle({ kind: "bid", outcome: random.oneIn(6) ? "failed" : "accepted" });
			if (random.oneIn(8)) refunded({}, random.below(1_000) / 1e5);
			for (const builder of BUILDERS) {
				const answer =
					builder === "rude" && random.oneIn(3) ? "rejected" : random.oneIn(40) ? "timeout" : "accepted";
				delivery({ builder, kind: "bundle", answer });
				deliverySeconds({ builder }, 0.005 + random.below(80) / 1_000);
			}
		}
		for (let i = 0; i < 4; i++) built({ builder: random.pick([...BUILDERS, "other"]) });
	});
}

/** The figures of boost before it, with an outage in the last hour. */
export function playedBoost(until: number): Promise<OperatorHistory> {
	const metrics = new Metrics();
	const { call, attempt, handover } = boostMetrics(metrics);
	const random = new SeededRandom(11);
	let depth = 0;
	metrics.gauge("boost_journal_depth", "Depth", () => depth);
	metrics.gauge("boost_websockets", "Websockets", () => 3 + (depth % 4));
	return play(until, { own: boostFigures(metrics), core: null }, (minute) => {
		const left = DAY_MINUTES - minute;
		const isOut = left <= OUTAGE.from && left > OUTAGE.to;
		const count = busy(minute, random);
		depth = isOut ? depth + 9 : 20 + random.below(15);
		for (let i = 0; i < count; i++) {
			const took = 0.004 + random.below(random.oneIn(40) ? 900 : 25) / 1_000;
			const upstream = isOut ? "fallback" : "relay";
			attempt({ upstream, kind: "submission", outcome: "answered", took: isOut ? took + 0.1 : took });
			call("eth_sendRawTransaction", random.oneIn(15) ? "rejected" : "ok", took + 0.002);
			if (isOut && random.oneIn(2)) handover({ to: "fallback", outcome: "acknowledged" });
		}
		if (left === OUTAGE.to) for (let i = 0; i < 90; i++) handover({ to: "relay", outcome: "acknowledged" });
	});
}

/** The breakers' changes that belong to {@link playedBoost}. */
export function playedChanges(until: number) {
	const at = (minutes: number) => new Date(until - minutes * MINUTE_MS).toISOString();
	return [
		{ at: at(OUTAGE.from), upstream: "relay", state: "open", reason: "silence" },
		{ at: at(OUTAGE.to + 2), upstream: "relay", state: "half-open", reason: "silence" },
		{ at: at(OUTAGE.to), upstream: "relay", state: "closed", reason: null },
	];
}

/** More by day than by night. */
function busy(minute: number, random: SeededRandom): number {
	return Math.round(22 - 16 * Math.cos((2 * Math.PI * minute) / DAY_MINUTES)) + random.below(8);
}

async function play(
	until: number,
	figures: { readonly own: Figures; readonly core: Figures | null },
	happens: (minute: number) => void,
): Promise<OperatorHistory> {
	const clock = new ManualClock(until - DAY_MINUTES * MINUTE_MS);
	const metrics = new Metrics();
	const delay = metrics.histogram("delay", "Delay", [{}]);
	let memory = 150;
	const ofProcess: Figures = {
		memory: { kind: "level", read: () => memory },
		delay: { kind: "times", quantiles: [0.5, 0.99], scale: 1_000, read: () => metrics.buckets("delay") },
	};
	const own = new History({ ...ofProcess, ...figures.own }, { clock });
	const core = figures.core === null ? null : new History(figures.core, { clock });
	await own.start();
	await core?.start();
	for (let minute = 0; minute < DAY_MINUTES; minute++) {
		happens(minute);
		memory = 150 + (minute % 97) / 2;
		for (let i = 0; i < 20; i++) delay({}, (i % 7) / 3_000);
		await clock.advance(MINUTE_MS);
	}
	return { own: own.report(), core: core?.report() ?? null };
}
