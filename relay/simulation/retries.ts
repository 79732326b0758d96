// When to ask the node again to simulate what it did not support. That may pass within the block: one answer of many behind a
// balancer, or a provider's limit of a moment. A node that never does it is not asked all the time.

import type { Clock } from "../../shared/clock.ts";
import type { BlockContext } from "../domain/simulation.ts";

/** After the first answer of that kind, in ms; then after as long as there was no other. */
const FIRST_MS = 500;
/** What was not supported for so long, in ms, is not asked again for the same block. */
const LONGEST_MS = 4_000;

/** Since when the node does not support the simulation of transactions, for the same block. */
export class Retries {
	readonly #clock: Pick<Clock, "monotonic">;
	/** Monotonic ms, by the transaction's hash. */
	readonly #since = new Map<string, number>();
	#stateBlock = -1;

	constructor(clock: Pick<Clock, "monotonic">) {
		this.#clock = clock;
	}

	/** The node did not support the simulation of `hash`: in how many ms to ask again; undefined: not for the same block. */
	againMs(hash: string, { stateBlock }: BlockContext): number | undefined {
		if (stateBlock !== this.#stateBlock) this.#since.clear();
		this.#stateBlock = stateBlock;
		const now = this.#clock.monotonic();
		const since = this.#since.get(hash) ?? now;
		this.#since.set(hash, since);
		return now - since < LONGEST_MS ? Math.max(FIRST_MS, now - since) : undefined;
	}
}
