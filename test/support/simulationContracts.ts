// Small contracts as bytecode, each for one thing that a simulation must see. Each has a comment with its
// instructions, since there is no source.

/** `0x` and the bytes of hex pieces, whose blanks are left out. */
export function code(...pieces: string[]): string {
	return `0x${pieces.join("").replaceAll(" ", "")}`;
}

function hex(value: number, bytes: number): string {
	return value.toString(16).padStart(2 * bytes, "0");
}

/** Copies its own tail into memory and ends with it: PUSH2 n, PUSH1 12, PUSH0, CODECOPY, PUSH2 n, PUSH0, `end`. */
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

/** Jumps in circles. JUMPDEST PUSH0 JUMP */
export const LOOPS = code("5b 5f 56");

/** INVALID */
export const INVALID = code("fe");

/** ADD on an empty stack. */
export const UNDERFLOWS = code("01");

/** JUMP to where no JUMPDEST is. */
export const JUMPS_ASTRAY = code("6001 56");

/** Calls `address` with all its gas and does not mind how that ends. */
export function calling(address: string): string {
	return code("5f 5f 5f 5f 5f 73", address.slice(2), "5a f1 00");
}

/** Sends all its ether to the caller. */
export const PAYS_CALLER = code("5f 5f 5f 5f 47 33 5a f1 00");

/** Hands on all that it is given to `address`. */
export function forwarding(address: string): string {
	return code("5f 5f 5f 5f 34 73", address.slice(2), "5a f1 00");
}

/** Lets the code at `address` run as its own. DELEGATECALL */
export function delegating(address: string): string {
	return code("5f 5f 5f 5f 73", address.slice(2), "5a f4 00");
}

/** CALL of the coinbase with all that it is given. */
const PAY_COINBASE = "5f 5f 5f 5f 34 41 5a f1";

/** Hands on to the coinbase what it is given; as init code too. */
export const PAYS_COINBASE = code(PAY_COINBASE, "00");

/** Hands on to the coinbase what it is given, and takes it back by a revert. */
export const PAYS_COINBASE_AND_REVERTS = code(PAY_COINBASE, "5f 5f fd");

/** CALLCODE of the coinbase with all that it is given: it looks like a payment and is none. */
export const PRETENDS_TO_PAY = code("5f 5f 5f 5f 34 41 5a f2 00");

/** CALL of the coinbase with one wei more than it is given, which it does not have. */
export const PROMISES_TOO_MUCH = code("5f 5f 5f 5f 6001 34 01 41 5a f1 00");

/** CALL of the caller with half of what it is given. */
export const GIVES_HALF_BACK = code("5f 5f 5f 5f 6002 34 04 33 5a f1 00");

/** COINBASE SELFDESTRUCT */
export const DESTROYS_ITSELF = code("41 ff");

/** Creates, with what it is given, a contract whose init code is {@link PAYS_COINBASE}. */
export const CREATES_A_PAYER = code("68", PAY_COINBASE, "00 5f 52 6009 6017 34 f0 00");

/** Creates, with what it is given, a contract whose init code is {@link DESTROYS_ITSELF}. */
export const CREATES_A_DESTROYER = code("61 41ff 5f 52 6002 601e 34 f0 00");

/** Reverts with what it sees, a word each; see {@link readSurroundings}. */
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
 * A gate: with calldata it is set to the first word; without, it reverts with `data` while that word is zero, and
 * else goes through.
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

/** Data of Solidity's `Error(string)` with this text. */
export function errorString(text: string): string {
	const bytes = Buffer.from(text, "utf8");
	const padded = Buffer.concat([bytes, Buffer.alloc((32 - (bytes.length % 32)) % 32)]);
	return `0x08c379a0${hex(32, 32)}${hex(bytes.length, 32)}${padded.toString("hex")}`;
}

/** Data of Solidity's `Panic(uint256)` with this code. */
export function panic(panicCode: number): string {
	return `0x4e487b71${hex(panicCode, 32)}`;
}
