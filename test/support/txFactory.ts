// Makes signed transactions of every type for tests and benchmarks, as raw bytes or decoded. Signs
// natively, about 60 µs each. All values have valid defaults.

import { createHash } from "node:crypto";
import secp256k1 from "secp256k1";
import { ownedTransaction, ownerOf, type PrivateTransaction } from "../../relay/domain/transaction.ts";
import { type RlpItem, rlpEncode, uintToBytes } from "../../shared/ethereum/rlp.ts";
import { addressOfPublicKey, keccak256 } from "../../shared/ethereum/signatures.ts";
import { type DecodedTransaction, decodeTransaction } from "../../shared/ethereum/transaction.ts";
import type { TransactionType } from "../../shared/ethereum/transactionFields.ts";

/** An account that can sign. */
export interface TestAccount {
	/** 32 bytes. */
	readonly key: Buffer;
	/** The key as 0x hex, for ethers, viem and settings. */
	readonly keyHex: string;
	/** Lower case. */
	readonly address: string;
}

/** One EIP-7702 authorization, signed by `by`. */
interface AuthorizationOptions {
	readonly by: TestAccount;
	/** The address of the code; the zero address removes the delegation. */
	readonly address: string;
	readonly chainId?: bigint;
	readonly nonce?: bigint;
}

/** The fields of a transaction, all optional; amounts in wei. */
export interface TxOptions {
	/** Default 2. */
	readonly type?: TransactionType;
	/** The sender. Default account 0. */
	readonly by?: TestAccount;
	/** Default 31337. */
	readonly chainId?: bigint;
	readonly nonce?: bigint | number;
	/** Default 100,000. */
	readonly gasLimit?: bigint | number;
	/** Null creates a contract. */
	readonly to?: string | null;
	readonly value?: bigint | number;
	readonly data?: Uint8Array | string;
	readonly accessList?: readonly { readonly address: string; readonly storageKeys: readonly string[] }[];
	/** For types 0 and 1. Default the fee cap. */
	readonly gasPrice?: bigint | number;
	/** Default 20 gwei. */
	readonly maxFeePerGas?: bigint | number;
	/** Default 1 gwei. */
	readonly maxPriorityFeePerGas?: bigint | number;
	/** Default 3 gwei. */
	readonly maxFeePerBlobGas?: bigint | number;
	/** Number of blobs, all zeros with valid commitments and proofs. Default 1. */
	readonly blobs?: number;
	/**
	 * 0: one proof for each blob (EIP-4844); 1, the default: 128 cell proofs for each blob
	 * (EIP-7594).
	 */
	readonly sidecarVersion?: 0 | 1;
	/**
	 * In place of blobs of zeros: these, with their commitments and as many proofs as their version
	 * has.
	 */
	readonly sidecar?: TestSidecar;
	/** Default: one authorization by account 1. */
	readonly authorizations?: readonly AuthorizationOptions[];
}

/**
 * The sidecar of a blob transaction; see realBlobs.ts. The versioned hashes are those of the
 * commitments.
 */
export interface TestSidecar {
	readonly blobs: readonly Uint8Array[];
	readonly commitments: readonly Uint8Array[];
	readonly proofs: readonly Uint8Array[];
}

/** The chain id of anvil. */
const TEST_CHAIN_ID = 31_337n;
const GWEI = 1_000_000_000n;
const RECEIVER = "0x00000000000000000000000000000000000be11e";

/** The account with this index, which is the same in every run. */
export function testAccount(index: number): TestAccount {
	return accountOf(keccak256(Buffer.from(`test account ${index}`)));
}

/** The account of a key: 32 bytes, or 0x hex. */
export function accountOf(key: Uint8Array | string): TestAccount {
	const bytes = toBytes(key);
	const address = addressOfPublicKey(secp256k1.publicKeyCreate(bytes, false));
	return { key: bytes, keyHex: `0x${bytes.toString("hex")}`, address };
}

const DEFAULT_SENDER = testAccount(0);
const DEFAULT_AUTHORITY = testAccount(1);

/** The signed bytes as a client sends them; a blob transaction with its sidecar. */
export function rawTransaction(options: TxOptions = {}): Buffer {
	const type = options.type ?? 2;
	const { key } = options.by ?? DEFAULT_SENDER;
	const chainId = options.chainId ?? TEST_CHAIN_ID;
	const fields = fieldsOf(type, chainId, options);
	if (type === 0) {
		const { yParity, r, s } = sign(rlpEncode([...fields, uint(chainId), EMPTY, EMPTY]), key);
		return rlpEncode([...fields, uint(chainId * 2n + 35n + yParity), r, s]);
	}
	const { yParity, r, s } = sign(typed(type, fields), key);
	const payload = [...fields, uint(yParity), r, s];
	return typed(type, type === 3 ? [payload, ...sidecar(options)] : payload);
}

/** The transaction, decoded by the relay. */
export function signedTransaction(options: TxOptions = {}): DecodedTransaction {
	const decoded = decodeTransaction(rawTransaction(options));
	if (!decoded.ok) throw new Error(`the factory made bytes that don't decode: ${decoded.message}`);
	return decoded.tx;
}

/** A transaction as the relay holds it, owned by its submitter. Default path `/fast`. */
export function privateTransaction(
	options: TxOptions & Partial<Omit<PrivateTransaction, "tx" | "owners">> = {},
): PrivateTransaction {
	const { submitterAddress = "127.0.0.1", receivedAt = Date.UTC(2026, 0, 1), requestId = null } = options;
	const tx = signedTransaction(options);
	const owner = ownerOf({
		path: options.path ?? "fast",
		softCancellations: options.softCancellations ?? false,
		refundRecipient: options.refundRecipient ?? null,
		referrer: options.referrer ?? null,
		isHidden: options.isHidden ?? false,
		builders: options.builders ?? null,
		address: submitterAddress,
	});
	return ownedTransaction({ tx, submitterAddress, receivedAt, requestId }, [owner]);
}

function fieldsOf(type: TransactionType, chainId: bigint, options: TxOptions): RlpItem[] {
	const maxFee = options.maxFeePerGas ?? 20n * GWEI;
	const nonce = uint(options.nonce ?? 0n);
	const gasLimit = uint(options.gasLimit ?? 100_000n);
	const to = options.to === undefined ? RECEIVER : options.to;
	const rest: RlpItem[] = [
		gasLimit,
		to === null ? EMPTY : toBytes(to),
		uint(options.value ?? 0n),
		toBytes(options.data ?? EMPTY),
	];
	if (type === 0) return [nonce, uint(options.gasPrice ?? maxFee), ...rest];
	const fees =
		type === 1
			? [uint(options.gasPrice ?? maxFee)]
			: [uint(options.maxPriorityFeePerGas ?? GWEI), uint(maxFee)];
	const accessList = (options.accessList ?? []).map((entry) => [
		toBytes(entry.address),
		entry.storageKeys.map(toBytes),
	]);
	const fields: RlpItem[] = [uint(chainId), nonce, ...fees, ...rest, accessList];
	if (type === 3) {
		const hashes = sidecarOf(options).commitments.map(versionedHash);
		fields.push(uint(options.maxFeePerBlobGas ?? 3n * GWEI), hashes);
	}
	if (type === 4) {
		const authorizations = options.authorizations ?? [{ by: DEFAULT_AUTHORITY, address: RECEIVER }];
		fields.push(authorizations.map((one) => authorization(one, chainId)));
	}
	return fields;
}

/** https://eips.ethereum.org/EIPS/eip-7702 */
function authorization(options: AuthorizationOptions, chainId: bigint): RlpItem {
	const fields = [uint(options.chainId ?? chainId), toBytes(options.address), uint(options.nonce ?? 0n)];
	const { yParity, r, s } = sign(typed(5, fields), options.by.key);
	return [...fields, uint(yParity), r, s];
}

const BLOB_BYTES = 131_072;
const CELLS_PER_BLOB = 128;
/** The point at infinity: the commitment and all proofs of a blob of zeros. */
const INFINITY_POINT = Buffer.concat([Buffer.from([0xc0]), Buffer.alloc(47)]);
const ZERO_BLOB = Buffer.alloc(BLOB_BYTES);

function versionedHash(commitment: Uint8Array): Buffer {
	return createHash("sha256").update(commitment).digest().fill(1, 0, 1);
}

function sidecarOf(options: TxOptions): TestSidecar {
	if (options.sidecar !== undefined) return options.sidecar;
	const count = options.blobs ?? 1;
	const proofs = options.sidecarVersion === 0 ? count : count * CELLS_PER_BLOB;
	return {
		blobs: times(count, ZERO_BLOB),
		commitments: times(count, INFINITY_POINT),
		proofs: times(proofs, INFINITY_POINT),
	};
}

function sidecar(options: TxOptions): RlpItem[] {
	const { blobs, commitments, proofs } = sidecarOf(options);
	const items = [blobs, commitments, proofs];
	return options.sidecarVersion === 0 ? items : [Buffer.from([1]), ...items];
}

const EMPTY = Buffer.alloc(0);

function sign(message: Buffer, key: Buffer): { yParity: bigint; r: Buffer; s: Buffer } {
	const { signature, recid } = secp256k1.ecdsaSign(keccak256(message), key);
	const hex = Buffer.from(signature).toString("hex");
	const integer = (from: number) => uintToBytes(BigInt(`0x${hex.slice(from, from + 64)}`));
	return { yParity: BigInt(recid), r: integer(0), s: integer(64) };
}

function typed(type: number, list: RlpItem): Buffer {
	return Buffer.concat([Buffer.from([type]), rlpEncode(list)]);
}

function uint(value: bigint | number): Buffer {
	return uintToBytes(BigInt(value));
}

function toBytes(value: Uint8Array | string): Buffer {
	return typeof value === "string" ? Buffer.from(value.replace(/^0x/, ""), "hex") : Buffer.from(value);
}

function times<T>(count: number, item: T): T[] {
	return Array.from({ length: count }, () => item);
}
