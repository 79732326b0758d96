// What clients ask of the relay alone over websockets, above all subscriptions. These are the relay's as long as it is well.
// While it is out, heads and logs go on as the node or the fallback tells them, and when it is back every subscription is made
// anew there under the id that its client knows.

import { randomBytes } from "node:crypto";
import type { Background } from "../../shared/background.ts";
import { type Clock, pause } from "../../shared/clock.ts";
import { headerOf } from "../../shared/ethereum/rpcObjects.ts";
import type { CallContext, Connection } from "../../shared/http/callContext.ts";
import { RpcError } from "../../shared/jsonrpc/errors.ts";
import { type LogFilter, logCriteria, withRemoved } from "../../shared/jsonrpc/logs.ts";
import { checkParam } from "../../shared/jsonrpc/method.ts";
import type { Breaker, ChainReads } from "../domain/ports.ts";
import { ChainFollower, type ToldBlock } from "./chainFollower.ts";
import { LinkError, RelayLink, type RelayLinkOptions } from "./relayLink.ts";

export interface SubscriptionsOptions {
	/** Our relay's, http or https. */
	readonly relayUrl: string;
	/** What makes the relay believe who the client is. */
	readonly boostSecret?: string | undefined;
}

export interface SubscriptionsDependencies {
	/** The relay's. */
	readonly breaker: Breaker;
	readonly chain: ChainReads;
	readonly background: Pick<Background, "run">;
	readonly clock: Clock;
}

interface Subscription {
	/** As its client knows it: the relay's first one. */
	readonly id: string;
	readonly params: readonly unknown[];
	/** Which logs it asks for, where it asks for logs. */
	readonly filter: LogFilter;
	/** The relay's now; null while it is not there. */
	linkId: string | null;
	/** By hash: blocks that were there before it, those told by the relay or by us, those taken back. None is told twice. */
	readonly blocks: Map<string, BlockState>;
}

/** Subscriptions of one connection at most, as on the relay. */
const MAX_SUBSCRIPTIONS = 16;
/** Between two looks at the chain, and two tries to reach the relay, in ms. */
const LOOK_MS = 1_000;
/** Blocks that a subscription remembers to have told. */
const KEPT_HASHES = 128;
const TRY_AGAIN_LATER = 1013;
const ID_BYTES = 16;
const BLOCK_OF = { newHeads: /"hash":"(0x[0-9a-f]{64})"/, logs: /"blockHash":"(0x[0-9a-f]{64})"/ } as const;
const REMOVED = '"removed":true';

type ChainName = keyof typeof BLOCK_OF;
type BlockState = "before" | "byRelay" | "byChain" | "takenBack";

const OUT = new RpcError("unavailable", "no relay available: the relay is out");

/** Those of all connections. */
export class Subscriptions {
	readonly #options: SubscriptionsOptions;
	readonly #with: SubscriptionsDependencies;
	readonly #sessions = new Map<Connection, Session>();
	readonly #follower: ChainFollower;
	readonly #stopping = new AbortController();
	#isRunning = false;

	constructor(options: SubscriptionsOptions, dependencies: SubscriptionsDependencies) {
		this.#options = options;
		this.#with = dependencies;
		this.#follower = new ChainFollower(dependencies);
	}

	/** Looks no more; what is open ends with its connection. */
	close(): void {
		this.#stopping.abort();
	}

	/**
	 * Subscribes the call's connection; answers the id. Throws the relay's own error, or RpcError `unavailable` for what only
	 * the relay can tell while it is out.
	 */
	async subscribe(params: readonly unknown[], call: CallContext, connection: Connection): Promise<string> {
		return this.#session(call, connection).subscribe(params, call);
	}

	/** A call that only the relay serves, in the order in which they come. Throws as {@link subscribe}. */
	call(
		method: string,
		params: readonly unknown[],
		call: CallContext,
		connection: Connection,
	): Promise<unknown> {
		return this.#session(call, connection).call(method, params);
	}

	/** Whether the connection had it. */
	unsubscribe(id: string, connection: Connection): Promise<boolean> {
		return this.#sessions.get(connection)?.unsubscribe(id) ?? Promise.resolve(false);
	}

	#session({ client, origin }: CallContext, connection: Connection): Session {
		const known = this.#sessions.get(connection);
		if (known !== undefined) return known;
		const { relayUrl, boostSecret } = this.#options;
		const headers = {
			...(client.address === "unknown" ? {} : { "x-forwarded-for": client.address }),
			...(boostSecret === undefined ? {} : { "x-boost-auth": boostSecret }),
			...(origin === null ? {} : { origin }),
		};
		const session = new Session(
			{ relayUrl, headers },
			{ ...this.#with, connection, follower: this.#follower },
		);
		this.#sessions.set(connection, session);
		connection.onClose(() => {
			this.#sessions.delete(connection);
			session.close();
		});
		if (!this.#isRunning) this.#with.background.run("subscriptions", () => this.#run());
		return session;
	}

	/** Looks at the chain and for the relay as long as there is a connection that has used either. */
	async #run(): Promise<void> {
		const { clock, breaker } = this.#with;
		const { signal } = this.#stopping;
		const sessions = () => [...this.#sessions.values()];
		this.#isRunning = true;
		try {
			while (!signal.aborted && this.#sessions.size > 0) {
				if (breaker.isUnavailable) for (const session of sessions()) session.leave();
				if (sessions().some(({ wantsChain }) => wantsChain)) {
					await this.#follower.look();
					await Promise.all(sessions().map((session) => session.tell()));
				}
				await Promise.all(sessions().map((session) => session.restore()));
				await pause(clock, LOOK_MS, signal);
			}
		} finally {
			this.#follower.reset();
			this.#isRunning = false;
		}
	}
}

interface SessionDependencies extends SubscriptionsDependencies {
	readonly connection: Connection;
	readonly follower: ChainFollower;
}

/** The subscriptions of one connection. */
class Session {
	readonly #options: RelayLinkOptions;
	readonly #with: SessionDependencies;
	readonly #all = new Map<string, Subscription>();
	/** What comes before the answer that tells a subscription's id. */
	readonly #held = new Map<string, string[]>();
	#link: Promise<RelayLink> | null = null;
	#isClosed = false;
	#wantsChain = false;
	/** For one look behind a return of the relay's: what it told nobody in between is told then. */
	#catchesUp = false;

	constructor(options: RelayLinkOptions, dependencies: SessionDependencies) {
		this.#options = options;
		this.#with = dependencies;
	}

	/** Whether it has asked for any of the chain's. */
	get wantsChain(): boolean {
		return this.#wantsChain;
	}

	async subscribe(params: readonly unknown[], call: CallContext): Promise<string> {
		if (chainName(params) !== null) {
			this.#wantsChain = true;
			await this.#with.follower.look();
		}
		const linkId = await this.#ask(params);
		if (linkId === null) await this.#judge(params);
		const id = linkId ?? `0x${randomBytes(ID_BYTES).toString("hex")}`;
		const blocks = new Map(this.#with.follower.recent.map(({ hash }) => [hash, "before" as BlockState]));
		this.#all.set(id, { id, params, filter: filterOf(params), linkId, blocks });
		const held: string[] = [];
		this.#held.set(id, held);
		const release = (): void => {
			this.#held.delete(id);
			for (const text of held) this.#with.connection.send(text);
		};
		if (call.exchange === null) release();
		else call.exchange.onAnswered(release);
		return id;
	}

	async call(method: string, params: readonly unknown[]): Promise<unknown> {
		if (this.#with.breaker.isUnavailable) throw OUT;
		try {
			this.#link ??= this.#connect();
			return await (await this.#link).call(method, params);
		} catch (thrown) {
			throw thrown instanceof LinkError ? OUT : thrown;
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

	/** Tells heads and logs that the relay does not. */
	async tell(): Promise<void> {
		const catchesUp = this.#catchesUp;
		this.#catchesUp = false;
		const { recent, left } = this.#with.follower;
		for (const one of this.#all.values()) {
			const name = chainName(one.params);
			if (name === null || (one.linkId !== null && !catchesUp)) continue;
			for (const block of left) {
				const state = one.blocks.get(block.hash);
				if (state === "byRelay" || state === "byChain") await this.#takeBack(one, name, block);
			}
			for (const block of recent) {
				// The next ones come behind it.
				if (!one.blocks.has(block.hash) && !(await this.#tellBlock(one, name, block))) break;
			}
		}
	}

	/** The relay is out: a websocket on which nothing comes is as good as none. */
	leave(): void {
		this.#drop();
		for (const one of this.#all.values()) one.linkId = null;
	}

	/** Makes what the relay does not have anew there, where it is back. */
	async restore(): Promise<void> {
		const lost = [...this.#all.values()].filter(({ linkId }) => linkId === null);
		if (lost.length === 0 || this.#with.breaker.isUnavailable) return;
		for (const one of lost) {
			try {
				const linkId = await this.#ask(one.params);
				if (linkId === null) return;
				one.linkId = linkId;
			} catch {
				// The relay does not take it any more: its client must hear of that.
				this.#with.connection.close(TRY_AGAIN_LATER, "subscription lost");
				return;
			}
		}
		this.#catchesUp = true;
	}

	close(): void {
		this.#isClosed = true;
		this.#all.clear();
		this.#drop();
	}

	/** The relay's id of a new subscription; null where it is out. Throws its error. */
	async #ask(params: readonly unknown[]): Promise<string | null> {
		if (this.#with.breaker.isUnavailable) return null;
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
		const { clock } = this.#with;
		const lose = (): void => {
			if (this.#link === opening) this.leave();
		};
		const opening = RelayLink.open(this.#options, {
			clock,
			onNotification: (id, text) => this.#pass(id, text),
			onClose: lose,
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

	/** Throws RpcError `unavailable`, `limit` or `invalidParams` where it can't be told without the relay. */
	async #judge(params: readonly unknown[]): Promise<void> {
		if (this.#all.size >= MAX_SUBSCRIPTIONS)
			throw new RpcError("limit", `limit exceeded: ${MAX_SUBSCRIPTIONS} subscriptions a connection`);
		const name = chainName(params);
		if (name === "logs") checkParam("filter", logCriteria, params[1] ?? {});
		if (name === null || !(await this.#with.follower.canTell())) throw OUT;
	}

	/** A notification of the relay's. */
	#pass(linkId: string, text: string): void {
		const one = [...this.#all.values()].find((known) => known.linkId === linkId);
		if (one === undefined) return;
		const name = chainName(one.params);
		const hash = name === null ? undefined : BLOCK_OF[name].exec(text)?.[1];
		if (hash !== undefined) {
			const isRemoved = text.includes(REMOVED);
			if (!isRemoved && one.blocks.get(hash) === "byChain") return;
			remember(one, hash, isRemoved ? "takenBack" : "byRelay");
		}
		this.#send(one, linkId === one.id ? text : text.replace(linkId, one.id));
	}

	/** False where nobody could tell it now. */
	async #tellBlock(one: Subscription, name: ChainName, block: ToldBlock): Promise<boolean> {
		if (name === "newHeads") this.#notify(one, headerOf(block));
		else if (!(await this.#tellLogs(one, block, false))) return false;
		remember(one, block.hash, "byChain");
		return true;
	}

	async #takeBack(one: Subscription, name: ChainName, block: ToldBlock): Promise<void> {
		const isDone = name === "newHeads" || (await this.#tellLogs(one, block, true));
		if (isDone) remember(one, block.hash, "takenBack");
	}

	async #tellLogs(one: Subscription, block: ToldBlock, removed: boolean): Promise<boolean> {
		const logs = await this.#with.follower.logs(block, one.filter);
		for (const log of logs ?? []) this.#notify(one, withRemoved(log, removed));
		return logs !== null;
	}

	#notify(one: Subscription, result: object): void {
		const params = { subscription: one.id, result };
		this.#send(one, JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
	}

	#send({ id }: Subscription, text: string): void {
		const held = this.#held.get(id);
		if (held !== undefined) held.push(text);
		else if (this.#all.has(id)) this.#with.connection.send(text);
	}
}

/** Which of those that a node can tell, too. */
function chainName([name]: readonly unknown[]): ChainName | null {
	return name === "newHeads" || name === "logs" ? name : null;
}

function filterOf([, criteria]: readonly unknown[]): LogFilter {
	return logCriteria.safeParse(criteria ?? {}).data?.filter ?? { address: [], topics: [] };
}

function remember({ blocks }: Subscription, hash: string, state: BlockState): void {
	blocks.set(hash, state);
	const [oldest] = blocks.keys();
	if (blocks.size > KEPT_HASHES && oldest !== undefined) blocks.delete(oldest);
}
