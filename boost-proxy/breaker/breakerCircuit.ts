// opossum with its own will taken from it: what comes in is work that resolves to a verdict or throws a charged fault,
// what goes out is what it came to. It holds open or closed, and never changes from one to the other by itself.

import CircuitBreaker from "opossum";
import type { Attempted } from "../domain/breakerPorts.ts";

/** What is thrown into opossum for a charged fault, so that it is never taken for a success; no error, so no stack. */
export class ChargedFault {
	readonly attempted: Attempted;
	constructor(attempted: Attempted) {
		this.attempted = attempted;
	}
}

/**
 * Longer than any attempt's own deadline, in ms. An attempt that reaches it has none, which is a fault of ours; without
 * it (`timeout: false`) such a one would count as in flight for ever.
 */
const ATTEMPT_MAX_MS = 600_000;

/** The longest delay a timer takes, in ms: opossum knows no "never". */
const NEVER_MS = 2 ** 31 - 1;

/** The state of one upstream's guard, held by opossum. */
export class Circuit {
	readonly #opossum: CircuitBreaker<[() => Promise<Attempted>], Attempted>;

	constructor(name: string) {
		this.#opossum = new CircuitBreaker((work: () => Promise<Attempted>) => work(), {
			name,
			timeout: ATTEMPT_MAX_MS,
			// Its statistics decide nothing: they count attempts in flight as if they had gone well, so that a hang dilutes
			// its own rate, and know no silence, no senders and no generations.
			errorThresholdPercentage: 100,
			volumeThreshold: Number.MAX_SAFE_INTEGER,
			rollingPercentilesEnabled: false,
			enableSnapshots: false,
			// One second of them is kept, for nobody: each failure sums them up.
			rollingCountTimeout: 1_000,
			rollingCountBuckets: 1,
			resetTimeout: NEVER_MS,
		});
		// Half-open, the next success of anybody's would close it. After 25 days even "never" is over.
		this.#opossum.on("halfOpen", () => this.#opossum.open());
	}

	/** Whether nothing may be fired. */
	get isOpen(): boolean {
		return this.#opossum.opened || this.#opossum.isShutdown;
	}

	open(): void {
		this.#opossum.open();
	}

	close(): void {
		this.#opossum.close();
	}

	/**
	 * Runs `work`, which throws {@link ChargedFault} for what is charged; both ways what was attempted is answered. To be
	 * asked of {@link isOpen} before: opossum counts what it rejects. Rejects with what else `work` throws.
	 */
	async fire<T extends Attempted>(work: () => Promise<T>): Promise<T> {
		try {
			return (await this.#opossum.fire(work)) as T;
		} catch (thrown) {
			if (thrown instanceof ChargedFault) return thrown.attempted as T;
			throw thrown;
		}
	}

	/** Ends its timers; it is open from then on. What was fired goes on. */
	shutdown(): void {
		this.#opossum.shutdown();
	}
}
