// A running relay that takes bids, with contracts that pay the coinbase or do not, funded accounts,
// targets and backruns. The tests decide who bids, and assert the results.

import { request } from "undici";
import { createBodySigner } from "../../shared/ethereum/signatures.ts";
import { PAYS_COINBASE, PAYS_NOBODY } from "./auctionContracts.ts";
import { EMITS, errorString, REVERTS, revertingWith } from "./contracts.ts";
import type { WireAnswer } from "./relayClient.ts";
import { type SystemOptions, startSystem, type TestSystem } from "./systems.ts";
import {
	rawTransaction,
	signedTransaction,
	type TestAccount,
	type TxOptions,
	testAccount,
} from "./txFactory.ts";
import { READ_SIGNATURE, readHeader } from "./typedSignatures.ts";
import { until } from "./until.ts";

const contract = (byte: string): string => `0x${byte.repeat(20)}`;
/** Pays the value of its call to the block's coinbase. */
export const PAYER = contract("a1");
/** Keeps the value of its call. */
export const MISER = contract("a2");
export const REVERTER = contract("a3");
/** Reverts with the reason {@link REASON}. */
export const REASONER = contract("a4");
export const EMITTER = contract("a5");
export const REASON = "no luck";

const CODE: Readonly<Record<string, string>> = {
	[PAYER]: PAYS_COINBASE,
	[MISER]: PAYS_NOBODY,
	[REVERTER]: REVERTS,
	[REASONER]: revertingWith(errorString(REASON)),
	[EMITTER]: EMITS,
};
/** The balance of each account of the fixture, in wei. */
export const FUNDS = 10n ** 20n;
/** The number of these accounts. */
export const BIDDERS = 100;
const FEES = { maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n };

/** An account of the fixture, with ether and no transaction. */
export function bidder(index: number): TestAccount {
	return testAccount(9_000 + index);
}

/** A signed transaction as 0x hex, with its hash. */
export interface Signed {
	readonly raw: string;
	readonly hash: string;
}

/**
 * A transaction of {@link bidder} `index`; by default with sufficient fees, 100,000 gas and nonce
 * 0.
 */
export function signedBy(index: number, options: TxOptions = {}): Signed {
	const whole = { by: bidder(index), nonce: 0, ...FEES, ...options };
	return { raw: `0x${rawTransaction(whole).toString("hex")}`, hash: signedTransaction(whole).hash };
}

/** A transaction of {@link bidder} `index` that pays `value` wei to the coinbase. */
export function backrunBy(index: number, value: bigint, options: TxOptions = {}): Signed {
	return signedBy(index, { to: PAYER, value, ...options });
}

/** How a call is made; by default over HTTP to "/". */
export interface CallOptions {
	readonly path?: string;
	/** A key that signs the body. */
	readonly key?: string;
	/** Whether the key opens its live reads too. */
	readonly live?: boolean;
	/** `X-Forwarded-For`, for a relay behind one proxy. */
	readonly from?: string;
	readonly origin?: string;
}

/** Starts a relay on a chain whose blocks are built when the test asks. */
export async function startBidding(options: SystemOptions = {}): Promise<BiddingFixture> {
	const system = await startSystem(options);
	await prepareBidding(system);
	return new BiddingFixture(system);
}

/** Gives a chain the contracts and the accounts. */
export async function prepareBidding({ chain }: Pick<TestSystem, "chain">): Promise<void> {
	await chain.batch(Object.entries(CODE).map((params) => ({ method: "anvil_setCode", params })));
	await chain.fund(
		Array.from({ length: BIDDERS }, (_, i) => bidder(i)),
		FUNDS,
	);
}

/** Calls the relay as any client may. */
export class BiddingFixture {
	readonly system: TestSystem;

	constructor(system: TestSystem) {
		this.system = system;
	}

	/** The whole answer, and its HTTP status. */
	async ask(
		method: string,
		params: readonly unknown[],
		{ path = "/", key, live = false, ...about }: CallOptions = {},
	): Promise<WireAnswer & { readonly status: number }> {
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
		const headers: Record<string, string> = { "content-type": "application/json", ...headersOf(about) };
		if (key !== undefined) headers["x-flashbots-signature"] = createBodySigner(key).sign(body);
		if (key !== undefined && live) headers[READ_SIGNATURE] = await readHeader(key);
		const sent = { method: "POST", headers, body } as const;
		const response = await request(`${this.system.client.url}${path}`, sent);
		return { status: response.statusCode, ...((await response.body.json()) as WireAnswer) };
	}

	/** The result of a call; throws with the code and message of an error. */
	async call(method: string, params: readonly unknown[], options: CallOptions = {}): Promise<unknown> {
		const { result, error } = await this.ask(method, params, options);
		if (error !== undefined) throw new Error(`${error.code} ${error.message}`);
		return result;
	}

	/** `GET /bundle/{hash}`, which a key opens for live ones too. */
	async bundle(
		hash: string,
		{ key, ...about }: CallOptions = {},
	): Promise<{ status: number; body: unknown }> {
		const headers: Record<string, string> = headersOf(about);
		if (key !== undefined) headers[READ_SIGNATURE] = await readHeader(key);
		const response = await request(`${this.system.client.url}/bundle/${hash}`, { headers });
		return { status: response.statusCode, body: await response.body.json() };
	}

	/**
	 * Submits a plain transfer on `/maxbackruns` and waits until searchers have it. Returns its hash.
	 */
	async target(index: number, options: TxOptions = {}): Promise<string> {
		const { raw, hash } = signedBy(index, { value: 1n, ...options });
		await this.system.client.send(raw, "/maxbackruns");
		await until("the target shared", async () => (await this.system.client.status(hash)).shared);
		return hash;
	}

	/** The stages of the bundle's blocks, as the relay shows them to the owner. */
	async stages(hash: string, options: CallOptions = {}): Promise<readonly string[]> {
		const { status, body } = await this.bundle(hash, options);
		if (status !== 200) throw new Error(`HTTP ${status}: ${JSON.stringify(body)}`);
		return (body as { blocks: { stage: string }[] }).blocks.map((block) => block.stage);
	}

	/** The number of the chain's head. */
	async head(): Promise<number> {
		return Number(await this.system.chain.rpc("eth_blockNumber"));
	}

	stop(): Promise<void> {
		return this.system.stop();
	}
}

function headersOf({ from, origin }: Pick<CallOptions, "from" | "origin">): Record<string, string> {
	return {
		...(from === undefined ? {} : { "x-forwarded-for": from }),
		...(origin === undefined ? {} : { origin }),
	};
}
