// Traces at a real HTTP server in a collector's place, from boost, the relay (or an edge and its
// core) as processes: one trace from boost's request to each builder's answer, as an exact table,
// so that nothing else is reported.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { SPANS } from "../../../shared/tracing/traces.ts";
import { type CollectedSpan, type Collector, startCollector } from "../../support/collector.ts";
import { type PathFixture, startPath } from "../../support/pathFixture.ts";
import { signedTransaction } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const GWEI = 1_000_000_000n;
const KEY = "what the collector asks for";
const FOREIGN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const KINDS = { internal: 1, server: 2, client: 3 } as const;

for (const withEdge of [false, true]) {
	describe(withEdge ? "through an edge" : "with one relay", () => {
		let collector: Collector;
		let path: PathFixture;
		before(async () => {
			collector = await startCollector();
			path = await startPath({
				withEdge,
				env: {
					OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
					OTEL_EXPORTER_OTLP_HEADERS: `x-key=${encodeURIComponent(KEY)}`,
				},
			});
		});
		after(async () => {
			await path?.stop();
			await collector?.stop();
		});

		function signed() {
			const fees = { maxFeePerGas: 100n * GWEI, maxPriorityFeePerGas: GWEI };
			const tx = signedTransaction({ by: path.account(), gasLimit: 30_000n, ...fees });
			return { raw: `0x${tx.raw.toString("hex")}`, hash: tx.hash };
		}

		/** Submits a new transaction to boost. */
		async function submit(id: string, headers: Readonly<Record<string, string>> = {}) {
			const { raw, hash } = signed();
			await path.boost.result("eth_sendRawTransaction", [raw], {
				path: "/noreverts",
				headers: { "X-Request-Id": id, ...headers },
			});
			return { raw, hash };
		}

		const rootsOf = (id: string) =>
			collector
				.spans()
				.filter(({ attributes, parentSpanId }) => attributes["leeward.request"] === id && !parentSpanId);

		/** All spans of the trace that begins with the request `id`, once there are so many. */
		async function traceOf(id: string, count: number): Promise<readonly CollectedSpan[]> {
			return until(`the ${count} spans of ${id}`, () => {
				const [root] = rootsOf(id);
				const spans = collector.spans().filter(({ traceId }) => traceId === root?.traceId);
				return root !== undefined && spans.length >= count ? spans : undefined;
			});
		}

		test("one trace from boost's request to each builder's answer", async () => {
			const { raw, hash } = await submit("traced", { traceparent: FOREIGN });
			await path.system.delivered([raw]);
			const spans = await traceOf("traced", withEdge ? 9 : 8);
			const names = new Map(spans.map(({ spanId, name }) => [spanId, name]));
			const rows = spans.map(({ service, name, parentSpanId = "", attributes }) => [
				service,
				name,
				names.get(parentSpanId) ?? "",
				attributes,
			]);
			const block = blockOf(spans);
			const is = (fields: object) =>
				Object.fromEntries(Object.entries(fields).map(([name, value]) => [`leeward.${name}`, value]));
			const delivery = (builder: string) => [
				...["leeward-relay", "relay.delivery", "relay.submission"],
				is({ builder, kind: "bundle", block, outcome: "accepted" }),
			];
			const edge = [
				"leeward-relay",
				"relay.edge",
				"boost.relay",
				is({ request: "traced", hash, outcome: "taken" }),
			];
			const submitted = { request: "traced", hash, path: "noreverts" };
			const expected = [
				["leeward-boost", "boost.submission", "", is({ ...submitted, outcome: "acknowledged" })],
				["leeward-boost", "boost.relay", "boost.submission", is({ hash, outcome: "acknowledged" })],
				...(withEdge ? [edge] : []),
				[
					...["leeward-relay", "relay.submission", withEdge ? "relay.edge" : "boost.relay"],
					is({ ...submitted, outcome: "accepted" }),
				],
				["leeward-relay", "relay.admission", "relay.submission", is({ outcome: "admitted" })],
				["leeward-relay", "relay.store", "relay.submission", {}],
				["leeward-relay", "relay.simulation", "relay.submission", is({ outcome: "passed", block })],
				delivery("dev"),
				delivery("other"),
			];
			assert.deepEqual(sorted(rows), sorted(expected));
			for (const { name, kind, begun, ended, isError, resource } of spans) {
				assert.equal(kind, KINDS[SPANS[name as keyof typeof SPANS]], name);
				assert.ok(begun <= ended, name);
				assert.equal(isError, false, name);
				assert.deepEqual(Object.keys(resource).sort(), [
					...["service.name", "service.version", "telemetry.sdk.language"],
					...["telemetry.sdk.name", "telemetry.sdk.version"],
				]);
			}
			// The client's own trace is none of ours.
			assert.notEqual(spans[0]?.traceId, FOREIGN.split("-")[1]);
			for (const builder of path.system.builders)
				for (const { headers } of builder.requests()) assert.equal(headers.traceparent, undefined);
		});

		test("the collector's key is sent to it, and what is private is not", async () => {
			const { raw } = await submit("private");
			await path.system.delivered([raw]);
			await traceOf("private", withEdge ? 9 : 8);
			for (const { url, headers } of collector.requests)
				assert.deepEqual(
					[url, headers["x-key"], headers["content-type"]],
					["/v1/traces", KEY, "application/json"],
				);
			const told = collector.bodies.join("");
			const signature = raw.slice(-128);
			for (const secret of [raw.slice(2), signature, "127.0.0.1", "::1"])
				assert.ok(!told.includes(secret), secret);
			assert.equal(`${path.core.stdout}${path.boostProcess.stdout}`.includes(KEY), false);
		});

		test("a relay believes nobody else's trace", async () => {
			const { raw, hash } = signed();
			const answer = await fetch(`${path.relay.url}/noreverts`, {
				method: "POST",
				headers: { "content-type": "application/json", "x-request-id": "foreign", traceparent: FOREIGN },
				body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] }),
			});
			assert.equal(((await answer.json()) as { result?: unknown }).result, hash);
			const [root] = await traceOf("foreign", 5);
			assert.notEqual(root?.traceId, FOREIGN.split("-")[1]);
		});

		test("the relay's refusal has its reason, and a submission that no upstream accepts is an error", async () => {
			const tx = signedTransaction({
				by: path.account(),
				gasLimit: 30_000n,
				maxFeePerGas: GWEI,
				maxPriorityFeePerGas: 1n,
				value: 10n ** 30n,
			});
			const params = [`0x${tx.raw.toString("hex")}`];
			await path.boost.call("eth_sendRawTransaction", params, { headers: { "X-Request-Id": "poor" } });
			const refused = await traceOf("poor", withEdge ? 5 : 4);
			const outcomes = Object.fromEntries(
				refused.map(({ name, attributes }) => [name, attributes["leeward.outcome"]]),
			);
			assert.deepEqual(outcomes, {
				"boost.submission": "rejected",
				"boost.relay": "rejected",
				...(withEdge ? { "relay.edge": "rejected" } : {}),
				"relay.submission": "INSUFFICIENT_FUNDS",
				"relay.admission": "INSUFFICIENT_FUNDS",
			});
			await path.boost.force("open");
			path.fallback.answerWith(() => "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n");
			const { raw } = signed();
			const headers = { "X-Request-Id": "nowhere" };
			await path.boost.call("eth_sendRawTransaction", [raw], { path: "/noreverts", headers });
			await path.boost.force("auto");
			const failed = await traceOf("nowhere", 2);
			const told = failed.map(({ name, isError }) => [name, isError]);
			assert.ok(told.length >= 2 && told.every(([, isError]) => isError), JSON.stringify(told));
			assert.ok(path.fallback.posts.every(({ text }) => !/traceparent/i.test(text)));
			path.fallback.reset();
		});

		test("a stop sends what is left, and does not wait for a collector that hangs", async () => {
			const { raw } = await submit("last");
			await path.system.delivered([raw]);
			const { code } = await path.boostProcess.kill("SIGTERM");
			assert.equal(code, 0);
			assert.equal(rootsOf("last").length, 1);
			collector.answerWith(null);
			const { code: relayCode, stdout } = await path.relay.kill("SIGTERM");
			assert.equal(relayCode, 0, stdout.slice(-500));
		});
	});
}

/** The block that the deliveries are for. */
function blockOf(spans: readonly CollectedSpan[]): unknown {
	return spans.find(({ name }) => name === "relay.delivery")?.attributes["leeward.block"];
}

function sorted(rows: readonly (readonly unknown[])[]): readonly (readonly unknown[])[] {
	return [...rows].sort((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1));
}
