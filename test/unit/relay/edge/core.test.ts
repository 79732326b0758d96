// Tests that clients receive each shared transaction once, whatever happens to the connections with
// cores meanwhile.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Core, type LocalCore } from "../../../../relay/edge/core.ts";
import type { CoreLink } from "../../../../relay/edge/coreLink.ts";
import type { FeedStart } from "../../../../relay/edge/messages.ts";
import type { Results } from "../../../../shared/http/notifications.ts";
import type { Holder } from "../../../../shared/kv/postgres/holder.ts";
import { NO_TRACES } from "../../../../shared/tracing/traces.ts";
import { ManualClock } from "../../../support/manualClock.ts";

const TERM = { number: 6, secret: "of this term" };
const holder: Holder = { term: TERM.number, address: "http://192.0.2.1", secret: TERM.secret };

/** A core without state yet. `received` has the results that its clients received. */
function coreOf() {
	const received: string[] = [];
	const core = new Core<null>({
		subscriptions: {
			hasSubscribers: () => true,
			subscribed: () => [],
			publishAll: (_topic: string, results: Results) => void received.push(String(results.count)),
		},
		charge: () => {},
		recover: () => undefined,
		traces: NO_TRACES,
		clock: new ManualClock(),
		timeoutMs: 1_000,
	});
	let closed = 0;
	const link = {
		holder,
		ask: () => {},
		close: () => {
			closed += 1;
		},
	} as unknown as CoreLink;
	return { core, received, link, closed: () => closed };
}

function localOf(shared: readonly { readonly hash: string; readonly text: string }[]): LocalCore<null> {
	return { needs: null, follow: async () => () => {}, shared: () => shared, term: TERM };
}

test("a process that has connected with itself before it was the core reports nothing twice", async () => {
	const { core, received, link, closed } = coreOf();
	const events = core.linkEvents(holder);
	core.connect(link);
	await core.take(localOf([]));
	core.shared("0xaa", '"0xaa"');
	events.onShared(1, "0xaa", '"0xaa"');
	assert.equal(received.length, 1);
	assert.equal(closed(), 1);
	assert.equal(core.remote, null);
});

test("a transaction from a connection that another one has replaced is left to the other one to report", () => {
	const { core, received, link } = coreOf();
	const events = core.linkEvents(holder);
	core.connect(link);
	events.onShared(1, "0xaa", '"0xaa"');
	const later = { ...holder, term: TERM.number + 1, secret: "of the next" };
	core.connect({ ...link, holder: later } as unknown as CoreLink);
	events.onShared(2, "0xbb", '"0xbb"');
	assert.equal(received.length, 1);
	core.linkEvents(later).onShared(1, "0xbb", '"0xbb"');
	assert.equal(received.length, 2);
});

test("a term of the same number with another secret is another one: its feed begins anew, and reports nothing twice", () => {
	const { core, received, link } = coreOf();
	const asked: unknown[] = [];
	const connect = (to: Holder) => {
		const ask = (_name: string, params: unknown, answered: (start: FeedStart) => void): void => {
			asked.push(params);
			answered({ news: 4, isComplete: true });
		};
		core.connect({ ...link, ask, holder: to } as unknown as CoreLink);
		core.linkEvents(to).onShared(5, "0xaa", '"0xaa"');
	};
	connect(holder);
	connect(holder);
	connect({ ...holder, secret: "of another" });
	assert.deepEqual(asked, [[null], [5], [null]]);
	assert.equal(received.length, 2, "again in its own term, where that is news, and not in the next");
});

test("a process that becomes the core makes no text of a transaction that its clients have received", async () => {
	const { core, received, link } = coreOf();
	core.connect(link);
	core.linkEvents(holder).onShared(1, "0xaa", '"0xaa"');
	const known = {
		hash: "0xaa",
		get text(): string {
			return assert.fail("it is known here");
		},
	};
	await core.take(localOf([known, { hash: "0xbb", text: '"0xbb"' }]));
	assert.equal(received.length, 2);
});
