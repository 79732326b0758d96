// Types of the `keccak` package, which has none: only what signatures.ts uses.

declare module "keccak" {
	interface Hasher {
		/** Set by `digest`: further updates then throw. */
		_finalized: boolean;
		/** Throws for a Uint8Array that is not a Buffer. */
		update(data: Buffer): Hasher;
		digest(): Buffer;
	}
	function createKeccakHash(algorithm: "keccak256"): Hasher;
	export default createKeccakHash;
}
