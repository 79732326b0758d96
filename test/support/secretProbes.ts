// Every way for a searcher to ask about a transaction that he can't know of, as JSON-RPC calls, the same ones for
// every hash. The tests say what the answers must be.

import { keccak256 } from "../../shared/ethereum/signatures.ts";
import { backrunBy, MISER, PAYER, REASONER, signedBy } from "./biddingFixture.ts";

/** One call, without its id. */
export interface Probe {
	readonly name: string;
	readonly method: string;
	readonly params: readonly unknown[];
	/** Whether it asks as a bid whose form is right, for a block that may come: its target is what is judged then. */
	readonly asksForTarget: boolean;
}

const ZERO_HASH = `0x${"00".repeat(32)}`;

/** The hash of the bundle of a target and a backrun, as a searcher reckons it himself. */
export function bundleHashOf(target: string, backrun: string): string {
	const bytes = [target, backrun].map((hash) => Buffer.from(hash.slice(2), "hex"));
	return `0x${Buffer.from(keccak256(Buffer.concat(bytes))).toString("hex")}`;
}

/** Backruns of every kind, by bidder `index`: what is wrong with each, or nothing. */
function backruns(index: number): Readonly<Record<string, string>> {
	const good = backrunBy(index, 5_000n).raw;
	return {
		paying: good,
		"paying nobody": signedBy(index, { to: MISER, value: 5n }).raw,
		reverting: signedBy(index, { to: REASONER }).raw,
		"with a nonce gap": backrunBy(index, 1n, { nonce: 7 }).raw,
		"without the funds": backrunBy(index, 10n ** 24n).raw,
		"of another chain": backrunBy(index, 1n, { chainId: 1n }).raw,
		"with too little gas": signedBy(index, { to: PAYER, gasLimit: 20_000 }).raw,
		"with a low fee cap": backrunBy(index, 1n, { maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }).raw,
		"of bytes that are cut": good.slice(0, -20),
		"of a type that there is not": `0x7f${good.slice(4)}`,
	};
}

/** The calls about `hash`; `head` is the chain's head. */
export function probesOf(hash: string, index: number, head: number): readonly Probe[] {
	const hex = (block: number) => `0x${block.toString(16)}`;
	const all = backruns(index);
	const good = all.paying ?? "";
	const txs = [hash, good];
	const bid = (name: string, bundle: object, asksForTarget = true): Probe => ({
		name: `eth_sendBundle ${name}`,
		method: "eth_sendBundle",
		params: [bundle],
		asksForTarget,
	});
	const share = (name: string, bundle: object, asksForTarget = true): Probe => ({
		name: `mev_sendBundle ${name}`,
		method: "mev_sendBundle",
		params: [{ version: "v0.1", inclusion: { block: hex(head + 1) }, ...bundle }],
		asksForTarget,
	});
	const body = (tx: string) => [{ hash }, { tx, canRevert: false }];
	const decodes = (name: string) => !name.startsWith("of bytes") && !name.startsWith("of a type");
	return [
		...Object.entries(all).flatMap(([name, tx]) => [
			bid(name, { txs: [hash, tx] }, decodes(name)),
			share(name, { body: body(tx) }, decodes(name)),
		]),
		bid("for the head's number", { txs, blockNumber: hex(head) }),
		bid("for the next block", { txs, blockNumber: hex(head + 1), replacementUuid: "a" }),
		bid("for a block to come", { txs, blockNumber: hex(head + 20) }),
		bid("for a block that is past", { txs, blockNumber: "0x0" }, false),
		bid("for a block too far", { txs, blockNumber: hex(head + 99) }, false),
		bid("under a uuid", { txs, replacementUuid: "b" }),
		bid("in upper case", { txs: [`0x${hash.slice(2).toUpperCase()}`, good] }),
		bid("with the hash alone", { txs: [hash] }, false),
		bid("with the hash twice", { txs: [hash, hash] }, false),
		bid("with two backruns", { txs: [hash, good, good] }, false),
		share("over a range", { body: body(good), inclusion: { block: hex(head + 1), maxBlock: hex(head + 9) } }),
		share("with a refund", { body: body(good), validity: { refund: [{ bodyIdx: 0, percent: 95 }] } }),
		share(
			"with a refund too small",
			{ body: body(good), validity: { refund: [{ bodyIdx: 0, percent: 5 }] } },
			false,
		),
		share("for one builder", { body: body(good), privacy: { builders: ["plain"] } }),
		share("for a builder that there is not", { body: body(good), privacy: { builders: ["nobody"] } }, false),
		share("that is past", { body: body(good), inclusion: { block: "0x0" } }, false),
		{
			name: "eth_cancelBundle",
			method: "eth_cancelBundle",
			params: [{ replacementUuid: hash }],
			asksForTarget: false,
		},
		{ name: "eth_cancelTransaction", method: "eth_cancelTransaction", params: [hash], asksForTarget: false },
		{
			name: "eth_getTransactionReceipt",
			method: "eth_getTransactionReceipt",
			params: [hash],
			asksForTarget: false,
		},
		{
			name: "eth_getTransactionByHash of the bundle",
			method: "eth_getTransactionByHash",
			params: [bundleHashOf(hash, ZERO_HASH)],
			asksForTarget: false,
		},
	];
}

/** `eth_callMany` with `hash` in a bundle of signed transactions, alone and among others. */
export function simulationsOf(hash: string, index: number, head: number): readonly Probe[] {
	const { raw } = backrunBy(index, 5_000n);
	const block = { blockNumber: `0x${(head + 1).toString(16)}`, stateBlockNumber: `0x${head.toString(16)}` };
	return [[hash], [hash, raw], [raw, hash], [hash, hash]].map((txs, i) => ({
		name: `eth_callMany ${i}`,
		method: "eth_callMany",
		params: [{ txs, ...block }],
		asksForTarget: true,
	}));
}
