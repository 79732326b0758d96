// The events route: which form is answered to whom, what a client that comes back is told, and when it is told to stop.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fold, newRecord, type TransactionRecord } from "../../../../relay/domain/record.ts";
import { transactionEventsRoute } from "../../../../relay/ingress/transactionEvents.ts";
import { Followers } from "../../../../relay/status/announcer.ts";
import { EventStreams } from "../../../../shared/http/eventStreams.ts";
import type { HttpAnswer } from "../../../../shared/http/messages.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const AT = Date.UTC(2026, 1, 3);
const STREAM = "text/event-stream";

/** A stream that keeps what is written. */
class Written {
	text = "";
	isOpen = true;
	readonly #onClose: (() => void)[] = [];
	write(text: string): void {
		this.text += text;
	}
	end(): void {
		this.isOpen = false;
		for (const listener of this.#onClose.splice(0)) listener();
	}
	onClose(listener: () => void): void {
		if (this.isOpen) this.#onClose.push(listener);
		else listener();
	}
}

/** A record with events at 0, 5, 5 and 9 ms, which is live or settled. */
function fixture(isOpen: boolean) {
	const record = newRecord(privateTransaction());
	for (const [type, ms] of [
		["received", 0],
		["ready", 5],
		["broadcast", 5],
		["broadcast", 9],
	] as const) {
		assert.ok(fold(record, { type, at: AT + ms, block: 100 }), type);
	}
	const followers = new Followers({ log: silentLogger });
	const clock = new ManualClock();
	const streams = new EventStreams({}, { clock });
	const news = (at: number, type: string) => ({ at, data: { type } });
	const route = transactionEventsRoute({
		records: { record: async (hash) => (hash === record.hash ? record : null) },
		following: followers,
		views: {
			events: ({ stage }) => ({ stage }),
			history: ({ events }) => events.map(({ at, type }) => news(at, type)),
			news: (_record, { at, type }) => (type === "bid" ? null : news(at, type)),
		},
		isOpen: () => isOpen,
		streams,
	});
	const ask = async (headers: Record<string, string>, hash: string = record.hash): Promise<HttpAnswer> =>
		route.handle({
			...{ path: "", params: { hash }, query: new URLSearchParams(), headers, address: "192.0.2.1" },
		});
	return { record, followers, streams, ask };
}

const bodyOf = ({ body }: HttpAnswer): string => String(body);
const idsOf = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => Number(id) - AT);

test("JSON unless a stream is asked for, and caches are told of it", async () => {
	const { ask } = fixture(true);
	for (const headers of [{}, { accept: "*/*" }, { accept: "text/html, */*" }] as Record<string, string>[]) {
		const answer = await ask(headers);
		assert.deepEqual([answer.status, answer.open, bodyOf(answer)], [200, undefined, '{"stage":"BROADCAST"}']);
		assert.deepEqual(answer.headers, { vary: "accept" });
	}
	const answer = await ask({ accept: STREAM });
	assert.deepEqual([answer.status, answer.body, answer.headers?.vary], [200, null, "accept"]);
	assert.ok(answer.open !== undefined, "it goes on");
});

test("what is no hash, or was never seen, is told as JSON whatever was asked for", async () => {
	const { ask, streams } = fixture(true);
	for (const accept of [STREAM, "*/*"]) {
		for (const hash of ["", "0x12", "x", `0x${"zz".repeat(32)}`]) {
			const answer = await ask({ accept }, hash);
			assert.deepEqual(
				[answer.status, bodyOf(answer)],
				[400, '{"error":"expected a transaction hash of 32 bytes as 0x hex"}'],
			);
		}
		const answer = await ask({ accept }, `0x${"00".repeat(32)}`);
		assert.deepEqual(
			[answer.status, bodyOf(answer)],
			[404, '{"error":"no transaction with this hash was seen here"}'],
		);
	}
	assert.equal(streams.size, 0);
});

test("what happened comes first, then what happens; what is not told is left out, and the end ends it", async () => {
	const { ask, followers, record, streams } = fixture(true);
	const stream = new Written();
	(await ask({ accept: STREAM })).open?.(stream);
	assert.ok(stream.text.startsWith(`retry: 3000\n\nid: ${AT}\ndata: {"type":"received"}\n\n`), stream.text);
	assert.deepEqual(idsOf(stream.text), [0, 5, 5, 9]);
	followers.tell(record, "QUEUED", { type: "broadcast", at: AT + 20, block: 101 });
	followers.tell(record, "QUEUED", { type: "bid", at: AT + 21, bundle: "0xb" });
	followers.tell({ ...record, hash: "0xother" } as TransactionRecord, "QUEUED", {
		type: "expired",
		at: AT,
		block: 1,
	});
	assert.ok(stream.text.endsWith(`id: ${AT + 20}\ndata: {"type":"broadcast"}\n\n`), stream.text);
	assert.equal(streams.size, 1);
	const { text } = stream;
	stream.end();
	followers.tell(record, "QUEUED", { type: "broadcast", at: AT + 30, block: 102 });
	assert.deepEqual([stream.text, streams.size], [text, 0]);
});

/** What a client that comes back names as last, and the events that it gets; what is no time is ignored. */
const SINCE: readonly (readonly [string, readonly number[]])[] = [
	[String(AT), [0, 5, 5, 9]],
	[String(AT + 1), [5, 5, 9]],
	[String(AT + 5), [5, 5, 9]],
	["0", [0, 5, 5, 9]],
	...["", "x", "-1", "1e3", "0x10", ` ${AT + 9}x`, "9".repeat(16), "1.5"].map(
		(bad) => [bad, [0, 5, 5, 9]] as const,
	),
];

/** How it goes on for a live transaction, and what is answered of a settled one. */
async function comeBack(id: string) {
	const headers = { accept: STREAM, "last-event-id": id };
	const stream = new Written();
	(await fixture(true).ask(headers)).open?.(stream);
	const { ask, streams } = fixture(false);
	const settled = await ask(headers);
	assert.deepEqual([settled.open, streams.size], [undefined, 0]);
	return { live: idsOf(stream.text), settled };
}

test("a client that comes back gets what happened at that time or after, and the end where all is settled", async () => {
	for (const [id, expected] of SINCE) {
		const { live, settled } = await comeBack(id);
		assert.deepEqual(live, expected, `live, ${id}`);
		assert.deepEqual([settled.status, idsOf(bodyOf(settled))], [200, expected], `settled, ${id}`);
		assert.equal(settled.contentType, "text/event-stream; charset=utf-8");
	}
});

test("who comes back to a settled one with nothing new to hear is told to stop; JSON knows no coming back", async () => {
	for (const [id, expected] of [
		[String(AT + 9), [9]],
		[String(AT + 10), []],
	] as const) {
		const { live, settled } = await comeBack(id);
		assert.deepEqual([live, settled.status, settled.body], [expected, 204, null]);
		assert.equal((await fixture(false).ask({ "last-event-id": id })).status, 200);
	}
});
