// Tests the subscription to a transaction's status over a real websocket: its messages follow the id in order, with
// nothing twice or missing where the transaction moves while the subscription is made.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { transactionTopic } from "../../../../relay/domain/endpoints.ts";
import { newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { unknownStatus } from "../../../../shared/ethereum/statusRecord.ts";
import { type SubscriptionServer, startSubscriptionServer } from "../../../support/subscriptionServer.ts";
import { privateTransaction } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";
import { WsClient, type WsMessage } from "../../../support/wsClient.ts";

let server: SubscriptionServer;
before(async () => {
	server = await startSubscriptionServer([]);
});
after(() => server.stop());

interface Told extends WsMessage {
	readonly params?: { readonly subscription: string; readonly result: { hash: string; stage: string } };
}

/** A record of its own that the relay knows, in `stage`. */
function known(nonce: number, stage: TransactionRecord["stage"]): TransactionRecord {
	const record = newRecord(privateTransaction({ nonce }));
	record.stage = stage;
	server.records.set(record.hash, record);
	return record;
}

async function withClient(work: (client: WsClient) => Promise<void>): Promise<void> {
	const client = await WsClient.open(server.wsUrl);
	try {
		await work(client);
	} finally {
		client.terminate();
		await until("nothing of the connection is kept", () => server.hub.size === 0);
	}
}

function ask(client: WsClient, hash: string): void {
	client.send({
		jsonrpc: "2.0",
		id: 1,
		method: "eth_subscribe",
		params: ["service_transactionStatus", hash],
	});
}

/** The record moves on and is announced, as the records do it: the record first. */
function move(record: TransactionRecord, stage: TransactionRecord["stage"]): void {
	record.stage = stage;
	server.followers.tell(record, { type: "broadcast", at: 0, block: 1 });
	server.hub.publish(transactionTopic(record.hash), () => ({ hash: record.hash, stage: record.stage }));
}

async function stages(client: WsClient, count: number): Promise<readonly (string | undefined)[]> {
	const told: (string | undefined)[] = [];
	while (told.length < count) told.push(((await client.next()) as Told).params?.result.stage);
	return told;
}

test("how it stands is told behind the id, and then each change", () =>
	withClient(async (client) => {
		const record = known(0, "SHARED");
		ask(client, record.hash.toUpperCase().replace("X", "x"));
		const { result: id } = await client.next();
		assert.match(String(id), /^0x[0-9a-f]{32}$/);
		assert.deepEqual(await client.next(), {
			jsonrpc: "2.0",
			method: "eth_subscription",
			params: { subscription: id, result: { ...unknownStatus(record.hash), stage: "SHARED" } },
		});
		move(record, "BROADCAST");
		move(record, "INCLUDED");
		assert.deepEqual(await stages(client, 2), ["BROADCAST", "INCLUDED"]);
		assert.equal(client.unread, 0);
	}));

test("one that was never seen is silent until it comes, and others' are never heard", () =>
	withClient(async (client) => {
		const hash = newRecord(privateTransaction({ nonce: 1 })).hash;
		ask(client, hash);
		await client.next();
		move(known(2, "PENDING"), "BROADCAST");
		move(known(1, "PENDING"), "PENDING");
		const told = (await client.next()) as Told;
		assert.deepEqual(told.params?.result, { hash, stage: "PENDING" });
		assert.equal(client.unread, 0);
	}));

for (const [name, isHeld, moves] of [
	["it moves while its record is read", true, ["BROADCAST", "INCLUDED"]],
	["it comes while the store is asked, which knows nothing of it", false, ["PENDING"]],
] as const) {
	test(`${name}: told once, as it is by then`, () =>
		withClient(async (client) => {
			const record = known(10, "PENDING");
			if (!isHeld) server.records.delete(record.hash);
			let release = (): void => {};
			let asked = 0;
			server.reading = () => {
				asked += 1;
				return asked > 1 ? Promise.resolve() : new Promise<void>((resolve) => (release = resolve));
			};
			ask(client, record.hash);
			await until("the record is read", () => asked === 1);
			server.records.set(record.hash, record);
			for (const stage of moves) move(record, stage);
			release();
			await client.next();
			server.reading = async () => {};
			move(record, "DROPPED");
			assert.deepEqual(await stages(client, 2), [moves.at(-1), "DROPPED"]);
			assert.equal(client.unread, 0);
		}));
}

test("a client that goes while its record is read leaves nothing behind", async () => {
	const record = known(11, "PENDING");
	let release = (): void => {};
	let asked = false;
	server.reading = () => {
		asked = true;
		return new Promise<void>((resolve) => (release = resolve));
	};
	const client = await WsClient.open(server.wsUrl);
	ask(client, record.hash);
	await until("the record is read", () => asked);
	client.terminate();
	release();
	server.reading = async () => {};
	await until("nothing is kept", () => server.hub.size === 0);
	// Who comes next is served as ever.
	await withClient(async (next) => {
		ask(next, record.hash);
		await next.next();
		assert.deepEqual(await stages(next, 1), ["PENDING"]);
	});
});
