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
export async function call(method, params = [], path = "/") {
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body });
	const { result, error } = await answer.json();
	if (error !== undefined) throw new Error(error.message);
	return result;
}

export async function get(path, headers = {}) {
	const answer = await fetch(path, { headers: { accept: "application/json", ...headers } });
	if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error ?? `HTTP ${answer.status}`);
	return answer.json();
}

/** Calls `found` once for each wallet with its name and provider. https://eips.ethereum.org/EIPS/eip-6963 */
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
