// Sends spans to an OpenTelemetry collector with OpenTelemetry's SDK: OTLP over HTTP, as JSON.
// Spans that can't be sent are dropped. A collector that is down or slow costs a bounded queue and
// one line in the log.

import {
	type Span as ApiSpan,
	type Attributes,
	ROOT_CONTEXT,
	SpanKind,
	SpanStatusCode,
	trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import {
	AlwaysOffSampler,
	AlwaysOnSampler,
	BatchSpanProcessor,
	ParentBasedSampler,
	type Sampler,
	type SpanExporter,
	TraceIdRatioBasedSampler,
	TracerProvider,
} from "@opentelemetry/sdk-trace";
import { type Clock, pause } from "../clock.ts";
import type { TraceSettings } from "../config.ts";
import { type Logger, safeError } from "../log.ts";
import { recentlyUsed } from "../recentlyUsed.ts";
import { VERSION } from "../version.ts";
import { SPANS, type Span, type SpanFields, type SpanName, type Traces } from "./traces.ts";

/** The settings, and the collector's URL, to which `/v1/traces` is added. */
export type OtlpOptions = TraceSettings & { readonly OTEL_EXPORTER_OTLP_ENDPOINT: string };

interface OtlpDependencies {
	readonly clock: Clock;
	readonly log: Logger;
}

/** Maximum spans that wait to be sent. Later ones are dropped. */
const MAX_WAITING = 2_048;
/** Interval between two exports of waiting spans, in ms. */
const SEND_MS = 1_000;
/** How long one request may take, including its retries, in ms. */
const EXPORT_MS = 10_000;
/** How long a stop waits for the remaining spans, in ms. */
const CLOSE_MS = 2_000;
/** Transactions whose trace is remembered. */
const REMEMBERED = 20_000;
/**
 * Spans use the time of a clock that never goes back, unless it differs from the machine's clock by
 * more than this, in ms.
 */
const MAX_DRIFT_MS = 20;
const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;
const ERRORS: ReadonlySet<string | undefined> = new Set(["failed", "unavailable"]);
/** Version, trace, span and flags. */
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Traces that are sent to a collector. Nothing is sent before the first span. */
export function openTraces(options: OtlpOptions, { clock, log }: OtlpDependencies): Traces {
	const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers = {} } = options;
	const { OTEL_SERVICE_NAME: service } = options;
	const exporter = new OTLPTraceExporter({
		url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
		headers,
		timeoutMillis: EXPORT_MS,
	});
	const provider = new TracerProvider({
		resource: defaultResource().merge(
			resourceFromAttributes({ "service.name": service, "service.version": VERSION }),
		),
		sampler: samplerOf(options),
		spanProcessors: [
			new BatchSpanProcessor({
				exporter: loggedOnce(exporter, log),
				maxQueueSize: MAX_WAITING,
				scheduledDelayMillis: SEND_MS,
				exportTimeoutMillis: EXPORT_MS,
			}),
		],
	});
	return new OtlpTraces(provider, clock);
}

class OtlpTraces implements Traces {
	readonly isOn = true;
	readonly #provider: TracerProvider;
	readonly #tracer: ReturnType<TracerProvider["getTracer"]>;
	readonly #clock: Clock;
	/** The header of a transaction's last submission, by its hash. */
	readonly #submissions = recentlyUsed<string>(REMEMBERED);
	/** Time to add to the monotonic clock to get the machine's time, in ms. */
	#offset = 0;

	constructor(provider: TracerProvider, clock: Clock) {
		this.#provider = provider;
		this.#tracer = provider.getTracer("leeward", VERSION);
		this.#clock = clock;
	}

	submission(name: SpanName, hash: string, parent: string | null): Span {
		const before = this.#submissions.get(hash);
		const span = new BegunSpan(this.#begin(name, parent), (fields) => {
			// If the transaction was known already, its later spans stay in the trace of the
			// submission that brought it.
			if (fields.outcome === "known" && before !== undefined) this.#submissions.set(hash, before);
			return this.#now();
		});
		this.#submissions.set(hash, span.traceparent);
		return span;
	}

	part(name: SpanName, hash: string): Span | null {
		const parent = this.#submissions.get(hash);
		return parent === undefined ? null : new BegunSpan(this.#begin(name, parent), () => this.#now());
	}

	past(name: SpanName, hash: string, ms: number, fields: SpanFields): void {
		const parent = this.#submissions.get(hash);
		if (parent === undefined) return;
		const now = this.#now();
		end(this.#begin(name, parent, now - ms), fields, now);
	}

	async close(): Promise<void> {
		const closing = this.#provider.shutdown().catch(() => {});
		await Promise.race([closing, pause(this.#clock, CLOSE_MS)]);
	}

	#begin(name: SpanName, parent: string | null, startTime = this.#now()): ApiSpan {
		const [, traceId, spanId, flags = "00"] = TRACEPARENT.exec(parent ?? "") ?? [];
		const context =
			traceId === undefined || spanId === undefined
				? ROOT_CONTEXT
				: trace.setSpanContext(ROOT_CONTEXT, {
						traceId,
						spanId,
						traceFlags: Number.parseInt(flags, 16) & 1,
						isRemote: true,
					});
		return this.#tracer.startSpan(name, { kind: KINDS[SPANS[name]], startTime }, context);
	}

	/** Ms since the epoch, with fractions. */
	#now(): number {
		const monotonic = this.#clock.monotonic();
		const machine = this.#clock.now();
		if (Math.abs(monotonic + this.#offset - machine) > MAX_DRIFT_MS) this.#offset = machine - monotonic;
		return monotonic + this.#offset;
	}
}

class BegunSpan implements Span {
	readonly traceparent: string;
	readonly #span: ApiSpan;
	readonly #onEnd: (fields: SpanFields) => number;
	#isOver = false;

	/** `onEnd` returns the time of the end. */
	constructor(span: ApiSpan, onEnd: (fields: SpanFields) => number) {
		const { traceId, spanId, traceFlags } = span.spanContext();
		this.traceparent = `00-${traceId}-${spanId}-0${traceFlags & 1}`;
		this.#span = span;
		this.#onEnd = onEnd;
	}

	end(fields: SpanFields): void {
		if (this.#isOver) return;
		this.#isOver = true;
		end(this.#span, fields, this.#onEnd(fields));
	}
}

function end(span: ApiSpan, fields: SpanFields, at: number): void {
	const attributes: Attributes = {};
	for (const [name, value] of Object.entries(fields))
		if (value !== undefined) attributes[`leeward.${name}`] = value;
	span.setAttributes(attributes);
	if (ERRORS.has(fields.outcome)) span.setStatus({ code: SpanStatusCode.ERROR });
	span.end(at);
}

/** The samplers by their names in OpenTelemetry's settings. */
function samplerOf({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio }: OtlpOptions): Sampler {
	const name = sampler.replace("parentbased_", "");
	const root =
		name === "always_on"
			? new AlwaysOnSampler()
			: name === "always_off"
				? new AlwaysOffSampler()
				: new TraceIdRatioBasedSampler(ratio);
	return name === sampler ? root : new ParentBasedSampler({ root });
}

/** The exporter. Logs once when the collector rejects spans, and again when it accepts them. */
function loggedOnce(exporter: OTLPTraceExporter, log: Logger): SpanExporter {
	let isWell = true;
	return {
		export(spans, done) {
			exporter.export(spans, (result) => {
				const { error } = result;
				if (error !== undefined && isWell) {
					const { code } = error as { readonly code?: unknown };
					const fields = { ...(typeof code === "number" ? { code } : {}), fault: safeError(error) };
					log.warn("trace collector unavailable: dropping traces", fields);
				}
				if (error === undefined && !isWell) log.info("trace collector available again");
				isWell = error === undefined;
				done(result);
			});
		},
		shutdown: () => exporter.shutdown(),
	};
}
