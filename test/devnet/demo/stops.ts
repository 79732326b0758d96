// Stops all that was started, once, the last one first.

/** Thrown into what goes on starting things after the end. */
export class AlreadyStopping extends Error {
	constructor() {
		super("it is being stopped");
		this.name = "AlreadyStopping";
	}
}

/** Everything that has to be stopped. */
export class Stops {
	readonly #stops: (() => Promise<void>)[] = [];
	#stopping: Promise<void> | undefined;

	/** True from the first call of {@link all} on. */
	get begun(): boolean {
		return this.#stopping !== undefined;
	}

	/** To be called as soon as something runs. Where the end has begun, it is stopped at once, and this throws. */
	add(stop: () => Promise<void>): void {
		this.#stops.push(stop);
		if (!this.begun) return;
		stop().catch(() => {});
		throw new AlreadyStopping();
	}

	/** Stops all of it. What fails to stop keeps nothing else from it. */
	all(): Promise<void> {
		this.#stopping ??= this.#stopThem();
		return this.#stopping;
	}

	async #stopThem(): Promise<void> {
		for (const stop of [...this.#stops].reverse()) await stop().catch(() => {});
	}
}
