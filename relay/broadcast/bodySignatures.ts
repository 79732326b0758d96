// Signs the bodies of requests to builders, each once. Several builders get the same bundle, and a
// private transaction is sent in the same bytes with each head. A signature takes half the time of
// a delivery.

import { hash } from "node:crypto";
import { addressOfKey, bodyHeader, keccak256, keyBytes, signedOf } from "../../shared/ethereum/signatures.ts";
import type { SignatureWork } from "../../shared/ethereum/signatureWork.ts";
import type { SignedBody } from "./builderClient.ts";

/** A signature and its parity. */
const SIGNATURE_BYTES = 65;

export interface BodySignaturesOptions {
	/** 32 bytes as 0x hex. */
	readonly key: string;
	/** How many of the newest signatures are kept; each takes 150 bytes. */
	readonly kept: number;
}

export class BodySignatures {
	readonly #work: Pick<SignatureWork, "sign">;
	readonly #secret: Buffer;
	readonly #address: string;
	/** The index of a body's signature in `#bytes`, by the body's hash. */
	readonly #places = new Map<string, number>();
	/** The body's hash at each index. */
	readonly #hashes: string[] = [];
	/** One buffer instead of an object each. Memory that was never written takes no space. */
	readonly #bytes: Buffer;
	readonly #kept: number;
	#next = 0;
	/** Signatures in progress, by the body's hash. */
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

	/** `body` with its signature. Synchronous if the signature is kept, or made in this thread. */
	signed(body: Buffer): SignedBody | Promise<SignedBody> {
		const signature = this.#sign(body);
		if (typeof signature === "string") return { body, signature };
		return signature.then((made) => ({ body, signature: made }));
	}

	/** The value of X-Flashbots-Signature. */
	#sign(body: Uint8Array): string | Promise<string> {
		// Takes a fifth of the time of the hash that is signed.
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

	/** Stores the signature in place of the oldest; returns its index. */
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
