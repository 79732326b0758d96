// A pending transaction as it is kept in memory. Its bytes are in blocks of many transactions.
// Signature and authorizations are decoded from them again when they are needed. A decoded
// transaction would take three times its bytes in the heap or more, and keep alive other memory
// that was allocated beside it.

import type { SidecarVersion } from "../../shared/ethereum/sidecar.ts";
import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import {
	type AccessList,
	type Authorization,
	NO_ACCESS,
	type TransactionType,
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
/** Bytes of a recovered signer: its state and its address. */
const AUTHORITY_BYTES = 21;
const [UNKNOWN, VALID, INVALID] = [0, 1, 2];

/** All empty lists become one interned object. */
function interned<T>(list: readonly T[]): readonly T[] {
	return list.length === 0 ? NONE : list;
}

/** `own`, or the equal object that is already kept. */
function known<T extends string | bigint | null>(own: T, other: T | undefined): T {
	return other === own ? other : own;
}

/** The transaction that was decoded last, since its fields are often read one after another. */
let last: { readonly of: PackedTransaction; readonly decoded: DecodedTransaction } | null = null;

class PackedTransaction implements DecodedTransaction {
	readonly type: TransactionType;
	readonly chainId: bigint;
	readonly nonce: bigint;
	readonly gasLimit: bigint;
	readonly to: string | null;
	readonly value: bigint;
	readonly maxFeePerGas: bigint;
	readonly maxPriorityFeePerGas: bigint;
	readonly maxFeePerBlobGas: bigint | null;
	readonly blobVersionedHashes: readonly string[];
	readonly hash: string;
	readonly from: string;
	readonly size: number;
	readonly zeroBytes: number;
	readonly accessList: AccessList;
	readonly sidecar: { readonly version: SidecarVersion; readonly blobCount: number } | null;
	readonly #block: Buffer;
	/** The start of its bytes, and of its data, in the block. */
	readonly #at: number;
	readonly #dataAt: number;
	readonly #dataSize: number;
	/** The recovered signers of the authorizations; null if there are none. */
	readonly #authorities: Buffer | null;

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
		this.maxFeePerGas = known(tx.maxFeePerGas, like?.maxFeePerGas);
		this.maxPriorityFeePerGas = known(tx.maxPriorityFeePerGas, like?.maxPriorityFeePerGas);
		this.maxFeePerBlobGas = known(tx.maxFeePerBlobGas, like?.maxFeePerBlobGas);
		this.blobVersionedHashes = interned(tx.blobVersionedHashes);
		this.hash = tx.hash;
		this.from = known(tx.from, like?.from);
		this.size = tx.size;
		this.zeroBytes = tx.zeroBytes;
		this.sidecar = tx.sidecar;
		const { addresses, keys, bytes } = tx.accessList;
		const listAt = at + bytes.byteOffset - tx.raw.byteOffset;
		this.accessList =
			addresses === 0 ? NO_ACCESS : { addresses, keys, bytes: block.subarray(listAt, listAt + bytes.length) };
		this.#block = block;
		this.#at = at;
		this.#dataAt = at + tx.data.byteOffset - tx.raw.byteOffset;
		this.#dataSize = tx.data.length;
		this.#authorities = authoritiesOf(tx.authorizationList);
	}

	get raw(): Buffer {
		return this.#block.subarray(this.#at, this.#at + this.size);
	}

	get data(): Buffer {
		return this.#block.subarray(this.#dataAt, this.#dataAt + this.#dataSize);
	}

	get authorizationList(): readonly Authorization[] {
		return this.#authorities === null ? NONE : this.#decoded().authorizationList;
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
		if (last?.of === this) return last.decoded;
		const decoded = decodeTransaction(this.raw, this);
		if (!decoded.ok) throw new Error("a packed transaction can't be decoded");
		const authorities = this.#authorities;
		if (authorities !== null)
			for (const [i, one] of decoded.tx.authorizationList.entries()) keepAuthority(one, authorities, i);
		last = { of: this, decoded: decoded.tx };
		return decoded.tx;
	}
}

function authoritiesOf(list: readonly Authorization[]): Buffer | null {
	if (list.length === 0) return null;
	const authorities = Buffer.alloc(list.length * AUTHORITY_BYTES);
	for (const [i, { authority }] of list.entries())
		if (authority !== undefined) writeAuthority(authorities, i, authority);
	return authorities;
}

function writeAuthority(authorities: Buffer, i: number, authority: string | null): void {
	const at = i * AUTHORITY_BYTES;
	authorities[at] = authority === null ? INVALID : VALID;
	if (authority !== null) authorities.write(authority.slice(2), at + 1, "hex");
}

function readAuthority(authorities: Buffer, i: number): string | null | undefined {
	const at = i * AUTHORITY_BYTES;
	const state = authorities[at];
	if (state === UNKNOWN) return undefined;
	return state === INVALID ? null : `0x${authorities.toString("hex", at + 1, at + AUTHORITY_BYTES)}`;
}

/** Keeps the signer that `senderOfAuthorization` finds with the packed transaction. */
function keepAuthority(authorization: Authorization, authorities: Buffer, i: number): void {
	Object.defineProperty(authorization, "authority", {
		get: () => readAuthority(authorities, i),
		set: (authority: string | null) => writeAuthority(authorities, i, authority),
	});
}
