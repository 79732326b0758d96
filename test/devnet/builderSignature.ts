// Checks the X-Flashbots-Signature of an HTTP body and recovers the signer. Written apart from the relay's signing on
// purpose. The two costly steps are native (ethers takes 2 ms and, for six blobs, 126 ms); the tests compare them
// with ethers.

import { getAddress, getBytes, hashMessage, isHexString } from "ethers";
import createKeccakHash from "keccak";
import secp256k1 from "secp256k1";

/** Who signed, checksummed; or what is wrong with the header. */
export type SignatureVerdict =
	| { readonly signer: string; readonly problem: null }
	| { readonly signer: null; readonly problem: string };

/**
 * Checks `address:signature`, where the signature is an EIP-191 one over the text of the body's keccak256 in hex
 * (0x and 64 digits): that text is signed, not the 32 bytes.
 */
export function checkSignature(header: string | undefined, body: Buffer): SignatureVerdict {
	if (header === undefined) return { signer: null, problem: "missing signature" };
	const [address = "", signature = "", ...rest] = header.split(":");
	if (rest.length > 0 || !isHexString(address, 20) || !isHexString(signature, 65)) {
		return { signer: null, problem: "malformed signature" };
	}
	const hash = createKeccakHash("keccak256").update(body).digest().toString("hex");
	const bytes = getBytes(signature);
	const v = bytes[64] ?? 0;
	const signer = recoverAddress(hashMessage(`0x${hash}`), bytes.subarray(0, 64), v >= 27 ? v - 27 : v);
	if (signer === null || signer !== getAddress(address.toLowerCase())) {
		return { signer: null, problem: "signature does not match" };
	}
	return { signer, problem: null };
}

/** The checksummed address whose key made the 64 bytes of r and s over `digest` (32 bytes, hex); null for none. */
export function recoverAddress(digest: string, rs: Uint8Array, recovery: number): string | null {
	if (recovery !== 0 && recovery !== 1) return null;
	try {
		const key = secp256k1.ecdsaRecover(rs, recovery, getBytes(digest), false);
		const hash = createKeccakHash("keccak256")
			.update(Buffer.from(key.subarray(1)))
			.digest();
		return getAddress(`0x${hash.subarray(12).toString("hex")}`);
	} catch {
		return null;
	}
}
