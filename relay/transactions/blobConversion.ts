// Gives pending blob transactions cell proofs once a fork requires them.

import type { Background } from "../../shared/background.ts";
import { clientOf } from "../../shared/client.ts";
import type { BlobProofs } from "../../shared/ethereum/blobProofs.ts";
import type { SidecarVersion } from "../../shared/ethereum/sidecar.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { withTx } from "../domain/transaction.ts";
import type { TransactionPacker } from "./packedTransaction.ts";
import type { Pool } from "./pool.ts";
import type { TransactionRecords } from "./records.ts";

export interface BlobConversionDependencies {
	readonly pool: Pool;
	readonly records: TransactionRecords;
	readonly packer: TransactionPacker;
	readonly blobProofs: Pick<BlobProofs, "ready">;
	readonly background: Pick<Background, "run">;
	/** See TransactionsDependencies. */
	readonly onChange: (sender: string, refresh: boolean) => void;
}

/** Converts the pending blob transactions. */
export class BlobConversion {
	readonly #dependencies: BlobConversionDependencies;
	/** Hashes of transactions whose cell proofs are being computed. */
	readonly #converting = new Set<string>();

	constructor(dependencies: BlobConversionDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * Gives pending blob transactions cell proofs if blocks of `version` need them. They came
	 * before the fork, or to an earlier release of the relay. On disk they stay unchanged. Call it
	 * at each head: if a client's quota is full, the rest waits for the next head.
	 */
	convert(version: SidecarVersion): void {
		const { pool, records, background, blobProofs } = this.#dependencies;
		for (const { transaction } of records.entries()) {
			const { tx, submitterAddress } = transaction;
			if (tx.sidecar === null || tx.sidecar.version >= version) continue;
			if (this.#converting.has(tx.hash) || pool.get(tx.hash) === undefined) continue;
			this.#converting.add(tx.hash);
			background.run("blobs", async () => {
				try {
					const verdict = await blobProofs.ready(tx, version, clientOf(submitterAddress));
					if (verdict.ok) this.#changeBytes(verdict.tx);
				} finally {
					this.#converting.delete(tx.hash);
				}
			});
		}
	}

	/** It is sent again, if it is still pending. */
	#changeBytes(tx: DecodedTransaction): void {
		const { pool, records, packer, onChange } = this.#dependencies;
		const entry = pool.get(tx.hash);
		if (entry === undefined) return;
		const transaction = withTx(entry.transaction, packer.pack(tx, entry.transaction.tx));
		records.setTransaction(transaction);
		pool.exchange(entry, transaction);
		onChange(tx.from, false);
	}
}
