// Binds a store to one chain, so that no relay of another chain starts with it, and keeps the
// signing key when none is configured.

import { createKey } from "../../shared/ethereum/signatures.ts";
import { checkFormat } from "../../shared/kv/format.ts";
import type { KeyValueStore } from "../../shared/kv/port.ts";
import type { Logger } from "../../shared/log.ts";
import { CHAIN, SIGNING_KEY } from "../domain/storeKeys.ts";

/** The store was made for another chain. */
export class OtherChainError extends Error {
	readonly code = "OTHER_CHAIN";
	constructor(kept: string, asked: string) {
		super(
			`the store belongs to another chain (chain id and genesis ${kept}; the node has ${asked}): set DATA_DIR or DATABASE_URL to another one`,
		);
		this.name = "OtherChainError";
	}
}

/**
 * Binds the store to the chain at the first start. Throws {@link OtherChainError} or
 * OtherFormatError if the store is not this relay's.
 */
export async function bindToChain(kv: KeyValueStore, chainId: bigint, genesisHash: string): Promise<void> {
	await checkFormat(kv);
	const identity = `${chainId} ${genesisHash}`;
	const kept = (await kv.get(CHAIN))?.toString("utf8");
	if (kept === undefined) await kv.write([{ key: CHAIN, value: Buffer.from(identity) }]);
	else if (kept !== identity) throw new OtherChainError(kept, identity);
}

/**
 * The signing key in the store, created at the first call. Logs a warning: builders identify a
 * relay by its key.
 */
export async function keptSigningKey(kv: KeyValueStore, log: Logger): Promise<string> {
	log.warn("SIGNING_KEY is not set: requests to builders are signed with a key kept in the store");
	const kept = await kv.get(SIGNING_KEY);
	if (kept !== null) return kept.toString("utf8");
	const key = createKey();
	await kv.write([{ key: SIGNING_KEY, value: Buffer.from(key) }]);
	return key;
}
