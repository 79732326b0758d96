// Several boost instances on one database. Each account has a home: the instance that wrote it
// last, which looks after it. Any instance decides any request; of two that decide at the same
// time, one loses and decides again. This one reports that it is alive, takes over the accounts of
// instances that are silent or do not reach the relay, and reads what the others have written.

import { type Background, Loop, type Pass } from "../../shared/background.ts";
import { clientOf } from "../../shared/client.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import type { OtherInstance } from "../../shared/kv/port.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import {
	type AccountRequest,
	LostRaceError,
	type OtherBoosts,
	UnknownElsewhereError,
} from "../domain/ports.ts";
import { isLive, type Row } from "../domain/row.ts";
import type { Rows } from "../rows/rows.ts";
import { HashLookups } from "./hashLookups.ts";

export interface HomesDependencies {
	readonly shared: NonNullable<Rows["shared"]>;
	readonly rows: Rows;
	/** Whether this instance reaches our relay. */
	readonly reachesRelay: () => boolean;
	readonly clock: Clock;
	readonly background: Background;
	readonly log: Logger;
}

/** How often it reports and looks for the others, in ms. */
const LOOK_MS = 1_000;
/** How long a look without other instances stays valid, in ms. A new one serves after that. */
const ALONE_MS = 2_000;
/** How long the database gets no query after it did not answer, in ms. */
const DOWN_MS = 1_000;
/** How often it removes accounts whose rows are all gone, in ms. */
const PURGE_MS = 600_000;
/** Number of accounts in memory that are compared with the database in each look. */
const COMPARED = 500;

/** There is always a next pass. */
const AGAIN: Pass = { left: true, scanMs: 0 };

/** Subjects that a refused request would need to know about. */
const THIS_TRANSACTION = "this transaction";
const THIS_ACCOUNT = "transactions of this account";

export class Homes implements OtherBoosts {
	readonly #dependencies: HomesDependencies;
	readonly #stopping = new AbortController();
	readonly #reports: Loop;
	readonly #looks: Loop;
	readonly #lookups: HashLookups;
	/** The last look that the database answered. */
	#seen: Seen | null = null;
	/** When memory had all rows of a database without other instances, in monotonic ms. */
	#aloneAt = Number.NEGATIVE_INFINITY;
	#downUntil = Number.NEGATIVE_INFINITY;
	/** The rest of the accounts in memory, whose comparison goes on in the next look. */
	#comparing: Iterator<Row> | null = null;
	/** Whether accounts may have homes whose names are gone. */
	#hasOrphans = true;
	/** How often it has seen other instances, alive or silent. */
	#met = 0;
	/** Whether accounts of this instance may not be in memory. */
	#isUnread = false;
	/** {@link #met} when memory had all rows; -1: it never had. */
	#completeSince = -1;
	/** When accounts are removed next, in monotonic ms. */
	#purgeAt = Number.NEGATIVE_INFINITY;
	#isFailing = false;
	/** In monotonic ms. */
	readonly #begunAt: number;
	/** Number of accounts that were taken over. */
	takenOver = 0;

	constructor(dependencies: HomesDependencies) {
		this.#dependencies = dependencies;
		this.#begunAt = dependencies.clock.monotonic();
		const { shared, clock } = dependencies;
		this.#lookups = new HashLookups({ accounts: shared.accounts, clock });
		this.#reports = new Loop({ task: "homes", tickMs: LOOK_MS }, dependencies, async () => {
			await this.#report();
			return AGAIN;
		});
		this.#looks = new Loop({ task: "homes", tickMs: LOOK_MS }, dependencies, async () => {
			await this.#look();
			return AGAIN;
		});
	}

	/** The name of this instance. */
	get own(): string {
		return this.#dependencies.shared.accounts.instance;
	}

	/** Number of boost instances that the database knows, including this one. */
	get count(): number {
		return 1 + (this.#seen?.others ?? 0);
	}

	/** All instances at the last look that the database answered, this one first. */
	get list(): readonly OtherInstance[] {
		const { clock, reachesRelay } = this.#dependencies;
		const now = clock.monotonic();
		const { instances = [], at = this.#begunAt } = this.#seen ?? {};
		const seconds = (now - at) / 1_000;
		const own = { name: this.own, isSilent: false, reaches: reachesRelay(), secondsAgo: seconds };
		return [
			{ ...own, upSeconds: (now - this.#begunAt) / 1_000 },
			...instances.map((one) => ({
				...one,
				...{ upSeconds: one.upSeconds + seconds, secondsAgo: one.secondsAgo + seconds },
			})),
		];
	}

	/** Whether another instance reported at its last look that it reaches the relay. */
	get doOthersReach(): boolean {
		return this.#seen?.doOthersReach === true;
	}

	get wasAlone(): boolean {
		return this.#seen?.others === 0;
	}

	get isAlone(): boolean {
		return this.#dependencies.clock.monotonic() - this.#aloneAt < ALONE_MS;
	}

	/** Starts only once the other instances have seen it. */
	get component(): Component {
		return {
			name: "homes",
			start: async () => {
				await this.#report();
				this.#reports.trigger();
				await this.#look();
				if (this.#seen === null || this.count > 1)
					await pause(this.#dependencies.clock, ALONE_MS, this.#stopping.signal);
				this.#looks.trigger();
			},
			stop: async () => {
				this.#stopping.abort();
				await Promise.all([this.#looks.stop(), this.#reports.stop()]);
			},
		};
	}

	async find(hash: string, address: string): Promise<Row | null> {
		const { rows, shared } = this.#dependencies;
		const own = await rows.findIfReadable(hash);
		try {
			const isOwn =
				own !== null && (await this.#ask(THIS_TRANSACTION, () => this.#isHere(own.from))) !== false;
			if (isOwn) return own;
			// A failed look-up proves nothing about the database, since any client can cause one.
			const ask = () => this.#lookups.find(hash, clientOf(address));
			const records = await this.#ask(THIS_TRANSACTION, ask, () => {});
			if (records === null) return own;
			const { open, settled } = await shared.decoded([records]);
			return [...open.filter(isLive), ...open, ...settled][0] ?? null;
		} catch (thrown) {
			// Its own accounts are known to this instance.
			if (own !== null && shared.accounts.isHome(own.from)) return own;
			throw thrown;
		}
	}

	/** Whether memory has all rows, since no other instance has been seen in between. */
	get #isComplete(): boolean {
		return this.#completeSince === this.#met;
	}

	/** Whether this instance is the home of an account and has its latest rows. */
	async #isHere(from: string): Promise<boolean> {
		const { accounts } = this.#dependencies.shared;
		return accounts.isHome(from) && (await accounts.isCurrent(from));
	}

	async liveOf(from: string): Promise<readonly Row[]> {
		const { rows, shared } = this.#dependencies;
		const found = await this.#ask(THIS_ACCOUNT, async () => {
			return (await this.#isHere(from)) ? null : shared.stored(from);
		});
		return found ?? rows.liveOf(from);
	}

	async withRowsOf<T>(request: AccountRequest, work: () => Promise<T>): Promise<T> {
		const { shared, clock } = this.#dependencies;
		const until = clock.monotonic() + request.ms;
		for (;;) {
			const leave = await this.#ask(THIS_TRANSACTION, () => shared.enter(request));
			try {
				return await work();
			} catch (thrown) {
				if (!(thrown instanceof LostRaceError)) throw thrown;
				if (clock.monotonic() >= until)
					throw new RpcError(
						"unavailable",
						"no relay available: other requests about this account come first",
					);
			} finally {
				leave?.();
			}
		}
	}

	/** Reports to the others, and reads what they have reported. Waits for nothing else. */
	async #report(): Promise<void> {
		const { shared, reachesRelay, clock } = this.#dependencies;
		try {
			const begun = clock.monotonic();
			const reaches = reachesRelay();
			const others = await shared.accounts.report(reaches);
			const alive = others.filter(({ isSilent }) => !isSilent);
			this.#seen = {
				...{ instances: others, at: begun },
				...{ others: alive.length, doOthersReach: alive.some((one) => one.reaches) },
				silent: others.filter(({ isSilent }) => isSilent).map(({ name }) => name),
				unable: reaches ? alive.filter((one) => !one.reaches).map(({ name }) => name) : [],
			};
			if (others.length > 0) this.#met += 1;
			if (this.#isComplete) this.#aloneAt = begun;
			this.#isFailing = false;
		} catch (thrown) {
			this.#failed(thrown);
		}
	}

	/** Takes over what others leave, and drops from memory what they have written. */
	async #look(): Promise<void> {
		const { rows, shared, reachesRelay, clock, log } = this.#dependencies;
		const { accounts } = shared;
		const seen = this.#seen;
		const met = this.#met;
		if (seen === null) return;
		try {
			const { silent } = seen;
			const unable = reachesRelay() ? seen.unable : [];
			const isDue = silent.length + unable.length > 0 || this.#hasOrphans;
			if (isDue) await this.#takeOver([...silent, ...unable]);
			this.#hasOrphans = false;
			if (this.#isUnread) await this.#readOwned();
			if (silent.length > 0) {
				// Their last writes may come before that.
				this.#hasOrphans = true;
				await accounts.bury(silent);
				log.info("boost instances have ended", { count: silent.length });
			}
			if (seen.others > 0) await this.#compare();
			else if (!this.#isComplete) {
				// Rows that others have ended are in the database only.
				await rows.readEnded();
				this.#completeSince = met;
			}
			if (clock.monotonic() < this.#purgeAt) return;
			this.#purgeAt = clock.monotonic() + PURGE_MS;
			if (await accounts.purge()) this.#purgeAt = Number.NEGATIVE_INFINITY;
		} catch (thrown) {
			log.warn("could not take over accounts", { fault: safeError(thrown) });
		}
	}

	/** Takes over the accounts of these instances, and those whose instances' names are gone. */
	async #takeOver(from: readonly string[]): Promise<void> {
		const { accounts } = this.#dependencies.shared;
		// Until all that were taken over are read, some may have nobody who looks after them.
		const wasUnread = this.#isUnread;
		this.#isUnread = true;
		while (!this.#stopping.signal.aborted) {
			const senders = await accounts.takeOver(from);
			if (senders.length === 0) break;
			await this.#takeIn(senders);
		}
		this.#isUnread = wasUnread;
	}

	/** Reads the accounts whose home this instance is, and that it has not read. */
	async #readOwned(): Promise<void> {
		const { accounts } = this.#dependencies.shared;
		const owned = await accounts.owned();
		await this.#takeIn(owned.filter((sender) => !accounts.isHome(sender)));
		this.#isUnread = false;
	}

	async #takeIn(senders: readonly string[]): Promise<void> {
		const { shared, clock, log } = this.#dependencies;
		if (senders.length === 0) return;
		const begun = clock.monotonic();
		await shared.takeIn(senders);
		this.takenOver += senders.length;
		log.info("accounts taken over", { count: senders.length, ms: clock.monotonic() - begun });
	}

	/** Drops accounts from memory that other instances have written since, some in each look. */
	async #compare(): Promise<void> {
		const { rows, shared } = this.#dependencies;
		const senders = new Set<string>();
		while (senders.size < COMPARED) {
			this.#comparing ??= rows.allLive();
			const { value, done } = this.#comparing.next();
			if (done === true) {
				this.#comparing = null;
				break;
			}
			senders.add(value.from);
		}
		await shared.refresh([...senders]);
	}

	/**
	 * The database's answer. Without one, the other instances' state of `what` is unknown, so this
	 * throws. The exception: if no other instance was known at the last answer, this one carries on,
	 * and gets null.
	 */
	async #ask<T>(
		what: string,
		question: () => Promise<T>,
		onDown = (thrown: unknown) => this.#failed(thrown),
	): Promise<T | null> {
		if (this.#dependencies.clock.monotonic() >= this.#downUntil) {
			try {
				return await question();
			} catch (thrown) {
				if (thrown instanceof RpcError) throw thrown;
				onDown(thrown);
			}
		}
		if (this.wasAlone) return null;
		throw new UnknownElsewhereError(what);
	}

	#failed(thrown: unknown): void {
		const { clock, log } = this.#dependencies;
		if (!this.#isFailing)
			log.warn("could not read the rows of all boost instances", { fault: safeError(thrown) });
		this.#isFailing = true;
		this.#downUntil = clock.monotonic() + DOWN_MS;
	}
}

/** The other instances at the last look that the database answered. */
interface Seen {
	/** All that the database knows. */
	readonly instances: readonly OtherInstance[];
	/** In monotonic ms. */
	readonly at: number;
	/** The number of those that are alive. */
	readonly others: number;
	readonly doOthersReach: boolean;
	/** The names of those that are silent, and of those that do not reach the relay. */
	readonly silent: readonly string[];
	readonly unable: readonly string[];
}
