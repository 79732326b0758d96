// Gives this process access to the core, which may be here or in another process. Calls of the
// core's methods run here if this process is the core; else they are sent to it. News of the core
// go to this process's clients, each once, even if the core changes.

import type { Client } from "../../shared/client.ts";
import { type Clock, inSlices, pause } from "../../shared/clock.ts";
import type { Recovered } from "../../shared/ethereum/transaction.ts";
import type { CallContext } from "../../shared/http/callContext.ts";
import { oneResult, type Results } from "../../shared/http/notifications.ts";
import { readError } from "../../shared/jsonrpc/answers.ts";
import { AnswerLater } from "../../shared/jsonrpc/method.ts";
import type { Term } from "../../shared/kv/port.ts";
import type { Holder } from "../../shared/kv/postgres/holder.ts";
import { recentlyUsed } from "../../shared/recentlyUsed.ts";
import { timedOut } from "../../shared/syncWaits.ts";
import type { Traces } from "../../shared/tracing/traces.ts";
import { FROM_CORE, PENDING_TRANSACTIONS } from "../domain/endpoints.ts";
import { type CoreLink, type CoreLinkDependencies, UNANSWERED } from "./coreLink.ts";
import {
	FEED,
	FEED_PAGE,
	type FeedStart,
	FOLLOW,
	type FollowTopic,
	LEAVE_MS,
	NO_CORE,
	NO_NEWS,
	type SharedTransaction,
	UNFOLLOW,
} from "./messages.ts";
import { ReportedTopics } from "./reportedTopics.ts";

/** A method of the core. */
interface CoreMethod<Needs> {
	readonly name: string;
	readonly invoke: (params: readonly unknown[], context: CallContext, needs: Needs) => unknown;
}

/** The core, if it is in this process. */
export interface LocalCore<Needs> {
	/** The dependencies of its methods. */
	readonly needs: Needs;
	readonly follow: FollowTopic;
	/** The transactions that are shared now. */
	readonly shared: () => Iterable<SharedTransaction>;
	/** Null if no other process can reach the store. */
	readonly term: Term | null;
}

export interface CoreDependencies {
	/** The websockets of this process's clients. */
	readonly subscriptions: {
		hasSubscribers(topic: string): boolean;
		subscribed(prefix: string): Iterable<{ readonly suffix: string }>;
		publishAll(topic: string, results: Results): void;
	};
	/** Charges a client for a call that the core found expensive. */
	readonly charge: (client: Client, weight: number) => void;
	/**
	 * The sender and hash of the transaction that a call submits; undefined if it submits none.
	 * Recovered here so that the core need not do it.
	 */
	readonly recover: (method: string, params: readonly unknown[]) => Recovered | undefined;
	readonly traces: Traces;
	readonly clock: Clock;
	/** CORE_TIMEOUT_MS: how long a call waits for a core. Boost can ask other relays. */
	readonly timeoutMs: number;
}

/** Why a wait for a receipt ends. */
const CORE_GONE = "the relay that decides is another one now, and keeps it";
/** Number of remembered hashes of published or submitted transactions. */
const REMEMBERED = 100_000;

/** The members of {@link Core} that keep it connected. */
export type CoreConnection = Pick<Core<unknown>, "remote" | "ownSecret" | "linkEvents" | "connect"> & {
	readonly local: unknown;
};

/** The core as this process sees it. */
export class Core<Needs> {
	readonly #dependencies: CoreDependencies;
	#local: LocalCore<Needs> | null = null;
	#link: CoreLink | null = null;
	/** Aborted, and replaced, when there is a core again. */
	#onChange = new AbortController();
	/** Accepted calls that the core in this process has not answered. */
	#inFlight = 0;
	#onIdle = () => {};
	/**
	 * Shared transactions that this process's clients have received. Each has the secret of the
	 * core's term, because the number of a term may come twice.
	 */
	readonly #published = recentlyUsed<string>(REMEMBERED);
	/**
	 * The feed of the term with this secret: the number of its last news, and whether everything
	 * before them was received. Null if there is none.
	 */
	#feed: { readonly secret: string; number: number; isComplete: boolean } | null = null;
	readonly #followed = new ReportedTopics();
	#ownSecret: string | null = null;
	/** Topics that clients wait to follow, and the number of these clients. */
	readonly #awaited = new Map<string, number>();
	/** Ends each wait for a receipt at another process. */
	readonly #waits = new Set<() => void>();
	/** Why no receipt is awaited any more; null while receipts are awaited. */
	#stopping: string | null = null;
	/** Transactions that were submitted here. */
	readonly #submitted = recentlyUsed<true>(REMEMBERED);

	constructor(dependencies: CoreDependencies) {
		this.#dependencies = dependencies;
	}

	/** The core, if it is in this process. */
	get local(): LocalCore<Needs> | null {
		return this.#local;
	}

	/** The connection to the core in another process; null without one. */
	get remote(): CoreLink | null {
		return this.#link;
	}

	/** Whether this process has received all transactions that are shared now. */
	get isFed(): boolean {
		return this.#local !== null || this.#feed?.isComplete === true;
	}

	/**
	 * The number of the core's term; null if none is known, or if no other process can reach the
	 * store.
	 */
	get term(): number | null {
		return this.#local?.term?.number ?? this.#link?.holder.term ?? null;
	}

	/**
	 * The connection to the core in another process, within `timeoutMs`; null if this process is
	 * the core. Throws {@link NO_CORE}.
	 */
	soon(): Promise<CoreLink | null> {
		return this.#local === null ? this.#linkSoon() : Promise.resolve(null);
	}

	/**
	 * Runs a method of the core. Returns and throws like a method's `handle`. Throws {@link NO_CORE}
	 * if there is none for `timeoutMs`.
	 */
	run(method: CoreMethod<Needs>, params: readonly unknown[], context: CallContext): unknown {
		const local = this.#local;
		if (local === null) return this.#runSoon(method, params, context);
		if (local.term === null) return method.invoke(params, context, local.needs);
		return this.#counted(method.invoke(params, context, local.needs));
	}

	/**
	 * Follows a topic for a client's subscription. `begin` makes the subscription, and gets the
	 * current results as JSON values. From then on, this process's subscriptions to the topic
	 * receive its news. Resolves to the result of `begin`.
	 */
	async follow<T>(topic: string, begin: (current: readonly unknown[]) => T): Promise<T> {
		const link = await this.soon();
		if (link === null) return this.#followHere(topic, begin);
		this.#awaited.set(topic, (this.#awaited.get(topic) ?? 0) + 1);
		return new Promise<T>((resolve, reject) => {
			const begun = (current: unknown): void => {
				this.#arrived(topic);
				const list = current as readonly unknown[];
				this.#followed.begin(topic, list);
				try {
					resolve(begin(list));
				} catch (thrown) {
					reject(thrown);
					this.unfollow(topic);
				}
			};
			link.ask(FOLLOW, [topic], begun, (thrown) => {
				this.#arrived(topic);
				reject(thrown);
			});
		});
	}

	/** Stops following a topic, unless a client here subscribes to it or waits to follow it. */
	unfollow(topic: string): void {
		if (!this.#followed.has(topic) || this.#awaited.has(topic)) return;
		if (this.#dependencies.subscriptions.hasSubscribers(topic)) return;
		this.#followed.end(topic);
		this.#link?.ask(UNFOLLOW, [topic]);
	}

	/**
	 * Whether the transaction with this hash was submitted here while the core was another process.
	 */
	hasSubmitted(hash: string): boolean {
		return this.#submitted.has(hash);
	}

	/** The secret of this process's past, present or next term as the core; null if there is none. */
	get ownSecret(): string | null {
		return this.#ownSecret;
	}

	/**
	 * Whether clients here have not yet received a result, given as JSON, that this process
	 * publishes.
	 */
	isNews(topic: string, text: string): boolean {
		return this.#followed.isNews(topic, text);
	}

	/** Announces that this process will be the core of `term`. */
	prepare(term: Term | null): void {
		this.#ownSecret = term?.secret ?? null;
		this.#followed.coreChanged();
	}

	/**
	 * Makes this process the core. Sends clients here the news that the previous core did not send.
	 */
	async take(local: LocalCore<Needs>): Promise<void> {
		this.#local = local;
		// The link may lead to this process, whose name was in the store's row before it was the
		// core.
		this.#link?.close();
		this.#link = null;
		this.#changed();
		const secret = local.term?.secret ?? "";
		await inSlices(local.shared(), this.#dependencies.clock, (one) => this.#publish(secret, NO_NEWS, one));
		for (const topic of this.#followed.topics()) {
			// If the topic can't be read, its subscribers receive its next change.
			await readTopic(local, topic, (current) => this.#tellAgain(topic, current)).catch(() => {});
		}
	}

	/**
	 * Ends this process's time as the core. Resolves when the accepted calls are answered, within
	 * half a second.
	 */
	async leave(): Promise<void> {
		if (this.#local === null) return;
		await this.#keepFollowed(this.#local);
		this.#local = null;
		if (this.#inFlight === 0) return;
		const idle = new AbortController();
		this.#onIdle = () => idle.abort();
		await pause(this.#dependencies.clock, LEAVE_MS, idle.signal);
	}

	/**
	 * Keeps the topics that clients here follow, for the next core. Clients receive nothing twice.
	 */
	async #keepFollowed(local: LocalCore<Needs>): Promise<void> {
		const { subscriptions } = this.#dependencies;
		const topics = FROM_CORE.flatMap((prefix) =>
			Array.from(subscriptions.subscribed(prefix), ({ suffix }) => `${prefix}${suffix}`),
		);
		const keep = (topic: string) =>
			readTopic(local, topic, (current) => this.#followed.begin(topic, current));
		// If a topic can't be read, its clients receive its state once more.
		await Promise.allSettled(topics.map(keep));
	}

	/**
	 * Answers all waits for receipts at another process, and refuses later ones. This process
	 * stops, for the reason `why`.
	 */
	endWaits(why: string): void {
		this.#stopping = why;
		for (const end of [...this.#waits]) end();
	}

	/** Sends this process's clients a transaction that the core in this process shares. */
	shared(hash: string, text: string): void {
		this.#publish(this.#local?.term?.secret ?? "", 1, { hash, text });
	}

	/** The listeners for the events of a link to the core. */
	linkEvents(holder: Holder): Pick<CoreLinkDependencies, "onShared" | "onNews" | "charge" | "onEnd"> {
		return {
			onShared: (number, hash, text) => {
				// The next connection repeats everything that an ended connection still delivers.
				if (this.#link?.holder !== holder) return;
				if (number !== NO_NEWS && this.#feed !== null) this.#feed.number = number;
				this.#publish(holder.secret, number, { hash, text });
			},
			onNews: (topic, text) => {
				if (this.#link?.holder === holder) this.#onNews(topic, text);
			},
			charge: ({ client }, weight) => this.#dependencies.charge(client, weight),
			onEnd: () => {
				if (this.#link?.holder === holder) this.#link = null;
			},
		};
	}

	/** Connects this process to the core in another process. */
	connect(link: CoreLink): void {
		this.#link?.close();
		this.#link = link;
		this.#followed.coreChanged();
		this.#startFeed(link);
		for (const topic of this.#followed.topics()) {
			link.ask(FOLLOW, [topic], (current) => this.#tellAgain(topic, current as readonly unknown[]));
		}
		this.#changed();
	}

	/** Receives the feed's news, and everything that was missed. After an error, starts again. */
	#startFeed(link: CoreLink): void {
		const { secret } = link.holder;
		const known = this.#feed?.secret === secret && this.#feed.isComplete ? this.#feed.number : null;
		const feed = { secret, number: known ?? 0, isComplete: false };
		this.#feed = feed;
		const again = (): void => {
			void pause(this.#dependencies.clock, this.#dependencies.timeoutMs).then(() => {
				if (this.#link === link) this.#startFeed(link);
			});
		};
		// The transactions that were shared before come a page at a time. Most of them are known if
		// another relay became the core.
		const ask = (wanted: readonly string[]): void => link.ask(FEED_PAGE, [wanted], read, again);
		const read = (answer: unknown): void => {
			const hashes = answer as readonly string[];
			if (hashes.length === 0) feed.isComplete = true;
			else ask(hashes.filter((hash) => !this.#isPublished(secret, hash)));
		};
		const started = (answer: unknown): void => {
			const { news, isComplete } = answer as FeedStart;
			feed.number = news;
			if (isComplete) feed.isComplete = true;
			else ask([]);
		};
		link.ask(FEED, [known], started, again);
	}

	async #runSoon(
		method: CoreMethod<Needs>,
		params: readonly unknown[],
		context: CallContext,
	): Promise<unknown> {
		const link = await this.#linkSoon();
		if (link === null) return this.run(method, params, context);
		const recovered = context.recovered ?? this.#dependencies.recover(method.name, params);
		if (recovered === undefined) return link.call(method.name, params, context);
		const begun = this.#dependencies.clock.monotonic();
		const result = await this.#submitAt(link, method.name, params, context, recovered);
		this.#submitted.set(recovered.hash, true);
		return result instanceof AnswerLater ? this.#withHash(result, recovered.hash, begun) : result;
	}

	/** Submits a transaction to the core, in the trace of the request. */
	async #submitAt(
		link: CoreLink,
		method: string,
		params: readonly unknown[],
		context: CallContext,
		recovered: Recovered,
	): Promise<unknown> {
		const { trace, requestId } = context;
		const { hash } = recovered;
		const span = this.#dependencies.traces.submission("relay.edge", hash, trace);
		let outcome = "taken";
		try {
			return await link.call(method, params, context, recovered, span?.traceparent ?? trace);
		} catch (thrown) {
			outcome = readError(thrown)?.outcome ?? "failed";
			throw thrown;
		} finally {
			span?.end({ request: requestId ?? undefined, hash, outcome });
		}
	}

	/**
	 * Adds the hash to the error of an accepted submission whose receipt does not come because the
	 * core's process or this one ends.
	 */
	#withHash(later: AnswerLater, hash: string, begun: number): AnswerLater {
		const ended = (why: string) => timedOut(hash, this.#dependencies.clock.monotonic() - begun, why);
		return new AnswerLater((leftMs) => {
			if (this.#stopping !== null) return Promise.reject(ended(this.#stopping));
			return new Promise((resolve, reject) => {
				const end = (): void => reject(ended(this.#stopping ?? CORE_GONE));
				this.#waits.add(end);
				later
					.finish(leftMs)
					.finally(() => this.#waits.delete(end))
					.then(resolve, (thrown: unknown) => reject(thrown === UNANSWERED ? ended(CORE_GONE) : thrown));
			});
		});
	}

	/**
	 * The link to the core, once there is one; null if this process is the core by then. Throws
	 * {@link NO_CORE}.
	 */
	async #linkSoon(): Promise<CoreLink | null> {
		const open = this.#openLink();
		if (open !== null) return open;
		await pause(this.#dependencies.clock, this.#dependencies.timeoutMs, this.#onChange.signal);
		if (this.#local !== null) return null;
		const next = this.#openLink();
		if (next === null) throw NO_CORE;
		return next;
	}

	#openLink(): CoreLink | null {
		return this.#link?.isOpen === true ? this.#link : null;
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

	/**
	 * Publishes a shared transaction. If clients have received it already, publishes it again only
	 * as news of the same term.
	 */
	#publish(secret: string, number: number, one: SharedTransaction): void {
		const before = this.#published.get(one.hash);
		this.#published.set(one.hash, secret);
		if (before !== undefined && (number === NO_NEWS || before !== secret)) return;
		this.#dependencies.subscriptions.publishAll(PENDING_TRANSACTIONS, oneResult(one.text));
	}

	/** Whether clients have received a transaction, which is now shared in the term of `secret`. */
	#isPublished(secret: string, hash: string): boolean {
		const isPublished = this.#published.has(hash);
		if (isPublished) this.#published.set(hash, secret);
		return isPublished;
	}

	#onNews(topic: string, text: string, standsNow = false): void {
		// News may have been under way when the last subscriber left.
		if (!this.#followed.has(topic) || !this.#followed.isNews(topic, text, standsNow)) return;
		this.#dependencies.subscriptions.publishAll(topic, oneResult(text));
	}

	/** Counts one answered wait to follow the topic. */
	#arrived(topic: string): void {
		const left = (this.#awaited.get(topic) ?? 0) - 1;
		if (left > 0) this.#awaited.set(topic, left);
		else this.#awaited.delete(topic);
	}

	/** Publishes the current results that clients have not received yet. */
	#tellAgain(topic: string, current: readonly unknown[]): void {
		for (const one of current) this.#onNews(topic, JSON.stringify(one), true);
	}

	async #followHere<T>(topic: string, begin: (current: readonly unknown[]) => T): Promise<T> {
		const local = this.#local;
		if (local === null) throw NO_CORE;
		const made: T[] = [];
		await readTopic(local, topic, (current) => {
			// A new subscriber has not received the news of the previous core.
			this.#followed.end(topic);
			made.push(begin(current));
		});
		return made[0] as T;
	}
}

/** Passes the current results to `read`. */
async function readTopic(
	{ follow }: Pick<LocalCore<unknown>, "follow">,
	topic: string,
	read: (current: readonly unknown[]) => void,
): Promise<void> {
	const end = await follow(topic, read, () => {});
	end();
}
