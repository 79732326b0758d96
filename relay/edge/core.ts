// Who decides: the core, in this process or another one. What only the core may do is run here if this is its process, and is else
// sent to it; what it tells is passed on to this process's clients, each thing once, whoever has been the core meanwhile.

import { LRUCache } from "lru-cache";
import type { Client } from "../../shared/client.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import type { Recovered } from "../../shared/ethereum/transaction.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { AnswerLater } from "../../shared/jsonrpc/method.ts";
import { oneResult, type Results } from "../../shared/jsonrpc/notifications.ts";
import type { Holder } from "../../shared/kv/postgres/holder.ts";
import { timedOut } from "../../shared/syncWaits.ts";
import { PENDING_TRANSACTIONS } from "../domain/endpoints.ts";
import { type CoreLink, type CoreLinkDependencies, UNANSWERED } from "./coreLink.ts";
import { FEED, FOLLOW, type FollowTopic, NO_NEWS, UNFOLLOW } from "./messages.ts";

/** A method of the core. */
interface CoreMethod<Needs> {
	readonly name: string;
	readonly invoke: (params: readonly unknown[], context: CallContext, needs: Needs) => unknown;
}

/** The core, where it is in this process. */
export interface LocalCore<Needs> {
	/** What its methods need. */
	readonly needs: Needs;
	readonly follow: FollowTopic;
	/** The transactions that are shared now: hash, and the feed's result as JSON. */
	readonly shared: () => Iterable<{ readonly hash: string; readonly text: string }>;
	/** Of its term; null where no other process can reach the store. */
	readonly term: number | null;
}

export interface CoreDependencies {
	/** The websockets of this process's clients. */
	readonly subscriptions: {
		hasSubscribers(topic: string): boolean;
		publishAll(topic: string, results: Results): void;
	};
	/** Charges a client for a call that the core found expensive. */
	readonly charge: (client: Client, weight: number) => void;
	/** The sender and hash of what a call submits, recovered here so that the core need not do it; undefined if it submits nothing. */
	readonly recover: (method: string, params: readonly unknown[]) => Recovered | undefined;
	readonly clock: Clock;
}

/** The error while there is no core. Nothing of the request was given to one. */
const NO_CORE = new RpcError("unavailable", "internal error: no core can be reached, try again", {
	reason: "no core",
});
/** Why a receipt is not waited for any longer. */
const CORE_GONE = "the relay that decides is another one now, and keeps it";
/** How long a call waits for a core, in ms: boost has others to ask. */
const HOLD_MS = 1_000;
/** How long a core that leaves waits for the calls that it has taken, in ms. */
const LEAVE_MS = 500;
/** Hashes that are remembered, of transactions that were told or submitted. */
const REMEMBERED = 100_000;
/** News of a topic that are remembered, to tell nothing twice. */
const REMEMBERED_NEWS = 32;

/** Of {@link Core} what keeps it connected. */
export type CoreConnection = Pick<Core<unknown>, "remote" | "linkEvents" | "connect"> & {
	readonly local: unknown;
};

/** The core as this process sees it. */
export class Core<Needs> {
	readonly #deps: CoreDependencies;
	#local: LocalCore<Needs> | null = null;
	#link: CoreLink | null = null;
	/** Called when there is a core again. */
	#onChange = new AbortController();
	/** Calls that the core in this process has taken and not answered. */
	#inFlight = 0;
	#onIdle = () => {};
	/** Shared transactions that this process's clients were told of, with the core's term. */
	readonly #told = new LRUCache<string, number>({ max: REMEMBERED });
	/** The last news of the feed that came: its number and term. */
	#last: { readonly term: number; readonly number: number } | null = null;
	/** What was told last of each followed topic, as JSON. */
	readonly #followed = new Map<string, Set<string>>();
	/** Transactions that were submitted here. */
	readonly #submitted = new LRUCache<string, true>({ max: REMEMBERED });

	constructor(dependencies: CoreDependencies) {
		this.#deps = dependencies;
	}

	/** The core, if it is in this process. */
	get local(): LocalCore<Needs> | null {
		return this.#local;
	}

	/** The other process that is the core, if this one is connected to it. */
	get remote(): CoreLink | null {
		return this.#link;
	}

	/** The core's term; null if none is known, or where no other process can reach the store. */
	get term(): number | null {
		return this.#local?.term ?? this.#link?.holder.term ?? null;
	}

	/** The core's process if it is another one, within a second; null if it is this one. Throws {@link NO_CORE}. */
	soon(): Promise<CoreLink | null> {
		return this.#local === null ? this.#linkSoon() : Promise.resolve(null);
	}

	/** Runs a method of the core. Returns and throws like a method's `handle`; throws {@link NO_CORE} if there is none for a second. */
	run(method: CoreMethod<Needs>, params: readonly unknown[], context: CallContext): unknown {
		const local = this.#local;
		if (local === null) return this.#runSoon(method, params, context);
		if (local.term === null) return method.invoke(params, context, local.needs);
		return this.#counted(method.invoke(params, context, local.needs));
	}

	/**
	 * Follows a topic for a client's subscription: `begin` makes it, and gets the results that stand now, as JSON values. From then on
	 * this process's subscriptions to the topic are told its news. Resolves to what `begin` returns.
	 */
	async follow<T>(topic: string, begin: (current: readonly unknown[]) => T): Promise<T> {
		const link = await this.soon();
		if (link === null) return this.#followHere(topic, begin);
		return new Promise<T>((resolve, reject) => {
			const begun = (current: unknown): void => {
				const list = current as readonly unknown[];
				this.#followed.set(topic, new Set(list.map((one) => JSON.stringify(one))));
				try {
					resolve(begin(list));
				} catch (thrown) {
					reject(thrown);
				}
			};
			link.ask(FOLLOW, [topic], begun, reject);
		});
	}

	/** Whether the transaction with this hash was submitted here while the core was another process. */
	hasSubmitted(hash: string): boolean {
		return this.#submitted.has(hash);
	}

	/** This process is the core from now on. Tells clients here what the one before has not. */
	async take(local: LocalCore<Needs>): Promise<void> {
		this.#local = local;
		// It may lead here: this process's name stood in the store's row before it was the core.
		this.#link?.close();
		this.#link = null;
		this.#changed();
		for (const { hash, text } of local.shared()) this.#tell(local.term ?? 0, NO_NEWS, hash, text);
		for (const topic of this.#followed.keys()) {
			const end = await local.follow(
				topic,
				(current) => this.#tellAgain(topic, current),
				() => {},
			);
			end();
		}
		this.#followed.clear();
	}

	/** This process is not the core any more. Resolves when the calls that it has taken are answered, within half a second. */
	async leave(): Promise<void> {
		if (this.#local === null) return;
		this.#local = null;
		if (this.#inFlight === 0) return;
		const idle = new AbortController();
		this.#onIdle = () => idle.abort();
		await pause(this.#deps.clock, LEAVE_MS, idle.signal);
	}

	/** Tells this process's clients of a transaction that the core in this process shares. */
	shared(hash: string, text: string): void {
		const term = this.#local?.term ?? 0;
		this.#tell(term, 1, hash, text);
	}

	/** What a link to the core tells. */
	linkEvents(holder: Holder): Pick<CoreLinkDependencies, "onShared" | "onNews" | "charge" | "onEnd"> {
		return {
			onShared: (number, hash, text) => {
				// What a connection that is over still brings, the next one tells as well.
				if (this.#link?.holder !== holder) return;
				if (number !== NO_NEWS) this.#last = { term: holder.term, number };
				this.#tell(holder.term, number, hash, text);
			},
			onNews: (topic, text) => {
				if (this.#link?.holder === holder) this.#onNews(topic, text);
			},
			charge: ({ client }, weight) => this.#deps.charge(client, weight),
			onEnd: () => {
				if (this.#link?.holder === holder) this.#link = null;
			},
		};
	}

	/** The core is another process from now on. */
	connect(link: CoreLink): void {
		const { term } = link.holder;
		this.#link?.close();
		this.#link = link;
		const since = this.#last?.term === term ? this.#last.number : null;
		const got = (number: unknown): void => {
			this.#last = { term, number: Number(number) };
		};
		link.ask(FEED, [since], got);
		for (const topic of this.#followed.keys()) {
			if (!this.#deps.subscriptions.hasSubscribers(topic)) this.#followed.delete(topic);
			else {
				const again = (current: unknown) => this.#tellAgain(topic, current as readonly unknown[]);
				link.ask(FOLLOW, [topic], again);
			}
		}
		this.#changed();
	}

	async #runSoon(
		method: CoreMethod<Needs>,
		params: readonly unknown[],
		context: CallContext,
	): Promise<unknown> {
		const link = await this.#linkSoon();
		if (link === null) return this.run(method, params, context);
		const recovered = this.#deps.recover(method.name, params);
		const begun = this.#deps.clock.monotonic();
		const result = await link.call(method.name, params, context, recovered);
		if (recovered === undefined) return result;
		this.#submitted.set(recovered.hash, true);
		return result instanceof AnswerLater ? this.#withHash(result, recovered.hash, begun) : result;
	}

	/** It was taken: if the core's process ends before its receipt comes, the client is told so. */
	#withHash(later: AnswerLater, hash: string, begun: number): AnswerLater {
		return new AnswerLater((leftMs) =>
			later.finish(leftMs).catch((thrown: unknown) => {
				if (thrown !== UNANSWERED) throw thrown;
				throw timedOut(hash, this.#deps.clock.monotonic() - begun, CORE_GONE);
			}),
		);
	}

	/** The link to the core, as soon as there is one; null if this process is the core by then. Throws {@link NO_CORE}. */
	async #linkSoon(): Promise<CoreLink | null> {
		if (this.#link !== null) return this.#link;
		await pause(this.#deps.clock, HOLD_MS, this.#onChange.signal);
		if (this.#local !== null) return null;
		if (this.#link === null) throw NO_CORE;
		return this.#link;
	}

	#changed(): void {
		this.#onChange.abort();
		this.#onChange = new AbortController();
	}

	#counted(running: unknown): unknown {
		if (!(running instanceof Promise)) return running;
		this.#inFlight += 1;
		const end = (): void => {
			this.#inFlight -= 1;
			if (this.#inFlight === 0) this.#onIdle();
		};
		running.then(end, end);
		return running;
	}

	/** Publishes a shared transaction, unless it was told before: by a core before this one, or where it is no news. */
	#tell(term: number, number: number, hash: string, text: string): void {
		const before = this.#told.get(hash);
		this.#told.set(hash, term);
		if (before !== undefined && (number === NO_NEWS || before !== term)) return;
		this.#deps.subscriptions.publishAll(PENDING_TRANSACTIONS, oneResult(text));
	}

	#onNews(topic: string, text: string): void {
		const { subscriptions } = this.#deps;
		if (subscriptions.hasSubscribers(topic)) {
			this.#remember(topic, text);
			subscriptions.publishAll(topic, oneResult(text));
			return;
		}
		this.#followed.delete(topic);
		this.#link?.ask(UNFOLLOW, [topic]);
	}

	/** Tells of what stands now what was not told yet. */
	#tellAgain(topic: string, current: readonly unknown[]): void {
		for (const one of current) {
			const text = JSON.stringify(one);
			if (this.#followed.get(topic)?.has(text) === true) continue;
			this.#remember(topic, text);
			this.#deps.subscriptions.publishAll(topic, oneResult(text));
		}
	}

	#remember(topic: string, text: string): void {
		const told = this.#followed.get(topic) ?? new Set();
		this.#followed.set(topic, told);
		told.add(text);
		const [first] = told;
		if (told.size > REMEMBERED_NEWS && first !== undefined) told.delete(first);
	}

	async #followHere<T>(topic: string, begin: (current: readonly unknown[]) => T): Promise<T> {
		const local = this.#local;
		if (local === null) throw NO_CORE;
		const made: T[] = [];
		const end = await local.follow(
			topic,
			(current) => void made.push(begin(current)),
			() => {},
		);
		end();
		return made[0] as T;
	}
}
