// What a block writes before its first transaction, for nodes that do not do it where they simulate: anvil, and whoever
// traces a single call.

import type { Header } from "../../domain/chain.ts";
import type { StateOverrides } from "./engine.ts";

/** https://eips.ethereum.org/EIPS/eip-2935#specification */
const HISTORY_ADDRESS = "0x0000f90827f1c53a10cb7a02335b175320002935";
/** https://eips.ethereum.org/EIPS/eip-4788#specification */
const BEACON_ROOTS_ADDRESS = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02";
/** Slots of both contracts' rings. */
const RING_SLOTS = 8191;

export interface SystemBlock {
	/** Seconds since the epoch. */
	readonly timestamp: number;
	/** Null: not known. */
	readonly beaconRoot: string | null;
}

/** What `block` writes at its start: its parent's hash, and the beacon block's root with its own time. */
export function systemWrites(
	parent: Pick<Header, "number" | "hash">,
	{ timestamp, beaconRoot }: SystemBlock,
): StateOverrides {
	const history = { [HISTORY_ADDRESS]: { stateDiff: { [word(parent.number % RING_SLOTS)]: parent.hash } } };
	if (beaconRoot === null) return history;
	const slot = timestamp % RING_SLOTS;
	const stateDiff = { [word(slot)]: word(timestamp), [word(slot + RING_SLOTS)]: beaconRoot };
	return { ...history, [BEACON_ROOTS_ADDRESS]: { stateDiff } };
}

/** 32 bytes of hex. */
function word(value: number): string {
	return `0x${value.toString(16).padStart(64, "0")}`;
}
