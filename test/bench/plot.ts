// Draws what things cost: for each chart a small picture, all in one SVG. A chart of growth has a
// line over the sizes, which are logarithmic; a flat line is a cost that grows as its work does. A
// chart of others has a bar for each. All values start from zero. The picture takes the colour of
// the text around it, so that it can be read on a light and a dark page.

/** A figure at one size of what grows. */
export interface GrowthPoint {
	/** The measured figure and what grows: "CPU of a bid, by pending transactions". */
	readonly chart: string;
	/** The size. */
	readonly at: number;
	readonly value: number;
	/** The unit of the value: "µs". */
	readonly unit: string;
}

/** The same figure of one of several programs. */
export interface Bar {
	readonly chart: string;
	/** The program's name. */
	readonly of: string;
	readonly value: number;
	readonly unit: string;
}

const COLUMNS = 3;
const [WIDTH, HEIGHT] = [240, 170];
/** The axes within a chart. */
const BOX = { left: 56, right: 204, top: 44, bottom: 144 };
/** A bar's height, and the space from one to the next. */
const [BAR, PITCH] = [12, 20];
/** The left end of all bars, and the length of the longest. */
const [BARS_LEFT, BARS_WIDTH] = [76, 104];

/** The SVG's text. A chart of fewer than two points or bars is left out. */
export function plotOf(points: readonly GrowthPoint[], bars: readonly Bar[]): string {
	const charts = [...grouped(bars).map(barsOf), ...grouped(points).map(growthOf)];
	const rows = Math.ceil(charts.length / COLUMNS);
	const drawn = charts.map((chart, i) => {
		const [x, y] = [(i % COLUMNS) * WIDTH, Math.floor(i / COLUMNS) * HEIGHT];
		return `<g transform="translate(${x} ${y})">${chart}</g>`;
	});
	const style = "text{font:10px sans-serif;fill:#777}polyline{fill:none;stroke:#2a7de1;stroke-width:2}";
	return [
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${COLUMNS * WIDTH} ${rows * HEIGHT}">`,
		"<title>What things cost, beside others and as they grow</title>",
		`<style>${style}path{stroke:#999;fill:none}circle,.ours{fill:#2a7de1}rect{fill:#aaa}</style>`,
		...drawn,
		"</svg>\n",
	].join("\n");
}

function grouped<One extends { readonly chart: string }>(all: readonly One[]): (readonly One[])[] {
	const charts = [...new Set(all.map(({ chart }) => chart))];
	return charts.map((chart) => all.filter((one) => one.chart === chart)).filter(({ length }) => length > 1);
}

/** Those that this project makes. */
const OURS = new Set(["boost", "relay"]);

function barsOf(bars: readonly Bar[]): string {
	const most = Math.max(...bars.map(({ value }) => value));
	const drawn = bars.map(({ of, value, unit }, i) => {
		const y = 26 + i * PITCH;
		const width = Math.max(1, Math.round((value / most) * BARS_WIDTH));
		return [
			text(BARS_LEFT - 4, y + BAR - 2, of, "end"),
			`<rect class="${OURS.has(of) ? "ours" : ""}" x="${BARS_LEFT}" y="${y}" width="${width}" height="${BAR}"/>`,
			text(BARS_LEFT + width + 4, y + BAR - 2, `${short(value)} ${unit}`, "start"),
		].join("");
	});
	return [text(8, 14, bars[0]?.chart ?? "", "start"), ...drawn].join("");
}

function growthOf(points: readonly GrowthPoint[]): string {
	const sorted = [...points].sort((a, b) => a.at - b.at);
	const logs = sorted.map(({ at }) => Math.log10(at));
	const [low, high] = [Math.min(...logs), Math.max(...logs)];
	const most = Math.max(...sorted.map(({ value }) => value), Number.MIN_VALUE);
	const places = sorted.map((point, i) => ({
		point,
		x: between(BOX.left, BOX.right, high === low ? 0.5 : ((logs[i] ?? low) - low) / (high - low)),
		y: between(BOX.bottom, BOX.top, point.value / most),
	}));
	const [title = "", grows = ""] = (sorted[0]?.chart ?? "").split(", by ");
	const labels = places.map(
		({ point: { at, value, unit }, x, y }) =>
			`<circle cx="${x}" cy="${y}" r="3"/>${text(x, y - 6, `${short(value)} ${unit}`)}${text(x, BOX.bottom + 12, short(at))}`,
	);
	return [
		text(8, 14, title, "start"),
		text(BOX.right, BOX.bottom + 23, grows, "end"),
		`<path d="M${BOX.left - 28} ${BOX.top - 10}V${BOX.bottom}H${BOX.right}"/>`,
		`<polyline points="${places.map(({ x, y }) => `${x},${y}`).join(" ")}"/>`,
		...labels,
	].join("");
}

function between(from: number, to: number, share: number): number {
	return Math.round(from + share * (to - from));
}

function text(x: number, y: number, what: string, anchor = "middle"): string {
	const escaped = what.replace(/&/g, "&amp;").replace(/</g, "&lt;");
	return `<text x="${x}" y="${y}" text-anchor="${anchor}">${escaped}</text>`;
}

/** "1,000" and "0.53". */
function short(value: number): string {
	return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}
