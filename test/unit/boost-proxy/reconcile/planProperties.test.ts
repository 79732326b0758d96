// Properties of the plan for random rows and deliveries: it sends nothing that ended, comes to
// rest, and leaves no live row without a holder.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
	delayRetry,
	MAX_WAIT_MS,
	markHeld,
	markRejected,
	markUnanswered,
} from "../../../../boost-proxy/domain/deliveries.ts";
import { ABSENT } from "../../../../boost-proxy/domain/deliveryState.ts";
import { type Route, UPSTREAMS, type UpstreamName } from "../../../../boost-proxy/domain/request.ts";
import {
	endRow,
	isLive,
	type Row,
	setCancelPending,
	setReplacementPending,
} from "../../../../boost-proxy/domain/row.ts";
import {
	type Action,
	countsAsThere,
	mayNeedAction,
	type PlanTime,
	plan,
	type UpstreamHealths,
} from "../../../../boost-proxy/reconcile/plan.ts";
import { sized } from "../../../support/length.ts";
import { HEALTHY, NOW, rowOf, STATES } from "./planFixture.ts";

const ALL = {
	...STATES,
	/** It was rejected, cancelled once mined, and has been reopened since. */
	reopened: { ...ABSENT, presence: "rejected" },
} as const;
const NAMES = Object.keys(ALL) as (keyof typeof ALL)[];
const OUTCOMES = ["acknowledged", "rejected", "unanswered", "refused"] as const;
type Outcome = (typeof OUTCOMES)[number];

const standing = fc.record({
	name: fc.constantFrom(...NAMES),
	replacementPending: fc.boolean(),
	cancelPending: fc.boolean(),
});
const row = fc.record({
	...{ nonce: fc.nat(3), relay: standing, fallback: standing },
	acknowledged: fc.boolean(),
	requests: fc.nat(1),
	ending: fc.constantFrom("live", "live", "live", "cancelled", "mined"),
	path: fc.constantFrom("fast", "noreverts"),
});
const fixture = fc.record({
	rows: fc.array(row, { minLength: 1, maxLength: 5 }),
	out: fc.subarray([...UPSTREAMS]),
	acceptsNonceGaps: fc.boolean(),
	outcomes: fc.array(fc.constantFrom(...OUTCOMES), { maxLength: 12 }),
});
type Fixture = typeof fixture extends fc.Arbitrary<infer T> ? T : never;

function rowsOf({ rows }: Fixture): Row[] {
	const all = rows.map((one, n): Row => {
		const at = (by: UpstreamName) => {
			const { name, replacementPending, cancelPending } = one[by];
			return {
				...ALL[name],
				replacementPending,
				cancelPending: cancelPending && one.ending === "cancelled",
			};
		};
		const { acknowledged, requests } = one;
		const live = rowOf(n, { relay: at("relay"), fallback: at("fallback") });
		const known = {
			...live,
			nonce: BigInt(one.nonce),
			path: one.path as Row["path"],
			acknowledged,
			requests,
		};
		if (one.ending === "live") return known;
		const cancelAt = UPSTREAMS.filter((by) => known.at[by].cancelPending);
		return endRow({ ...known, acknowledged: true }, one.ending as "mined", 1, cancelAt);
	});
	const live = all.filter(isLive).sort((a, b) => Number(a.nonce - b.nonce) || a.receivedAt - b.receivedAt);
	return [...live, ...all.filter((one) => !isLive(one))];
}

function healthOf({ out, acceptsNonceGaps }: Pick<Fixture, "out" | "acceptsNonceGaps">): UpstreamHealths {
	const accepts = ({ path }: Route) => path !== "noreverts";
	return {
		relay: { ...HEALTHY.relay, isUnavailable: out.includes("relay") },
		fallback: { ...HEALTHY.fallback, isUnavailable: out.includes("fallback"), acceptsNonceGaps, accepts },
	};
}

/** The rows of one sender, and their outcomes. */
class Played {
	rows: Row[];
	sends = 0;
	time: PlanTime = NOW;
	health: UpstreamHealths;

	constructor(played: Fixture) {
		this.rows = rowsOf(played);
		this.health = healthOf(played);
	}

	/** The first row to send, after all cancels; null if nothing is left to do. */
	next(): Extract<Action, { kind: "send" }> | null {
		for (const action of plan(this.rows, this.health, this.time, 0n)) {
			const { row, to, kind } = action;
			this.#check(action);
			if (kind === "send") return action;
			if (kind === "wait") continue;
			this.change(row, (one) =>
				isLive(one) ? setReplacementPending(one, to, false) : setCancelPending(one, to, false),
			);
			return this.next();
		}
		return null;
	}

	/** Fails for an action that may never be planned. */
	#check({ kind, row, to, ...action }: Action): void {
		const there = this.health[to];
		assert.equal(there?.isUnavailable, false, `${kind} at one that is down`);
		if (kind === "cancel") assert.equal(isLive(row), false, "a live one is not cancelled");
		if (kind !== "send") return;
		assert.ok(isLive(row) && row.acknowledged, "what has ended or was refused is not sent");
		const siblings = this.rows.filter((one) => isLive(one) && one.nonce === row.nonce);
		assert.ok(
			siblings.every(({ requests }) => requests === 0),
			"a request sees to it",
		);
		assert.equal(
			siblings.findLast(({ acknowledged }) => acknowledged),
			row,
			"a later one replaces it",
		);
		if ("need" in action && action.need === "replacement") return;
		const other = to === "relay" ? "fallback" : "relay";
		const isHeld = countsAsThere(row, other) && this.health[other]?.isUnavailable === false;
		const isLost = row.at[to].presence === "lost" && there?.isOurs === true;
		assert.ok(!isHeld || isLost, "the other upstream has it, and is up");
	}

	change(row: Row, change: (row: Row) => Row): void {
		this.rows = this.rows.map((one) => (one === row ? change(one) : one));
	}

	send({ row, to }: Extract<Action, { kind: "send" }>, outcome: Outcome): void {
		this.sends += 1;
		this.change(row, (one) => {
			if (outcome === "acknowledged") return setReplacementPending(markHeld(one, to), to, false);
			if (outcome === "rejected") return markRejected(one, to, this.time);
			return outcome === "unanswered" ? markUnanswered(one, to, this.time) : delayRetry(one, to, this.time);
		});
	}

	/** Sends until nothing is left to send now. */
	rest(outcomes: readonly Outcome[]): void {
		const left = [...outcomes];
		const most = this.rows.length * UPSTREAMS.length * 2;
		const before = this.sends;
		for (let send = this.next(); send !== null; send = this.next()) {
			this.send(send, left.shift() ?? "acknowledged");
			assert.ok(this.sends - before <= most, "it comes to rest");
		}
	}
}

test("with any results of deliveries the plan keeps its rules and comes to rest", () => {
	fc.assert(
		fc.property(fixture, (one) => {
			const played = new Played(one);
			played.rest(one.outcomes);
		}),
		{ numRuns: sized(600, 3_000) },
	);
});

test("in the end every live row has a holder and every cancel was sent", () => {
	fc.assert(
		fc.property(fixture, (one) => {
			const played = new Played({ ...one, acceptsNonceGaps: true });
			played.rest(one.outcomes);
			// Both come back, which begins an epoch; requests end, and time goes by.
			played.health = healthOf({ out: [], acceptsNonceGaps: true });
			played.rows = played.rows.map((row) => ({
				...row,
				requests: 0,
				aliveUntil: NOW.now + 10 * MAX_WAIT_MS,
			}));
			for (let i = 1; i <= 3; i += 1) {
				const ms = i * (MAX_WAIT_MS + 1);
				played.time = { now: NOW.now + ms, monotonic: NOW.monotonic + ms, epoch: NOW.epoch + 1 };
				played.rest([]);
			}
			for (const row of played.rows) {
				for (const by of UPSTREAMS) assert.equal(row.at[by].cancelPending, false, "it received the cancel");
				if (!isLive(row) || !row.acknowledged || !isLatest(row, played.rows)) continue;
				const isSpent = ({ presence }: Row["at"]["relay"]) => presence === "abandoned";
				// An upstream that gave it up does not get it again. One that may not have it never gets
				// it.
				if (isSpent(row.at.relay) && (row.path !== "fast" || isSpent(row.at.fallback))) continue;
				assert.ok(
					UPSTREAMS.some((by) => countsAsThere(row, by)),
					"it has a holder",
				);
				assert.equal(mayNeedAction(row, played.health, played.time), false, "it wants nothing more");
			}
		}),
		{ numRuns: sized(600, 3_000) },
	);
});

function isLatest(row: Row, rows: readonly Row[]): boolean {
	const siblings = rows.filter((one) => isLive(one) && one.nonce === row.nonce && one.acknowledged);
	return siblings.at(-1) === row;
}

test("what an upstream has just rejected is not sent there again at once", () => {
	const relayOut = { ...HEALTHY, relay: { ...HEALTHY.relay, isUnavailable: true } };
	for (const relay of NAMES) {
		for (const fallback of NAMES) {
			const row = rowOf(1, { relay: ALL[relay], fallback: ALL[fallback] });
			const actions = [...plan([markRejected(row, "fallback", NOW)], relayOut, NOW)];
			assert.ok(!actions.some(({ kind }) => kind === "send"), `${relay} at the relay, ${fallback}`);
		}
	}
});
