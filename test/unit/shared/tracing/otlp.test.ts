// Spans as a collector gets them: parents, samplers, what is dropped, what the log says, and the
// end. The collector is a real HTTP server.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { systemClock } from "../../../../shared/clock.ts";
import { createLogger } from "../../../../shared/log.ts";
import { type OtlpOptions, openTraces } from "../../../../shared/tracing/otlp.ts";
import { startCollector } from "../../../support/collector.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";

const HASH = `0x${"ab".repeat(32)}`;
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SAMPLED = `00-${TRACE}-b7ad6b7169203331-01`;
const UNSAMPLED = `00-${TRACE}-b7ad6b7169203331-00`;

async function fixture(t: TestContext, options: Partial<OtlpOptions> = {}, clock = systemClock) {
	const collector = await startCollector();
	const lines: Readonly<Record<string, unknown>>[] = [];
	const log = createLogger("trace", "test", { write: (line) => void lines.push(JSON.parse(line)) });
	const traces = openTraces(
		{
			OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
			OTEL_EXPORTER_OTLP_HEADERS: {},
			OTEL_SERVICE_NAME: "test",
			OTEL_TRACES_SAMPLER: "parentbased_always_on",
			OTEL_TRACES_SAMPLER_ARG: 1,
			...options,
		},
		{ clock, log },
	);
	t.after(() => collector.stop());
	return { collector, traces, lines, messages: () => lines.map(({ msg }) => msg) };
}

/**
 * Which of three submissions come: one without a parent, one of a sampled trace, one of a trace
 * that is not.
 */
const SAMPLERS: readonly (readonly [OtlpOptions["OTEL_TRACES_SAMPLER"], number, readonly string[]])[] = [
	["always_on", 1, ["root", "sampled", "unsampled"]],
	["always_off", 1, []],
	["traceidratio", 0, []],
	["traceidratio", 1, ["root", "sampled", "unsampled"]],
	["parentbased_always_on", 1, ["root", "sampled"]],
	["parentbased_always_off", 1, ["sampled"]],
	["parentbased_traceidratio", 0, ["sampled"]],
	["parentbased_traceidratio", 1, ["root", "sampled"]],
];
for (const [sampler, ratio, expected] of SAMPLERS) {
	test(`${sampler} at ${ratio}: ${expected.join(", ") || "none"}`, async (t) => {
		const { collector, traces } = await fixture(t, {
			...{ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio },
		});
		for (const [path, parent] of [
			["root", null],
			["sampled", SAMPLED],
			["unsampled", UNSAMPLED],
		] as const)
			traces.submission("relay.submission", HASH, parent)?.end({ path });
		await traces.close();
		assert.deepEqual(
			collector.spans().map(({ attributes }) => attributes["leeward.path"]),
			expected,
		);
	});
}

test("a part belongs to the last submission of its transaction, and of none there is none", async (t) => {
	const { collector, traces } = await fixture(t);
	assert.equal(traces.part("boost.relay", HASH), null);
	traces.past("relay.store", HASH, 5, {});
	const submission = traces.submission("boost.submission", HASH, SAMPLED);
	traces.part("boost.relay", HASH)?.end({ outcome: "failed", code: "timeout" });
	traces.past("relay.store", HASH, 5, {});
	submission?.end({ outcome: "acknowledged" });
	submission?.end({ outcome: "again" });
	// A known transaction is reported in the trace that brought it.
	traces.submission("relay.submission", HASH, null)?.end({ outcome: "known" });
	traces.past("relay.delivery", HASH, 1, { builder: "dev", block: 7 });
	await traces.close();
	const [attempt, store, first, known, delivery, ...more] = collector.spans();
	assert.deepEqual(more, []);
	assert.equal(first?.traceId, TRACE);
	assert.equal(first?.parentSpanId, "b7ad6b7169203331");
	assert.equal(submission?.traceparent, `00-${TRACE}-${first?.spanId}-01`);
	for (const part of [attempt, store, delivery]) assert.equal(part?.parentSpanId, first?.spanId);
	assert.equal((store?.ended ?? 0n) - (store?.begun ?? 0n), 5_000_000n);
	assert.deepEqual([attempt?.isError, first?.isError], [true, false]);
	assert.deepEqual(attempt?.attributes, { "leeward.outcome": "failed", "leeward.code": "timeout" });
	assert.deepEqual(first?.attributes, { "leeward.outcome": "acknowledged" });
	assert.deepEqual(delivery?.attributes, { "leeward.builder": "dev", "leeward.block": 7 });
	assert.notEqual(known?.traceId, TRACE);
});

for (const parent of [
	"",
	"00-0-0-01",
	`01-${TRACE}-b7ad6b7169203331-01`,
	`00-${"0".repeat(32)}-b7ad6b7169203331-01`,
]) {
	test(`what is no parent begins a trace: ${JSON.stringify(parent)}`, async (t) => {
		const { collector, traces } = await fixture(t);
		traces.submission("relay.submission", HASH, parent)?.end({});
		await traces.close();
		const [span] = collector.spans();
		assert.equal(span?.parentSpanId, undefined);
		assert.notEqual(span?.traceId, TRACE);
	});
}

test("a collector that refuses costs one line in the log, and another one when it takes traces again", async (t) => {
	const { collector, traces, messages, lines } = await fixture(t);
	collector.answerWith(400);
	const tell = async (count: number): Promise<void> => {
		traces.submission("relay.submission", HASH, null)?.end({});
		await until("it was sent", () => collector.requests.length === count);
	};
	await tell(1);
	await until("the log says so", () => messages().length > 0);
	await tell(2);
	await tell(3);
	collector.answerWith(200);
	await tell(4);
	await until("the log says so", () => messages().length > 1);
	assert.deepEqual(messages(), [
		"trace collector unavailable: dropping traces",
		"trace collector available again",
	]);
	assert.deepEqual([lines[0]?.code, lines[0]?.level], [400, 40]);
	await traces.close();
});

test("while it hangs no more than 2,048 spans wait, beside those that are being sent", async (t) => {
	const { collector, traces } = await fixture(t);
	collector.answerWith(null);
	traces.submission("relay.submission", HASH, null)?.end({});
	await until("one request hangs", () => collector.requests.length === 1);
	for (let i = 0; i < 10_000; i++) traces.past("relay.store", HASH, 1, {});
	collector.answerWith(200);
	await traces.close();
	assert.equal(collector.spans().length, 2_048);
});

test("the end waits two seconds for a collector that hangs", async (t) => {
	const clock = new ManualClock();
	const { collector, traces } = await fixture(t, {}, clock);
	collector.answerWith(null);
	traces.submission("relay.submission", HASH, null)?.end({});
	let isOver = false;
	const closing = traces.close().then(() => {
		isOver = true;
	});
	await until("it is sent", () => collector.requests.length === 1);
	await clock.advance(1_999);
	assert.equal(isOver, false);
	await clock.advance(1);
	await closing;
});
