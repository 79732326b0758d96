// How a transaction is taken back from all who have it: the entries and a way to tell one holder come in, whether it is
// taken back goes out. While that is under way, nobody hands it over; what was taken back anywhere never is again.

import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type Delivery, UPSTREAMS, type UpstreamName, type WireVerdict } from "../domain/delivery.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { Handover, Journal, Upstream, Upstreams } from "../domain/ports.ts";
import { unavailable, verdictError } from "./failover.ts";

/**
 * What one holder said: `told`, it has taken it back; `out`, it heard nothing; `unsure`, it may have heard; `rejected`
 * by a verdict; `cannot`, it knows no way.
 */
export type Told =
	| { readonly kind: "told" | "out" | "unsure" }
	| { readonly kind: "rejected"; readonly error: WireVerdict }
	| { readonly kind: "cannot"; readonly why: RpcError };

/** What a delivery of the cancelling transaction says. */
export function toldBy(delivery: Delivery | null): Told {
	if (delivery === null) return { kind: "out" };
	if (delivery.kind === "acknowledged") return { kind: "told" };
	if (delivery.kind === "rejected") return { kind: "rejected", error: delivery.error };
	return { kind: delivery.sent ? "unsure" : "out" };
}

/**
 * Tells each holder of `entries` (of one sender and nonce), our relay first, and ends them where one has taken them back
 * or may have; `byRight`, where the client may end them himself, also where nobody who holds them can be reached: then
 * they are told as soon as they can. Resolves when that is on disk and at least one was told, or nobody holds them. Throws
 * the verdict where all that answered refused, else RpcError `unavailable` with the reason.
 */
export async function takeBack(
	entries: readonly OpenEntry[],
	tell: (upstream: Upstream) => Promise<Told>,
	byRight: boolean,
	dependencies: {
		readonly journal: Journal;
		readonly upstreams: Upstreams;
		/** Sees to those that could not be told. */
		readonly handover: Handover;
	},
): Promise<void> {
	const { journal, upstreams, handover } = dependencies;
	for (const { hash } of entries) journal.setUnderWay(hash, true);
	try {
		const words = new Map<UpstreamName, Told>();
		const isHolder = (name: UpstreamName) =>
			entries.some((entry) => (journal.get(entry.hash) ?? entry).holders.includes(name));
		// While one is told the other may become a holder: who is asked first is looked at again.
		for (const upstream of [upstreams.relay, upstreams.fallback, upstreams.relay]) {
			if (upstream === null || words.has(upstream.name) || !isHolder(upstream.name)) continue;
			words.set(upstream.name, await tell(upstream));
		}
		const named = (...kinds: readonly Told["kind"][]): readonly UpstreamName[] =>
			[...words].flatMap(([name, told]) => (kinds.includes(told.kind) ? [name] : []));
		const told = named("told");
		if (named("cannot").length > 0) {
			// It lives on there alone: whoever has taken it back does not get it again.
			for (const { hash } of entries) {
				for (const name of told) {
					handover.spent(hash, name);
					journal.notHeld(hash, name).catch(() => {});
				}
			}
		} else if (told.length > 0 || named("unsure").length > 0 || (byRight && named("rejected").length === 0)) {
			const unasked = UPSTREAMS.filter((name) => isHolder(name) && !words.has(name));
			const untold = [...named("out", "unsure"), ...unasked];
			const ending = entries.map(({ hash }) => journal.end(hash, "cancelled", untold));
			if (untold.length > 0) handover.wake();
			await Promise.allSettled(ending);
		}
		const failure = failureOf([...words.values()], told.length > 0 || (byRight && words.size === 0), byRight);
		if (failure !== null) throw failure;
	} finally {
		for (const { hash } of entries) journal.setUnderWay(hash, false);
	}
}

/** One that knows no way may still have it mined: that is said even where the other one was told. */
function failureOf(words: readonly Told[], told: boolean, byRight: boolean): Error | null {
	for (const one of words) if (one.kind === "cannot") return one.why;
	if (told) return null;
	for (const one of words) {
		if (one.kind === "rejected") return verdictError(one.error);
	}
	return unavailable(
		byRight || words.some(({ kind }) => kind === "unsure")
			? "who holds it can't be reached; it is handed to no other, and taken back as soon as that is possible"
			: "who holds it is out",
	);
}

/** The answer where a hash is nothing that this client may take back. */
export function notPending(): RpcError {
	return new RpcError("rejected", "transaction not found or no longer pending");
}
