// Whether a simulation failed by an account that is another one by now: nobody is refused by what was remembered of him.

import type { Accounts } from "../domain/ports.ts";
import type { SimulationErrorCode } from "../domain/simulation.ts";

export interface AccountAgeDependencies {
	readonly accounts: Accounts;
	/** Called where the node has a later head than the tracked one: a look at it is due. */
	readonly onLaterHead: () => void;
}

/** Until a head that the node is known to have is worked off, about, in ms: then it is worth while to try again. */
export const LATER_HEAD_MS = 200;

/** Failures by the sender's account as it was remembered. */
const OF_ACCOUNT: ReadonlySet<SimulationErrorCode> = new Set([
	"NONCE_TOO_LOW",
	"NONCE_GAP",
	"INSUFFICIENT_FUNDS",
]);

/**
 * Whether what failed with `code` may pass now: the node is asked once more for the account of `sender`, in `client`'s
 * turn, and has another one. Throws UpstreamError.
 */
export async function isOutdated(
	{ sender, client, code }: { sender: string; client: string; code: SimulationErrorCode },
	{ accounts, onLaterHead }: AccountAgeDependencies,
): Promise<boolean> {
	if (!OF_ACCOUNT.has(code)) return false;
	const before = await accounts.get(sender, client);
	const now = await accounts.fresh(sender, client);
	if (now.block > before.block) onLaterHead();
	return now.nonce !== before.nonce || now.balance !== before.balance;
}
