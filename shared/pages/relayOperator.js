// The relay's operator's page: who decides, what is pending, what the builders answered last, the
// node, the store and the searchers.

import { element, get, say } from "./common.js";
import { authorization, isoSecond, operatorPage } from "./operator.js";
import { barOf, made, scrolls, tableOf } from "./tables.js";

/** The stages of a pending transaction. */
const STAGES = ["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST"];
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

/** Blocks of the last day with transactions of ours, by builder. */
let blocks = new Map();

async function figuresCame({ core }) {
	const columns = core?.day.columns ?? {};
	const sum = (name) => (columns[`${name} blocks`] ?? []).reduce((total, count) => total + (count ?? 0), 0);
	blocks = new Map([...names, "other"].map((name) => [name, sum(name)]));
	// Beside the page's own path, as in operator.js.
	showConduct(await get(new URL("operator/builders.json", document.baseURI).pathname, authorization()));
}

/** In words, for a finding about a builder. */
const FINDINGS = {
	leaks: "canaries leaked",
	strips: "leaves out backruns",
	underpays: "pays less than is owed",
	ignoresCancels: "mines what it has cancelled",
};
const CONDUCT_COLUMNS = [
	...["Builder", "Findings", "Sent", "Accepted", "Mined", "Backruns kept", "Refunds paid (ETH)"],
	...["Mined after a cancel", "Seen in public alone", "Canaries leaked"],
];

/** `sums`: the answer of /operator/builders.json. */
function showConduct(sums) {
	element("conduct-part").hidden = sums.length === 0;
	const rows = sums.map((sum) => [
		...[sum.builder, findingsOf(sum), String(sum.sent), partOf(sum.accepted, sum.sent), String(sum.mined)],
		partOf(sum.backrun, sum.backrun + sum.otherBackrun + sum.noBackrun),
		partOf(inEther(sum.paidWei), inEther(sum.owedWei)),
		...[String(sum.minedAfterCancel), String(sum.seenAlone), `${sum.leakedCanaries} of ${sum.canaries}`],
	]);
	element("conduct").replaceChildren(tableOf(CONDUCT_COLUMNS, rows));
}

function findingsOf({ findings }) {
	if (findings.length === 0) return "none";
	return Object.assign(made("span", findings.map((name) => FINDINGS[name]).join(", ")), { className: "bad" });
}

/** "2 of 3" with a bar. */
function partOf(part, whole) {
	if (whole === 0) return "none";
	const cell = document.createDocumentFragment();
	const text = [part, whole].map((value) => value.toLocaleString("en", { maximumSignificantDigits: 4 }));
	cell.append(text.join(" of "), barOf(Math.min(100, (100 * part) / whole)));
	return cell;
}

function inEther(wei) {
	return Number(wei) / 1e18;
}

/** "; built 3 of the last day's 12 blocks with our transactions", or "" without such blocks. */
function shareText(name) {
	const all = [...blocks.values()].reduce((total, count) => total + count, 0);
	return all === 0
		? ""
		: `; built ${blocks.get(name) ?? 0} of the last day's ${all} blocks with our transactions`;
}

function builderLine({ name, last, waiting, hasRecords }) {
	const text =
		last === null
			? "was sent nothing yet"
			: `${ANSWERS[last.answer] ?? last.answer}, ${seconds(last.secondsAgo)} ago, in ${milliseconds(last.ms)}`;
	return `${text}; ${waiting} waiting; ${hasRecords ? "outcomes of bids are counted" : "outcomes of bids are not counted"}${shareText(name)}`;
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

/** Names of the builders. */
let names = [];
let hasDatabase = false;

/** The charts; see operator.js. */
function charts() {
	return [
		{
			...{ title: "Submissions", of: "core" },
			lines: {
				accepted: "accepted",
				rejected: "rejected",
				mined: "mined",
				"not mined": "not mined",
				reverted: "reverted",
			},
		},
		{
			...{ title: "Blocks until mined", of: "core" },
			lines: { median: "blocks 0.5", "90th percentile": "blocks 0.9" },
		},
		{ title: "Bids", of: "core", lines: { accepted: "bids", rejected: "bids rejected" } },
		{ title: "Refunds", of: "core", unit: "ETH", lines: { paid: "refunds" } },
		{
			title: "Pool by stage",
			of: "core",
			lines: Object.fromEntries(STAGES.map((name) => [name, `stage ${name}`])),
		},
		...names.flatMap((name) => [
			{
				...{ title: `${name}: answers`, of: "core" },
				lines: { accepted: `${name} accepted`, rejected: `${name} rejected`, failed: `${name} failed` },
			},
			{
				...{ title: `${name}: time of an answer`, of: "core", unit: "ms" },
				lines: { median: `${name} time 0.5`, "99th percentile": `${name} time 0.99` },
			},
		]),
		{
			...{ title: "Blocks with our transactions, by builder", of: "core" },
			lines: Object.fromEntries([...names, "other"].map((name) => [name, `${name} blocks`])),
		},
		{
			...{ title: "Time at the node", of: "core", unit: "ms" },
			lines: {
				"account, median": "account 0.5",
				"account, 99th percentile": "account 0.99",
				"simulation, median": "simulation 0.5",
				"simulation, 99th percentile": "simulation 0.99",
			},
		},
		{
			...{ title: "Time of a write to the store", of: "core", unit: "ms" },
			lines: { median: "store 0.5", "99th percentile": "store 0.99" },
		},
		{ title: "Searchers", lines: { subscriptions: "subscriptions" } },
		...(hasDatabase ? [{ title: "Edges", of: "core", lines: { connected: "edges" } }] : []),
		{ title: "Age of the head", unit: "s", lines: { age: "head age" } },
		{ title: "Memory", unit: "MiB", lines: { resident: "memory" } },
		{
			title: "Event loop delay",
			unit: "ms",
			lines: { median: "delay 0.5", "99th percentile": "delay 0.99" },
		},
	];
}

const RELAY_COLUMNS = [
	...["Relay", "Role", "Problems", "Reported"],
	...["Since", "Head", "Subscriptions", "Version"],
];

/** All relays on the core's database, the core first. */
function showRelays(relays) {
	element("relays-part").hidden = relays.length === 0;
	const rows = relays.map(({ name, role, since, head, subscriptions, version, secondsAgo, problems }) => [
		...[name, role === "core" ? "core: it decides" : "edge", problems.join("; ") || "nothing"],
		...[`${seconds(secondsAgo)} ago`, isoSecond(since), String(head ?? "none yet"), String(subscriptions)],
		version,
	]);
	element("relays").replaceChildren(tableOf(RELAY_COLUMNS, rows));
}

function showCore({ pool, builders, simulation, store, bids, isBidding, edges, relays }) {
	showRelays(relays ?? []);
	say("edges", `${edges} connected to the core`);
	say("pending", String(pool.pending));
	say("oldest", pool.oldestSeconds === null ? "none" : seconds(pool.oldestSeconds));
	const stages = Object.entries(pool.stages).map(([stage, count]) => `${stage} ${count}`);
	say("stages", stages.length === 0 ? "none" : stages.sort().join(", "));
	names = builders.map(({ name }) => name);
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
	hasDatabase = term !== null;
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
	const unknown = document.createElement("dd");
	unknown.className = "bad";
	unknown.textContent = UNKNOWN;
	element("builders").append(Object.assign(document.createElement("dt"), { textContent: "All" }), unknown);
	element("relays-part").hidden = true;
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

scrolls(element("conduct"), "Builders' conduct");
scrolls(element("relays"), "Relays");
operatorPage(show, charts, figuresCame);
