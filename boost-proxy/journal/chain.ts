// What a journal is of: the format of its records, and the chain, whose id is asked for until somebody tells it. A journal
// of another chain stops the start where that is known by then, and is logged as an error where not.

import type { Background } from "../../shared/background.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import { parseQuantity } from "../../shared/ethereum/hex.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import { type Logger, safeError } from "../../shared/log.ts";
import type { ChainReads } from "../domain/ports.ts";

const FORMAT_KEY = "m/format";
const CHAIN_KEY = "m/chain";
/** Of the records that this version writes. */
const FORMAT = "1";
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

/** The journal was written by a version whose records this one can't read. */
export class JournalFormatError extends Error {
	override readonly name = "JournalFormatError";
	readonly code = "JOURNAL_FORMAT";
	constructor() {
		super(`the journal was written by another version (expected format ${FORMAT}): ${ELSEWHERE}`);
	}
}

export interface BindingDependencies {
	readonly chain: ChainReads;
	readonly clock: Clock;
	readonly background: Background;
	readonly log: Logger;
}

/** Binds a journal to the chain as soon as that is known. */
export class ChainBinding {
	readonly #kv: KeyValueStore;
	/** The chain's id as it lies in the journal; null: it is bound to none. */
	#kept: string | null;
	#chainId: bigint | null = null;
	readonly #stopping = new AbortController();

	private constructor(kv: KeyValueStore, kept: string | null) {
		this.#kv = kv;
		this.#kept = kept;
	}

	/** Reads what the journal is of; marks a new one. Throws {@link JournalFormatError}, or the store's fault. */
	static async open(kv: KeyValueStore): Promise<ChainBinding> {
		const format = await kv.get(FORMAT_KEY);
		if (format === null) await kv.write([{ key: FORMAT_KEY, value: Buffer.from(FORMAT) }]);
		else if (format.toString("utf8") !== FORMAT) throw new JournalFormatError();
		return new ChainBinding(kv, (await kv.get(CHAIN_KEY))?.toString("utf8") ?? null);
	}

	/** Null until somebody told it. */
	get chainId(): bigint | null {
		return this.#chainId;
	}

	/** Asks once; goes on asking in the background where nobody answers. Rejects for a journal of another chain. */
	async start(dependencies: BindingDependencies): Promise<void> {
		const { clock, background, log, chain } = dependencies;
		const { signal } = this.#stopping;
		if (await this.#ask(chain)) return;
		background.run("chain", async () => {
			try {
				do await pause(clock, AGAIN_MS, signal);
				while (!signal.aborted && !(await this.#ask(chain)));
			} catch (thrown) {
				log.error("the journal is of another chain", { fault: safeError(thrown) });
			}
		});
	}

	stop(): void {
		this.#stopping.abort();
	}

	/** Answers whether it is bound; throws {@link OtherChainError} where it is bound to another one. */
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
			// Where the disk fails, which is logged elsewhere, it is tried again.
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
