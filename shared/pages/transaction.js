// The page of one transaction: its state, its events as they happen, and what the user can do.

import { element, ether, get, repeat, say, walletButtons } from "./common.js";
import { hexOf, keccak256 } from "./keccak.js";

const hash = location.pathname.split("/")[2] ?? "";
const POLL_MS = 3_000;
const LIVE = ["PENDING", "QUEUED", "SIMULATION_FAILED", "SHARED", "BROADCAST", "HELD"];
const GOOD = ["INCLUDED"];
const BAD = ["SIMULATION_FAILED", "REVERTED", "EXPIRED", "DROPPED"];

/** The text of each event; others are not listed. */
const EVENT_TEXTS = {
	received: () => "Received",
	queued: () => "Waits for an earlier transaction of the sender",
	ready: ({ block }) => `Its turn has come: it may go into block ${block}`,
	simulated: () => "Simulated: it passes",
	notSimulated: ({ error }) => `Sent unsimulated (${error?.message ?? error?.code})`,
	simulationFailed: ({ error }) => `Simulated: it fails (${error?.message ?? error?.code})`,
	shared: () => "Shown to searchers, without its signature",
	bundled: ({ block, bid }) =>
		`Sent to builders for block ${block} with a bid behind it${bid === undefined ? "" : `: ${ether(bid)}`}`,
	broadcast: ({ block }) => `Sent to builders for block ${block}`,
	included: ({ block, reverted }) =>
		reverted ? `Mined in block ${block}, and reverted` : `Mined in block ${block}`,
	reorged: () => "Its block has left the chain",
	exposed: ({ block }) => `Public now: it was seen in block ${block}, which is gone`,
	refunded: ({ paid, owed, cost }) =>
		paid === "0" && owed === "0" && cost !== "0"
			? `No refund: paying it would have cost ${ether(cost)}, which is more`
			: `Refund paid: ${ether(paid)}`,
	replaced: () => "Replaced by another transaction of the sender",
	cancelled: () => "Cancelled",
	expired: () => "Expired: no block took it in time",
	dropped: () => "Dropped: another transaction with its nonce was mined",
};
const ANSWERS = {
	accepted: "took it",
	rejected: "refused it",
	failed: "could not be reached",
	timeout: "did not answer",
	unsent: "was not sent it",
};

let last = "";
let isLive = true;
let isKnown = false;

function show(record) {
	const { stage, state = "not known here", reason, nextStep, exposed } = record;
	const { blockNumber, refundWei, transaction } = record;
	isLive = stage === undefined || LIVE.includes(stage);
	const shown = JSON.stringify(record);
	if (shown === last) return;
	last = shown;
	const line = element("state");
	line.textContent = state.charAt(0).toUpperCase() + state.slice(1);
	line.className = `state ${GOOD.includes(stage) ? "good" : BAD.includes(stage) ? "bad" : ""}`;
	for (const [id, text] of [
		["reason", reason && `Why: ${reason}.`],
		["next", nextStep && `What you can do: ${nextStep}.`],
		["exposed", exposed && `Note: ${exposed.message}.`],
	]) {
		element(id).hidden = !text;
		say(id, text || "");
	}
	say("block", blockNumber == null ? "–" : String(blockNumber));
	say("refund", refundWei === undefined || refundWei === "0" ? "–" : ether(refundWei));
	for (const name of ["from", "to", "nonce"]) say(name, transaction[name] || "–");
	say("shared", record.shared ? "yes" : "no");
	say("bids", String(record.backruns));
	element("cancelling").hidden = stage === undefined || !isLive;
}

function item(at, text) {
	const time = document.createElement("time");
	const date = new Date(at);
	time.dateTime = date.toISOString();
	time.textContent = date.toLocaleTimeString([], { hour12: false });
	const line = document.createElement("li");
	line.append(time, text);
	return line;
}

/** Redraws all events, since earlier ones may have more details by now. */
function showLife({ events }) {
	const lines = [];
	const builders = new Map();
	for (const event of events) {
		const text = EVENT_TEXTS[event.type]?.(event);
		if (text !== undefined) lines.push(item(event.at, text));
		if (event.type === "delivered" && event.kind !== "cancel") builders.set(event.builder, event.answer);
	}
	element("life").replaceChildren(...lines);
	element("delivered").hidden = builders.size === 0;
	element("builders").replaceChildren(
		...[...builders].map(([name, answer]) => {
			const line = document.createElement("li");
			line.textContent = `${name} ${ANSWERS[answer] ?? answer}`;
			return line;
		}),
	);
}

let turn = Promise.resolve();

/** One at a time, so that no older answer is drawn over a newer one. */
function refresh() {
	turn = turn.catch(() => {}).then(readAndShow);
	return turn;
}

async function readAndShow() {
	// The record is asked for last and drawn with the life, so that it knows of all that the life tells.
	const life = await get(`/tx/${hash}/events`).catch(() => null);
	const record = await get(`/tx/${hash}`);
	show(record);
	isKnown = record.stage !== undefined;
	if (isKnown && life !== null) showLife(life);
}

/** Refreshes the page at each event. If the stream fails, the polls below go on. */
function listen() {
	const source = new EventSource(`/tx/${hash}/events`);
	let due = false;
	source.onmessage = () => {
		if (due) return;
		due = true;
		setTimeout(async () => {
			due = false;
			await refresh().catch(() => {});
		}, 50);
	};
	source.onerror = () => source.close();
	return source;
}

async function cancel(provider) {
	try {
		const [account] = await provider.request({ method: "eth_requestAccounts" });
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_cancelTransaction", params: [hash] });
		const utf8 = (text) => new TextEncoder().encode(text);
		// Made here: whoever answered for it could choose what the wallet signs.
		const digest = keccak256(utf8(body));
		const message = hexOf(utf8(digest));
		const signature = await provider.request({ method: "personal_sign", params: [message, account] });
		const headers = {
			"content-type": "application/json",
			"x-flashbots-signature": `${account}:${signature}`,
		};
		const { error } = await (await fetch("/", { method: "POST", headers, body })).json();
		say("cancelled", error === undefined ? "Cancelled." : `Not cancelled: ${error.message}`);
	} catch (fault) {
		say("cancelled", `Not cancelled: ${fault.message}`);
	}
	await refresh().catch(() => {});
}

say("hash", hash);
document.title = `${hash.slice(0, 10)}…: Leeward`;
walletButtons("wallets", (name) => `Cancel with ${name}`, cancel);
let source = null;
void repeat(
	POLL_MS,
	async () => {
		await refresh();
		if (!isLive) source?.close();
		else if (isKnown && (source === null || source.readyState === EventSource.CLOSED)) source = listen();
	},
	(fault) => say("state", `No answer: ${fault.message}`),
);
