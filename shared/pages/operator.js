// Both operator's pages use this: the token, which is kept for this tab, the state, which arrives as
// an event stream, and the figures over time.

import { chart } from "./charts.js";
import { element, get, repeat, say } from "./common.js";

/** How often the state is asked for without a stream, and the figures, in ms. */
const POLL_MS = 2_000;
const FIGURES_MS = 15_000;
/** A stream without a message for so long is dead: the state comes every two seconds. */
const SILENT_MS = 8_000;
/** Beside the page's own path, so that boost's /relay/operator asks the relay. */
const ADMIN = new URL("admin/", document.baseURI).pathname;

/** Boost and the relay behind it may have different ones. */
const KEPT = `token of ${ADMIN}`;

let token = sessionStorage.getItem(KEPT) ?? "";

/** The header that shows who asks. */
export function authorization() {
	return { authorization: `Bearer ${token}` };
}

/** "2026-01-31 23:59:59Z"; a text that is no time, as it is. @param {string} at ISO 8601 */
export function isoSecond(at) {
	const ms = Date.parse(at);
	return Number.isNaN(ms) ? at : `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/**
 * Asks for the token, and then calls `show` with each state, and `figuresCame` with each answer of
 * /admin/history. `charts`: see {@link drawFigures}. Returns a function that asks for the state at
 * once.
 */
export function operatorPage(show, charts, figuresCame = () => {}) {
	const draw = (state) => {
		say("build", `Version ${state.version}, commit ${state.commit.slice(0, 8)}.`);
		say("stale", "");
		showProblems(state.problems);
		element("login").hidden = true;
		element("inside").hidden = false;
		show(state);
	};
	const shown = async () => draw(await get(`${ADMIN}state`, authorization()));
	const open = async () => {
		await shown();
		sessionStorage.setItem(KEPT, token);
		const figures = drawFigures(charts);
		void repeat(
			FIGURES_MS,
			async () => {
				const report = await get(`${ADMIN}history`, authorization());
				figures(report);
				await figuresCame(report);
			},
			() => {},
		);
		void repeat(
			POLL_MS,
			async () => {
				await follow(draw).catch(() => {});
				// The stream has ended or failed: is there anybody who answers?
				await shown();
			},
			(fault) => say("stale", `This page is out of date: there is no answer (${fault.message}).`),
		);
	};
	element("login").addEventListener("submit", (event) => {
		event.preventDefault();
		token = element("token").value;
		open().catch((fault) => say("problem", fault.message));
	});
	if (token !== "") open().catch(() => sessionStorage.removeItem(KEPT));
	return shown;
}

/** Reads states from the event stream until it ends. EventSource can't send the token. */
async function follow(draw) {
	const abort = new AbortController();
	let timer = setTimeout(() => abort.abort(), SILENT_MS);
	try {
		const headers = { ...authorization(), accept: "text/event-stream" };
		const answer = await fetch(`${ADMIN}events`, { headers, signal: abort.signal });
		if (!answer.ok || answer.body === null) return;
		const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
		let text = "";
		for (;;) {
			const { value, done } = await reader.read();
			if (done) return;
			clearTimeout(timer);
			timer = setTimeout(() => abort.abort(), SILENT_MS);
			const messages = (text + value).split("\n\n");
			text = messages.pop() ?? "";
			const last = messages.findLast((message) => message.startsWith("data: "));
			if (last !== undefined) draw(JSON.parse(last.slice("data: ".length)));
		}
	} finally {
		clearTimeout(timer);
		abort.abort();
	}
}

let shownProblems = "";

/** Shows problems with advice. They are read out, so the text changes only when the words do. */
function showProblems(problems) {
	const words = JSON.stringify(problems);
	if (words === shownProblems) return;
	shownProblems = words;
	const lines = problems.flatMap(({ text, todo, isSerious }) => {
		const [line, advice] = [document.createElement("p"), document.createElement("p")];
		line.className = `state ${isSerious ? "bad" : "warned"}`;
		line.textContent = sentence(text);
		advice.textContent = todo === "" ? "" : `What to do: ${todo}.`;
		return [line, advice];
	});
	if (lines.length === 0) {
		const line = document.createElement("p");
		line.className = "state good";
		line.textContent = "Nothing is wrong.";
		lines.push(line);
	}
	element("problems").className = `card status ${problems.length === 0 ? "" : "warn"}`;
	element("problems").replaceChildren(...lines);
}

function sentence(text) {
	return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

const PERIODS = {
	hour: { seconds: 3_600, text: "A point for each minute. Times are UTC." },
	day: {
		seconds: 86_400,
		text: "A point for each quarter of an hour. Times are UTC.",
	},
};

/**
 * Returns a function that draws an answer of /admin/history. `charts()`: for each chart its title,
 * unit, and its lines: names, each with its column of the process's own figures or of the core's.
 * `bands`: a function that returns what lies behind it; see charts.js.
 */
function drawFigures(charts) {
	/** By title. */
	const made = new Map();
	let report = null;
	let period = "hour";
	const draw = () => {
		if (report === null) return;
		const { seconds, text } = PERIODS[period];
		say("period-text", text);
		element("no-core").hidden = report.core !== null || !charts().some(({ of }) => of === "core");
		for (const { title, of = "own", unit = "", lines, bands } of charts()) {
			const frame = report[of]?.[period];
			if (frame === undefined) continue;
			const options = {
				title,
				unit,
				lines: Object.keys(lines),
				bands: bands === undefined ? [] : ["open", "half-open"],
			};
			if (!made.has(title)) made.set(title, chart(element("charts"), options));
			const columns = Object.values(lines).map((name) => frame.columns[name] ?? frame.times.map(() => null));
			const from = (frame.times.at(-1) ?? 0) - seconds;
			made.get(title)(frame.times, columns, { from, bands: bands?.() ?? [] });
		}
	};
	for (const name of Object.keys(PERIODS)) {
		element(`period-${name}`).addEventListener("click", () => {
			period = name;
			for (const other of Object.keys(PERIODS))
				element(`period-${other}`).setAttribute("aria-pressed", String(other === name));
			draw();
		});
	}
	return (next) => {
		report = next;
		draw();
	};
}
