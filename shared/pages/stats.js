// The public statistics of the last 90 days: charts by day, sums, and the service by quarter of an
// hour. Null is not known, and stays so in each picture and table.

import { chart, percent } from "./charts.js";
import { element, ether, get, say } from "./common.js";
import { barOf, drawn, made, scrolls, tableOf } from "./tables.js";

const DAY_S = 86_400;
const QUARTERS = 96;
const STATES = { u: "up", f: "carried by the fallback", d: "down", "-": "not known" };

function sum(days, of) {
	return days.reduce((all, day) => all + of(day), 0);
}

function sumWei(days, name) {
	return days.reduce((all, day) => all + BigInt(day[name]), 0n);
}

/** Wei as Ether, for a chart. */
function inEther(wei) {
	return wei === null ? null : Number(wei) / 1e18;
}

function share(part, whole) {
	return whole > 0 ? (100 * part) / whole : null;
}

/** The percentage of a day's transactions that took at most `most` blocks. */
function within(day, most) {
	if (day.blocksUntilMined === null) return null;
	const classes = Object.entries(day.blocksUntilMined);
	const of = (fits) => sum(classes.filter(fits), ([, count]) => count);
	return share(
		of(([name]) => Number(name) <= most),
		of(() => true),
	);
}

function drawDays(days) {
	const times = days.map(({ day }) => Date.parse(day) / 1_000);
	const column = (of) => days.map(of);
	const returned = (day) =>
		day.broughtWei === null || day.refundedWei === null
			? null
			: share(Number(day.refundedWei), Number(day.broughtWei));
	const charts = [
		[{ title: "Transactions mined", lines: ["mined"] }, [column((day) => day.transactions)]],
		[{ title: "Refunded", lines: ["refunded"], unit: "ETH" }, [column((day) => inEther(day.refundedWei))]],
		[
			{ title: "Mined within so many blocks", lines: ["1 block", "2 blocks", "5 blocks"], unit: "%" },
			[1, 2, 5].map((most) => column((day) => within(day, most))),
		],
		[{ title: "Refunded of what bids brought", lines: ["refunded"], unit: "%" }, [column(returned)]],
	];
	for (const [options, columns] of charts) {
		const byDay = options.unit === "%" ? "lines" : "bars";
		chart(element("charts"), { ...options, byDay })(times, columns, { from: times[0] - DAY_S / 2 });
	}
}

function drawSums(days) {
	const counted = days.filter(({ transactions }) => transactions !== null);
	const known = days.filter(({ blocksUntilMined }) => blocksUntilMined !== null);
	const notKnown = (list, text) => (list.length === 0 ? "not known" : text());
	say(
		"mined",
		notKnown(counted, () => sum(counted, ({ transactions }) => transactions).toLocaleString("en")),
	);
	say(
		"refunded",
		notKnown(counted, () => ether(sumWei(counted, "refundedWei"))),
	);
	const brought = known.length === 0 ? 0n : sumWei(known, "broughtWei");
	const shared = known.filter(({ refundedWei }) => refundedWei !== null);
	say(
		"share",
		brought > 0n ? percent(share(Number(sumWei(shared, "refundedWei")), Number(brought))) : "not known",
	);
	const waits = {};
	const builders = new Map();
	const add = (name, count) => count > 0 && builders.set(name, (builders.get(name) ?? 0) + count);
	for (const day of known) {
		for (const [name, count] of Object.entries(day.blocksUntilMined))
			waits[name] = (waits[name] ?? 0) + count;
		for (const { builder, transactions } of day.builders) add(builder, transactions);
	}
	const named = [...builders].sort((a, b) => b[1] - a[1]);
	builders.clear();
	add(
		"another",
		sum(known, (day) => day.otherBuilders),
	);
	add(
		"not known",
		sum(known, (day) => day.unknownBuilders),
	);
	const all = sum(Object.values(waits), (count) => count);
	say("first-block", all > 0 ? percent(share(waits[1], all)) : "not known");
	const names = Object.keys(waits);
	const rows = names.map((name, i) => [waitName(name, names[i - 1]), waits[name]]);
	element("waits").replaceChildren(table(["Blocks", "Transactions", "Share"], rows));
	element("builders").replaceChildren(table(["Builder", "Transactions", "Share"], [...named, ...builders]));
}

/** "4–5" for 5 behind 3. */
function waitName(name, before) {
	if (name === "more") return `more than ${before}`;
	return before === undefined || Number(name) === Number(before) + 1 ? name : `${Number(before) + 1}–${name}`;
}

/** A table of names and counts, with each one's share of all as a bar. */
function table(columns, rows) {
	const all = sum(rows, ([, count]) => count);
	if (all === 0) return made("p", "Nothing yet.");
	const body = rows.map(([name, count]) => {
		const part = share(count, all);
		return [name, count.toLocaleString("en"), percent(part), barOf(part)];
	});
	return tableOf([...columns, ""], body);
}

/** The runs of one state in a day: [state, first quarter, quarter behind the last one]. */
function runsOf(quarters) {
	return [...quarters.matchAll(/(.)\1*/g)].map((run) => [run[1], run.index, run.index + run[0].length]);
}

/** A column for each day, from midnight at the top to midnight at the bottom. */
function drawService(days) {
	const grid = drawn("svg", { viewBox: `0 0 ${days.length} ${QUARTERS}`, preserveAspectRatio: "none" });
	const counts = { u: 0, f: 0, d: 0, "-": 0 };
	const outages = [];
	for (const [x, { day, quarters }] of days.entries()) {
		for (const [state, first, end] of runsOf(quarters)) {
			counts[state] += end - first;
			const place = { x, y: first, width: 0.9, height: end - first };
			grid.append(drawn("rect", { ...place, class: `state-${state === "-" ? "unknown" : state}` }));
			if (state === "f" || state === "d") outages.unshift([day, timeOf(first), timeOf(end), STATES[state]]);
		}
	}
	const known = counts.u + counts.f + counts.d;
	const [from, to] = [days[0].day, days.at(-1).day];
	const text =
		known === 0
			? "Not known yet: the first day is shown once it has been over for a day."
			: `From ${from} to ${to}, of the quarters of an hour that are known: ${percent(share(counts.u, known))} up, ${percent(share(counts.f, known))} carried by the fallback for a part of it, ${percent(share(counts.d, known))} down for a part of it.`;
	say("service-told", text);
	element("grid").setAttribute(
		"aria-label",
		`The service by day and quarter of an hour. ${text} The table below has each that was not up.`,
	);
	element("grid").replaceChildren(grid, axis(from, to));
	element("outages").replaceChildren(
		outages.length === 0
			? made("p", known === 0 ? "Nothing is known yet." : "All that is known was up.")
			: tableOf(["Day", "From (UTC)", "To", "State"], outages),
	);
	element("service").hidden = false;
}

function timeOf(quarter) {
	const text = (n) => String(n).padStart(2, "0");
	return `${text(Math.floor(quarter / 4))}:${text((quarter % 4) * 15)}`;
}

function axis(from, to) {
	const node = document.createElement("div");
	node.className = "axis soft";
	node.append(made("span", from), made("span", to));
	return node;
}

async function showDays() {
	try {
		const days = await get("/stats.json");
		const isKnown = days.some(({ transactions }) => transactions !== null);
		const [from, to] = [days[0].day, days.at(-1).day];
		say(
			"told",
			isKnown
				? `${from} to ${to}, by days of UTC. Days before the count began are not known.`
				: "Nothing is known yet: the first whole day is shown once it has been over for a day.",
		);
		if (!isKnown) return;
		element("figures").hidden = false;
		drawSums(days);
		drawDays(days);
	} catch (fault) {
		say("told", `The figures are not available: ${fault.message}`);
	}
}

/** The conduct of each builder. */
async function showConduct() {
	const shares = await get("/stats/builders.json").catch(() => []);
	element("conduct-part").hidden = shares.length === 0;
	const rows = shares.map(({ builder, backrun, refunded }) => [builder, partOf(backrun), partOf(refunded)]);
	element("conduct").replaceChildren(tableOf(["Builder", "Bids kept", "Refunds paid"], rows));
}

/** A share from 0 to 1, with a bar. */
function partOf(part) {
	if (part === null) return "none yet";
	const cell = document.createDocumentFragment();
	cell.append(`${percent(100 * part)} `, barOf(100 * part));
	return cell;
}

async function showService() {
	try {
		drawService(await get("/stats/service.json"));
	} catch (fault) {
		say("service-told", `Not available: ${fault.message}`);
	}
}

for (const [id, name] of [
	["waits", "Blocks until mined"],
	["builders", "Builders"],
	["conduct", "Conduct of builders"],
	["outages", "Quarters of an hour that were not up"],
])
	scrolls(element(id), name);
void showDays();
void showConduct();
void showService();
