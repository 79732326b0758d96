// Makes signed blob transactions in network form (EIP-4844), with either kind of sidecar. The blobs are all zeros,
// whose commitment and proofs are the point at infinity: no KZG is needed.

import { concat, encodeRlp, getBytes, sha256, Transaction, toBeHex, type Wallet } from "ethers";
import type { Sample } from "./devnetFixture.ts";

/** What a blob transaction may say. */
export interface BlobFields {
	readonly nonce: number;
	/** One to six. Default 1. */
	readonly blobs?: number;
	/** 0: a proof for each blob; 1: cell proofs, 128 for each (EIP-7594). Default 1. */
	readonly sidecar?: 0 | 1;
	/** Wei a gas. Default 1 gwei. */
	readonly tip?: bigint;
}

const INFINITY = `0xc0${"00".repeat(47)}`;
const BLOB_BYTES = 131_072;
const GWEI = 1_000_000_000n;

/** A blob transaction in network form; `bare` is the same without its sidecar, as blocks hold it. */
export interface BlobSample extends Sample {
	readonly bare: string;
}

/** A signed blob transaction of the dev chain, to its own sender. */
export function blobSample(wallet: Wallet, fields: BlobFields): BlobSample {
	const count = fields.blobs ?? 1;
	const cells = (fields.sidecar ?? 1) === 1;
	const tx = Transaction.from({
		type: 3,
		chainId: 31337,
		nonce: fields.nonce,
		to: wallet.address,
		value: 0,
		gasLimit: 21_000,
		maxPriorityFeePerGas: fields.tip ?? GWEI,
		maxFeePerGas: 100n * GWEI,
		maxFeePerBlobGas: GWEI,
		blobVersionedHashes: Array<string>(count).fill(`0x01${sha256(INFINITY).slice(4)}`),
	});
	tx.signature = wallet.signingKey.sign(tx.unsignedHash);
	const list = (items: string[]): string => encodeRlp(items);
	const body = concat([
		// The transaction's own list, as it stands after its type.
		`0x${tx.serialized.slice(4)}`,
		...(cells ? ["0x01"] : []),
		list(Array<string>(count).fill(`0x${"00".repeat(BLOB_BYTES)}`)),
		list(Array<string>(count).fill(INFINITY)),
		list(Array<string>(cells ? count * 128 : count).fill(INFINITY)),
	]);
	const length = toBeHex(getBytes(body).length);
	const raw = concat(["0x03", toBeHex(0xf7 + (length.length - 2) / 2), length, body]);
	return { raw, bare: tx.serialized, hash: tx.hash ?? "", from: wallet.address };
}
