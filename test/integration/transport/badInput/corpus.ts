// Good calls and batches for the mutations to damage, for the accounts of a fresh dev chain. Left out: calls that one
// more digit makes expensive for a node, and eth_feeHistory, which crashes anvil (2⁶⁴ blocks); the relay is under
// test.

import { rawTransaction, testAccount } from "../../../support/txFactory.ts";
import { hex } from "./fixture.ts";

const ACCOUNT = testAccount(5_000);
const ADDRESS = ACCOUNT.address;
const HASH = `0x${"ab".repeat(32)}`;
const KEY = `0x${"00".repeat(31)}01`;
/** Of type 4 too; those with blobs are long and only shaken now and then. */
const RAW = ([0, 1, 2, 4] as const).map((type) => hex(rawTransaction({ type, by: ACCOUNT, data: "c0ffee" })));

const call = (id: unknown, method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id, method, params });

const SUBMISSIONS = RAW.map((raw, i) => call(i, "eth_sendRawTransaction", raw));

const READS = [
	call("a", "eth_getTransactionCount", ADDRESS, "pending"),
	call(1, "eth_getTransactionCount", ADDRESS, { blockNumber: "0x0" }),
	call(null, "eth_getTransactionByHash", HASH),
	call(2, "eth_getTransactionReceipt", HASH),
	call(3, "eth_getBalance", ADDRESS, "latest"),
	call(4, "eth_getBlockByNumber", "0x0", false),
	call(5, "eth_getCode", ADDRESS, "latest"),
	call(6, "eth_getStorageAt", ADDRESS, "0x0", "latest"),
	call(7, "eth_getProof", ADDRESS, [KEY], "latest"),
	call(8, "eth_call", { to: ADDRESS, data: "0xc0ffee", gas: "0x5208" }, "latest"),
	call(9, "eth_estimateGas", { from: ADDRESS, to: ADDRESS, value: "0x1" }),
	call(10, "eth_getLogs", { fromBlock: "0x0", toBlock: "latest", address: ADDRESS, topics: [null, [KEY]] }),
	call(12, "web3_sha3", "0xc0ffee"),
	call(13, "eth_chainId"),
	call(14, "eth_gasPrice"),
];

const REFUSED = [
	call(20, "eth_sendPrivateTransaction", { tx: RAW[0] }),
	call(21, "eth_sendTransaction", { from: ADDRESS, to: ADDRESS, value: "0x1" }),
	call(22, "eth_subscribe", "newHeads"),
	call(23, "anvil_mine", "0x1"),
	call(24, "debug_traceTransaction", HASH, {}),
];

const CANCELS = [
	call(25, "eth_cancelTransaction", HASH),
	call("c", "eth_cancelTransaction", `0x${"CD".repeat(32)}`),
];

const BUNDLES = [
	call(15, "eth_sendBundle", { txs: [HASH, RAW[2]], blockNumber: "0x1", replacementUuid: "u" }),
	call(16, "eth_sendBundle", { txs: [], replacementUuid: "u" }),
	call(17, "eth_cancelBundle", { replacementUuid: "u" }),
	call(18, "mev_sendBundle", {
		version: "v0.1",
		inclusion: { block: "0x1", maxBlock: "0x2" },
		body: [{ hash: HASH }, { tx: RAW[2], canRevert: false }],
		validity: { refund: [{ bodyIdx: 0, percent: 90 }], refundConfig: [{ address: ADDRESS, percent: 100 }] },
		privacy: { hints: ["hash"], builders: ["dev"] },
	}),
];

const BATCHES = [
	[call(1, "eth_chainId"), call(2, "net_version"), call(3, "eth_blockNumber")],
	[...SUBMISSIONS.slice(0, 2), READS[0], REFUSED[1]],
	[{ jsonrpc: "2.0", method: "eth_chainId" }, call(1, "eth_chainId"), { jsonrpc: "2.0", method: "nope" }],
	Array.from({ length: 99 }, (_, i) => call(i, "eth_chainId")),
];

/** Bodies that are answered well, or refused in good form. */
export const CORPUS: readonly string[] = [
	...[...SUBMISSIONS, ...SUBMISSIONS, ...READS, ...CANCELS, ...BUNDLES, ...REFUSED, ...BATCHES].map((one) =>
		JSON.stringify(one),
	),
	JSON.stringify({ jsonrpc: "2.0", method: "eth_sendRawTransaction", params: RAW.slice(0, 1) }),
	JSON.stringify({ id: 30, method: "eth_chainId" }, null, "\t"),
];

/** Paths, well and badly spelt, that are met at random. */
export const PATHS: readonly string[] = [
	...["/", "/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks", "/ws", "/", "/fast", "/nope"],
	...["/fast?referrer=x", "/noreverts?softCancellations=true", "/noreverts?softcancel=2", "//", "/fast/"],
	...[`/fast?refundRecipient=${ADDRESS}`, "/fast?refundRecipient=0x", "/?%zz=%ff&&=", "/tx", "/info"],
];
