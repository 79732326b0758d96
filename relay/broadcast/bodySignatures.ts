// Signs the bodies that builders are sent, each once: several builders get the same bundle, and a private transaction goes out in the
// same bytes with each head. A signature takes half of what a delivery does.

import { hash } from "node:crypto";
import { addressOfKey, bodyHeader, keccak256, keyBytes, signedOf } from "../../shared/ethereum/signatures.ts";
import type { SignatureWork } from "../../shared/ethereum/signatureWork.ts";
import type { SignedBody } from "./builderClient.ts";

/** A signature and its parity. */
const SIGNATURE_BYTES = 65;

export interface BodySignaturesOptions {
	/** 32 bytes as 0x hex. */
	readonly key: string;
	/** The last so many signatures are kept, for 150 bytes each. */
	readonly kept: number;
}

export class BodySignatures {
	readonly #work: Pick<SignatureWork, "sign">;
	readonly #secret: Buffer;
	readonly #address: string;
	/** Where the signature for a body's hash is in `#bytes`. */
	readonly #places = new Map<string, number>();
	/** The hash whose signature is at each place. */
	readonly #hashes: string[] = [];
	/** Without an object for each. Memory that was never written takes no room. */
	readonly #bytes: Buffer;
	readonly #kept: number;
	#next = 0;
	/** Those that are being made, by the body's hash. */
	readonly #signing = new Map<string, Promise<string>>();

	constructor(
		{ key, kept }: BodySignaturesOptions,
		dependencies: { readonly work: Pick<SignatureWork, "sign"> },
	) {
		this.#secret = keyBytes(key);
		this.#address = addressOfKey(key);
		this.#kept = kept;
		this.#bytes = Buffer.alloc(kept * SIGNATURE_BYTES);
		this.#work = dependencies.work;
	}

	/** `body` with its signature; at once if that is kept, or made here. */
	signed(body: Buffer): SignedBody | Promise<SignedBody> {
		const signature = this.#sign(body);
		if (typeof signature === "string") return { body, signature };
		return signature.then((made) => ({ body, signature: made }));
	}

	/** The value of X-Flashbots-Signature. */
	#sign(body: Uint8Array): string | Promise<string> {
		// A fifth of the time of the hash that is signed.
		const name = hash("sha256", body, "binary");
		const at = this.#places.get(name);
		if (at !== undefined) return this.#header(at);
		const running = this.#signing.get(name);
		if (running !== undefined) return running;
		const signed = this.#work.sign(signedOf(keccak256(body)), this.#secret);
		if (!(signed instanceof Promise)) return this.#header(this.#keep(name, signed));
		const signing = signed.then((made) => {
			this.#signing.delete(name);
			return this.#header(this.#keep(name, made));
		});
		this.#signing.set(name, signing);
		return signing;
	}

	/** Keeps it in the place of the oldest; returns the place. */
	#keep(
		name: string,
		{ signature, recid }: { readonly signature: Uint8Array; readonly recid: number },
	): number {
		const place = this.#next;
		this.#next = (place + 1) % this.#kept;
		const oldest = this.#hashes[place];
		if (oldest !== undefined) this.#places.delete(oldest);
		this.#hashes[place] = name;
		this.#places.set(name, place);
		this.#bytes.set(signature, place * SIGNATURE_BYTES);
		this.#bytes[(place + 1) * SIGNATURE_BYTES - 1] = recid;
		return place;
	}

	#header(place: number): string {
		const begin = place * SIGNATURE_BYTES;
		const end = begin + SIGNATURE_BYTES - 1;
		return bodyHeader(this.#address, {
			signature: this.#bytes.subarray(begin, end),
			recid: this.#bytes[end] ?? 0,
		});
	}
}
