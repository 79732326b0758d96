// What the relay's routes answer, without a server: a bundle's record and who sees it, the forms of a transaction's events
// and what a client that comes back is told, and what the relay says of itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { BundleBlockStatus, BundleRecord, Standing } from "../../../../relay/domain/bundleStatus.ts";
import { fold, newRecord } from "../../../../relay/domain/record.ts";
import { bundleBlockView, bundleView } from "../../../../relay/ingress/bundleViews.ts";
import { transactionEventsRoute } from "../../../../relay/ingress/routes.ts";
import { Followers } from "../../../../relay/status/announcer.ts";
import { EventStreams } from "../../../../shared/http/eventStreams.ts";
import type { HttpAnswer } from "../../../../shared/http/messages.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { privateTransaction } from "../../../support/txFactory.ts";

const HASH = `0x${"0a".repeat(32)}`;
const TARGET = `0x${"0b".repeat(32)}`;
const BLOCK_HASH = `0x${"0c".repeat(32)}`;
const BACKRUN = `0x${"0d".repeat(32)}`;
const AT = Date.UTC(2026, 1, 3, 4, 5, 6, 7);

const outbid: BundleBlockStatus = {
	block: 7,
	stage: "NOT_INCLUDED",
	reason: "outbid",
	bid: 10n ** 18n + 1n,
	winner: { backrun: BACKRUN, paid: 10n ** 18n + 4n },
	paid: null,
	blockHash: null,
	at: AT + 1000,
	deliveries: [{ at: AT, builder: "one", kind: "bundle", answer: "accepted", ms: 12.5 }],
};
const waiting: BundleBlockStatus = {
	block: 8,
	stage: "ACCEPTED",
	reason: null,
	bid: null,
	winner: null,
	paid: 5n,
	blockHash: BLOCK_HASH,
	at: AT,
	deliveries: [],
};
const record: BundleRecord = {
	owner: "me",
	hash: HASH,
	bidder: null,
	target: TARGET,
	receivedAt: AT,
	firstBlock: 7,
	lastBlock: 8,
	blocks: [outbid, waiting],
};

const OUTBID = {
	blockNumber: 7,
	status: "NOT_INCLUDED",
	reason: "outbid",
	bid: "1000000000000000001",
	paid: null,
	winner: { backrun: BACKRUN, paid: "1000000000000000004" },
	outbidBy: "3",
	blockHash: null,
	at: "2026-02-03T04:05:07.007Z",
	builders: [
		{ builder: "one", kind: "bundle", answer: "accepted", ms: 12.5, at: "2026-02-03T04:05:06.007Z" },
	],
};
const WAITING = {
	blockNumber: 8,
	status: "ACCEPTED",
	reason: null,
	bid: null,
	paid: "5",
	winner: null,
	outbidBy: null,
	blockHash: BLOCK_HASH,
	at: "2026-02-03T04:05:06.007Z",
	builders: [],
};

test("a bundle with all its blocks, as JSON", () => {
	assert.deepEqual(bundleView(record, null), {
		bundleHash: HASH,
		target: TARGET,
		receivedAt: "2026-02-03T04:05:06.007Z",
		blocks: [OUTBID, WAITING],
	});
});

test("one whose bidder is barred or ranks behind says so, and why", () => {
	const bar = { until: 40, bid: 10n, paid: 1n, block: 8 };
	const barred = { until: 40, bid: "10", paid: "1", block: 8 };
	const plain = bundleView(record, null) as object;
	for (const [standing, told] of [
		[
			{ bar, behindUntil: null },
			{ barred, rankedBehindUntil: null },
		],
		[
			{ bar: null, behindUntil: 72 },
			{ barred: null, rankedBehindUntil: 72 },
		],
	] as const satisfies readonly (readonly [Standing, object])[]) {
		assert.deepEqual(bundleView(record, standing), { ...plain, ...told });
	}
});

test("by how much it was outbid is what the other really paid more: nothing where it paid less, or that is not known", () => {
	for (const [paid, told] of [
		[10n ** 18n + 1n, "0"],
		[10n ** 18n, null],
		[null, null],
	] as const) {
		const winner = { backrun: BACKRUN, paid };
		const view = bundleBlockView(record, { ...outbid, winner }, null) as { outbidBy: unknown };
		assert.equal(view.outbidBy, told);
	}
});

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
