// Account states at the tracked head: what comes in are addresses, what goes out is nonce, balance and kind of code
// of each, asked of the node once per address and head. It does not follow the chain: it is told the head.

import { LRUCache } from "lru-cache";
import type { Background } from "../../shared/background.ts";
import { type Clock, DeadlineError, pause, withDeadline } from "../../shared/clock.ts";
import { readQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import { type JsonRpcClient, type RpcAnswer, UpstreamError } from "../../shared/jsonrpc/client.ts";
import type { AccountState } from "../domain/chain.ts";
import type { Accounts } from "../domain/ports.ts";

export interface NodeAccountsOptions {
	/** How long one who asks waits, in ms. Default 1,000. */
	readonly timeoutMs?: number;
	/** Accounts remembered at most; the one not asked for longest goes. Default 100,000. */
	readonly maxAccounts?: number;
}

export interface NodeAccountsDependencies {
	readonly node: Pick<JsonRpcClient, "batch">;
	readonly background: Background;
	readonly clock: Clock;
}

const TIMEOUT_MS = 1_000;
const MAX_ACCOUNTS = 100_000;
/** Accounts asked for in one request, with three calls each. */
const BATCH_ACCOUNTS = 100;
/** Requests under way at the same time; what is asked meanwhile waits and goes together in the next one. */
const BATCHES_AT_ONCE = 4;
/** Accounts that may wait for a request, about; who comes then is refused at once: it would take too long anyway. */
const MAX_WAITING = 20_000;
/** Before the node is asked again where it failed, in ms; doubled each time. */
const RETRY_MS = 40;
/** `0xef0100` and an address. https://eips.ethereum.org/EIPS/eip-7702 */
const DELEGATION = /^0xef0100[0-9a-f]{40}$/i;

/** An account that was asked for; `state` once it is had. */
interface Flight {
	readonly address: string;
	readonly promise: Promise<AccountState>;
	readonly settle: (outcome: AccountState | UpstreamError) => void;
	state: AccountState | null;
}

/** The accounts of the node that `node` reads. */
export class NodeAccounts implements Accounts {
	readonly #timeoutMs: number;
	readonly #node: Pick<JsonRpcClient, "batch">;
	readonly #background: Background;
	readonly #clock: Clock;
	/** Of the tracked head: had, or in a request under way. */
	readonly #states: LRUCache<string, Flight>;
	/** In no request yet: they get the state of whatever is the head then. */
	readonly #waiting = new Map<string, Flight>();
	#head: number | null = null;
	/** Counts the heads that were set: two of them may have the same number. */
	#generation = 0;
	#underWay = 0;
	#scheduled = false;

	constructor(options: NodeAccountsOptions, dependencies: NodeAccountsDependencies) {
		this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
		this.#node = dependencies.node;
		this.#background = dependencies.background;
		this.#clock = dependencies.clock;
		this.#states = new LRUCache({ max: options.maxAccounts ?? MAX_ACCOUNTS });
	}

	/** Tells it the new head; everything known of older ones is forgotten. */
	setHead(block: number): void {
		this.#head = block;
		this.#generation += 1;
		this.#states.clear();
	}

	/**
	 * State of `address` after the tracked head. Where the node fails, or does not know that block yet (one of many
	 * behind a balancer), it is asked again. Throws an UpstreamError when there is none within a second.
	 */
	async get(address: string): Promise<AccountState> {
		const key = address.toLowerCase();
		const had = this.#states.get(key)?.state;
		// The usual case: no timer is set for it.
		if (had !== undefined && had !== null) return had;
		if (this.#waiting.size >= MAX_WAITING) throw new UpstreamError("timeout");
		const failure: { last?: UpstreamError } = {};
		try {
			return await withDeadline(this.#clock, "account", this.#timeoutMs, (signal) =>
				this.#ask(key, signal, failure),
			);
		} catch (thrown) {
			if (!(thrown instanceof DeadlineError)) throw thrown;
			throw failure.last ?? new UpstreamError("timeout");
		}
	}

	async #ask(key: string, signal: AbortSignal, failure: { last?: UpstreamError }): Promise<AccountState> {
		for (let waitMs = RETRY_MS; ; waitMs *= 2) {
			const generation = this.#generation;
			try {
				const state = await this.#flight(key);
				// The head moved on while the node was asked: once more, so that it is rarely of a head gone by.
				return generation === this.#generation ? state : await this.#flight(key);
			} catch (thrown) {
				if (!(thrown instanceof UpstreamError)) throw thrown;
				failure.last = thrown;
				await pause(this.#clock, waitMs, signal);
				if (signal.aborted) throw thrown;
			}
		}
	}

	/** What is had, under way, waiting, or begins to wait now. */
	#flight(address: string): Promise<AccountState> {
		const flight = this.#states.get(address) ?? this.#waiting.get(address);
		if (flight !== undefined) return flight.promise;
		if (this.#head === null) return Promise.reject(new UpstreamError("unreachable"));
		const begun = newFlight(address);
		this.#waiting.set(address, begun);
		this.#schedule();
		return begun.promise;
	}

	/** Not at once: what is asked for in the same turn of the event loop goes together. */
	#schedule(): void {
		if (this.#scheduled || this.#waiting.size === 0 || this.#underWay >= BATCHES_AT_ONCE) return;
		this.#scheduled = true;
		setImmediate(() => {
			this.#scheduled = false;
			while (this.#underWay < BATCHES_AT_ONCE && this.#waiting.size > 0) this.#send();
		});
	}

	#send(): void {
		const flights: Flight[] = [];
		for (const flight of this.#waiting.values()) {
			if (flights.length === BATCH_ACCOUNTS) break;
			flights.push(flight);
			this.#waiting.delete(flight.address);
			this.#states.set(flight.address, flight);
		}
		this.#underWay += 1;
		this.#background.run("accounts", () => this.#fetch(flights, this.#head ?? 0));
	}

	async #fetch(flights: readonly Flight[], head: number): Promise<void> {
		const block = toQuantity(head);
		const calls = flights.flatMap(({ address }) => [
			{ method: "eth_getTransactionCount", params: [address, block] },
			{ method: "eth_getBalance", params: [address, block] },
			{ method: "eth_getCode", params: [address, block] },
		]);
		try {
			const answers = await this.#node.batch(calls, this.#timeoutMs);
			flights.forEach((flight, i) => {
				const state = readState(flight.address, head, answers.slice(3 * i, 3 * i + 3));
				// No state though the node answered: most likely it does not have that block.
				this.#settle(flight, state ?? new UpstreamError("notJsonRpc"));
			});
		} catch (thrown) {
			const error = thrown instanceof UpstreamError ? thrown : new UpstreamError("unreachable");
			for (const flight of flights) this.#settle(flight, error);
			if (error !== thrown) throw thrown;
		} finally {
			this.#underWay -= 1;
			this.#schedule();
		}
	}

	#settle(flight: Flight, outcome: AccountState | UpstreamError): void {
		if (outcome instanceof UpstreamError) {
			if (this.#states.peek(flight.address) === flight) this.#states.delete(flight.address);
		} else {
			flight.state = outcome;
		}
		flight.settle(outcome);
	}
}

function newFlight(address: string): Flight {
	let settle: Flight["settle"] = () => {};
	const promise = new Promise<AccountState>((resolve, reject) => {
		settle = (outcome) => (outcome instanceof UpstreamError ? reject(outcome) : resolve(outcome));
	});
	return { address, promise, settle, state: null };
}

function readState(address: string, block: number, answers: readonly RpcAnswer[]): AccountState | null {
	const [nonce, balance, code] = answers.map((answer) => (answer.ok ? answer.result : null));
	const [nonceValue, balanceValue] = [readQuantity(nonce), readQuantity(balance)];
	if (nonceValue === null || balanceValue === null || typeof code !== "string") return null;
	return { address, block, nonce: nonceValue, balance: balanceValue, code: kindOfCode(code) };
}

/** Some nodes answer `0x`, some nothing at all where there is no code. */
function kindOfCode(code: string): AccountState["code"] {
	if (code === "0x" || code === "") return "none";
	return DELEGATION.test(code) ? "delegated" : "contract";
}
