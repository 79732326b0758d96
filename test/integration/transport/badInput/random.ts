// The material of the random requests and the answers that each may get, written from JSON-RPC 2.0
// and the chain's rules and apart from the relay's code: good calls for the mutations to damage,
// and transactions of random and extreme values.

import assert from "node:assert/strict";
import type { SeededRandom } from "../../../support/seededRandom.ts";
import { rawTransaction, type TestAccount, type TxOptions, testAccount } from "../../../support/txFactory.ts";
import { hex } from "./fixture.ts";

const ACCOUNT = testAccount(5_000);
const ADDRESS = ACCOUNT.address;
const HASH = `0x${"ab".repeat(32)}`;
const KEY = `0x${"00".repeat(31)}01`;
/** Transactions without blobs; those with blobs are long and only shaken now and then. */
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

/**
 * Bodies that are answered well, or refused in good form, for the accounts of a fresh dev chain.
 * Left out: calls that one more digit makes expensive for a node, and eth_feeHistory, which crashes
 * anvil (2⁶⁴ blocks); the relay is under test.
 */
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

/**
 * How a body must be answered: refused as a whole, by one answer, by a batch of them, or not at
 * all.
 */
type Shape =
	| { readonly kind: "unparsable" }
	| { readonly kind: "refused" }
	| { readonly kind: "single"; readonly id: unknown }
	| { readonly kind: "batch"; readonly ids: readonly unknown[] }
	| { readonly kind: "silent" };

/** Codes that a client may see; -32603 only with words of the node's about code that it has run. */
const CODES: ReadonlySet<number> = new Set([
	3, -32000, -32001, -32003, -32005, -32015, -32600, -32601, -32602, -32603,
]);
const MAX_BATCH = 1_000;

/** Over a websocket these are answered without an id too, as if it were null. */
const ANSWERED_WITHOUT_ID: ReadonlySet<unknown> = new Set([
	...["eth_subscribe", "eth_unsubscribe", "eth_sendBundle", "eth_cancelBundle", "mev_sendBundle"],
]);

/** How `body` must be answered on a path that is served. */
export function shapeOf(body: Uint8Array, transport: "http" | "ws"): Shape {
	let parsed: unknown;
	try {
		parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
	} catch {
		return { kind: "unparsable" };
	}
	if (!Array.isArray(parsed)) return single(parsed, transport);
	if (parsed.length === 0 || parsed.length > MAX_BATCH) return { kind: "refused" };
	const shapes = parsed.map((entry) => single(entry, transport));
	const ids = shapes.flatMap((shape) => (shape.kind === "single" ? [shape.id] : []));
	return ids.length === 0 ? { kind: "silent" } : { kind: "batch", ids };
}

function single(entry: unknown, transport: "http" | "ws"): Shape {
	if (typeof entry !== "object" || entry === null || Array.isArray(entry))
		return { kind: "single", id: null };
	const { id, jsonrpc, method } = entry as Record<string, unknown>;
	const isId = ["string", "number"].includes(typeof id);
	const isCall = (jsonrpc === undefined || jsonrpc === "2.0") && typeof method === "string" && method !== "";
	// The messages of a websocket were parsed and written once more: minus zero is zero then.
	if (isId) return { kind: "single", id: transport === "ws" ? JSON.parse(JSON.stringify(id)) : id };
	const isSilent = transport === "http" || !ANSWERED_WITHOUT_ID.has(method);
	if (id === undefined && isCall && isSilent) return { kind: "silent" };
	return { kind: "single", id: null };
}

/**
 * An answer to one call: in good form, with `id`, and no fault of the relay's own. True where the
 * node is to blame.
 */
export function checkOne(answer: unknown, id: unknown): boolean {
	const { jsonrpc, id: echoed, result, error, ...more } = answer as Record<string, unknown>;
	assert.deepEqual([jsonrpc, echoed, more], ["2.0", id, {}]);
	if (error === undefined) {
		assert.notEqual(result, undefined);
		return false;
	}
	assert.equal(result, undefined);
	const { code, message, data } = error as { code: number; message: string; data?: { reason?: string } };
	assert.ok(CODES.has(code), `code ${code}: ${message}`);
	assert.ok(typeof message === "string" && message !== "");
	if (code === -32601) assert.match(message, /^the method .* does not exist\/is not available/);
	if (code === -32600) assert.match(message, /^invalid request: /);
	if (!message.startsWith("internal error")) return false;
	// The node's, at most: its word for it is beside it.
	assert.equal(data?.reason, "node unavailable", message);
	return true;
}

/** A transaction with its sender's means. */
interface RandomSubmission {
	readonly account: TestAccount;
	readonly standing: { readonly balance: bigint; readonly nonce: number };
	readonly options: TxOptions;
	/** Why it must be refused: the answer must give one of these. Empty if it must be accepted. */
	readonly reasons: readonly string[];
}

const GWEI = 10n ** 9n;
const CHAIN_ID = 31_337n;
const GAS_CAP = 2n ** 24n;
const WORDS = [0n, 1n, 2n ** 64n, 2n ** 128n - 1n, 2n ** 128n, 2n ** 255n, 2n ** 256n - 1n] as const;
const FEES = [0n, 1n, GWEI, ...Array<bigint>(6).fill(20n * GWEI), ...WORDS];
const GAS = [0, 20_999, 21_000, 21_000, 53_000, 100_000, 100_000, 1_000_000, 2 ** 24, 2 ** 24 + 1] as const;
const NONCES = [0n, 0n, 0n, 4n, 5n, 5n, 6n, 64n, 65n, 69n, 70n, 2n ** 64n - 2n, 2n ** 64n - 1n] as const;

/** The next one; its account is the `index`-th of those made up. */
export function randomSubmission(random: SeededRandom, index: number): RandomSubmission {
	const account = testAccount(index);
	const standing = {
		balance: random.pick([0n, 10n ** 18n, 10n ** 18n, 2n ** 128n, 2n ** 256n - 1n]),
		nonce: random.pick([0, 0, 5]),
	};
	const type = random.pick([0, 1, 2, 2, 4] as const);
	const creates = type !== 4 && random.below(4) === 0;
	const length = random.pick([0, 0, 1, 40, 300]);
	const options: Required<Pick<TxOptions, "nonce" | "value" | "gasLimit" | "maxFeePerGas">> & TxOptions = {
		type,
		by: account,
		chainId: random.below(10) === 0 ? random.pick([0n, 1n, 2n ** 64n]) : CHAIN_ID,
		nonce: random.pick(NONCES),
		gasLimit: random.below(20) === 0 ? 2n ** 64n - 1n : random.pick(GAS),
		to: creates
			? null
			: random.pick([account.address, `0x${"00".repeat(19)}0${1 + random.below(9)}`, `0x${"77".repeat(20)}`]),
		value: random.below(3) > 0 ? random.pick([0n, 1n, GWEI]) : random.pick(WORDS),
		data: random.below(2) === 0 ? Buffer.alloc(length) : random.bytes(length),
		maxFeePerGas: random.pick(FEES),
		maxPriorityFeePerGas: random.pick(FEES),
		accessList:
			type === 0 || random.below(3) > 0
				? []
				: [{ address: account.address, storageKeys: [`0x${"00".repeat(32)}`] }],
	};
	return { account, standing, options, reasons: reasonsAgainst(options, standing) };
}

/** Every rule that is broken; the answer gives one of them. */
function reasonsAgainst(options: TxOptions, standing: RandomSubmission["standing"]): string[] {
	const { type = 2, chainId = CHAIN_ID, to } = options;
	const nonce = BigInt(options.nonce ?? 0);
	const gas = BigInt(options.gasLimit ?? 0);
	const cap = BigInt(options.maxFeePerGas ?? 0);
	const tip = BigInt(options.maxPriorityFeePerGas ?? 0);
	const next = BigInt(standing.nonce);
	const zeros = [...(options.data as Buffer)].filter((byte) => byte === 0).length;
	const others = (options.data as Buffer).length - zeros;
	let needed = 21_000n + BigInt(4 * zeros + 16 * others);
	if (to === null) needed += 32_000n + 2n * BigInt(Math.ceil((zeros + others) / 32));
	if (type === 4) needed += 25_000n;
	if (options.accessList?.length === 1) needed += 2_400n + 1_900n;
	const broken: [string, boolean][] = [
		["WRONG_CHAIN", chainId !== CHAIN_ID],
		["TIP_ABOVE_FEE_CAP", type >= 2 && tip > cap],
		["TX_GAS_LIMIT", gas > GAS_CAP],
		["BLOCK_GAS_LIMIT", gas > 60_000_000n],
		["INTRINSIC_GAS", gas < needed],
		["FLOOR_DATA_GAS", gas < 21_000n + 10n * BigInt(zeros + 4 * others)],
		["NONCE_MAX", nonce === 2n ** 64n - 1n],
		["NONCE_TOO_LOW", nonce < next],
		["NONCE_TOO_HIGH", nonce > next + 64n],
		// The base fee is some thousand wei at least.
		["FEE_CAP_TOO_LOW", cap <= 1n],
		["INSUFFICIENT_FUNDS", gas * cap + BigInt(options.value ?? 0) > standing.balance],
	];
	return broken.filter(([, is]) => is).map(([reason]) => reason);
}
