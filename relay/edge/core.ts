// Who decides: the core, in this process or another one. What only the core may do is run here if this is its process, and is else
// sent to it; what it tells is passed on to this process's clients, each thing once, whoever has been the core meanwhile.

import type { Client } from "../../shared/client.ts";
import { type Clock, pause } from "../../shared/clock.ts";
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
import { FEED, FOLLOW, type FollowTopic, LEAVE_MS, NO_CORE, NO_NEWS, UNFOLLOW } from "./messages.ts";
import { ToldTopics } from "./toldTopics.ts";

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
	/** Null where no other process can reach the store. */
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
	/** The sender and hash of what a call submits, recovered here so that the core need not do it; undefined if it submits nothing. */
	readonly recover: (method: string, params: readonly unknown[]) => Recovered | undefined;
	readonly traces: Traces;
	readonly clock: Clock;
	/** CORE_TIMEOUT_MS: how long a call waits for a core. Boost has others to ask. */
	readonly timeoutMs: number;
}

/** Why a receipt is not waited for any longer. */
const CORE_GONE = "the relay that decides is another one now, and keeps it";
/** Hashes that are remembered, of transactions that were told or submitted. */
const REMEMBERED = 100_000;

/** Of {@link Core} what keeps it connected. */
export type CoreConnection = Pick<Core<unknown>, "remote" | "ownSecret" | "linkEvents" | "connect"> & {
	readonly local: unknown;
};

/** The core as this process sees it. */
export class Core<Needs> {
	readonly #dependencies: CoreDependencies;
	#local: LocalCore<Needs> | null = null;
	#link: CoreLink | null = null;
	/** Called when there is a core again. */
	#onChange = new AbortController();
	/** Calls that the core in this process has taken and not answered. */
	#inFlight = 0;
	#onIdle = () => {};
	/** Shared transactions that this process's clients were told of, with the secret of the core's term: its number may come twice. */
	readonly #told = recentlyUsed<string>(REMEMBERED);
	/** The last news of the feed that came: its number and the secret of its term. */
	#last: { readonly secret: string; readonly number: number } | null = null;
	readonly #followed = new ToldTopics();
	#ownSecret: string | null = null;
	/** Topics that clients wait to follow, and how many do. */
	readonly #awaited = new Map<string, number>();
	/** Ends each wait for a receipt at another process. */
	readonly #waits = new Set<() => void>();
	/** Why none is waited for any more; null while they are. */
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

	/** The other process that is the core, if this one is connected to it. */
	get remote(): CoreLink | null {
		return this.#link;
	}

	/** The number of the core's term; null if none is known, or where no other process can reach the store. */
	get term(): number | null {
		return this.#local?.term?.number ?? this.#link?.holder.term ?? null;
	}

	/** The core's process if it is another one, within `timeoutMs`; null if it is this one. Throws {@link NO_CORE}. */
	soon(): Promise<CoreLink | null> {
		return this.#local === null ? this.#linkSoon() : Promise.resolve(null);
	}

	/** Runs a method of the core. Returns and throws like a method's `handle`; throws {@link NO_CORE} if there is none for `timeoutMs`. */
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

	/** Follows a topic no more, if nobody here subscribes to it or waits for that. */
	unfollow(topic: string): void {
		if (!this.#followed.has(topic) || this.#awaited.has(topic)) return;
		if (this.#dependencies.subscriptions.hasSubscribers(topic)) return;
		this.#followed.end(topic);
		this.#link?.ask(UNFOLLOW, [topic]);
	}

	/** Whether the transaction with this hash was submitted here while the core was another process. */
	hasSubmitted(hash: string): boolean {
		return this.#submitted.has(hash);
	}

	/** The secret of the term in which this process is, will be or was the core; null if none. */
	get ownSecret(): string | null {
		return this.#ownSecret;
	}

	/** Whether clients here have yet to be told a result, given as JSON, that this process publishes. */
	isNews(topic: string, text: string): boolean {
		return this.#followed.isNews(topic, text);
	}

	/** This process will be the core of `term`. */
	prepare(term: Term | null): void {
		this.#ownSecret = term?.secret ?? null;
		this.#followed.coreChanged();
	}

	/** This process is the core from now on. Tells clients here what the one before has not. */
	async take(local: LocalCore<Needs>): Promise<void> {
		this.#local = local;
		// It may lead here: this process's name stood in the store's row before it was the core.
		this.#link?.close();
		this.#link = null;
		this.#changed();
		for (const { hash, text } of local.shared()) this.#tell(local.term?.secret ?? "", NO_NEWS, hash, text);
		for (const topic of this.#followed.topics()) {
			// Where it can't be read, its subscribers are told of its next change.
			await readTopic(local, topic, (current) => this.#tellAgain(topic, current)).catch(() => {});
		}
	}

	/** This process is not the core any more. Resolves when the calls that it has taken are answered, within half a second. */
	async leave(): Promise<void> {
		if (this.#local === null) return;
		await this.#keepFollowed(this.#local);
		this.#local = null;
		if (this.#inFlight === 0) return;
		const idle = new AbortController();
		this.#onIdle = () => idle.abort();
		await pause(this.#dependencies.clock, LEAVE_MS, idle.signal);
	}

	/** Clients here go on to follow at the next core what they follow at this one, and are told nothing twice. */
	async #keepFollowed(local: LocalCore<Needs>): Promise<void> {
		const { subscriptions } = this.#dependencies;
		const topics = FROM_CORE.flatMap((prefix) =>
			Array.from(subscriptions.subscribed(prefix), ({ suffix }) => `${prefix}${suffix}`),
		);
		const keep = (topic: string) =>
			readTopic(local, topic, (current) => this.#followed.begin(topic, current));
		// What can't be read is told once more.
		await Promise.allSettled(topics.map(keep));
	}

	/** Answers all that wait for receipts at another process, and refuses later ones, since this process stops: `why`. */
	endWaits(why: string): void {
		this.#stopping = why;
		for (const end of [...this.#waits]) end();
	}

	/** Tells this process's clients of a transaction that the core in this process shares. */
	shared(hash: string, text: string): void {
		this.#tell(this.#local?.term?.secret ?? "", 1, hash, text);
	}

	/** What a link to the core tells. */
	linkEvents(holder: Holder): Pick<CoreLinkDependencies, "onShared" | "onNews" | "charge" | "onEnd"> {
		return {
			onShared: (number, hash, text) => {
				// What a connection that is over still brings, the next one tells as well.
				if (this.#link?.holder !== holder) return;
				if (number !== NO_NEWS) this.#last = { secret: holder.secret, number };
				this.#tell(holder.secret, number, hash, text);
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

	/** The core is another process from now on. */
	connect(link: CoreLink): void {
		const { secret } = link.holder;
		this.#link?.close();
		this.#link = link;
		this.#followed.coreChanged();
		const since = this.#last?.secret === secret ? this.#last.number : null;
		const got = (number: unknown): void => {
			this.#last = { secret, number: Number(number) };
		};
		link.ask(FEED, [since], got);
		for (const topic of this.#followed.topics()) {
			link.ask(FOLLOW, [topic], (current) => this.#tellAgain(topic, current as readonly unknown[]));
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
		const recovered = this.#dependencies.recover(method.name, params);
		if (recovered === undefined) return link.call(method.name, params, context);
		const begun = this.#dependencies.clock.monotonic();
		const result = await this.#submitAt(link, method.name, params, context, recovered);
		this.#submitted.set(recovered.hash, true);
		return result instanceof AnswerLater ? this.#withHash(result, recovered.hash, begun) : result;
	}

	/** Submits a transaction at the core, in the trace that it came in. */
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

	/** It was taken: if the core's process or this one ends before its receipt comes, the client is told so. */
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

	/** The link to the core, as soon as there is one; null if this process is the core by then. Throws {@link NO_CORE}. */
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

	/** Publishes a shared transaction, unless it was told before: by a core before this one, or where it is no news. */
	#tell(secret: string, number: number, hash: string, text: string): void {
		const before = this.#told.get(hash);
		this.#told.set(hash, secret);
		if (before !== undefined && (number === NO_NEWS || before !== secret)) return;
		this.#dependencies.subscriptions.publishAll(PENDING_TRANSACTIONS, oneResult(text));
	}

	#onNews(topic: string, text: string, standsNow = false): void {
		// They may have been under way when the last subscriber left.
		if (!this.#followed.has(topic) || !this.#followed.isNews(topic, text, standsNow)) return;
		this.#dependencies.subscriptions.publishAll(topic, oneResult(text));
	}

	/** One of those that wait to follow the topic has its answer. */
	#arrived(topic: string): void {
		const left = (this.#awaited.get(topic) ?? 0) - 1;
		if (left > 0) this.#awaited.set(topic, left);
		else this.#awaited.delete(topic);
	}

	/** Tells of what stands now what was not told yet. */
	#tellAgain(topic: string, current: readonly unknown[]): void {
		for (const one of current) this.#onNews(topic, JSON.stringify(one), true);
	}

	async #followHere<T>(topic: string, begin: (current: readonly unknown[]) => T): Promise<T> {
		const local = this.#local;
		if (local === null) throw NO_CORE;
		const made: T[] = [];
		await readTopic(local, topic, (current) => {
			// Who comes now has not been told what the core before had.
			this.#followed.end(topic);
			made.push(begin(current));
		});
		return made[0] as T;
	}
}

/** Gives `read` what stands now. */
async function readTopic(
	{ follow }: Pick<LocalCore<unknown>, "follow">,
	topic: string,
	read: (current: readonly unknown[]) => void,
): Promise<void> {
	const end = await follow(topic, read, () => {});
	end();
}
