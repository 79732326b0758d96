// Cancels a transaction with the signature of the account that sent it, and says which account that
// is where it was another one.

import { call, say } from "./common.js";
import { signTyped } from "./typed.js";

const CANCEL = [{ name: "transaction", type: "bytes32" }];

/** `isLive`: whether it is still pending, once `done` has read it again. */
export async function cancel(hash, provider, { done, isLive }) {
	say("cancelled", "Waiting for your wallet…");
	try {
		const accounts = await provider.request({ method: "eth_requestAccounts" });
		const sender = await senderOf(hash);
		const account = accounts.find((one) => one.toLowerCase() === sender) ?? accounts[0];
		const signature = await signTyped(provider, account, "Cancel", CANCEL, { transaction: hash });
		const error = await call("eth_cancelTransaction", [hash, signature]).then(
			() => null,
			(fault) => fault,
		);
		await done();
		if (error === null) say("cancelled", "Cancelled.");
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

/**
 * The account that sent it, as anybody with the hash may ask for it; null where nobody says so now.
 */
async function senderOf(hash) {
	const transaction = await call("eth_getTransactionByHash", [hash]).catch(() => null);
	return typeof transaction?.from === "string" ? transaction.from.toLowerCase() : null;
}
