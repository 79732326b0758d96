// The facts on the page of a transaction: its verdict, state, steps and builders, who can see it
// now, when it expires, the time until the next block, and what it cost and brought.

import { amount, errorText } from "./amounts.js";
import { element, now, say } from "./common.js";
import { clockTime, counted, explorerLink, hasExplorer, link, span } from "./live.js";
import { builderRows, isElsewhere, isLive, isMined, stepsOf, verdictOf } from "./path.js";

const WORDS = { wait: "Wait", act: "Do this", done: "Done", lost: "Lost" };
const CIRCLE = "M12 3a9 9 0 1 0 .01 0";
/** The signs, as paths in a square of 24. */
const SIGNS = {
	wait: `${CIRCLE}M12 7v5l3.4 2`,
	act: "M12 4 2.8 20h18.4zM12 10v4.6M12 17.3v.1",
	done: `${CIRCLE}M8 12.3l2.8 2.8 5.4-5.7`,
	lost: `${CIRCLE}M8.8 8.8l6.4 6.4m0-6.4-6.4 6.4`,
};
/** Without the relay's events. */
const UNSEEN = "without the relay, no refunds are seen here";
/** Read out behind a step's name. */
const STEP_WORDS = { done: "done", now: "now", todo: "not yet", skipped: "left out", failed: "failed" };

/** Shows `text` in the element, and hides it, or its row, where there is none. */
function put(id, text, row = id) {
	element(row).hidden = !text;
	say(id, text || "");
}

function nodes(id, children, row = id) {
	element(row).hidden = children.length === 0;
	element(id).replaceChildren(...children);
}

/**
 * Draws all but what ticks. `life`, `journal`, `receipt`: null for none. `ownCancel`: the mined
 * transaction by which the wallet cancelled it, or itself; `makers`: see builderRows.
 */
export function drawFacts(known) {
	const { record, life, journal, by, makers, maker } = known;
	drawState(known);
	drawSum(known);
	drawPath(stepsOf(record, known));
	drawBuilders(builderRows(life, makers), maker, makers);
	const { blockNumber, transaction, hash } = record;
	const pending = isLive(record);
	element("facts").hidden = false;
	nodes("block", blockNumber == null ? [] : [explorerLink("block", String(blockNumber))], "row-block");
	nodes(
		"outside",
		hasExplorer && blockNumber != null ? [explorerLink("tx", hash, "See it in the explorer")] : [],
	);
	for (const id of ["from", "to"]) {
		const address = transaction[id];
		// A link to an explorer would reveal the accounts of a pending transaction.
		const isPublic = blockNumber != null;
		nodes(id, address ? [isPublic ? explorerLink("address", address) : address] : [], `row-${id}`);
	}
	put("nonce", transaction.nonce, "row-nonce");
	put("bids", bidsText(record, pending), "row-bids");
	element("cancelling").hidden = !pending;
	element("visibility").hidden = !pending;
	if (!pending) return;
	element("visible").replaceChildren(...visible(record, { life, journal, by }));
	// The page shows the whole error of a failing simulation.
	element("hidden-fields").hidden = transaction.from !== "";
}

/** Shows one of the verdicts and the state; a live region reads out what changes. */
export function drawVerdict(verdict, state) {
	element("status").dataset.verdict = verdict;
	element("sign").setAttribute("d", SIGNS[verdict]);
	if (element("verdict").textContent !== WORDS[verdict]) say("verdict", WORDS[verdict]);
	if (element("state").textContent !== state) say("state", state);
}

function drawPath(steps) {
	element("path").hidden = false;
	element("path").replaceChildren(
		...steps.map(({ name, state, note, at }) => {
			const line = document.createElement("li");
			line.className = state;
			if (state === "now") line.setAttribute("aria-current", "step");
			const title = document.createElement("strong");
			title.textContent = name;
			const time = at == null ? "" : clockTime(Date.parse(at));
			line.append(title, small(`: ${STEP_WORDS[state]}`, "sr-only"));
			for (const text of [note, time]) if (text) line.append(small(text, "soft"));
			return line;
		}),
	);
}

function small(text, className) {
	const part = document.createElement("span");
	part.className = className;
	part.textContent = text;
	return part;
}

/** `maker`: the coinbase of the block that contains it, or null. */
function drawBuilders(rows, maker, makers) {
	element("delivered").hidden = rows.length === 0 && maker === null;
	element("builder-table").hidden = rows.length === 0;
	element("builders").replaceChildren(
		...rows.map(({ name, sent, accepted, cancelled, made }) => {
			const row = document.createElement("tr");
			const head = document.createElement("th");
			head.scope = "row";
			head.textContent = name;
			row.append(head, ...[sent, accepted, cancelled, made].map(cell));
			return row;
		}),
	);
	const names = makers?.length ? ` (${makers.join(", ")})` : ", whose builder is not known here";
	nodes(
		"maker",
		maker === null ? [] : ["The block was made by ", explorerLink("address", maker), names, "."],
	);
}

/** Its class is the word, for its colour. */
function cell(text) {
	const one = document.createElement("td");
	one.className = text === "–" ? "none" : text.replace(/ .*/, "");
	one.textContent = text;
	return one;
}

/**
 * Shown with its block only: a searcher who knew the bids before would raise only when others bid.
 */
function bidsText({ status, shared, backruns }, pending) {
	if (status !== "INCLUDED") return pending && shared ? "shown when it is mined" : "";
	return shared || backruns > 0 ? String(backruns) : "";
}

function drawState({ record, life, journal, by, earlier, ownCancel }) {
	const { stage, state, reason, nextStep, exposed, seenInPublic } = record;
	const publicity = exposed ?? seenInPublic;
	const isCancelled = stage === "CANCELLED" || ownCancel !== null;
	drawVerdict(
		verdictOf(record),
		isCancelled ? "Cancelled by you" : state.charAt(0).toUpperCase() + state.slice(1),
	);
	// A refund's absence stands beside the sum.
	put("reason", reason && !isCancelled && stage !== "INCLUDED" && `Why: ${errorText(reason)}.`);
	put("next", nextStep && `What you can do: ${nextStep}.`);
	put("exposed", publicity && `Note: ${publicity.message}.`);
	put("carried", carriedText(record, journal, by));
	nodes("linked", [...endText(record, life, ownCancel), ...linkedText(record, life, { earlier, ownCancel })]);
}

/** The outcome of a cancel. */
function endText({ stage, hash, transaction }, life, ownCancel) {
	if (ownCancel?.hash === hash) {
		return [`This was your cancel: it used up nonce ${transaction.nonce} and did nothing else. `];
	}
	if (ownCancel !== null) {
		const { blockNumber, receipt } = ownCancel;
		const cost = amount(feeOf(receipt));
		return [
			"Your cancel ",
			link(`/tx/${ownCancel.hash}?replaced=${hash}`, ownCancel.hash),
			` is in block ${blockNumber}; it cost ${cost}. `,
		];
	}
	const { builders = 0, summary } = life?.cancels ?? {};
	if (stage === "CANCELLED") return builders > 0 ? [`It cost nothing; ${summary}. `] : ["It cost nothing. "];
	const isUnheeded = isMined({ stage }) && life?.events.some(({ type }) => type === "cancelled");
	return isUnheeded ? ["You cancelled it, but a builder had put it into a block already. "] : [];
}

function linkedText({ stage, hash }, life, { earlier, ownCancel }) {
	const next = replacedBy(life);
	const linked = [];
	if (stage === "REPLACED" && next !== null && ownCancel === null) {
		linked.push("Replaced by ", link(`/tx/${next}?replaced=${hash}`, next), ". ");
	}
	if (earlier !== null) linked.push("It replaced ", link(`/tx/${earlier}`, earlier), ".");
	return linked;
}

/** The hash of its replacement, where the visitor may see that; else null. */
export function replacedBy(life) {
	return life?.events.findLast(({ type }) => type === "replaced")?.by ?? null;
}

/** The part of the fallback in this transaction; "" for none. */
function carriedText(record, journal, by) {
	const has = isElsewhere(journal, null);
	if (by === "fallback") {
		return "The relay is down: the fallback, another private relay, knows it, and tells this.";
	}
	if (by === "journal" && has && isMined(record)) {
		return "The fallback, another private relay, carried it: our searchers were not shown it there.";
	}
	if (by === "journal" && has) {
		return "The fallback, another private relay, carries it: its builders and its rules hold. Our searchers are not shown it there, so no refund of ours comes of it.";
	}
	return has ? "The fallback, another private relay, has it, too." : "";
}

/** Cost, refund and difference, once it is mined. */
function drawSum({ record, life, receipt }) {
	const { refundWei = "0", refundRecipient, transaction } = record;
	element("sum").hidden = !isMined(record);
	if (!isMined(record)) return;
	const fee = receipt === null ? null : feeOf(receipt);
	const refund = BigInt(refundWei);
	say("fee", fee === null ? "not known yet" : signed(-fee));
	say("fee-note", receipt?.status === "0x0" ? "for gas, although it reverted" : "for gas");
	const event = life?.events.findLast(({ type }) => type === "refunded");
	const to = event?.recipient ?? refundRecipient ?? transaction.from;
	// Without the relay's events nobody here knows of a refund.
	const isKnown = life !== null || refund > 0n;
	say("refund", refund > 0n ? signed(refund) : isKnown ? "nothing" : "not known");
	element("refund").className = `amount ${refund > 0n ? "more" : ""}`;
	element("refund-note").replaceChildren(
		...(refund === 0n ? [isKnown ? noRefundText(event) : UNSEEN] : ["paid to ", explorerLink("address", to)]),
	);
	// Somebody else's refund does not lower what the sender paid.
	const isOwn = to.toLowerCase() === transaction.from.toLowerCase();
	const net = fee === null ? null : (isOwn ? refund : 0n) - fee;
	say("net", net === null ? "not known yet" : signed(net));
	element("net").className = `amount ${net === null ? "" : net < 0n ? "less" : "more"}`;
	say(
		"net-note",
		net === null ? "" : net < 0n ? (isKnown ? "you paid" : "you paid, without a refund") : "you gained",
	);
}

function noRefundText(event) {
	if (event !== undefined && event.owed === "0" && event.cost !== "0") {
		return `paying it would have cost the builder ${amount(event.cost)}, which is more`;
	}
	return event === undefined ? "no searcher paid for it" : "the builder paid none";
}

function signed(wei) {
	return wei > 0n ? `+${amount(wei)}` : amount(wei);
}

/** Wei that the sender paid for gas, for a blob transaction with its blobs' (EIP-4844). */
function feeOf({ gasUsed, effectiveGasPrice, blobGasUsed = "0x0", blobGasPrice = "0x0" }) {
	return BigInt(gasUsed) * BigInt(effectiveGasPrice) + BigInt(blobGasUsed) * BigInt(blobGasPrice);
}

/** A line for each who can see it. */
function visible({ shared, exposed, seenInPublic, stage }, { life, journal, by }) {
	const lines = [];
	const add = (who, what) => {
		const line = document.createElement("li");
		const name = document.createElement("strong");
		name.textContent = who;
		line.append(name, `: ${what}`);
		lines.push(line);
	};
	if (exposed) add("Everybody", "everything, since it was in a block that is gone");
	else if (seenInPublic) add("Everybody", "everything, since the public mempool had it");
	const names = [...builders(life)].join(", ");
	if (names !== "") add(`Builders (${names})`, "everything, so that they can put it into a block");
	else if (stage === "BROADCAST") add("Builders", "everything; the page does not show which ones have it");
	if (shared) {
		add(
			"Searchers",
			"sender, recipient, amount and call data without the signature, to bid for the place behind it",
		);
	}
	const elsewhere = isElsewhere(journal, by);
	if (elsewhere) {
		add("The fallback, another private relay, and its builders", "everything");
	}
	if (lines.length === 0) {
		const line = document.createElement("li");
		line.textContent = "Nobody yet: it has not left this service.";
		return [line];
	}
	if (!shared) add(elsewhere ? "Our searchers" : "Searchers", "nothing");
	return lines;
}

/** The builders that have taken it. */
function builders(life) {
	const taken = (life?.events ?? []).filter(
		({ type, kind, answer }) => type === "delivered" && kind !== "cancel" && answer === "accepted",
	);
	return new Set(taken.map(({ builder }) => builder));
}

/**
 * Draws what ticks. `head`: the latest block, `info`: slotMs and txTtlBlocks; null where they are
 * not known.
 */
export function drawTimes({ record, life, journal, head, info }) {
	const pending = isLive(record);
	const isDue = pending && head !== null && info !== null;
	put("soon", isDue ? soonText(head, info) : "", "row-soon");
	if (isDue) element("slot").value = 1 - msToBlock(head, info) / info.slotMs;
	put("expires", pending ? expiryText({ record, life, journal, head, info }) : "", "row-expires");
	const last = life?.events.at(-1)?.at ?? journal?.endedAt ?? journal?.receivedAt ?? record.rpc_timestamp;
	const at = last === null || last === undefined ? null : Date.parse(last);
	put("since", at === null ? "" : `Last news ${span(now() - at)} ago, at ${clockTime(at)}`);
}

function msToBlock({ timestamp }, { slotMs }) {
	return timestamp * 1000 + slotMs - now();
}

function soonText(head, info) {
	const ms = msToBlock(head, info);
	const next = `Block ${head.number + 1}`;
	return ms > 0 ? `${next} in about ${span(ms)}` : `${next} was due ${span(-ms)} ago`;
}

function expiryText({ record, life, journal, head, info }) {
	if (life === null) {
		const until = journal?.aliveUntil;
		return until ? `at about ${clockTime(Date.parse(until))}, in ${span(Date.parse(until) - now())}` : "";
	}
	if (info?.txTtlBlocks === undefined) return "";
	if (life.firstBlock === null) {
		return record.stage === "QUEUED"
			? `its ${counted(info.txTtlBlocks, "block")} are counted from when its turn comes`
			: "";
	}
	const last = life.firstBlock + info.txTtlBlocks - 1;
	if (head === null) return `after block ${last}`;
	const ms = head.timestamp * 1000 + (last - head.number) * info.slotMs - now();
	return `after block ${last}${ms > 0 ? `, in about ${span(ms)}` : ""}`;
}
