// Many signed transactions quickly: keys from a seed and EIP-1559 transfers with some calldata come out, 200 bytes
// each. Signed natively: ethers would need minutes for what a benchmark sends in seconds.

import { createHash } from "node:crypto";
import secp256k1 from "secp256k1";
import { addressOfKey } from "../../shared/ethereum/flashbotsSignature.ts";
import { keccak256 } from "../../shared/ethereum/keccak.ts";
import { rlpEncode, uintToBytes } from "../../shared/ethereum/rlp.ts";

/** An account of the benchmark's own. */
export interface BenchAccount {
	readonly key: Buffer;
	readonly address: string;
}

/** `count` accounts, the same ones each time. */
export function benchAccounts(count: number): readonly BenchAccount[] {
	return Array.from({ length: count }, (_, i) => {
		const key = createHash("sha256").update(`leeward bench ${i}`).digest();
		return { key, address: addressOfKey(`0x${key.toString("hex")}`) };
	});
}

const GWEI = 1_000_000_000n;
/** Makes the whole transaction 200 bytes long. */
const CALLDATA = Buffer.alloc(84, 7);

/** A signed transfer with calldata as 0x hex: 200 bytes. */
export function signedTransaction(account: BenchAccount, chainId: number, nonce: number): string {
	const fields = [
		uintToBytes(BigInt(chainId)),
		uintToBytes(BigInt(nonce)),
		uintToBytes(GWEI),
		uintToBytes(20n * GWEI),
		uintToBytes(30_000n),
		Buffer.from("00000000000000000000000000000000000000be", "hex"),
		uintToBytes(1n),
		CALLDATA,
		[],
	];
	const hash = keccak256(Buffer.from([2]), rlpEncode(fields));
	const { signature, recid } = secp256k1.ecdsaSign(hash, account.key);
	const part = (from: number) =>
		uintToBytes(BigInt(`0x${Buffer.from(signature).toString("hex", from, from + 32)}`));
	const signed = rlpEncode([...fields, uintToBytes(BigInt(recid)), part(0), part(32)]);
	return `0x02${Buffer.from(signed).toString("hex")}`;
}
