// A breaker that is open or closed as a test says.

import type { Breaker } from "../../../boost-proxy/domain/ports.ts";
import type { UpstreamName } from "../../../boost-proxy/domain/request.ts";

/** In or out, as it is told. */
export class FakeBreaker implements Breaker {
	readonly upstream: UpstreamName;
	#isUnavailable = false;
	readonly #listeners: (() => void)[] = [];

	constructor(upstream: UpstreamName) {
		this.upstream = upstream;
	}

	get isUnavailable(): boolean {
		return this.#isUnavailable;
	}

	get state() {
		return this.#isUnavailable ? "open" : "closed";
	}

	get retryMs(): number {
		return this.#isUnavailable ? 1 : 0;
	}

	/** Tells who listens. */
	set(isUnavailable: boolean): void {
		this.#isUnavailable = isUnavailable;
		for (const listener of this.#listeners) listener();
	}

	onChange(listener: () => void): void {
		this.#listeners.push(listener);
	}

	run(): never {
		throw new Error("not asked for here");
	}

	note(): void {}
	force(): void {}

	status(): never {
		throw new Error("not asked for here");
	}
}
