// Answers `GET /tx/{hash}/journal`: boost's own record of a transaction that it accepted, wherever
// the transaction is now. The transaction's page shows its history from this while the relay can't.

import { isoTime } from "../../shared/clock.ts";
import type { Presence } from "../domain/deliveryState.ts";
import { isLive, UNDATED } from "../domain/row.ts";
import { findAnywhere, type ViewsDependencies } from "./statusView.ts";

/** Times are ISO 8601, or null if they are unknown (or no longer known). */
export interface JournalReport {
	readonly hash: string;
	/** When boost accepted it. */
	readonly receivedAt: string | null;
	/** While it is live: when it expires, by the chain's time. */
	readonly aliveUntil: string | null;
	/** Each upstream's state of it, as far as boost knows. */
	readonly relay: Presence;
	readonly fallback: Presence;
	/** Since when the fallback has it; null if it does not have it, and after a restart. */
	readonly fallbackSince: string | null;
	/**
	 * How it ended: `mined`, `replaced`, `cancelled`, `expired` or `dropped`; null while it is live.
	 */
	readonly ended: string | null;
	readonly endedAt: string | null;
}

/**
 * Null if neither this boost instance nor the others on its database accepted it. `address`: the
 * client's. Throws like {@link findAnywhere}.
 */
export async function readJournal(
	hash: string,
	address: string,
	dependencies: Pick<ViewsDependencies, "rows" | "others">,
): Promise<JournalReport | null> {
	const row = await findAnywhere(hash, address, dependencies);
	// As in the status: a transaction whose client got an error is observed, but not shown.
	if (row === null || (isLive(row) && !row.acknowledged)) return null;
	const { receivedAt, aliveUntil, at, notes, desired, endedAt } = row;
	return {
		hash,
		receivedAt: timeOf(receivedAt),
		aliveUntil: isLive(row) && aliveUntil !== UNDATED ? timeOf(aliveUntil) : null,
		relay: at.relay.presence,
		fallback: at.fallback.presence,
		fallbackSince: at.fallback.presence === "has" ? timeOf(notes.fallbackSince) : null,
		ended: isLive(row) ? null : desired,
		endedAt: timeOf(endedAt),
	};
}

/** `ms`: since the epoch, 0 if unknown. */
function timeOf(ms: number): string | null {
	return ms === 0 ? null : isoTime(ms);
}
