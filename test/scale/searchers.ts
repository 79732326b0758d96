// Searchers on websockets of every relay: each connection takes down what it was shown and when,
// and comes back when it ends. Some of what is shown is bid on, by any of the connections.

import { WebSocket } from "ws";
import { pause, systemClock } from "../../shared/clock.ts";
import { PAYER } from "../support/biddingFixture.ts";
import type { SeededRandom } from "../support/seededRandom.ts";
import { signedTransaction, type TestAccount } from "../support/txFactory.ts";

/** One websocket of a searcher, from its subscription to its end. */
export interface Connection {
	/** The relay's name, such as "relay1". */
	readonly relay: string;
	/** Unix ms of the answer to its subscription. */
	readonly since: number;
	/** Unix ms; null: it is open. */
	endedAt: number | null;
	/** Its close code and reason. */
	end: string;
	/** When it was shown each hash, in Unix ms. */
	readonly shown: Map<string, number[]>;
}

/** A bid that was made. */
export interface Bid {
	readonly target: string;
	readonly backrun: string;
	readonly wei: bigint;
	/** The answer: the bundle's hash, or an error. */
	readonly answer: string;
}

export interface SearchersOptions {
	readonly random: SeededRandom;
	/** The relays. */
	readonly relays: readonly { readonly name: string; readonly url: string }[];
	/** Websockets on each. */
	readonly each: number;
	/** Accounts to bid with, with money. */
	readonly bidders: readonly TestAccount[];
	/** The account's nonce at the head, and the head's number. */
	readonly nonceOf: (address: string) => Promise<number>;
	readonly head: () => Promise<number>;
}

/** One in so many of those shown is bid on. */
const BID_ON = 4;
const OPEN_MS = 3_000;
const ANSWER_MS = 5_000;
const AGAIN_MS = 200;
/** A bidder waits for so many blocks, so that its last backrun is mined or over. */
const BLOCKS = 2;
const MILLIETHER = 10n ** 15n;
const SUBSCRIBE = { jsonrpc: "2.0", id: "feed", method: "eth_subscribe" };
const FEED = ["service_partialPendingTransactions"];

interface Message {
	readonly id?: unknown;
	readonly result?: unknown;
	readonly error?: { readonly code: number; readonly message: string };
	readonly params?: { readonly result: { readonly hash: string } };
}

/** All searchers; begun and ended once. */
export class Searchers {
	/** All connections that ever had their subscription. */
	readonly connections: Connection[] = [];
	readonly bids: Bid[] = [];
	readonly #options: SearchersOptions;
	readonly #open = new Map<Connection, WebSocket>();
	readonly #waiting = new Map<string, (answer: string) => void>();
	readonly #idle: TestAccount[];
	/** Hashes that some connection was shown. */
	readonly #known = new Set<string>();
	readonly #underWay = new Set<Promise<void>>();
	#asked = 0;
	#isOver = false;
	#running: Promise<unknown> | null = null;

	constructor(options: SearchersOptions) {
		this.#options = options;
		this.#idle = [...options.bidders];
	}

	start(): void {
		const { relays, each } = this.#options;
		const all = relays.flatMap((relay) => Array.from({ length: each }, () => this.#keep(relay)));
		this.#running = Promise.all(all);
	}

	/** Makes no further bids. */
	quieten(): void {
		this.#idle.length = 0;
	}

	async stop(): Promise<void> {
		this.#isOver = true;
		for (const socket of this.#open.values()) socket.terminate();
		await this.#running;
		await Promise.all(this.#underWay);
	}

	/** Keeps one connection to `relay`, again and again. */
	async #keep(relay: { readonly name: string; readonly url: string }): Promise<void> {
		while (!this.#isOver) {
			await this.#connect(relay);
			if (!this.#isOver) await pause(systemClock, AGAIN_MS);
		}
	}

	/** Resolves at the connection's end. */
	#connect({ name, url }: { readonly name: string; readonly url: string }): Promise<void> {
		return new Promise((resolve) => {
			const socket = new WebSocket(`${url.replace("http", "ws")}/ws`, {
				headers: { "x-forwarded-for": "10.200.0.1" },
			});
			let connection: Connection | null = null;
			const hurry = systemClock.after(OPEN_MS, () => socket.terminate());
			socket.on("error", () => {});
			socket.on("open", () => socket.send(JSON.stringify({ ...SUBSCRIBE, params: FEED })));
			socket.on("message", (data) => {
				const at = systemClock.now();
				const { id, result, error, params } = JSON.parse(String(data)) as Message;
				if (params !== undefined) {
					if (connection !== null) this.#show(connection, params.result.hash, at);
				} else if (id === "feed" && error === undefined) {
					hurry.cancel();
					connection = { relay: name, since: at, endedAt: null, end: "", shown: new Map() };
					this.connections.push(connection);
					this.#open.set(connection, socket);
				} else if (id === "feed") socket.terminate();
				else
					this.#waiting.get(String(id))?.(
						error === undefined ? String(result) : `${error.code} ${error.message}`,
					);
			});
			socket.on("close", (code, reason) => {
				hurry.cancel();
				if (connection !== null) {
					connection.endedAt = systemClock.now();
					connection.end = `${code} ${reason.toString()}`.trim();
					this.#open.delete(connection);
				}
				resolve();
			});
		});
	}

	#show({ shown }: Connection, hash: string, at: number): void {
		const times = shown.get(hash);
		if (times !== undefined) times.push(at);
		else shown.set(hash, [at]);
		if (this.#known.has(hash)) return;
		this.#known.add(hash);
		if (!this.#options.random.oneIn(BID_ON)) return;
		const account = this.#idle.shift();
		if (account === undefined) return;
		const bidding = this.#bid(account, hash)
			.catch(() => {})
			.finally(() => this.#underWay.delete(bidding));
		this.#underWay.add(bidding);
	}

	async #bid(account: TestAccount, target: string): Promise<void> {
		const { random, nonceOf, head } = this.#options;
		const wei = BigInt(1 + random.below(100)) * MILLIETHER;
		const nonce = await nonceOf(account.address);
		const { raw, hash: backrun } = signedTransaction({ by: account, nonce, to: PAYER, value: wei });
		const [, socket] = random.pick([...this.#open]);
		const params = [{ txs: [target, `0x${Buffer.from(raw).toString("hex")}`] }];
		this.#asked += 1;
		const id = String(this.#asked);
		const answer = await new Promise<string>((resolve) => {
			const late = systemClock.after(ANSWER_MS, () => resolve("no answer"));
			this.#waiting.set(id, (text) => {
				late.cancel();
				resolve(text);
			});
			socket.send(JSON.stringify({ jsonrpc: "2.0", id, method: "eth_sendBundle", params }));
		});
		this.#waiting.delete(id);
		this.bids.push({ target, backrun, wei, answer });
		const until = (await head()) + BLOCKS;
		while (!this.#isOver && (await head()) < until) await pause(systemClock, AGAIN_MS);
		this.#idle.push(account);
	}
}
