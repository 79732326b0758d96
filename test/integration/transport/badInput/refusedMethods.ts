// Methods that must not be served, namespace by namespace, as rows: whoever reached the node's own would own its
// accounts, its mempool or its chain.

import type { CallRow } from "./rows.ts";

/** An account that nobody funds: after all rows it must still have nothing. */
export const VICTIM = `0x${"c0de".repeat(10)}`;
const HASH = `0x${"ab".repeat(32)}`;

/** With parameters where a node would act on them. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
	admin: ["nodeInfo", "peers", "datadir", "startHTTP", "stopHTTP", "exportChain"],
	debug: [
		"traceTransaction",
		"traceCall",
		"traceBlockByNumber",
		"getRawTransaction",
		"memStats",
		"printBlock",
	],
	personal: ["listAccounts", "newAccount", "unlockAccount", "sendTransaction", "sign", "importRawKey"],
	miner: ["start", "stop", "setEtherbase", "setGasPrice", "setExtra"],
	txpool: ["content", "contentFrom", "inspect", "status"],
	engine: ["newPayloadV4", "forkchoiceUpdatedV3", "getPayloadV4", "exchangeCapabilities", "getBlobsV1"],
	anvil: ["mine", "reset", "dropAllTransactions", "nodeInfo", "autoImpersonateAccount", "dumpState"],
	evm: ["mine", "snapshot", "increaseTime", "setAutomine", "setIntervalMining"],
	hardhat: ["mine", "reset", "metadata", "impersonateAccount"],
	eth: [
		...["sign", "signTransaction", "signTypedData", "signTypedData_v4", "sendTransaction"],
		...["sendUnsignedTransaction", "sendRawTransactionConditional", "resend", "fillTransaction"],
		...["pendingTransactions", "requestAccounts", "coinbase", "mining", "hashrate", "getWork", "submitWork"],
		...["submitHashrate", "getCompilers", "compileSolidity", "getTransactionBySenderAndNonce"],
	],
	others: [
		...["wallet_sendTransaction", "clique_propose", "les_serverInfo", "parity_pendingTransactions"],
		...["parity_allTransactions", "trace_block", "trace_call", "trace_rawTransaction", "ots_getApiLevel"],
		...["erigon_nodeInfo", "rpc_modules", "db_putString", "shh_version", "bor_getAuthor", "web3_notThere"],
		...[
			"net_addPeer",
			"eth_",
			"_",
			".",
			"chainId",
			"eth.chainId",
			"ETH_CHAINID",
			"eth_chainid",
			" eth_chainId",
		],
		...["eth_chainId ", "__proto__", "constructor", "toString", "hasOwnProperty", "rpc.nope", "0"],
	],
};

function refused(method: string, params: readonly unknown[] = [], quoted = method): CallRow {
	const message = `the method ${quoted} does not exist/is not available`;
	return {
		name: `is refused with ${JSON.stringify(params).slice(0, 60)}`,
		method,
		params,
		error: { code: -32601, message },
	};
}

function websocketOnly(method: string, params: readonly unknown[] = []): CallRow {
	const message = `the method ${method} does not exist/is not available: over a websocket only`;
	return { ...refused(method, params), error: { code: -32601, message } };
}

/** What would change the chain, steal, or show the mempool if it reached anvil. */
const DANGEROUS: readonly CallRow[] = [
	refused("anvil_setBalance", [VICTIM, "0xffffffffffffffff"]),
	refused("hardhat_setBalance", [VICTIM, "0xffffffffffffffff"]),
	refused("tenderly_setBalance", [VICTIM, "0xffffffffffffffff"]),
	refused("anvil_addBalance", [VICTIM, "0xffffffffffffffff"]),
	refused("anvil_setCode", [VICTIM, "0x00"]),
	refused("anvil_setNonce", [VICTIM, "0x7"]),
	refused("anvil_setStorageAt", [VICTIM, "0x0", HASH]),
	refused("anvil_impersonateAccount", [VICTIM]),
	refused("evm_revert", ["0x0"]),
	refused("debug_setHead", ["0x0"]),
	refused("admin_addPeer", ["enode://00@127.0.0.1:1"]),
	refused("admin_removePeer", ["enode://00@127.0.0.1:1"]),
	refused("txpool_contentFrom", [VICTIM]),
	refused("debug_traceCall", [{}, "latest", {}]),
	refused("debug_getRawTransaction", [HASH]),
	refused("eth_sendTransaction", [{ from: VICTIM, to: VICTIM, value: "0x1" }]),
	refused("eth_signTransaction", [{ from: VICTIM, to: VICTIM, value: "0x1" }]),
	refused("eth_sign", [VICTIM, "0x00"]),
	refused("personal_sign", ["0x00", VICTIM]),
	refused("personal_unlockAccount", [VICTIM, "", 0]),
	refused("miner_setEtherbase", [VICTIM]),
];

/** Names that must not go into an answer as they are. */
const ODD_NAMES: readonly CallRow[] = [
	refused("nope\r\nx: y", [], "nope??x: y"),
	refused("eth_chainId\0", [], "eth_chainId?"),
	refused("eth_ch\u0430inId", [], "eth_ch?inId"),
	refused("\u202eeth_chainId", [], "?eth_chainId"),
	refused("😀", [], "??"),
	refused("\ud800", [], "?"),
	refused("x".repeat(64), [], "x".repeat(64)),
	refused("x".repeat(65), [], `${"x".repeat(64)}...`),
	refused("y".repeat(1_000_000), [], `${"y".repeat(64)}...`),
];

const PRIVATE: CallRow["error"] = {
	code: -32601,
	message:
		"the method eth_sendPrivateTransaction does not exist/is not available: eth_sendRawTransaction never shares transactions in the public mempool, use it instead",
};

/** Refused with the reason that the interface gives, however it is called. */
const PRIVATE_TRANSACTION: readonly CallRow[] = [
	{ name: "without params", method: "eth_sendPrivateTransaction", params: [], error: PRIVATE },
	{
		name: "as others take it",
		method: "eth_sendPrivateTransaction",
		params: [{ tx: "0x02" }],
		error: PRIVATE,
	},
	{ name: "with nonsense", method: "eth_sendPrivateTransaction", params: [null, 1, "x"], error: PRIVATE },
	refused("eth_sendPrivateRawTransaction", ["0x02"]),
];

/** Served over a websocket, and refused over HTTP whatever their parameters are. */
export const WEBSOCKET_ONLY_ROWS: readonly CallRow[] = [
	websocketOnly("eth_subscribe", ["nope"]),
	websocketOnly("eth_subscribe", ["newHeads"]),
	websocketOnly("eth_subscribe", ["logs", {}]),
	websocketOnly("eth_subscribe"),
	websocketOnly("eth_unsubscribe", ["0x1"]),
];

export const REFUSED_METHOD_ROWS: readonly CallRow[] = [
	...Object.entries(NAMES).flatMap(([space, names]) =>
		names.map((name) => refused(space === "others" ? name : `${space}_${name}`)),
	),
	...DANGEROUS,
	...ODD_NAMES,
	...PRIVATE_TRANSACTION,
];
