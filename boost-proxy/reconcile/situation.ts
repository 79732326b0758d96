// The input of the plan besides the rows: the time, and the upstreams' health. The health is read
// from their breakers and dialects on each access.

import type { Clock } from "../../shared/clock.ts";
import type { Upstream, Upstreams } from "../domain/ports.ts";
import type { Route, UpstreamName } from "../domain/request.ts";
import type { Rows } from "../rows/rows.ts";
import type { PlanTime, UpstreamHealth, UpstreamHealths } from "./plan.ts";

/** The health of one upstream. */
class Health implements UpstreamHealth {
	readonly #upstream: Upstream;
	pausedUntil = 0;

	constructor(upstream: Upstream) {
		this.#upstream = upstream;
	}

	get isUnavailable(): boolean {
		return this.#upstream.breaker.isUnavailable;
	}

	get isOurs(): boolean {
		return this.#upstream.dialect === null;
	}

	get acceptsNonceGaps(): boolean {
		return this.#upstream.dialect?.acceptsNonceGaps ?? true;
	}

	get canCancel(): boolean {
		return this.#upstream.dialect?.cancelMethod !== null;
	}

	get softCancels(): boolean {
		return this.#upstream.dialect?.softCancels ?? true;
	}

	accepts(route: Route): boolean {
		return this.#upstream.whyUnfit(route) === null;
	}
}

export class Situation {
	readonly health: UpstreamHealths;
	readonly #healths: Partial<Record<UpstreamName, Health>> = {};
	readonly #dependencies: { readonly rows: Rows; readonly clock: Clock };
	#epoch = 1;

	constructor({ relay, fallback }: Upstreams, dependencies: { readonly rows: Rows; readonly clock: Clock }) {
		this.#dependencies = dependencies;
		for (const upstream of fallback === null ? [relay] : [relay, fallback]) {
			this.#healths[upstream.name] = new Health(upstream);
			let wasUnavailable = upstream.breaker.isUnavailable;
			upstream.breaker.onChange(() => {
				const { isUnavailable } = upstream.breaker;
				if (isUnavailable !== wasUnavailable) this.#epoch += 1;
				wasUnavailable = isUnavailable;
			});
		}
		this.health = this.#healths;
	}

	/** A new epoch begins when an upstream becomes unavailable or available. */
	get epoch(): number {
		return this.#epoch;
	}

	time(): PlanTime {
		const { rows, clock } = this.#dependencies;
		// While the chain's time is unknown, rows that look old by the machine's clock are kept, but
		// not delivered.
		return { now: rows.chainNow ?? clock.now(), monotonic: clock.monotonic(), epoch: this.#epoch };
	}

	/** The reconciler sends no transaction there for `ms`. */
	pause(name: UpstreamName, ms: number): void {
		const health = this.#healths[name];
		if (health !== undefined) health.pausedUntil = this.#dependencies.clock.monotonic() + ms;
	}
}
