// Decides when to repeat a simulation that the node did not support. The cause may pass within the
// block: an answer of one node behind a load balancer, or a brief limit of a provider. A node that
// never supports it is not asked all the time.

import type { Clock } from "../../shared/clock.ts";
import type { BlockContext } from "../domain/simulation.ts";

/**
 * Delay of the first repetition, in ms; each later delay equals the time since the first failure.
 */
const FIRST_MS = 500;
/**
 * After this much time without support, in ms, the simulation is not repeated for the same block.
 */
const LONGEST_MS = 4_000;

/**
 * Remembers since when the node has not supported the simulation of each transaction, for the same
 * block.
 */
export class Retries {
	readonly #clock: Pick<Clock, "monotonic">;
	/** When the node first did not support it, in monotonic ms, by the transaction's hash. */
	readonly #since = new Map<string, number>();
	#stateBlock = -1;

	constructor(clock: Pick<Clock, "monotonic">) {
		this.#clock = clock;
	}

	/**
	 * In how many ms to repeat the unsupported simulation of `hash`; undefined if not for the same
	 * block.
	 */
	againMs(hash: string, { stateBlock }: BlockContext): number | undefined {
		if (stateBlock !== this.#stateBlock) this.#since.clear();
		this.#stateBlock = stateBlock;
		const now = this.#clock.monotonic();
		const since = this.#since.get(hash) ?? now;
		this.#since.set(hash, since);
		return now - since < LONGEST_MS ? Math.max(FIRST_MS, now - since) : undefined;
	}
}
