// Boost's operator's page: breakers with their history, the journal and the latency of calls.
// Breakers can be forced, once the operator has read what that does.

import { element, say } from "./common.js";
import { authorization, operatorPage } from "./operator.js";

const STATES = {
	closed: "closed: it serves",
	open: "open: it is down",
	"half-open": "half open: it is being tried",
};
/** Words for each reason: boost puts them into the page. */
const REASONS = JSON.parse(document.body.dataset.reasons);
/** Descriptions of forcing, by breaker. `hasFallback`: whether there is a fallback. */
const EFFECTS = {
	relay: {
		open: (hasFallback) =>
			hasFallback
				? "All requests go to the fallback, even if the relay is healthy. Requests that must not leave the relay are refused."
				: "There is no fallback: submissions are refused, even if the relay is healthy.",
		close: () =>
			"All requests go to the relay, even if it is down. Each request that fails there goes to the fallback, slowly.",
	},
	fallback: {
		open: () => "Nothing goes to the fallback: while the relay is down, submissions are refused.",
		close: () => "While the relay is down all goes to the fallback, even if that is down, too.",
	},
};

async function force(upstream, to) {
	const headers = authorization();
	const answer = await fetch(`/admin/${to}?upstream=${upstream}`, { method: "POST", headers });
	if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
	say("force-problem", "");
	await refresh();
}

/** Asks by a dialog, from which Escape leads back as well. */
function ask(upstream, to, hasFallback) {
	const dialog = element("force");
	say("force-title", `${to === "open" ? "Open" : "Close"} the breaker of the ${upstream}?`);
	say("force-text", `${EFFECTS[upstream][to](hasFallback)} It stays so until you choose auto.`);
	say("force-yes", to === "open" ? "Open it" : "Close it");
	dialog.returnValue = "no";
	dialog.addEventListener("close", () => dialog.returnValue === "yes" && act(upstream, to), { once: true });
	dialog.showModal();
}

function act(upstream, to) {
	force(upstream, to).catch(({ message }) =>
		say("force-problem", `The breaker of the ${upstream} stays as it is: ${message}.`),
	);
}

function reasonText(reason) {
	return reason === null ? "" : ` (${REASONS[reason] ?? reason})`;
}

let hasFallback = false;

/** Made once, since a button that is replaced loses the focus. */
function makeCard(upstream) {
	const box = document.createElement("div");
	box.className = "card";
	const [line, hint, more] = ["line", "hint", "more"].map((name) => {
		const part = document.createElement("p");
		part.id = `${upstream}-${name}`;
		return part;
	});
	more.className = "soft";
	box.append(line, hint, more);
	for (const to of ["open", "close", "auto"]) {
		const button = document.createElement("button");
		button.className = "plain";
		button.textContent = to;
		button.setAttribute("aria-label", `${to} the breaker of the ${upstream}`);
		button.addEventListener("click", () =>
			to === "auto" ? act(upstream, to) : ask(upstream, to, hasFallback),
		);
		box.append(button);
	}
	element("breakers").append(box);
}

function showBreaker(upstream, breaker) {
	if (document.getElementById(`${upstream}-line`) === null) makeCard(upstream);
	const line = element(`${upstream}-line`);
	line.className = `state ${breaker.state === "closed" ? "good" : "bad"}`;
	say(line.id, `${upstream}: ${STATES[breaker.state] ?? breaker.state}${reasonText(breaker.reason)}`);
	say(`${upstream}-hint`, breaker.hint ?? "");
	element(`${upstream}-hint`).hidden = !breaker.hint;
	const since = new Date(breaker.since).toLocaleString();
	say(`${upstream}-more`, `since ${since}, ${breaker.inFlight} requests in flight`);
}

/** The points of an SVG line whose height is 100 for `most`. */
function points(latency, of, most) {
	return latency.map((one, i) => `${i},${100 - (95 * (one[of] ?? 0)) / most}`).join(" ");
}

function show({ status, history, latency }) {
	hasFallback = status.fallback !== null;
	for (const upstream of ["relay", "fallback"]) {
		if (status[upstream] !== null) showBreaker(upstream, status[upstream]);
	}
	say("depth", String(status.journal.depth));
	say("durable", status.journal.durable ? "yes" : "no");
	for (const name of ["relay", "fallback"]) say(`held-${name}`, String(status.journal.held[name]));
	const slowest = Math.max(0, ...latency.map(({ slowestMs }) => slowestMs));
	const calls = latency.reduce((sum, { calls }) => sum + calls, 0);
	say("latency-text", `${calls} calls, the slowest in ${Math.round(slowest)} ms.`);
	const most = Math.max(1, slowest);
	element("mean").setAttribute("points", points(latency, "meanMs", most));
	element("slowest").setAttribute("points", points(latency, "slowestMs", most));
	element("history").replaceChildren(
		...history.toReversed().map(({ at, upstream, state, reason }) => {
			const time = document.createElement("time");
			time.dateTime = at;
			time.textContent = new Date(at).toLocaleTimeString([], { hour12: false });
			const line = document.createElement("li");
			line.append(time, `${upstream}: ${STATES[state] ?? state}${reasonText(reason)}`);
			return line;
		}),
	);
}

const refresh = operatorPage(show);
