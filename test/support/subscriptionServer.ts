// The subscription methods behind a real websocket on a free port, with the hub, the known bundles and transactions,
// and a call that holds up its batch until the test releases it.

import { z } from "zod";
import type { BundleRecord } from "../../relay/domain/bundleStatus.ts";
import type { TransactionRecord } from "../../relay/domain/record.ts";
import { type MethodDependencies, relayMethod } from "../../relay/ingress/methodDependencies.ts";
import { eth_subscribe, eth_unsubscribe } from "../../relay/ingress/methods/subscriptions.ts";
import { SubscriptionHub } from "../../relay/ingress/subscriptions.ts";
import { Followers } from "../../relay/status/announcer.ts";
import { systemClock } from "../../shared/clock.ts";
import { unknownStatus } from "../../shared/ethereum/statusRecord.ts";
import { addressReader, type CallContext } from "../../shared/http/callContext.ts";
import { rpcOverHttp } from "../../shared/http/handlers.ts";
import { RateLimiter } from "../../shared/http/rateLimit.ts";
import { createHttpServer } from "../../shared/http/server.ts";
import { UnreadBytes } from "../../shared/http/unreadBytes.ts";
import { RpcWebsocket } from "../../shared/http/websocket.ts";
import { createDispatcher } from "../../shared/jsonrpc/dispatch.ts";
import { methodTable } from "../../shared/jsonrpc/method.ts";
import { silentLogger } from "../../shared/log.ts";

/** A running server. */
export interface SubscriptionServer {
	/** `http://127.0.0.1:port` */
	readonly url: string;
	/** `ws://127.0.0.1:port` */
	readonly wsUrl: string;
	readonly hub: SubscriptionHub;
	/** What is known of bundles, by `owner hash`. */
	readonly bundles: Map<string, BundleRecord>;
	/** What is known of transactions, by hash; shown by their hash and stage. */
	readonly records: Map<string, TransactionRecord>;
	/** Awaited between a look at what is known of a transaction and the answer. */
	reading: () => Promise<void>;
	readonly followers: Followers;
	/** How many calls of `test_wait` wait. */
	readonly waiting: number;
	/** Lets them go. */
	release(): void;
	stop(): Promise<void>;
}

/** Starts it, with `aliases` for pending transactions; who is in front of it is believed (TRUST_PROXY 1). */
export async function startSubscriptionServer(aliases: readonly string[]): Promise<SubscriptionServer> {
	const log = silentLogger;
	const clock = systemClock;
	const hub = new SubscriptionHub({ log });
	const bundles = new Map<string, BundleRecord>();
	const records = new Map<string, TransactionRecord>();
	const followers = new Followers({ log });
	const waiting: (() => void)[] = [];
	const test_wait = relayMethod({
		name: "test_wait",
		summary: "Waits until it is released.",
		params: [],
		result: z.unknown(),
		handle: () => new Promise((resolve) => waiting.push(() => resolve("waited"))),
	});
	type Needed = "subscriptions" | "subscriptionAliases" | "bundles" | "records" | "following" | "statusView";
	const needs: Pick<MethodDependencies, Needed> = {
		subscriptions: hub,
		subscriptionAliases: aliases,
		bundles: { bundle: (owner, hash) => bundles.get(`${owner} ${hash}`) ?? null, standing: () => null },
		records: {
			async record(hash) {
				const record = records.get(hash) ?? null;
				await running.reading();
				return record;
			},
		},
		following: followers,
		statusView: ({ hash, stage }) => ({ ...unknownStatus(hash), stage }),
	};
	// These three methods need nothing else of the relay.
	const methods = methodTable([eth_subscribe, eth_unsubscribe, test_wait], needs as MethodDependencies);
	const dispatcher = createDispatcher<CallContext>({ maxBatch: 100 }, { methods, log, clock });
	const limiter = new RateLimiter({ rps: 0 }, { clock });
	const readAddress = addressReader({ trustProxy: 1 });
	const websocket = new RpcWebsocket(
		{ paths: ["/"], maxMessageBytes: 65_536 },
		{ dispatcher, limiter, unread: new UnreadBytes(), clock },
	);
	const server = createHttpServer(
		{ name: "test", host: "127.0.0.1", port: 0, rpcPaths: ["/"], routes: [], maxBodyBytes: 65_536 },
		{ post: rpcOverHttp({ dispatcher, limiter }), websocket, readAddress, log, clock },
	);
	await server.start();
	const release = (): void => {
		for (const one of waiting.splice(0)) one();
	};
	const running: SubscriptionServer = {
		url: `http://127.0.0.1:${server.port}`,
		wsUrl: `ws://127.0.0.1:${server.port}`,
		hub,
		...{ bundles, records, followers },
		reading: async () => {},
		get waiting() {
			return waiting.length;
		},
		release,
		async stop() {
			release();
			await server.stop();
		},
	};
	return running;
}
