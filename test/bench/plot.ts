// Draws how figures grow: for each chart a small picture with a line, both axes logarithmic, all in
// one SVG. It takes the colour of the text around it, so that it can be read on a light and a dark
// page.

/** A figure at one size of what grows. */
export interface GrowthPoint {
	/** The measured figure and what grows: "a start: it serves after, by pending transactions". */
	readonly chart: string;
	/** The size. */
	readonly at: number;
	readonly value: number;
	/** The unit of the value: "ms". */
	readonly unit: string;
}

const COLUMNS = 3;
const [WIDTH, HEIGHT] = [240, 170];
/** The axes within a chart. */
const BOX = { left: 52, right: 204, top: 40, bottom: 144 };

/** The SVG's text. A chart of fewer than two points has no line and is left out. */
export function plotOf(points: readonly GrowthPoint[]): string {
	const charts = [...new Set(points.map(({ chart }) => chart))]
		.map((chart) => points.filter((point) => point.chart === chart).sort((a, b) => a.at - b.at))
		.filter(({ length }) => length > 1);
	const rows = Math.ceil(charts.length / COLUMNS);
	const drawn = charts.map((chart, i) => {
		const [x, y] = [(i % COLUMNS) * WIDTH, Math.floor(i / COLUMNS) * HEIGHT];
		return `<g transform="translate(${x} ${y})">${chartOf(chart)}</g>`;
	});
	const style = "text{font:10px sans-serif;fill:#777}polyline{fill:none;stroke:#2a7de1;stroke-width:2}";
	return [
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${COLUMNS * WIDTH} ${rows * HEIGHT}">`,
		"<title>How the benchmark's figures grow</title>",
		`<style>${style}path{stroke:#999;fill:none}circle{fill:#2a7de1}</style>`,
		...drawn,
		"</svg>\n",
	].join("\n");
}

function chartOf(points: readonly GrowthPoint[]): string {
	const x = axis(
		points.map(({ at }) => at),
		BOX.left,
		BOX.right,
	);
	const y = axis(
		points.map(({ value }) => value),
		BOX.bottom,
		BOX.top,
	);
	const places = points.map((point) => ({ point, x: x(point.at), y: y(point.value) }));
	const [title = "", grows = ""] = (points[0]?.chart ?? "").split(", by ");
	const labels = places.map(
		({ point: { value, unit }, x, y }) =>
			`<circle cx="${x}" cy="${y}" r="3"/><text x="${x}" y="${y - 6}" text-anchor="middle">${short(value)} ${escaped(unit)}</text>`,
	);
	const sizes = places.map(
		({ point: { at }, x }) =>
			`<text x="${x}" y="${BOX.bottom + 12}" text-anchor="middle">${short(at)}</text>`,
	);
	return [
		`<text x="8" y="14">${escaped(title)}</text>`,
		`<text x="${BOX.right}" y="${BOX.bottom + 23}" text-anchor="end">${escaped(grows)}</text>`,
		`<path d="M${BOX.left - 12} ${BOX.top - 10}V${BOX.bottom}H${BOX.right}"/>`,
		`<polyline points="${places.map(({ x, y }) => `${x},${y}`).join(" ")}"/>`,
		...labels,
		...sizes,
	].join("");
}

/**
 * The position of a value between `from` and `to`, in pixels; the middle if there is only one
 * value.
 */
function axis(values: readonly number[], from: number, to: number): (value: number) => number {
	const logs = values.map((value) => Math.log10(Math.max(value, Number.MIN_VALUE)));
	const [low, high] = [Math.min(...logs), Math.max(...logs)];
	return (value) => {
		const share = high === low ? 0.5 : (Math.log10(Math.max(value, Number.MIN_VALUE)) - low) / (high - low);
		return Math.round(from + share * (to - from));
	};
}

/** "1,000" and "0.53". */
function short(value: number): string {
	return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function escaped(text: string): string {
	return text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
}
