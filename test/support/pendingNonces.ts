// Reads pending nonces as wallets do, and checks those of many accounts while a test runs.

import assert from "node:assert/strict";
import { JsonRpcProvider } from "ethers";
import { createPublicClient, http, type PublicClient, webSocket } from "viem";
import { foundry } from "viem/chains";
import { sized } from "./length.ts";
import { cast } from "./processes.ts";
import { until } from "./until.ts";

/** The two transaction counts that wallets read. */
interface Nonces {
	readonly pending: number;
	readonly latest: number;
}

type Ask = (address: string, tag: "pending" | "latest") => Promise<number>;

/** ethers, viem over HTTP and viem over a websocket, on one relay. */
export class NonceReaders {
	readonly #url: string;
	readonly #ethers: JsonRpcProvider;
	readonly #viem: readonly PublicClient[];
	readonly #asks: readonly Ask[];
	#turn = 0;

	constructor(url: string) {
		this.#url = url;
		// By default ethers repeats an answer for a quarter of a second.
		this.#ethers = new JsonRpcProvider(url, foundry.id, { staticNetwork: true, cacheTimeout: -1 });
		// No retries: a request from before a fault ends must not be answered after it.
		const once = { retryCount: 0 };
		const sockets = webSocket(`${url.replace("http", "ws")}/fast`, { ...once, reconnect: false });
		this.#viem = [http(url, once), sockets].map((transport) =>
			createPublicClient({ chain: foundry, transport }),
		);
		this.#asks = [
			(address, tag) => this.#ethers.getTransactionCount(address, tag),
			...this.#viem.map(
				(client): Ask =>
					(address, blockTag) => {
						return client.getTransactionCount({ address: address as `0x${string}`, blockTag });
					},
			),
		];
	}

	/**
	 * The nonces that wallet libraries read: one of them in turn, or at night all. Throws if two
	 * differ, or one gets an error.
	 */
	async read(address: string): Promise<Nonces> {
		this.#turn = (this.#turn + 1) % this.#asks.length;
		const asks = this.#asks.slice(...sized([this.#turn, this.#turn + 1], [0]));
		return agreed(await all(asks.map((ask) => this.#both((tag) => ask(address, tag)))));
	}

	/** The same with cast, which is a separate process. */
	readByCast(address: string): Promise<Nonces> {
		return this.#both(async (tag) => {
			const { code, stdout, stderr } = await cast("nonce", address, "--block", tag, "--rpc-url", this.#url);
			if (code !== 0) throw new Error(stderr);
			return Number(stdout);
		});
	}

	/** Closes all connections. */
	async close(): Promise<void> {
		this.#ethers.destroy();
		for (const { transport } of this.#viem) {
			if (transport.type === "webSocket") (await transport.getRpcClient()).close();
		}
	}

	async #both(ask: (tag: "pending" | "latest") => Promise<number>): Promise<Nonces> {
		const [pending = 0, latest = 0] = await all([ask("pending"), ask("latest")]);
		return { pending, latest };
	}
}

/** Like Promise.all, but waits until all have settled. */
async function all<T>(promises: readonly Promise<T>[]): Promise<T[]> {
	await Promise.allSettled(promises);
	return Promise.all(promises);
}

function agreed(told: readonly Nonces[]): Nonces {
	const [first, ...others] = told;
	if (first === undefined) throw new Error("nobody was asked");
	for (const { pending, latest } of others) {
		if (pending !== first.pending || latest !== first.latest) {
			throw new Error(`the clients received different nonces: ${JSON.stringify(told)}`);
		}
	}
	return first;
}

/** Accounts that are read at the same time. */
const SOME = 5;
const DEADLINE_MS = 120_000;
/** Time between two reads: short, since a nonce may be wrong for a moment only. */
const LOOK_MS = 10;

/** A submission's nonce may count once it was sent, and must count once it was acknowledged. */
export class PendingWatch {
	readonly #url: string;
	readonly #addresses: readonly string[];
	readonly #sent = new Map<string, Set<number>>();
	readonly #answered = new Map<string, Set<number>>();
	#turn = 0;
	/** The number of reads. */
	looks = 0;

	/** `url`: the relay's; `addresses` in lower case. */
	constructor(url: string, addresses: readonly string[]) {
		this.#url = url;
		this.#addresses = addresses;
		for (const address of addresses) {
			this.#sent.set(address, new Set());
			this.#answered.set(address, new Set());
		}
	}

	/** Must be called before the submission with `nonce` is sent. */
	sent(address: string, nonce: number): void {
		this.#sent.get(address)?.add(nonce);
	}

	/** Must be called when the submission with `nonce` was acknowledged. */
	answered(address: string, nonce: number): void {
		this.#answered.get(address)?.add(nonce);
	}

	/**
	 * Checks accounts in turn until `work` is done, then all of them; returns what `work` returns.
	 */
	async watch<T>(work: Promise<T>): Promise<T> {
		let over = false;
		const done = work.finally(() => {
			over = true;
		});
		const looking = until(
			"the end of what is watched",
			async () => {
				if (!over) await this.#look(this.#next());
				return over;
			},
			DEADLINE_MS,
			LOOK_MS,
		);
		const [outcome] = await Promise.all([done, looking]);
		await this.#look(this.#addresses);
		return outcome;
	}

	#next(): readonly string[] {
		const from = this.#turn;
		this.#turn = from + SOME >= this.#addresses.length ? 0 : from + SOME;
		return this.#addresses.slice(from, from + SOME);
	}

	async #look(addresses: readonly string[]): Promise<void> {
		const least = addresses.map((address) => gapless(this.#answered.get(address)));
		const method = "eth_getTransactionCount";
		const calls = addresses.map((of, id) => ({ jsonrpc: "2.0", id, method, params: [of, "pending"] }));
		const response = await fetch(this.#url, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify(calls),
		});
		const answers = (await response.json()) as { id: number; result?: unknown; error?: unknown }[];
		const most = addresses.map((address) => gapless(this.#sent.get(address)));
		assert.equal(answers.length, addresses.length);
		for (const { id, result, error } of answers) {
			const [told, low = NaN, high = NaN] = [Number(result ?? NaN), least[id], most[id]];
			const what = `pending nonce ${JSON.stringify(error ?? told)} of ${addresses[id]}`;
			assert.ok(low <= told && told <= high, `${what}, not ${low} to ${high}`);
		}
		this.looks += 1;
	}
}

/** The number of consecutive nonces from 0. */
function gapless(nonces: ReadonlySet<number> = new Set()): number {
	let next = 0;
	while (nonces.has(next)) next += 1;
	return next;
}
