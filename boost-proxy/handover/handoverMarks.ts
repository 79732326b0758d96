// What the handover remembers of a transaction at an upstream beside the journal: that it is not sure to be there, was
// refused there, or failed a moment ago. In memory alone: after a restart it is found out again.

import type { Clock } from "../../shared/clock.ts";
import { UPSTREAMS, type UpstreamName } from "../domain/delivery.ts";

/** The first wait after a fault, doubling, and the longest one, in ms. */
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;

/** How long a refusal counts: until an upstream goes out or comes back, for a while (`notBefore`), or for ever. */
export type Refused = "untilChange" | "forNow" | "forGood";

interface Mark {
	/** `unsure`: it may have it, no verdict came. `lost`: it had it and knows nothing of it any more. */
	standing: "sure" | "unsure" | "lost";
	/** It holds an earlier one of the nonce, and got that while this one was under way. */
	owed: boolean;
	refused: Refused | null;
	faults: number;
	/** Ms of the clock's monotonic reading. */
	notBefore: number;
}

/** One mark at most for each open entry and upstream. */
export class HandoverMarks {
	readonly #clock: Clock;
	readonly #marks: Readonly<Record<UpstreamName, Map<string, Mark>>> = {
		relay: new Map(),
		fallback: new Map(),
	};
	/** Until when an upstream gets nothing, in ms of the clock's monotonic reading. */
	readonly #paused: Record<UpstreamName, number> = { relay: 0, fallback: 0 };

	constructor(dependencies: { readonly clock: Clock }) {
		this.#clock = dependencies.clock;
	}

	/** Whether `by`, a holder, is sure to have it. */
	isSure(hash: string, by: UpstreamName): boolean {
		const standing = this.#marks[by].get(hash)?.standing;
		return standing === undefined || standing === "sure";
	}

	isLost(hash: string, by: UpstreamName): boolean {
		return this.#marks[by].get(hash)?.standing === "lost";
	}

	isOwed(hash: string, by: UpstreamName): boolean {
		return this.#marks[by].get(hash)?.owed === true;
	}

	isRefused(hash: string, by: UpstreamName): boolean {
		const mark = this.#marks[by].get(hash);
		if (mark?.refused === "forNow") return mark.notBefore > this.#clock.monotonic();
		return (mark?.refused ?? null) !== null;
	}

	/** Whether it may be sent there now, as far as faults go. */
	isDue(hash: string, by: UpstreamName): boolean {
		const now = this.#clock.monotonic();
		return this.#paused[by] <= now && (this.#marks[by].get(hash)?.notBefore ?? 0) <= now;
	}

	unsure(hash: string, by: UpstreamName): void {
		this.#of(hash, by).standing = "unsure";
	}

	lost(hash: string, by: UpstreamName): void {
		this.#of(hash, by).standing = "lost";
	}

	owe(hash: string, by: UpstreamName): void {
		this.#of(hash, by).owed = true;
	}

	/** It is there for sure, or `by` is no holder any more: nothing of before counts. */
	clear(hash: string, by: UpstreamName): void {
		this.#marks[by].delete(hash);
	}

	/** `by` does not have it, and is not asked again as long as that counts: `forNow` is longer each time. */
	refuse(hash: string, by: UpstreamName, refused: Refused): void {
		const mark = this.#of(hash, by);
		mark.standing = "sure";
		mark.owed = false;
		if (mark.refused !== "forGood") mark.refused = refused;
		if (refused === "forNow") this.fault(hash, by);
	}

	/** Waits longer after each fault, but at least `atLeastMs`. */
	fault(hash: string, by: UpstreamName, atLeastMs = 0): void {
		const mark = this.#of(hash, by);
		const waitMs = Math.min(FIRST_WAIT_MS * 2 ** Math.min(mark.faults, 10), MAX_WAIT_MS);
		mark.faults += 1;
		mark.notBefore = this.#clock.monotonic() + Math.max(waitMs, Math.min(atLeastMs, MAX_WAIT_MS));
	}

	/** Nothing goes to `by` for a while. */
	pause(by: UpstreamName, ms: number): void {
		const waitMs = Math.min(Math.max(ms, FIRST_WAIT_MS), MAX_WAIT_MS);
		this.#paused[by] = this.#clock.monotonic() + waitMs;
	}

	/** An upstream went out or came back: what failed or was refused is tried once more, at once. */
	changed(): void {
		for (const by of UPSTREAMS) {
			for (const mark of this.#marks[by].values()) {
				mark.faults = 0;
				mark.notBefore = 0;
				if (mark.refused !== "forGood") mark.refused = null;
			}
		}
	}

	/** Forgets what is not open any more. */
	sweep(isOpen: (hash: string) => boolean): void {
		for (const by of UPSTREAMS) {
			for (const hash of this.#marks[by].keys()) if (!isOpen(hash)) this.#marks[by].delete(hash);
		}
	}

	#of(hash: string, by: UpstreamName): Mark {
		let mark = this.#marks[by].get(hash);
		if (mark === undefined) {
			mark = { standing: "sure", owed: false, refused: null, faults: 0, notBefore: 0 };
			this.#marks[by].set(hash, mark);
		}
		return mark;
	}
}
