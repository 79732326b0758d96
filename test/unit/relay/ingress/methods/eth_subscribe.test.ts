// eth_subscribe and eth_unsubscribe over a real websocket: names and aliases, refusals, the order of id and
// notifications on the wire, and a bundle's status for the one who sent it alone. A transaction's status has a file of its
// own.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { BundleRecord } from "../../../../../relay/domain/bundleStatus.ts";
import { bundleTopic, NEW_HEADS, PENDING_TRANSACTIONS } from "../../../../../relay/domain/endpoints.ts";
import { WsClient, type WsMessage } from "../../../../support/clients.ts";
import { type SubscriptionServer, startSubscriptionServer } from "../../../../support/feeds.ts";
import { until } from "../../../../support/until.ts";

const FEED = "service_partialPendingTransactions";
const ALIASES = ["mevblocker_partialPendingTransactions", "another-name"];
const HASH = `0x${"ab".repeat(32)}`;
const ID = /^0x[0-9a-f]{32}$/;

let server: SubscriptionServer;
before(async () => {
	server = await startSubscriptionServer(ALIASES);
});
after(() => server.stop());

const call = (method: string, params: unknown, id: unknown = 1) => ({ jsonrpc: "2.0", id, method, params });
const subscribe = (...params: unknown[]) => call("eth_subscribe", params);

interface Notification extends WsMessage {
	readonly method?: string;
	readonly params?: { readonly subscription: string; readonly result: unknown };
}

async function withClient(work: (client: WsClient) => Promise<void>, address?: string): Promise<void> {
	const client = await WsClient.open(
		server.wsUrl,
		address === undefined ? {} : { headers: { "x-forwarded-for": address } },
	);
	try {
		await work(client);
	} finally {
		const { hub } = server;
		client.terminate();
		await until("nothing of the connection is kept", () => hub.size === 0);
	}
}

async function ask(client: WsClient, message: unknown): Promise<WsMessage> {
	client.send(message);
	return client.next();
}

describe("subscribing", () => {
	const NAMES = [
		[FEED, PENDING_TRANSACTIONS],
		...ALIASES.map((name) => [name, PENDING_TRANSACTIONS] as const),
		["newHeads", NEW_HEADS],
	] as const;
	for (const [name, topic] of NAMES) {
		test(`${name} is answered by an id and heard from then on`, () =>
			withClient(async (client) => {
				const { result: id } = await ask(client, subscribe(name));
				assert.match(String(id), ID);
				server.hub.publish(topic, () => ({ number: "0x1" }));
				assert.deepEqual(await client.next(), {
					jsonrpc: "2.0",
					method: "eth_subscription",
					params: { subscription: id, result: { number: "0x1" } },
				});
			}));
	}

	test("parameters that clients fill up with null are as good as none", () =>
		withClient(async (client) => {
			assert.match(String((await ask(client, subscribe("newHeads", null))).result), ID);
		}));

	test("without jsonrpc and with an id of text, as searchers' examples have it", () =>
		withClient(async (client) => {
			const answer = await ask(client, { id: "x", method: "eth_subscribe", params: [FEED] });
			assert.deepEqual([answer.id, ID.test(String(answer.result))], ["x", true]);
		}));

	const EXPECTED = `name: expected one of ${FEED}, newHeads, logs, service_transactionStatus, service_bundleStatus, ${ALIASES.join(", ")}`;
	const REFUSED: readonly (readonly [string, readonly unknown[], string])[] = [
		["no name", [], EXPECTED],
		["a number for a name", [1], EXPECTED],
		[
			"logs of no address",
			["logs", { address: HASH }],
			"filter.address: expected an address of 20 bytes as 0x hex, or a list of them",
		],
		["newPendingTransactions", ["newPendingTransactions"], EXPECTED],
		["another case", ["newheads"], EXPECTED],
		["an inherited name", ["constructor"], EXPECTED],
		[
			"a status without a hash",
			["service_bundleStatus"],
			"bundleHash: expected a hash of 32 bytes as 0x hex",
		],
		[
			"a status of no hash",
			["service_bundleStatus", "0x12"],
			"bundleHash: expected a hash of 32 bytes as 0x hex",
		],
		...[[], ["0x12"], ["0x"], [7], [HASH.slice(2)], [`${HASH}00`], [[HASH]], [{ hash: HASH }], [null]].map(
			(given) =>
				[
					`a transaction's status of ${JSON.stringify(given)}`,
					["service_transactionStatus", ...given],
					"hash: expected a hash of 32 bytes as 0x hex",
				] as const,
		),
		["a hash for heads", ["newHeads", HASH], "hash: expected nothing, this subscription has no such"],
		["a hash for the feed", [FEED, HASH], "hash: expected nothing, this subscription has no such"],
		["too many", [FEED, HASH, 1], "expected at most 2 (name, hash)"],
	];
	test("what is asked for wrongly is refused in words", () =>
		withClient(async (client) => {
			for (const [name, params, message] of REFUSED) {
				const { error } = await ask(client, subscribe(...params));
				assert.deepEqual(error, { code: -32602, message: `invalid params: ${message}` }, name);
			}
		}));

	test("the seventeenth is refused, and taken again once one has ended", () =>
		withClient(async (client) => {
			const batch = Array.from({ length: 17 }, (_, i) => call("eth_subscribe", ["newHeads"], i));
			client.send(batch);
			const answers = (await client.next()) as unknown as WsMessage[];
			const ids = answers.slice(0, 16).map(({ result }) => String(result));
			assert.ok(ids.every((id) => ID.test(id)));
			assert.deepEqual(answers[16]?.error, {
				code: -32005,
				message: "limit exceeded: 16 subscriptions a connection",
			});
			assert.equal((await ask(client, call("eth_unsubscribe", [ids[0]]))).result, true);
			assert.match(String((await ask(client, subscribe(FEED))).result), ID);
		}));
});

describe("over HTTP", () => {
	for (const [method, params] of [
		["eth_subscribe", [FEED]],
		["eth_subscribe", []],
		["eth_subscribe", ["nope", {}]],
		["eth_subscribe", ["service_bundleStatus", HASH]],
		["eth_subscribe", ["service_transactionStatus", HASH]],
		["eth_unsubscribe", ["0x1"]],
	] as const) {
		test(`${method} ${params[0]} does not exist`, async () => {
			const answer = await fetch(server.url, {
				method: "POST",
				headers: { "content-type": "application/json" },
				body: JSON.stringify(call(method, params)),
			});
			assert.equal(answer.status, 200);
			assert.deepEqual(((await answer.json()) as WsMessage).error, {
				code: -32601,
				message: `the method ${method} does not exist/is not available: over a websocket only`,
			});
			assert.equal(server.hub.size, 0);
		});
	}
});

describe("unsubscribing", () => {
	test("ends it: true once, then false, and nothing more is heard", () =>
		withClient(async (client) => {
			const { result: id } = await ask(client, subscribe(FEED));
			const { result: other } = await ask(client, subscribe("newHeads"));
			assert.equal((await ask(client, call("eth_unsubscribe", [id]))).result, true);
			assert.equal((await ask(client, call("eth_unsubscribe", [id]))).result, false);
			server.hub.publish(PENDING_TRANSACTIONS, () => "not heard");
			server.hub.publish(NEW_HEADS, () => "heard");
			const told = (await client.next()) as Notification;
			assert.deepEqual(told.params, { subscription: other, result: "heard" });
		}));

	test("an id of another connection's, or of nobody's, is false and ends nothing", () =>
		withClient(async (client) => {
			const { result: id } = await ask(client, subscribe(FEED));
			const stranger = await WsClient.open(server.wsUrl);
			for (const foreign of [id, `0x${"00".repeat(16)}`, "", "constructor"]) {
				assert.equal((await ask(stranger, call("eth_unsubscribe", [foreign]))).result, false);
			}
			const { error } = await ask(stranger, call("eth_unsubscribe", [7]));
			assert.deepEqual(error, {
				code: -32602,
				message: "invalid params: id: expected the id of a subscription",
			});
			stranger.terminate();
			server.hub.publish(PENDING_TRANSACTIONS, () => 1);
			assert.equal(((await client.next()) as Notification).params?.subscription, id);
		}));
});

describe("on the wire", () => {
	test("in a batch that takes its time, what comes meanwhile comes behind the batch's answer, in order", () =>
		withClient(async (client) => {
			client.send([call("eth_subscribe", [FEED], 1), call("test_wait", [], 2)]);
			await until("the batch waits", () => server.waiting === 1 && server.hub.size === 1);
			for (const result of ["first", "second"]) server.hub.publish(PENDING_TRANSACTIONS, () => result);
			const { result: head } = await ask(client, { ...subscribe("newHeads"), id: 3 });
			server.hub.publish(NEW_HEADS, () => "a head");
			const heard = (await client.next()) as Notification;
			assert.deepEqual(heard.params, { subscription: head, result: "a head" }, "others don't wait");
			assert.equal(client.unread, 0);
			server.release();
			const batch = (await client.next()) as unknown as WsMessage[];
			assert.equal(batch[1]?.result, "waited");
			const told = [await client.next(), await client.next()] as Notification[];
			assert.deepEqual(
				told.map(({ params }) => [params?.subscription, params?.result]),
				[
					[batch[0]?.result, "first"],
					[batch[0]?.result, "second"],
				],
			);
		}));
});

describe("a bundle's status", () => {
	const block = (number: number, stage: "BEST" | "OUTBID") => ({
		block: number,
		stage,
		reason: null,
		bid: 5n,
		winner: null,
		paid: null,
		blockHash: null,
		at: 0,
		deliveries: [],
	});
	const record: BundleRecord = {
		owner: "me",
		hash: HASH,
		bidder: null,
		target: `0x${"cd".repeat(32)}`,
		receivedAt: 0,
		firstBlock: 7,
		lastBlock: 8,
		blocks: [block(7, "BEST"), block(8, "OUTBID")],
	};
	const shown = (told: WsMessage) => {
		const { subscription, result } = (told as Notification).params ?? {};
		const { bundleHash, blockNumber, status, bid } = result as Record<string, unknown>;
		return [subscription, bundleHash, blockNumber, status, bid];
	};

	test("is told at once, block by block behind the id, and then as it changes", () =>
		withClient(async (client) => {
			server.bundles.set(`192.0.2.7 ${HASH}`, record);
			const { result: id } = await ask(
				client,
				subscribe("service_bundleStatus", HASH.toUpperCase().replace("X", "x")),
			);
			assert.deepEqual(shown(await client.next()), [id, HASH, 7, "BEST", "5"]);
			assert.deepEqual(shown(await client.next()), [id, HASH, 8, "OUTBID", "5"]);
			server.hub.publish(bundleTopic("192.0.2.7", HASH), () => "changed");
			assert.deepEqual(((await client.next()) as Notification).params, {
				subscription: id,
				result: "changed",
			});
			server.bundles.clear();
		}, "192.0.2.7"));

	test("somebody else's and an unknown one are alike: an id, and silence", async () => {
		server.bundles.set(`192.0.2.7 ${HASH}`, record);
		const seen: unknown[] = [];
		for (const hash of [HASH, `0x${"00".repeat(32)}`]) {
			await withClient(async (client) => {
				const { result: id, ...answer } = await ask(client, subscribe("service_bundleStatus", hash));
				assert.match(String(id), ID);
				server.hub.publish(bundleTopic("192.0.2.7", hash), () => "for the owner");
				assert.equal((await ask(client, call("eth_unsubscribe", [id], 2))).result, true);
				seen.push([answer, client.unread]);
			}, "192.0.2.8");
		}
		assert.deepEqual(seen[0], seen[1]);
		server.bundles.clear();
	});
});
