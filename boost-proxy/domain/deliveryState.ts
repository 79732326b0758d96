// The delivery state of a transaction at an upstream. Most rows have one of a few states, which are
// interned.

import type { UpstreamName } from "./request.ts";

/**
 * Whether an upstream has it. `given`: a client's request sent it and got no verdict; it counts as
 * `has` until the upstream denies having it. `unanswered`: the reconciler sent it and got no
 * verdict; it is sent again until there is one. `has`: acknowledged. `lost`: acknowledged once,
 * unknown there now. `rejected`: by a verdict; it may be sent again later. `abandoned`: the
 * upstream has given it up or cancelled it, and never gets it again.
 */
export const PRESENCES = ["absent", "given", "unanswered", "has", "lost", "rejected", "abandoned"] as const;
export type Presence = (typeof PRESENCES)[number];

/** A row's delivery state at one upstream. */
export interface DeliveryState {
	readonly presence: Presence;
	/** When it may be sent there again, in monotonic ms. */
	readonly retryAt: number;
	/** The health epoch in which `retryAt` is valid; null: in all. See `Moment` of deliveries.ts. */
	readonly epoch: number | null;
	/** Failed deliveries in a row, in this epoch. */
	readonly faults: number;
	/** The upstream has an earlier one of the nonce and must get this one as its replacement. */
	readonly replacementPending: boolean;
	/**
	 * When the latest attempt began that has no answer, in ms since the epoch; 0: none. It may still
	 * arrive, whatever the answer to another attempt was.
	 */
	readonly askedAt: number;
	/** How many attempts have begun, of all boost instances, answered or not. */
	readonly attempts: number;
	/** The user ended it. The upstream may have it and must still receive the cancel. */
	readonly cancelPending: boolean;
}

/** Whether it was sent there, and no answer to that is known. */
export function isUnanswered({ presence }: DeliveryState): boolean {
	return presence === "given" || presence === "unanswered";
}

/** How long a request may be under way, in ms. */
const LATE_MS = 30_000;

/** Whether an attempt without an answer may still arrive. `now`: in ms since the epoch. */
export function mayArrive({ askedAt }: DeliveryState, now: number): boolean {
	return now - askedAt <= LATE_MS;
}

/** The states at each upstream. */
export type DeliveryStates = Readonly<Record<UpstreamName, DeliveryState>>;

export const ABSENT: DeliveryState = Object.freeze({
	presence: "absent",
	retryAt: 0,
	epoch: null,
	faults: 0,
	replacementPending: false,
	askedAt: 0,
	attempts: 0,
	cancelPending: false,
});

// Most rows use one of these few states, which saves memory.
const HAS: DeliveryState = Object.freeze({ ...ABSENT, presence: "has", attempts: 1 });
const GIVEN: DeliveryState = Object.freeze({ ...ABSENT, presence: "given", attempts: 1 });
const SHARED = [ABSENT, HAS, GIVEN];
const SHARED_PAIRS: readonly DeliveryStates[] = [
	{ relay: HAS, fallback: ABSENT },
	{ relay: ABSENT, fallback: HAS },
	{ relay: GIVEN, fallback: ABSENT },
	{ relay: ABSENT, fallback: ABSENT },
].map((at) => Object.freeze(at));

/** The states at both upstreams, interned where possible. */
export function statesAt(relay: DeliveryState, fallback: DeliveryState): DeliveryStates {
	const at = { relay: interned(relay), fallback: interned(fallback) };
	return SHARED_PAIRS.find((one) => one.relay === at.relay && one.fallback === at.fallback) ?? at;
}

function interned(one: DeliveryState): DeliveryState {
	const { faults, epoch, replacementPending, askedAt, cancelPending } = one;
	if (faults > 0 || epoch !== null || replacementPending || askedAt > 0 || cancelPending) return one;
	const isSame = ({ presence, retryAt, attempts }: DeliveryState): boolean =>
		presence === one.presence && retryAt === one.retryAt && attempts === one.attempts;
	return SHARED.find(isSame) ?? one;
}

/** No upstream has it, or had it. */
export const NOWHERE = statesAt(ABSENT, ABSENT);
