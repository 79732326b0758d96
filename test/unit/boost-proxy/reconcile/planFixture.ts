// The fixture for the plan: rows by number, every kind of delivery state, and two available
// upstreams.

import { ABSENT, type DeliveryState } from "../../../../boost-proxy/domain/deliveryState.ts";
import { onlyOwner } from "../../../../boost-proxy/domain/owners.ts";
import type { UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import { newNotes, type Row } from "../../../../boost-proxy/domain/row.ts";
import type { PlanTime, UpstreamHealth } from "../../../../boost-proxy/reconcile/plan.ts";
import { addressOf, hashOf, senderOf } from "../journal/journalFixture.ts";

export const NOW: PlanTime = { now: 1_000_000, monotonic: 50_000, epoch: 3 };

const WELL: UpstreamHealth = {
	...{ isUnavailable: false, pausedUntil: 0, acceptsNonceGaps: true, canCancel: true, softCancels: true },
	...{ isOurs: true, accepts: () => true },
};
/** Both are up, and accept everything. */
export const HEALTHY: Readonly<Record<UpstreamName, UpstreamHealth>> = {
	relay: WELL,
	fallback: { ...WELL, isOurs: false },
};

const OPEN = { presence: "unanswered", askedAt: NOW.now, attempts: 1 } as const;
const LATER = { retryAt: NOW.monotonic + 1, epoch: NOW.epoch };
/**
 * Every kind of delivery state. `due` and `later`: unanswered, and when it is sent again.
 * `rejected`: not again yet.
 */
export const STATES = {
	absent: ABSENT,
	given: { ...ABSENT, presence: "given", askedAt: NOW.now, attempts: 1 },
	due: { ...ABSENT, ...OPEN, retryAt: NOW.monotonic, epoch: NOW.epoch },
	later: { ...ABSENT, ...OPEN, ...LATER },
	has: { ...ABSENT, presence: "has", attempts: 1 },
	lost: { ...ABSENT, presence: "lost", attempts: 1 },
	rejected: { ...ABSENT, presence: "rejected", attempts: 1, ...LATER },
	abandoned: { ...ABSENT, presence: "abandoned", attempts: 1 },
} as const satisfies Readonly<Record<string, DeliveryState>>;
export type StateName = keyof typeof STATES;

/** Row `n`, of nonce `n`, live and acknowledged. */
export function rowOf(n: number, at: Readonly<Record<UpstreamName, DeliveryState>>): Row {
	const asked = { path: "fast", search: "", softCancellations: false, address: addressOf(n) } as const;
	return {
		...{ id: n, hash: hashOf(n), from: senderOf(1), nonce: BigInt(n), receivedAt: n, bytes: 120 },
		...{ fields: { to: "", gas: "21000", value: "0" }, requestId: null },
		...{ ...asked, owners: [onlyOwner(asked)], ownersPending: false, bySender: false },
		...{ aliveUntil: NOW.now + 1, acknowledged: true, requests: 0, desired: "live", endedAt: 0 },
		...{ at, version: n, notes: newNotes(0) },
	};
}
