// Bad parameters of the relay's own methods, and good ones beside them, with their exact answers;
// and methods that must not be served, since callers could use the node's accounts or change its
// mempool or its chain.

import { type CallRow, invalid, refusal } from "./fixture.ts";

const RAW = "raw: expected a signed transaction as 0x hex";
const HASH = "hash: expected a hash of 32 bytes as 0x hex";
const ADDRESS = "address: expected an address of 20 bytes as 0x hex";
const BLOCK =
	"block: expected a block number as 0x hex, or one of latest, pending, safe, finalized, earliest, or an object with blockHash or blockNumber";

/** An account that is never used. */
const SOMEBODY = `0x${"5a".repeat(20)}`;
const ID = `0x${"Ab".repeat(32)}`;

function bad(method: string, name: string, params: readonly unknown[], message: string): CallRow {
	return { name, method, params, error: invalid(message) };
}

function good(method: string, name: string, params: readonly unknown[], result: unknown): CallRow {
	return { name: `${name} is taken`, method, params, result };
}

const send = (name: string, params: readonly unknown[], message = RAW) =>
	bad("eth_sendRawTransaction", name, params, message);
/** Hex that reaches the decoder, which then says what it is not. */
const decoded = (name: string, raw: string, message: string): CallRow => ({
	...{ name, method: "eth_sendRawTransaction", params: [raw] },
	error: refusal("UNDECODABLE", message, { detail: "rlp" }),
});

const SEND: readonly CallRow[] = [
	send("nothing", []),
	send("null", [null]),
	send("true", [true]),
	send("a number", [2]),
	send("an object", [{ raw: "0x02" }]),
	send("an array", [["0x02"]]),
	send("two", ["0x02", "0x02"], "expected at most 1 (raw)"),
	send("null behind it", ["0x02", null], "expected at most 1 (raw)"),
	send("an empty string", [""]),
	send("no 0x", ["02c0"]),
	send("half a byte", ["0x2"]),
	send("an odd number of digits", ["0x02c"]),
	send("a digit that is none", ["0x02cg"]),
	send("a space before it", [" 0x02c0"]),
	send("a space behind it", ["0x02c0 "]),
	send("a line break behind it", ["0x02c0\n"]),
	send("a space in it", ["0x02 c0"]),
	send("a minus", ["-0x02c0"]),
	send("0x twice", ["0x0x02c0"]),
	send("a digit of another script", ["0x02c\u0660"]),
	send("a letter that looks like a digit by its low byte", ["0x02c\u0130"]),
	send("a full-width x", ["0\uff5802c0"]),
	send("base64", ["AsA="]),
	decoded("0x alone", "0x", "rlp: empty input"),
	decoded("0X is taken for 0x", "0X02C0", "rlp: chainId: missing"),
	decoded("capitals are taken", "0x02C0", "rlp: chainId: missing"),
];

const waited = (name: string, params: readonly unknown[], message: string) =>
	bad("eth_sendRawTransactionSync", name, params, message);
/** The timeout is no reason to refuse, even an invalid one: the transaction is. */
const timed = (name: string, ...timeout: readonly unknown[]): CallRow => ({
	...{ name: `${name} is taken`, method: "eth_sendRawTransactionSync", params: ["0x", ...timeout] },
	error: refusal("UNDECODABLE", "rlp: empty input", { detail: "rlp" }),
});

const WAIT: readonly CallRow[] = [
	waited("nothing", [], RAW),
	waited("null", [null], RAW),
	waited("half a byte", ["0x2", 1_000], RAW),
	timed("0 ms", 0),
	timed("less than 0 ms", -1),
	timed("a lot of ms", 1e21),
	timed("a part of a ms", 1.5),
	timed("a decimal number in a string", "1"),
	timed("an empty string", ""),
	timed("0 in hex", "0x0"),
	timed("a leading zero", "0x01"),
	timed("257 bits", `0x1${"0".repeat(64)}`),
	timed("true", true),
	timed("an array", [1_000]),
	timed("an object", { timeout: 1_000 }),
	waited("three", ["0x02", 1, 1], "expected at most 2 (raw, timeoutMs)"),
	timed("no time"),
	timed("null for the time", null),
	timed("1 ms", 1),
	timed("25 s", 25_000),
	timed("25 s in hex", "0x61a8"),
	timed("viem's 36 s", 36_000),
	timed("a day", 86_400_000),
	timed("1 in capitals", "0X1"),
];

const count = (name: string, params: readonly unknown[], message: string) =>
	bad("eth_getTransactionCount", name, params, message);
const counted = (name: string, params: readonly unknown[]) =>
	good("eth_getTransactionCount", name, params, "0x0");

const COUNT: readonly CallRow[] = [
	count("nothing", [], ADDRESS),
	count("null for the address", [null, "latest"], ADDRESS),
	count("a number for the address", [1, "latest"], ADDRESS),
	count("an address of 19 bytes", [SOMEBODY.slice(0, -2), "latest"], ADDRESS),
	count("an address of 21 bytes", [`${SOMEBODY}5a`, "latest"], ADDRESS),
	count("an odd number of digits", [SOMEBODY.slice(0, -1), "latest"], ADDRESS),
	count("an address without 0x", [SOMEBODY.slice(2), "latest"], ADDRESS),
	count("a space behind the address", [`${SOMEBODY} `, "latest"], ADDRESS),
	count("a space before the address", [` ${SOMEBODY.slice(0, -1)}`, "latest"], ADDRESS),
	count("a name", ["vitalik.eth", "latest"], ADDRESS),
	count("a hash for the address", [ID, "latest"], ADDRESS),
	count("an unknown tag", [SOMEBODY, "newest"], BLOCK),
	count("a tag in capitals", [SOMEBODY, "LATEST"], BLOCK),
	count("an empty tag", [SOMEBODY, ""], BLOCK),
	count("a number that is no string", [SOMEBODY, 0], BLOCK),
	count("a decimal number", [SOMEBODY, "0"], BLOCK),
	count("a leading zero", [SOMEBODY, "0x00"], BLOCK),
	count("0x without digits", [SOMEBODY, "0x"], BLOCK),
	count("257 bits", [SOMEBODY, `0x1${"0".repeat(64)}`], BLOCK),
	count("a number below zero", [SOMEBODY, "-0x1"], BLOCK),
	count("true for the block", [SOMEBODY, true], BLOCK),
	count("an array for the block", [SOMEBODY, ["latest"]], BLOCK),
	count("an empty object for the block", [SOMEBODY, {}], BLOCK),
	count("both kinds of block", [SOMEBODY, { blockNumber: "0x0", blockHash: ID }], BLOCK),
	count(
		"a misspelt kind of block",
		[SOMEBODY, { blockhash: ID }],
		"block.blockhash: unknown key: did you mean blockHash?",
	),
	count("three", [SOMEBODY, "latest", 1], "expected at most 2 (address, block)"),
	counted("capitals", [SOMEBODY.toUpperCase().replace("0X", "0x"), "latest"]),
	counted("0X", [`0X${SOMEBODY.slice(2)}`, "latest"]),
	counted("no block", [SOMEBODY]),
	counted("null for the block", [SOMEBODY, null]),
	counted("earliest", [SOMEBODY, "earliest"]),
	counted("pending", [SOMEBODY, "pending"]),
	counted("a block number", [SOMEBODY, "0x0"]),
	counted("a block number in an object", [SOMEBODY, { blockNumber: "0x0" }]),
];

const find = (name: string, params: readonly unknown[], message = HASH) =>
	bad("eth_getTransactionByHash", name, params, message);
const found = (name: string, params: readonly unknown[]) =>
	good("eth_getTransactionByHash", name, params, null);

const FIND: readonly CallRow[] = [
	find("nothing", []),
	find("null", [null]),
	find("a number", [7]),
	find("an object", [{ hash: ID }]),
	find("31 bytes", [ID.slice(0, -2)]),
	find("33 bytes", [`${ID}ab`]),
	find("an odd number of digits", [ID.slice(0, -1)]),
	find("no 0x", [ID.slice(2)]),
	find("a digit that is none", [`${ID.slice(0, -1)}g`]),
	find("a space behind it", [`${ID} `]),
	find("a space for a digit", [`${ID.slice(0, -1)} `]),
	find("0x alone", ["0x"]),
	find("an address", [SOMEBODY]),
	find("two", [ID, ID], "expected at most 1 (hash)"),
	found("an unknown hash", [ID]),
	found("an unknown hash in capitals", [ID.toUpperCase().replace("0X", "0x")]),
	found("0X", [`0X${ID.slice(2)}`]),
];

const cancel = (name: string, params: readonly unknown[], message = HASH) =>
	bad("eth_cancelTransaction", name, params, message);
/** In good form, and of nothing that is pending. */
const cancelled = (name: string, params: readonly unknown[]): CallRow => ({
	...{ name, method: "eth_cancelTransaction", params },
	error: {
		code: -32000,
		message:
			"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key",
	},
});

const SIGNATURE_PARAM = "signature: expected a signature of 65 bytes as 0x hex";
const BY_NOBODY =
	"signature: expected one over Cancel(bytes32 transaction) on chain 31337, with r, s and v in range";
/** A signature of somebody, whatever was signed: r is the x of the curve's generator. */
const SIGNED = `0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798${"1".padStart(64, "0")}1b`;

const CANCEL: readonly CallRow[] = [
	cancel("nothing", []),
	cancel("null", [null]),
	cancel("false", [false]),
	cancel("a number", [7]),
	cancel("an object", [{ txHash: ID }]),
	cancel("an array of it", [[ID]]),
	cancel("31 bytes", [ID.slice(0, -2)]),
	cancel("33 bytes", [`${ID}ab`]),
	cancel("an odd number of digits", [ID.slice(0, -1)]),
	cancel("no 0x", [ID.slice(2)]),
	cancel("a digit that is none", [`${ID.slice(0, -1)}g`]),
	cancel("a space behind it", [`${ID} `]),
	cancel("a line break behind it", [`${ID}\n`]),
	cancel("an empty string", [""]),
	cancel("0x alone", ["0x"]),
	cancel("an address", [SOMEBODY]),
	cancel("a transaction", [`0x02${"ab".repeat(120)}`]),
	cancel("a thousand digits", [`0x${"ab".repeat(500)}`]),
	cancel(
		"more digits than are looked at",
		[`0x${"ab".repeat(50_000)}`],
		"expected at most 1024 characters in all",
	),
	cancel("a hash behind it", [ID, ID], SIGNATURE_PARAM),
	cancel("an object behind it", [ID, {}], SIGNATURE_PARAM),
	cancel("a signature with another digit", [ID, `${SIGNED}0`], SIGNATURE_PARAM),
	cancel("a signature by nobody", [ID, `0x${"00".repeat(65)}`], BY_NOBODY),
	cancel("three", [ID, SIGNED, ID], "expected at most 2 (hash, signature)"),
	cancelled("null behind it", [ID, null]),
	cancelled("a stranger's signature behind it", [ID, SIGNED]),
	cancelled("an unknown hash", [ID]),
	cancelled("an unknown hash in capitals", [ID.toUpperCase().replace("0X", "0x")]),
	cancelled("an unknown hash with 0X", [`0X${ID.slice(2)}`]),
	cancelled("a hash of zeros", [`0x${"00".repeat(32)}`]),
];

const HASHES = "hashes: expected 1 to 1000 hashes";
const asked = (name: string, params: readonly unknown[], message = HASHES) =>
	bad("service_transactionStatuses", name, params, message);
const UNKNOWN = { status: "UNKNOWN", stage: null };

const STATUSES: readonly CallRow[] = [
	asked("nothing", []),
	asked("null", [null]),
	asked("a hash", [ID]),
	asked("an object", [{ 0: ID }]),
	asked("no hashes", [[]]),
	asked("1001 hashes", [Array(1_001).fill(ID)]),
	asked("two lists", [[ID], [ID]], "expected at most 1 (hashes)"),
	asked(
		"a second one that is none",
		[[ID, ID.slice(0, -1)]],
		"hashes[1]: expected a hash of 32 bytes as 0x hex",
	),
	good("service_transactionStatuses", "an unknown hash", [[ID]], [{ hash: ID.toLowerCase(), ...UNKNOWN }]),
	good(
		"service_transactionStatuses",
		"1000 hashes",
		[Array(1_000).fill(ID)],
		Array(1_000).fill({ hash: ID.toLowerCase(), ...UNKNOWN }),
	),
];

const NOT_FOUND =
	"transaction not found; if you sent it from another network or a web page, sign the read with the sender's key (X-Leeward-Signature, scope receipts)";

const RECEIPT: readonly CallRow[] = [
	bad("service_receipt", "nothing", [], HASH),
	bad("service_receipt", "half a hash", [ID.slice(0, 34)], HASH),
	bad("service_receipt", "two", [ID, ID], "expected at most 1 (hash)"),
	{
		...{ name: "an unknown hash", method: "service_receipt", params: [ID] },
		error: { code: -32_000, message: NOT_FOUND },
	},
];

/** Nodes refuse to read these at all, which must not look as if the node were down. */
const NOT_UNICODE = "params: expected well-formed Unicode";

const PASSED: readonly CallRow[] = [
	bad("eth_getBalance", "half a surrogate pair", ["\ud800", "latest"], NOT_UNICODE),
	bad("eth_call", "half a surrogate pair in a name", [{ "\udc00": 1 }, "latest"], NOT_UNICODE),
	bad("eth_getLogs", "a surrogate pair the wrong way round", [{ topics: [["\udc00\ud800"]] }], NOT_UNICODE),
];

export const METHOD_PARAM_ROWS: readonly CallRow[] = [
	...SEND,
	...WAIT,
	...COUNT,
	...FIND,
	...CANCEL,
	...STATUSES,
	...RECEIPT,
	...PASSED,
];

/** An account that nobody funds: after all rows it must still have nothing. */
export const VICTIM = `0x${"c0de".repeat(10)}`;

/** Hints at the method to call in the place of these. */
const HINTS: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
	eth_sendPrivateRawTransaction: "use eth_sendRawTransaction [raw]",
	eth_cancelPrivateTransaction: "use eth_cancelTransaction [hash]",
	mev_cancelBundle: "use eth_cancelBundle [{replacementUuid}]",
	eth_sendRawTransction: "did you mean eth_sendRawTransaction?",
	eth_cancelTransacton: "did you mean eth_cancelTransaction?",
});
/** Spelt almost so. */
const IS_CHAIN_ID = /^.{0,2}eth.ch.inid.{0,2}$/isu;

/** With parameters where a node would act on them. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
	admin: ["nodeInfo", "peers", "datadir", "startHTTP", "stopHTTP", "exportChain"],
	debug: ["traceTransaction", "traceCall", "traceBlockByNumber", "getRawTransaction", "memStats"],
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
		...["debug_printBlock", "net_addPeer", "eth_", "_", ".", "chainId", "eth.chainId", "ETH_CHAINID"],
		...[
			"eth_chainid",
			" eth_chainId",
			"eth_chainId ",
			"__proto__",
			"constructor",
			"toString",
			"hasOwnProperty",
			"rpc.nope",
			"0",
		],
	],
};

function refused(method: string, params: readonly unknown[] = [], quoted = method): CallRow {
	const hint = HINTS[method] ?? (IS_CHAIN_ID.test(method) ? "did you mean eth_chainId?" : null);
	const message = `the method ${quoted} does not exist/is not available${hint === null ? "" : `: ${hint}`}`;
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

/** Calls that would change the chain, steal, or show the mempool if they reached anvil. */
const DANGEROUS: readonly CallRow[] = [
	refused("anvil_setBalance", [VICTIM, "0xffffffffffffffff"]),
	refused("hardhat_setBalance", [VICTIM, "0xffffffffffffffff"]),
	refused("tenderly_setBalance", [VICTIM, "0xffffffffffffffff"]),
	refused("anvil_addBalance", [VICTIM, "0xffffffffffffffff"]),
	refused("anvil_setCode", [VICTIM, "0x00"]),
	refused("anvil_setNonce", [VICTIM, "0x7"]),
	refused("anvil_setStorageAt", [VICTIM, "0x0", ID]),
	refused("anvil_impersonateAccount", [VICTIM]),
	refused("evm_revert", ["0x0"]),
	refused("debug_setHead", ["0x0"]),
	refused("admin_addPeer", ["enode://00@127.0.0.1:1"]),
	refused("admin_removePeer", ["enode://00@127.0.0.1:1"]),
	refused("txpool_contentFrom", [VICTIM]),
	refused("debug_traceCall", [{}, "latest", {}]),
	refused("debug_getRawTransaction", [ID]),
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

const PRIVATE = "eth_sendPrivateTransaction";
const PRIVATE_MESSAGE = `the method ${PRIVATE} does not exist/is not available: eth_sendRawTransaction never shares transactions in the public mempool, use it instead`;

/** Refused with the reason that the interface gives, however it is called. */
const PRIVATE_TRANSACTION: readonly CallRow[] = [
	...[[], [{ tx: "0x02" }], [null, 1, "x"]].map((params) => ({
		...refused(PRIVATE, params),
		error: { code: -32601, message: PRIVATE_MESSAGE },
	})),
	...Object.keys(HINTS).map((method) => refused(method, ["0x02"])),
];

/** Served over a websocket, and refused over HTTP whatever their parameters are. */
export const WEBSOCKET_ONLY_ROWS: readonly CallRow[] = [
	...[["nope"], ["newHeads"], ["logs", {}], []].map((params) => websocketOnly("eth_subscribe", params)),
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
