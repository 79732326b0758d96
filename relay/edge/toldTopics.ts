// What clients here were told last of the topics that they follow. Behind a change of the core the next one begins with what is
// written, which may be less than the one before had told: what its clients know already is told to nobody twice.

import { LIVE_STAGES } from "../../shared/ethereum/statusRecord.ts";

interface Told {
	/** The result, as JSON. */
	readonly text: string;
	readonly stage: string;
	/** Whether the core has changed since. */
	isOld: boolean;
}

/** Stages that are no news behind the ones beside them: their changes are written with the next block. */
const BEHIND: Readonly<Record<string, readonly string[]>> = {
	PENDING: LIVE_STAGES.filter((stage) => stage !== "PENDING"),
	SHARED: ["BROADCAST"],
	ACCEPTED: ["SENT"],
};

export class ToldTopics {
	/** By topic and, for a bundle's, by block. */
	readonly #topics = new Map<string, Map<unknown, Told>>();

	/** Whether the topic is followed. */
	has(topic: string): boolean {
		return this.#topics.has(topic);
	}

	/** The topics that are followed. */
	topics(): readonly string[] {
		return [...this.#topics.keys()];
	}

	/** The topic is followed from now on; `current`: the results that stand now, as JSON values. */
	begin(topic: string, current: readonly unknown[]): void {
		this.#topics.set(topic, new Map());
		for (const one of current) this.isNews(topic, JSON.stringify(one));
	}

	/** The topic is followed no more. */
	end(topic: string): void {
		this.#topics.delete(topic);
	}

	/** What was told until now came from another core, or by another connection. */
	coreChanged(): void {
		for (const told of this.#topics.values()) for (const one of told.values()) one.isOld = true;
	}

	/**
	 * Whether clients here are to be told a result, given as JSON: each is, of a topic that is not in here. `standsNow`: it is no
	 * change, but what the core says when it is asked.
	 */
	isNews(topic: string, text: string, standsNow = false): boolean {
		const told = this.#topics.get(topic);
		if (told === undefined) return true;
		const { block, stage } = fieldsOf(text);
		const last = told.get(block);
		const isOld = last?.isOld === true;
		if ((isOld || standsNow) && last?.text === text) return false;
		if (isOld && BEHIND[stage]?.includes(last.stage) === true) return false;
		told.set(block, { text, stage, isOld: false });
		return true;
	}
}

function fieldsOf(text: string): { readonly block?: unknown; readonly stage: string } {
	const result = JSON.parse(text) as {
		readonly block?: unknown;
		readonly stage?: unknown;
		readonly reason?: unknown;
	} | null;
	// With a reason it has stopped being sent until a fee falls.
	const isWaiting = result?.stage === "PENDING" && typeof result.reason === "string";
	return { block: result?.block, stage: isWaiting ? "WAITING" : String(result?.stage) };
}
