// Checks the alert rules and the dashboard against the metrics of relay and boost and the
// operators' guide, and the rules by Prometheus itself where promtool is installed. `npm run
// test:long -- --only alerts` fires each on real processes.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parser } from "@prometheus-io/lezer-promql";
import { parse } from "yaml";
import { BOOST_SETTINGS } from "../../../boost-proxy/config.ts";
import { boostMetrics, watchBoost } from "../../../boost-proxy/metrics.ts";
import { RELAY_SETTINGS } from "../../../relay/config.ts";
import { processMetrics } from "../../../shared/metrics.ts";
import { STATES } from "../../long/alerts.ts";
import { shortened } from "../../long/alertWorld.ts";
import { ALERT_CASES, type AlertCase } from "../../support/alertCases.ts";
import { filled, ROOT, snippet, textOf } from "../../support/documents.ts";
import { METRICS_TOKEN, metricsOf } from "../../support/relayClient.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";

interface Rule {
	readonly alert: string;
	readonly expr: string;
	readonly labels: { readonly severity: string };
	readonly annotations: { readonly summary: string };
}
interface Panel {
	readonly title: string;
	readonly targets?: readonly { readonly expr: string }[];
}

const { groups } = parse(textOf("docs/monitoring/alerts.yml")) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(textOf("docs/monitoring/dashboard.json")) as { panels: Panel[] };
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
	targets.map(({ expr }) => [title, expr] as const),
);

let system: TestSystem;
/** Existing series by name, with their labels and label values. */
let series: ReadonlyMap<string, ReadonlySet<string>>;
before(async () => {
	system = await startSystem();
	const boost = processMetrics("0.0.0");
	boostMetrics(boost);
	watchBoost(boost, {
		upstreams: { relay: { breaker: { state: "closed", status: () => ({ inFlight: 0 }) } }, fallback: null },
		rows: {
			liveCount: 0,
			isDurable: true,
			isFull: false,
			fullness: { all: 0, client: 0 },
			allLive: () => [],
		},
		...{ clock: Date, websockets: () => 0 },
	} as unknown as Parameters<typeof watchBoost>[1]);
	const text = `${await metricsOf(system.client.url)}\n${await boost.text()}`;
	const found = new Map<string, Set<string>>([["up", new Set(["job", "instance"])]]);
	for (const [, name = "", labels = ""] of text.matchAll(/^([a-z]\w*)(?:\{([^}]*)\})? /gm)) {
		const known = found.get(name) ?? new Set(["job", "instance"]);
		for (const [label] of labels.matchAll(/\w+(?==")/g)) known.add(label);
		for (const [label] of labels.matchAll(/\w+="[^"]*"/g)) known.add(label);
		found.set(name, known);
	}
	series = found;
});
after(() => system.stop());

/** Series, labels and label values of a query that don't exist, and syntax errors. */
function unknownIn(expr: string): readonly string[] {
	const unknown: string[] = [];
	parser.parse(expr).iterate({
		enter({ type, name, from, to }) {
			if (type.isError) unknown.push(`no PromQL at ${from}`);
			if (name !== "VectorSelector") return;
			const [, metric = "", matchers = ""] = /^(\w+)(?:\{(.*)\})?$/s.exec(expr.slice(from, to)) ?? [];
			const labels = series.get(metric);
			if (labels === undefined) unknown.push(metric);
			for (const [, label = "", operator = "", value = ""] of matchers.matchAll(/(\w+)(=~|!=|=)"([^"]*)"/g)) {
				if (labels?.has(label) !== true) unknown.push(`${metric}{${label}}`);
				else if (operator !== "=~" && !labels.has(`${label}="${value}"`))
					unknown.push(`${metric}{${label}="${value}"}`);
			}
		},
	});
	return unknown;
}

test("each query is valid PromQL with existing series and labels", () => {
	for (const { alert, expr } of rules) assert.deepEqual(unknownIn(expr), [], alert);
	for (const [title, expr] of queries) assert.deepEqual(unknownIn(expr), [], title);
	assert.ok(queries.length >= 20 && rules.length >= 10);
	// The check itself detects errors.
	assert.deepEqual(unknownIn("rate(relay_nothing_total[5m]) > 0"), ["relay_nothing_total"]);
	assert.deepEqual(unknownIn('boost_breaker_state{state="shut"}'), ['boost_breaker_state{state="shut"}']);
	assert.notDeepEqual(unknownIn("sum by (le (up)"), []);
});

const HAS_PROMTOOL = spawnSync("promtool", ["--version"]).error === undefined;
const skip = HAS_PROMTOOL ? false : "no promtool here";

function promtool(...args: readonly string[]) {
	return spawnSync("promtool", args, { cwd: join(ROOT, "docs/monitoring"), encoding: "utf8" });
}

test("Prometheus itself takes the rules", { skip }, () => {
	const { status, stdout, stderr } = promtool("check", "rules", "alerts.yml");
	assert.equal(status, 0, stderr);
	assert.match(stdout, new RegExp(`${rules.length} rules found`));
});

test("each alert fires when it should and not before, with its labels and words", { skip }, (t) => {
	assert.deepEqual(
		Object.keys(ALERT_CASES),
		rules.map(({ alert }) => alert),
	);
	const folder = mkdtempSync(join(tmpdir(), "leeward-alerts-"));
	t.after(() => rmSync(folder, { recursive: true }));
	const tests = rules.map(({ alert, labels, annotations }) => {
		const { series, quiet, fires, labels: own = {} } = ALERT_CASES[alert] as AlertCase;
		const summary = annotations.summary.replaceAll(
			/\{\{ \$labels\.(\w+) \}\}/g,
			(_, name: string) => own[name] ?? "",
		);
		const fired = { exp_labels: { ...labels, ...own }, exp_annotations: { summary } };
		return {
			interval: "1m",
			input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
			alert_rule_test: [
				{ eval_time: `${quiet}m`, alertname: alert, exp_alerts: [] },
				{ eval_time: `${fires}m`, alertname: alert, exp_alerts: [fired] },
			],
		};
	});
	const file = join(folder, "tests.json");
	const rule_files = [join(ROOT, "docs/monitoring/alerts.yml")];
	// JSON is YAML.
	writeFileSync(file, JSON.stringify({ rule_files, evaluation_interval: "30s", tests }));
	const { status, stdout, stderr } = promtool("test", "rules", file);
	assert.equal(status, 0, `${stdout}${stderr}`);
});

test("the long test fires each alert, and shortens rules that are there", () => {
	const fired = STATES.flatMap(({ alerts }) => alerts);
	assert.deepEqual([...fired].sort(), rules.map(({ alert }) => alert).sort());
	assert.doesNotThrow(() => shortened(textOf("docs/monitoring/alerts.yml")));
	assert.throws(() => shortened("groups: []"), /the rules have no/);
});

interface Scraping {
	readonly rule_files: readonly string[];
	readonly scrape_configs: readonly {
		readonly job_name: string;
		readonly authorization: { readonly credentials: string };
		readonly static_configs: readonly { readonly targets: readonly string[] }[];
	}[];
}

test("the scrape configuration has the rules' file, their jobs, ports and the token", async () => {
	const placeholder = ["<METRICS_TOKEN>", METRICS_TOKEN] as const;
	const text = filled(snippet("docs/operators.md", "rule_files:"), placeholder, placeholder);
	const { rule_files, scrape_configs } = parse(text) as Scraping;
	for (const file of rule_files) assert.ok(existsSync(join(ROOT, "docs/monitoring", file)), file);
	const asked = [...rules.map(({ expr }) => expr), ...queries.map(([, expr]) => expr)].flatMap((expr) =>
		[...expr.matchAll(/\bjob=~?"([^"]+)"/g)].flatMap(([, jobs = ""]) => jobs.split("|")),
	);
	assert.deepEqual([...new Set(asked)].sort(), scrape_configs.map(({ job_name }) => job_name).sort());
	const usual = { relay: RELAY_SETTINGS.PORT.default, boost: BOOST_SETTINGS.PORT.default };
	for (const { job_name, authorization, static_configs } of scrape_configs) {
		const ports = static_configs.flatMap(({ targets }) => targets).map((target) => target.split(":")[1]);
		assert.deepEqual(ports, [usual[job_name as keyof typeof usual]], job_name);
		// Prometheus sends Bearer by default.
		const headers = { authorization: `Bearer ${authorization.credentials}` };
		assert.equal((await fetch(`${system.client.url}/metrics`, { headers })).status, 200);
	}
	assert.notEqual((await fetch(`${system.client.url}/metrics`)).status, 200);
});

test("the operators' guide explains each alert, and nothing else", () => {
	const guide = textOf("docs/operators.md").split("### Alerts and a dashboard")[1]?.split("\n## ")[0] ?? "";
	const explained = [...guide.matchAll(/^#### (\w+)\n\n(\S.+)/gm)].map(([, name]) => name);
	assert.deepEqual(
		explained,
		rules.map(({ alert }) => alert),
	);
	for (const { alert, labels, annotations } of rules) {
		assert.ok(["page", "ticket"].includes(labels.severity), alert);
		assert.ok(annotations.summary.length > 20, alert);
	}
});

test("the operators' guide has a row for each series of ours, and no other", () => {
	const guide = textOf("docs/operators.md").split("\n## Metrics\n")[1]?.split("\n### ")[0] ?? "";
	const rows = guide.split("\n").filter((line) => line.startsWith("| `"));
	const named = rows.flatMap((row) =>
		[...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => name),
	);
	const ours = [...series.keys()].filter((name) => /^(relay|boost)_/.test(name));
	const names = ours.map((name) => name.replace(/_(bucket|sum|count)$/, ""));
	const missing = names.filter((name) => !named.includes(name));
	assert.deepEqual([...new Set(missing)], [], "docs/operators.md has no row for these");
	assert.deepEqual(
		named.filter((name) => !names.includes(name ?? "")),
		[],
		"docs/operators.md has rows for what is no series",
	);
});
