// The subscription hub: failing subscribers, results before the id was sent, and a transaction that
// changes while a client subscribes to it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { transactionTopic } from "../../../../relay/domain/endpoints.ts";
import { newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { SubscriptionHub } from "../../../../relay/ingress/subscriptions.ts";
import { type LogFields, type Logger, silentLogger } from "../../../../shared/log.ts";
import { EventLoopQueue } from "../../../../shared/shares/scheduler.ts";
import { WsClient } from "../../../support/clients.ts";
import {
	Listener,
	OpenMessage,
	type SubscriptionServer,
	startSubscriptionServer,
} from "../../../support/feeds.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { privateTransaction } from "../../../support/txFactory.ts";
import { until } from "../../../support/until.ts";

function fixture() {
	const lines: (readonly [string, LogFields | undefined])[] = [];
	const keep = (message: string, fields?: LogFields) => void lines.push([message, fields]);
	const log: Logger = { ...silentLogger, warn: keep, error: keep };
	const turns = new EventLoopQueue({ clock: new ManualClock() });
	return { hub: new SubscriptionHub({ log, turns }), lines };
}

describe("publishing", () => {
	test("neither a broken connection nor a result that can't be made stops the others, and no error text is logged", () => {
		const { hub, lines } = fixture();
		const [first, broken, behind] = [new Listener(), new Listener(), new Listener()];
		for (const one of [first, broken, behind]) hub.subscribe(one, "a");
		broken.fault = new Error("0xdeadbeefcafe");
		hub.publish("a", () => ({ value: 1n }));
		hub.publish("a", () => {
			throw new Error("0xdeadbeefcafe");
		});
		hub.publish("a", () => undefined);
		for (const one of [first, behind]) {
			assert.deepEqual(
				one.results.map(([, result]) => result),
				[null],
			);
		}
		assert.deepEqual([broken.frames.length, lines.length], [0, 3]);
		assert.ok(!JSON.stringify(lines).includes("deadbeef"), JSON.stringify(lines));
	});
});

describe("before the id was sent", () => {
	test("nothing is sent; then all of it, in order; other subscriptions of the connection don't wait", () => {
		const { hub } = fixture();
		const one = new Listener();
		const exchange = new OpenMessage();
		const known = hub.subscribe(one, "a");
		const id = hub.subscribe(one, "a", exchange);
		hub.notify(one, id, () => "present");
		hub.publish("a", () => "first");
		assert.deepEqual(one.results, [[known, "first"]]);
		exchange.answer();
		hub.publish("a", () => "second");
		assert.deepEqual(
			one.results.filter(([of]) => of === id).map(([, result]) => result),
			["present", "first", "second"],
		);
	});

	for (const [how, end] of [
		["its answer", ({ exchange }) => exchange.answer()],
		["its end", ({ hub, one, id }) => void hub.unsubscribe(one, id)],
		["the connection's", ({ one }) => one.end()],
	] satisfies readonly [string, (of: ReturnType<typeof holding>) => void][]) {
		test(`what is held counts for the connection, until ${how}`, () => {
			const parts = holding();
			const mebibyte = "x".repeat(1024 * 1024);
			for (let sent = 0; sent < 3; sent++) parts.hub.publish("a", () => mebibyte);
			assert.ok(parts.one.held > 3 * mebibyte.length, String(parts.one.held));
			end(parts);
			assert.equal(parts.one.held, 0);
		});
	}

	function holding() {
		const { hub } = fixture();
		const one = new Listener();
		const exchange = new OpenMessage();
		return { hub, one, exchange, id: hub.subscribe(one, "a", exchange) };
	}
});

describe("a transaction's status", () => {
	let server: SubscriptionServer;
	before(async () => {
		server = await startSubscriptionServer(["another-name"]);
	});
	after(() => server.stop());

	type Stage = TransactionRecord["stage"];

	/** A record of its own that the relay knows. */
	function known(nonce: number): TransactionRecord {
		const record = newRecord(privateTransaction({ nonce }));
		server.records.set(record.hash, record);
		return record;
	}

	const ask = (client: WsClient, hash: string) =>
		client.send({ id: 1, method: "eth_subscribe", params: ["service_transactionStatus", hash] });

	/** The record moves on and is announced, as the records do it: the record first. */
	function move(record: TransactionRecord, stage: Stage): void {
		Object.assign(record, { stage });
		server.followers.notify(record, "QUEUED", { type: "broadcast", at: 0, block: 1 });
		server.hub.publish(transactionTopic(record.hash), () => ({ hash: record.hash, stage: record.stage }));
	}

	/** The stages that a client receives next. */
	async function stages(client: WsClient, count: number): Promise<readonly unknown[]> {
		const received: unknown[] = [];
		while (received.length < count) {
			const { params } = (await client.next()) as { params?: { result: { stage: string } } };
			received.push(params?.result.stage);
		}
		return received;
	}

	/** The first read of a record waits until the answer is called. */
	function holdReading() {
		let release = (): void => {};
		const held = { asked: 0, release: () => release() };
		server.reading = () => {
			held.asked += 1;
			return held.asked > 1 ? Promise.resolve() : new Promise<void>((resolve) => (release = resolve));
		};
		return held;
	}

	for (const [name, isHeld, moves] of [
		["it moves while its record is read", true, ["BROADCAST", "INCLUDED"]],
		["it comes while the store is asked, which knows nothing of it", false, ["PENDING"]],
	] as const) {
		test(`${name}: sent once, as it is by then, after the id`, async () => {
			const client = await WsClient.open(server.wsUrl);
			const record = known(10);
			if (!isHeld) server.records.delete(record.hash);
			const reading = holdReading();
			ask(client, record.hash);
			await until("the record is read", () => reading.asked === 1);
			server.records.set(record.hash, record);
			for (const stage of moves) move(record, stage);
			reading.release();
			assert.match(String((await client.next()).result), /^0x/);
			server.reading = async () => {};
			move(record, "DROPPED");
			assert.deepEqual(await stages(client, 2), [moves.at(-1), "DROPPED"]);
			assert.equal(client.unread, 0);
			client.terminate();
			await until("nothing of the connection is kept", () => server.hub.size === 0);
		});
	}
});
