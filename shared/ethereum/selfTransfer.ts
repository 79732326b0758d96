// A transfer to its own sender: a decoded transaction comes in, whether it is one goes out. What it then means, a soft
// cancel for example, is for the caller to decide.

import type { DecodedTransaction } from "./transaction.ts";

/** Whether it is a transfer to its own sender that does nothing else: no data, no blobs, no delegation. */
export function isSelfTransfer({
	type,
	from,
	to,
	data,
}: Pick<DecodedTransaction, "type" | "from" | "to" | "data">): boolean {
	return to === from && data.length === 0 && type <= 2;
}
