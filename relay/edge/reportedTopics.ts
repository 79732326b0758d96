// Remembers the last results that clients here received for each followed topic, so that they
// receive nothing twice. A new core begins with the written state, which may be older than the news
// of the previous core.

import { LIVE_STAGES } from "../../shared/ethereum/statusRecord.ts";

interface Reported {
	/** The result, as JSON. */
	readonly text: string;
	readonly stage: string;
	/** Whether the core or the connection has changed since. */
	isOld: boolean;
}

/**
 * For each stage, the later stages behind which it is no news. Their changes are written only with
 * the next block.
 */
const BEHIND: Readonly<Record<string, readonly string[]>> = {
	PENDING: LIVE_STAGES.filter((stage) => stage !== "PENDING"),
	SHARED: ["BROADCAST"],
	ACCEPTED: ["SENT"],
};

export class ReportedTopics {
	/** By topic, and for a bundle also by block. */
	readonly #topics = new Map<string, Map<unknown, Reported>>();

	/** Whether the topic is followed. */
	has(topic: string): boolean {
		return this.#topics.has(topic);
	}

	/** The topics that are followed. */
	topics(): readonly string[] {
		return [...this.#topics.keys()];
	}

	/** Begins to follow the topic. `current` are its current results, as JSON values. */
	begin(topic: string, current: readonly unknown[]): void {
		this.#topics.set(topic, new Map());
		for (const one of current) this.isNews(topic, JSON.stringify(one));
	}

	/** Stops following the topic. */
	end(topic: string): void {
		this.#topics.delete(topic);
	}

	/** Marks all results so far as those of another core or connection. */
	coreChanged(): void {
		for (const reported of this.#topics.values()) for (const one of reported.values()) one.isOld = true;
	}

	/**
	 * Whether clients here should receive a result, given as JSON. The results of a topic that is
	 * not followed are always news. `standsNow`: the result is not a change, but the core's answer
	 * to a request for the current state.
	 */
	isNews(topic: string, text: string, standsNow = false): boolean {
		const reported = this.#topics.get(topic);
		if (reported === undefined) return true;
		const { block, stage } = fieldsOf(text);
		const last = reported.get(block);
		const isOld = last?.isOld === true;
		if ((isOld || standsNow) && last?.text === text) return false;
		if (isOld && BEHIND[stage]?.includes(last.stage) === true) return false;
		reported.set(block, { text, stage, isOld: false });
		return true;
	}
}

function fieldsOf(text: string): { readonly block?: unknown; readonly stage: string } {
	const result = JSON.parse(text) as {
		readonly block?: unknown;
		readonly stage?: unknown;
		readonly reason?: unknown;
	} | null;
	// A pending transaction with a reason is not sent until a fee falls.
	const isWaiting = result?.stage === "PENDING" && typeof result.reason === "string";
	return { block: result?.block, stage: isWaiting ? "WAITING" : String(result?.stage) };
}
