// Asks the relay for the stages of its rows, many at a time. Its answer ends rows, extends their
// lives or shows that the relay has lost them. While the relay is unavailable, the chain is asked
// instead.

import { nextTurn } from "../../shared/clock.ts";
import { LIVE_STAGES } from "../../shared/ethereum/statusRecord.ts";
import { markAbandoned, markNotHeld } from "../domain/deliveries.ts";
import { isEndedBySome } from "../domain/owners.ts";
import type { Upstream } from "../domain/ports.ts";
import { type RelayStage, relayStages, stagesCall } from "../domain/request.ts";
import { holdersOf, isHolder, isLive, type Row } from "../domain/row.ts";
import {
	countNoRecord,
	currentRow,
	endByUser,
	endingOf,
	type ObserverContext,
	QUESTION_MS,
	relayReportsReorg,
	reopen,
	takeDueEnded,
} from "./observed.ts";

const METHOD_NOT_FOUND = -32601;
/** The number of hashes in one request. */
const BATCH = 1_000;
/** The maximum number of requests to cover all rows. */
const MAX_QUESTIONS = 20;
/**
 * The number of stages handled before the event loop runs again, so that submissions do not wait.
 */
const STAGES_AT_ONCE = 10;
/** The maximum share of rows in a request that the chain ended lately. */
const ENDED_SHARE = 0.1;
/**
 * After that many slots, and at least that many ms, without a stage from the relay, the chain is
 * asked about a row.
 */
const PATIENCE_SLOTS = 2;
const LEAST_PATIENCE_MS = 2_000;
const LIVE: readonly string[] = LIVE_STAGES;

export class RelayObserver {
	readonly #context: ObserverContext;
	readonly #relay: Upstream;
	/** "No record" counts only if the breaker has not changed since the request. */
	#breakerChanges = 0;
	#knowsMethod = true;
	/** The rest of the current round through all rows. */
	#restOfRound: Iterator<Row> | null = null;

	constructor(observed: ObserverContext) {
		this.#context = observed;
		this.#relay = observed.upstreams.relay;
	}

	/** Must be called when its breaker changes. A relay that comes back may have another version. */
	breakerChanged(): void {
		this.#breakerChanges += 1;
		if (!this.#relay.breaker.isUnavailable) this.#knowsMethod = true;
	}

	/** Whether it can be asked for stages. */
	get canBeAsked(): boolean {
		return this.#knowsMethod && !this.#relay.breaker.isUnavailable;
	}

	/** Whether the relay's answers about `row` suffice without the chain; `now`: monotonic ms. */
	answersFor({ at, notes }: Row, now: number): boolean {
		if (!this.canBeAsked || !isHolder(at.relay) || notes.unknown.relay > 0) return false;
		return now - notes.relayAnsweredAt < Math.max(PATIENCE_SLOTS * this.#context.slot.ms, LEAST_PATIENCE_MS);
	}

	/** Sends one request, or with `everything` as many as all rows take. */
	async ask(everything: boolean): Promise<void> {
		const { stopping } = this.#context;
		if (everything) this.#restOfRound = null;
		for (let count = 0; count < (everything ? MAX_QUESTIONS : 1); count += 1) {
			if (stopping.aborted || !this.canBeAsked) return;
			const ended = takeDueEnded(this.#context, BATCH * ENDED_SHARE, relayReportsReorg);
			const mayBeginAnew = !everything || count === 0;
			const rows = [...this.#nextRows(BATCH - ended.length, mayBeginAnew), ...ended];
			const before = this.#breakerChanges;
			const stages = rows.length === 0 ? null : await this.#askStages(rows.map(({ hash }) => hash));
			if (stages === null) return;
			const asked = new Map(rows.map((row) => [row.hash, row]));
			for (const [at, { hash, stage }] of stages.entries()) {
				if (at > 0 && at % STAGES_AT_ONCE === 0) await nextTurn();
				if (stopping.aborted) return;
				const row = asked.get(hash);
				if (row === undefined) continue;
				const isSteady = before === this.#breakerChanges && !this.#relay.breaker.isUnavailable;
				if (isLive(row)) this.#takeStage(row, stage, isSteady);
				else this.#takeEndedStage(row, stage);
			}
			if (this.#restOfRound === null) return;
		}
	}

	/** Handles a stage that a client's request read at the relay. */
	learn(hash: string, stage: string): void {
		const row = this.#context.rows.live(hash);
		if (row !== null) this.#takeStage(row, stage, false);
	}

	/**
	 * The next rows of the round, at most `limit`. If none is left, a new round begins if
	 * `mayBeginAnew`.
	 */
	#nextRows(limit: number, mayBeginAnew: boolean): readonly Row[] {
		const isNew = this.#restOfRound === null;
		this.#restOfRound ??= this.#context.rows.allLive();
		const taken: Row[] = [];
		while (taken.length < limit) {
			const { value: row, done } = this.#restOfRound.next();
			if (done) {
				this.#restOfRound = null;
				return isNew || taken.length > 0 || !mayBeginAnew ? taken : this.#nextRows(limit, false);
			}
			if (row.requests === 0 && isHolder(row.at.relay)) taken.push(row);
		}
		return taken;
	}

	async #askStages(hashes: readonly string[]): Promise<readonly RelayStage[] | null> {
		const call = stagesCall(hashes);
		const answer = await this.#relay.call(call, { deadlineMs: QUESTION_MS, caller: null });
		if (answer?.ok === false && answer.error.code === METHOD_NOT_FOUND) {
			this.#knowsMethod = false;
			this.#context.log.warn("relay can't report many statuses at once: using the chain alone", {
				method: call.method,
			});
		}
		return relayStages(answer);
	}

	/**
	 * `stage`: null if the relay has no record. `isSteady`: the relay stayed available since the
	 * request.
	 */
	#takeStage(asked: Row, stage: string | null, isSteady: boolean): void {
		const { rows, clock } = this.#context;
		const row = currentRow(this.#context, asked);
		if (row === null || !isHolder(row.at.relay)) return;
		if (stage === null) {
			if (isSteady) countNoRecord(this.#context, row, "relay");
			return;
		}
		row.notes.relayAnsweredAt = clock.monotonic();
		row.notes.unknown.relay = 0;
		row.notes.isOut ||= stage === "BROADCAST";
		const ending = endingOf(stage);
		if (ending === undefined) rows.extendLife(row.hash);
		// An earlier owner's cancel, and the relay has not got it again yet.
		else if (ending === "cancelled" && isEndedBySome(row) && row.at.relay.presence !== "has")
			rows.change(row.hash, (one) => markNotHeld(one, "relay"));
		// It was cancelled for the owners that the relay knew.
		else if (ending === "cancelled" && row.ownersPending)
			rows.change(row.hash, (one) => markAbandoned({ ...one, ownersPending: false }, "relay"));
		else if (ending === "cancelled" || ending === "replaced") {
			// The relay does not report who cancelled it. Boost assumes its sender, which ends it for all
			// owners.
			endByUser(this.#context, row, ending, "relay");
		} else if (ending !== "mined" && holdersOf(row).length > 1) {
			// The relay abandoned it, but the fallback still has it.
			rows.change(row.hash, (one) => markAbandoned(one, "relay"));
		} else rows.end(row, ending);
	}

	/**
	 * Reopens a row that the chain ended if the relay reports it as live. Also reopens it if the
	 * relay reports another ending, which then ends it again.
	 */
	#takeEndedStage({ hash, version, notes }: Row, stage: string | null): void {
		const row = this.#context.rows.get(hash);
		if (row === null || isLive(row) || row.version !== version) return;
		if (stage === null) notes.byChain = true;
		else if (LIVE.includes(stage) || (endingOf(stage) ?? row.desired) !== row.desired)
			reopen(this.#context, row);
	}
}
