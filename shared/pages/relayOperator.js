// The relay's operator's page: who decides, what is pending, what the builders answered last, the
// node, the store and the searchers.

import { element, say } from "./common.js";
import { operatorPage } from "./operator.js";

const UNKNOWN = "not known: no core answers";
/** In words, for what a builder answered. */
const ANSWERS = {
	accepted: "took the last one",
	rejected: "rejected the last one",
	timeout: "did not answer the last one in time",
	failed: "failed",
};

function seconds(value) {
	if (value < 120) return `${Math.round(value)} s`;
	return value < 7_200 ? `${Math.round(value / 60)} min` : `${Math.round(value / 3_600)} h`;
}

function milliseconds(value) {
	return value < 10 ? `${value.toFixed(1)} ms` : `${Math.round(value)} ms`;
}

function bytes(value) {
	return value < 1_048_576 ? `${Math.ceil(value / 1_024)} KiB` : `${(value / 1_048_576).toFixed(1)} MiB`;
}

/** A line that is good or bad news. */
function judge(id, isGood, text) {
	element(id).className = isGood ? "" : "bad";
	say(id, text);
}

function builderLine({ last, waiting, hasRecords }) {
	const text =
		last === null
			? "was sent nothing yet"
			: `${ANSWERS[last.answer] ?? last.answer}, ${seconds(last.secondsAgo)} ago, in ${milliseconds(last.ms)}`;
	return `${text}; ${waiting} waiting; ${hasRecords ? "bidders have records here" : "no bidder has a record here"}`;
}

function showBuilders(builders) {
	element("builders").replaceChildren(
		...builders.flatMap((builder) => {
			const [name, line] = [document.createElement("dt"), document.createElement("dd")];
			name.textContent = builder.name;
			line.textContent = builderLine(builder);
			line.className = builder.last === null || builder.last.answer === "accepted" ? "" : "bad";
			return [name, line];
		}),
	);
}

function showCore({ pool, builders, simulation, store, bids, isBidding, edges }) {
	say("edges", `${edges} connected to the core`);
	say("pending", String(pool.pending));
	say("oldest", pool.oldestSeconds === null ? "none" : seconds(pool.oldestSeconds));
	const stages = Object.entries(pool.stages).map(([stage, count]) => `${stage} ${count}`);
	say("stages", stages.length === 0 ? "none" : stages.sort().join(", "));
	showBuilders(builders);
	judge("simulation", simulation.method !== null, simulation.method ?? "nothing: bids are refused");
	say("kind", store.kind);
	judge("writable", store.trouble === null, store.trouble === null ? "yes" : `no: ${store.trouble}`);
	say("write", store.writeMs === null ? "none yet" : `took ${milliseconds(store.writeMs)}`);
	say("size", store.bytes === null ? "it does not say" : bytes(store.bytes));
	judge(
		"bids",
		isBidding,
		isBidding ? String(bids) : `${bids}; no more are taken, since the node can't simulate`,
	);
}

function show({ role, term, node, searchers, core }) {
	say("role", role === "core" ? "is the core: it decides" : "is an edge: it asks the core");
	say("term", term === null ? "none: the store is no database" : String(term));
	const age = node.headAgeSeconds === null ? "" : `, ${seconds(node.headAgeSeconds)} old`;
	judge("head", node.head !== null, node.head === null ? "none yet" : `block ${node.head}${age}`);
	judge("answer", node.answerMs !== null, node.answerMs === null ? "not now" : milliseconds(node.answerMs));
	const off = node.clockDifferenceSeconds;
	judge(
		"clock",
		off === 0,
		off === 0
			? "agrees with the chain's"
			: `is ${seconds(Math.abs(off))} ${off > 0 ? "ahead of" : "behind"} the chain's`,
	);
	say("websockets", String(searchers.websockets));
	say("subscriptions", String(searchers.subscriptions));
	say("streams", String(searchers.eventStreams));
	if (core !== null) return showCore(core);
	showBuilders([]);
	const ids = [
		"edges",
		"pending",
		"oldest",
		"stages",
		"simulation",
		"kind",
		"writable",
		"write",
		"size",
		"bids",
	];
	for (const id of ids) judge(id, false, UNKNOWN);
}

operatorPage(show);
