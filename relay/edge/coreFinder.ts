// Finds the core in the store's row, and keeps this process connected with it.

import type { LookupFunction } from "node:net";
import { type Clock, pause } from "../../shared/clock.ts";
import { DatabaseDownError, DatabaseRefusedError } from "../../shared/kv/postgres/errors.ts";
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
	/** CORE_TIMEOUT_MS. */
	readonly timeoutMs: number;
	readonly log: Logger;
}

/** How often the row is read, in ms: with a connection, and without one. */
const READ_MS = 1_000;
const SEARCH_MS = 100;
/** How long an edge stays ready without a core, in ms; meanwhile another relay takes over. */
const AWAY_MS = 5_000;
/** Why there is no core to connect with. */
const [NO_HOLDER, NO_DATABASE] = ["no relay has the store", "the database can't be read"];

/** Runs while this process is not the core. */
export class CoreFinder implements Component {
	readonly name = "core";
	readonly #dependencies: CoreFinderDependencies;
	readonly #stopping = new AbortController();
	#running: Promise<void> = Promise.resolve();
	/** Aborted when the connection has ended. */
	#onEnd = new AbortController();
	/** When the connection with the core ended, in monotonic ms. */
	#seenAt = Number.NEGATIVE_INFINITY;
	#isLost = false;
	/** When the search for the core began, in monotonic ms. */
	#searchedSince = 0;
	#trouble: string = NO_HOLDER;
	#isLogged = false;

	constructor(dependencies: CoreFinderDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Time since the last sign of the core, in ms; infinite if this process was never connected
	 * with one.
	 */
	get awayMs(): number {
		const { core, clock } = this.#dependencies;
		const { remote } = core;
		return remote === null ? clock.monotonic() - this.#seenAt : remote.silentMs;
	}

	/** Whether the core has been away for so long that clients should go elsewhere. */
	get isAway(): boolean {
		return this.awayMs >= AWAY_MS;
	}

	/** Why the last try to connect failed. It is public, so it has no address. */
	get trouble(): string {
		return this.#trouble;
	}

	async start(): Promise<void> {
		this.#searchedSince = this.#dependencies.clock.monotonic();
		this.#running = this.#run();
	}

	async stop(): Promise<void> {
		this.#stopping.abort();
		this.#onEnd.abort();
		await this.#running;
		await this.#dependencies.reader.close();
	}

	async #run(): Promise<void> {
		const { core, clock } = this.#dependencies;
		while (!this.#stopping.signal.aborted) {
			if (core.local !== null) {
				core.remote?.close();
				this.#searchedSince = clock.monotonic();
			} else {
				const holder = await this.#holder();
				// A core that has lost the store may not know it yet, and this process may be about
				// to become the core.
				const known = [core.remote?.holder.secret, core.ownSecret];
				if (holder !== null && !known.includes(holder.secret)) await this.#connect(holder);
				if (core.remote === null) this.#tell();
			}
			if (core.remote === null) await pause(clock, SEARCH_MS, this.#stopping.signal);
			else await pause(clock, READ_MS, this.#onEnd.signal);
		}
	}

	/** The owner of the store; null if there is none, or the database does not answer. */
	async #holder(): Promise<Holder | null> {
		try {
			const holder = await this.#dependencies.reader.read();
			if (holder === null) this.#trouble = NO_HOLDER;
			return holder;
		} catch (thrown) {
			const isOurs = thrown instanceof DatabaseDownError || thrown instanceof DatabaseRefusedError;
			this.#trouble = isOurs ? thrown.message : NO_DATABASE;
			this.#dependencies.log.debug("could not read the core's row", { fault: safeError(thrown) });
			return null;
		}
	}

	async #connect(holder: Holder): Promise<void> {
		const { core, clock, timeoutMs, lookup, log } = this.#dependencies;
		const events = core.linkEvents(holder);
		const link = await CoreLink.open(holder, {
			...events,
			clock,
			timeoutMs,
			lookup,
			stopped: this.#stopping.signal,
			onEnd: () => {
				events.onEnd();
				this.#ended(holder);
			},
		});
		if (link === null) {
			this.#trouble = `the relay of term ${holder.term} does not answer at its INTERNAL_URL`;
			return;
		}
		if (this.#stopping.signal.aborted || core.local !== null) {
			link.close();
			return;
		}
		this.#onEnd = new AbortController();
		this.#isLost = false;
		this.#isLogged = false;
		core.connect(link);
		log.info("connected to the core", { term: holder.term });
	}

	#ended({ term }: Holder): void {
		const { core, clock, log } = this.#dependencies;
		if (core.remote !== null || this.#isLost) return;
		this.#seenAt = clock.monotonic();
		this.#searchedSince = this.#seenAt;
		this.#isLost = true;
		this.#onEnd.abort();
		if (core.local === null && !this.#stopping.signal.aborted)
			log.warn("connection to the core ended, looking for the next core", { term });
	}

	/** Logs once that the search takes long. */
	#tell(): void {
		const { core, clock, log } = this.#dependencies;
		if (this.#isLogged || core.local !== null || clock.monotonic() - this.#searchedSince < AWAY_MS) return;
		this.#isLogged = true;
		log.warn("no core reachable", { reason: this.#trouble });
	}
}
