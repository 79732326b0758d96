// A pending transaction as it is kept in memory. Its bytes are in blocks of many transactions, and
// rarely used fields are decoded from them again. A decoded transaction would take three times its
// bytes in the heap, and keep alive other memory that was allocated beside it.

import type { SidecarVersion } from "../../shared/ethereum/sidecar.ts";
import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import type {
	AccessListEntry,
	Authorization,
	TransactionType,
} from "../../shared/ethereum/transactionFields.ts";

/**
 * Bytes of one block. The last of its transactions frees it, so a transaction that waits long keeps
 * at most this much alive.
 */
const BLOCK_BYTES = 8 * 1024;
/** Transactions of more bytes get their own buffer. */
const SMALL_BYTES = BLOCK_BYTES / 4;

/** Packs transactions. Each keeps its own bytes alive, and those of its block. */
export class TransactionPacker {
	#block: Buffer = Buffer.alloc(0);
	#used = 0;
	#chainId = 0n;

	/**
	 * The same transaction with a copy of its bytes. `like`: another kept transaction of its
	 * sender, whose equal field values are reused.
	 */
	pack(tx: DecodedTransaction, like: DecodedTransaction | undefined): DecodedTransaction {
		// All chain ids are equal, but each is its own object: use one for all.
		if (tx.chainId !== this.#chainId) this.#chainId = tx.chainId;
		const { raw, size } = tx;
		if (size > SMALL_BYTES) {
			const isAlone = raw.buffer.byteLength === size;
			return new PackedTransaction(tx, like, isAlone ? raw : copyAlone(raw), 0, this.#chainId);
		}
		if (this.#used + size > this.#block.length) {
			this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
			this.#used = 0;
		}
		const at = this.#used;
		this.#used += size;
		this.#block.set(raw, at);
		return new PackedTransaction(tx, like, this.#block, at, this.#chainId);
	}
}

function copyAlone(bytes: Buffer): Buffer {
	const copy = Buffer.allocUnsafeSlow(bytes.length);
	copy.set(bytes);
	return copy;
}

const NONE: readonly never[] = [];

/** All empty lists become one interned object. */
function interned<T>(list: readonly T[]): readonly T[] {
	return list.length === 0 ? NONE : list;
}

/** `own`, or the equal object that is already kept. */
function known<T extends string | bigint | null>(own: T, other: T | undefined): T {
	return other === own ? other : own;
}

class PackedTransaction implements DecodedTransaction {
	readonly type: TransactionType;
	readonly chainId: bigint;
	readonly nonce: bigint;
	readonly gasLimit: bigint;
	readonly to: string | null;
	readonly value: bigint;
	readonly accessList: readonly AccessListEntry[];
	readonly maxFeePerGas: bigint;
	readonly maxPriorityFeePerGas: bigint;
	readonly maxFeePerBlobGas: bigint | null;
	readonly blobVersionedHashes: readonly string[];
	readonly authorizationList: readonly Authorization[];
	readonly hash: string;
	readonly from: string;
	readonly size: number;
	readonly zeroBytes: number;
	readonly sidecar: { readonly version: SidecarVersion; readonly blobCount: number } | null;
	readonly #block: Buffer;
	/** The start of its bytes, and of its data, in the block. */
	readonly #at: number;
	readonly #dataAt: number;
	readonly #dataSize: number;

	constructor(
		tx: DecodedTransaction,
		like: DecodedTransaction | undefined,
		block: Buffer,
		at: number,
		chainId: bigint,
	) {
		this.type = tx.type;
		this.chainId = chainId;
		this.nonce = tx.nonce;
		this.gasLimit = known(tx.gasLimit, like?.gasLimit);
		this.to = known(tx.to, like?.to);
		this.value = known(tx.value, like?.value);
		this.accessList = interned(tx.accessList);
		this.maxFeePerGas = known(tx.maxFeePerGas, like?.maxFeePerGas);
		this.maxPriorityFeePerGas = known(tx.maxPriorityFeePerGas, like?.maxPriorityFeePerGas);
		this.maxFeePerBlobGas = known(tx.maxFeePerBlobGas, like?.maxFeePerBlobGas);
		this.blobVersionedHashes = interned(tx.blobVersionedHashes);
		this.authorizationList = interned(tx.authorizationList);
		this.hash = tx.hash;
		this.from = known(tx.from, like?.from);
		this.size = tx.size;
		this.zeroBytes = tx.zeroBytes;
		this.sidecar = tx.sidecar;
		this.#block = block;
		this.#at = at;
		this.#dataAt = at + tx.data.byteOffset - tx.raw.byteOffset;
		this.#dataSize = tx.data.length;
	}

	get raw(): Buffer {
		return this.#block.subarray(this.#at, this.#at + this.size);
	}

	get data(): Buffer {
		return this.#block.subarray(this.#dataAt, this.#dataAt + this.#dataSize);
	}

	get gasPrice(): bigint | null {
		return this.type <= 1 ? this.maxFeePerGas : null;
	}

	get v(): bigint {
		return this.#decoded().v;
	}

	get yParity(): 0 | 1 {
		return this.#decoded().yParity;
	}

	get r(): bigint {
		return this.#decoded().r;
	}

	get s(): bigint {
		return this.#decoded().s;
	}

	#decoded(): DecodedTransaction {
		const decoded = decodeTransaction(this.raw, this);
		if (!decoded.ok) throw new Error("a packed transaction can't be decoded");
		return decoded.tx;
	}
}
