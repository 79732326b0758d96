// Runs on the node's own `eth_callMany` (Erigon, reth): unsigned calls in one block of the chain, as it was, come in; how
// each fared goes out. Nodes differ in how they tell failures and in the blocks of further bundles, so all of that is
// refused. https://docs.erigon.tech/interacting-with-erigon/interacting-with-erigon/eth

import { toQuantity } from "../../../shared/ethereum/hex.ts";
import type { CallResult, CallsRequest } from "../../domain/callMany.ts";
import type { Ask } from "../engines/engine.ts";
import { isObject } from "../engines/json.ts";
import type { NodeBlock } from "./blocks.ts";
import { REFUSED, type RoadAnswer } from "./outcome.ts";
import { type CallsRun, unsignedCallObject } from "./unsignedRun.ts";

/** The precompile that answers its input. */
const IDENTITY = "0x0000000000000000000000000000000000000004";
const PROBE_DATA = "1ee3a7d5";

/** Whether the node serves it; null: it gave no verdict. */
export async function servesCallMany(ask: Ask): Promise<boolean | null> {
	const call = { to: IDENTITY, gas: toQuantity(100_000n), input: `0x${PROBE_DATA}` };
	const params = [[{ transactions: [call] }], { blockNumber: "latest", transactionIndex: -1 }];
	const answer = await ask({ method: "eth_callMany", params });
	if (answer.kind === "fault") return null;
	const results = answer.kind === "result" ? readResults(answer.value, 1) : null;
	return results?.[0]?.value === PROBE_DATA;
}

/** Whether it may be asked this: one bundle, in a block as it was. */
export function isPlain({ bundles }: CallsRequest): boolean {
	const [first, second] = bundles;
	if (first === undefined || second !== undefined) return false;
	return Object.values(first.blockOverride).every((value) => value === undefined);
}

/** Runs the one bundle behind the first `index` transactions of `within`; null: behind all. */
export async function askCallMany(
	run: CallsRun,
	within: NodeBlock,
	index: number | null,
	ask: Ask,
): Promise<RoadAnswer> {
	const [first] = run.blocks;
	if (first === undefined) return REFUSED;
	const transactions = first.calls.map((call) => unsignedCallObject(call, first.block));
	const context = { blockNumber: toQuantity(within.header.number), transactionIndex: index ?? -1 };
	const answer = await ask({ method: "eth_callMany", params: [[{ transactions }], context] });
	const results = answer.kind === "result" ? readResults(answer.value, transactions.length) : null;
	return results === null ? REFUSED : { kind: "ran", results: [results], vague: false };
}

/** The values of the one bundle; null where a call failed, or it is not what was asked for. */
function readResults(value: unknown, count: number): readonly CallResult[] | null {
	const inner: unknown = Array.isArray(value) && value.length === 1 ? value[0] : null;
	if (!Array.isArray(inner) || inner.length !== count) return null;
	const values = inner.map(readValue).filter((one) => one !== null);
	return values.length === count ? values.map((one) => ({ value: one })) : null;
}

function readValue(one: unknown): string | null {
	if (!isObject(one) || typeof one.value !== "string" || (one.error ?? null) !== null) return null;
	// Erigon leaves 0x out, reth does not.
	const digits = one.value.replace(/^0x/, "").toLowerCase();
	return /^(?:[0-9a-f]{2})*$/.test(digits) ? digits : null;
}
