// Asks the relay for the stages of the rows that it holds, many at a time. Its answer ends rows, extends their lives or shows
// that the relay has lost them. While it is unavailable, the chain is asked instead.

import { nextTurn } from "../../shared/clock.ts";
import type { Upstream } from "../domain/ports.ts";
import { type RelayStage, relayStages, stagesCall } from "../domain/request.ts";
import { holdersOf, isHolder, isLive, markAbandoned, type Row } from "../domain/row.ts";
import {
	current,
	dueMined,
	endedByUser,
	endingOf,
	isInRelaysBlock,
	noRecord,
	type Observed,
	QUESTION_MS,
	reopen,
} from "./observed.ts";

const METHOD_NOT_FOUND = -32601;
/** Hashes in one question, and the most questions for all rows. */
const BATCH = 1_000;
const MAX_QUESTIONS = 20;
/** Stages handled before the event loop is let go, so that submissions do not wait. */
const STAGES_AT_ONCE = 50;
/** The largest share of recently mined rows in a question. */
const MINED_SHARE = 0.1;
/** After so many slots without a stage from the relay, the chain is asked. */
const PATIENCE_SLOTS = 2;
const LIVE_STAGES: readonly string[] = ["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST"];

export class ObserveRelay {
	readonly #observed: Observed;
	readonly #relay: Upstream;
	/** Counts the changes of its breaker: "no record" is believed only if there was none since the question. */
	#changes = 0;
	#knowsMethod = true;
	/** The rest of the current round through all rows. */
	#left: Iterator<Row> | null = null;

	constructor(observed: Observed) {
		this.#observed = observed;
		this.#relay = observed.upstreams.relay;
	}

	/** The breaker changed. A relay that comes back may be another version. */
	changed(): void {
		this.#changes += 1;
		if (!this.#relay.breaker.isUnavailable) this.#knowsMethod = true;
	}

	/** Whether it can be asked for stages. */
	get answers(): boolean {
		return this.#knowsMethod && !this.#relay.breaker.isUnavailable;
	}

	/** Whether the relay's answers about `row` suffice, so that the chain need not be asked; `now`: monotonic ms. */
	answersFor({ at, notes }: Row, now: number): boolean {
		if (!this.answers || !isHolder(at.relay) || notes.unknown.relay > 0) return false;
		return now - notes.relayAnsweredAt < PATIENCE_SLOTS * this.#observed.slotMs;
	}

	/** Asks one question, or with `everything` as many as all rows take. */
	async ask(everything: boolean): Promise<void> {
		const { stopping } = this.#observed;
		if (everything) this.#left = null;
		for (let count = 0; count < (everything ? MAX_QUESTIONS : 1); count += 1) {
			if (stopping.aborted || !this.answers) return;
			const mined = dueMined(this.#observed, BATCH * MINED_SHARE, isInRelaysBlock);
			const mayBeginAnew = !everything || count === 0;
			const rows = [...this.#take(BATCH - mined.length, mayBeginAnew), ...mined];
			const before = this.#changes;
			const stages = rows.length === 0 ? null : await this.#question(rows.map(({ hash }) => hash));
			if (stages === null) return;
			const asked = new Map(rows.map((row) => [row.hash, row]));
			for (const [at, { hash, stage }] of stages.entries()) {
				if (at > 0 && at % STAGES_AT_ONCE === 0) await nextTurn();
				if (stopping.aborted) return;
				const row = asked.get(hash);
				if (row === undefined) continue;
				const isSteady = before === this.#changes && !this.#relay.breaker.isUnavailable;
				if (isLive(row)) this.#read(row, stage, isSteady);
				else this.#readMined(row, stage);
			}
			if (this.#left === null) return;
		}
	}

	/** A stage that a client's request read at the relay. */
	learn(hash: string, stage: string): void {
		const row = this.#observed.rows.live(hash);
		if (row !== null) this.#read(row, stage, false);
	}

	/** The next `limit` rows of the round. Where none is left, a new round begins if it may. */
	#take(limit: number, mayBeginAnew: boolean): readonly Row[] {
		const isNew = this.#left === null;
		this.#left ??= this.#observed.rows.allLive();
		const taken: Row[] = [];
		while (taken.length < limit) {
			const { value: row, done } = this.#left.next();
			if (done) {
				this.#left = null;
				return isNew || taken.length > 0 || !mayBeginAnew ? taken : this.#take(limit, false);
			}
			if (row.requests === 0 && isHolder(row.at.relay)) taken.push(row);
		}
		return taken;
	}

	async #question(hashes: readonly string[]): Promise<readonly RelayStage[] | null> {
		const call = stagesCall(hashes);
		const answer = await this.#relay.call(call, { deadlineMs: QUESTION_MS, caller: null });
		if (answer?.ok === false && answer.error.code === METHOD_NOT_FOUND) {
			this.#knowsMethod = false;
			this.#observed.log.warn("the relay can't tell of many transactions at once: the chain alone is asked", {
				method: call.method,
			});
		}
		return relayStages(answer);
	}

	/** `isSteady`: the relay was available all the time since it was asked. */
	#read(asked: Row, stage: string | null, isSteady: boolean): void {
		const { rows, clock } = this.#observed;
		const row = current(this.#observed, asked);
		if (row === null || !isHolder(row.at.relay)) return;
		if (stage === null) {
			if (isSteady) noRecord(this.#observed, row, "relay");
			return;
		}
		row.notes.relayAnsweredAt = clock.monotonic();
		row.notes.unknown.relay = 0;
		const ending = endingOf(stage);
		if (ending === undefined) rows.extendLife(row.hash);
		else if (ending === "cancelled" || ending === "replaced") {
			endedByUser(this.#observed, row, ending, "relay");
		} else if (ending !== "mined" && holdersOf(row).length > 1) {
			// The relay abandoned it, but the fallback still holds it.
			rows.change(row.hash, (one) => markAbandoned(one, "relay"));
		} else rows.end(row, ending);
	}

	#readMined({ hash, notes }: Row, stage: string | null): void {
		const row = this.#observed.rows.get(hash);
		if (row === null || isLive(row) || row.notes !== notes) return;
		if (stage === null) notes.byChain = true;
		else if (LIVE_STAGES.includes(stage)) reopen(this.#observed, row);
	}
}
