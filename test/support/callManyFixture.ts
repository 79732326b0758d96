// Calls eth_callMany as a client does, on anvil and on geth (or its recorded answers), with the
// contracts of contracts.ts. No relay is involved.

import { nextBlockReader } from "../../relay/chain/nextBlock.ts";
import type { CallMany, CallResults } from "../../relay/domain/callMany.ts";
import { Recoveries } from "../../relay/domain/recoveries.ts";
import type { MethodDependencies } from "../../relay/ingress/methodDependencies.ts";
import { eth_callMany } from "../../relay/ingress/methods/eth_callMany.ts";
import { type CallManyOptions, createCallMany } from "../../relay/simulation/callMany/callMany.ts";
import type { SimulationNode } from "../../relay/simulation/engines/engine.ts";
import { systemClock } from "../../shared/clock.ts";
import { Slots } from "../../shared/ethereum/slots.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import { JsonRpcClient, type RpcAnswer, type RpcCall } from "../../shared/jsonrpc/client.ts";
import { startDevChain } from "../devnet/devChain.ts";
import type { GethOptions } from "../devnet/gethChain.ts";
import { CODES } from "./contracts.ts";
import { always, PRAGUE } from "./forks.ts";
import { type RecordedGeth, startRecordedGeth } from "./recordedGeth.ts";
import { CONTEXT } from "./rpcMethods.ts";
import { placeContracts } from "./simulationFixture.ts";
import { accountOf } from "./txFactory.ts";

export const SLOT_SECONDS = 12;
/** The coinbase of every block, so that simulated blocks can be compared with real ones. */
export const COINBASE = "0x00000000000000000000000000000000facade01";
export const BLOCK_GAS = 30_000_000;

/** The result of one call in an answer. */
export interface Entry {
	readonly value: string;
	readonly error?: string;
}

export type CallManyFixture = Awaited<ReturnType<typeof startCallManyFixture>>;

/** Starts an anvil with the contracts. */
export async function startCallManyFixture() {
	const chain = await startDevChain({ gasLimit: BLOCK_GAS });
	await chain.rpc("anvil_setCoinbase", [COINBASE]);
	await chain.rpc("anvil_autoImpersonateAccount", [true]);
	await placeContracts(chain, CODES);
	const client = new JsonRpcClient({ url: chain.url, timeoutMs: 10_000 }, { clock: systemClock });
	const shared = new Map<string, DecodedTransaction>();
	const callMany = callManyOn(client, shared);
	return {
		chain,
		/** Accounts with 10,000 ether each. */
		rich: chain.accounts.map(({ privateKey }) => accountOf(privateKey)),
		/** The private transactions that searchers may see, by hash. */
		shared,
		callMany,
		/**
		 * Calls the method as a client does, and returns each entry as {@link askAlone} does. Throws
		 * RpcError.
		 */
		ask: (params: readonly unknown[]): Promise<Entry[][]> => askAlone(callMany, params),
		async stop(): Promise<void> {
			await client.close();
			await chain.stop();
		},
	};
}

/**
 * Calls eth_callMany as a client does; of signed transactions, which are one bundle there, each
 * result is as it ran by itself.
 */
export async function askAlone(callMany: CallMany, params: readonly unknown[]): Promise<Entry[][]> {
	let ran: CallResults | undefined;
	const keeping: CallMany = {
		...callMany,
		async runTransactions(request) {
			ran = await callMany.runTransactions(request);
			return ran;
		},
	};
	const answer = await askMethod(keeping, params);
	return JSON.parse(JSON.stringify(ran ?? answer)) as Entry[][];
}

/** Calls a method (default eth_callMany) with `params` on this `callMany`. */
export async function askMethod(
	callMany: CallMany,
	params: readonly unknown[],
	method: Pick<typeof eth_callMany, "invoke"> = eth_callMany,
): Promise<unknown> {
	// The methods use no other dependency.
	const used: Pick<MethodDependencies, "callMany" | "recoveries" | "charge"> = {
		...{ callMany, recoveries: new Recoveries(), charge() {} },
	};
	const needs = used as MethodDependencies;
	// Converted to JSON and back, as on the wire.
	return JSON.parse(JSON.stringify(await method.invoke(JSON.parse(JSON.stringify(params)), CONTEXT, needs)));
}

/** The methods' dependency on a node. */
export function callManyOn(
	node: Pick<SimulationNode, "call">,
	shared: ReadonlyMap<string, DecodedTransaction>,
	{
		slotSeconds = SLOT_SECONDS,
		...options
	}: Partial<CallManyOptions> & { readonly slotSeconds?: number } = {},
	forks = always(PRAGUE),
): CallMany {
	const slots = new Slots({ setMs: slotSeconds * 1_000 }, { clock: systemClock });
	return createCallMany(
		{
			rules: { chainId: 31_337n },
			feeRecipientOf: () => COINBASE,
			...options,
		},
		{
			...{ node, clock: systemClock, nextBlock: nextBlockReader({ slots }, { node, forks }) },
			forkAt: forks.at,
			sharedTransaction: (hash) => shared.get(hash) ?? null,
			recoveries: new Recoveries(),
		},
	);
}

export type GethFixture = Awaited<ReturnType<typeof startGethFixture>>;

export interface GethHead {
	readonly number: number;
	readonly timestamp: number;
	readonly baseFee: bigint;
	readonly mixHash: string;
	/** The base fee of the block after it. */
	readonly nextBaseFee: bigint;
}

/** Starts geth with the contracts of contracts.ts in its genesis block. */
export async function startGethFixture(name: string, options: GethOptions = {}) {
	const code = Object.entries(CODES).map(([address, bytes]) => [address, { code: bytes, balance: "0x0" }]);
	const alloc = { ...Object.fromEntries(code), ...options.alloc };
	const geth = await startRecordedGeth(name, { gasLimit: 30_000_000, ...options, alloc });
	const call = async (one: RpcCall): Promise<RpcAnswer> => {
		if (!one.method.startsWith("debug_")) return geth.node.call(one);
		return { ok: false, error: { code: -32601, message: "the method does not exist/is not available" } };
	};
	const node = { call, batch: (calls: readonly RpcCall[]) => Promise.all(calls.map(call)) };
	const shared = new Map<string, DecodedTransaction>();
	const over = (slotSeconds: number): CallMany =>
		callManyOn(node, shared, {
			rules: { chainId: 31_337n },
			...{ slotSeconds, randaoOf: () => `0x${"5e".repeat(32)}`, timeoutMs: 60_000 },
		});
	const usual = over(SLOT_SECONDS);
	return {
		geth,
		/** Accounts with 10,000 ether each. */
		rich: geth.accounts.map(({ privateKey }) => accountOf(privateKey)),
		shared,
		callMany: usual,
		/**
		 * Calls the method as a client does, and returns each entry as {@link askAlone} does. Throws
		 * RpcError.
		 */
		ask: (params: readonly unknown[]) => askAlone(usual, params),
		/** The same with another slot length. */
		askWith: (slotSeconds: number, params: readonly unknown[]) => askAlone(over(slotSeconds), params),
		head: () => readHead(geth),
		stop: () => geth.stop(),
	};
}

/** The chain's last block. */
export async function readHead({ rpc }: Pick<RecordedGeth, "rpc">): Promise<GethHead> {
	const head = (await rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const fees = (await rpc("eth_feeHistory", ["0x1", head.number, []])) as { baseFeePerGas: string[] };
	return {
		number: Number(head.number),
		timestamp: Number(head.timestamp),
		baseFee: BigInt(head.baseFeePerGas ?? 0),
		mixHash: head.mixHash ?? "",
		nextBaseFee: BigInt(fees.baseFeePerGas[1] ?? 0),
	};
}
