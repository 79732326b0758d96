// What an execution changed comes in, as the node's tracer tells it; the state for what comes behind it goes out.

import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { StateOverrides } from "../engines/engine.ts";
import { applyDiff } from "../engines/stateDiff.ts";

/** Who sent it, and which authorizations (EIP-7702) came with it: whether a delegation ended is seen by them alone. */
export type Signer = Pick<DecodedTransaction, "from" | "chainId" | "authorizationList">;

/** What an unsigned call carries. */
export const NO_AUTHORIZATIONS = { chainId: 0n, authorizationList: [] } as const;

/** `overrides` and on top of them what was changed; null where `diff` is not what the tracer answers. */
export function putBehind(overrides: StateOverrides, diff: unknown, signer: Signer): StateOverrides | null {
	// It looks at these three fields alone.
	return applyDiff(overrides, diff, signer as DecodedTransaction);
}
