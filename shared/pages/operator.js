// Both operator's pages use this: the token, which is kept for this tab, and the state, which is
// polled.

import { element, get, repeat, say } from "./common.js";

const POLL_MS = 2_000;
/** Beside the page's own path, so that boost's /relay/operator asks the relay. */
const STATE = new URL("admin/state", document.baseURI).pathname;

/** Boost and the relay behind it may have different ones. */
const KEPT = `token of ${STATE}`;

let token = sessionStorage.getItem(KEPT) ?? "";

/** The header that shows who asks. */
export function authorization() {
	return { authorization: `Bearer ${token}` };
}

/**
 * Asks for the token, and then calls `show` with the state every two seconds. Returns a function
 * that does so at once.
 */
export function operatorPage(show) {
	const shown = async () => {
		const state = await get(STATE, authorization());
		say("build", `Version ${state.version}, commit ${state.commit}.`);
		say("stale", "");
		element("login").hidden = true;
		element("inside").hidden = false;
		show(state);
	};
	const open = async () => {
		await shown();
		sessionStorage.setItem(KEPT, token);
		void repeat(POLL_MS, shown, (fault) =>
			say("stale", `This page is out of date: there is no answer (${fault.message}).`),
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
