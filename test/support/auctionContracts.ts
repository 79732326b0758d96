// Small contracts that backruns call: each pays the value of its call to the block's coinbase,
// under some condition. Each has a comment with its instructions.

import { code } from "./contracts.ts";

/**
 * Bytes that {@link paying} puts between the condition and its first JUMPDEST, where it reverts.
 */
const BEFORE_FAIL = 14;
/** Bytes from there to its second JUMPDEST, where it succeeds. */
const FAIL_BYTES = 4;

/**
 * Code that runs `condition` (instructions as hex that leave one word), reverts without data if
 * that word is not zero, else sends CALLVALUE to COINBASE with all gas, and reverts if that fails;
 * then runs `end`.
 */
function paying(condition: string, end = "00"): string {
	const pieces = condition.replaceAll(" ", "");
	const fail = pieces.length / 2 + BEFORE_FAIL;
	return code(
		pieces,
		`60${hex(fail)} 57`, // JUMPI: to `fail`
		"5f 5f 5f 5f 34 41 5a f1", // CALL(GAS, COINBASE, CALLVALUE, …)
		`60${hex(fail + FAIL_BYTES)} 57`, // JUMPI: to `end`
		"5b 5f 5f fd", // `fail`: JUMPDEST REVERT
		"5b",
		end,
	);
}

/** Pays the coinbase the value of the call. Condition: PUSH0 */
export const PAYS_COINBASE = paying("5f");

/**
 * Sends CALLVALUE to COINBASE, but only 1 wei of it where TIMESTAMP is above the calldata's first
 * word. CALLDATALOAD(0) TIMESTAMP GT JUMPI; CALL(GAS, COINBASE, CALLVALUE, …) STOP; JUMPDEST
 * CALL(GAS, COINBASE, 1, …) STOP
 */
export const PAYS_LESS_AFTER_TIME = code(
	"5f 35 42 11 6010 57",
	"5f 5f 5f 5f 34 41 5a f1 00",
	"5b 5f 5f 5f 5f 6001 41 5a f1 00",
);

/** Pays, but reverts where COINBASE is the calldata's first word. CALLDATALOAD(0) COINBASE EQ */
export const REVERTS_IF_COINBASE = paying("5f 35 41 14");

/**
 * Pays, but reverts where COINBASE is not the calldata's first word. CALLDATALOAD(0) COINBASE EQ
 * ISZERO
 */
export const REVERTS_UNLESS_COINBASE = paying("5f 35 41 14 15");

/** Pays, but reverts where TIMESTAMP is odd. TIMESTAMP 1 AND */
export const REVERTS_IF_ODD_TIME = paying("42 6001 16");

/**
 * Pays, but reverts where TIMESTAMP is above the calldata's first word. CALLDATALOAD(0) TIMESTAMP
 * GT
 */
export const REVERTS_AFTER_TIME = paying("5f 35 42 11");

/**
 * Pays in the first call that succeeds; later calls revert. SLOAD(0) JUMPI as the condition,
 * SSTORE(0, 1)
 */
export const PAYS_ONCE = paying("5f 54", "6001 5f 55 00");

/**
 * Pays only while slot 0 is not zero. With calldata it pays nothing: it sets slot 0 to the first
 * word. CALLDATASIZE JUMPI to the last line, SLOAD(0) ISZERO
 */
export const PAYS_IF_OPEN = paying(
	"36 601b 57 5f 54 15",
	"00 5b 5f 35 5f 55 00", // STOP; JUMPDEST SSTORE(0, CALLDATALOAD(0)) STOP
);

/** Takes the value of the call and pays nobody. STOP */
export const PAYS_NOBODY = "0x00";

/** An address or a number as a word of calldata. */
export function word(value: string | number | bigint): string {
	return `0x${BigInt(value).toString(16).padStart(64, "0")}`;
}

function hex(byte: number): string {
	return byte.toString(16).padStart(2, "0");
}
