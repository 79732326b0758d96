// Traces in a real Jaeger, which is OpenTelemetry's collector with a store. JAEGER names its
// program (2.13 or later; `go build github.com/jaegertracing/jaeger/cmd/jaeger` makes one).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePort } from "../../devnet/freePort.ts";
import { startPath } from "../../support/pathFixture.ts";
import { signedTransaction } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const { JAEGER } = process.env;
const skip = JAEGER === undefined ? "JAEGER names no program" : false;
const GWEI = 1_000_000_000n;

interface JaegerSpan {
	readonly spanID: string;
	readonly operationName: string;
	readonly references: readonly { readonly spanID: string }[];
}

/** Traces in memory; `otlp` and `query` are ports. */
function configOf(otlp: number, query: number, grpc: number): string {
	const at = (port: number) => ({ endpoint: `127.0.0.1:${port}` });
	return JSON.stringify({
		service: {
			extensions: ["jaeger_storage", "jaeger_query"],
			pipelines: { traces: { receivers: ["otlp"], exporters: ["jaeger_storage_exporter"] } },
			telemetry: { metrics: { level: "none" } },
		},
		extensions: {
			jaeger_query: { storage: { traces: "memory" }, http: at(query), grpc: at(grpc) },
			jaeger_storage: { backends: { memory: { memory: { max_traces: 100 } } } },
		},
		receivers: { otlp: { protocols: { http: at(otlp) } } },
		exporters: { jaeger_storage_exporter: { trace_storage: "memory" } },
	});
}

test("a submission through boost and an edge is one trace in Jaeger", { skip }, async (t) => {
	const folder = mkdtempSync(join(tmpdir(), "leeward-jaeger-"));
	t.after(() => rmSync(folder, { recursive: true, force: true }));
	const [otlp, query] = [await freePort(), await freePort()];
	const config = join(folder, "config.yaml");
	// JSON is YAML.
	writeFileSync(config, configOf(otlp, query, await freePort()));
	const jaeger = spawn(JAEGER ?? "", ["--config", config], { stdio: "ignore" });
	t.after(() => void jaeger.kill("SIGKILL"));
	const ask = async <T>(path: string): Promise<T | undefined> => {
		const answer = await fetch(`http://127.0.0.1:${query}/api/${path}`).catch(() => undefined);
		return answer?.ok === true ? ((await answer.json()) as { data: T }).data : undefined;
	};
	await until("Jaeger answers", async () => (await ask("services")) !== undefined);
	const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${otlp}` };
	const path = await startPath({ withEdge: true, env });
	t.after(() => path.stop());
	const fees = { maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: GWEI };
	const tx = signedTransaction({ by: path.account(), gasLimit: 30_000n, ...fees });
	await path.boost.result("eth_sendRawTransaction", [`0x${tx.raw.toString("hex")}`], { path: "/noreverts" });
	const tags = encodeURIComponent(JSON.stringify({ "leeward.hash": tx.hash }));
	const spans = await until("Jaeger has the trace", async () => {
		const found = await ask<readonly { spans: readonly JaegerSpan[] }[]>(
			`traces?service=leeward-boost&tags=${tags}`,
		);
		const [trace, ...others] = found ?? [];
		assert.deepEqual(others, []);
		return trace !== undefined && trace.spans.length >= 9 ? trace.spans : undefined;
	});
	const names = new Map(spans.map(({ spanID, operationName }) => [spanID, operationName]));
	const links = spans.map(({ operationName, references: [parent] }) => [
		names.get(parent?.spanID ?? "") ?? "",
		operationName,
	]);
	const submission = "relay.submission";
	assert.deepEqual(
		links.map((link) => link.join(" > ")).sort(),
		[
			...["> boost.submission", "boost.submission > boost.relay", "boost.relay > relay.edge"].map((link) =>
				link.startsWith(">") ? ` ${link}` : link,
			),
			`relay.edge > ${submission}`,
			...["admission", "store", "simulation", "delivery", "delivery"].map(
				(part) => `${submission} > relay.${part}`,
			),
		].sort(),
	);
});
