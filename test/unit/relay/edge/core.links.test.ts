// An edge and the core over a real websocket: what is followed, called and reported when
// subscribers, calls and connections come and go.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocket } from "ws";
import { EDGE_PATH, PENDING_TRANSACTIONS } from "../../../../relay/domain/endpoints.ts";
import { Core } from "../../../../relay/edge/core.ts";
import { CoreLink, UNANSWERED } from "../../../../relay/edge/coreLink.ts";
import { type CoreService, EdgeServer } from "../../../../relay/edge/edgeServer.ts";
import { NO_CORE } from "../../../../relay/edge/messages.ts";
import { SubscriptionHub } from "../../../../relay/ingress/subscriptions.ts";
import { type Clock, systemClock } from "../../../../shared/clock.ts";
import { callContext } from "../../../../shared/http/callContext.ts";
import { JsonText } from "../../../../shared/jsonrpc/answers.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { AnswerLater } from "../../../../shared/jsonrpc/method.ts";
import { silentLogger as log } from "../../../../shared/log.ts";
import { EventLoopQueue } from "../../../../shared/shares/scheduler.ts";
import { NO_TRACES } from "../../../../shared/tracing/traces.ts";
import { Listener } from "../../../support/feeds.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";

const SECRET = "secret";
const TOPIC = "transaction 0x01";
const CONTEXT = callContext(
	{ path: "/", search: "" },
	{ address: "192.0.2.1", signer: null, vouched: false },
	null,
	null,
);
const METHOD = { name: "any", invoke: () => assert.fail("it runs where the core is") };

/** On a busy machine a core may be silent for seconds. */
const PATIENT = { clock: systemClock, timeoutMs: 20_000 };
const timeoutOf = (clock: Clock): number => (clock === systemClock ? PATIENT.timeoutMs : 1_000);

/** The core's side. `call` does what it is asked. */
async function startCore(
	t: TestContext,
	call: CoreService["call"] = () => null,
	clock: Clock = systemClock,
	shared: CoreService["shared"] = () => [],
) {
	const hub = newHub();
	const edges = new EdgeServer({ secret: SECRET }, { clock, timeoutMs: timeoutOf(clock), log });
	const following = new Set<() => void>();
	edges.open({
		call,
		async follow(topic, begin, tell) {
			const end = hub.tap(topic, tell);
			const ended = (): void => {
				end();
				following.delete(ended);
			};
			following.add(ended);
			begin([]);
			return ended;
		},
		shared,
	});
	const server = createServer().on("upgrade", (request, socket, head) =>
		edges.upgrade(request, socket, head),
	);
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	t.after(async () => {
		await edges.stop();
		server.closeAllConnections();
		server.close();
	});
	const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	/** `following`: the topics that edges are notified of. */
	return { hub, edges, following, holder: { term: 1, address, secret: SECRET } };
}

/** An edge that is connected with it. `charges` has the additional cost of calls. */
async function startEdge(
	t: TestContext,
	holder: Parameters<typeof CoreLink.open>[0],
	clock: Clock = systemClock,
) {
	const time = { clock, timeoutMs: timeoutOf(clock) };
	const charges: number[] = [];
	const hub: SubscriptionHub = newHub((topic) => core.unfollow(topic));
	const core: Core<unknown> = new Core({
		subscriptions: hub,
		charge: (_client, weight) => void charges.push(weight),
		recover: () => undefined,
		traces: NO_TRACES,
		...time,
	});
	const link = await CoreLink.open(holder, { ...core.linkEvents(holder), ...time });
	assert.ok(link !== null);
	core.connect(link);
	t.after(() => link.close());
	const follow = (listener: Listener) => core.follow(TOPIC, () => hub.subscribe(listener, TOPIC));
	const ask = async (): Promise<unknown> => core.run(METHOD, [], CONTEXT);
	return { core, hub, charges, follow, ask };
}

function newHub(onEmpty?: (topic: string) => void): SubscriptionHub {
	return new SubscriptionHub({ log, turns: new EventLoopQueue({ clock: systemClock }), onEmpty });
}

test("the core stops notifying an edge of topics that no client of it follows any more", async (t) => {
	const { following, holder } = await startCore(t);
	const { follow, core, hub } = await startEdge(t, holder);
	const [one, other] = [new Listener(), new Listener()];
	const id = await follow(one);
	await follow(other);
	assert.equal(following.size, 1);
	assert.equal(hub.unsubscribe(one, id), true);
	other.end();
	await until("nothing is followed", () => following.size === 0);
	await assert.rejects(
		core.follow(TOPIC, () => {
			throw new RpcError("limit", "limit exceeded");
		}),
		/limit exceeded/,
	);
	await until("nor what could not be subscribed to", () => following.size === 0);
});

test("a client that follows a topic that another has just left receives its news", async (t) => {
	const { hub, holder } = await startCore(t);
	const { follow, ask } = await startEdge(t, holder);
	const [one, other] = [new Listener(), new Listener()];
	await follow(one);
	one.end();
	const following = follow(other);
	// It comes to the edge before the answer.
	hub.publish(TOPIC, () => "under way");
	await following;
	// The core has read by then all that the edge has sent.
	await ask();
	hub.publish(TOPIC, () => "news");
	await until("it receives the news", () => other.results.some(([, result]) => result === "news"));
});

test("a core that leaves answers what it has taken, and takes nothing more", async (t) => {
	let answer: (result: string) => void = () => {};
	let taken = 0;
	const { edges, holder } = await startCore(t, () => {
		taken += 1;
		return new Promise<string>((resolve) => {
			answer = resolve;
		});
	});
	const { core, ask } = await startEdge(t, holder);
	const asked = ask();
	await until("it is taken", () => taken === 1);
	const leaving = edges.stop();
	await assert.rejects(ask(), { message: /no core reachable/ });
	answer("done");
	assert.equal(await asked, "done");
	await leaving;
	await until("the edge has left", () => core.remote === null);
	assert.equal(taken, 1);
});

test("a call that comes as the connection closes waits for the next core", async (t) => {
	const [first, second] = [await startCore(t), await startCore(t, () => "the second one's")];
	const { core, ask } = await startEdge(t, first.holder);
	const { remote } = core;
	void first.edges.stop();
	await until("it closes", () => remote?.isOpen === false);
	const asked = ask();
	const link = await CoreLink.open(second.holder, {
		...core.linkEvents(second.holder),
		...PATIENT,
	});
	assert.ok(link !== null);
	t.after(() => link.close());
	core.connect(link);
	assert.equal(await asked, "the second one's");
});

test("what a call weighs more is charged once, also if its result fails later", async (t) => {
	const { holder } = await startCore(t, (_method, _params, { client }, charge) => {
		charge(client, 3);
		return new AnswerLater(async () => {
			throw new RpcError("rejected", "as it ended");
		});
	});
	const { ask, charges } = await startEdge(t, holder);
	const later = await ask();
	assert.ok(later instanceof AnswerLater);
	await assert.rejects(later.finish(1_000), /as it ended/);
	assert.deepEqual(charges, [3]);
});

test("each call of an edge's own is answered: what waits for an answer would be kept for as long as the connection", async (t) => {
	const { holder } = await startCore(t);
	const socket = new WebSocket(`${holder.address}${EDGE_PATH}`, {
		headers: { authorization: `Bearer ${SECRET}` },
	});
	t.after(() => socket.terminate());
	await new Promise((resolve) => socket.once("open", resolve));
	const answered: number[] = [];
	socket.on("message", (data) => {
		for (const { id } of JSON.parse(String(data))) answered.push(id);
	});
	const asked = [
		["core_feed", null],
		["core_follow", TOPIC],
		["core_unfollow", TOPIC],
		["core_gone", 7],
	];
	socket.send(JSON.stringify(asked.map(([method, param], id) => ({ id, method, params: [param] }))));
	await until("all are answered", () => answered.length === asked.length);
	assert.deepEqual(answered.sort(), [0, 1, 2, 3]);
});

test("an edge that gives no sign, and one that talks nonsense, are cut off", async (t) => {
	const clock = new ManualClock();
	const { edges, holder } = await startCore(t, () => null, clock);
	const open = async (): Promise<WebSocket> => {
		const socket = new WebSocket(`${holder.address}${EDGE_PATH}`, {
			headers: { authorization: `Bearer ${SECRET}` },
		});
		t.after(() => socket.terminate());
		await new Promise((resolve) => socket.once("open", resolve));
		await until("the core has it", () => edges.size === 1);
		return socket;
	};
	const nonsense = await open();
	nonsense.send("{");
	await until("it is cut off", () => edges.size === 0);
	await open();
	await clock.advance(500);
	assert.equal(edges.size, 1);
	await clock.advance(1_000);
	await until("it is cut off", () => edges.size === 0);
});

const KIB = 1024;
const MIB = 1024 * KIB;

/** `count` shared transactions of `bytes` each. `onRead` is called when one's text is read. */
function* sharedOf(count: number, bytes: number, onRead: () => void = () => {}) {
	for (let i = 0; i < count; i++) {
		const hash = `0x${String(i).padStart(64, "0")}`;
		yield {
			hash,
			get text() {
				onRead();
				return JSON.stringify({ hash, input: "f".repeat(bytes) });
			},
		};
	}
}

test("an edge reads a large feed a page at a time, and has all of it before it is ready", async (t) => {
	const [count, bytes] = [24, MIB];
	let read = 0;
	const shared = () =>
		sharedOf(count, bytes, () => {
			read += 1;
		});
	const { holder } = await startCore(t, undefined, systemClock, shared);
	const { core, hub, ask } = await startEdge(t, holder);
	const seen: { readonly read: number; readonly received: number }[] = [];
	let received = 0;
	const listener = new Listener();
	hub.subscribe(listener, PENDING_TRANSACTIONS);
	while (!core.isFed) {
		await ask();
		received = listener.results.length;
		seen.push({ read, received });
	}
	await until("all are received", () => listener.results.length === count);
	const ahead = Math.max(...seen.map((one) => (one.read - one.received) * bytes));
	assert.ok(ahead <= 3 * MIB, `${ahead} bytes ahead of the edge`);
	assert.ok(seen.length > 8, "other calls are answered between pages");
});

test("news that were missed are sent again up to 8 MiB; after more, all that is shared now is read", async (t) => {
	for (const [count, isAllRead] of [
		[60, false],
		[70, true],
	] as const) {
		let reads = 0;
		const shared = () => {
			reads += 1;
			return sharedOf(1, 10);
		};
		const { edges, holder } = await startCore(t, undefined, systemClock, shared);
		const { core, hub } = await startEdge(t, holder);
		await until("the edge has what was shared before", () => core.isFed);
		const listener = new Listener();
		hub.subscribe(listener, PENDING_TRANSACTIONS);
		core.remote?.close();
		await until("it is disconnected", () => edges.size === 0 && core.remote === null);
		for (const { hash, text } of sharedOf(count, 128 * KIB)) edges.shared(`0x1${hash.slice(3)}`, text);
		const link = await CoreLink.open(holder, { ...core.linkEvents(holder), ...PATIENT });
		assert.ok(link !== null);
		core.connect(link);
		t.after(() => link.close());
		await until("it has what it missed", () => (isAllRead ? core.isFed : listener.results.length === count));
		assert.equal(reads, isAllRead ? 2 : 1);
	}
});

test("from the next core an edge reads only what its clients have not received", async (t) => {
	let reads = 0;
	const startWith = (count: number) =>
		startCore(t, undefined, systemClock, () =>
			sharedOf(count, 10, () => {
				reads += 1;
			}),
		);
	const first = await startWith(400);
	const { core, hub } = await startEdge(t, first.holder);
	const listener = new Listener();
	hub.subscribe(listener, PENDING_TRANSACTIONS);
	await until("the edge has what was shared before", () => core.isFed);
	const [news] = [...sharedOf(401, 10)].slice(-1);
	assert.ok(news !== undefined);
	first.edges.shared(news.hash, news.text);
	await until("it has the news", () => listener.results.length === 401);
	const { holder } = await startWith(402);
	const link = await CoreLink.open(holder, { ...core.linkEvents(holder), ...PATIENT });
	assert.ok(link !== null);
	t.after(() => link.close());
	core.connect(link);
	await until("it has what the next core shares", () => core.isFed);
	await until("its clients have the last one", () => listener.results.length === 402);
	assert.equal(reads, 401);
});

test("an edge that can't read the feed tries again, and is not ready until it has read it", async (t) => {
	const clock = new ManualClock();
	let failures = 0;
	const shared = () => {
		failures += 1;
		if (failures === 1) throw new TypeError("a fault of the core");
		return sharedOf(2, 10);
	};
	const { holder } = await startCore(t, undefined, clock, shared);
	const { core } = await startEdge(t, holder, clock);
	await until("it has failed", () => failures === 1);
	assert.equal(core.isFed, false);
	await until("it has tried again", async () => {
		await clock.advance(100);
		return core.isFed;
	});
	assert.equal(failures, 2);
});

test("a large answer is read in pieces, and others are answered between them", async (t) => {
	const large = { data: `0x${"ab".repeat(4 * MIB)}`, text: 'é\u2028"\\'.repeat(1_000) };
	const { holder } = await startCore(t, (_method, [what]) =>
		Promise.resolve(what === "large" ? large : "small"),
	);
	const { core, charges } = await startEdge(t, holder);
	const ask = async (what: string): Promise<unknown> => core.run(METHOD, [what], CONTEXT);
	let isOver = false;
	const asked = ask("large").finally(() => {
		isOver = true;
	});
	let small = 0;
	while (!isOver) {
		assert.equal(await ask("small"), "small");
		small += 1;
	}
	assert.deepEqual(await asked, large);
	assert.ok(small > 16, `${small} answers meanwhile`);
	assert.deepEqual(charges, []);
});

test("a long text of the node passes an edge as it is", async (t) => {
	// An edge that parsed it would fail, or change it.
	const text = `{"a":1.0,${'"é":'.repeat(MIB)}`;
	const { holder } = await startCore(t, async (_method, _params, { client }, charge) => {
		charge(client, 3);
		return new JsonText(text);
	});
	const { core, charges } = await startEdge(t, holder);
	assert.deepEqual(await core.run(METHOD, [], CONTEXT), new JsonText(text));
	assert.deepEqual(charges, [3]);
});

test("large answers are read one piece at a time, clients in turn", async (t) => {
	const large = "f".repeat(8 * MIB);
	const { holder } = await startCore(t, async (_method, [what]) => (what === "large" ? large : "small"));
	const { core } = await startEdge(t, holder);
	const ended: string[] = [];
	const ask = async (what: string, address: string): Promise<unknown> =>
		core.run(METHOD, [what], contextOf(address));
	const read = (address: string) => ask("large", address).finally(() => ended.push(address));
	const asked = ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"].map(read);
	let small = 0;
	while (ended.length < asked.length) {
		await ask("small", "192.0.2.3");
		small += 1;
	}
	await Promise.all(asked);
	assert.ok(small > 64, `${small} answers meanwhile`);
	assert.ok(ended.indexOf("192.0.2.2") < 2, `ended in order: ${ended}`);
});

test("more large answers than 64 MiB at once are refused, and later ones are answered", async (t) => {
	const large = "f".repeat(20 * MIB);
	const { holder } = await startCore(t, async (_method, _params, { client }, charge) => {
		charge(client, 3);
		return large;
	});
	const { core, charges } = await startEdge(t, holder);
	const ask = async (): Promise<unknown> => core.run(METHOD, [], CONTEXT);
	const answers = await Promise.allSettled([ask(), ask(), ask(), ask()]);
	const refused = answers.filter(({ status }) => status === "rejected");
	assert.equal(refused.length, 1);
	assert.match(String((refused[0] as PromiseRejectedResult).reason), /too many large answers/);
	assert.deepEqual(charges, [3, 3, 3, 3], "a refused one costs as much");
	assert.equal(await ask(), large);
});

const contextOf = (address: string) =>
	callContext({ path: "/", search: "" }, { address, signer: null, vouched: false }, null, null);

test("large calls go one at a time, clients in turn, and small calls pass them", async (t) => {
	const called: string[] = [];
	const { holder } = await startCore(t, async (_method, [name]) => called.push(String(name)));
	const { core } = await startEdge(t, holder);
	const large = "f".repeat(120 * KIB);
	const ask = async (name: string, address: string, data = ""): Promise<unknown> =>
		core.run(METHOD, [name, data], contextOf(address));
	const asked = Array.from({ length: 64 }, (_, i) => ask(`large ${i}`, "192.0.2.1", large));
	asked.push(ask("another's", "192.0.2.2", large), ask("small", "192.0.2.3"));
	await Promise.all(asked);
	assert.equal(called.length, 66);
	assert.ok(called.indexOf("small") <= 2, `small is number ${called.indexOf("small")}`);
	assert.ok(called.indexOf("another's") <= 4, `another's is number ${called.indexOf("another's")}`);
});

test("a large call that was not sent when the connection ends was surely not received", async (t) => {
	const { holder, edges } = await startCore(t, () => new Promise(() => {}));
	const { core } = await startEdge(t, holder);
	const link = core.remote ?? assert.fail();
	const large = "f".repeat(120 * KIB);
	const [sent, unsent] = [1, 2].map((name) => link.call("any", [name, large], CONTEXT));
	await until("the core has one", () => edges.size === 1);
	link.close();
	await assert.rejects(Promise.resolve(sent), UNANSWERED);
	await assert.rejects(Promise.resolve(unsent), NO_CORE);
});
