// What the relay says of the entries that it holds: one question for many of them goes out, its words end entries, keep
// them alive or tell that the relay has lost them. While it is out, followChain.ts speaks in its place.

import type { Logger } from "../../shared/log.ts";
import type { OpenEntry } from "../domain/journalEntry.ts";
import type { Journal, Upstream } from "../domain/ports.ts";
import { type RelayStage, relayStages, stagesCall } from "../domain/relayStages.ts";
import type { Handing } from "../handover/handover.ts";
import type { FollowBook, Watch } from "./followBook.ts";
import type { FollowEndings } from "./followEndings.ts";
import type { MinedEntries } from "./followMined.ts";

export interface FollowRelayOptions {
	/** Hashes in one question. */
	readonly batch: number;
	readonly slotMs: number;
	/** Of one question, in ms. */
	readonly deadlineMs: number;
}

export interface FollowRelayDependencies {
	readonly journal: Journal;
	readonly relay: Upstream;
	readonly handover: Pick<Handing, "lost" | "spent">;
	readonly book: FollowBook;
	readonly mined: MinedEntries;
	readonly endings: FollowEndings;
	readonly clock: { now(): number; monotonic(): number };
	readonly log: Logger;
}

const METHOD_NOT_FOUND = -32601;
/** Questions at once, when all is asked. */
const MAX_QUESTIONS = 20;
/** Of a question's hashes, those at most that were mined a moment ago. */
const MINED_SHARE = 0.1;
/** Without a word of the relay's for so many slots, the chain is asked. */
const PATIENCE_SLOTS = 2;
/** So often in a row it must say that it has no record; doubling each time that it got it again. */
const NULLS = 2;
const MAX_DOUBLINGS = 5;
/** A delivery that brought no verdict may still arrive for so long, in ms. */
const LATE_MS = 15_000;
const LIVE_STAGES: readonly string[] = ["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST"];

/** Follows the relay. */
export class FollowRelay {
	readonly #options: FollowRelayOptions;
	readonly #with: FollowRelayDependencies;
	/** Counts the changes of its breaker: an answer counts whole where there was none meanwhile. */
	#changes = 0;
	#knowsMethod = true;
	#stopped = false;

	constructor(options: FollowRelayOptions, dependencies: FollowRelayDependencies) {
		this.#options = options;
		this.#with = dependencies;
	}

	/** Its breaker changed. A relay that comes back may be another version. */
	changed(): void {
		this.#changes += 1;
		if (!this.#with.relay.breaker.isOut) this.#knowsMethod = true;
	}

	stop(): void {
		this.#stopped = true;
	}

	/** Whether it says what becomes of `entry`, so that nobody else need be asked. */
	speaksFor(entry: OpenEntry, watch: Watch): boolean {
		if (!this.speaks || !entry.holders.includes("relay") || watch.nulls > 0) return false;
		return this.#with.clock.monotonic() - watch.heardAt < PATIENCE_SLOTS * this.#options.slotMs;
	}

	/** Whether it can be asked. */
	get speaks(): boolean {
		return this.#knowsMethod && !this.#with.relay.breaker.isOut;
	}

	/** One question; as many as it takes to ask for all where `everything`. */
	async ask(everything: boolean): Promise<void> {
		const { batch, slotMs } = this.#options;
		const { book, mined, clock } = this.#with;
		book.sync();
		const since = clock.monotonic();
		for (let count = 0; count < (everything ? MAX_QUESTIONS : 1); count += 1) {
			if (this.#stopped || !this.speaks) return;
			const recent = mined.due(batch * MINED_SHARE, slotMs / 2, ({ byChain }) => !byChain);
			const entries = book.next(
				batch - recent.length,
				(entry, { askedAt }) =>
					!entry.underWay && entry.holders.includes("relay") && !(count > 0 && askedAt >= since),
			);
			if (entries.length + recent.length === 0) return;
			const lives = new Map(entries.map(({ hash, receivedAt }) => [hash, receivedAt]));
			const before = this.#changes;
			const words = await this.#question([...lives.keys(), ...recent.map(({ hash }) => hash)]);
			if (words === null || this.#stopped) return;
			const steady = before === this.#changes && !this.#with.relay.breaker.isOut;
			for (const { hash, stage } of words) {
				const receivedAt = lives.get(hash);
				if (receivedAt === undefined) this.#hearMined(hash, stage);
				else this.#hear(hash, stage, steady, receivedAt);
			}
			if (entries.length < batch - recent.length) return;
		}
	}

	/** A stage that somebody read at the relay meanwhile. */
	learn(hash: string, stage: string): void {
		this.#hear(hash, stage, false, null);
	}

	async #question(hashes: readonly string[]): Promise<readonly RelayStage[] | null> {
		const { relay, log } = this.#with;
		const options = { deadlineMs: this.#options.deadlineMs, asker: null };
		const call = stagesCall(hashes);
		const answer = await relay.call(call, options);
		if (answer?.ok === false && answer.error.code === METHOD_NOT_FOUND) {
			this.#knowsMethod = false;
			log.warn("the relay can't tell of many transactions at once: the chain alone is asked", {
				method: call.method,
			});
		}
		return relayStages(answer);
	}

	/** `receivedAt`: of the life that was asked about. */
	#hear(hash: string, stage: string | null, steady: boolean, receivedAt: number | null): void {
		const { journal, book, clock, endings } = this.#with;
		const entry = journal.get(hash);
		if (entry === null || entry.underWay || !entry.holders.includes("relay")) return;
		if (receivedAt !== null && receivedAt !== entry.receivedAt) return;
		const watch = book.of(entry);
		if (stage === null) {
			if (steady) this.#noRecord(entry, watch);
			return;
		}
		watch.heardAt = clock.monotonic();
		watch.nulls = 0;
		const others = entry.holders.filter((name) => name !== "relay");
		switch (stage) {
			case "CANCELLED":
				endings.end(entry, "cancelled", others);
				return;
			case "REPLACED":
				endings.end(entry, "replaced", others);
				return;
			case "INCLUDED":
			case "REVERTED":
				endings.end(entry, "mined");
				return;
			case "EXPIRED":
			case "DROPPED":
				this.#givenUp(entry, stage === "EXPIRED" ? "expired" : "dropped", others.length > 0);
				return;
			default:
				journal.alive(hash);
		}
	}

	#givenUp(entry: OpenEntry, ending: "expired" | "dropped", heldElsewhere: boolean): void {
		const { journal, handover, endings } = this.#with;
		if (!heldElsewhere) {
			endings.end(entry, ending);
			return;
		}
		journal.notHeld(entry.hash, "relay").catch(() => {});
		handover.spent(entry.hash, "relay");
	}

	/** Once may be a question that overtook the delivery's answer. */
	#noRecord(entry: OpenEntry, watch: Watch): void {
		const { journal, handover, clock } = this.#with;
		watch.nulls += 1;
		if (watch.nulls < NULLS * 2 ** Math.min(watch.losses, MAX_DOUBLINGS)) return;
		if (entry.acknowledged) {
			watch.nulls = 0;
			watch.losses += 1;
			handover.lost(entry.hash, "relay");
		} else if (clock.now() - entry.receivedAt >= LATE_MS) {
			journal.notHeld(entry.hash, "relay").catch(() => {});
		}
	}

	#hearMined(hash: string, stage: string | null): void {
		const { mined, endings } = this.#with;
		const known = mined.get(hash);
		if (known === null) return;
		if (stage === null) known.byChain = true;
		else if (LIVE_STAGES.includes(stage)) endings.reopen(hash);
	}
}
