// What an address got by transfers of Ether in one transaction: its logs or its frames, as a node told them, come in;
// wei go out, less what the address sent. Fees are no transfers. What was undone does not count.

import { parseQuantity } from "../../../shared/ethereum/hex.ts";
import { isObject, readHex } from "./json.ts";

/** Where `traceTransfers` makes transfers of Ether appear as logs: no contract's events. */
const TRANSFER_LOG_ADDRESS = "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/** A delegatecall's value is only shown, and a callcode's goes to the caller itself. */
const TRANSFERRING = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]);

/** Whether it is one of the logs that stand for a transfer of Ether. */
export function isTransferLog(log: Readonly<Record<string, unknown>>): boolean {
	return typeof log.address === "string" && log.address.toLowerCase() === TRANSFER_LOG_ADDRESS;
}

/**
 * Wei that `recipient` (lower case) got by the transfers among `logs`; never below zero. As good as the node's logs:
 * reth and anvil leave out what a selfdestruct sends, and older geths show what a callcode does not.
 */
export function receivedByLogs(logs: readonly unknown[], recipient: string): bigint {
	const topic = `0x${recipient.slice(2).padStart(64, "0")}`;
	let sum = 0n;
	for (const log of logs) {
		if (!isObject(log) || !isTransferLog(log) || !Array.isArray(log.topics)) continue;
		const [event, from, to] = log.topics.map(readHex);
		const data = readHex(log.data);
		if (event !== TRANSFER_TOPIC || data === null || data.length !== 66) continue;
		if (to === topic) sum += BigInt(data);
		if (from === topic) sum -= BigInt(data);
	}
	return sum > 0n ? sum : 0n;
}

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
