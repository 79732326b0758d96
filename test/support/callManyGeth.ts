// eth_callMany on a geth of its own, or on its recorded answers, asked as a client asks it. The node does not serve the
// debug namespace to it: only what a public node answers is used.

import { nextBlockReader } from "../../relay/chain/nextBlock.ts";
import type { CallMany } from "../../relay/domain/callMany.ts";
import { createCallMany } from "../../relay/simulation/callMany/callMany.ts";
import { systemClock } from "../../shared/clock.ts";
import type { DecodedTransaction } from "../../shared/ethereum/transaction.ts";
import type { RpcAnswer, RpcCall } from "../../shared/jsonrpc/client.ts";
import { CODES } from "./callManyContracts.ts";
import { askMethod, type Entry } from "./callManyFixture.ts";
import type { GethOptions } from "./geth.ts";
import { type RecordedGeth, startRecordedGeth } from "./recordedGeth.ts";
import { accountOf, type TestAccount } from "./txFactory.ts";

export const COINBASE = "0x00000000000000000000000000000000facade01";

export interface GethFixture {
	readonly geth: RecordedGeth;
	/** Accounts with 10,000 ether each. */
	readonly rich: readonly TestAccount[];
	readonly shared: Map<string, DecodedTransaction>;
	readonly callMany: CallMany;
	/** Calls the method as a client does. Throws RpcError. */
	ask(params: readonly unknown[]): Promise<Entry[][]>;
	/** The same, in slots of other seconds. */
	askWith(slotSeconds: number, params: readonly unknown[]): Promise<Entry[][]>;
	head(): Promise<GethHead>;
	stop(): Promise<void>;
}

export interface GethHead {
	readonly number: number;
	readonly timestamp: number;
	readonly baseFee: bigint;
	readonly mixHash: string;
	/** Of the block after it. */
	readonly nextBaseFee: bigint;
}

/** Starts it, with the contracts of callManyContracts.ts in its genesis. */
export async function startGethFixture(name: string, options: GethOptions = {}): Promise<GethFixture> {
	const code = Object.entries(CODES).map(([address, bytes]) => [address, { code: bytes, balance: "0x0" }]);
	const alloc = { ...Object.fromEntries(code), ...options.alloc };
	const geth = await startRecordedGeth(name, { gasLimit: 30_000_000, ...options, alloc });
	const node = {
		async call(call: RpcCall): Promise<RpcAnswer> {
			if (!call.method.startsWith("debug_")) return geth.node.call(call);
			return { ok: false, error: { code: -32601, message: "the method does not exist/is not available" } };
		},
	};
	const shared = new Map<string, DecodedTransaction>();
	const over = (slotSeconds: number) =>
		createCallMany(
			{
				rules: { chainId: 31_337n, maxTxGas: null, maxInitCodeBytes: 2 ** 16 },
				slotSeconds,
				feeRecipientOf: () => COINBASE,
				randaoOf: () => `0x${"5e".repeat(32)}`,
				timeoutMs: 60_000,
			},
			{
				node,
				nextBlock: nextBlockReader({ slotSeconds }, { node }),
				shared: { shared: (hash) => shared.get(hash) ?? null },
				clock: systemClock,
			},
		);
	const usual = over(12);
	return {
		geth,
		rich: geth.accounts.map(({ privateKey }) => accountOf(privateKey)),
		shared,
		callMany: usual,
		ask: async (params) => (await askMethod(usual, params)) as Entry[][],
		askWith: async (slotSeconds, params) => (await askMethod(over(slotSeconds), params)) as Entry[][],
		head: () => readHead(geth),
		stop: () => geth.stop(),
	};
}

async function readHead(geth: RecordedGeth): Promise<GethHead> {
	const head = (await geth.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	const fees = (await geth.rpc("eth_feeHistory", ["0x1", head.number, []])) as { baseFeePerGas: string[] };
	return {
		number: Number(head.number),
		timestamp: Number(head.timestamp),
		baseFee: BigInt(head.baseFeePerGas ?? 0),
		mixHash: head.mixHash ?? "",
		nextBaseFee: BigInt(fees.baseFeePerGas[1] ?? 0),
	};
}
