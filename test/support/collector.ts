// A collector of traces: an HTTP server that takes OTLP as JSON and keeps what it got.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as it came, with its attributes as an object. */
export interface CollectedSpan {
	/** `service.name` of its process. */
	readonly service: string;
	readonly resource: Readonly<Record<string, unknown>>;
	readonly name: string;
	/** As OTLP numbers them: 1 internal, 2 server, 3 client. */
	readonly kind: number;
	readonly traceId: string;
	readonly spanId: string;
	readonly parentSpanId?: string;
	readonly attributes: Readonly<Record<string, unknown>>;
	/** Whether it ended in an error. */
	readonly isError: boolean;
	/** Ns since the epoch. */
	readonly begun: bigint;
	readonly ended: bigint;
}

interface WireAttribute {
	readonly key: string;
	readonly value: Readonly<Record<string, unknown>>;
}
interface WireSpan extends Omit<CollectedSpan, "attributes" | "begun" | "ended"> {
	readonly attributes: readonly WireAttribute[];
	readonly startTimeUnixNano: string;
	readonly endTimeUnixNano: string;
	readonly status?: { readonly code?: number };
}
interface WireBody {
	readonly resourceSpans: readonly {
		readonly resource: { readonly attributes: readonly WireAttribute[] };
		readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
	}[];
}

export type Collector = Awaited<ReturnType<typeof startCollector>>;

/** Starts one on a free port. */
export async function startCollector() {
	const bodies: string[] = [];
	const requests: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = [];
	/** Null: it does not answer. */
	let status: number | null = 200;
	const unanswered: ServerResponse[] = [];
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on("data", (chunk: Buffer) => chunks.push(chunk));
		request.on("end", () => {
			requests.push({ url: request.url ?? "", headers: request.headers });
			if (status === null) {
				unanswered.push(response);
				return;
			}
			if (status === 200) bodies.push(Buffer.concat(chunks).toString("utf8"));
			response.writeHead(status, { "content-type": "application/json" }).end("{}");
		});
	});
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		/** All that it took, as it came. */
		bodies,
		/** All requests, answered or not. */
		requests,
		/** Answers with another status from now on; null: not at all. */
		answerWith(next: number | null): void {
			status = next;
		},
		/** The spans that it took. */
		spans: (): readonly CollectedSpan[] => bodies.flatMap(spansOf),
		async stop(): Promise<void> {
			server.closeAllConnections();
			await new Promise<void>((resolve) => server.close(() => resolve()));
		},
	};
}

function spansOf(body: string): CollectedSpan[] {
	return (JSON.parse(body) as WireBody).resourceSpans.flatMap(({ resource, scopeSpans }) => {
		const shared = read(resource.attributes);
		return scopeSpans.flatMap(({ spans }) =>
			spans.map(({ status, attributes, startTimeUnixNano, endTimeUnixNano, ...span }) => ({
				...span,
				service: String(shared["service.name"]),
				resource: shared,
				attributes: read(attributes),
				isError: status?.code === 2,
				begun: BigInt(startTimeUnixNano),
				ended: BigInt(endTimeUnixNano),
			})),
		);
	});
}

function read(attributes: readonly WireAttribute[]): Record<string, unknown> {
	return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
