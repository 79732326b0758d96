// `eth_subscribe` and `eth_unsubscribe`, on websockets only.

import { z } from "zod";
import { parseHash } from "../../../shared/ethereum/hex.ts";
import type { CallContext, Connection } from "../../../shared/http/callContext.ts";
import { RpcError } from "../../../shared/jsonrpc/errors.ts";
import { logCriteria } from "../../../shared/jsonrpc/logs.ts";
import { checkParam } from "../../../shared/jsonrpc/method.ts";
import { methodNotFound } from "../../../shared/jsonrpc/methodNotFound.ts";
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
import { type MethodDependencies, relayMethod } from "../methodDependencies.ts";

export const eth_subscribe = relayMethod({
	name: "eth_subscribe",
	summary:
		"Over a websocket: pending transactions without their signatures, new heads, logs, or the status of a transaction or a bundle, as notifications.",
	params: [
		// Checked in `handle`, so that HTTP always gets the same answer, and a wrong name is reported
		// first.
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
			return subscribeTo(transactionTopic(readHash(given, "hash")), connection, context, dependencies);
		}
		if (name === "service_bundleStatus") {
			const topic = bundleTopic(bundleOwner(context), readHash(given, "bundleHash"));
			return subscribeTo(topic, connection, context, dependencies);
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
		if (given !== undefined) throw invalid("hash: expected none for this subscription");
		return dependencies.subscriptions.subscribe(connection, topic, message);
	},
});

/** `name` is the parameter's name in the error. */
function readHash(given: unknown, name: string): string {
	const hash = typeof given === "string" ? parseHash(given) : null;
	if (hash === null) throw invalid(`${name}: expected a hash of 32 bytes as 0x hex`);
	return hash;
}

/**
 * Subscribes, and sends the current results at once. An unknown topic, or another client's, sends
 * nothing until a result comes.
 */
function subscribeTo(
	topic: string,
	connection: Connection,
	{ message }: CallContext,
	{ subscriptions, core }: MethodDependencies,
): Promise<string> {
	return core.follow(topic, (current) => {
		const id = subscriptions.subscribe(connection, topic, message);
		for (const one of current) subscriptions.notify(connection, id, () => one);
		return id;
	});
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
