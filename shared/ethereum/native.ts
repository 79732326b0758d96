// Tells whether the two native packages run natively. Nothing comes in but what is installed; what goes out is a
// pair of booleans for the start-up log. Both packages fall back to slow JavaScript in silence (5 to 40 times
// slower) where no binary was shipped and none could be built, and an operator has to learn of that.

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** Whether `secp256k1` and `keccak` are backed by their native add-ons in this process. Never throws. */
export function nativeBindings(): { readonly secp256k1: boolean; readonly keccak: boolean } {
	return { secp256k1: isNative("secp256k1"), keccak: isNative("keccak") };
}

/** Both packages' entry is `try { bindings } catch { fallback }`: it is native where it is the very same object. */
function isNative(name: "secp256k1" | "keccak"): boolean {
	try {
		return require(name) === require(`${name}/bindings`);
	} catch {
		return false;
	}
}
