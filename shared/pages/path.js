// The standing of a transaction: one word for its user, the steps of its path, and a row for each
// builder. Pure: it is drawn elsewhere.

const LIVE = ["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST", "HELD"];
const MINED = ["INCLUDED", "REVERTED"];
/** The verdict of each end: `done` as the user wanted, else `lost`. */
const ENDS = {
	...{ INCLUDED: "done", REVERTED: "lost", REPLACED: "done", CANCELLED: "done" },
	...{ EXPIRED: "lost", DROPPED: "lost" },
};
/** The last step of one that is not mined. */
const LAST_STEPS = { REPLACED: "Replaced", CANCELLED: "Cancelled", EXPIRED: "Expired", DROPPED: "Dropped" };
/** The journal's words for an upstream that has, or may have, the transaction. */
const HOLDERS = ["has", "given", "unanswered", "lost"];

export function isLive({ stage }) {
	return LIVE.includes(stage);
}

export function isMined({ stage }) {
	return MINED.includes(stage);
}

/** Whether the fallback has, or may have, it. */
export function isElsewhere(journal, by) {
	return by === "fallback" || HOLDERS.includes(journal?.fallback ?? "");
}

/** "wait", "act" (the user has something to do), "done" or "lost". */
export function verdictOf({ stage, nextStep = null, simulationError = null }) {
	if (!LIVE.includes(stage)) return ENDS[stage] ?? "wait";
	const isUpToUs = simulationError?.code === "NODE_UNAVAILABLE";
	return nextStep === null || isUpToUs ? "wait" : "act";
}

/**
 * Whether a transaction object of the node only uses up its nonce: a wallet's own cancel.
 * `isReplacement`: it replaced another one. By itself, a transfer of an amount is none.
 */
export function isOwnCancel({ type, from, to, input, value }, isReplacement) {
	const isToItself = to?.toLowerCase() === from.toLowerCase() && input === "0x" && Number(type) <= 2;
	return isToItself && (isReplacement || BigInt(value) === 0n);
}

/**
 * The steps of the path, in their order: `name`, `note`, `at` (ISO 8601, or null), and `state`:
 * "done", "now", "todo", "skipped" or "failed". `life`, `journal`: null for none; `ownCancel`: null
 * unless the wallet's own transaction cancelled it.
 */
export function stepsOf(record, { life, journal, by, ownCancel = null }) {
	const own = { record, life: sinceReceived(life), journal };
	const isOurs = life !== null || !isElsewhere(journal, by);
	const begin = own.life.find(({ type }) => type === "received")?.at ?? journal?.receivedAt;
	const received = step("Received", "done", "", begin ?? record.rpc_timestamp ?? null);
	const middle = isOurs
		? [simulated(own), shown(own), sent(own)]
		: [
				step("Simulated", "skipped", "not by this relay"),
				step("Shown", "skipped", "not to our searchers"),
				step("Sent", "done", "to the fallback", journal?.fallbackSince ?? null),
			];
	const steps = [received, ...middle, last(record, ownCancel)];
	if (!isLive(record) || steps.some(({ state }) => state === "failed")) return steps;
	const current = steps.find(({ name, state }) => state === "todo" && name !== "Shown");
	if (current !== undefined) current.state = "now";
	return steps;
}

function step(name, state, note = "", at = null) {
	return { name, state, note, at };
}

/** The events of its present life: it may have been submitted again after its end. */
function sinceReceived(life) {
	const events = life?.events ?? [];
	const begin = events.findLastIndex(({ type }) => type === "received");
	return begin < 0 ? events : events.slice(begin);
}

/** Without the relay's events. */
const UNKNOWN = "not known here";

function simulated({ record, life }) {
	const name = "Simulated";
	const event = life.findLast(({ type }) => ["simulated", "notSimulated", "simulationFailed"].includes(type));
	if (record.stage === "QUEUED") return step(name, "todo", "waits for its turn");
	if (record.stage === "SIMULATION_FAILED") return step(name, "failed", "it fails", event?.at);
	if (event?.type === "simulated") return step(name, "done", "it passes", event.at);
	if (event?.type === "simulationFailed" && isLive(record)) return step(name, "todo", record.state);
	if (event?.type === "simulationFailed") return step(name, "failed", "it failed", event.at);
	if (event === undefined && ["PENDING", "SHARED", "HELD"].includes(record.stage)) return step(name, "todo");
	return step(name, "skipped", life.length === 0 ? UNKNOWN : "not simulated");
}

function shown({ record, life }) {
	if (record.shared) return step("Shown", "done", "to searchers", timeOf(life, "shared"));
	const isPast = !isLive(record) || record.stage === "BROADCAST";
	return isPast
		? step("Shown", "skipped", life.length === 0 ? UNKNOWN : "to no searcher")
		: step("Shown", "todo");
}

function sent({ record, life }) {
	const name = "Sent";
	const event = life.findLast(({ type }) => type === "broadcast" || type === "bundled");
	if (isMined(record) || record.stage === "BROADCAST" || (event !== undefined && !isLive(record))) {
		return step(name, "done", event === undefined ? "" : `for block ${event.block}`, event?.at);
	}
	return isLive(record) ? step(name, "todo") : step(name, "skipped", "to no builder");
}

function last(record, ownCancel) {
	const { stage, blockNumber } = record;
	const note = blockNumber == null ? "" : `block ${blockNumber}`;
	if (stage === "REVERTED") return step("Mined", "failed", `${note}, reverted`);
	if (isMined(record)) return step("Mined", "done", note);
	const name = LAST_STEPS[ownCancel === null ? stage : "CANCELLED"];
	if (name === undefined) return step("Mined", "todo");
	return step(name, ENDS[stage] === "done" ? "done" : "failed");
}

function timeOf(events, wanted) {
	return events.findLast(({ type }) => type === wanted)?.at ?? null;
}

const ANSWERS = { accepted: "yes", rejected: "rejected", failed: "no answer", timeout: "no answer" };

/**
 * A row for each builder that it was to be sent to: `name`, and the words of the columns `sent`,
 * `accepted`, `cancelled` and `made`. `makers`: the builders whose block contains it, empty if that
 * is not known; null while no block does.
 */
export function builderRows(life, makers) {
	const rows = new Map();
	for (const { type, kind, builder, answer, backrun, block } of life?.events ?? []) {
		if (type !== "delivered" || backrun === true) continue;
		const row = rows.get(builder) ?? { name: builder, sent: "no", accepted: "–", cancelled: "–" };
		if (kind === "cancel") row.cancelled = ANSWERS[answer] ?? "–";
		else if (answer !== "unsent") Object.assign(row, { sent: String(block), accepted: ANSWERS[answer] });
		rows.set(builder, row);
	}
	return [...rows.values()].map((row) => ({ ...row, made: madeText(row.name, makers) }));
}

function madeText(name, makers) {
	if (makers === null) return "–";
	if (makers.length === 0) return "not known";
	return makers.includes(name) ? "yes" : "no";
}
