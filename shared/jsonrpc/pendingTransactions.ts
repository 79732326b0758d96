// The answers to clients that request the hashes of pending transactions, as from a node. The calls
// are `eth_subscribe ["newPendingTransactions"]`, which `on("pending")` of ethers also sends, and
// `eth_newPendingTransactionFilter`. We have no hashes to give. But an error to that call ends
// programs that use ethers, since nothing catches it there. So the call succeeds and the refusal
// follows: on a websocket as an error with id null, for a filter when it is polled.

import { errorText } from "./answers.ts";
import { RpcError } from "./errors.ts";

/** The name of the subscription. */
export const NEW_PENDING_TRANSACTIONS = "newPendingTransactions";

/** The id of every such subscription and filter: "pending" as hex. None of them has any state. */
export const PENDING_ID = `0x${Buffer.from("pending").toString("hex")}`;

const NONE =
	"pending transactions are private, none is announced here: searchers subscribe to service_partialPendingTransactions";

/**
 * The answer to polls of such a filter. On −32000 viem would consider the filter expired, and make
 * another one at each poll.
 */
export const NO_PENDING_TRANSACTIONS = new RpcError(
	"methodNotFound",
	`the method eth_newPendingTransactionFilter does not exist/is not available: ${NONE}`,
);

/** The same as a websocket's message, which follows the subscription's id. */
export const NO_PENDING_TRANSACTIONS_TEXT = errorText(
	null,
	NO_PENDING_TRANSACTIONS.code,
	`${NEW_PENDING_TRANSACTIONS} does not exist/is not available: ${NONE}`,
);
