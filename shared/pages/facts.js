// The facts on the page of a transaction: its state, who can see it now, when it expires, the time
// until the next block, its bids and its refund.

import { element, ether, now, say } from "./common.js";
import { clockTime, counted, explorerLink, hasExplorer, link, span } from "./live.js";

const LIVE = ["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST", "HELD"];
const GOOD = ["INCLUDED"];
const BAD = ["SIMULATION_FAILED", "REVERTED", "EXPIRED", "DROPPED"];
/** The journal's words for an upstream that has, or may have, the transaction. */
const HOLDERS = ["has", "given", "unanswered", "lost"];

export function isLive({ stage }) {
	return stage !== undefined && LIVE.includes(stage);
}

/** Shows `text` in the element, and hides it, or its row, where there is none. */
function put(id, text, row = id) {
	element(row).hidden = !text;
	say(id, text || "");
}

function nodes(id, children, row = id) {
	element(row).hidden = children.length === 0;
	element(id).replaceChildren(...children);
}

/** Draws all but what ticks. `life`, `journal`, `receipt`: null for none. */
export function drawFacts({ record, life, journal, by, earlier, receipt }) {
	drawState(record, { life, journal, by, earlier });
	drawRefund(record, life);
	drawCost(record, life, receipt);
	const { blockNumber, transaction, shared, hash } = record;
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
	put("shared", pending ? "" : shared ? "yes" : "no", "row-shared");
	element("cancelling").hidden = !pending;
	element("visibility").hidden = !pending;
	if (!pending) return;
	element("visible").replaceChildren(...visible(record, { life, journal, by }));
	// The page shows the whole error of a failing simulation.
	element("hidden-fields").hidden = transaction.from !== "";
}

/**
 * Shown with its block only: a searcher who knew the bids before would raise only when others bid.
 */
function bidsText({ status, shared, backruns }, pending) {
	if (status !== "INCLUDED") return pending && shared ? "shown when it is mined" : "";
	return shared || backruns > 0 ? String(backruns) : "";
}

function drawState(record, { life, journal, by, earlier }) {
	const { stage, state, reason, nextStep, exposed } = record;
	const line = element("state");
	line.textContent = state.charAt(0).toUpperCase() + state.slice(1);
	line.className = `state ${GOOD.includes(stage) ? "good" : BAD.includes(stage) ? "bad" : ""}`;
	put("reason", reason && `Why: ${reason}.`);
	put("next", nextStep && `What you can do: ${nextStep}.`);
	put("exposed", exposed && `Note: ${exposed.message}.`);
	put("carried", carriedText(journal, by));
	const linked = [];
	const next = life?.events.findLast(({ type }) => type === "replaced")?.by;
	if (stage === "REPLACED" && next) {
		linked.push("Replaced by ", link(`/tx/${next}?replaced=${record.hash}`, next), ". ");
	}
	if (earlier !== null) linked.push("It replaced ", link(`/tx/${earlier}`, earlier), ".");
	nodes("linked", linked);
}

/** The part of the fallback in this transaction; "" for none. */
function carriedText(journal, by) {
	const has = HOLDERS.includes(journal?.fallback ?? "");
	if (by === "fallback") {
		return "The relay is down: the fallback, another private relay, knows it, and tells this.";
	}
	if (by === "journal" && has) {
		return "The fallback, another private relay, carries it: its builders and its rules hold. Our searchers are not shown it there, so no refund of ours comes of it.";
	}
	return has ? "The fallback, another private relay, has it, too." : "";
}

function drawRefund({ refundWei = "0" }, life) {
	const isPaid = refundWei !== "0";
	put("refund", isPaid ? ether(refundWei) : "", "refund-card");
	const event = life?.events.findLast(({ type }) => type === "refunded");
	const to = isPaid && event !== undefined ? ["paid to ", explorerLink("address", event.recipient)] : [];
	nodes("refund-to", to);
}

/** The fee, the refund and the difference, once it is mined. */
function drawCost({ refundWei = "0", refundRecipient, transaction }, life, receipt) {
	const fee = receipt === null ? null : feeOf(receipt);
	const refund = BigInt(refundWei);
	const isReverted = receipt?.status === "0x0";
	put(
		"fee",
		fee === null ? "" : `${ether(fee)}${isReverted ? ", paid although it reverted" : ""}`,
		"row-fee",
	);
	put("refunded", fee === null || refund === 0n ? "" : ether(refund), "row-refunded");
	const to = life?.events.findLast(({ type }) => type === "refunded")?.recipient ?? refundRecipient;
	// Somebody else's refund does not lower what the sender paid.
	const isOwn = (to ?? transaction.from).toLowerCase() === transaction.from.toLowerCase();
	const net = fee === null || refund === 0n || !isOwn ? null : refund - fee;
	const netText = net === null ? "" : net < 0n ? `you paid ${ether(-net)}` : `you gained ${ether(net)}`;
	put("net", netText, "row-net");
}

/** Wei that the sender paid for gas, for a blob transaction with its blobs' (EIP-4844). */
function feeOf({ gasUsed, effectiveGasPrice, blobGasUsed = "0x0", blobGasPrice = "0x0" }) {
	return BigInt(gasUsed) * BigInt(effectiveGasPrice) + BigInt(blobGasUsed) * BigInt(blobGasPrice);
}

/** A line for each who can see it. */
function visible({ shared, exposed, stage }, { life, journal, by }) {
	const lines = [];
	const add = (who, what) => {
		const line = document.createElement("li");
		const name = document.createElement("strong");
		name.textContent = who;
		line.append(name, `: ${what}`);
		lines.push(line);
	};
	if (exposed) add("Everybody", "everything, since it was in a block that is gone");
	const names = [...builders(life)].join(", ");
	if (names !== "") add(`Builders (${names})`, "everything, so that they can put it into a block");
	else if (stage === "BROADCAST") add("Builders", "everything; the page does not show which ones have it");
	if (shared) {
		add(
			"Searchers",
			"sender, recipient, amount and call data without the signature, to bid for the place behind it",
		);
	}
	const isElsewhere = by === "fallback" || HOLDERS.includes(journal?.fallback ?? "");
	if (isElsewhere) {
		add("The fallback, another private relay, and its builders", "everything");
	}
	if (lines.length === 0) {
		const line = document.createElement("li");
		line.textContent = "Nobody yet: it has not left this service.";
		return [line];
	}
	if (!shared) add(isElsewhere ? "Our searchers" : "Searchers", "nothing");
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
	put("soon", pending && head !== null && info !== null ? soonText(head, info) : "", "row-soon");
	put("expires", pending ? expiryText({ record, life, journal, head, info }) : "", "row-expires");
	const last = life?.events.at(-1)?.at ?? journal?.endedAt ?? journal?.receivedAt ?? record.rpc_timestamp;
	const at = last === null || last === undefined ? null : Date.parse(last);
	put("since", at === null ? "" : `Last news ${span(now() - at)} ago, at ${clockTime(at)}`);
}

function soonText({ number, timestamp }, { slotMs }) {
	const ms = timestamp * 1000 + slotMs - now();
	if (ms > 0) return `${number + 1}, in about ${span(ms)}`;
	return `${number + 1}, was due ${span(-ms)} ago`;
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
