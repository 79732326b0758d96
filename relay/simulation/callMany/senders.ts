// The senders of signed transactions: their addresses and a block come in, nonce, balance and kind of code of each in
// the state after it go out, asked of the node in one batch.

import { readQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { RpcAnswer } from "../../../shared/jsonrpc/client.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import type { Asking } from "./asking.ts";
import type { SenderState } from "./transactionRules.ts";

/** `0xef0100` and an address. https://eips.ethereum.org/EIPS/eip-7702 */
const DELEGATION = /^0xef0100[0-9a-f]{40}$/i;

/** By lower-case address. Throws RpcError: `rejected` where the node does not have that block's state. */
export async function readSenders(
	asking: Asking,
	addresses: readonly string[],
	block: number,
): Promise<ReadonlyMap<string, SenderState>> {
	const distinct = [...new Set(addresses)];
	const at = toQuantity(block);
	const answers = await asking.askAll(
		distinct.flatMap((address) => [
			{ method: "eth_getTransactionCount", params: [address, at] },
			{ method: "eth_getBalance", params: [address, at] },
			{ method: "eth_getCode", params: [address, at] },
		]),
	);
	return new Map(
		distinct.map((address, i) => {
			const state = readState(answers.slice(3 * i, 3 * i + 3));
			if (state === null) throw stateUnavailable(block);
			return [address, state];
		}),
	);
}

/** Answered where the node has the block, but not its state. */
export function stateUnavailable(block: number): RpcError {
	return new RpcError("rejected", `node cannot run transactions on the state of block ${block}`);
}

function readState(answers: readonly RpcAnswer[]): SenderState | null {
	const [nonce, balance, code] = answers.map((answer) => (answer.ok ? answer.result : null));
	const [nonceValue, balanceValue] = [readQuantity(nonce), readQuantity(balance)];
	if (nonceValue === null || balanceValue === null || typeof code !== "string") return null;
	return { nonce: nonceValue, balance: balanceValue, code: kindOfCode(code) };
}

function kindOfCode(code: string): SenderState["code"] {
	if (code === "0x" || code === "") return "none";
	return DELEGATION.test(code) ? "delegated" : "contract";
}
