// The errors for methods that are not served. Each names the method to call instead, if it is
// known.

import { nearest } from "../nearest.ts";
import { quotable } from "./answers.ts";
import { RpcError } from "./errors.ts";

const SUBMIT = "use eth_sendRawTransaction [raw]";
const CANCEL_BUNDLE = "use eth_cancelBundle [{replacementUuid}]";
/** Methods of other relays that wallets and searchers may call, each with its replacement here. */
const OTHER_RELAYS: ReadonlyMap<string, string> = new Map([
	[
		"eth_sendPrivateTransaction",
		"eth_sendRawTransaction never shares transactions in the public mempool, use it instead",
	],
	["eth_sendPrivateRawTransaction", SUBMIT],
	["eth_cancelPrivateTransaction", "use eth_cancelTransaction [hash]"],
	["eth_cancelPrivateRawTransaction", "use eth_cancelTransaction [hash]"],
	["eth_cancelBundleByHash", CANCEL_BUNDLE],
	["mev_cancelBundle", CANCEL_BUNDLE],
	["blxr_private_tx", SUBMIT],
	["blxr_submit_bundle", "use mev_sendBundle [bundle]"],
	["blxr_simulate_bundle", "use eth_callBundle [bundle]"],
]);

/** The error for a method that is not served. The words are go-ethereum's. */
export function methodNotFound(method: string, reason?: string): RpcError {
	const tail = reason === undefined ? "" : `: ${reason}`;
	const message = `the method ${quotable(method)} does not exist/is not available${tail}`;
	return new RpcError("methodNotFound", message);
}

/** Whether it is a method of other relays, which this service never serves. */
export function isOtherRelays(method: string): boolean {
	return OTHER_RELAYS.has(method);
}

/**
 * The error for a method that is not among the `known` ones. It names our replacement, or the
 * nearest name.
 */
export function unknownMethod(method: string, known: readonly string[]): RpcError {
	const ours = OTHER_RELAYS.get(method);
	if (ours !== undefined) return methodNotFound(method, ours);
	const meant = nearest(method, known);
	return methodNotFound(method, meant === null ? undefined : `did you mean ${meant}?`);
}
