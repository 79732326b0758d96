// `eth_subscribe` and `eth_unsubscribe`, on websockets only.

import { z } from "zod";
import { parseHash } from "../../../shared/ethereum/hex.ts";
import type { CallContext, Connection } from "../../../shared/http/callContext.ts";
import { methodNotFound } from "../../../shared/jsonrpc/dispatch.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { logCriteria } from "../../../shared/jsonrpc/logs.ts";
import { checkParam } from "../../../shared/jsonrpc/method.ts";
import {
	NEW_PENDING_TRANSACTIONS,
	NO_PENDING_TRANSACTIONS_TEXT,
	PENDING_ID,
} from "../../../shared/jsonrpc/pendingTransactions.ts";
import {
	bundleTopic,
	LOGS,
	NEW_HEADS,
	PARTIAL_PENDING_TRANSACTIONS,
	PENDING_TRANSACTIONS,
	SUBSCRIPTION_NAMES,
	transactionTopic,
} from "../../domain/endpoints.ts";
import { bundleOwner } from "../bundleRequests.ts";
import { bundleBlockView } from "../bundleViews.ts";
import { type MethodDependencies, relayMethod } from "../methodDependencies.ts";

export const eth_subscribe = relayMethod({
	name: "eth_subscribe",
	summary:
		"Over a websocket: pending transactions without their signatures, new heads, logs, or the status of a transaction or a bundle, as notifications.",
	params: [
		// Checked in `handle`, so that HTTP always gets the same answer, and a wrong name is reported first.
		{ name: "name", schema: z.string().catch("") },
		{
			name: "hash",
			schema: z
				.unknown()
				.optional()
				.describe(
					"of the transaction for service_transactionStatus, of the bundle for service_bundleStatus: 32 bytes as 0x hex; for logs, in its place, a filter with address and topics",
				),
		},
	],
	result: z.string().describe("the subscription's id: 16 bytes as 0x hex"),
	answeredWithoutId: true,
	handle([name, given], context, dependencies) {
		const { connection, message } = context;
		if (connection === null) throw methodNotFound("eth_subscribe", "over a websocket only");
		if (name === "service_transactionStatus") {
			return subscribeToTransaction(connection, readHash(given, "hash"), context, dependencies);
		}
		if (name === "service_bundleStatus") {
			return subscribeToBundle(connection, readHash(given, "bundleHash"), context, dependencies);
		}
		if (name === "logs") {
			const { filter } = checkParam("filter", logCriteria, given ?? {});
			return dependencies.subscriptions.subscribe(connection, `${LOGS}${JSON.stringify(filter)}`, message);
		}
		if (name === NEW_PENDING_TRANSACTIONS) {
			message?.onAnswered(() => connection.send(NO_PENDING_TRANSACTIONS_TEXT));
			return PENDING_ID;
		}
		const topic = topicOf(name, dependencies.subscriptionAliases);
		if (given !== undefined) throw invalid("hash: expected nothing, this subscription has no such");
		return dependencies.subscriptions.subscribe(connection, topic, message);
	},
});

/** `name` is the parameter's name in the error. */
function readHash(given: unknown, name: string): string {
	const hash = typeof given === "string" ? parseHash(given) : null;
	if (hash === null) throw invalid(`${name}: expected a hash of 32 bytes as 0x hex`);
	return hash;
}

/** Sends the bundle's status in each of its blocks at once. An unknown bundle, or another client's, sends nothing. */
function subscribeToBundle(
	connection: Connection,
	bundleHash: string,
	context: CallContext,
	{ subscriptions, bundles }: MethodDependencies,
): string {
	const owner = bundleOwner(context);
	const id = subscriptions.subscribe(connection, bundleTopic(owner, bundleHash), context.message);
	const record = bundles.bundle(owner, bundleHash);
	if (record === null) return id;
	for (const status of record.blocks) {
		subscriptions.notify(connection, id, () => bundleBlockView(record, status, bundles.standing(record)));
	}
	return id;
}

/** The topic of a subscription without parameters. */
function topicOf(name: string, aliases: readonly string[]): string {
	if (name === "newHeads") return NEW_HEADS;
	if (name === PARTIAL_PENDING_TRANSACTIONS || aliases.includes(name)) return PENDING_TRANSACTIONS;
	throw invalid(`name: expected one of ${[...SUBSCRIPTION_NAMES, ...aliases].join(", ")}`);
}

function invalid(what: string): RpcError {
	return new RpcError("invalidParams", `invalid params: ${what}`);
}

export const eth_unsubscribe = relayMethod({
	name: "eth_unsubscribe",
	summary: "Over a websocket: ends a subscription of this connection.",
	params: [{ name: "id", schema: z.string({ error: "expected the id of a subscription" }) }],
	result: z.boolean().describe("whether this connection had it"),
	answeredWithoutId: true,
	handle([id], { connection }, { subscriptions }) {
		if (connection === null) throw methodNotFound("eth_unsubscribe", "over a websocket only");
		return id === PENDING_ID || subscriptions.unsubscribe(connection, id);
	},
});

/**
 * Subscribes `connection` to the transaction with this hash, lower case; returns the subscription's id. Each result is the
 * object of `GET /tx/{hash}`: first the current status if the relay has a record, then the status after each change. For an
 * unknown transaction nothing is sent until it arrives.
 */
async function subscribeToTransaction(
	connection: Connection,
	hash: string,
	{ message }: CallContext,
	{ subscriptions, records, followers, statusView }: MethodDependencies,
): Promise<string> {
	let hasChanged = false;
	const unfollow = followers.follow(hash, () => {
		hasChanged = true;
	});
	try {
		let record = await records.record(hash);
		// It changed while the store was read. Once more is enough: what changes is in memory, and the record there is no copy.
		if (hasChanged) record = await records.record(hash);
		const id = subscriptions.subscribe(connection, transactionTopic(hash), message);
		if (record !== null) subscriptions.notify(connection, id, () => statusView(record));
		return id;
	} finally {
		unfollow();
	}
}
