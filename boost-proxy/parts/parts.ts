// Several boost instances on one database: each has a part of the journal. This one adopts the
// parts of instances that are gone. It moves an account's rows to the instance that its wallet
// uses, and reads the others' records.

import { type Background, Loop } from "../../shared/background.ts";
import { clientOf } from "../../shared/client.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { archivedKey } from "../../shared/kv/archive.ts";
import type {
	KeyValueStore,
	LeftPart,
	OtherPart,
	PartRecord,
	StoreParts,
	Wish,
} from "../../shared/kv/port.ts";
import type { Component } from "../../shared/lifecycle.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import { replacedAmong } from "../domain/mergedRow.ts";
import {
	type AccountRequest,
	type Elsewhere,
	type ElsewhereRow,
	NOWHERE_ELSE,
	type OtherBoosts,
	UnknownElsewhereError,
} from "../domain/ports.ts";
import { isEndedByUser, isFinal, type Row, setReplacementPending } from "../domain/row.ts";
import { RowReader } from "../journal/readRows.ts";
import { keysOf } from "../journal/records.ts";
import type { Rows } from "../rows/rows.ts";
import { adopt } from "./adoption.ts";
import { HashLookups } from "./hashLookups.ts";
import { NOTHING, rowsOf, type Seen, seenIn, sorted } from "./seen.ts";

export interface PartsDependencies {
	readonly parts: StoreParts;
	readonly rows: Rows;
	/**
	 * Keeps the reconciler from an account until the returned function is called. Resolves once it
	 * has no work in progress for it.
	 */
	readonly hold: (from: string) => Promise<() => void>;
	/** Whether a part has this version's format and belongs to this chain. */
	readonly fits: (other: KeyValueStore) => Promise<boolean>;
	readonly clock: Clock;
	readonly background: Background;
	readonly log: Logger;
}

/** How often it looks for the other parts, in ms. */
const LOOK_MS = 1_000;
/** How long a look without other instances stays valid, in ms. A new one serves after that. */
const ALONE_MS = 2_000;
/** How long the database gets no query after it did not answer, in ms. */
const DOWN_MS = 1_000;
/**
 * Ms without news until a request for rows is checked again, and until its target counts as gone.
 */
const ASK_AGAIN_MS = 100;
const GONE_MS = 300;
/** How long a request waits for an account's rows if none of them has its nonce, in ms. */
const OTHER_NONCE_MS = 1_000;
/** The maximum number of accounts to look for again while the database does not answer. */
const MAX_RECENT = 100_000;
/** How long a transfer waits for an account's requests to end, in ms; then it is tried again. */
const GRANT_MS = 2_000;
const GRANT_STEP_MS = 20;

/** Subjects that a refused request would need to know about. */
const THIS_TRANSACTION = "this transaction";
const THIS_ACCOUNT = "transactions of this account";

export class Parts implements OtherBoosts {
	readonly #dependencies: PartsDependencies;
	readonly #stopping = new AbortController();
	readonly #looks: Loop;
	readonly #grants: Loop;
	readonly #lookups: HashLookups;
	/** The last look that the database answered: when it began (monotonic ms), and its result. */
	#seen: { readonly at: number; readonly others: readonly OtherPart[] } | null = null;
	#downUntil = Number.NEGATIVE_INFINITY;
	/** Accounts with requests in progress, and their number. Their rows stay here. */
	readonly #pinned = new Map<string, number>();
	/** Accounts whose rows are moving here. */
	readonly #gathering = new Map<string, Promise<void>>();
	/** Requests for rows that are being granted: account and part. */
	readonly #granting = new Set<string>();
	/** Accounts whose rows are moving to another instance. */
	readonly #giving = new Map<string, Promise<void>>();
	/**
	 * Accounts with requests since the last look. Another instance may have had one simultaneously.
	 */
	readonly #recent = new Set<string>();
	readonly #adopting = new Map<string, Promise<void>>();
	/** Parts of another chain or format. */
	readonly #foreign = new Set<string>();
	/** Wakes callers that wait for news. */
	#news: { readonly promise: Promise<void>; readonly resolve: () => void } = newNews();
	/** Accounts whose rows may have moved here without being loaded. */
	readonly #unfinished = new Set<string>();
	#isFailing = false;
	/** Number of parts that were adopted. */
	adopted = 0;

	constructor(dependencies: PartsDependencies) {
		this.#dependencies = dependencies;
		const { parts } = dependencies;
		this.#lookups = new HashLookups(dependencies);
		this.#looks = new Loop({ task: "parts", tickMs: LOOK_MS }, dependencies, async () => {
			await this.#look();
			return { left: true, scanMs: 0 };
		});
		this.#grants = new Loop({ task: "parts", tickMs: LOOK_MS }, dependencies, async () => {
			await this.#grantAll();
			return { left: true, scanMs: 0 };
		});
		parts.onNews(() => {
			this.#news.resolve();
			this.#news = newNews();
			this.#grants.trigger();
		});
	}

	/** The name of this instance's part. */
	get own(): string {
		return this.#dependencies.parts.own;
	}

	/** Number of boost instances that the database knows, including this one. */
	get count(): number {
		return 1 + (this.#seen?.others.filter(({ isLeft }) => !isLeft).length ?? 0);
	}

	/** Whether the database's last answer showed no other instance. False before the first answer. */
	get wasAlone(): boolean {
		return this.#seen !== null && this.#seen.others.length === 0;
	}

	get isAlone(): boolean {
		const { clock } = this.#dependencies;
		return (
			this.#seen !== null && this.#seen.others.length === 0 && clock.monotonic() - this.#seen.at < ALONE_MS
		);
	}

	/** Starts only once the other instances have seen it. */
	get component(): Component {
		return {
			name: "parts",
			start: async () => {
				await this.#see().catch((thrown: unknown) => this.#isDown(thrown));
				if (this.#seen === null || this.count > 1)
					await pause(this.#dependencies.clock, ALONE_MS, this.#stopping.signal);
				this.#looks.trigger();
				this.#grants.trigger();
			},
			stop: async () => {
				this.#stopping.abort();
				await Promise.all([this.#looks.stop(), this.#grants.stop()]);
				await Promise.all([...this.#gathering.values(), ...this.#adopting.values()]);
			},
		};
	}

	async find(hash: string, address: string): Promise<ElsewhereRow | null> {
		if (this.isAlone) return null;
		// Rows here that are not in memory are moving here or away. A failed look-up proves nothing
		// about the database, since any client can cause one.
		const ask = () => this.#lookups.find(hash, clientOf(address));
		const { live, ended } = await this.#ask(THIS_TRANSACTION, ask, () => {});
		return live[0] ?? ended.find(({ row }) => isEndedByUser(row)) ?? ended[0] ?? null;
	}

	async liveOf(from: string): Promise<readonly Row[]> {
		if (this.isAlone) return [];
		const { parts, clock } = this.#dependencies;
		// Rows that are moving would be missed at both ends.
		const moving = this.#giving.get(from) ?? this.#gathering.get(from);
		if (moving !== undefined) await Promise.race([moving, pause(clock, OTHER_NONCE_MS)]);
		const { live } = await this.#ask(THIS_ACCOUNT, () => parts.ofSender(from, ""));
		this.#checkMoved(from, live.length);
		return rowsOf(live);
	}

	async withRowsOf<T>(request: AccountRequest, work: (elsewhere: Elsewhere) => Promise<T>): Promise<T> {
		const { from } = request;
		const elsewhere = this.isAlone && !this.#giving.has(from) ? NOWHERE_ELSE : await this.#bring(request);
		// At once, so that no other instance gets them in between.
		this.#pinned.set(from, (this.#pinned.get(from) ?? 0) + 1);
		if (this.#recent.size < MAX_RECENT) this.#recent.add(from);
		try {
			return await work(elsewhere);
		} finally {
			const count = (this.#pinned.get(from) ?? 1) - 1;
			if (count > 0) this.#pinned.set(from, count);
			else {
				this.#pinned.delete(from);
				if (!this.isAlone) this.#grants.trigger();
			}
		}
	}

	async #bring({ from, hash, nonce, ms }: AccountRequest): Promise<Elsewhere> {
		const { parts, clock } = this.#dependencies;
		const ask = () => this.#ask(THIS_TRANSACTION, () => parts.ofSender(from, archivedKey(hash)));
		const begun = clock.monotonic();
		let seen = await ask();
		while (!this.#stopping.signal.aborted) {
			let moving = this.#giving.get(from) ?? this.#gathering.get(from);
			if (moving === undefined && seen.live.length === 0) break;
			const isSameNonce = moving !== undefined || seen.live.some(({ row }) => row.nonce === nonce);
			const leftMs = begun + (isSameNonce ? ms : Math.min(ms, OTHER_NONCE_MS)) - clock.monotonic();
			if (leftMs <= 0) {
				this.#checkMoved(from, seen.live.length);
				break;
			}
			moving ??= this.#gather(from, seen);
			await Promise.race([moving, pause(clock, leftMs)]);
			seen = await ask();
		}
		const ended = seen.ended.find(({ row }) => row.hash === hash && isFinal(row))?.row ?? null;
		return { live: rowsOf(seen.live), ended };
	}

	/**
	 * Throws if rows of an account are moving, and are neither in memory nor among the `found` ones
	 * of other parts.
	 */
	#checkMoved(from: string, found: number): void {
		if (!this.#giving.has(from) && !(this.#gathering.has(from) && found === 0)) return;
		throw new UnknownElsewhereError("the account's transactions are being moved", THIS_ACCOUNT);
	}

	/** Has an account's rows moved here, if the instances that have them answer. */
	#gather(from: string, seen: Seen): Promise<void> {
		const running = this.#gathering.get(from);
		if (running !== undefined) return running;
		const wanted = [...new Set(seen.live.map(({ part }) => part))];
		const gathering = this.#gatherNow(from, wanted)
			.catch((thrown: unknown) => {
				this.#isDown(thrown);
				this.#unfinished.add(from);
			})
			.finally(() => {
				this.#gathering.delete(from);
				this.#grants.trigger();
			});
		this.#gathering.set(from, gathering);
		return gathering;
	}

	async #gatherNow(from: string, wanted: readonly string[]): Promise<void> {
		const { parts, clock } = this.#dependencies;
		const { signal } = this.#stopping;
		const until = clock.monotonic() + GONE_MS;
		await parts.wish(from, wanted);
		for (;;) {
			const news = this.#news.promise;
			if (signal.aborted || !(await parts.isOpen(from))) break;
			if (clock.monotonic() >= until) {
				// An instance that does not answer may be gone. Its part can then be adopted at once.
				await Promise.all(wanted.map((part) => this.#adopt(part)));
				break;
			}
			await Promise.race([news, pause(clock, ASK_AGAIN_MS, signal)]);
		}
		await this.#finish(from);
	}

	/** Loads the rows that were granted, in time or late. After that no more are granted. */
	async #finish(from: string): Promise<void> {
		const { parts, rows, log } = this.#dependencies;
		await parts.unwish(from);
		const reader = new RowReader(log);
		for (const { key, value } of sorted(await parts.ownOf(from))) reader.take(key, value);
		await rows.takeIn(reader.rows().filter(({ hash }) => !rows.isUnwritten(hash)));
		this.#unfinished.delete(from);
		this.#settle(from);
	}

	/** Ends all but the last row that instances accepted independently for one nonce. */
	#settle(from: string): void {
		const { rows } = this.#dependencies;
		for (const { row, by, at } of replacedAmong(rows.liveOf(from))) {
			rows.changeLive(by.hash, (one) =>
				at.reduce((now, name) => setReplacementPending(now, name, true), one),
			);
			rows.end(row, "replaced", at);
		}
	}

	async #see(): Promise<void> {
		const { parts, clock } = this.#dependencies;
		const at = clock.monotonic();
		this.#seen = { at, others: await parts.others() };
		this.#isFailing = false;
	}

	/**
	 * Finds the other parts, adopts abandoned ones, and merges simultaneous rows of two instances.
	 */
	async #look(): Promise<void> {
		try {
			await this.#see();
			for (const from of [...this.#unfinished]) await this.#finish(from);
			const others = this.#seen?.others ?? [];
			for (const { part, isLeft } of others) if (isLeft) await this.#adopt(part);
			const recent = [...this.#recent];
			this.#recent.clear();
			if (recent.length > 0 && others.length > 0) await this.#gatherStrays(recent);
		} catch (thrown) {
			this.#isDown(thrown);
		}
	}

	async #gatherStrays(recent: readonly string[]): Promise<void> {
		const { parts, rows, log } = this.#dependencies;
		const left = new Set(recent);
		try {
			const found = new Set(await parts.alsoElsewhere(recent));
			for (const from of recent) if (!found.has(from)) left.delete(from);
			for (const from of found) {
				const seen = seenIn(await parts.ofSender(from, ""), log);
				// All of them may have moved to the instance that was used since.
				if (seen.live.length > 0 && rows.liveOf(from).length > 0) await this.#gather(from, seen);
				else left.delete(from);
			}
		} finally {
			for (const from of left) this.#recent.add(from);
		}
	}

	/** Adopts a part if its instance is gone. */
	#adopt(part: string): Promise<void> {
		const running =
			this.#adopting.get(part) ?? this.#adoptNow(part).finally(() => this.#adopting.delete(part));
		this.#adopting.set(part, running);
		return running;
	}

	async #adoptNow(part: string): Promise<void> {
		const { parts, rows, fits, log, clock } = this.#dependencies;
		if (this.#foreign.has(part)) return;
		let left: LeftPart | null = null;
		try {
			left = await parts.open(part);
			if (left === null) return;
			if (!(await fits(left))) {
				this.#foreign.add(part);
				log.error("another instance's part has another chain or version: not sending its transactions", {
					store: part,
				});
				await left.leave(false);
				return;
			}
			const begun = clock.monotonic();
			log.info("adopting the part of a stopped instance", { store: part });
			const { open, archived } = await adopt(left, { rows, log });
			await left.leave(true);
			for (const { from } of open) {
				this.#recent.add(from);
				this.#settle(from);
			}
			this.adopted += 1;
			log.info("part adopted", {
				store: part,
				count: open.length + archived,
				ms: clock.monotonic() - begun,
			});
		} catch (thrown) {
			log.warn("could not adopt a part", { store: part, fault: safeError(thrown) });
			await left?.leave(false).catch(() => {});
		}
	}

	async #grantAll(): Promise<void> {
		const { parts, background } = this.#dependencies;
		if (this.isAlone) return;
		try {
			for (const wish of await parts.wishes()) {
				const key = `${wish.sender} ${wish.taker}`;
				if (this.#granting.has(key)) continue;
				this.#granting.add(key);
				background.run("parts", () => this.#grant(wish).finally(() => this.#granting.delete(key)));
			}
		} catch (thrown) {
			this.#isDown(thrown);
		}
	}

	/** Moves an account's rows to the instance that requests them, once no request uses them. */
	async #grant(wish: Wish): Promise<void> {
		const { parts, rows, hold, clock } = this.#dependencies;
		const { sender, taker } = wish;
		const { signal } = this.#stopping;
		// If two instances request an account's rows from each other, one of them goes first.
		if (this.#pinned.has(sender) || (this.#gathering.has(sender) && parts.own < taker)) return;
		const letGo = await hold(sender);
		try {
			const until = clock.monotonic() + GRANT_MS;
			while (!this.#pinned.has(sender) && !signal.aborted) {
				const given = rows.release(sender);
				if (given !== null) {
					const giving = this.#give(given, wish).finally(() => this.#giving.delete(sender));
					this.#giving.set(sender, giving);
					await giving;
					return;
				}
				if (clock.monotonic() > until) return;
				await pause(clock, GRANT_STEP_MS, signal);
			}
		} finally {
			letGo();
		}
	}

	/**
	 * Moves released rows. Until the database answers, their owner is unknown and nobody sends them.
	 */
	async #give(given: readonly Row[], wish: Wish): Promise<void> {
		const { parts, rows, clock } = this.#dependencies;
		for (;;) {
			try {
				const keys = given.flatMap(keysOf);
				const stay = new Set(keys.length === 0 ? [] : (await parts.give(keys, wish)).left);
				rows.restore(given.filter((row) => keysOf(row).some((key) => stay.has(key))));
				await parts.granted(wish).catch(() => {});
				return;
			} catch (thrown) {
				this.#isDown(thrown);
				if (this.#stopping.signal.aborted) return;
				await pause(clock, LOOK_MS, this.#stopping.signal);
			}
		}
	}

	/**
	 * The rows of an answer. Without one, the other instances' state of `what` is unknown, so this
	 * throws. The exception: if no other instance was known at the last answer, this one carries on.
	 */
	async #ask(
		what: string,
		question: () => Promise<readonly PartRecord[]>,
		onDown = (thrown: unknown) => this.#isDown(thrown),
	): Promise<Seen> {
		const { clock, log } = this.#dependencies;
		if (clock.monotonic() >= this.#downUntil) {
			try {
				return seenIn(await question(), log);
			} catch (thrown) {
				if (thrown instanceof RpcError) throw thrown;
				onDown(thrown);
			}
		}
		if (this.wasAlone) return NOTHING;
		throw new UnknownElsewhereError("the database did not answer", what);
	}

	#isDown(thrown: unknown): void {
		const { clock, log } = this.#dependencies;
		if (!this.#isFailing)
			log.warn("could not read the parts of other boost instances", { fault: safeError(thrown) });
		this.#isFailing = true;
		this.#downUntil = clock.monotonic() + DOWN_MS;
	}
}

function newNews() {
	let resolve = (): void => {};
	const promise = new Promise<void>((done) => {
		resolve = done;
	});
	return { promise, resolve };
}
