// Helpers of all pages: elements, requests to this server, and the browser's wallets (EIP-6963).

/** @param {string} id */
export function element(id) {
	const found = document.getElementById(id);
	if (found === null) throw new Error(`no element ${id}`);
	return found;
}

/** @param {string} id @param {string} text */
export function say(id, text) {
	element(id).textContent = text;
}

/** A JSON-RPC call. Throws an Error with the server's message. */
export async function call(method, params = [], path = "/", headers = {}) {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	const answer = await fetch(path, {
		method: "POST",
		headers: { "content-type": "application/json", ...headers },
		body,
	});
	noteTime(answer);
	const { result, error } = await answer.json();
	if (error !== undefined) throw new Error(error.message);
	return result;
}

export async function get(path, headers = {}) {
	return (await ask(path, headers)).json;
}

/**
 * As {@link get}; and who answered, where boost says so: `relay`, `fallback`, `journal` or `boost`.
 */
export async function ask(path, headers = {}) {
	const answer = await fetch(path, { headers: { accept: "application/json", ...headers } });
	noteTime(answer);
	if (!answer.ok) {
		const { error = `HTTP ${answer.status}` } = await answer.json().catch(() => ({}));
		throw Object.assign(new Error(error), { status: answer.status });
	}
	return { json: await answer.json(), by: answer.headers.get("x-boost-upstream") };
}

/**
 * How far the browser's clock is behind the server's, in ms; seconds are all that an answer's
 * `Date` has.
 */
let behindMs = 0;
const CLOSE_ENOUGH_MS = 3_000;

function noteTime({ headers }) {
	const ms = Date.parse(headers.get("date") ?? "") - Date.now();
	if (Math.abs(ms - behindMs) > CLOSE_ENOUGH_MS) behindMs = ms;
}

/**
 * The server's time in ms since the epoch. It goes on by the browser's own clock while nobody
 * answers.
 */
export function now() {
	return Date.now() + behindMs;
}

/**
 * Calls `found` once for each wallet with its name and provider.
 * https://eips.ethereum.org/EIPS/eip-6963
 */
export function wallets(found) {
	const known = new Set();
	window.addEventListener("eip6963:announceProvider", ({ detail }) => {
		if (known.has(detail.info.uuid)) return;
		known.add(detail.info.uuid);
		found(detail.info.name, detail.provider);
	});
	window.dispatchEvent(new Event("eip6963:requestProvider"));
}

/** Adds a button for each wallet to the element with this id. */
export function walletButtons(id, label, act) {
	wallets((name, provider) => {
		const button = document.createElement("button");
		button.textContent = label(name);
		button.addEventListener("click", () => act(provider));
		element(id).append(button);
		for (const none of document.querySelectorAll(".no-wallet")) none.hidden = true;
	});
}

/** Wei as Ether, with all digits but no trailing zeros. */
export function ether(wei) {
	const digits = String(wei).padStart(19, "0");
	const fraction = digits.slice(-18).replace(/0+$/, "");
	return `${digits.slice(0, -18)}${fraction === "" ? "" : `.${fraction}`} ETH`;
}

/** Runs `work` now and every `everyMs`, one at a time; `failed` is called with an error. */
export async function repeat(everyMs, work, failed) {
	for (;;) {
		try {
			if ((await work()) === "over") return;
		} catch (fault) {
			failed(fault);
		}
		await new Promise((resolve) => setTimeout(resolve, everyMs));
	}
}
