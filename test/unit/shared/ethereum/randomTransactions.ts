// Random transactions of every type from a seed, as neutral fields and signed bytes. Values stay inside what ethers
// and viem can hold (nonces and chain ids below 2⁵³), so that the three can be compared.

import type { Authorization } from "../../../../shared/ethereum/rlp.ts";
import type { DecodedTransaction } from "../../../../shared/ethereum/transaction.ts";
import { encode, fromHex, type RawItem, signBytes, signLegacy, signTyped, typed } from "./rawEncoding.ts";
import type { SeededRandom } from "./seededRandom.ts";

export interface RandomTransaction {
	readonly type: 0 | 1 | 2 | 4;
	readonly chainId: bigint;
	readonly nonce: bigint;
	readonly gasLimit: bigint;
	readonly to: `0x${string}` | null;
	readonly value: bigint;
	readonly data: `0x${string}`;
	readonly accessList: readonly { address: `0x${string}`; storageKeys: `0x${string}`[] }[];
	/** The gas price of types 0 and 1. */
	readonly maxFeePerGas: bigint;
	readonly maxPriorityFeePerGas: bigint;
	readonly authorizationList: readonly (Authorization & { readonly address: `0x${string}` })[];
}

const DATA_BYTES = [0, 0, 1, 4, 32, 55, 56, 68, 255, 256, 1_000] as const;

export function randomTransaction(random: SeededRandom, type: RandomTransaction["type"]): RandomTransaction {
	const maxFeePerGas = random.uint(12);
	return {
		type,
		// Zero is left out: ethers and viem take it for "no chain id".
		chainId: random.uint(4) + 1n,
		nonce: random.uint(6),
		gasLimit: random.uint(8),
		to: type !== 4 && random.below(5) === 0 ? null : hex(random, 20),
		value: random.uint(31),
		data: hex(random, random.below(50) === 0 ? 70_000 : random.pick(DATA_BYTES)),
		accessList: type === 0 ? [] : randomAccessList(random),
		maxFeePerGas,
		maxPriorityFeePerGas: type <= 1 ? maxFeePerGas : maxFeePerGas / BigInt(1 + random.below(9)),
		authorizationList: type === 4 ? many(1 + random.below(3), () => randomAuthorization(random)) : [],
	};
}

/** What is signed of a transaction: that of a legacy one without its chain id. */
function fieldsOf(tx: RandomTransaction | DecodedTransaction): RawItem[] {
	const to = tx.to === null ? Buffer.alloc(0) : fromHex(tx.to);
	const data = typeof tx.data === "string" ? fromHex(tx.data) : tx.data;
	const rest: RawItem[] = [tx.gasLimit, to, tx.value, data];
	if (tx.type === 0) return [tx.nonce, tx.maxFeePerGas, ...rest];
	const fees = tx.type === 1 ? [tx.maxFeePerGas] : [tx.maxPriorityFeePerGas, tx.maxFeePerGas];
	const accessList = tx.accessList.map((entry) => [fromHex(entry.address), entry.storageKeys.map(fromHex)]);
	const fields: RawItem[] = [tx.chainId, tx.nonce, ...fees, ...rest, accessList];
	if (tx.type !== 4) return fields;
	const tuples = tx.authorizationList.map(({ chainId, address, nonce, yParity, r, s }): RawItem[] => [
		...[chainId, fromHex(address), nonce, BigInt(yParity), r, s],
	]);
	return [...fields, tuples];
}

/** The signed bytes, made by the tests' own encoder. */
export function signedBytes(tx: RandomTransaction, key: Buffer): Buffer {
	const fields = fieldsOf(tx);
	return tx.type === 0
		? encode(signLegacy(fields, tx.chainId, key))
		: typed(tx.type, signTyped(tx.type, fields, key));
}

/** The one canonical encoding of what was decoded (not of a blob transaction), made by the tests' own encoder. */
export function encodeDecoded(tx: DecodedTransaction): Buffer {
	const list: RawItem[] = [...fieldsOf(tx), tx.v, tx.r, tx.s];
	return tx.type === 0 ? encode(list) : typed(tx.type, list);
}

/** A key within the curve's order: its first byte is not 0xff. */
export function randomKey(random: SeededRandom): Buffer {
	const key = random.bytes(32);
	key[0] = 1 + random.below(200);
	return key;
}

function randomAccessList(random: SeededRandom): RandomTransaction["accessList"] {
	const length = random.below(30) === 0 ? 120 : random.pick([0, 0, 1, 2, 5]);
	return many(length, () => ({
		address: hex(random, 20),
		storageKeys: many(random.pick([0, 1, 1, 3, 9]), () => hex(random, 32)),
	}));
}

function randomAuthorization(random: SeededRandom): Authorization & { address: `0x${string}` } {
	const chainId = random.uint(4);
	const address = hex(random, 20);
	const nonce = random.uint(6);
	const message = typed(0x05, [chainId, fromHex(address), nonce]);
	const { yParity, r, s } = signBytes(message, randomKey(random));
	return { chainId, address, nonce, yParity: Number(yParity), r, s };
}

function many<T>(length: number, make: () => T): T[] {
	return Array.from({ length }, make);
}

function hex(random: SeededRandom, length: number): `0x${string}` {
	return `0x${random.bytes(length).toString("hex")}`;
}
