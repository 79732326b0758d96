// Puts the answers of builders to a transaction into words. The relay's log uses it. So does `npm
// run why`, which reads the answers from /tx/{hash}/events.

/** A delivery to one builder, as records and their events have it. */
interface Delivery {
	readonly builder: string;
	/** `cancel`: a cancel of the transaction. */
	readonly kind: string;
	/** See docs/api.md. */
	readonly answer: string;
	/** The block that it was for. */
	readonly block: number;
}

/** The action of a builder, by its answer. A delivery that was never sent has no entry. */
const DID: Readonly<Record<string, string>> = {
	accepted: "accepted it",
	rejected: "rejected it",
	failed: "gave no answer",
	timeout: "did not answer in time",
};

/**
 * For example "sent to 2 builders: titan rejected it for blocks 7 to 9, quasar accepted it for
 * block 9". Null if no builder received it.
 */
export function builderAnswers(deliveries: readonly Delivery[]): string | null {
	const blocks = new Map<string, Map<string, number[]>>();
	for (const { builder, kind, answer, block } of deliveries) {
		if (kind === "cancel" || DID[answer] === undefined) continue;
		const answers = blocks.get(builder) ?? new Map<string, number[]>();
		blocks.set(builder, answers.set(answer, [...(answers.get(answer) ?? []), block]));
	}
	if (blocks.size === 0) return null;
	const texts = [...blocks].map(([builder, answers]) => {
		const each = [...answers].map(([answer, at]) => `${DID[answer]} for ${rangeText(at)}`);
		return `${builder} ${each.join(" and ")}`;
	});
	return `sent to ${counted(blocks.size, "builder")}: ${texts.join(", ")}`;
}

/** "1 builder", "2 builders" */
export function counted(count: number, what: string): string {
	return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** "block 7", "blocks 7 to 9", or "3 blocks from 7 to 12" where some are missing. */
function rangeText(given: readonly number[]): string {
	const blocks = new Set(given);
	const [first, last] = [Math.min(...blocks), Math.max(...blocks)];
	if (first === last) return `block ${first}`;
	const range = `${first} to ${last}`;
	return last - first + 1 === blocks.size ? `blocks ${range}` : `${blocks.size} blocks from ${range}`;
}
