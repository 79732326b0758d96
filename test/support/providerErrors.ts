// Errors that nodes and their providers answer to reads: as their users reported them in public,
// but for those of Cloudflare, Besu, Erigon and Nethermind, which are not checked.

/** An error of a provider or node to one read. */
export interface ProviderError {
	readonly by: string;
	readonly method: string;
	readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
	/** HTTP status. Default 200. */
	readonly status?: number;
}

const logs = (by: string, code: number, message: string, data?: unknown, status = 200): ProviderError => ({
	by,
	method: "eth_getLogs",
	error: data === undefined ? { code, message } : { code, message, data },
	status,
});

/**
 * "Ask for less", in the words and codes of each: libraries halve their range by them, or take the
 * range that is named.
 */
export const ASK_FOR_LESS: readonly ProviderError[] = [
	logs(
		"Infura",
		-32005,
		"query returned more than 10000 results. Try with this block range [0xBDE5F8, 0x102DBCC].",
		{
			...{ from: "0xBDE5F8", limit: 10_000, to: "0x102DBCC" },
		},
	),
	logs("Infura, by blocks", -32602, "range 1000000 exceeds limit of 10000"),
	logs(
		"Alchemy",
		-32602,
		"Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0x133e71]",
	),
	logs(
		"Alchemy, by blocks",
		-32600,
		"You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x123c9b2, 0x123cba5]",
		undefined,
		400,
	),
	logs("QuickNode", -32614, "eth_getLogs is limited to a 10,000 range"),
	logs("Monad", -32614, "eth_getLogs is limited to a 100 range", undefined, 413),
	logs("Ankr", -32062, "Block range is too large"),
	logs("PublicNode", -32701, "exceed maximum block range: 50000"),
	logs("dRPC", 35, "ranges over 10000 blocks are not supported on freetier"),
	logs("dRPC, by time", 30, "Request timeout on the free tier, please upgrade your tier to the paid one"),
	logs("Cloudflare", -32011, "Max range: 800"),
	logs("Tenderly", -32602, "invalid params", { payload: "range 9009594 is bigger than range limit 2000" }),
	logs(
		"go-ethereum of a provider",
		-32000,
		"block range is larger than max block range, block range = 5120, max block range = 5000",
	),
	logs("reth", -32602, "query exceeds max results 20000, retry with the range 25766988-25775072"),
	logs("reth, by blocks", -32602, "query exceeds max block range 100000"),
	logs("besu", -32005, "Requested range exceeds maximum range limit"),
	logs("erigon", -32000, "query block range is too wide: 20000, maximum: 10000"),
	logs("Nethermind", -32005, "Too many logs requested. Max logs per response is 20000."),
];

const read = (by: string, method: string, code: number, message: string, data?: unknown): ProviderError => ({
	by,
	method,
	error: data === undefined ? { code, message } : { code, message, data },
});

/** Other verdicts on a read. */
export const VERDICTS: readonly ProviderError[] = [
	read("go-ethereum", "eth_getBalance", -32000, "header not found"),
	read("go-ethereum, pruned", "eth_call", 4444, "pruned history unavailable"),
	read("go-ethereum, reverted", "eth_call", 3, "execution reverted: no", `0x08c379a0${"00".repeat(64)}`),
	read("go-ethereum, out of time", "eth_call", -32002, "request timed out"),
	read("go-ethereum 1.17.8, invalid code", "eth_call", -32000, "invalid opcode: INVALID"),
	read("go-ethereum 1.17.8, out of time", "eth_call", -32000, "execution aborted (timeout = 5s)"),
	read("go-ethereum 1.17.8, by hash", "eth_call", -32000, "header for hash not found"),
	read("go-ethereum 1.17.8, of logs", "eth_getLogs", -32602, "block range extends beyond current head block"),
	read("go-ethereum 1.17.8, of a block's logs", "eth_getLogs", -32000, "unknown block"),
	read(
		"go-ethereum 1.17.8, of fees",
		"eth_feeHistory",
		-32000,
		"request beyond head block: requested 65535, head 5",
	),
	read(
		"go-ethereum 1.17.8, of parameters",
		"eth_call",
		-32602,
		"invalid argument 0: json: cannot unmarshal hex string of odd length into Go struct field TransactionArgs.data of type hexutil.Bytes",
	),
	read("go-ethereum, too long", "eth_getLogs", -32003, "response too large"),
	read(
		"erigon",
		"eth_getProof",
		-32000,
		"requested block is too old, block must be within 100000 blocks of the head block number (currently 21000000)",
	),
	read("Nethermind", "eth_call", -32015, "VM execution error.", "Reverted 0x"),
	read("Nethermind, without the state", "eth_getBalance", -32002, "No state available for block 0x1b4"),
	read("besu", "eth_getBalance", -32000, "World state unavailable"),
	read("reth", "eth_getStorageAt", -32000, "state at block #436 is pruned"),
	read("anvil", "eth_call", -32603, "EVM error InvalidFEOpcode"),
	read("reth, inside", "eth_getProof", -32603, "Internal error"),
	read("any, in the relay's own words", "eth_getBalance", -32603, "internal error"),
	read("Infura", "eth_getProof", -32603, "internal error: trie is gone", { trace: "0x01" }),
	read("a code of its own", "eth_getCode", 7, "not here"),
];
