// An honest user and searcher: submits on /fast, waits until the builder has the transaction, bids
// on it, reads a gas estimate and a pending nonce, and asks /livez. Each request is timed, and has
// its own connection, as a newcomer would.

import type { DevChain } from "../../devnet/devChain.ts";
import { PAYS_COINBASE } from "../auctionContracts.ts";
import { EMITS } from "../contracts.ts";
import { rawTransaction, signedTransaction, type TxOptions, testAccount } from "../txFactory.ts";
import { until } from "../until.ts";
import { deniedMs } from "./processFigures.ts";
import type { QuickBuilder } from "./quickBuilder.ts";
import { HONEST, resultOf, send, type WireCall } from "./wire.ts";

/**
 * The measured calls, with the longest time that each may take during any attack, in ms. Node,
 * builder, attacker and relay share the machine: with a machine of its own the relay takes a third,
 * and a twelfth for /livez.
 */
export const LIMITS_MS = {
	livez: 1_200,
	submitted: 3_000,
	delivered: 9_000,
	bid: 3_000,
	estimate: 3_000,
	nonce: 3_000,
} as const;
export type Probe = keyof typeof LIMITS_MS;

/** One measurement. */
export interface Sample {
	readonly probe: Probe;
	/** How long it took, without the time that the process waited for a processor. */
	readonly ms: number;
	/** The fault, or null. */
	readonly fault: string | null;
}

interface HonestUserOptions {
	readonly relay: { readonly url: string; readonly pid: number };
	readonly chain: DevChain;
	readonly builder: QuickBuilder;
	/** The index of its first account; of two users of one chain each has its own. */
	readonly accounts?: number;
	/** Headers of all its requests. */
	readonly headers?: Readonly<Record<string, string>>;
}

/** The longest wait for anything, in ms. */
const PATIENCE_MS = 30_000;
const EMITTER = `0x${"e1".repeat(20)}`;
const PAYER = `0x${"e2".repeat(20)}`;
const BID_WEI = 10n ** 15n;
const FUNDS = 10n ** 18n;
const FIRST_ACCOUNT = 500_000;
/** Accounts of 100 rounds; they are funded when half of them are left. */
const FUNDED_AT_ONCE = 200;

/** An honest user of one relay. */
export class HonestUser {
	readonly #options: HonestUserOptions;
	#accounts: number;
	#funded: number;

	private constructor(options: HonestUserOptions) {
		this.#options = options;
		this.#accounts = options.accounts ?? FIRST_ACCOUNT;
		this.#funded = this.#accounts;
	}

	/** A new user, whose contracts are put on the chain. */
	static async arrive(options: HonestUserOptions): Promise<HonestUser> {
		await options.chain.rpc("anvil_setCode", [EMITTER, EMITS]);
		await options.chain.rpc("anvil_setCode", [PAYER, PAYS_COINBASE]);
		const user = new HonestUser(options);
		await user.fund();
		return user;
	}

	/** Asks /livez. */
	livez(): Promise<Sample> {
		return this.#timed("livez", async () => {
			const { status } = await send({ ...this.#call(), url: `${this.#options.relay.url}/livez` });
			if (status !== 200) throw new Error(`HTTP ${status}`);
		});
	}

	/**
	 * Submits, waits until the builder has the transaction, and bids on it once searchers see it;
	 * reads meanwhile.
	 */
	async round(): Promise<readonly Sample[]> {
		const [user, searcher] = [
			await this.#account({ to: EMITTER }),
			await this.#account({ to: PAYER, value: BID_WEI }),
		];
		const reads = Promise.all([
			this.#timed("estimate", () => this.#ask("eth_estimateGas", [{ from: user.from, to: EMITTER }])),
			this.#timed("nonce", () => this.#ask("eth_getTransactionCount", [user.from, "pending"])),
		]);
		const arrives = this.#options.builder.holding(user.raw, PATIENCE_MS);
		const [submitted, delivered] = await Promise.all([
			this.#timed("submitted", () => this.#ask("eth_sendRawTransaction", [user.raw], "/fast")),
			this.#timed("delivered", () => arrives),
		]);
		const way = [submitted, delivered, ...(await reads)];
		if (way.some(({ probe, fault }) => probe !== "estimate" && probe !== "nonce" && fault !== null))
			return way;
		try {
			await this.#shown(user.hash);
		} catch (thrown) {
			return [...way, { probe: "bid", ms: 0, fault: `there was nothing to bid on: ${String(thrown)}` }];
		}
		const bundle = { txs: [user.hash, searcher.raw] };
		return [...way, await this.#timed("bid", () => this.#ask("eth_sendBundle", [bundle]))];
	}

	/** Waits until searchers see the transaction. Not measured: the relay decides when that is. */
	async #shown(hash: string): Promise<void> {
		const url = `${this.#options.relay.url}/tx/${hash}`;
		await until(
			`${hash} shared`,
			async () => (JSON.parse((await send({ ...this.#call(), url })).body) as { shared: boolean }).shared,
			PATIENCE_MS,
		);
	}

	/**
	 * Gives the next accounts an ether each, ahead of their use: the relay sees the balances only
	 * with the next head.
	 */
	async fund(): Promise<void> {
		const accounts = Array.from({ length: FUNDED_AT_ONCE }, (_, i) => testAccount(this.#funded + i));
		this.#funded += FUNDED_AT_ONCE;
		await this.#options.chain.fund(accounts, FUNDS);
	}

	/** The first transaction of a new account with an ether. */
	async #account(tx: Omit<TxOptions, "by">): Promise<{ raw: string; hash: string; from: string }> {
		if (this.#funded - this.#accounts < FUNDED_AT_ONCE / 2) await this.fund();
		const by = testAccount(this.#accounts++);
		const options = { ...tx, by };
		return {
			raw: `0x${rawTransaction(options).toString("hex")}`,
			hash: signedTransaction(options).hash,
			from: by.address,
		};
	}

	#call(path = "/"): Omit<WireCall, "body"> {
		const { relay, headers = {} } = this.#options;
		return { url: `${relay.url}${path}`, from: HONEST, headers, deadlineMs: PATIENCE_MS };
	}

	#ask(method: string, params: readonly unknown[], path = "/"): Promise<unknown> {
		return resultOf(method, params, this.#call(path));
	}

	async #timed(probe: Probe, work: () => Promise<unknown>): Promise<Sample> {
		// The time that this process waited for a processor matters only beside the 100 ms of /livez.
		const own = probe === "livez" ? () => deniedMs(process.pid) : () => 0;
		const denied = () => deniedMs(this.#options.relay.pid) + own();
		const [begun, before] = [performance.now(), denied()];
		let fault: string | null = null;
		try {
			await work();
		} catch (thrown) {
			fault = thrown instanceof Error ? thrown.message : String(thrown);
		}
		const ms = performance.now() - begun - (denied() - before);
		return { probe, ms: Math.max(0, ms), fault };
	}
}
