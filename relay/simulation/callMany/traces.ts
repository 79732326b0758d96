// Runs a plan on nodes whose `eth_simulateV1` is not exact (anvil supports no creations, does not
// check nonces and hides why calls fail). Each call is traced alone, with the changes of earlier
// ones as state overrides.
// https://geth.ethereum.org/docs/interacting-with-geth/rpc/ns-debug#debugtracecall

import { parseQuantity, toQuantity } from "../../../shared/ethereum/hex.ts";
import { blobGas, effectiveGasPrice } from "../../../shared/ethereum/intrinsicGas.ts";
import type { Authorization } from "../../../shared/ethereum/transactionFields.ts";
import { isObject } from "../../../shared/jsonrpc/fields.ts";
import { fundsProblem, nonceProblem } from "../../domain/blockProblems.ts";
import { termsProblem } from "../checks.ts";
import type { StateOverrides } from "../engines/engine.ts";
import { applyDiff, readHex } from "../engines/nodeObjects.ts";
import { frameError, traceCall } from "../engines/traces.ts";
import { readAnswer } from "../engines/verdicts.ts";
import { type AskNode, type CallBlock, overridesOf } from "./blocks.ts";
import { collect, type Ended, ended, notRun, type Plan, type PlannedCall, type PlanResults } from "./plan.ts";
import { roomProblem, type SenderState } from "./rules.ts";

/** Recovers the signers of authorizations, so that later uses find them at once. */
export type RecoverSigners = (authorizations: readonly Authorization[]) => Promise<void>;

/** Null if the node does not trace, or does not reproduce the mined transactions. */
export async function trace(
	plan: Plan | null,
	senders: ReadonlyMap<string, SenderState>,
	ask: AskNode,
	recover: RecoverSigners,
): Promise<PlanResults> {
	if (plan === null) return null;
	const results = new Map<PlannedCall, Ended>();
	let { overrides } = plan;
	for (const { block, calls } of plan.blocks) {
		let gasUsed = 0n;
		for (const call of calls) {
			const before = senderIn(overrides, senders, call.signer.from);
			const problem = problemOf(call, before, block, gasUsed);
			if (problem !== null) {
				results.set(call, notRun(problem));
				continue;
			}
			await recover(call.signer.authorizationList);
			const traced = await traceOne(call, plan.state.number, overrides, block, ask);
			if (traced === null) return null;
			// Only the status is compared, because anvil's gas of failed calls is wrong.
			if (call.mined !== null && call.mined.ok !== traced.ended.ok) return null;
			results.set(call, traced.ended);
			gasUsed += gasOf(
				call,
				traced.ended,
				before,
				senderIn(traced.overrides, senders, call.signer.from),
				block,
			);
			({ overrides } = traced);
		}
	}
	return collect(plan, (call) => results.get(call));
}

async function traceOne(
	call: PlannedCall,
	state: number,
	stateOverrides: StateOverrides,
	block: CallBlock,
	ask: AskNode,
): Promise<{ readonly ended: Ended; readonly overrides: StateOverrides } | null> {
	const [called, changed] = await traceCall(
		{
			object: { gas: toQuantity(block.gasLimit), ...call.object },
			number: state,
			stateOverrides,
			blockOverrides: overridesOf(block),
		},
		{ changes: true, logs: false },
		(calls) => Promise.all(calls.map(async (one) => readAnswer(await ask(one)))),
	);
	if (called?.kind === "failed") return { ended: notRun(called.error.message), overrides: stateOverrides };
	if (called?.kind !== "result" || !isObject(called.value) || changed?.kind !== "result") return null;
	const { output, gasUsed } = called.value;
	const gas = typeof gasUsed === "string" ? parseQuantity(gasUsed) : null;
	const overrides = applyDiff(stateOverrides, changed.value, call.signer);
	if (gas === null || overrides === null) return null;
	return { ended: ended(readHex(output) ?? "0x", gas, frameError(called.value)), overrides };
}

/** Why a signed transaction can't be executed now; null for a call, or if it can. */
function problemOf(
	{ tx }: PlannedCall,
	before: SenderState,
	block: CallBlock,
	gasUsed: bigint,
): string | null {
	if (tx === null) return null;
	const left = block.gasLimit - gasUsed;
	const nonce = nonceProblem(tx, before.nonce) ?? termsProblem(tx, block);
	if (nonce !== null) return nonce.message;
	return tx.gasLimit > left ? roomProblem(tx, left) : (fundsProblem(tx, before.balance)?.message ?? null);
}

function senderIn(
	overrides: StateOverrides,
	senders: ReadonlyMap<string, SenderState>,
	address: string,
): SenderState {
	const known = senders.get(address) ?? { nonce: 0n, balance: 0n, code: "none" };
	const changed = overrides[address];
	return {
		nonce: (changed?.nonce === undefined ? null : parseQuantity(changed.nonce)) ?? known.nonce,
		balance: (changed?.balance === undefined ? null : parseQuantity(changed.balance)) ?? known.balance,
		code: known.code,
	};
}

/**
 * The gas that a transaction used. anvil's value is wrong for a revert, but then the sender paid
 * for nothing except gas, so the change of its balance gives the right one.
 */
function gasOf(
	{ tx }: PlannedCall,
	{ ok, gasUsed }: Ended,
	before: SenderState,
	after: SenderState,
	block: CallBlock,
): bigint {
	if (tx === null || gasUsed === null) return 0n;
	const price = effectiveGasPrice(tx, block.baseFee);
	if (ok || price === 0n || tx.from === block.feeRecipient) return gasUsed;
	const paid = before.balance - after.balance - blobGas(tx) * block.blobBaseFee;
	return paid > 0n && paid % price === 0n ? paid / price : gasUsed;
}
