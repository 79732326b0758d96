// Builds and reads the JSON of simulations: calls, blocks, system writes, logs, and state overrides
// from a trace's changes. It is for the relay's own node only: authorizations keep their
// signatures, without which they have no effect.

import { parseNodeQuantity, parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import {
	type AccessList,
	type AccessListEntry,
	type Authorization,
	entriesOf,
} from "../../../shared/ethereum/transactionFields.ts";
import { isObject } from "../../../shared/jsonrpc/fields.ts";
import { jsonHex, LongValue } from "../../../shared/jsonrpc/longJson.ts";
import { authorizationsBySigner, lastEffective, type Signer } from "../../domain/authorizations.ts";
import type { Header } from "../../domain/chain.ts";
import type { AccountOverride, EngineBlock, NodeAnswer, Part, StateOverrides } from "./engine.ts";

/** anvil accepts no blob fees of more than 128 bits. */
const MAX_UINT128 = (1n << 128n) - 1n;

/**
 * The transaction as a call, with its signed fees, by which a validating node computes its maximum
 * cost.
 */
export function signedCall(tx: DecodedTransaction): Record<string, unknown> {
	return {
		from: tx.from,
		...(tx.to === null ? {} : { to: tx.to }),
		nonce: toQuantity(tx.nonce),
		gas: toQuantity(tx.gasLimit),
		value: toQuantity(tx.value),
		input: jsonHex(tx.data),
		...(tx.gasPrice === null
			? {
					maxFeePerGas: toQuantity(tx.maxFeePerGas),
					maxPriorityFeePerGas: toQuantity(tx.maxPriorityFeePerGas),
				}
			: { gasPrice: toQuantity(tx.gasPrice) }),
		...(tx.accessList.addresses === 0 ? {} : { accessList: accessListOf(tx.accessList) }),
		...blobFields(tx),
		...(tx.authorizationList.length === 0
			? {}
			: { authorizationList: tx.authorizationList.map(authorizationObject) }),
	};
}

/** A longer list is written entry by entry. */
const MANY_ENTRIES = 32;

function accessListOf(list: AccessList): readonly AccessListEntry[] | LongValue {
	return list.addresses + list.keys < MANY_ENTRIES ? entriesOf(list) : new LongAccessList(list);
}

/** Decodes the list when it is sent. */
class LongAccessList extends LongValue {
	readonly #list: AccessList;

	constructor(list: AccessList) {
		super();
		this.#list = list;
	}

	get byteLength(): number {
		const { addresses, keys } = this.#list;
		return BRACKETS.length + addresses * ENTRY_CHARS + keys * KEY_CHARS;
	}

	// Spaces instead of the commas behind the last ones, so that the length is known before.
	*pieces(): Generator<string> {
		const entries = entriesOf(this.#list);
		yield "[";
		for (let from = 0; from < entries.length; from += MANY_ENTRIES) {
			let piece = "";
			for (const { address, storageKeys } of entries.slice(from, from + MANY_ENTRIES)) {
				piece += `{"address":"${address}","storageKeys":[`;
				for (const [i, key] of storageKeys.entries())
					piece += `"${key}"${i + 1 < storageKeys.length ? "," : " "}`;
				piece += "]},";
			}
			yield from + MANY_ENTRIES < entries.length ? piece : `${piece.slice(0, -1)} `;
		}
		yield "]";
	}
}

const BRACKETS = "[]";
const ENTRY_CHARS = `{"address":"","storageKeys":[]},`.length + 42;
const KEY_CHARS = `"",`.length + 66;

/** The simulated block as block overrides. */
export function blockOverrides(block: EngineBlock): Record<string, string> {
	return {
		number: toQuantity(block.number),
		time: toQuantity(block.timestamp),
		gasLimit: toQuantity(block.gasLimit),
		feeRecipient: block.feeRecipient,
		baseFeePerGas: toQuantity(block.baseFee),
		blobBaseFee: toQuantity(block.blobBaseFee),
	};
}

function blobFields(tx: DecodedTransaction): Record<string, unknown> {
	if (tx.maxFeePerBlobGas === null) return {};
	const cap = tx.maxFeePerBlobGas < MAX_UINT128 ? tx.maxFeePerBlobGas : MAX_UINT128;
	return { maxFeePerBlobGas: toQuantity(cap), blobVersionedHashes: tx.blobVersionedHashes };
}

function authorizationObject(authorization: Authorization): Record<string, string> {
	return {
		chainId: toQuantity(authorization.chainId),
		address: authorization.address,
		nonce: toQuantity(authorization.nonce),
		yParity: toQuantity(authorization.yParity),
		r: toQuantity(authorization.r),
		s: toQuantity(authorization.s),
	};
}

/**
 * Unused addresses for a contract that reads balances after the simulated block, and for its
 * caller.
 */
export const PROBE_ADDRESS = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b71";
export const PROBE_CALLER = "0x1ee3a7d5c2b94f6088a1d0e57b3c96f42d8e0b72";

/** https://eips.ethereum.org/EIPS/eip-2935#specification */
const HISTORY_ADDRESS = "0x0000f90827f1c53a10cb7a02335b175320002935";
/** https://eips.ethereum.org/EIPS/eip-4788#specification */
export const BEACON_ROOTS_ADDRESS = "0x000f3df6d732807ef1319fb7b8bb8522d0beac02";
/** Slots of both contracts' rings. */
const RING_SLOTS = 8191;

export interface SystemBlock {
	/** Seconds since the epoch. */
	readonly timestamp: number;
	/** Null if not known. */
	readonly beaconRoot: string | null;
}

/**
 * The state that a block writes at its start: its parent's hash, and its time with the beacon
 * block's root.
 */
export function systemWrites(
	parent: Pick<Header, "number" | "hash">,
	{ timestamp, beaconRoot }: SystemBlock,
): StateOverrides {
	const history = { [HISTORY_ADDRESS]: { stateDiff: { [word(parent.number % RING_SLOTS)]: parent.hash } } };
	return beaconRoot === null ? history : { ...history, ...beaconRootWrite(timestamp, beaconRoot) };
}

/** The part of the system writes with the block's time and the root of its parent beacon block. */
export function beaconRootWrite(timestamp: number, beaconRoot: string): StateOverrides {
	const slot = timestamp % RING_SLOTS;
	const stateDiff = { [word(slot)]: word(timestamp), [word(slot + RING_SLOTS)]: beaconRoot };
	return { [BEACON_ROOTS_ADDRESS]: { stateDiff } };
}

/** 32 bytes of hex. */
function word(value: number): string {
	return `0x${value.toString(16).padStart(64, "0")}`;
}

const ZERO_ADDRESS = `0x${"0".repeat(40)}`;
const ZERO_WORD = `0x${"0".repeat(64)}`;
/** How the code of a delegated account begins. https://eips.ethereum.org/EIPS/eip-7702 */
export const DELEGATION_PREFIX = "0xef0100";

/** `overrides` with the changes of `tx` applied; null if the tracer's `diff` is malformed. */
export function applyDiff(overrides: StateOverrides, diff: unknown, tx: Signer): StateOverrides | null {
	if (!isObject(diff) || !isObject(diff.pre) || !isObject(diff.post)) return null;
	const merged: Record<string, AccountOverride> = { ...overrides };
	let signed: ReadonlyMap<string, readonly Authorization[]> | null = null;
	for (const [address, account] of Object.entries(diff.post)) {
		const key = address.toLowerCase();
		const before = accountOf(diff.pre[address]);
		const after = accountOf(account);
		const cleared = Object.keys(before.stateDiff ?? {}).filter(
			(slot) => after.stateDiff?.[slot] === undefined,
		);
		const known = merged[key];
		const mayBeRevoked = after.code === undefined && before.code?.startsWith(DELEGATION_PREFIX) === true;
		if (mayBeRevoked) signed ??= authorizationsBySigner(tx);
		const isRevoked = mayBeRevoked && isRevocation(tx, key, before, signed?.get(key) ?? []);
		const stateDiff = {
			...known?.stateDiff,
			...Object.fromEntries(cleared.map((slot) => [slot, ZERO_WORD])),
			...after.stateDiff,
		};
		merged[key] = {
			...known,
			...(before.balance === undefined ? {} : { balance: before.balance }),
			...after,
			...(isRevoked ? { code: "0x" } : {}),
			...(Object.keys(stateDiff).length === 0 ? {} : { stateDiff }),
		};
	}
	// An account that is missing after the transaction was created and destroyed within it, so it
	// holds nothing.
	for (const address of Object.keys(diff.pre)) {
		if (!(address in diff.post)) merged[address.toLowerCase()] = { balance: "0x0" };
	}
	return merged;
}

/**
 * Whether the authorizations that `address` has signed revoke its delegation. The diff shows
 * neither removed nor unchanged code. But only an authorization of the owner can revoke the
 * delegation.
 */
function isRevocation(
	tx: Signer,
	address: string,
	before: AccountOverride,
	own: readonly Authorization[],
): boolean {
	const nonce = parseQuantity(before.nonce ?? "0x0") ?? 0n;
	// The sender's own authorizations count after the transaction's nonce.
	return lastEffective(own, address === tx.from ? nonce + 1n : nonce)?.address === ZERO_ADDRESS;
}

/** One side of a change as an override; missing fields did not change. */
function accountOf(account: unknown): AccountOverride {
	if (!isObject(account)) return {};
	const { balance, nonce, code, storage } = account;
	return {
		...(typeof balance === "string" ? { balance } : {}),
		...(typeof nonce === "number" ? { nonce: toQuantity(nonce) } : {}),
		...(typeof nonce === "string" ? { nonce } : {}),
		...(typeof code === "string" ? { code } : {}),
		...(isObject(storage) ? { stateDiff: storageOf(storage) } : {}),
	};
}

function storageOf(storage: Readonly<Record<string, unknown>>): Record<string, string> {
	const slots: Record<string, string> = {};
	for (const [slot, value] of Object.entries(storage)) if (typeof value === "string") slots[slot] = value;
	return slots;
}

/** The balance of the first transaction's sender in wei, or null if not known. */
export function firstBalance({ chain, state, accounts }: Part): bigint | null {
	const from = chain[0]?.from ?? "";
	const changed = state[from]?.balance;
	return changed === undefined ? (accounts.get(from)?.balance ?? null) : parseQuantity(changed);
}

/**
 * The address of system logs: from Amsterdam on, each transfer of Ether is one.
 * https://eips.ethereum.org/EIPS/eip-7708
 */
const SYSTEM_ADDRESS = "0xfffffffffffffffffffffffffffffffffffffffe";

/** Whether a contract emitted one of the node's `logs`. */
export function emitsEvents(logs: unknown): boolean {
	return Array.isArray(logs) && logs.some((log) => isObject(log) && readHex(log.address) !== SYSTEM_ADDRESS);
}

/** The result of one call of `eth_simulateV1`. */
export interface SimulatedCall {
	readonly success: boolean;
	readonly gasUsed: bigint;
	/** Lower-case 0x hex. */
	readonly returnData: string;
	readonly emitsEvents: boolean;
	readonly error: { readonly code: number | null; readonly message: string; readonly data: unknown };
}

/** Parses the result of one call; null if malformed. */
export function readSimulatedCall(call: unknown): SimulatedCall | null {
	if (!isObject(call)) return null;
	const gasUsed = typeof call.gasUsed === "string" ? parseQuantity(call.gasUsed) : null;
	const returnData = readHex(call.returnData);
	if (gasUsed === null || returnData === null) return null;
	const error = isObject(call.error) ? call.error : {};
	return {
		success: call.status === "0x1",
		gasUsed,
		returnData,
		emitsEvents: emitsEvents(call.logs),
		error: {
			code: typeof error.code === "number" ? error.code : null,
			message: typeof error.message === "string" ? error.message : "",
			data: error.data,
		},
	};
}

/** The return data of an `eth_simulateV1` with one call; null if that failed. */
export function onlyReturned(answer: NodeAnswer): string | null {
	return onlyCall(answer)?.returned ?? null;
}

/**
 * The only call of an `eth_simulateV1`: its return data, and the gas that it used, if the node
 * reports it. Null if it failed.
 */
export function onlyCall(
	answer: NodeAnswer,
): { readonly returned: string; readonly gasUsed: bigint | null } | null {
	const [block]: readonly unknown[] =
		answer.kind === "result" && Array.isArray(answer.value) ? answer.value : [];
	const [call]: readonly unknown[] = isObject(block) && Array.isArray(block.calls) ? block.calls : [];
	if (!isObject(call) || call.status !== "0x1") return null;
	const returned = readHex(call.returnData);
	return returned === null ? null : { returned, gasUsed: parseNodeQuantity(call.gasUsed) };
}

/** Lower-case 0x hex of whole bytes, or null. */
export function readHex(value: unknown): string | null {
	return typeof value === "string" && BYTES.test(value) ? value.toLowerCase() : null;
}

const BYTES = /^0x(?:[0-9a-f]{2})*$/i;
