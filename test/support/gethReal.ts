// What geth really makes of transactions: those that it takes are mined in their order, and what became of each is read from
// receipts and traces.

import type { RealOutcome } from "./callManyReal.ts";
import type { GethBlock, GethChain } from "./geth.ts";

/** Mines a block of those of `txs` that geth takes one behind another; what became of each, null where it took it not. */
export async function mineInOrder(
	geth: GethChain,
	{ txs = [], ...block }: GethBlock,
): Promise<RealOutcome[]> {
	let kept: readonly string[] = txs;
	if (!(await geth.takes({ ...block, txs }))) {
		kept = [];
		for (const tx of txs) if (await geth.takes({ ...block, txs: [...kept, tx] })) kept = [...kept, tx];
	}
	const hash = await geth.mine({ ...block, txs: kept });
	const mined = (await geth.rpc("eth_getBlockByHash", [hash, false])) as {
		number: string;
		transactions: string[];
	};
	const outcomes = new Map<string, RealOutcome>();
	for (const [i, tx] of mined.transactions.entries()) {
		outcomes.set(kept[i] ?? "", await readOutcome(geth, tx, mined.number));
	}
	return txs.map((tx) => outcomes.get(tx) ?? null);
}

async function readOutcome(geth: GethChain, hash: string, number: string): Promise<RealOutcome> {
	const receipt = (await geth.rpc("eth_getTransactionReceipt", [hash])) as Record<string, string | null>;
	const traced = await geth.rpc("debug_traceTransaction", [hash, { tracer: "callTracer" }]);
	const { error, output = "0x" } = traced as { error?: string; output?: string };
	const ok = receipt.status === "0x1";
	if (ok !== (error === undefined)) throw new Error("receipt and trace differ");
	const reverted = error === "execution reverted";
	if (!ok || receipt.contractAddress == null) {
		return { ok, reverted, value: ok || reverted ? output.slice(2) : "" };
	}
	const left = await geth.rpc("eth_getCode", [receipt.contractAddress, number]);
	return { ok, reverted, value: String(left).slice(2) };
}
