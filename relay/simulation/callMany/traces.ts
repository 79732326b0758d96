// Runs on `debug_traceCall`: each transaction or call traced by itself, with what those before it changed as overrides
// of the state. Two traces for each but the last: what it returned, and what it changed.
// https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-debug#debugtracecall

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import { blobGas, effectiveGasPrice } from "../../../shared/ethereum/intrinsicGas.ts";
import type { DecodedTransaction } from "../../../shared/ethereum/transaction.ts";
import type { CallResult } from "../../domain/callMany.ts";
import type { Signer } from "../authorizations.ts";
import { callObject } from "../engines/callObject.ts";
import type { Ask, StateOverrides } from "../engines/engine.ts";
import { applyDiff } from "../engines/stateDiff.ts";
import { type BaseState, type CallBlock, overridesOf } from "./blocks.ts";
import { type Execution, notRun, REFUSED, type RoadAnswer, readFrame } from "./outcome.ts";
import type { SignedRun } from "./signedRun.ts";
import {
	findBalanceProblem,
	findNonceProblem,
	findOwnProblem,
	findRoomProblem,
	type SenderState,
} from "./transactionRules.ts";
import { type CallsRun, unsignedCallObject } from "./unsignedRun.ts";

const CALLS = { tracer: "callTracer" };
const CHANGES = { tracer: "prestateTracer", tracerConfig: { diffMode: true } };

/** What an unsigned call carries. */
const NO_AUTHORIZATIONS = { chainId: 0n, authorizationList: [] } as const;

/** Runs signed transactions; every rule is checked against the state that is there when it is a transaction's turn. */
export async function traceTransactions(run: SignedRun, ask: Ask): Promise<RoadAnswer> {
	const { block, txs } = run;
	const results: CallResult[] = [];
	let { overrides } = run.base;
	let gasUsed = 0n;
	let vague = false;
	for (const [index, tx] of txs.entries()) {
		const before = senderIn(overrides, run, tx.from);
		const problem =
			findOwnProblem(tx, run.rules) ??
			findNonceProblem(tx, before, block) ??
			findRoomProblem(tx, gasUsed, block) ??
			findBalanceProblem(tx, before.balance);
		if (problem !== null) {
			results.push(notRun(problem));
			continue;
		}
		const base = { block: run.base.block, overrides };
		const isLast = index === txs.length - 1;
		const traced = await trace(callObject(tx, block), base, block, isLast ? null : tx, ask);
		if (traced.kind === "refused") return traced;
		if (traced.kind === "notRun") {
			results.push(traced.result);
			continue;
		}
		results.push(traced.execution.result);
		vague ||= traced.execution.vague;
		gasUsed += gasOf(tx, traced.execution, before, senderIn(traced.overrides, run, tx.from), block);
		({ overrides } = traced);
	}
	return { kind: "ran", results: [results], vague };
}

/** Runs unsigned calls. */
export async function traceCalls(run: CallsRun, ask: Ask): Promise<RoadAnswer> {
	const results: CallResult[][] = [];
	let { overrides } = run.base;
	let vague = false;
	const last = run.blocks.flatMap(({ calls }) => calls).at(-1);
	for (const { block, calls } of run.blocks) {
		const inner: CallResult[] = [];
		for (const call of calls) {
			const base = { block: run.base.block, overrides };
			const signer = call === last ? null : { ...NO_AUTHORIZATIONS, from: call.from };
			const traced = await trace(unsignedCallObject(call, block), base, block, signer, ask);
			if (traced.kind === "refused") return traced;
			if (traced.kind === "notRun") {
				inner.push(traced.result);
				continue;
			}
			inner.push(traced.execution.result);
			vague ||= traced.execution.vague;
			({ overrides } = traced);
		}
		results.push(inner);
	}
	return { kind: "ran", results, vague };
}

type Traced =
	| { readonly kind: "executed"; readonly execution: Execution; readonly overrides: StateOverrides }
	/** It can't be executed; nothing changed. */
	| { readonly kind: "notRun"; readonly result: CallResult }
	| { readonly kind: "refused" };

/** Traces one. `signer` is whose authorizations it carries, or null where nothing comes behind it. */
async function trace(
	call: Readonly<Record<string, unknown>>,
	base: BaseState,
	block: CallBlock,
	signer: Signer | null,
	ask: Ask,
): Promise<Traced> {
	const traceBy = (tracer: object) => {
		const config = { ...tracer, stateOverrides: base.overrides, blockOverrides: overridesOf(block) };
		return ask({ method: "debug_traceCall", params: [call, toQuantity(base.block), config] });
	};
	const [called, changed] = await Promise.all([traceBy(CALLS), signer === null ? null : traceBy(CHANGES)]);
	if (called.kind === "failed") return { kind: "notRun", result: notRun(called.error.message) };
	if (called.kind !== "result") return REFUSED;
	const execution = readFrame(called.value);
	if (execution === null) return REFUSED;
	if (signer === null) return { kind: "executed", execution, overrides: base.overrides };
	const overrides = changed?.kind === "result" ? applyDiff(base.overrides, changed.value, signer) : null;
	return overrides === null ? REFUSED : { kind: "executed", execution, overrides };
}

function senderIn(overrides: StateOverrides, { senders }: SignedRun, address: string): SenderState {
	const known = senders.get(address) ?? { nonce: 0n, balance: 0n, code: "none" };
	const changed = overrides[address];
	return {
		nonce: (changed?.nonce === undefined ? null : parseQuantity(changed.nonce)) ?? known.nonce,
		balance: (changed?.balance === undefined ? null : parseQuantity(changed.balance)) ?? known.balance,
		code: known.code,
	};
}

/**
 * The gas that it used. anvil tells it wrongly of what reverted; but then the sender paid for nothing else, so that
 * its balance tells.
 */
function gasOf(
	tx: DecodedTransaction,
	{ failed, gasUsed }: Execution,
	before: SenderState,
	after: SenderState,
	block: CallBlock,
): bigint {
	const price = effectiveGasPrice(tx, block.baseFee);
	if (!failed || price === 0n || tx.from === block.feeRecipient) return gasUsed;
	const paid = before.balance - after.balance - blobGas(tx) * block.blobBaseFee;
	return paid > 0n && paid % price === 0n ? paid / price : gasUsed;
}
