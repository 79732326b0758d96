// The fixture for the plan: rows by number, every kind of delivery state, and two available upstreams.

import { onlyOwner } from "../../../../boost-proxy/domain/owners.ts";
import type { UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import { ABSENT, NO_RETRY, newNotes, type Row, type Standing } from "../../../../boost-proxy/domain/row.ts";
import type { PlanTime, UpstreamHealth } from "../../../../boost-proxy/reconcile/plan.ts";
import { addressOf, hashOf, senderOf } from "../journal/journalFixture.ts";

export const NOW: PlanTime = { now: 1_000_000, monotonic: 50_000, epoch: 3 };

const WELL: UpstreamHealth = {
	...{ isUnavailable: false, pausedUntil: 0, acceptsNonceGaps: true, canCancel: true },
	...{ isOurs: true, acceptsPath: () => true },
};
/** Both are well, and take all. */
export const HEALTHY: Readonly<Record<UpstreamName, UpstreamHealth>> = {
	relay: WELL,
	fallback: { ...WELL, isOurs: false },
};

const LATER = { retryAt: NOW.monotonic + 1, epoch: NOW.epoch };
/**
 * Every kind of standing. `given`: by a request, without a verdict; `due` and `later`: without a verdict too, but it is given
 * again until it says so. `spent`: it is never given again.
 */
export const STANDINGS = {
	absent: ABSENT,
	given: { ...ABSENT, presence: "maybe", retryAt: NO_RETRY },
	due: { ...ABSENT, presence: "maybe", retryAt: NOW.monotonic, epoch: NOW.epoch },
	later: { ...ABSENT, presence: "maybe", ...LATER },
	has: { ...ABSENT, presence: "has" },
	lost: { ...ABSENT, presence: "lost" },
	refused: { ...ABSENT, presence: "refused", ...LATER },
	spent: { ...ABSENT, presence: "refused", retryAt: NO_RETRY },
} as const satisfies Readonly<Record<string, Standing>>;
export type StandingName = keyof typeof STANDINGS;

/** Row `n`, of nonce `n`, live and acknowledged. */
export function rowOf(n: number, at: Readonly<Record<UpstreamName, Standing>>): Row {
	const asked = { path: "fast", search: "", softCancellations: false, address: addressOf(n) } as const;
	return {
		...{ id: n, hash: hashOf(n), from: senderOf(1), nonce: BigInt(n), receivedAt: n, bytes: 120 },
		...{ ...asked, owners: [onlyOwner(asked)], ownersPending: false, bySender: false },
		...{ aliveUntil: NOW.now + 1, acknowledged: true, requests: 0, desired: "live", endedAt: 0 },
		...{ at, notes: newNotes(0) },
	};
}
