// What a journal is of: the format of its records and the chain that it belongs to. What comes in is a store and a
// chain, what goes out is a refusal where it is of another kind.

import type { KeyValueStore } from "../../shared/kv/port.ts";

const FORMAT_KEY = "m/format";
const CHAIN_KEY = "m/chain";
/** Of the records that this version writes. */
const FORMAT = "1";

/** The journal was made for another chain. */
export class OtherChainError extends Error {
	readonly code = "OTHER_CHAIN";
	constructor(kept: string, asked: string) {
		super(
			`the journal belongs to another chain (chain id ${kept}; the upstreams have ${asked}): set DATA_DIR or DATABASE_URL to another one`,
		);
		this.name = "OtherChainError";
	}
}

/** The journal was written by a version whose records this one can't read. */
export class JournalFormatError extends Error {
	readonly code = "JOURNAL_FORMAT";
	constructor() {
		super(
			`the journal was written by another version (expected format ${FORMAT}): set DATA_DIR or DATABASE_URL to another one`,
		);
		this.name = "JournalFormatError";
	}
}

/** The chain that a journal belongs to. */
export class JournalChain {
	readonly #kv: KeyValueStore;
	#chain: string | null;

	constructor(options: { chain: string | null }, dependencies: { kv: KeyValueStore }) {
		this.#chain = options.chain;
		this.#kv = dependencies.kv;
	}

	/** Ties it to a chain at the first call; throws {@link OtherChainError} where it is tied to another one. */
	async bindTo(chainId: bigint): Promise<void> {
		const asked = chainId.toString();
		if (this.#chain !== null) {
			if (this.#chain !== asked) throw new OtherChainError(this.#chain, asked);
			return;
		}
		this.#chain = asked;
		try {
			await this.#kv.write([{ key: CHAIN_KEY, value: Buffer.from(asked) }]);
		} catch (thrown) {
			this.#chain = null;
			throw thrown;
		}
	}
}

/** Reads what the journal is of; marks a new one. Throws {@link JournalFormatError}, or the store's fault. */
export async function identify(kv: KeyValueStore): Promise<JournalChain> {
	const format = await kv.get(FORMAT_KEY);
	if (format === null) await kv.write([{ key: FORMAT_KEY, value: Buffer.from(FORMAT) }]);
	else if (format.toString("utf8") !== FORMAT) throw new JournalFormatError();
	const chain = (await kv.get(CHAIN_KEY))?.toString("utf8") ?? null;
	return new JournalChain({ chain }, { kv });
}
