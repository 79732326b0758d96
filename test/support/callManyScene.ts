// A chain with the contracts of callManyContracts.ts and eth_callMany upon it, asked as a client asks it: JSON
// parameters go in, the result or the error comes out. The relay itself is not there.

import { nextBlockReader } from "../../relay/chain/nextBlock.ts";
import type { CallMany } from "../../relay/domain/callMany.ts";
import { eth_callMany } from "../../relay/ingress/methods/eth_callMany.ts";
import type { MethodNeeds } from "../../relay/ingress/needs.ts";
import type { CallManyNode } from "../../relay/simulation/callMany/asking.ts";
import { createCallMany } from "../../relay/simulation/callMany/callMany.ts";
import { systemClock } from "../../shared/clock.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { silentLogger } from "../../shared/log.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { CODES } from "./callManyContracts.ts";
import { CONTEXT } from "./dispatching.ts";
import { placeContracts } from "./simulationScene.ts";
import { accountOf, type TestAccount } from "./txFactory.ts";

export const SLOT_SECONDS = 12;
/** Of every block, so that a simulated one can be compared with a real one. */
export const COINBASE = "0x00000000000000000000000000000000facade01";
export const BLOCK_GAS = 30_000_000;

/** One entry of an answer. */
export interface Entry {
	readonly value: string;
	readonly error?: string;
}

export interface CallManyScene {
	readonly chain: DevChain;
	/** Accounts with 10,000 ether each. */
	readonly rich: readonly TestAccount[];
	/** What searchers may see, by hash. */
	readonly shared: Map<string, DecodedTransaction>;
	readonly callMany: CallMany;
	/** Calls the method as a client does. Throws RpcError. */
	ask(params: readonly unknown[]): Promise<Entry[][]>;
	/** The same where the node serves one way to run them alone; null where that is not enough. */
	askBy(method: "eth_simulateV1" | "debug_traceCall", params: readonly unknown[]): Promise<Entry[][] | null>;
	stop(): Promise<void>;
}

/** Starts it. */
export async function startCallManyScene(): Promise<CallManyScene> {
	const chain = await startDevChain({ gasLimit: BLOCK_GAS });
	await chain.rpc("anvil_setCoinbase", [COINBASE]);
	await chain.rpc("anvil_autoImpersonateAccount", [true]);
	await placeContracts(chain, CODES);
	const client = new JsonRpcClient({ url: chain.url, timeoutMs: 10_000 }, { clock: systemClock });
	const shared = new Map<string, DecodedTransaction>();
	const over = (node: CallManyNode): CallMany =>
		createCallMany(
			{
				chainId: BigInt(chain.chainId),
				maxTxGas: null,
				slotSeconds: SLOT_SECONDS,
				feeRecipientOf: () => COINBASE,
				fixedFeeRecipient: true,
			},
			{
				node,
				nextBlock: nextBlockReader({ slotSeconds: SLOT_SECONDS }, { node: client }),
				shared: { shared: (hash) => shared.get(hash) ?? null },
				clock: systemClock,
				log: silentLogger,
			},
		);
	const callMany = over(client);
	const alone = {
		eth_simulateV1: over(refusing(trusted(client), "debug_traceCall")),
		debug_traceCall: over(refusing(client, "eth_simulateV1")),
	};
	return {
		chain,
		rich: chain.accounts.map(({ privateKey }) => accountOf(privateKey)),
		shared,
		callMany,
		ask: async (params) => (await askMethod(callMany, params)) as Entry[][],
		async askBy(method, params) {
			try {
				return (await askMethod(alone[method], params)) as Entry[][];
			} catch (thrown) {
				if (thrown instanceof RpcError && /^node cannot/.test(thrown.message)) return null;
				throw thrown;
			}
		},
		async stop() {
			await client.close();
			await chain.stop();
		},
	};
}

/** `node` as if it did not serve `method`. */
function refusing(node: CallManyNode, method: string): CallManyNode {
	const error = { code: -32601, message: "the method does not exist" };
	return {
		call: async (call, timeoutMs) =>
			call.method === method ? { ok: false, error } : node.call(call, timeoutMs),
		batch: (calls, timeoutMs) => node.batch(calls, timeoutMs),
	};
}

/**
 * `node` as if its eth_simulateV1 kept the base fee without validation too, which anvil's does where that is zero: only
 * the question whether it does is answered for it.
 */
function trusted(node: CallManyNode): CallManyNode {
	return {
		async call(call, timeoutMs) {
			const answer = await node.call(call, timeoutMs);
			const isProbe = call.method === "eth_simulateV1" && call.params[1] === "latest";
			if (!isProbe || !answer.ok) return answer;
			const asked = call.params[0] as { blockStateCalls: { blockOverrides: { baseFeePerGas: string } }[] };
			const fee = BigInt(asked.blockStateCalls[0]?.blockOverrides.baseFeePerGas ?? 0);
			const returnData = `0x${fee.toString(16).padStart(64, "0")}`;
			return { ok: true, result: [{ calls: [{ status: "0x1", gasUsed: "0x5208", returnData, logs: [] }] }] };
		},
		batch: (calls, timeoutMs) => node.batch(calls, timeoutMs),
	};
}

/** What the method answers to `params` on this `callMany`. */
export async function askMethod(callMany: CallMany, params: readonly unknown[]): Promise<unknown> {
	// The method uses nothing else.
	const needs = { callMany } as Pick<MethodNeeds, "callMany"> as MethodNeeds;
	// As JSON, like on the wire.
	return JSON.parse(
		JSON.stringify(await eth_callMany.invoke(JSON.parse(JSON.stringify(params)), CONTEXT, needs)),
	);
}
