// The life of a transaction, as lines with their times: the relay's events, and what boost's
// journal knows beside them or instead of them.

import { amount, errorText } from "./amounts.js";
import { clockTime } from "./live.js";

/** The text of each event; others are not listed. */
const EVENT_TEXTS = {
	received: () => "Received",
	queued: () => "Waits for an earlier transaction of the sender",
	ready: ({ block }) => `Its turn has come: it may go into block ${block}`,
	simulated: () => "Simulated: it passes",
	notSimulated: ({ error }) => `Sent unsimulated (${wordsOf(error)})`,
	simulationFailed: ({ error }) => `Simulated: it fails (${wordsOf(error)})`,
	shared: () => "Shown to searchers, without its signature",
	bundled: ({ block, bid }) =>
		`Sent to builders for block ${block} with a bid behind it${bid === undefined ? "" : `: ${amount(bid)}`}`,
	broadcast: ({ block }) => `Sent to builders for block ${block}`,
	included: ({ block, reverted }) =>
		reverted ? `Mined in block ${block}, and reverted` : `Mined in block ${block}`,
	reorged: () => "Its block has left the chain",
	exposed: ({ block }) => `Public now: it was in block ${block}, which has left the chain`,
	seenInPublic: () => "Seen in the public mempool, before any block had it",
	refunded: ({ paid, owed, cost }) =>
		paid === "0" && owed === "0" && cost !== "0"
			? `No refund: paying it would have cost ${amount(cost)}, which is more`
			: `Refund paid: ${amount(paid)}`,
	replaced: () => "Replaced by another transaction of the sender",
	cancelled: () => "Cancelled by its sender",
	expired: () => "Expired",
	dropped: () => "Dropped: another transaction with its nonce was mined",
};
/** Texts for the journal's words about the fallback; other words are not shown. */
const FALLBACK_TEXTS = {
	has: "The fallback, another private relay, has taken it",
	given: "Handed to the fallback, another private relay, which has not answered yet",
	unanswered: "Handed to the fallback, another private relay, which has not answered yet",
	lost: "The fallback has no record of it any more, and gets it again",
	rejected: "The fallback does not take it now",
	abandoned: "The fallback has given it up",
};
const ENDINGS = {
	mined: "Mined",
	replaced: "Replaced by another transaction of the sender",
	cancelled: "Cancelled by its sender",
	expired: "Expired",
	dropped: "Dropped: another transaction with its nonce was mined",
};

function wordsOf(error) {
	return errorText(error?.message ?? error?.code ?? "unknown");
}

/**
 * The lines, each a list item, by time. `life`: the relay's events, `journal`: boost's report; null
 * for none. `block`: the block that has it, or null. `isOwnCancel`: whether its replacement is a cancel.
 */
export function lifeLines(life, journal, block, isOwnCancel) {
	const own = (life?.events ?? []).flatMap((event) => {
		const isCancel = isOwnCancel && event.type === "replaced";
		const text = isCancel
			? "Cancelled by another transaction of its sender"
			: EVENT_TEXTS[event.type]?.(event);
		return text === undefined ? [] : [{ at: Date.parse(event.at), text }];
	});
	const lines = [...own, ...journalLines(journal, life === null, block)];
	return lines.sort((one, other) => (one.order ?? one.at) - (other.order ?? other.at)).map(item);
}

/**
 * `at`: ms since the epoch, null where boost does not know (any more); `order`: its place among the
 * others then.
 */
function journalLines(journal, isAlone, block) {
	if (journal === null) return [];
	const { relay, fallback } = journal;
	// The chain's word may come before the journal's.
	const ended = journal.ended ?? (block === null ? null : "mined");
	const [taken, given, over] = [journal.receivedAt, journal.fallbackSince, journal.endedAt].map((time) =>
		time === null ? null : Date.parse(time),
	);
	const begin = taken ?? 0;
	const lines = [];
	if (isAlone && taken !== null) lines.push({ at: taken, text: "Taken by boost, and kept on its disk" });
	if (isAlone && relay === "has") lines.push({ at: null, order: begin, text: "The relay has it" });
	const text = FALLBACK_TEXTS[fallback];
	if (text !== undefined) lines.push({ at: given, order: given ?? begin, text });
	if (isAlone && ended !== null) {
		const where = ended === "mined" && block !== null ? ` in block ${block}` : "";
		lines.push({ at: over, order: over ?? Number.MAX_VALUE, text: `${ENDINGS[ended] ?? ended}${where}` });
	}
	return lines;
}

function item({ at, text }) {
	const time = document.createElement("time");
	if (at === null) time.textContent = "–";
	else {
		time.dateTime = new Date(at).toISOString();
		time.textContent = clockTime(at);
		time.title = new Date(at).toLocaleString();
	}
	const line = document.createElement("li");
	line.append(time, text);
	return line;
}
