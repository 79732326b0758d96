// Turns what the relay says of the rows that it holds into facts: one question asks for many of them, and its answer ends
// rows, keeps them alive or shows that the relay has lost them. While it is out, the chain speaks in its place.

import { nextTurn } from "../../shared/clock.ts";
import type { Logger } from "../../shared/log.ts";
import type { ChainReads, Rows, Upstream, Upstreams } from "../domain/ports.ts";
import { type RelayStage, relayStages, stagesCall } from "../domain/request.ts";
import {
	abandonedBy,
	type Ending,
	holdersOf,
	isHolder,
	isLive,
	lost,
	notHeld,
	type Row,
} from "../domain/row.ts";

/** What observers look at. */
export interface Observed {
	readonly rows: Rows;
	readonly upstreams: Upstreams;
	readonly chain: ChainReads;
	readonly clock: { now(): number; monotonic(): number };
	readonly log: Logger;
	readonly slotMs: number;
	/** Hashes in one question to the relay. */
	readonly batch: number;
	/** Of one question, in ms. */
	readonly deadlineMs: number;
	/** Aborted when nothing more is to be asked. */
	readonly stopping: AbortSignal;
}

const METHOD_NOT_FOUND = -32601;
/** Questions at once, when all is asked. */
const MAX_QUESTIONS = 20;
/** Words of one answer that are heard at once: a submission waits for no more of them. */
const HEARD_AT_ONCE = 50;
/** Of a question's hashes, those at most that were mined a moment ago. */
const MINED_SHARE = 0.1;
/** Without a word of the relay's for so many slots, the chain is asked. */
const PATIENCE_SLOTS = 2;
/** So often in a row it must say that it has no record; doubling each time that it got it again. */
const NULLS = 2;
const MAX_DOUBLINGS = 5;
/** A delivery that brought no verdict may still arrive for so long, in ms. */
const LATE_MS = 15_000;
const ENDING_STAGES: ReadonlyMap<string, Ending> = new Map<string, Ending>([
	["CANCELLED", "cancelled"],
	["REPLACED", "replaced"],
	["INCLUDED", "mined"],
	["REVERTED", "mined"],
	["EXPIRED", "expired"],
	["DROPPED", "dropped"],
]);
const LIVE_STAGES: readonly string[] = ["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST"];

/** Observes the relay. */
export class ObserveRelay {
	readonly #with: Observed;
	readonly #relay: Upstream;
	/** Counts the changes of its breaker: an answer counts whole where there was none meanwhile. */
	#changes = 0;
	#knowsMethod = true;
	/** In each round every row is asked for once; `left`: those that it did not come to yet. */
	#round = 0;
	#left: Iterator<Row> = [].values();

	constructor(observed: Observed) {
		this.#with = observed;
		this.#relay = observed.upstreams.relay;
	}

	/** Its breaker changed. A relay that comes back may be another version. */
	changed(): void {
		this.#changes += 1;
		if (!this.#relay.breaker.isUnavailable) this.#knowsMethod = true;
	}

	/** Whether it says what becomes of `row`, so that nobody else need be asked; `now` of the monotonic clock, in ms. */
	speaksFor({ at, notes }: Row, now: number): boolean {
		if (!this.speaks || !isHolder(at.relay) || notes.nulls > 0) return false;
		return now - notes.heardAt < PATIENCE_SLOTS * this.#with.slotMs;
	}

	/** Whether it can be asked. */
	get speaks(): boolean {
		return this.#knowsMethod && !this.#relay.breaker.isUnavailable;
	}

	/** One question; as many as it takes to ask for all where `everything`. */
	async ask(everything: boolean): Promise<void> {
		const { batch, stopping } = this.#with;
		if (everything) this.#newRound();
		for (let count = 0; count < (everything ? MAX_QUESTIONS : 1); count += 1) {
			if (stopping.aborted || !this.speaks) return;
			const mined = this.#dueMined(batch * MINED_SHARE);
			const rows = this.#next(batch - mined.length, everything);
			if (rows.length + mined.length === 0) return;
			const before = this.#changes;
			const stages = await this.#question([...rows, ...mined].map(({ hash }) => hash));
			if (stages === null) return;
			const asked = new Map(rows.map((row) => [row.hash, row]));
			for (let at = 0; at < stages.length; at += HEARD_AT_ONCE) {
				if (at > 0) await nextTurn();
				if (stopping.aborted) return;
				const steady = before === this.#changes && !this.#relay.breaker.isUnavailable;
				for (const { hash, stage } of stages.slice(at, at + HEARD_AT_ONCE)) {
					const row = asked.get(hash);
					if (row === undefined) this.#hearMined(hash, stage);
					else this.#hear(hash, stage, steady, row);
				}
			}
			if (rows.length < batch - mined.length) return;
		}
	}

	/** A stage that somebody read at the relay meanwhile. */
	learn(hash: string, stage: string): void {
		this.#hear(hash, stage, false, null);
	}

	/** The next `limit` rows of this round, and of the one behind it unless `onlyThis`. */
	#next(limit: number, onlyThis: boolean): readonly Row[] {
		const taken = this.#take(limit);
		if (taken.length === limit || onlyThis) return taken;
		this.#newRound();
		for (const { notes } of taken) notes.round = this.#round;
		return [...taken, ...this.#take(limit - taken.length)];
	}

	#newRound(): void {
		this.#round += 1;
		this.#left = this.#with.rows.open()[Symbol.iterator]();
	}

	#take(limit: number): readonly Row[] {
		const taken: Row[] = [];
		while (taken.length < limit) {
			const { value: row, done } = this.#left.next();
			if (done) break;
			if (row.notes.round === this.#round || row.requests > 0 || !isHolder(row.at.relay)) continue;
			row.notes.round = this.#round;
			taken.push(row);
		}
		return taken;
	}

	/** Mined ones that were not asked for in half a slot, and that the relay knows. */
	#dueMined(limit: number): readonly Row[] {
		const now = this.#with.clock.monotonic();
		const taken: Row[] = [];
		for (const row of this.#with.rows.mined()) {
			if (taken.length >= limit) break;
			const { notes, at } = row;
			if (notes.byChain || !isHolder(at.relay) || now - notes.chainAt < this.#with.slotMs / 2) continue;
			notes.chainAt = now;
			taken.push(row);
		}
		return taken;
	}

	async #question(hashes: readonly string[]): Promise<readonly RelayStage[] | null> {
		const { log } = this.#with;
		const call = stagesCall(hashes);
		const answer = await this.#relay.call(call, { deadlineMs: this.#with.deadlineMs, caller: null });
		if (answer?.ok === false && answer.error.code === METHOD_NOT_FOUND) {
			this.#knowsMethod = false;
			log.warn("the relay can't tell of many transactions at once: the chain alone is asked", {
				method: call.method,
			});
		}
		return relayStages(answer);
	}

	/** `asked`: the row in the life that was asked about. */
	#hear(hash: string, stage: string | null, steady: boolean, asked: Row | null): void {
		const { rows, clock } = this.#with;
		const row = rows.live(hash);
		if (row === null || row.requests > 0 || !isHolder(row.at.relay)) return;
		if (asked !== null && asked.notes !== row.notes) return;
		if (stage === null) {
			if (steady) this.#noRecord(row);
			return;
		}
		row.notes.heardAt = clock.monotonic();
		row.notes.nulls = 0;
		const others = holdersOf(row).filter((name) => name !== "relay");
		const ending = ENDING_STAGES.get(stage);
		if (ending === undefined) rows.alive(hash);
		else if (ending === "mined") rows.end(row, ending);
		else if (ending === "cancelled" || ending === "replaced") rows.end(row, ending, others);
		// It has given up what another one still holds.
		else if (others.length > 0) rows.change(hash, (one) => abandonedBy(one, "relay"));
		else rows.end(row, ending);
	}

	/** Once may be a question that overtook the delivery's answer. */
	#noRecord({ hash, notes, acknowledged, receivedAt }: Row): void {
		const { rows, clock } = this.#with;
		notes.nulls += 1;
		if (notes.nulls < NULLS * 2 ** Math.min(notes.losses, MAX_DOUBLINGS)) return;
		if (acknowledged) {
			notes.nulls = 0;
			notes.losses += 1;
			rows.change(hash, (row) => lost(row, "relay"));
		} else if (clock.now() - receivedAt >= LATE_MS) {
			rows.change(hash, (row) => notHeld(row, "relay"));
		}
	}

	#hearMined(hash: string, stage: string | null): void {
		const { rows, log } = this.#with;
		const row = rows.get(hash);
		if (row === null || isLive(row) || row.bytes === 0) return;
		if (stage === null) row.notes.byChain = true;
		else if (LIVE_STAGES.includes(stage)) {
			log.info("a mined transaction is open again", { hash });
			rows.reopen(hash);
		}
	}
}
