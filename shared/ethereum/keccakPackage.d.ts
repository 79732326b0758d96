// The types of the `keccak` package, which brings none: only what keccak.ts calls.

declare module "keccak" {
	interface Hasher {
		/** Its digest was made; it takes no more. */
		_finalized: boolean;
		/** Throws for anything but a Buffer: a plain Uint8Array has to be wrapped. */
		update(data: Buffer): Hasher;
		digest(): Buffer;
	}
	function createKeccakHash(algorithm: "keccak256"): Hasher;
	export default createKeccakHash;
}
