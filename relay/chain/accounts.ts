// Account states, each read from the node once per head, in batches. They are read at the head's
// hash, since a node behind a load balancer may have another block of that number. Clients are
// served in fair order. So a client with thousands of accounts does not delay the others.

import { isDeepStrictEqual } from "node:util";
import type { LRUCache } from "lru-cache";
import type { Background } from "../../shared/background.ts";
import { type Clock, DeadlineError, nextTurn, pause, within } from "../../shared/clock.ts";
import { parseNodeQuantity, toQuantity } from "../../shared/ethereum/hex.ts";
import {
	type JsonRpcClient,
	type RpcAnswer,
	type RpcCall,
	UpstreamError,
} from "../../shared/jsonrpc/client.ts";
import type { Logger } from "../../shared/log.ts";
import { AbortSwitch } from "../../shared/outgoing/abort.ts";
import type { Abort } from "../../shared/outgoing/httpClient.ts";
import { recentlyUsed } from "../../shared/recentlyUsed.ts";
import { FairScheduler, OverloadedError } from "../../shared/shares/scheduler.ts";
import { SharedJobs } from "../../shared/shares/shares.ts";
import type { AccountState, Header } from "../domain/chain.ts";
import { ACCOUNT_METHODS, readAccount } from "../domain/nodeJson.ts";
import type { Accounts } from "../domain/ports.ts";

export interface NodeAccountsOptions {
	/** Deadline of a read, in ms. */
	readonly timeoutMs: number;
	/** Accounts that may wait. Default 20,000. */
	readonly maxWaiting?: number;
}

export interface NodeAccountsDependencies {
	readonly node: Pick<JsonRpcClient, "batch">;
	readonly background: Background;
	readonly clock: Clock;
	readonly log: Logger;
}

/** Maximum number of cached accounts; the least recently used is dropped first. */
const MAX_ACCOUNTS = 100_000;
/**
 * More reads than the node answers within a second. Beyond this, the newest read of the client with
 * the most waiting accounts is shed.
 */
const MAX_WAITING = 20_000;
/**
 * Calls for one account: nonce, balance, code; for `latest` also eth_blockNumber before and after
 * them.
 */
const CALLS = 3;
const CALLS_LATEST = 5;
/** Accounts asked for in one request. */
const BATCH_ACCOUNTS = 100;
/** Lookups of one answer that are resolved before other work gets the event loop. */
const SETTLED_AT_ONCE = 8;
/** Requests in flight at once; lookups made meanwhile wait for the next one. */
const BATCHES_AT_ONCE = 4;
/** The answer of a node that does not know EIP-1898. */
const INVALID_PARAMS = -32602;
/** Pause before a failed read is tried again, in ms; doubled each time up to the longest. */
const RETRY_MS = 40;
const MAX_RETRY_MS = 160;

interface Question {
	/** Lower case. */
	readonly address: string;
	readonly client: string;
	readonly urgent: boolean;
	/** Read at the node's latest block instead of the tracked head. */
	readonly latest: boolean;
}

/** A request for one account; `state` is set when it was answered. */
interface Lookup {
	readonly address: string;
	readonly latest: boolean;
	readonly promise: Promise<AccountState>;
	readonly finish: (outcome: AccountState | UpstreamError) => void;
	state: AccountState | null;
}

/** The accounts of the node that `node` reads. */
export class NodeAccounts implements Accounts {
	readonly #timeoutMs: number;
	readonly #node: Pick<JsonRpcClient, "batch">;
	readonly #background: Background;
	readonly #clock: Clock;
	readonly #log: Logger;
	/** Decides which accounts go into the next request. */
	readonly #scheduler: FairScheduler;
	readonly #turns: SharedJobs<AccountState>;
	/**
	 * Lookups for the next request, by address and block. They are read at the head of the time it is
	 * sent.
	 */
	#batch = new Map<string, Lookup>();
	/** Lookups at the tracked head, answered or in flight. */
	readonly #states: LRUCache<string, Lookup>;
	#head: Pick<Header, "number" | "hash"> | null = null;
	/**
	 * Whether the node reads accounts at a block's hash (EIP-1898); null while not known. If not,
	 * they are read by number, and twice.
	 */
	#knowsHashes: boolean | null = null;
	/** Counts the heads that were set, because two may have the same number. */
	#epoch = 0;
	#inFlight = 0;
	#scheduled = false;

	constructor(options: NodeAccountsOptions, dependencies: NodeAccountsDependencies) {
		this.#timeoutMs = options.timeoutMs;
		this.#node = dependencies.node;
		this.#background = dependencies.background;
		this.#clock = dependencies.clock;
		this.#log = dependencies.log;
		this.#states = recentlyUsed(MAX_ACCOUNTS);
		this.#scheduler = new FairScheduler({
			concurrency: Number.POSITIVE_INFINITY,
			maxWaiting: options.maxWaiting ?? MAX_WAITING,
			mayStart: () => this.#inFlight < BATCHES_AT_ONCE && this.#batch.size < BATCH_ACCOUNTS,
		});
		this.#turns = new SharedJobs(this.#scheduler);
	}

	/** Sets the new head, and forgets all states of older ones. */
	setHead(head: Pick<Header, "number" | "hash">): void {
		this.#head = head;
		this.#epoch += 1;
		this.#states.clear();
	}

	/**
	 * State of `address` after the tracked head. If the node fails, or does not have that block yet
	 * (one of many behind a load balancer), the read is repeated. Throws an UpstreamError after the
	 * deadline without an answer.
	 */
	async get(address: string, client: string, urgent = false): Promise<AccountState> {
		const key = address.toLowerCase();
		const had = this.#states.get(key)?.state;
		// The usual case, without a timer.
		if (had !== undefined && had !== null) return had;
		return this.#answer({ address: key, client, urgent, latest: false });
	}

	/**
	 * State of `address` at the node's latest block, never from the cache: after the tracked head, or
	 * a later block if the node is ahead. Throws like {@link get}.
	 */
	async fresh(address: string, client: string): Promise<AccountState> {
		const key = address.toLowerCase();
		const state = await this.#answer({ address: key, client, urgent: true, latest: true });
		// A node behind a load balancer may lag behind the tracked head.
		return state.block < (this.#head?.number ?? 0) ? this.get(key, client, true) : state;
	}

	async #answer(question: Question): Promise<AccountState> {
		const failure: { last?: UpstreamError } = {};
		try {
			const late = new AbortSwitch();
			const asking = this.#ask(question, late, failure);
			return await within(this.#clock, "account", this.#timeoutMs, asking, () => late.abort());
		} catch (thrown) {
			if (thrown instanceof OverloadedError) throw new UpstreamError("timeout");
			if (!(thrown instanceof DeadlineError)) throw thrown;
			throw failure.last ?? new UpstreamError("timeout");
		}
	}

	async #ask(question: Question, late: Abort, failure: { last?: UpstreamError }): Promise<AccountState> {
		for (let waitMs = RETRY_MS; ; waitMs = Math.min(2 * waitMs, MAX_RETRY_MS)) {
			const epoch = this.#epoch;
			try {
				const state = await this.#lookUp(question, late);
				// The head has changed meanwhile. One more read makes an old state unlikely.
				if (epoch === this.#epoch || question.latest) return state;
				return await this.#lookUp(question, late);
			} catch (thrown) {
				if (!(thrown instanceof UpstreamError)) throw thrown;
				failure.last = thrown;
				await pause(this.#clock, waitMs);
				if (late.isAborted) throw thrown;
			}
		}
	}

	/** Returns a known or pending state, or waits in the queue until it is too late. */
	#lookUp(question: Question, late: Abort): Promise<AccountState> {
		const lookup = this.#known(question);
		if (lookup !== undefined) return lookup.promise;
		if (this.#head === null) return Promise.reject(new UpstreamError("unreachable"));
		const { address, client, urgent, latest } = question;
		const options = { client, urgent, cost: latest ? CALLS_LATEST : CALLS };
		const turn = this.#turns.join(`${latest} ${address}`, options, () => this.#begin(question));
		late.onAbort(turn.leave);
		return turn.answer;
	}

	/** Adds the account to the next request, unless another client has done so already. */
	#begin(question: Question): Promise<AccountState> {
		const known = this.#known(question);
		if (known !== undefined) return known.promise;
		const lookup = newLookup(question.address, question.latest);
		this.#batch.set(batchKey(question), lookup);
		if (this.#batch.size === BATCH_ACCOUNTS) this.#send();
		else this.#sendSoon();
		return lookup.promise;
	}

	/** The lookup that answers this question, if there is one. */
	#known(question: Question): Lookup | undefined {
		const lookup = this.#batch.get(batchKey(question));
		return lookup ?? (question.latest ? undefined : this.#states.get(question.address));
	}

	/** Sends at the end of this turn of the event loop, so that its lookups share a request. */
	#sendSoon(): void {
		if (this.#scheduled) return;
		this.#scheduled = true;
		setImmediate(() => {
			this.#scheduled = false;
			if (this.#batch.size > 0) this.#send();
		});
	}

	#send(): void {
		const head = this.#head;
		// No lookup is made before the first head.
		if (head === null) return;
		const lookups = [...this.#batch.values()];
		this.#batch = new Map();
		for (const lookup of lookups) if (!lookup.latest) this.#states.set(lookup.address, lookup);
		this.#inFlight += 1;
		this.#background.run("accounts", () => this.#fetch(lookups, head));
	}

	async #fetch(lookups: readonly Lookup[], head: Pick<Header, "number" | "hash">): Promise<void> {
		const byHash = this.#knowsHashes !== false;
		const block = byHash ? { blockHash: head.hash } : toQuantity(head.number);
		const calls = lookups.flatMap((lookup) => callsFor(lookup, block));
		const read = () => this.#node.batch(calls, this.#timeoutMs);
		try {
			// A read by number may reach a block of another fork. Two such answers are less likely
			// than one.
			const [answers = [], again] = await Promise.all(byHash ? [read()] : [read(), read()]);
			if (this.#knowsHashes === null) this.#learn(answers);
			let next = 0;
			for (const [i, lookup] of lookups.entries()) {
				// Resolving many callers at once would delay all other work.
				if (i % SETTLED_AT_ONCE === SETTLED_AT_ONCE - 1) await nextTurn();
				const from = next;
				next += lookup.latest ? CALLS_LATEST : CALLS;
				const state = readState(lookup, head.number, answers.slice(from, next));
				const isSure =
					again === undefined ||
					isDeepStrictEqual(state, readState(lookup, head.number, again.slice(from, next)));
				// An answer without a state: most likely the node does not have that block.
				this.#finish(lookup, (isSure ? state : null) ?? new UpstreamError("notJsonRpc"));
			}
		} catch (thrown) {
			const error = thrown instanceof UpstreamError ? thrown : new UpstreamError("unreachable");
			for (const lookup of lookups) this.#finish(lookup, error);
			if (error !== thrown) throw thrown;
		} finally {
			this.#inFlight -= 1;
			this.#scheduler.resume();
		}
	}

	/**
	 * Learns whether the node reads at a block's hash. A node that has done so may later give the
	 * same error for a block that it lacks.
	 */
	#learn(answers: readonly RpcAnswer[]): void {
		if (answers.every((answer) => answer.ok)) this.#knowsHashes = true;
		if (!answers.some(isRefusal)) return;
		this.#knowsHashes = false;
		this.#log.warn("node can't read accounts at a block's hash (EIP-1898): reading each twice", {});
	}

	#finish(lookup: Lookup, outcome: AccountState | UpstreamError): void {
		const { address } = lookup;
		if (outcome instanceof UpstreamError) {
			if (this.#states.peek(address) === lookup) this.#states.delete(address);
		} else {
			lookup.state = outcome;
			// A command to a dev node changes an account without a block, so the state is read
			// again.
			if (lookup.latest && outcome.block === this.#head?.number) this.#states.delete(address);
		}
		lookup.finish(outcome);
	}
}

function newLookup(address: string, latest: boolean): Lookup {
	let finish: Lookup["finish"] = () => {};
	const promise = new Promise<AccountState>((resolve, reject) => {
		finish = (outcome) => (outcome instanceof UpstreamError ? reject(outcome) : resolve(outcome));
	});
	return { address, latest, promise, finish, state: null };
}

function batchKey({ address, latest }: Question): string {
	return latest ? `latest ${address}` : address;
}

/**
 * The calls for one account. At the latest block, the block number is read before and after: the
 * state's block is known only if both agree.
 */
function callsFor(
	{ address, latest }: Lookup,
	head: string | { readonly blockHash: string },
): readonly RpcCall[] {
	const block = latest ? "latest" : head;
	const reads = ACCOUNT_METHODS.map((method) => ({ method, params: [address, block] }));
	const number = { method: "eth_blockNumber", params: [] };
	return latest ? [number, ...reads, number] : reads;
}

function isRefusal(answer: RpcAnswer): boolean {
	return !answer.ok && answer.error.code === INVALID_PARAMS;
}

function readState(
	{ address, latest }: Lookup,
	head: number,
	answers: readonly RpcAnswer[],
): AccountState | null {
	const results = answers.map((answer) => (answer.ok ? answer.result : null));
	const account = readAccount(latest ? results.slice(1, 4) : results);
	const block = latest ? blockBetween(results[0], results[4]) : head;
	return block === null || account === null ? null : { address, block, ...account };
}

function blockBetween(before: unknown, after: unknown): number | null {
	const block = parseNodeQuantity(before);
	return block !== null && block === parseNodeQuantity(after) ? Number(block) : null;
}
