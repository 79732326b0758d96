// The wallet's signature over the relay's name, a scope and an hour, which opens an account's own
// data.

import { get, now, say } from "./common.js";
import { signTyped } from "./typed.js";

/** How long what the wallet signs is good for, in seconds. */
const SIGNED_S = 3_600;
const READ = [
	{ name: "relay", type: "string" },
	{ name: "scope", type: "string" },
	{ name: "until", type: "uint256" },
];
/** The relay's name that the user knows: the page's host, and another one once it was shown. */
let known = location.host;

/**
 * The wallet's account and the header `X-Leeward-Signature` for `scope`. Null if the relay has
 * another name than the page: the page shows it, and the user decides by trying again.
 */
export async function signedRead(provider, scope) {
	const { name } = await get("/info");
	const relay = name ?? location.host;
	if (!/^[\w.:[\]-]{1,260}$/.test(relay)) throw new Error("the relay's name is not a host");
	if (relay !== known) {
		known = relay;
		say(
			"told",
			`The relay here calls itself ${relay}, and this page is at ${location.host}. Your signature would open your ${scope} at ${relay}. If you trust that name, press the button again.`,
		);
		return null;
	}
	say("told", `Your wallet asks you to sign: ${scope} at ${relay}, for an hour.`);
	const [account] = await provider.request({ method: "eth_requestAccounts" });
	const until = Math.floor(now() / 1000) + SIGNED_S;
	const signature = await signTyped(provider, account, "Read", READ, { relay, scope, until });
	return { account, header: `address=${account}, relay=${relay}, until=${until}, signature=${signature}` };
}
