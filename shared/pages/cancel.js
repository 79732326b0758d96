// Cancels a transaction with the signature of the account that sent it, and says which account that is where it was another one.

import { call, say } from "./common.js";
import { hexOf, keccak256 } from "./keccak.js";

/** `isLive`: whether it is still pending, once `done` has read it again. */
export async function cancel(hash, provider, { done, isLive }) {
	say("cancelled", "Waiting for your wallet…");
	try {
		const accounts = await provider.request({ method: "eth_requestAccounts" });
		const sender = await senderOf(hash);
		const account = accounts.find((one) => one.toLowerCase() === sender) ?? accounts[0];
		const error = await send(hash, provider, account);
		await done();
		if (error === undefined) say("cancelled", "Cancelled.");
		else if (isLive() && sender !== null && account.toLowerCase() !== sender) {
			say(
				"cancelled",
				`Not cancelled: only the account that sent it may cancel it, and you asked with ${account}. Choose the account that sent it in your wallet, and try again.`,
			);
		} else say("cancelled", `Not cancelled: ${error.message}`);
	} catch (fault) {
		say("cancelled", `Not cancelled: ${fault.message}`);
		await done();
	}
}

/** The account that sent it, as anybody with the hash may ask for it; null where nobody says so now. */
async function senderOf(hash) {
	const transaction = await call("eth_getTransactionByHash", [hash]).catch(() => null);
	return typeof transaction?.from === "string" ? transaction.from.toLowerCase() : null;
}

/** The error of the answer, if it is one. */
async function send(hash, provider, account) {
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
	return (await (await fetch("/", { method: "POST", headers, body })).json()).error;
}
