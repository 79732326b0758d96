// Finds the core: reads in the store's row who it is, and keeps this process connected with it.

import type { LookupFunction } from "node:net";
import { type Clock, pause } from "../../shared/clock.ts";
import type { Holder, HolderReader } from "../../shared/kv/postgres/holder.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { CoreConnection } from "./core.ts";
import { CoreLink } from "./coreLink.ts";

interface CoreFinderDependencies {
	readonly core: CoreConnection;
	readonly reader: Pick<HolderReader, "read" | "close">;
	/** Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	readonly clock: Clock;
	readonly log: Logger;
}

/** How often the row is read: while there is a connection, and while there is none, in ms. */
const READ_MS = 1_000;
const SEARCH_MS = 100;

/** Runs while this process is not the core. */
export class CoreFinder implements Component {
	readonly name = "core";
	readonly #deps: CoreFinderDependencies;
	readonly #stopping = new AbortController();
	#running: Promise<void> = Promise.resolve();
	/** Aborted when the connection has ended. */
	#onEnd = new AbortController();
	/** Monotonic time in ms when the core was last there. */
	#seenAt = Number.NEGATIVE_INFINITY;
	#isLost = false;

	constructor(dependencies: CoreFinderDependencies) {
		this.#deps = dependencies;
	}

	/** Ms since this process has been connected with a core last; infinite if it never was. */
	get awayMs(): number {
		const { core, clock } = this.#deps;
		const { remote } = core;
		return remote === null ? clock.monotonic() - this.#seenAt : remote.silentMs;
	}

	async start(): Promise<void> {
		this.#running = this.#run();
	}

	async stop(): Promise<void> {
		this.#stopping.abort();
		this.#onEnd.abort();
		this.#deps.core.remote?.close();
		await this.#running;
		await this.#deps.reader.close();
	}

	async #run(): Promise<void> {
		const { core, clock } = this.#deps;
		while (!this.#stopping.signal.aborted) {
			if (core.local !== null) core.remote?.close();
			else {
				const holder = await this.#holder();
				// A core that has lost the store may not know it yet.
				if (holder !== null && holder.term !== core.remote?.holder.term) await this.#connect(holder);
			}
			if (core.remote === null) await pause(clock, SEARCH_MS, this.#stopping.signal);
			else await pause(clock, READ_MS, this.#onEnd.signal);
		}
	}

	/** Null if there is none, or the database does not answer. */
	async #holder(): Promise<Holder | null> {
		try {
			return await this.#deps.reader.read();
		} catch (thrown) {
			this.#deps.log.debug("the row of the core can't be read", { fault: safeError(thrown) });
			return null;
		}
	}

	async #connect(holder: Holder): Promise<void> {
		const { core, clock, lookup, log } = this.#deps;
		const events = core.linkEvents(holder);
		const link = await CoreLink.open(holder, {
			...events,
			clock,
			lookup,
			onEnd: () => {
				events.onEnd();
				this.#ended(holder);
			},
		});
		if (link === null) return;
		if (this.#stopping.signal.aborted || core.local !== null) {
			link.close();
			return;
		}
		this.#onEnd = new AbortController();
		this.#isLost = false;
		core.connect(link);
		log.info("connected with the core", { term: holder.term });
	}

	#ended({ term }: Holder): void {
		const { core, clock, log } = this.#deps;
		if (core.remote !== null || this.#isLost) return;
		this.#seenAt = clock.monotonic();
		this.#isLost = true;
		this.#onEnd.abort();
		if (core.local === null && !this.#stopping.signal.aborted)
			log.warn("the connection with the core has ended: looking for the next one", { term });
	}
}
