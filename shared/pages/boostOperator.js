// Boost's operator's page: breakers with their changes, the journal, and figures over time.
// Breakers can be forced, once the operator has read what that does.

import { element, say } from "./common.js";
import { authorization, isoSecond, operatorPage } from "./operator.js";
import { scrolls, tableOf } from "./tables.js";

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
		button.id = `${upstream}-${to}`;
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
	const inFlight = `${breaker.inFlight} request${breaker.inFlight === 1 ? "" : "s"} in flight`;
	say(`${upstream}-more`, `since ${isoSecond(breaker.since)}, ${inFlight}`);
	const inForce = breaker.reason !== "forced" ? "auto" : breaker.state === "open" ? "open" : "close";
	for (const to of ["open", "close", "auto"])
		element(`${upstream}-${to}`).setAttribute("aria-pressed", String(to === inForce));
}

/** The breakers' changes, oldest first. */
let changes = [];

/** When the breaker of `upstream` was not closed, in s since the epoch. */
function bandsOf(upstream) {
	const own = changes.filter((change) => change.upstream === upstream);
	return own.flatMap(({ at, state }, i) => {
		if (state === "closed") return [];
		const to = Date.parse(own[i + 1]?.at ?? new Date().toISOString()) / 1_000;
		return [{ from: Date.parse(at) / 1_000, to, state }];
	});
}

/** The charts; see operator.js. */
function charts() {
	const upstreams = hasFallback ? ["relay", "fallback"] : ["relay"];
	return [
		...upstreams.map((name) => ({
			title: `Time of a request to the ${name}`,
			unit: "ms",
			lines: { median: `${name} time 0.5`, "99th percentile": `${name} time 0.99` },
			bands: () => bandsOf(name),
		})),
		{
			title: "Time of a client's call",
			unit: "ms",
			lines: { median: "call 0.5", "99th percentile": "call 0.99" },
		},
		{
			title: "Answers to clients",
			lines: {
				ok: "ok",
				refused: "refused",
				limited: "limited",
				unavailable: "unavailable",
				internal: "internal",
			},
		},
		{ title: "Transactions in the journal", lines: { "not final": "depth" } },
		{
			title: "Failed over, and came back",
			lines: { "to the fallback": "to fallback", "back to the relay": "to relay" },
		},
		{ title: "Open websockets", lines: { websockets: "websockets" } },
		{ title: "Memory", unit: "MiB", lines: { resident: "memory" } },
		{
			title: "Event loop delay",
			unit: "ms",
			lines: { median: "delay 0.5", "99th percentile": "delay 0.99" },
		},
	];
}

/** This instance and the others on its database. Names are long and random. */
function showInstances(instances) {
	element("instances-part").hidden = instances.length === 0;
	const rows = instances.map(({ name, isSilent, reaches, upSeconds, secondsAgo }, i) => [
		`${name.slice(0, 8)}${i === 0 ? ", this one" : ""}`,
		reaches ? "yes" : "no",
		isSilent ? "–" : isoSecond(new Date(Date.now() - upSeconds * 1_000).toISOString()),
		isSilent ? "it is silent" : `${Math.round(secondsAgo)} s ago`,
	]);
	element("instances").replaceChildren(tableOf(["Instance", "Reaches the relay", "Since", "Reported"], rows));
}

function show({ status, history, instances }) {
	showInstances(instances ?? []);
	changes = history;
	hasFallback = status.fallback !== null;
	for (const upstream of ["relay", "fallback"]) {
		if (status[upstream] !== null) showBreaker(upstream, status[upstream]);
	}
	say("depth", String(status.journal.depth));
	say("durable", status.journal.durable ? "yes" : "no");
	for (const name of ["relay", "fallback"]) say(`held-${name}`, String(status.journal.held[name]));
	element("no-changes").hidden = history.length > 0;
	element("history").replaceChildren(
		...history.toReversed().map(({ at, upstream, state, reason }) => {
			const time = document.createElement("time");
			time.dateTime = at;
			time.textContent = isoSecond(at);
			const line = document.createElement("li");
			line.append(time, `${upstream}: ${STATES[state] ?? state}${reasonText(reason)}`);
			return line;
		}),
	);
}

scrolls(element("instances"), "Boost instances");
const refresh = operatorPage(show, charts);
