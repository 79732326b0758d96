// The live parts of a page: ages and times that tick by the browser's clock, also without answers.
// Also copy buttons, and links to an explorer if the operator has named one.

import { element, now, say } from "./common.js";

/** "https://etherscan.io", or "" for none. */
const EXPLORER = document.body.dataset.explorer ?? "";
const TICK_MS = 1_000;

/** "1 second", "25 seconds", "3 minutes", "2 hours", "4 days". @param {number} ms */
export function span(ms) {
	const seconds = Math.max(0, Math.round(ms / 1000));
	for (const [name, size] of [
		["day", 86_400],
		["hour", 3_600],
		["minute", 60],
	]) {
		if (seconds >= 2 * size) return counted(Math.floor(seconds / size), name);
	}
	return counted(seconds, "second");
}

/** "1 bid", "2 bids". */
export function counted(count, name) {
	return `${count} ${name}${count === 1 ? "" : "s"}`;
}

/** The time of day, as the browser's user writes it. @param {number} ms since the epoch */
export function clockTime(ms) {
	return new Date(ms).toLocaleTimeString([], { hour12: false });
}

/** Draws now, and again each second. */
export function everySecond(draw) {
	draw();
	setInterval(draw, TICK_MS);
}

let answeredAt = null;
let isSilent = false;

/**
 * Says in the element "silence" since when there was no answer; call it with each outcome of a
 * poll.
 */
export function heard(isAnswered) {
	isSilent = !isAnswered;
	if (isAnswered) answeredAt = now();
	drawSilence();
}

/** The words stand still, since they are read out when they change; the age beside them is not. */
function drawSilence() {
	element("silence").hidden = !isSilent;
	const since = answeredAt === null ? "" : ` since ${clockTime(answeredAt)}`;
	const text = isSilent ? `No answer${since}. This page may be out of date; it keeps asking.` : "";
	if (element("silence-text").textContent !== text) say("silence-text", text);
	say("silence-age", isSilent && answeredAt !== null ? `${span(now() - answeredAt)} ago` : "");
}

/** Starts the clock of the element "silence". */
export function watchSilence() {
	everySecond(drawSilence);
}

/**
 * A link to the explorer's page of a `kind`: "tx", "address" or "block"; the text alone where there
 * is no explorer.
 */
export function explorerLink(kind, id, text = id) {
	if (EXPLORER === "") return document.createTextNode(text);
	return link(`${EXPLORER}/${kind}/${id}`, text, true);
}

export const hasExplorer = EXPLORER !== "";

export function link(href, text, isOutside = false) {
	const anchor = document.createElement("a");
	anchor.href = href;
	anchor.textContent = text;
	if (isOutside) {
		anchor.rel = "noreferrer";
		anchor.className = "out";
	}
	return anchor;
}

/** Makes the button with this id copy the text of the element `of`. */
export function copies(id, of) {
	const button = element(id);
	const label = button.textContent;
	button.addEventListener("click", async () => {
		// Browsers give pages a clipboard over https and on localhost only.
		const isCopied = await copy(element(of).textContent);
		if (!isCopied) getSelection()?.selectAllChildren(element(of));
		button.textContent = isCopied ? "Copied" : "Selected";
		say("copied", isCopied ? "Copied." : "Selected: copy it with your keyboard.");
		setTimeout(() => {
			button.textContent = label;
			say("copied", "");
		}, 2_000);
	});
}

async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		return false;
	}
}
