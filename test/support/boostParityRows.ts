// Requests that a relay and the boost in front of it must answer alike: the tables of bad input,
// reads of every kind, and bundles. The few answers that must differ are listed with the reason.

import { BUNDLE_ROWS } from "../integration/transport/badInput/bundles.ts";
import { ENCODING_ROWS } from "../integration/transport/badInput/encoding.ts";
import { ENVELOPE_ROWS } from "../integration/transport/badInput/envelopes.ts";
import type { CallRow } from "../integration/transport/badInput/fixture.ts";
import { HTTP_ROWS } from "../integration/transport/badInput/http.ts";
import {
	METHOD_PARAM_ROWS,
	REFUSED_METHOD_ROWS,
	WEBSOCKET_ONLY_ROWS,
} from "../integration/transport/badInput/methods.ts";
import { BUNDLE_PAGE_ROWS, QUERY_ROWS, REST_ROWS } from "../integration/transport/badInput/pages.ts";
import type { WireRequest } from "../integration/transport/badInput/wire.ts";

/** A request to both. */
export interface ParityRow {
	readonly name: string;
	readonly send: WireRequest;
}

/** Longer bodies are left out: they test nothing more, and cost much time. */
const MOST_BYTES = 50_000;
/** Except these: the longest body that is read, and one byte more. */
const LONG = /^a body of (the longest length|one byte more)/;

/** Why boost's answer differs, by the row's name. */
export const EXCEPTIONS: Readonly<Record<string, string>> = {
	"OPTIONS on no path": "boost knows no path of the relay's, so it allows a page to ask on each",
};

function bytesOf({ body = "" }: WireRequest): number {
	return typeof body === "string" ? body.length : body.byteLength;
}

function short<T extends ParityRow>(rows: readonly T[]): readonly ParityRow[] {
	return rows.filter(({ name, send }) => LONG.test(name) || bytesOf(send) <= MOST_BYTES);
}

/** A call as a request; its id is the row's name, or a number if the row is a batch of its own. */
export function requestOf({ name, method, params, path = "/" }: Omit<CallRow, "error">): ParityRow {
	const body = JSON.stringify({ jsonrpc: "2.0", id: name, method, params });
	return { name: `${method.slice(0, 40)}: ${name}`, send: { path, body } };
}

const calls = (rows: readonly CallRow[]) => short(rows.map(requestOf));
/** Every `nth` row of a table whose rows are much alike. */
const some = (rows: readonly CallRow[], nth: number) => calls(rows.filter((_, i) => i % nth === 0));

const NOBODY = `0x${"5a".repeat(20)}`;
const HASH = `0x${"ab".repeat(32)}`;

function reads(...rows: readonly (readonly [method: string, ...params: unknown[]])[]): readonly ParityRow[] {
	return rows.map(([method, ...params]) => requestOf({ name: JSON.stringify(params), method, params }));
}

/** Valid and invalid reads of the chain; the node's answers pass through unchanged. */
const READS: readonly ParityRow[] = reads(
	["eth_chainId"],
	["eth_blockNumber"],
	["eth_syncing"],
	["eth_gasPrice"],
	["eth_maxPriorityFeePerGas"],
	["eth_feeHistory", "0x2", "latest", [50]],
	["eth_feeHistory", "nonsense"],
	["eth_blobBaseFee"],
	["net_version"],
	["net_listening"],
	["web3_clientVersion"],
	["web3_sha3", "0x1234"],
	["eth_getBlockByNumber", "latest", false],
	["eth_getBlockByNumber", "0x0", true],
	["eth_getBlockByNumber", "0xffffff", true],
	["eth_getBlockByNumber", "newest", true],
	["eth_getBlockByHash", HASH, false],
	["eth_getBlockReceipts", "0x0"],
	["eth_getBalance", NOBODY, "latest"],
	["eth_getBalance", NOBODY, "0xffffff"],
	["eth_getBalance", NOBODY, "newest"],
	["eth_getBalance"],
	["eth_getCode", NOBODY, "latest"],
	["eth_getStorageAt", NOBODY, "0x0", "latest"],
	["eth_getProof", NOBODY, [], "latest"],
	["eth_getLogs", { fromBlock: "0x0", toBlock: "latest" }],
	["eth_getLogs", { fromBlock: "0x5", toBlock: "0x1" }],
	["eth_call", { to: NOBODY, data: "0x1234" }, "latest"],
	["eth_call", { data: "0x600080fd" }, "latest"],
	["eth_estimateGas", { from: NOBODY, to: NOBODY, value: "0x1" }],
	["eth_estimateGas", { from: NOBODY, to: NOBODY }],
	["eth_simulateV1", { blockStateCalls: [{ calls: [{ to: NOBODY }] }] }, "latest"],
	["eth_createAccessList", { to: NOBODY }, "latest"],
	["eth_getTransactionReceipt", HASH],
	["eth_getTransactionReceipt", "0x12"],
	["eth_getRawTransactionByHash", HASH],
	["eth_getTransactionByBlockNumberAndIndex", "latest", "0x0"],
	["eth_getTransactionCount", NOBODY, "pending"],
	["eth_getTransactionCount", NOBODY, "latest"],
	["eth_getTransactionByHash", HASH],
	["eth_callMany", [{ transactions: [{ to: NOBODY, data: "0x" }] }], { blockNumber: "latest" }],
	["eth_callMany", { txs: [], blockNumber: "0x1", stateBlockNumber: "latest" }],
	["eth_callMany", { txs: ["0x02"], blockNumber: "0x1", stateBlockNumber: "latest" }],
	["eth_callMany", [{ transactions: [{ to: NOBODY }] }], { blockNumber: "0xffff" }],
	["eth_sendBundle", { txs: [], replacementUuid: "none" }],
	["eth_cancelBundle", { replacementUuid: "none" }],
	["service_transactionStatuses", [HASH]],
	["service_receipt", HASH],
	["rpc.discover"],
);

const one = (id: unknown, method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", id, method, params });
const without = (method: string, ...params: unknown[]) => ({ jsonrpc: "2.0", method, params });

function posted(name: string, value: unknown, more: Partial<WireRequest> = {}): ParityRow {
	return { name, send: { path: "/fast", body: JSON.stringify(value), ...more } };
}

/** Batches that mix calls that boost answers itself with calls that it passes on. */
const BATCHES: readonly ParityRow[] = [
	posted("a batch of reads", [one(1, "eth_chainId"), one("1", "net_version"), one(null, "eth_gasPrice")]),
	posted("a batch of reads and a notification", [one(1, "eth_chainId"), without("net_version")]),
	posted("a batch of one", [one(1, "eth_chainId")]),
	posted("a batch of one notification", [without("eth_cancelTransaction", HASH)]),
	posted("reads, and what boost understands", [
		one(1, "eth_getTransactionCount", NOBODY, "pending"),
		one(2, "eth_getTransactionByHash", HASH),
		one(3, "eth_cancelTransaction", HASH),
		one(4, "eth_sendRawTransaction", "0x02"),
		one(5, "eth_chainId"),
		one(6, "nope"),
		without("eth_sendRawTransaction", "0x02"),
		one(7, "eth_sendRawTransactionSync", "0x02"),
		one(8, "eth_getBalance", NOBODY),
		one(9, "eth_getTransactionCount", NOBODY, "newest"),
		one(10, "eth_subscribe", "newHeads"),
		{ id: 11, method: "eth_chainId" },
		{ jsonrpc: "2.0", id: 12, method: "eth_chainId", params: {} },
		3,
	]),
	posted("equal ids of both kinds", [one(1, "eth_cancelTransaction", HASH), one(1, "eth_chainId")]),
	posted("an error of the node among results", [one(1, "eth_getBalance"), one(2, "eth_chainId")]),
	...["7", '""', '"\\u00e9\\ud83d\\ude00"', "-1.5", "null", "9007199254740991"].flatMap((id) =>
		["eth_chainId", "eth_cancelTransaction", "eth_getTransactionByHash", "nope"].map((method) => ({
			name: `${method} with the id ${id}`,
			send: { path: "/fast", body: `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":[]}` },
		})),
	),
	posted("spaces around a call", one(1, "eth_chainId"), { body: ' \n{"id":1,"method":"eth_chainId"}\t ' }),
	posted("a call on a path with a query", one(1, "eth_chainId"), { path: "/noreverts?softcancel=maybe" }),
	posted("a read on another path", one(1, "eth_chainId"), { path: "/fullprivacy?x=%zz" }),
];

const get = (path: string): ParityRow => ({ name: `GET ${path}`, send: { verb: "GET", path } });
const preflight = (path: string): ParityRow => ({
	name: `preflight of ${path}`,
	send: {
		verb: "OPTIONS",
		path,
		headers: { origin: "https://wallet.example", "access-control-request-method": "POST" },
	},
});

/** Pages, and the preflights of browsers. */
const PAGES: readonly ParityRow[] = [
	...["/info", "/livez", "/tx/0x", "/favicon.ico", "/bundle/0x"].map(get),
	...["/", "/fast", "/noreverts?softCancellations=true", "/tx/x"].map(preflight),
];

/** The tables, by topic. */
export const PARITY_TABLES: Readonly<Record<string, readonly ParityRow[]>> = {
	HTTP: short(HTTP_ROWS),
	envelopes: short(ENVELOPE_ROWS),
	parameters: calls(METHOD_PARAM_ROWS),
	"refused methods": [...some(REFUSED_METHOD_ROWS, 3), ...calls(WEBSOCKET_ONLY_ROWS)],
	queries: some(QUERY_ROWS, 2),
	"status pages": short([...REST_ROWS, ...BUNDLE_PAGE_ROWS]),
	bundles: some(BUNDLE_ROWS, 3),
	"transactions that cannot be decoded": some(ENCODING_ROWS, 2),
	reads: READS,
	batches: BATCHES,
	pages: PAGES,
};
