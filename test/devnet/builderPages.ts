// Serves /dev of a dev builder: its state, record and switches as JSON, for tests and people in another process. It
// holds nothing itself.

import type { Faults } from "./builderServer.ts";
import type { DevBuilder } from "./devBuilder.ts";

/**
 * Answers one page; null where there is none. Bigints are hex. Throws for a body that is not as it should be.
 *
 * GET /dev/state, /dev/requests?method=&after=seq, /dev/orders, /dev/blocks?after=number;
 * POST /dev/faults (a `Faults` object), /dev/build (the built block), /dev/reset.
 */
export async function answerDev(
	builder: DevBuilder,
	method: string,
	url: URL,
	body: string,
): Promise<string | null> {
	const after = Number(url.searchParams.get("after") ?? 0);
	const named = url.searchParams.get("method");
	switch (`${method} ${url.pathname}`) {
		case "GET /dev/state":
			return json({
				name: builder.name,
				coinbase: builder.coinbase,
				burst: builder.burst,
				burstCount: builder.burstCount,
				blocks: builder.blocks().length,
				orders: builder.orders().length,
				requests: builder.requests().length,
			});
		case "GET /dev/requests":
			return json(
				builder.requests(({ seq, method: called }) => seq > after && (named === null || called === named)),
			);
		case "GET /dev/orders":
			return json(builder.orders());
		case "GET /dev/blocks":
			return json(builder.blocks().filter(({ number }) => number > after));
		case "POST /dev/faults":
			builder.setFaults(readFaults(body));
			return json({ ok: true });
		case "POST /dev/build":
			return json(await builder.buildBlock());
		case "POST /dev/reset":
			builder.reset();
			return json({ ok: true });
		default:
			return null;
	}
}

/** The switch itself refuses what it does not know. */
function readFaults(body: string): Faults {
	const parsed: unknown = JSON.parse(body);
	if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed;
	throw new Error("faults are a JSON object");
}

function json(value: unknown): string {
	return JSON.stringify(value, (_, inner: unknown) =>
		typeof inner === "bigint" ? `0x${inner.toString(16)}` : inner,
	);
}
