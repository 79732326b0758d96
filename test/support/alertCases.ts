// For each alert of docs/monitoring/alerts.yml series that fire it, as promtool's unit tests write
// them: a minute lies between two values.
// https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/

export interface AlertCase {
	readonly series: Readonly<Record<string, string>>;
	/** A minute at which it does not fire yet, and one at which it does. */
	readonly quiet: number;
	readonly fires: number;
	/** Those of the alert beside its name and severity. */
	readonly labels?: Readonly<Record<string, string>>;
}

const [RELAY, BOOST] = ["a:8080", "b:8081"];

export const ALERT_CASES: Readonly<Record<string, AlertCase>> = {
	LeewardProcessDown: {
		series: {
			[`up{job="relay",instance="${RELAY}"}`]: "1 0x10",
			[`up{job="boost",instance="${BOOST}"}`]: "1x10",
		},
		quiet: 1,
		fires: 2,
		labels: { job: "relay", instance: RELAY },
	},
	RelayOut: {
		series: { [`boost_breaker_state{upstream="relay",state="closed",instance="${BOOST}"}`]: "1 0x10" },
		quiet: 1,
		fires: 2,
		labels: { upstream: "relay", state: "closed", instance: BOOST },
	},
	FallbackOut: {
		series: {
			[`boost_breaker_state{upstream="fallback",state="open",instance="${BOOST}"}`]: "0 1 0x2 1x20",
			[`boost_breaker_state{upstream="fallback",state="half-open",instance="${BOOST}"}`]: "0 0 1x2 0x20",
			'boost_breaker_state{upstream="fallback",state="open",instance="without"}': "0x20",
		},
		quiet: 10,
		fires: 11,
		labels: { instance: BOOST },
	},
	NoCore: {
		series: {
			[`relay_is_core{instance="${RELAY}"}`]: "1 1 0x10",
			'relay_is_core{instance="c:8080"}': "0 0 0x10",
		},
		quiet: 1,
		fires: 3,
	},
	NoRelayAvailable: {
		series: { 'boost_submissions_total{outcome="unavailable"}': "0 0 1+1x10" },
		quiet: 1,
		fires: 3,
	},
	JournalNotDurable: {
		series: { [`boost_journal_durable{instance="${BOOST}"}`]: "1 0x10" },
		quiet: 1,
		fires: 2,
		labels: { instance: BOOST },
	},
	HeadStale: {
		series: { [`relay_head_age_seconds{instance="${RELAY}"}`]: "60 61x10" },
		quiet: 1,
		fires: 2,
		labels: { instance: RELAY },
	},
	BuilderNotAccepting: {
		series: {
			'relay_deliveries_total{builder="x",kind="bundle",answer="accepted"}': "5x30",
			'relay_deliveries_total{builder="x",kind="bundle",answer="rejected"}': "0+1x30",
			'relay_deliveries_total{builder="y",kind="bundle",answer="accepted"}': "0+1x30",
		},
		quiet: 9,
		fires: 12,
		labels: { builder: "x" },
	},
	TransactionsStuck: {
		series: { relay_oldest_pending_seconds: "900 901x10" },
		quiet: 5,
		fires: 6,
	},
	QueuesFilling: {
		series: {
			'relay_lane_fullness{of="all"}': "0.1x20",
			'boost_journal_fullness{of="client"}': "0.8 0.81x20",
		},
		quiet: 5,
		fires: 6,
	},
	EdgeAlone: {
		series: { [`relay_core_age_seconds{instance="${RELAY}"}`]: "15 -1 16x10" },
		quiet: 1,
		fires: 2,
		labels: { instance: RELAY },
	},
	TermsChange: {
		series: { relay_term: "1 2 3 4 5 6 7x10" },
		quiet: 5,
		fires: 7,
	},
	SlowReads: {
		series: {
			'boost_request_seconds_bucket{kind="read",le="1"}': "0+98x30",
			'boost_request_seconds_bucket{kind="read",le="2.5"}': "0+98x30",
			'boost_request_seconds_bucket{kind="read",le="5"}': "0+100x30",
			'boost_request_seconds_bucket{kind="read",le="+Inf"}': "0+100x30",
		},
		quiet: 9,
		fires: 12,
	},
	SeenInPublic: {
		series: { 'relay_seen_in_public_total{of="transaction"}': "0 0 1x10" },
		quiet: 1,
		fires: 2,
		labels: { of: "transaction" },
	},
	OwnFaults: {
		series: { "relay_task_failures_total{}": "0 0 1x10" },
		quiet: 1,
		fires: 2,
	},
	MemoryHigh: {
		series: { [`process_resident_memory_bytes{job="boost",instance="${BOOST}"}`]: "1.5e9 1.6e9x20" },
		quiet: 10,
		fires: 11,
		labels: { job: "boost", instance: BOOST },
	},
};
