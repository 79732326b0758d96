// Small contracts for tests of simulation and eth_callMany, as bytecode. Comments give the
// instructions, in capitals, of those that are not obvious.

import { addressOf } from "./simulationFixture.ts";

/** Joins pieces of hex, without their blanks, after `0x`. */
export function code(...pieces: string[]): string {
	return `0x${pieces.join("").replaceAll(" ", "")}`;
}

function hex(value: number, bytes: number): string {
	return value.toString(16).padStart(2 * bytes, "0");
}

/**
 * Code that copies `tail` into memory and returns it (f3) or reverts with it (fd): PUSH2 n, PUSH1
 * 12, PUSH0, CODECOPY, PUSH2 n, PUSH0, `end`.
 */
function endWith(end: "f3" | "fd", tail: string): string {
	const size = hex((tail.length - 2) / 2, 2);
	return code("61", size, "600c 5f 39 61", size, "5f", end, tail.slice(2));
}

/** Runtime code, or init code, that reverts with `data`. */
export function revertingWith(data: string): string {
	return endWith("fd", data);
}

/** Init code that deploys `runtime`. */
export function deploying(runtime: string): string {
	return endWith("f3", runtime);
}

/** Emits one event without topics or data. PUSH0 PUSH0 LOG0 STOP */
export const EMITS = code("5f 5f a0 00");

/** Emits one event and reverts. */
export const EMITS_AND_REVERTS = code("5f 5f a0 5f 5f fd");

/** REVERT without data. */
export const REVERTS = code("5f 5f fd");

/** Loops until its gas is used up. JUMPDEST PUSH0 JUMP */
export const LOOPS = code("5b 5f 56");

/** INVALID */
export const INVALID = code("fe");

/** ADD on an empty stack. */
export const UNDERFLOWS = code("01");

/** JUMP to a place without a JUMPDEST. */
export const JUMPS_ASTRAY = code("6001 56");

/** Calls `address` with all its gas, and ignores whether that fails. */
export function calling(address: string): string {
	return code("5f 5f 5f 5f 5f 73", address.slice(2), "5a f1 00");
}

/** Sends all its ether to the caller. */
export const PAYS_CALLER = code("5f 5f 5f 5f 47 33 5a f1 00");

/** Sends the value of its call on to `address`. */
export function forwarding(address: string): string {
	return code("5f 5f 5f 5f 34 73", address.slice(2), "5a f1 00");
}

/** Runs the code at `address` as its own. DELEGATECALL */
export function delegating(address: string): string {
	return code("5f 5f 5f 5f 73", address.slice(2), "5a f4 00");
}

/** CALL of the coinbase with CALLVALUE. */
const PAY_COINBASE = "5f 5f 5f 5f 34 41 5a f1";

/** Pays the value of its call to the coinbase; works as init code too. */
export const PAYS_COINBASE = code(PAY_COINBASE, "00");

/** Pays the value of its call to the coinbase, and then reverts, which undoes the payment. */
export const PAYS_COINBASE_AND_REVERTS = code(PAY_COINBASE, "5f 5f fd");

/**
 * CALLCODE of the coinbase with CALLVALUE: in a trace it looks like a payment, but it moves
 * nothing.
 */
export const PRETENDS_TO_PAY = code("5f 5f 5f 5f 34 41 5a f2 00");

/** CALL of the coinbase with one wei more than CALLVALUE, which fails for lack of balance. */
export const PROMISES_TOO_MUCH = code("5f 5f 5f 5f 6001 34 01 41 5a f1 00");

/** CALL of the caller with half of CALLVALUE. */
export const GIVES_HALF_BACK = code("5f 5f 5f 5f 6002 34 04 33 5a f1 00");

/** COINBASE SELFDESTRUCT */
export const DESTROYS_ITSELF = code("41 ff");

/** Creates, with CALLVALUE, a contract whose init code is {@link PAYS_COINBASE}. */
export const CREATES_A_PAYER = code("68", PAY_COINBASE, "00 5f 52 6009 6017 34 f0 00");

/** Creates, with CALLVALUE, a contract whose init code is {@link DESTROYS_ITSELF}. */
export const CREATES_A_DESTROYER = code("61 41ff 5f 52 6002 601e 34 f0 00");

/** Reverts with the values of its block and call, a word each; see {@link readSurroundings}. */
export const SHOWS_SURROUNDINGS = code(
	"41 5f 52", // COINBASE
	"42 6020 52", // TIMESTAMP
	"43 6040 52", // NUMBER
	"48 6060 52", // BASEFEE
	"45 6080 52", // GASLIMIT
	"3a 60a0 52", // GASPRICE
	"41 31 60c0 52", // COINBASE BALANCE
	"32 31 60e0 52", // ORIGIN BALANCE
	"610100 5f fd",
);

/** The words of {@link SHOWS_SURROUNDINGS}. */
export function readSurroundings(data: string): Record<string, bigint> {
	const names = [
		"coinbase",
		"timestamp",
		"number",
		"baseFee",
		"gasLimit",
		"gasPrice",
		"coinbaseBalance",
		"senderBalance",
	];
	return Object.fromEntries(
		names.map((name, i) => [name, BigInt(`0x${data.slice(2 + 64 * i, 66 + 64 * i)}`)]),
	);
}

/** Counts its calls in slot 0; reverts unless the count is now the calldata's first word. */
export const COUNTS = code(
	"5f 54 6001 01 80 5f 55", // SLOAD(0) + 1, kept and stored
	"5f 35 14 6011 57", // equal to the calldata: go on
	"5f 5f fd",
	"5b 00",
);

/** Without calldata it sets slot 0 to zero; with calldata it reverts unless slot 0 is zero. */
export const CLEARS = code("36 6008 57 5f 5f 55 00", "5b 5f 54 600f 57 00", "5b 5f 5f fd");

/**
 * A switch: a call with calldata sets it to the first word; a call without reverts with `data`
 * while the switch is zero, and succeeds otherwise.
 */
export function gate(data: string): string {
	const size = hex((data.length - 2) / 2, 2);
	const set = "5b 5f 35 5f 55 00"; // JUMPDEST, SSTORE(0, CALLDATALOAD(0)), STOP
	const open = "5b 00"; // JUMPDEST STOP
	return code(
		"36 6017 57", // CALLDATASIZE: to `set`
		"5f 54 601d 57", // SLOAD(0): to `open`
		"61",
		size,
		"601f 5f 39 61", // the tail is the revert data
		size,
		"5f fd",
		"00 00",
		set,
		open,
		data.slice(2),
	);
}

/** The revert data of Solidity's `Error(string)` with this text. */
export function errorString(text: string): string {
	const bytes = Buffer.from(text, "utf8");
	const padded = Buffer.concat([bytes, Buffer.alloc((32 - (bytes.length % 32)) % 32)]);
	return `0x08c379a0${hex(32, 32)}${hex(bytes.length, 32)}${padded.toString("hex")}`;
}

/** The revert data of Solidity's `Panic(uint256)` with this code. */
export function panic(panicCode: number): string {
	return `0x4e487b71${hex(panicCode, 32)}`;
}

/** Increments slot 0, and returns it. */
export const COUNTER = code("5f 54 6001 01 80 5f 55 5f 52 6020 5f f3");
/** SSTORE(word 0, word 1); returns the old value. */
const STORE = code("5f 35 54 5f 52", "6020 35 5f 35 55", "6020 5f f3");
/** Returns its calldata. */
const ECHO = code("36 5f 5f 37 36 5f f3");
/** Writes to storage, then reverts with its calldata. */
const REVERT = code("6001 5f 55 36 5f 5f 37 36 5f fd");
/**
 * Calls the address in word 0 with CALLVALUE; returns what the call returned, and the balance of
 * that address.
 */
const FORWARD = code("6020 5f 5f 5f 34 5f 35 5a f1 50", "5f 35 31 6020 52", "6040 5f f3");
/** Creates a contract with its calldata as init code and CALLVALUE; returns the address. */
const FACTORY = code("36 5f 5f 37", "36 5f 34 f0", "5f 52 6020 5f f3");
/**
 * SELFDESTRUCT to the caller; the contract is only removed if it was created in the same
 * transaction.
 */
const DESTROY = code("33 ff");
/** BLOCKHASH(word 0) */
const HASH_OF = code("5f 35 40 5f 52 6020 5f f3");
/** Returns the code of the address in word 0. */
const CODE_OF = code("5f 35 3b 5f 5f 5f 35 3c", "5f 35 3b 5f f3");
/**
 * COINBASE, TIMESTAMP, NUMBER, BASEFEE, GASLIMIT, GASPRICE, balances of coinbase, origin and self,
 * value, caller.
 */
const SURROUNDINGS = code(
	"41 5f 52 42 6020 52 43 6040 52 48 6060 52 45 6080 52 3a 60a0 52",
	"41 31 60c0 52 32 31 60e0 52 47 610100 52 34 610120 52 33 610140 52",
	"610160 5f f3",
);
/** PREVRANDAO */
const RANDAO = code("44 5f 52 6020 5f f3");

/** The addresses of the contracts above. */
export const PLACES = {
	counter: addressOf(0x101),
	store: addressOf(0x102),
	echo: addressOf(0x103),
	revert: addressOf(0x104),
	forward: addressOf(0x105),
	factory: addressOf(0x106),
	destroy: addressOf(0x107),
	hashOf: addressOf(0x108),
	codeOf: addressOf(0x109),
	surroundings: addressOf(0x10a),
	loop: addressOf(0x10b),
	invalid: addressOf(0x10c),
	randao: addressOf(0x10d),
} as const;

export const CODES: Readonly<Record<string, string>> = {
	[PLACES.counter]: COUNTER,
	[PLACES.store]: STORE,
	[PLACES.echo]: ECHO,
	[PLACES.revert]: REVERT,
	[PLACES.forward]: FORWARD,
	[PLACES.factory]: FACTORY,
	[PLACES.destroy]: DESTROY,
	[PLACES.hashOf]: HASH_OF,
	[PLACES.codeOf]: CODE_OF,
	[PLACES.surroundings]: SURROUNDINGS,
	[PLACES.loop]: LOOPS,
	[PLACES.invalid]: INVALID,
	[PLACES.randao]: RANDAO,
};

/** https://eips.ethereum.org/EIPS/eip-2935 */
export const HISTORY_CONTRACT = "0x0000f90827f1c53a10cb7a02335b175320002935";

/** Revert data: valid reasons, panics, and malformed data. */
export const REVERT_DATA: readonly string[] = [
	"0x",
	errorString("too late"),
	panic(0x11),
	`0xdeadbeef${"07".repeat(32)}`,
	`0x${"ab".repeat(5000)}`,
];

/** Init code that succeeds, and init code that fails. */
export const INIT_CODES: readonly string[] = [
	deploying(COUNTER),
	deploying(SURROUNDINGS),
	// The returned values become the code.
	SURROUNDINGS,
	"0x",
	deploying(DESTROY),
	DESTROY,
	revertingWith(errorString("not today")),
	INVALID,
	// Code may not begin with EF (EIP-3541).
	deploying("0xef01"),
];

/** 32 bytes of hex, without 0x. */
export function word(value: bigint | number | string): string {
	return BigInt(value).toString(16).padStart(64, "0");
}
