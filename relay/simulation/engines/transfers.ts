// What a node's logs and frames say of transfers of Ether: which logs are none of a contract's, and what an address got
// in one transaction. Fees are no transfers, and what was undone does not count.

import { parseQuantity } from "../../../shared/ethereum/hex.ts";
import { isObject, readHex } from "./json.ts";

/** Of the system's own logs: each transfer of Ether is one from Amsterdam on. https://eips.ethereum.org/EIPS/eip-7708 */
const SYSTEM_ADDRESS = "0xfffffffffffffffffffffffffffffffffffffffe";

/** Whether one of `logs`, as a node gives them, is a contract's. */
export function emitsEvents(logs: unknown): boolean {
	return Array.isArray(logs) && logs.some((log) => isObject(log) && readHex(log.address) !== SYSTEM_ADDRESS);
}

/** A delegatecall's value is only shown, and a callcode's goes to the caller itself. */
const TRANSFERRING = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]);

/** Wei that `recipient` (lower case) got in a transaction of which `root` is callTracer's answer; never below zero. */
export function receivedByFrames(root: unknown, recipient: string): bigint {
	let sum = 0n;
	const open: unknown[] = [root];
	while (open.length > 0) {
		const frame = open.pop();
		// A failed call takes those in it with it.
		if (!isObject(frame) || typeof frame.error === "string") continue;
		sum += movedBy(frame, recipient);
		if (Array.isArray(frame.calls)) for (const call of frame.calls) open.push(call);
	}
	return sum > 0n ? sum : 0n;
}

function movedBy(frame: Readonly<Record<string, unknown>>, recipient: string): bigint {
	if (typeof frame.type !== "string" || !TRANSFERRING.has(frame.type.toUpperCase())) return 0n;
	const value = typeof frame.value === "string" ? (parseQuantity(frame.value) ?? 0n) : 0n;
	const got = readHex(frame.to) === recipient ? value : 0n;
	return readHex(frame.from) === recipient ? got - value : got;
}
