// Checks that the journal has this version's format and belongs to the upstreams' chain. Their
// chain id is queried until it is answered. A journal of another chain stops the start, or is
// logged as an error if the id becomes known later.

import type { Background } from "../../shared/background.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import { parseQuantity } from "../../shared/ethereum/hex.ts";
import { checkFormat, hasFormat } from "../../shared/kv/format.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { ChainReads } from "../domain/ports.ts";

const CHAIN_KEY = "m/chain";
const ASK_MS = 1_000;
const AGAIN_MS = 1_000;
const ELSEWHERE = "set DATA_DIR or DATABASE_URL to another one";

/** The journal was made for another chain. */
export class OtherChainError extends Error {
	override readonly name = "OtherChainError";
	readonly code = "OTHER_CHAIN";
	constructor(kept: string, asked: string) {
		const chains = `chain id ${kept}; the upstreams have ${asked}`;
		super(`the journal belongs to another chain (${chains}): ${ELSEWHERE}`);
	}
}

export interface BindingDependencies {
	readonly chain: ChainReads;
	readonly clock: Clock;
	readonly background: Background;
	readonly log: Logger;
}

/** Binds a journal to the chain as soon as the chain is known. */
export class ChainBinding {
	readonly #kv: KeyValueStore;
	/** The chain id stored in the journal; null if there is none yet. */
	#kept: string | null;
	#chainId: bigint | null = null;
	readonly #stopping = new AbortController();

	private constructor(kv: KeyValueStore, kept: string | null) {
		this.#kv = kv;
		this.#kept = kept;
	}

	/** Reads the journal's chain. Rejects with OtherFormatError, or if the store fails. */
	static async open(kv: KeyValueStore): Promise<ChainBinding> {
		await checkFormat(kv);
		return new ChainBinding(kv, (await kv.get(CHAIN_KEY))?.toString("utf8") ?? null);
	}

	/**
	 * Whether another journal has the same format and belongs to no other chain. Rejects if its store
	 * fails.
	 */
	async fits(other: KeyValueStore): Promise<boolean> {
		if (!(await hasFormat(other))) return false;
		const kept = (await other.get(CHAIN_KEY))?.toString("utf8");
		return kept === undefined || this.chainId === null || BigInt(kept) === this.chainId;
	}

	/**
	 * The id from the node or our relay, else from the journal, but never from a fallback. Null until
	 * it is known.
	 */
	get chainId(): bigint | null {
		return this.#chainId ?? (this.#kept === null ? null : BigInt(this.#kept));
	}

	/**
	 * Queries once, and continues in the background if there is no answer. Rejects for a journal of
	 * another chain.
	 */
	async start(dependencies: BindingDependencies): Promise<void> {
		const { clock, background, log, chain } = dependencies;
		const { signal } = this.#stopping;
		if (await this.#ask(chain)) return;
		background.run("chain", async () => {
			try {
				do await pause(clock, AGAIN_MS, signal);
				while (!signal.aborted && !(await this.#ask(chain)));
			} catch (thrown) {
				log.error("journal belongs to another chain", { fault: safeError(thrown) });
			}
		});
	}

	stop(): void {
		this.#stopping.abort();
	}

	/**
	 * Returns whether it is bound; throws {@link OtherChainError} if it is bound to another chain.
	 */
	async #ask(chain: ChainReads): Promise<boolean> {
		const [answer] = (await chain.batch([{ method: "eth_chainId", params: [] }], ASK_MS)) ?? [];
		const found =
			answer?.ok === true && typeof answer.result === "string" ? parseQuantity(answer.result) : null;
		if (found === null) return false;
		this.#chainId = found;
		const asked = found.toString();
		if (this.#kept !== null && this.#kept !== asked) throw new OtherChainError(this.#kept, asked);
		if (this.#kept === null) {
			const write = this.#kv.write([{ key: CHAIN_KEY, value: Buffer.from(asked) }]);
			// A failed write is logged elsewhere and retried.
			if (
				!(await write.then(
					() => true,
					() => false,
				))
			)
				return false;
			this.#kept = asked;
		}
		return true;
	}
}
