// Blocks of the chain, asked of the node: a number or a tag comes in, the header and what else a simulation on top of
// it, or in it, needs goes out. It follows no chain and keeps nothing.

import { readQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { NamedBlock } from "../../domain/callMany.ts";
import type { Header } from "../../domain/chain.ts";
import type { BlockContext } from "../../domain/simulation.ts";
import { blockOverrides } from "../engines/callObject.ts";
import type { Ask, StateOverrides } from "../engines/engine.ts";
import { isObject, readHex } from "../engines/json.ts";
import { nodeUnavailable } from "./asking.ts";

/** A block of the chain. */
export interface NodeBlock {
	readonly header: Header;
	/** What PREVRANDAO is in it; null where the node does not say. */
	readonly mixHash: string | null;
	/** EIP-4788; null where the chain has none. */
	readonly beaconRoot: string | null;
	/** Hashes in order. */
	readonly transactions: readonly string[];
}

/** The block that calls run in. */
export interface CallBlock extends BlockContext {
	/** 32 bytes of hex; null: whatever the node makes of it. */
	readonly prevRandao: string | null;
}

/** The state that calls run on: that after a block, and what is different. */
export interface BaseState {
	/** Number of the block. */
	readonly block: number;
	readonly overrides: StateOverrides;
}

/** The block, or null where the node has none such. Throws {@link nodeUnavailable}. */
export async function readBlock(ask: Ask, named: NamedBlock): Promise<NodeBlock | null> {
	const block = typeof named === "bigint" ? toQuantity(named) : named === "pending" ? "latest" : named;
	const answer = await ask({ method: "eth_getBlockByNumber", params: [block, false] });
	if (answer.kind !== "result") throw nodeUnavailable();
	if (answer.value === null) return null;
	const read = parseBlock(answer.value);
	if (read === null) throw nodeUnavailable();
	return read;
}

/** The block as overrides for the node. */
export function overridesOf(block: CallBlock): Record<string, string> {
	return {
		...blockOverrides(block),
		...(block.prevRandao === null ? {} : { prevRandao: block.prevRandao }),
	};
}

/** https://eips.ethereum.org/EIPS/eip-2935#specification */
const HISTORY_ADDRESS = "0x0000f90827f1c53a10cb7a02335b175320002935";
/** https://eips.ethereum.org/EIPS/eip-4788#specification */
const BEACON_ROOTS_ADDRESS = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02";
/** Slots of both contracts' rings. */
const RING_SLOTS = 8191;

/** What a block writes at its start, before its first transaction: its parent's hash into the history's contract. */
export function historyWrite(parent: Header): StateOverrides {
	return { [HISTORY_ADDRESS]: { stateDiff: { [word(parent.number % RING_SLOTS)]: parent.hash } } };
}

/** What else it writes then: the beacon block's root and its own time. */
export function beaconRootWrite({ header, beaconRoot }: NodeBlock): StateOverrides {
	if (beaconRoot === null) return {};
	const slot = header.timestamp % RING_SLOTS;
	const stateDiff = { [word(slot)]: word(header.timestamp), [word(slot + RING_SLOTS)]: beaconRoot };
	return { [BEACON_ROOTS_ADDRESS]: { stateDiff } };
}

/** 32 bytes of hex. */
function word(value: number): string {
	return `0x${value.toString(16).padStart(64, "0")}`;
}

function parseBlock(value: unknown): NodeBlock | null {
	if (!isObject(value) || !Array.isArray(value.transactions)) return null;
	const [number, timestamp, gasLimit, gasUsed] = [
		readQuantity(value.number),
		readQuantity(value.timestamp),
		readQuantity(value.gasLimit),
		readQuantity(value.gasUsed),
	];
	const [hash, parentHash, miner] = [readHex(value.hash), readHex(value.parentHash), readHex(value.miner)];
	if (number === null || timestamp === null || gasLimit === null || gasUsed === null) return null;
	if (hash === null || parentHash === null || miner === null) return null;
	return {
		header: {
			number: Number(number),
			hash,
			parentHash,
			timestamp: Number(timestamp),
			gasLimit,
			gasUsed,
			baseFee: readQuantity(value.baseFeePerGas) ?? 0n,
			excessBlobGas: readQuantity(value.excessBlobGas) ?? 0n,
			blobGasUsed: readQuantity(value.blobGasUsed) ?? 0n,
			miner,
		},
		mixHash: readHex(value.mixHash),
		beaconRoot: readHex(value.parentBeaconBlockRoot),
		transactions: value.transactions.map((hash) => readHex(hash) ?? ""),
	};
}
