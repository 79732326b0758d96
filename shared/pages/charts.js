// Charts over time, drawn by uPlot in the colours of charts.css. Each is a figure with its title,
// the values as text, and a table for those who do not see the picture.
// https://github.com/leeoniya/uPlot

import { scrolls, tableOf } from "./tables.js";

/** Dashes by line, for those who do not see the colours. */
const DASHES = [[], [6, 3], [2, 3], [10, 3, 2, 3], [1, 2], [12, 4]];
/** Colours of charts.css. */
const TONES = 6;
const HEIGHT = 150;
const FONT = "11px system-ui, sans-serif";
const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
/** Whole days alone; weeks where there is no place for each. */
const DAY_TICKS = { incrs: [1, 7, 14, 28].map((days) => days * DAY_S), space: 60 };

const charts = new Set();
// A canvas does not follow the page's colours by itself.
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
	for (const one of charts) one.redraw(false);
});

function color(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function made(tag, className = "", text = "") {
	const node = document.createElement(tag);
	node.className = className;
	node.textContent = text;
	return node;
}

/** "2026-01-31 23:59Z". @param {number} ms since the epoch */
export function isoMinute(ms) {
	return `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")}Z`;
}

/** "97.3 %"; what is little is no zero. @param {number | null} value */
export function percent(value) {
	if (value === null) return "–";
	return value > 0 && value < 0.05 ? "< 0.1 %" : `${Number(value.toFixed(1))} %`;
}

/** "12", "1.5", "0.012", "3.4k": three digits. */
export function short(value) {
	if (value === null || value === undefined) return "–";
	if (Math.abs(value) >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
	return String(Number(value.toPrecision(3)));
}

/**
 * Adds a figure to the element `into`. `lines`: a name for each line. `unit`: after each value,
 * such as "ms"; "" for counts. `bands`: names of the states that may lie behind the lines, `open`
 * and `half-open`. `byDay`: for a value each day, whether as `lines` or as `bars`.
 *
 * Returns `show(times, columns, { from, bands })`: `times` in s since the epoch, the oldest first;
 * a column for each line, with null where there is no value; `from`: the start of the axis in s.
 * `bands`: [{ from, to, state }], in s.
 */
export function chart(into, { title, lines, unit = "", bands: states = [], byDay }) {
	const figure = made("figure", "chart");
	const legend = made("ul", "legend");
	const values = lines.map((name, i) => {
		const key = made("li", `key line-${toneOf(i)}`, `${name} `);
		const value = made("b");
		key.append(value);
		legend.append(key);
		return value;
	});
	for (const state of states) legend.append(made("li", `key band-${state}`, state.replace("-", " ")));
	const canvas = made("div", "plot");
	canvas.setAttribute("role", "img");
	const none = made("p", "soft none", "Nothing yet.");
	/** A time in s since the epoch, on the axis and in the table. */
	const timeOf = (s) => {
		const text = isoMinute(s * 1_000);
		return byDay === undefined ? text.slice(0, -1) : text.slice(0, 10);
	};
	const tickOf = (s) => (byDay === undefined ? timeOf(s).slice(11) : timeOf(s).slice(5));
	const names = lines.map((name) => (unit === "" ? name : `${name}, ${unit}`));
	const table = tableFor(title, [byDay === undefined ? "Time (UTC)" : "Day (UTC)", ...names], timeOf);
	figure.append(made("figcaption", "", title), canvas, none, legend, table.details);
	into.append(figure);

	let data = [[], ...lines.map(() => [])];
	let bands = [];
	let range = [0, HOUR_S];
	let plot = null;

	const say = (at) => {
		for (const [i, node] of values.entries()) {
			const text = `${short(data[i + 1]?.[at])}${data[i + 1]?.[at] == null || unit === "" ? "" : ` ${unit}`}`;
			if (node.textContent !== text) node.textContent = text;
		}
	};
	const last = () => data[0].length - 1;
	const draw = () => {
		plot = new globalThis.uPlot(
			{
				...{ width: Math.max(1, canvas.clientWidth), height: HEIGHT, legend: { show: false } },
				cursor: { y: false, drag: { x: false }, points: { size: 6 } },
				tzDate: inUtc,
				padding: [8, 18, 0, 0],
				scales: {
					x: { range: () => range },
					y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] },
				},
				axes: [
					axis({ values: (_plot, at) => at.map(tickOf), ...(byDay === undefined ? {} : DAY_TICKS) }),
					axis({ size: 42, values: (_plot, at) => at.map(short) }),
				],
				series: [{}, ...lines.map((_name, i) => lineOf(i, byDay === "bars"))],
				hooks: {
					drawClear: [(one) => drawBands(one, bands)],
					setCursor: [({ cursor: { idx } }) => say(idx ?? last())],
				},
			},
			data,
			canvas,
		);
	};
	new ResizeObserver(() => plot?.setSize({ width: Math.max(1, canvas.clientWidth), height: HEIGHT })).observe(
		canvas,
	);

	return (times, columns, { from, bands: behind = [] } = {}) => {
		data = [times, ...columns];
		bands = behind;
		range = [from ?? times[0] ?? 0, (times.at(-1) ?? 1) + (byDay === undefined ? 0 : DAY_S / 2)];
		const isEmpty = bands.length === 0 && !columns.some((column) => column.some((value) => value));
		canvas.hidden = isEmpty;
		none.hidden = !isEmpty;
		legend.hidden = isEmpty;
		if (plot !== null) plot.setData(data);
		else if (!isEmpty) {
			draw();
			charts.add(plot);
		}
		say(last());
		canvas.setAttribute("aria-label", `${title}: ${legend.textContent}. The table below has all values.`);
		table.show(times, columns);
	};
}

function axis(own) {
	const line = { stroke: () => color("--line"), width: 1 };
	return {
		stroke: () => color("--soft"),
		font: FONT,
		grid: line,
		ticks: { ...line, size: 4 },
		size: 28,
		...own,
	};
}

/** The number of a line's colour. */
function toneOf(i) {
	return (i % TONES) + 1;
}

function lineOf(i, asBars) {
	const stroke = () => color(`--line-${toneOf(i)}`);
	if (asBars) {
		const paths = globalThis.uPlot.paths.bars({ size: [0.7, 40] });
		return { paths, fill: stroke, points: { show: false } };
	}
	// After the last colour another dash comes with the first one.
	const dash = DASHES[(i + Math.floor(i / TONES)) % DASHES.length];
	return { stroke, width: 1.5, dash, points: { filter: lonely, size: 5, fill: stroke } };
}

/** The points between two gaps, which no line would show. */
function lonely({ data }, series) {
	const column = data[series];
	return column.flatMap((value, i) =>
		value != null && column[i - 1] == null && column[i + 1] == null ? [i] : [],
	);
}

/** uPlot puts its ticks by local time. */
function inUtc(s) {
	const date = new Date(s * 1_000);
	return new Date(date.getTime() + date.getTimezoneOffset() * 60_000);
}

function drawBands({ ctx, bbox, valToPos }, bands) {
	ctx.save();
	for (const { from, to, state } of bands) {
		const [left, right] = [from, to].map((s) =>
			Math.min(Math.max(valToPos(s, "x", true), bbox.left), bbox.left + bbox.width),
		);
		ctx.fillStyle = color(`--band-${state}`);
		if (right > left) ctx.fillRect(left, bbox.top, Math.max(right - left, 2), bbox.height);
	}
	ctx.restore();
}

/** The table of a figure, the latest row first. It is filled while it is open. */
function tableFor(title, columns, timeOf) {
	const box = made("div", "scrolled");
	scrolls(box, `Table: ${title}`);
	const details = made("details");
	details.append(made("summary", "", "Table"), box);
	let shown = [[], []];
	const fill = () => {
		if (!details.open) return;
		const [times, values] = shown;
		const rows = times.map((s, i) => [timeOf(s), ...values.map((column) => short(column[i]))]);
		box.replaceChildren(tableOf(columns, rows.reverse()));
	};
	details.addEventListener("toggle", fill);
	return {
		details,
		show(times, columns) {
			shown = [times, columns];
			fill();
		},
	};
}
