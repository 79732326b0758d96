// How an entry ends, and how a mined one comes back: the word of whoever knows comes in, the journal's change and a wake
// of the handover go out.

import type { Logger } from "../../shared/log.ts";
import type { UpstreamName } from "../domain/delivery.ts";
import type { Ending, OpenEntry } from "../domain/journalEntry.ts";
import type { Journal } from "../domain/ports.ts";
import type { MinedEntries } from "./followMined.ts";

export interface EndingsDependencies {
	readonly journal: Journal;
	readonly mined: MinedEntries;
	readonly handover: { wake(): void };
	readonly log: Logger;
	readonly onEnd?: ((ending: Ending) => void) | undefined;
}

/** Ends entries. */
export class FollowEndings {
	readonly #with: EndingsDependencies;

	constructor(dependencies: EndingsDependencies) {
		this.#with = dependencies;
	}

	/** `untold`: who has it and must hear of that. */
	end(entry: OpenEntry, ending: Ending, untold: readonly UpstreamName[] = []): void {
		const { journal, mined, handover, log, onEnd } = this.#with;
		if (ending === "mined") mined.add(entry);
		// The journal says itself where it fails, and goes on in memory.
		journal.end(entry.hash, ending, untold).catch(() => {});
		log.debug("a transaction has ended", { hash: entry.hash, reason: ending });
		onEnd?.(ending);
		if (untold.length > 0) handover.wake();
	}

	/** Its block is not in the chain any more. */
	reopen(hash: string): void {
		const { journal, mined, handover, log } = this.#with;
		mined.delete(hash);
		journal.reopen(hash).catch(() => {});
		log.info("a mined transaction is open again", { hash });
		handover.wake();
	}
}
