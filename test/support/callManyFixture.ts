// eth_callMany on a chain with the contracts of callManyContracts.ts, called with a client's JSON parameters. No
// relay is involved.

import { nextBlockReader } from "../../relay/chain/nextBlock.ts";
import type { CallMany } from "../../relay/domain/callMany.ts";
import type { MethodDependencies } from "../../relay/ingress/methodDependencies.ts";
import { eth_callMany } from "../../relay/ingress/methods/eth_callMany.ts";
import { createCallMany } from "../../relay/simulation/callMany/callMany.ts";
import { systemClock } from "../../shared/clock.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { JsonRpcClient } from "../../shared/jsonrpc/client.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { CODES } from "./callManyContracts.ts";
import { CONTEXT } from "./dispatching.ts";
import { placeContracts } from "./simulationFixture.ts";
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

export interface CallManyFixture {
	readonly chain: DevChain;
	/** Accounts with 10,000 ether each. */
	readonly rich: readonly TestAccount[];
	/** What searchers may see, by hash. */
	readonly shared: Map<string, DecodedTransaction>;
	readonly callMany: CallMany;
	/** Calls the method as a client does. Throws RpcError. */
	ask(params: readonly unknown[]): Promise<Entry[][]>;
	stop(): Promise<void>;
}

/** Starts it. */
export async function startCallManyFixture(): Promise<CallManyFixture> {
	const chain = await startDevChain({ gasLimit: BLOCK_GAS });
	await chain.rpc("anvil_setCoinbase", [COINBASE]);
	await chain.rpc("anvil_autoImpersonateAccount", [true]);
	await placeContracts(chain, CODES);
	const client = new JsonRpcClient({ url: chain.url, timeoutMs: 10_000 }, { clock: systemClock });
	const shared = new Map<string, DecodedTransaction>();
	const callMany = createCallMany(
		{
			rules: { chainId: BigInt(chain.chainId), maxTxGas: null, maxInitCodeBytes: 49_152 },
			slotSeconds: SLOT_SECONDS,
			feeRecipientOf: () => COINBASE,
		},
		{
			node: client,
			nextBlock: nextBlockReader({ slotSeconds: SLOT_SECONDS }, { node: client }),
			shared: { shared: (hash) => shared.get(hash) ?? null },
			clock: systemClock,
		},
	);
	return {
		chain,
		rich: chain.accounts.map(({ privateKey }) => accountOf(privateKey)),
		shared,
		callMany,
		ask: async (params) => (await askMethod(callMany, params)) as Entry[][],
		async stop() {
			await client.close();
			await chain.stop();
		},
	};
}

/** What the method, eth_callMany unless said, answers to `params` on this `callMany`. */
export async function askMethod(
	callMany: CallMany,
	params: readonly unknown[],
	method: Pick<typeof eth_callMany, "invoke"> = eth_callMany,
): Promise<unknown> {
	// The method uses nothing else.
	const needs = { callMany } as Pick<MethodDependencies, "callMany"> as MethodDependencies;
	// As JSON, like on the wire.
	return JSON.parse(JSON.stringify(await method.invoke(JSON.parse(JSON.stringify(params)), CONTEXT, needs)));
}
