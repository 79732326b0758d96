// Reads and writes the hex strings of Ethereum's JSON-RPC. Readers return null for invalid text.
// The caller makes the error, since it knows the parameter's name.

/** A view of the same memory as a Buffer, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
	return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** `0x` and two lower-case digits per byte. */
export function bytesToHex(bytes: Uint8Array): string {
	return `0x${asBuffer(bytes).toString("hex")}`;
}

/**
 * The bytes of `0x…` with an even number of digits in any case (`0x` alone: no bytes), or null for
 * anything else. Node's decoder silently stops at a bad digit, so the length is compared. It also
 * reads only the lower eight bits of each character ("\u0130" as "0"), so text beyond ASCII is
 * rejected first.
 */
export function hexToBytes(text: string): Buffer | null {
	if (!hasPrefix(text) || text.length % 2 !== 0) return null;
	if (Buffer.byteLength(text, "utf8") !== text.length) return null;
	const bytes = Buffer.from(text.slice(2), "hex");
	return bytes.length === (text.length - 2) / 2 ? bytes : null;
}

/** `text` in lower case if it is `0x` and the digits of exactly `byteLength` bytes; else null. */
function parseFixedHex(text: string, byteLength: number): string | null {
	if (text.length !== 2 + 2 * byteLength || !hasPrefix(text)) return null;
	return HEX_DIGITS.test(text.slice(2)) ? text.toLowerCase() : null;
}

/**
 * The lower-case address, or null unless `text` is `0x` and 40 hex digits. The EIP-55 checksum is
 * not verified.
 */
export function parseAddress(text: string): string | null {
	return parseFixedHex(text, 20);
}

/** The lower-case hash, or null unless `text` is `0x` and 64 hex digits. */
export function parseHash(text: string): string | null {
	return parseFixedHex(text, 32);
}

/** The lower-case signature (r, s and v), or null unless `text` is `0x` and 130 hex digits. */
export function parseSignature(text: string): string | null {
	return parseFixedHex(text, 65);
}

/**
 * A JSON-RPC quantity: `0x` and hex digits without leading zeros. Throws a RangeError for negative
 * values.
 */
export function toQuantity(value: bigint | number): string {
	if (value < 0) throw new RangeError("a quantity cannot be negative");
	return `0x${BigInt(value).toString(16)}`;
}

/**
 * The value of a JSON-RPC quantity of at most 256 bits, else null. Leading zeros are allowed, as in
 * geth.
 */
export function parseQuantity(text: string): bigint | null {
	return QUANTITY.test(text) ? BigInt(text) : null;
}

/**
 * Like {@link parseQuantity}, but allows leading zeros, which some nodes send, and accepts any
 * value.
 */
export function parseNodeQuantity(value: unknown): bigint | null {
	return typeof value === "string" && NODE_QUANTITY.test(value) ? BigInt(value) : null;
}

const NODE_QUANTITY = /^0x[0-9a-f]{1,64}$/i;
const HEX_DIGITS = /^[0-9a-f]*$/i;
const QUANTITY = /^0x(?:0|[1-9a-f][0-9a-f]{0,63})$/i;

function hasPrefix(text: string): boolean {
	return text.startsWith("0x") || text.startsWith("0X");
}
