// A bound on bytes that many share, each client up to its own share: whoever wants to take some asks, and is called again
// when others have given back. It holds no bytes itself.

import { Shares, type SharesOptions } from "../shares/shares.ts";

/** So many bytes may be taken at a time. */
export class ByteBudget {
	readonly #shares: Shares;
	readonly #blocked = new Set<() => void>();

	constructor(options: SharesOptions) {
		this.#shares = new Shares(options);
	}

	/** Takes `bytes` for `client`; where they don't fit nothing is taken, and `again` is called once some are given back. */
	take(client: string, bytes: number, again: () => void): boolean {
		const refusal = this.#shares.refusal(client, bytes);
		// More than there can ever be goes alone.
		const held = refusal === "client" ? this.#shares.of(client) : this.#shares.taken;
		if (refusal !== null && held > 0) {
			this.#blocked.add(again);
			return false;
		}
		this.#shares.force(client, bytes);
		return true;
	}

	/** Gives back what was taken. */
	give(client: string, bytes: number): void {
		this.#shares.give(client, bytes);
		const blocked = [...this.#blocked];
		this.#blocked.clear();
		for (const again of blocked) again();
	}

	/** Forgets one that waits: it has ended. */
	forget(again: () => void): void {
		this.#blocked.delete(again);
	}
}
