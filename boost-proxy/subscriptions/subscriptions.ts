// Forwards websocket calls that only the relay serves, mainly subscriptions, to the relay. While it
// is unavailable, heads and logs come from the node or the fallback. Once it is back, subscriptions
// are made again there and keep the id that the client knows. A client that has missed
// notifications for good is closed instead.

import { randomBytes } from "node:crypto";
import type { LookupFunction } from "node:net";
import type { Background } from "../../shared/background.ts";
import { clientHeaders } from "../../shared/client.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import type { CallContext, Connection } from "../../shared/http/callContext.ts";
import { type LaterMessages, MadeMessages } from "../../shared/http/laterMessages.ts";
import { logResults, Notifications, oneResult, type Results } from "../../shared/http/notifications.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type LogFilter, logCriteria } from "../../shared/jsonrpc/logs.ts";
import { checkParam } from "../../shared/jsonrpc/method.ts";
import {
	NEW_PENDING_TRANSACTIONS,
	NO_PENDING_TRANSACTIONS_TEXT,
	PENDING_ID,
} from "../../shared/jsonrpc/pendingTransactions.ts";
import { LinkError } from "../../shared/link/link.ts";
import { OUTGOING_HEADERS } from "../../shared/outgoing/headers.ts";
import { REQUEST_ID } from "../../shared/requestId.ts";
import { EventLoopQueue } from "../../shared/shares/scheduler.ts";
import { viaFor } from "../domain/loops.ts";
import type { Breaker, ChainReads, ReportedHeads } from "../domain/ports.ts";
import { type ChainBlock, ChainFollower } from "./chainFollower.ts";
import { type LinkNotification, RelayLink, type RelayLinkOptions } from "./relayLink.ts";

export interface SubscriptionsOptions {
	/** Our relay's http or https URL. */
	readonly relayUrl: string;
	/** Authenticates boost to the relay, which then accepts the client's address. */
	readonly boostSecret?: string | undefined;
	/** This boost's entry in `Via`. */
	readonly via: string;
}

export interface SubscriptionsDependencies {
	/** The relay's. */
	readonly breaker: Breaker;
	readonly chain: ChainReads;
	readonly background: Pick<Background, "run">;
	/** Receives the heads that the relay announces. */
	readonly reported: ReportedHeads;
	/** Finds the relay's addresses. Default: Node's own. */
	readonly lookup?: LookupFunction | undefined;
	readonly clock: Clock;
}

interface Subscription {
	/** The id that the client knows: the id of the first subscription at the relay. */
	readonly id: string;
	readonly params: readonly unknown[];
	/** Used only by subscriptions to logs. */
	readonly filter: LogFilter;
	/** The current id at the relay; null while there is none. */
	linkId: string | null;
	/**
	 * By hash: blocks older than it, and blocks that the relay or boost notified or reported as
	 * removed. No block is notified twice.
	 */
	readonly blocks: Map<string, BlockState>;
}

/** The maximum number of subscriptions of one connection, as on the relay. */
const MAX_SUBSCRIPTIONS = 16;
/** Time between two reads of the chain, and two attempts to reach the relay, in ms. */
const POLL_MS = 1_000;
/** The maximum number of blocks that a subscription remembers. */
const KEPT_HASHES = 128;
const TRY_AGAIN_LATER = 1013;
const ID_BYTES = 16;
const BLOCK_OF = { newHeads: /"hash":"(0x[0-9a-f]{64})"/, logs: /"blockHash":"(0x[0-9a-f]{64})"/ } as const;
const NUMBER = /"number":"(0x[0-9a-f]{1,13})"/;
const REMOVED = '"removed":true';
/** Only the end of a longer log is searched: all fields besides its data are shorter. */
const LONG_LOG = 4_096;

type ChainName = keyof typeof BLOCK_OF;
type BlockState = "before" | "byRelay" | "byChain" | "removed";

const UNAVAILABLE = new RpcError("unavailable", "no relay available: the relay is down");

/** The subscriptions of all connections. */
export class Subscriptions {
	readonly #options: SubscriptionsOptions;
	readonly #dependencies: SubscriptionsDependencies;
	readonly #sessions = new Map<Connection, Session>();
	readonly #follower: ChainFollower;
	readonly #turns: EventLoopQueue;
	readonly #stopping = new AbortController();
	#isRunning = false;

	constructor(options: SubscriptionsOptions, dependencies: SubscriptionsDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
		this.#follower = new ChainFollower(dependencies);
		this.#turns = new EventLoopQueue(dependencies);
	}

	/** Stops polling. Subscriptions end with their connections. */
	close(): void {
		this.#stopping.abort();
	}

	/**
	 * Subscribes the call's connection and returns the id. Throws the relay's error, or RpcError
	 * `unavailable` if the relay is unavailable and no other source can serve it.
	 */
	async subscribe(params: readonly unknown[], call: CallContext, connection: Connection): Promise<string> {
		if (params[0] === NEW_PENDING_TRANSACTIONS) {
			// Like the relay, even while it is unavailable.
			call.message?.onAnswered(() => connection.send(NO_PENDING_TRANSACTIONS_TEXT));
			return PENDING_ID;
		}
		return this.#session(call, connection).subscribe(params, call);
	}

	/**
	 * Makes a call that only the relay serves; calls keep their order. Throws like {@link subscribe}.
	 */
	call(
		method: string,
		params: readonly unknown[],
		call: CallContext,
		connection: Connection,
	): Promise<unknown> {
		return this.#session(call, connection).call(method, params);
	}

	/** Returns whether the connection had the subscription. */
	unsubscribe(id: string, connection: Connection): Promise<boolean> {
		if (id === PENDING_ID) return Promise.resolve(true);
		return this.#sessions.get(connection)?.unsubscribe(id) ?? Promise.resolve(false);
	}

	#session({ client, origin, requestId }: CallContext, connection: Connection): Session {
		const known = this.#sessions.get(connection);
		if (known !== undefined) return known;
		const { relayUrl, boostSecret, via } = this.#options;
		const headers = {
			...OUTGOING_HEADERS,
			via: viaFor(client.via, via),
			...(client.address === "unknown" ? {} : clientHeaders(client.address)),
			...(boostSecret === undefined ? {} : { "x-boost-auth": boostSecret }),
			...(origin === null ? {} : { origin }),
			...(requestId === null ? {} : { [REQUEST_ID]: requestId }),
		};
		const session = new Session(
			{ relayUrl, headers },
			{ ...this.#dependencies, connection, follower: this.#follower, turns: this.#turns },
		);
		this.#sessions.set(connection, session);
		connection.onClose(() => {
			this.#sessions.delete(connection);
			session.close();
		});
		if (!this.#isRunning) this.#dependencies.background.run("subscriptions", () => this.#run());
		return session;
	}

	/** Polls the chain and restores subscriptions as long as there are sessions. */
	async #run(): Promise<void> {
		const { clock, breaker } = this.#dependencies;
		const { signal } = this.#stopping;
		this.#isRunning = true;
		try {
			while (!signal.aborted && this.#sessions.size > 0) {
				if (breaker.isUnavailable) await this.#each((session) => session.leaveRelay());
				if ([...this.#sessions.values()].some(({ wantsChain }) => wantsChain)) {
					await this.#follower.update();
					await this.#each((session) => session.notify());
				}
				await this.#each((session) => session.restore());
				await pause(clock, POLL_MS, signal);
			}
		} finally {
			this.#follower.reset();
			this.#isRunning = false;
		}
	}

	/** Runs `work` for each session, in turns of the event loop. */
	async #each(work: (session: Session) => Promise<void> | void): Promise<void> {
		const sessions = [...this.#sessions];
		await Promise.all(
			sessions.map(([{ client }, session]) => this.#turns.result(client, () => work(session))),
		);
	}
}

interface SessionDependencies extends SubscriptionsDependencies {
	readonly connection: Connection;
	readonly follower: ChainFollower;
	readonly turns: EventLoopQueue;
}

/** The subscriptions of one connection. */
class Session {
	readonly #options: RelayLinkOptions;
	readonly #dependencies: SessionDependencies;
	readonly #all = new Map<string, Subscription>();
	/**
	 * Notifications that wait until the answer with the subscription's id is sent, as unread bytes.
	 */
	readonly #held = new Map<string, { readonly messages: LaterMessages; readonly release: () => void }[]>();
	#link: Promise<RelayLink> | null = null;
	#isClosed = false;
	#wantsChain = false;
	/** After the relay's return: notify again of blocks that it did not report in between. */
	#catchesUp = false;

	constructor(options: RelayLinkOptions, dependencies: SessionDependencies) {
		this.#options = options;
		this.#dependencies = dependencies;
	}

	/** Whether it has subscribed to heads or logs. */
	get wantsChain(): boolean {
		return this.#wantsChain;
	}

	async subscribe(params: readonly unknown[], call: CallContext): Promise<string> {
		if (chainName(params) !== null) {
			this.#wantsChain = true;
			await this.#dependencies.follower.update();
		}
		const linkId = await this.#ask(params);
		if (linkId === null) await this.#checkServable(params);
		const id = linkId ?? `0x${randomBytes(ID_BYTES).toString("hex")}`;
		const blocks = new Map(
			this.#dependencies.follower.recent.map(({ hash }) => [hash, "before" as BlockState]),
		);
		this.#all.set(id, { id, params, filter: filterOf(params), linkId, blocks });
		if (call.message !== null) {
			this.#held.set(id, []);
			call.message.onAnswered(() => this.#release(id));
		}
		return id;
	}

	async call(method: string, params: readonly unknown[]): Promise<unknown> {
		if (this.#dependencies.breaker.isUnavailable) throw UNAVAILABLE;
		try {
			this.#link ??= this.#connect();
			return await (await this.#link).call(method, params);
		} catch (thrown) {
			throw thrown instanceof LinkError ? UNAVAILABLE : thrown;
		} finally {
			if (this.#isClosed) this.#drop();
		}
	}

	async unsubscribe(id: string): Promise<boolean> {
		const known = this.#all.get(id);
		if (known === undefined) return false;
		this.#all.delete(id);
		if (known.linkId !== null) await this.call("eth_unsubscribe", [known.linkId]).catch(() => null);
		return true;
	}

	/** Notifies of heads and logs that the relay does not report. */
	async notify(): Promise<void> {
		const catchesUp = this.#catchesUp;
		this.#catchesUp = false;
		const { recent, left } = this.#dependencies.follower;
		for (const one of this.#all.values()) {
			const name = chainName(one.params);
			if (name === null || (one.linkId !== null && !catchesUp)) continue;
			for (const block of left) {
				const state = one.blocks.get(block.hash);
				if (state === "byRelay" || state === "byChain") await this.#notifyRemoved(one, name, block);
			}
			for (const block of recent) {
				// Later blocks wait, to keep their order.
				if (!one.blocks.has(block.hash) && !(await this.#notifyBlock(one, name, block))) break;
			}
		}
	}

	/** Closes the websocket to an unavailable relay. */
	leaveRelay(): void {
		this.#drop();
		for (const one of this.#all.values()) one.linkId = null;
	}

	/**
	 * Makes missing subscriptions again at an available relay. A client that has missed notifications
	 * for good is closed with 1012, as at a relay that restarts.
	 */
	async restore(): Promise<void> {
		const lost = [...this.#all.values()].filter(({ linkId }) => linkId === null);
		if (lost.length === 0 || this.#dependencies.breaker.isUnavailable) return;
		for (const one of lost) {
			try {
				const linkId = await this.#ask(one.params);
				if (linkId === null) return;
				one.linkId = linkId;
			} catch {
				// The relay refuses the subscription now, so the client must notice.
				this.#dependencies.connection.close(TRY_AGAIN_LATER, "subscription lost");
				return;
			}
		}
		this.#catchesUp = true;
		if (lost.some(({ params }) => !isCaughtUp(params))) this.#dependencies.connection.finish();
	}

	close(): void {
		this.#isClosed = true;
		this.#all.clear();
		this.#drop();
	}

	/** Sends the waiting notifications, now that the client has the id. */
	#release(id: string): void {
		const held = this.#held.get(id) ?? [];
		this.#held.delete(id);
		for (const { messages, release } of held) {
			release();
			this.#dependencies.connection.sendLater(messages);
		}
	}

	/** The relay's id of a new subscription; null if it is unavailable. Throws its error. */
	async #ask(params: readonly unknown[]): Promise<string | null> {
		if (this.#dependencies.breaker.isUnavailable) return null;
		try {
			this.#link ??= this.#connect();
			const link = await this.#link;
			return (await link.call("eth_subscribe", params)) as string;
		} catch (thrown) {
			if (!(thrown instanceof LinkError)) throw thrown;
			return null;
		} finally {
			if (this.#isClosed) this.#drop();
		}
	}

	#connect(): Promise<RelayLink> {
		const { clock, lookup, connection, turns } = this.#dependencies;
		const lose = (): void => {
			if (this.#link === opening) this.leaveRelay();
		};
		const end = (code: number): void => {
			// The client reads too slowly or its subscriptions cost too much, here as elsewhere.
			if (code === TRY_AGAIN_LATER && this.#link === opening) connection.close(code, "too slow");
			lose();
		};
		const opening = RelayLink.open(this.#options, {
			clock,
			lookup,
			inTurn: (work) => turns.run(connection.client, work),
			// Held notifications count as unread, and the answers that release them are still to come.
			onDrained: (listener) => (this.#held.size > 0 ? listener() : connection.onDrained(listener)),
			onNotifications: (notifications) => this.#pass(notifications),
			onClose: end,
		});
		opening.catch(lose);
		return opening;
	}

	#drop(): void {
		const link = this.#link;
		this.#link = null;
		link?.then(
			(open) => open.close(),
			() => {},
		);
	}

	/**
	 * Throws RpcError `unavailable`, `limit` or `invalidParams` if the subscription can't be served
	 * without the relay.
	 */
	async #checkServable(params: readonly unknown[]): Promise<void> {
		if (this.#all.size >= MAX_SUBSCRIPTIONS)
			throw new RpcError("limit", `limit exceeded: ${MAX_SUBSCRIPTIONS} subscriptions per connection`);
		const name = chainName(params);
		if (name === "logs") checkParam("filter", logCriteria, params[1] ?? {});
		// The relay would refuse it when it returns.
		if (name === "newHeads" && params[1] != null)
			throw new RpcError("invalidParams", "invalid params: hash: expected none for this subscription");
		if (name === null || !(await this.#dependencies.follower.isReadable())) throw UNAVAILABLE;
	}

	/** Forwards notifications from the relay. */
	#pass(notifications: readonly LinkNotification[]): void {
		const passed: Buffer[] = [];
		for (const { id, message } of notifications) {
			const one = this.#withLinkId(id);
			if (one === null || !this.#isNew(one, message)) continue;
			const own = id === one.id ? message : renamed(message, id, one.id);
			if (this.#held.has(one.id)) this.#send(one, new MadeMessages([own]));
			else passed.push(own);
		}
		if (passed.length > 0) this.#dependencies.connection.sendLater(new MadeMessages(passed));
	}

	#withLinkId(linkId: string): Subscription | null {
		for (const one of this.#all.values()) if (one.linkId === linkId) return one;
		return null;
	}

	/** Records the block that the relay reports to `one`; false if it was reported before. */
	#isNew(one: Subscription, message: Buffer): boolean {
		const name = chainName(one.params);
		if (name === null) return true;
		const text = message.toString("latin1", message.length > LONG_LOG ? message.length - LONG_LOG : 0);
		const hash = BLOCK_OF[name].exec(text)?.[1];
		if (hash === undefined) return true;
		const isRemoved = text.includes(REMOVED);
		const known = one.blocks.get(hash);
		if (!isRemoved && known === "byChain") return false;
		if (name === "newHeads") {
			// A relay that comes back some blocks behind announces them again.
			if (known === "byRelay") return false;
			const number = NUMBER.exec(text)?.[1];
			if (number !== undefined) this.#dependencies.reported.sawHead(Number(number), "relay");
		}
		remember(one, hash, isRemoved ? "removed" : "byRelay");
		return true;
	}

	/** Returns false if the block's logs are unreadable now. */
	async #notifyBlock(one: Subscription, name: ChainName, block: ChainBlock): Promise<boolean> {
		if (name === "newHeads") {
			this.#dependencies.reported.sawHead(Number(block.number), "fallback");
			this.#notify(one, oneResult(this.#dependencies.follower.header(block)));
		} else if (!(await this.#notifyLogs(one, block, false))) return false;
		remember(one, block.hash, "byChain");
		return true;
	}

	async #notifyRemoved(one: Subscription, name: ChainName, block: ChainBlock): Promise<void> {
		const isDone = name === "newHeads" || (await this.#notifyLogs(one, block, true));
		if (isDone) remember(one, block.hash, "removed");
	}

	async #notifyLogs(one: Subscription, block: ChainBlock, removed: boolean): Promise<boolean> {
		const { follower, turns, connection } = this.#dependencies;
		const logs = await follower.logs(block);
		if (logs === null) return false;
		await turns.result(connection.client, () => {
			const selected = logs.select(one.filter, removed);
			if (selected.heads.length > 0) this.#notify(one, logResults(selected));
		});
		return true;
	}

	#notify(one: Subscription, results: Results): void {
		this.#send(one, new Notifications(one.id, results));
	}

	#send({ id }: Subscription, messages: LaterMessages): void {
		const { connection } = this.#dependencies;
		const held = this.#held.get(id);
		if (held !== undefined) held.push({ messages, release: connection.hold(messages.bytes) });
		else if (this.#all.has(id)) connection.sendLater(messages);
	}
}

/** The kind of subscription if a node can serve it too, else null. */
function chainName([name]: readonly unknown[]): ChainName | null {
	return name === "newHeads" || name === "logs" ? name : null;
}

/**
 * Whether a renewed subscription misses nothing: boost sends the blocks between, or the relay the
 * whole status.
 */
function isCaughtUp(params: readonly unknown[]): boolean {
	return chainName(params) !== null || params[0] === "service_transactionStatus";
}

function filterOf([, criteria]: readonly unknown[]): LogFilter {
	return logCriteria.safeParse(criteria ?? {}).data?.filter ?? { address: [], topics: [] };
}

/** `message` with another subscription id. */
function renamed(message: Buffer, id: string, own: string): Buffer {
	const at = message.indexOf(id);
	return Buffer.concat([message.subarray(0, at), Buffer.from(own), message.subarray(at + id.length)]);
}

function remember({ blocks }: Subscription, hash: string, state: BlockState): void {
	blocks.set(hash, state);
	const [oldest] = blocks.keys();
	if (blocks.size > KEPT_HASHES && oldest !== undefined) blocks.delete(oldest);
}
