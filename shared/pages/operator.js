// The operator's page: breakers with their history, the journal and the latency of calls. Breakers can be forced.

import { element, get, repeat, say } from "./common.js";

const POLL_MS = 2_000;
const STATES = {
	closed: "closed: it serves",
	open: "open: it is out",
	"half-open": "half open: it is being tried",
};
/** Words for each reason: boost puts them into the page. */
const REASONS = JSON.parse(document.body.dataset.reasons);

let token = sessionStorage.getItem("token") ?? "";

function state() {
	return get("/admin/state", { authorization: `Bearer ${token}` });
}

async function force(upstream, to) {
	const headers = { authorization: `Bearer ${token}` };
	await fetch(`/admin/${to}?upstream=${upstream}`, { method: "POST", headers });
	show(await state());
}

function reasonText(reason) {
	return reason === null ? "" : ` (${REASONS[reason] ?? reason})`;
}

function card(upstream, breaker) {
	const box = document.createElement("div");
	box.className = "card";
	const line = document.createElement("p");
	line.className = `state ${breaker.state === "closed" ? "good" : "bad"}`;
	line.textContent = `${upstream}: ${STATES[breaker.state] ?? breaker.state}${reasonText(breaker.reason)}`;
	const more = document.createElement("p");
	more.className = "soft";
	more.textContent = `since ${new Date(breaker.since).toLocaleString()}, ${breaker.inFlight} requests in flight`;
	box.append(line, more);
	if (breaker.hint) {
		const hint = document.createElement("p");
		hint.textContent = breaker.hint;
		line.after(hint);
	}
	for (const to of ["open", "close", "auto"]) {
		const button = document.createElement("button");
		button.className = "plain";
		button.textContent = to;
		button.setAttribute("aria-label", `${to} the breaker of the ${upstream}`);
		button.addEventListener("click", () => force(upstream, to));
		box.append(button);
	}
	return box;
}

/** The points of an SVG line whose height is 100 for `most`. */
function points(latency, of, most) {
	return latency.map((one, i) => `${i},${100 - (95 * (one[of] ?? 0)) / most}`).join(" ");
}

let drawn = "";

function show({ status, history, latency }) {
	element("login").hidden = true;
	element("inside").hidden = false;
	// Redrawn only if changed, since a replaced button loses the focus.
	const now = JSON.stringify(status);
	if (now !== drawn) {
		drawn = now;
		const upstreams = ["relay", "fallback"].filter((name) => status[name] !== null);
		element("breakers").replaceChildren(...upstreams.map((name) => card(name, status[name])));
	}
	say("depth", String(status.journal.depth));
	say("durable", status.journal.durable ? "yes" : "no");
	for (const name of ["relay", "fallback"]) say(`held-${name}`, String(status.journal.held[name]));
	const most = Math.max(1, ...latency.map(({ slowestMs }) => slowestMs));
	const calls = latency.reduce((sum, { calls }) => sum + calls, 0);
	say(
		"latency-text",
		`${calls} calls, the slowest in ${Math.round(Math.max(0, ...latency.map(({ slowestMs }) => slowestMs)))} ms.`,
	);
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

async function open() {
	show(await state());
	sessionStorage.setItem("token", token);
	void repeat(
		POLL_MS,
		async () => show(await state()),
		() => {},
	);
}

element("login").addEventListener("submit", (event) => {
	event.preventDefault();
	token = element("token").value;
	open().catch((fault) => say("problem", fault.message));
});
if (token !== "") open().catch(() => sessionStorage.removeItem("token"));
