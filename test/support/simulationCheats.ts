// Contracts that try to tell a simulation from a real block: one that returns all that code can
// observe, and cheats that pay five ether if they observe what only a simulation has, else one wei.

import { PROBE_ADDRESS, PROBE_CALLER } from "../../relay/simulation/engines/nodeObjects.ts";

const HISTORY = "0000f90827f1c53a10cb7a02335b175320002935";
const BEACON_ROOTS = "000f3df6d732807ef1319fb7b8bb8522d0beac02";
const [PROBE, CALLER] = [PROBE_ADDRESS.slice(2), PROBE_CALLER.slice(2)];

/** Code that pushes the gas that `code` uses, with the cost of measuring. */
const gasOf = (code: string) => `5a ${code} 50 5a 90 03`;
/**
 * Code that calls the contract at `address` with the word that `argument` pushes, and pushes the
 * returned word or 0.
 */
const ask = (address: string, argument: string) =>
	`5f 610fe0 52 ${argument} 610fc0 52 6020 610fe0 6020 610fc0 73${address} 5a fa 50 610fe0 51`;

const LAST = "6001 43 03";
/** Pushes the parent beacon root of the block's own time, or 0. */
export const ASKS_BEACON_ROOT = ask(BEACON_ROOTS, "42");

/** All that code can observe, each as code that pushes one word. */
const SIGHTS: Readonly<Record<string, string>> = {
	gasLeft: "5a",
	gasOfProbeBalance: gasOf(`73${PROBE} 31`),
	gasOfProbeCode: gasOf(`73${CALLER} 3b`),
	gasOfCoinbaseBalance: gasOf("41 31"),
	probeCode: `73${PROBE} 3b`,
	probeBalance: `73${CALLER} 31`,
	coinbase: "41",
	coinbaseBalance: "41 31",
	coinbaseCodeHash: "41 3f",
	timestamp: "42",
	number: "43",
	prevRandao: "44",
	gasLimit: "45",
	chainId: "46",
	ownBalance: "47",
	baseFee: "48",
	blobBaseFee: "4a",
	gasPrice: "3a",
	originBalance: "32 31",
	hashOfHead: `${LAST} 40`,
	hashBeforeHead: "6002 43 03 40",
	historyOfHead: ask(HISTORY, LAST),
	beaconRoot: ASKS_BEACON_ROOT,
	calldata: "5f 35",
};

/** A contract that reverts with all of {@link SIGHTS}, a word each. */
export const SHOWS_ALL = bytes(
	...Object.values(SIGHTS).map((code, i) => `${code} 61${hex(32 * i, 2)} 52`),
	`61${hex(32 * Object.keys(SIGHTS).length, 2)} 5f fd`,
);

/** The words of {@link SHOWS_ALL} by name. */
export function readSights(data: string): Record<string, bigint> {
	const names = Object.keys(SIGHTS);
	if (data.length !== 2 + 64 * names.length) throw new Error(`it shows ${data.length} digits`);
	return Object.fromEntries(
		names.map((name, i) => [name, BigInt(`0x${data.slice(2 + 64 * i, 66 + 64 * i)}`)]),
	);
}

/** Tests of cheats: code that pushes whether it seems to be simulated. */
export const CHEATS: Readonly<Record<string, string>> = {
	"where a probe contract is": SIGHTS.probeCode ?? "",
	"where a probe's caller has ether": SIGHTS.probeBalance ?? "",
	"where the coinbase has nothing": `${SIGHTS.coinbaseBalance} 15`,
	"where the coinbase has code": "41 3b",
	"where prevrandao is what a simulation revealed": "44 5f 35 14",
	"where prevrandao is 0": "44 15",
	"where the base fee is 0": "48 15",
	"where the price is no more than the base fee": "48 3a 11 15",
	"where the gas limit is not the head's": "45 6020 35 14 15",
	"where the head has no hash": `${SIGHTS.hashOfHead} 15`,
	"where the history contract does not know the head": `${SIGHTS.historyOfHead} ${SIGHTS.hashOfHead} 14 15`,
	"where a probe's address is warm": `610a28 ${SIGHTS.gasOfProbeBalance} 10`,
	"where its caller's address is warm": `610a28 ${SIGHTS.gasOfProbeCode} 10`,
	"where there is less gas than its own": "620249f0 5a 10",
	"where the number is not the one it was sent for": "43 6040 35 14 15",
	"where the time is not a slot behind the head's": "42 6060 35 14 15",
};

/**
 * A contract that pays the coinbase five ether if `condition` pushes anything but 0, else one wei.
 */
export function payingWhere(condition: string): string {
	const pay = (value: string) => `5f 5f 5f 5f ${value} 41 5a f1 00`;
	const little = pay("6001");
	const size = (code: string) => code.replaceAll(" ", "").length / 2;
	const target = size(condition) + 4 + size(little);
	return bytes(condition, `61${hex(target, 2)} 57`, little, `5b ${pay("674563918244f40000")}`);
}

function bytes(...pieces: string[]): string {
	return `0x${pieces.join("").replaceAll(" ", "")}`;
}

function hex(value: number, size: number): string {
	return value.toString(16).padStart(2 * size, "0");
}
