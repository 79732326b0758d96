// Reads from the node for the relay's own methods. Equal reads in flight are sent once, like
// clients' reads, but none is cached. All throw RpcError or ForeignRpcError, ready for the client.

import { parseNodeQuantity } from "../../shared/ethereum/hex.ts";
import { NODE_UNAVAILABLE, RpcError } from "../../shared/jsonrpc/errors.ts";
import type { Caller } from "../domain/ports.ts";
import type { Passthrough } from "./passthrough.ts";

export class NodeReads {
	readonly #passthrough: Pick<Passthrough, "read" | "call">;

	constructor(passthrough: Pick<Passthrough, "read" | "call">) {
		this.#passthrough = passthrough;
	}

	/** How many transactions the account has sent, including those in the node's mempool. */
	async pendingCount(address: string, caller: Caller): Promise<bigint> {
		const count = parseNodeQuantity(await this.transactionCount(address, "pending", caller));
		if (count !== null) return count;
		throw new RpcError("internal", "internal error", NODE_UNAVAILABLE);
	}

	/** The node's answer for any block number, tag or EIP-1898 object: a quantity. */
	transactionCount(address: string, block: unknown, caller: Caller): Promise<unknown> {
		return this.#passthrough.read("eth_getTransactionCount", [address, block], caller);
	}

	/** The node's transaction object, or null. */
	transactionByHash(hash: string, caller: Caller): Promise<unknown> {
		return this.#passthrough.read("eth_getTransactionByHash", [hash], caller);
	}

	/** The node's receipt, or null. */
	receipt(hash: string, caller: Caller): Promise<unknown> {
		return this.#passthrough.read("eth_getTransactionReceipt", [hash], caller);
	}

	/** The node's logs for the object that `eth_getLogs` takes. */
	logs(criteria: unknown, caller: Caller): Promise<unknown> {
		return this.#passthrough.call("eth_getLogs", [criteria], caller);
	}
}
