// What the operator's page draws: the last changes of the breakers, and how long calls took in the last minutes.

import type { Clock } from "../../shared/clock.ts";
import type { UpstreamName } from "../domain/delivery.ts";
import type { Breaker, BreakerState, TripReason } from "../domain/ports.ts";

/** A breaker's change. */
export interface BreakerChange {
	/** ISO 8601. */
	readonly at: string;
	readonly upstream: UpstreamName;
	readonly state: BreakerState;
	readonly reason: TripReason | null;
}

/** The calls of five seconds. */
export interface CallTimes {
	readonly calls: number;
	readonly meanMs: number;
	readonly slowestMs: number;
}

const MAX_CHANGES = 100;
const PIECE_MS = 5_000;
/** Five minutes. */
const PIECES = 60;

/** Keeps them, in memory alone. */
export class Recent {
	readonly #clock: Clock;
	#history: readonly BreakerChange[] = [];
	/** By number since the clock's start. */
	readonly #pieces = new Map<number, { calls: number; sumMs: number; slowestMs: number }>();

	constructor(breakers: readonly Breaker[], { clock }: { readonly clock: Clock }) {
		this.#clock = clock;
		for (const breaker of breakers) {
			breaker.onChange(() => {
				const { state, reason, since } = breaker.status();
				const last = this.#history.findLast(({ upstream }) => upstream === breaker.upstream);
				if (last?.state === state && last.reason === reason) return;
				const change = { at: since, upstream: breaker.upstream, state, reason };
				this.#history = [...this.#history, change].slice(-MAX_CHANGES);
			});
		}
	}

	/** A call was answered. */
	called(seconds: number): void {
		const now = this.#piece();
		let piece = this.#pieces.get(now);
		if (piece === undefined) {
			piece = { calls: 0, sumMs: 0, slowestMs: 0 };
			this.#pieces.set(now, piece);
			for (const number of this.#pieces.keys()) if (number <= now - PIECES) this.#pieces.delete(number);
		}
		piece.calls += 1;
		piece.sumMs += seconds * 1000;
		piece.slowestMs = Math.max(piece.slowestMs, seconds * 1000);
	}

	/** Oldest first. */
	get history(): readonly BreakerChange[] {
		return this.#history;
	}

	/** Of the last five minutes, oldest first. */
	get latency(): readonly CallTimes[] {
		const now = this.#piece();
		return Array.from({ length: PIECES }, (_, i) => {
			const { calls = 0, sumMs = 0, slowestMs = 0 } = this.#pieces.get(now - PIECES + 1 + i) ?? {};
			return { calls, meanMs: calls === 0 ? 0 : sumMs / calls, slowestMs };
		});
	}

	#piece(): number {
		return Math.floor(this.#clock.monotonic() / PIECE_MS);
	}
}
