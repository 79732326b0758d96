// Tests following a transaction by server-sent events on a whole relay: the events are what the
// page lists, and no more; clients that reconnect, hang up or are too many, and a stop of the
// relay, cost nothing and lose nothing.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { EventSource } from "undici";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { EventStreamReader, type StreamMessage } from "../../support/clients.ts";
import { metricsOf, type WireEvent } from "../../support/relayClient.ts";
import { GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

const WATCH_BLOCKS = 64;
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const BUILDERS = [{ name: "dev", fullPrivacy: true }, { name: "other" }, { name: "third" }];

let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction({ builders: BUILDERS });
	await fixture.passBlock();
});
after(() => fixture.system.stop());

const urlOf = (tx: Signed): string => `${fixture.system.client.url}/tx/${tx.hash}/events`;
const follow = (tx: Signed, headers: Record<string, string> = {}) =>
	EventStreamReader.open(urlOf(tx), headers);

/** The page as it is now. */
async function page(tx: Signed): Promise<{ stage: string; cancels?: object; events: WireEvent[] }> {
	return (await (await fetch(urlOf(tx))).json()) as { stage: string; events: WireEvent[] };
}

/** How many streams there are, as operators see it. */
async function openStreams(): Promise<number> {
	const text = await metricsOf(fixture.system.client.url);
	return Number(/^relay_event_streams (\d+)$/m.exec(text)?.[1] ?? -1);
}

/** A message's event without the transaction's stage after it. */
function eventOf({ data: { stage: _, cancels: __, ...event } }: Pick<StreamMessage, "data">): object {
	return event;
}

/**
 * The order of an event's fields says nothing: deliveries are stored and sent in different ones.
 */
const inOrder = (events: readonly object[]): string[] =>
	events.map((event) => JSON.stringify(Object.entries(event).sort())).sort();

/** The stream has sent every event that the page lists, in the same words, and nothing else. */
async function assertSent(tx: Signed, messages: () => readonly StreamMessage[]): Promise<void> {
	const { events } = await until("the page and the stream are level", async () => {
		const now = await page(tx);
		return messages().length === now.events.length && now;
	});
	const sent = messages();
	assert.deepEqual(inOrder(sent.map(eventOf)), inOrder(events));
	for (const { id, data } of sent) assert.equal(id, String(Date.parse(String(data.at))));
}

describe("the stream of a transaction", () => {
	it("sends past and then new events, as the events route shows them, to the end of its life", async () => {
		const tx = (await fixture.actor()).sign({ nonce: 0 });
		await fixture.submit("/fast", tx);
		const reader = await follow(tx);
		assert.equal(reader.status, 200);
		assert.equal(reader.headers["content-type"], "text/event-stream; charset=utf-8");
		await fixture.waitUntilSent(tx);
		await fixture.system.nextBlock();
		await reader.message("it is mined", ({ type }) => type === "included");
		await assertSent(tx, () => reader.messages);
		assert.equal(reader.retry, 3000);
		const stages = reader.messages.flatMap(({ data }) => (data.stage === undefined ? [] : [data.stage]));
		assert.deepEqual([stages.at(-1), reader.ended], ["INCLUDED", null]);
		const ids = reader.messages.map(({ id }) => Number(id));
		assert.deepEqual(
			ids,
			[...ids].sort((a, b) => a - b),
			"in order of time",
		);
		reader.leave();
	});

	it("counts the builders that confirm a cancel, one by one", async () => {
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		const reader = await follow(tx);
		assert.equal(await fixture.system.client.call("eth_cancelTransaction", [tx.hash]), true);
		await reader.message(
			"all confirm",
			({ cancels }) => (cancels as { confirmed?: number })?.confirmed === 3,
		);
		// Each builder receives the cancel in every form that it understands; one answer of it counts.
		const counted = reader.messages.flatMap(({ data: { type, stage, cancels } }) =>
			cancels === undefined ? [] : [`${type} ${stage} ${(cancels as { summary: string }).summary}`],
		);
		assert.deepEqual(counted.slice(0, 1), ["cancelled CANCELLED 0 of 3 builders confirmed"]);
		assert.deepEqual(
			[...new Set(counted.slice(1))],
			[1, 2, 3].map((count) => `delivered CANCELLED ${count} of 3 builders confirmed`),
		);
		assert.deepEqual((await page(tx)).cancels, {
			...{ builders: 3, confirmed: 3, summary: "3 of 3 builders confirmed" },
		});
		await assertSent(tx, () => reader.messages);
		reader.leave();
	});

	it("hides of a shared one what the events route hides: why it waited, its gas, bids, and its replacement", async () => {
		const user = await fixture.actor();
		const [first, tx] = [user.sign({ nonce: 0 }), user.sign({ nonce: 1 })];
		await fixture.submit("/maxbackruns", tx);
		const reader = await follow(tx);
		await reader.message("it waits", ({ type }) => type === "queued");
		await fixture.submit("/maxbackruns", first);
		await fixture.open(tx);
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(5n * GWEI);
		await bidder.bid(tx, backrun);
		await fixture.out(tx, backrun);
		const hidden = user.sign({ nonce: 1, ...BUMPED });
		await fixture.submit("/fullprivacy", hidden);
		const last = await reader.message("it is replaced", ({ type }) => type === "replaced");
		assert.deepEqual(Object.keys(last.data).sort(), ["at", "block", "builders", "cancels", "stage", "type"]);
		await assertSent(tx, () => reader.messages);
		for (const secret of [hidden.hash, backrun.hash, "nonceGap", "gasUsed", "bid", "bundled", "backrun"]) {
			assert.ok(!reader.text.includes(secret), secret);
		}
		// The own user of a transaction that nobody else knows receives all of that.
		const whole = await follow(hidden);
		await whole.message("its gas", ({ type, gasUsed }) => type === "simulated" && gasUsed !== undefined);
		for (const one of [reader, whole]) one.leave();
		await fixture.system.client.call("eth_cancelTransaction", [hidden.hash]);
	});

	it("an invalid or unknown hash is refused as JSON, and JSON stays the default", async () => {
		const url = fixture.system.client.url;
		const unknown = await EventStreamReader.open(`${url}/tx/0x${"00".repeat(32)}/events`);
		assert.deepEqual(
			[unknown.status, unknown.headers["content-type"], await unknown.json()],
			[404, "application/json", { error: "the relay has received no transaction with this hash" }],
		);
		const bad = await EventStreamReader.open(`${url}/tx/0x12/events`);
		assert.deepEqual([bad.status, bad.headers["content-type"]], [400, "application/json"]);
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		for (const accept of ["*/*", "application/json, text/event-stream", "text/html,*/*;q=0.8"]) {
			const answer = await fetch(urlOf(tx), { headers: { accept } });
			assert.equal(answer.headers.get("content-type"), "application/json", accept);
			await answer.body?.cancel();
		}
		const head = await fetch(urlOf(tx), { method: "HEAD", headers: { accept: "text/event-stream" } });
		assert.deepEqual([head.status, await head.text()], [200, ""]);
	});
});

describe("many listeners", () => {
	it("one client has 16 streams at most; closed ones are forgotten", async () => {
		const before = await openStreams();
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		const from = { "x-forwarded-for": "203.0.113.7" };
		const readers = await Promise.all(Array.from({ length: 16 }, () => follow(tx, from)));
		assert.ok(
			readers.every(({ status }) => status === 200),
			"16 are taken",
		);
		assert.equal(await openStreams(), before + 16);
		const refused = await follow(tx, from);
		assert.deepEqual([refused.status, refused.headers["retry-after"]], [429, "3"]);
		const other = await follow(tx, { "x-forwarded-for": "203.0.113.8" });
		assert.equal(other.status, 200);
		// The page is for everybody.
		assert.equal((await fetch(urlOf(tx), { headers: from })).status, 200);
		await fixture.waitUntilSent(tx);
		for (const reader of readers) {
			await reader.message("it is broadcast", ({ type }) => type === "broadcast");
			reader.leave();
		}
		other.leave();
		await until("all are forgotten", async () => (await openStreams()) === before);
		assert.equal((await follow(tx, from)).status, 200);
	});
});

describe("clients that come back", () => {
	it("an EventSource misses nothing over a restart, and stops after the last event", async () => {
		const { system } = fixture;
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		const source = new EventSource(urlOf(tx));
		const messages: StreamMessage[] = [];
		let opened = 0;
		source.onopen = () => {
			opened += 1;
		};
		source.onmessage = ({ data, lastEventId }) => {
			messages.push({ id: lastEventId, data: JSON.parse(data) as StreamMessage["data"] });
		};
		await until("it receives the broadcast", () => messages.some(({ data }) => data.type === "broadcast"));
		const begun = performance.now();
		await system.restart(async () => {
			assert.ok(performance.now() - begun < 5_000, "a stream held up the stop");
		});
		// It receives the events of its absence when it is back.
		await fixture.passBlock();
		await until("it is back", () => opened === 2);
		assert.ok((await openStreams()) >= 1);
		await fixture.waitUntilSent(tx);
		await system.nextBlock();
		await until("it receives the end", () => messages.at(-1)?.data.stage === "INCLUDED");
		const received = new Map(messages.map((message) => [JSON.stringify(eventOf(message)), message]));
		await assertSent(tx, () => [...received.values()]);
		// One more: it is archived while the relay processes the last of them.
		for (let i = 0; i <= WATCH_BLOCKS; i++) await fixture.passBlock();

		// Archived: a new reader gets all events at once, and the stream ends.
		const whole = await follow(tx);
		assert.equal(await whole.over(), "end");
		await assertSent(tx, () => whole.messages);
		const id = whole.messages.at(-1)?.id ?? "";
		const over = await follow(tx, { "last-event-id": id });
		assert.deepEqual([over.status, await over.over(), over.text], [204, "end", ""]);
		const rest = await follow(tx, { "last-event-id": String(Number(id) - 1) });
		assert.deepEqual([rest.status, await rest.over(), rest.messages.length > 0], [200, "end", true]);

		const told = messages.length;
		await system.restart();
		await until("the EventSource has stopped", () => source.readyState === 2);
		assert.equal(messages.length, told, "nothing twice");
		source.close();
	});

	it("a client with a Last-Event-ID gets what happened since, and what follows", async () => {
		const tx = (await fixture.actor()).sign();
		await fixture.submit("/fast", tx);
		await fixture.waitUntilSent(tx);
		const first = await follow(tx);
		const { id } = await first.message("it is broadcast", ({ type }) => type === "broadcast");
		first.leave();
		await fixture.passBlock();
		await fixture.waitUntilSent(tx);
		const second = await follow(tx, { "last-event-id": id });
		await second.come(1);
		assert.ok(
			second.messages.every((message) => Number(message.id) >= Number(id)),
			"nothing from before",
		);
		assert.ok(!second.messages.some(({ data }) => data.type === "received"), second.text);
		await fixture.system.nextBlock();
		await second.message("it is mined", ({ type }) => type === "included");
		second.leave();
	});
});
