// Facts about bidders on the key-value store: those of one block are one entry, found in the order of their blocks. What
// they mean is decided elsewhere.

import { type Change, type KeyValueStore, prefixRange, StoreFormatError } from "../../shared/kv/port.ts";

const PREFIX = "c/";
const DIGITS = 12;

/** The facts of one block; `F` is what one of them is, in JSON values. */
export interface BlockFacts<F> {
	readonly number: number;
	readonly hash: string;
	readonly facts: readonly F[];
}

/** Keeps facts by block. What fails with the store is thrown. */
export class ConductStore<F> {
	readonly #kv: KeyValueStore;

	constructor(dependencies: { readonly kv: KeyValueStore }) {
		this.#kv = dependencies.kv;
	}

	/** All that is kept, in the order of the blocks. Throws StoreFormatError on a damaged entry. */
	async *load(): AsyncIterable<BlockFacts<F>> {
		for await (const [key, bytes] of this.#kv.range(...prefixRange(PREFIX))) {
			const [, number, hash] = key.split("/");
			try {
				yield {
					number: Number(number),
					hash: hash ?? "",
					facts: JSON.parse(bytes.toString("utf8")) as readonly F[],
				};
			} catch {
				throw new StoreFormatError(key);
			}
		}
	}

	/** Writes the facts of these blocks in the place of what was kept of them; none: forgets the block. */
	async put(blocks: readonly BlockFacts<F>[]): Promise<void> {
		const changes = blocks.map(({ number, hash, facts }): Change => {
			const key = `${PREFIX}${number.toString().padStart(DIGITS, "0")}/${hash}`;
			return { key, value: facts.length === 0 ? null : Buffer.from(JSON.stringify(facts)) };
		});
		if (changes.length > 0) await this.#kv.write(changes);
	}
}
