// The relay's key: signs bodies for builders and derives bundle identifiers. Nothing else sees the key.

import { createHash } from "node:crypto";
import { createBodySigner, keccak256 } from "../../shared/ethereum/signatures.ts";
import type { BuilderCall } from "./dialects.ts";

/** A request's body, and what stands in X-Flashbots-Signature. */
export interface SignedBody {
	readonly body: Buffer;
	readonly signature: string;
}

/** Signs and names. */
export interface Identity {
	/**
	 * The identifier of what goes out under `name`: a UUIDv4 (RFC 9562) made from the name and our key, so that it is
	 * the same after a restart and can't be guessed from a hash in the name, which searchers may know.
	 */
	uuid(name: string): string;
	/** For the calls of one fan-out to `builders` builders: identical bodies are signed once. */
	signing(builders: number): (call: BuilderCall) => SignedBody;
}

const UUID_BYTES = 16;

/** The identity of a private key (0x hex). */
export function createIdentity(signingKey: string): Identity {
	const signer = createBodySigner(signingKey);
	return {
		uuid(name) {
			const bytes = Buffer.from(keccak256(Buffer.from(`${name} ${signingKey}`))).subarray(0, UUID_BYTES);
			bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
			bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
			const hex = bytes.toString("hex");
			return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join(
				"-",
			);
		},
		signing(builders) {
			// By digest: the bodies themselves would be kept until the slowest builder has taken its own.
			const made = new Map<string, string>();
			return (call) => {
				const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, ...call }));
				if (builders === 1) return { body, signature: signer.sign(body) };
				const digest = createHash("sha256").update(body).digest("base64");
				const signature = made.get(digest) ?? signer.sign(body);
				made.set(digest, signature);
				return { body, signature };
			};
		},
	};
}
