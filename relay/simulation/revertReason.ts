// Makes revert data readable: decodes Solidity's Error(string) and Panic(uint256), and names custom
// errors by selector. Contracts choose the text, so it is made printable and its length is limited.
// https://docs.soliditylang.org/en/latest/control-structures.html#panic-via-assert-and-error-via-require

import { hexToBytes } from "../../shared/ethereum/hex.ts";
import type { SimulationError } from "../domain/simulation.ts";

/** Maximum number of shown characters of a reason. */
const MAX_REASON_CHARS = 256;
/**
 * Maximum number of kept bytes of revert data: records are stored for a week, and a contract can
 * revert with megabytes.
 */
const MAX_DATA_BYTES = 4096;

const SELECTOR_BYTES = 4;
const WORD_BYTES = 32;
const ERROR_SELECTOR = "08c379a0";
const PANIC_SELECTOR = "4e487b71";

/** The meanings of Solidity's panic codes. */
const PANICS: ReadonlyMap<bigint, string> = new Map([
	[0x00n, "generic panic"],
	[0x01n, "assertion failed"],
	[0x11n, "arithmetic overflow"],
	[0x12n, "division by zero"],
	[0x21n, "invalid enum value"],
	[0x22n, "invalid storage byte array"],
	[0x31n, "pop of an empty array"],
	[0x32n, "array index out of bounds"],
	[0x41n, "out of memory"],
	[0x51n, "call of an uninitialized function"],
]);

/**
 * The error of a reverted transaction. `data` is the node's 0x hex; anything else counts as none.
 * The error's `data` has at most 4 KiB.
 */
export function revertError(data: unknown): SimulationError {
	const bytes = (typeof data === "string" ? hexToBytes(data) : null) ?? Buffer.alloc(0);
	const reason = describe(bytes);
	const message = reason === null ? "execution reverted" : `execution reverted: ${reason}`;
	if (bytes.length === 0) return { code: "EXECUTION_REVERTED", message };
	const kept = bytes.subarray(0, MAX_DATA_BYTES).toString("hex");
	return { code: "EXECUTION_REVERTED", message, data: `0x${kept}` };
}

function describe(bytes: Buffer): string | null {
	if (bytes.length < SELECTOR_BYTES) return null;
	const selector = bytes.toString("hex", 0, SELECTOR_BYTES);
	const body = bytes.subarray(SELECTOR_BYTES);
	const known =
		selector === ERROR_SELECTOR ? readString(body) : selector === PANIC_SELECTOR ? readPanic(body) : null;
	return known ?? `custom error 0x${selector}`;
}

/** The ABI-encoded string in `body`, or null if it is malformed. */
function readString(body: Buffer): string | null {
	const offset = readSize(body, 0);
	if (offset === null) return null;
	const length = readSize(body, offset);
	if (length === null) return null;
	const start = offset + WORD_BYTES;
	if (start + length > body.length) return null;
	return printable(body.subarray(start, start + length));
}

function readPanic(body: Buffer): string | null {
	if (body.length < WORD_BYTES) return null;
	const code = BigInt(`0x${body.toString("hex", 0, WORD_BYTES)}`);
	const meaning = PANICS.get(code);
	const hex = code.toString(16).padStart(2, "0");
	return meaning === undefined ? `panic 0x${hex}` : `panic 0x${hex} (${meaning})`;
}

/** The word at `at` as a number of bytes within the body, or null. */
function readSize(body: Buffer, at: number): number | null {
	if (at + WORD_BYTES > body.length) return null;
	const value = BigInt(`0x${body.toString("hex", at, at + WORD_BYTES)}`);
	return value <= BigInt(body.length) ? Number(value) : null;
}

/**
 * Makes text printable: control, format and separator characters could forge lines or reverse
 * displayed text.
 */
function printable(text: Buffer): string {
	// A character has at most four bytes, so the rest would be cut off anyway.
	const chars = [
		...text.toString("utf8", 0, (MAX_REASON_CHARS + 1) * 4).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "?"),
	];
	return chars.length <= MAX_REASON_CHARS ? chars.join("") : `${chars.slice(0, MAX_REASON_CHARS).join("")}…`;
}
