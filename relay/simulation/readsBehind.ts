// Runs clients' calls behind pending transactions. It traces these one after another on the head's
// state. The node then gets their changes as state overrides of the call, so that answers and
// errors are the node's own. The client's overrides come first. If a node accepts no overrides for
// `eth_createAccessList` (anvil), a trace supplies the list.

import type { Clock } from "../../shared/clock.ts";
import { toQuantity } from "../../shared/ethereum/hex.ts";
import { ForeignRpcError, RpcError } from "../../shared/jsonrpc/errors.ts";
import { type Fields, isObject } from "../../shared/jsonrpc/fields.ts";
import { feeProblem } from "../domain/blockProblems.ts";
import type { Tip } from "../domain/chain.ts";
import { fieldsOf } from "../domain/nodeJson.ts";
import type { Caller } from "../domain/ports.ts";
import { type BlockContext, blockContext } from "../domain/simulation.ts";
import type { ChainLink } from "../domain/transaction.ts";
import { accessListOf } from "./accessLists.ts";
import type { AccountOverride, Ask, NodeAnswer, StateOverrides } from "./engines/engine.ts";

import { traceFirst } from "./engines/traces.ts";
import { readAnswer } from "./engines/verdicts.ts";

export interface ReadsBehindDependencies {
	/** The node, with a quota for each client, as in Passthrough. */
	readonly node: {
		call(method: string, params: readonly unknown[], caller: Caller): Promise<unknown>;
		read(method: string, params: readonly unknown[], caller: Caller, timeoutMs: number): Promise<unknown>;
	};
	readonly tip: Tip;
	readonly feeRecipientOf: () => string;
	readonly clock: Clock;
}

/**
 * Deadline for the traces of pending transactions, in ms; a wallet waits ten seconds for its call.
 */
const TIMEOUT_MS = 2_000;
const NONE: ReadonlySet<string> = new Set();
const ZERO_WORD = `0x${"0".repeat(64)}`;

/** Runs clients' calls behind pending transactions that are not in a block yet. */
export class ReadsBehind {
	readonly #dependencies: ReadsBehindDependencies;

	constructor(dependencies: ReadsBehindDependencies) {
		this.#dependencies = dependencies;
	}

	/**
	 * The node's answer to `eth_call`, `eth_estimateGas` or `eth_createAccessList` in the next block,
	 * behind `chain`, charged to the caller; null if the node can't run that. Throws a
	 * ForeignRpcError with the node's verdict on the call.
	 */
	async answer(
		method: string,
		params: readonly unknown[],
		chain: readonly ChainLink[],
		caller: Caller,
	): Promise<{ readonly result: unknown } | null> {
		const { node, tip, feeRecipientOf, clock } = this.#dependencies;
		const next = tip.next();
		if (next === null) return null;
		const until = clock.monotonic() + TIMEOUT_MS;
		const ask: Ask = (calls) =>
			Promise.all(
				calls.map((one) =>
					askOne(() => node.read(one.method, one.params, caller, Math.max(1, until - clock.monotonic()))),
				),
			);
		const block = blockContext(next, feeRecipientOf());
		const state = await stateBehind(chain, block, ask);
		const behind = state && paramsBehind(method, params, block, state);
		if (!behind) return null;
		try {
			return { result: await node.call(method, behind, caller) };
		} catch (thrown) {
			if (!isFault(thrown)) throw thrown;
		}
		return method === "eth_createAccessList" ? tracedList(behind, block, ask) : null;
	}
}

/**
 * The state after the transactions of `chain` that can be in `block`, as overrides. Null if none
 * can be, or the node can't say.
 */
async function stateBehind(
	chain: readonly ChainLink[],
	block: BlockContext,
	ask: Ask,
): Promise<StateOverrides | null> {
	let state: StateOverrides | null = null;
	for (const { tx, mayFail } of chain) {
		if (feeProblem(tx, block) !== null) break;
		const part = {
			block,
			prevRandao: block.parentHash ?? ZERO_WORD,
			beaconRoot: null,
			chain: [tx],
			accounts: new Map(),
			mayFail: NONE,
			measured: false,
			mayWait: false,
			state: state ?? {},
		};
		const traced = await traceFirst(part, ask, true);
		if (!traced.outcome.ok && traced.outcome.error.code === "NODE_UNAVAILABLE") return null;
		// The chain ends at a transaction that would not be sent, or can't be in a block at all.
		if (!traced.outcome.ok && (!mayFail || traced.state === null)) break;
		if (traced.state === null) return null;
		state = traced.state;
	}
	return state;
}

async function askOne(read: () => Promise<unknown>): Promise<NodeAnswer> {
	try {
		return { kind: "result", value: await read() };
	} catch (thrown) {
		if (thrown instanceof ForeignRpcError) return readAnswer({ ok: false, error: thrown });
		if (thrown instanceof RpcError) return { kind: "fault" };
		throw thrown;
	}
}

/** The answer of `eth_createAccessList` from traces; null if the node can't trace either. */
async function tracedList(
	[call, , overrides]: readonly unknown[],
	{ stateBlock }: BlockContext,
	ask: Ask,
): Promise<{ readonly result: unknown } | null> {
	const object = fieldsOf(call) ?? {};
	const stateOverrides = overrides as StateOverrides;
	const result = await accessListOf({ object, number: stateBlock, stateOverrides, blockOverrides: {} }, ask);
	return result && { result };
}

/**
 * Whether the node failed, or does not support these params or the block. Then `thrown` is no
 * verdict on the call.
 */
function isFault(thrown: unknown): boolean {
	if (!(thrown instanceof ForeignRpcError)) return thrown instanceof RpcError;
	return readAnswer({ ok: false, error: thrown }).kind !== "failed";
}

/**
 * The params of the call with `state` under its own overrides, on the head's state. Null if this
 * module can't read its overrides.
 */
function paramsBehind(
	method: string,
	[call, , own, blockOwn, ...more]: readonly unknown[],
	block: BlockContext,
	state: StateOverrides,
): readonly unknown[] | null {
	const overrides = merged(state, own ?? {});
	if (overrides === null || more.length > 0) return null;
	const behind = [call, toQuantity(block.stateBlock), overrides];
	if (method !== "eth_call") return blockOwn == null ? behind : [...behind, blockOwn];
	if (blockOwn != null && !isObject(blockOwn)) return null;
	const next = {
		number: toQuantity(block.number),
		time: toQuantity(block.timestamp),
		baseFeePerGas: toQuantity(block.baseFee),
	};
	return [...behind, { ...next, ...(fieldsOf(blockOwn) ?? {}) }];
}

/**
 * `state` with the client's overrides over it. Null if these are malformed; then the node reports
 * the error.
 */
function merged(state: StateOverrides, own: unknown): Fields | null {
	if (!isObject(own)) return null;
	const all: Record<string, unknown> = { ...state };
	for (const [address, account] of Object.entries(own)) {
		if (!isObject(account)) return null;
		const key = address.toLowerCase();
		all[key] = mergedAccount(state[key] ?? {}, account);
	}
	return all;
}

function mergedAccount(behind: AccountOverride, own: Fields): Fields {
	const { stateDiff, ...rest } = behind;
	// `own.state` replaces all slots.
	if (own.state != null) return { ...rest, ...own };
	if (stateDiff === undefined || (own.stateDiff != null && !isObject(own.stateDiff)))
		return { ...behind, ...own };
	const slots = Object.entries(fieldsOf(own.stateDiff) ?? {}).map(([slot, value]) => [
		slot.toLowerCase(),
		value,
	]);
	return { ...behind, ...own, stateDiff: { ...stateDiff, ...Object.fromEntries(slots) } };
}
