// The gauges of the relay, read when its metrics are requested. metrics.ts has the counters.

import type { Clock } from "../shared/clock.ts";
import { labelSets, type Metrics } from "../shared/metrics.ts";
import { FULLNESS_OF } from "../shared/shares/shares.ts";
import type { CoreFinder } from "./edge/coreFinder.ts";
import type { CoreModules, EdgeModules } from "./modules.ts";

/**
 * Registers the gauges of every relay. `finder` is null if no other relay can reach the store.
 * `coreOf` returns the core's modules while this process is the core.
 */
export function registerEdgeGauges(
	modules: EdgeModules,
	finder: CoreFinder | null,
	coreOf: () => CoreModules | null,
): void {
	const { registry, tip, heads, subscriptions, core } = modules;
	registry.gauge("relay_head_number", "The last processed block", () => tip.head()?.number ?? -1);
	registry.gauge("relay_head_age_seconds", "Age of the head", () => heads.times.ageMs() / 1000);
	registry.gauge(
		"relay_clock_difference_seconds",
		"How far this machine's clock is ahead of the chain's, 0 if they agree within seconds",
		() => heads.times.differenceMs() / 1000,
	);
	registry.gauge(
		"relay_subscriptions",
		"Subscriptions of websocket clients, and the feed's event streams",
		() => subscriptions.size,
	);
	registry.gauge("relay_is_core", "1 while this relay is the core and its lease is certain, else 0", () =>
		core.local !== null && coreOf()?.kv.isHeld === true ? 1 : 0,
	);
	registry.gauge(
		"relay_term",
		"The core's term, 0 if the store is no database or no core is known",
		() => core.term ?? 0,
	);
	registry.gauge(
		"relay_core_age_seconds",
		"Time since the core's last message, 0 if this relay is the core, -1 if there was none",
		() => {
			const ms = core.local === null ? (finder?.awayMs ?? 0) : 0;
			return Number.isFinite(ms) ? ms / 1000 : -1;
		},
	);
}

/** Registers the gauges of the core. */
export function registerCoreGauges(registry: Metrics, modules: CoreModules, clock: Clock): void {
	const { damaged, transactions, fanout, market, edges } = modules;
	const { pool, records } = transactions;
	registry.gauge(
		"relay_store_damaged_entries",
		"Damaged entries of the store that were skipped at the start",
		() => damaged.count,
	);
	const ageMs = () => clock.now() - (pool.oldestReceivedAt() ?? clock.now());
	registry.gauge("relay_pending_transactions", "Transactions in the pool", () => pool.size);
	registry.gauge(
		"relay_oldest_pending_seconds",
		"Age of the oldest transaction in the pool",
		() => ageMs() / 1000,
	);
	registry.gauge("relay_transaction_records", "Transactions not settled yet", () => records.size);
	registry.gauge("relay_lane_depth", "Deliveries waiting or in flight", () => fanout.depth);
	registry.gauges(
		"relay_lane_fullness",
		"Fill level of the fullest builder queue, 0 to 1: in total, and of the client with the most",
		labelSets({ of: FULLNESS_OF }),
		({ of }) => fanout.fullness[of === "all" ? "all" : "client"],
	);
	registry.gauge("relay_bids", "Live bids", () => market.bids.size);
	registry.gauge("relay_bidder_records", "Bidders' records at builders", () => market.ledger.size);
	registry.gauge(
		"relay_edges",
		"Relays that are connected with this one as the core",
		() => edges?.size ?? 0,
	);
}
