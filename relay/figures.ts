// The figures of the relay's charts: those of the core, and those of each process. All are read
// from its metrics.

import { LIVE_STAGES } from "../shared/ethereum/statusRecord.ts";
import type { Figure } from "../shared/history.ts";
import type { Metrics } from "../shared/metrics.ts";
import { OTHER_BUILDER } from "./metrics.ts";

type Figures = Readonly<Record<string, Figure>>;

/** Figures that every relay has. */
export function edgeFigures(metrics: Metrics): Figures {
	return {
		subscriptions: level(metrics, "relay_subscriptions"),
		"head age": level(metrics, "relay_head_age_seconds"),
	};
}

/** Figures of the core. `inStage` returns how many records are in a stage. */
export function coreFigures(
	metrics: Metrics,
	builders: readonly string[],
	inStage: (stage: string) => number,
): Figures {
	const submissions = (outcome: string) => metrics.sum("relay_submissions_total", { outcome }) ?? 0;
	const bids = (labels: object) => metrics.sum("relay_bundles_total", { kind: "bid", ...labels }) ?? 0;
	const sum = (read: () => number | null): Figure => ({ kind: "sum", read });
	const stages = (...names: readonly string[]): Figure =>
		sum(() => names.reduce((total, stage) => total + (metrics.sum("relay_stage_total", { stage }) ?? 0), 0));
	const step = (name: string) => times(metrics, "relay_step_seconds", { step: name }, [0.5, 0.99]);
	const figures: Record<string, Figure> = {
		accepted: sum(() => submissions("accepted")),
		rejected: sum(() => {
			const all = metrics.sum("relay_submissions_total") ?? 0;
			return all - submissions("accepted") - submissions("known") - submissions("cancels");
		}),
		mined: stages("INCLUDED"),
		reverted: stages("REVERTED"),
		"not mined": stages("EXPIRED", "DROPPED"),
		blocks: {
			...{ kind: "times", quantiles: [0.5, 0.9], isWhole: true },
			read: () => metrics.buckets("relay_inclusion_blocks"),
		},
		bids: sum(() => bids({ outcome: "accepted" })),
		"bids rejected": sum(() => bids({}) - bids({ outcome: "accepted" })),
		refunds: sum(() => metrics.sum("relay_refunded_ether_total")),
		account: step("account"),
		simulation: times(metrics, "relay_simulation_seconds", {}, [0.5, 0.99]),
		store: step("store"),
		edges: level(metrics, "relay_edges"),
	};
	for (const stage of LIVE_STAGES) figures[`stage ${stage}`] = { kind: "level", read: () => inStage(stage) };
	for (const builder of builders) {
		const answers = (...names: readonly string[]): Figure =>
			sum(() =>
				names.reduce(
					(total, answer) => total + (metrics.sum("relay_deliveries_total", { builder, answer }) ?? 0),
					0,
				),
			);
		figures[`${builder} accepted`] = answers("accepted");
		figures[`${builder} rejected`] = answers("rejected");
		figures[`${builder} failed`] = answers("failed", "timeout");
		figures[`${builder} time`] = times(metrics, "relay_delivery_seconds", { builder }, [0.5, 0.99]);
	}
	for (const builder of [...builders, OTHER_BUILDER])
		figures[`${builder} blocks`] = sum(() => metrics.sum("relay_blocks_with_ours_total", { builder }));
	return figures;
}

function level(metrics: Metrics, name: string): Figure {
	return { kind: "level", read: () => metrics.sum(name) };
}

/** In ms. */
function times(
	metrics: Metrics,
	name: string,
	labels: Readonly<Record<string, string>>,
	quantiles: readonly number[],
): Figure {
	return { kind: "times", quantiles, scale: 1_000, read: () => metrics.buckets(name, labels) };
}
