// Contracts as bytecode that the generated cases of eth_callMany call and create. Their answers show state, order and
// surroundings of a call.

import { code, deploying, errorString, INVALID, LOOPS, panic, revertingWith } from "./simulationContracts.ts";
import { addressOf } from "./simulationFixture.ts";

/** Counts in slot 0 and answers the count. */
export const COUNTER = code("5f 54 6001 01 80 5f 55 5f 52 6020 5f f3");
/** SSTORE(word 0, word 1); answers what was there. */
const STORE = code("5f 35 54 5f 52", "6020 35 5f 35 55", "6020 5f f3");
/** Answers its calldata. */
const ECHO = code("36 5f 5f 37 36 5f f3");
/** Writes, and reverts with its calldata. */
const REVERT = code("6001 5f 55 36 5f 5f 37 36 5f fd");
/** Calls word 0 with the value that it got; answers what that answered, and the balance there. */
const FORWARD = code("6020 5f 5f 5f 34 5f 35 5a f1 50", "5f 35 31 6020 52", "6040 5f f3");
/** Creates with its calldata as init code and its value; answers the address. */
const FACTORY = code("36 5f 5f 37", "36 5f 34 f0", "5f 52 6020 5f f3");
/** Sends all it has to the caller, and ends itself where it was made in the same transaction. */
const DESTROY = code("33 ff");
/** BLOCKHASH(word 0) */
const HASH_OF = code("5f 35 40 5f 52 6020 5f f3");
/** Answers the code of word 0. */
const CODE_OF = code("5f 35 3b 5f 5f 5f 35 3c", "5f 35 3b 5f f3");
/** COINBASE, TIMESTAMP, NUMBER, BASEFEE, GASLIMIT, GASPRICE, balances of coinbase, origin and self, value, caller. */
const SURROUNDINGS = code(
	"41 5f 52 42 6020 52 43 6040 52 48 6060 52 45 6080 52 3a 60a0 52",
	"41 31 60c0 52 32 31 60e0 52 47 610100 52 34 610120 52 33 610140 52",
	"610160 5f f3",
);
/** PREVRANDAO */
const RANDAO = code("44 5f 52 6020 5f f3");

/** Where each of them is. */
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
export const HISCENARIO_CONTRACT = "0x0000f90827f1c53a10cb7a02335b175320002935";

/** Revert data of every kind. */
export const REVERT_DATA: readonly string[] = [
	"0x",
	errorString("too late"),
	panic(0x11),
	`0xdeadbeef${"07".repeat(32)}`,
	`0x${"ab".repeat(5000)}`,
];

/** Init code that passes, and that does not. */
export const INIT_CODES: readonly string[] = [
	deploying(COUNTER),
	deploying(SURROUNDINGS),
	// What it answers becomes its code: its surroundings when it was created.
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
