// The hub: who listens is told, each under an id of its own, in text that was made once; nobody stops the others,
// nothing is told before the id was, and nothing is kept of a connection that has ended.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MAX_SUBSCRIPTIONS, SubscriptionHub } from "../../../../relay/ingress/subscriptions.ts";
import { type LogFields, type Logger, silentLogger } from "../../../../shared/log.ts";
import { Listener, OpenExchange } from "../../../support/listeners.ts";

function fixture() {
	const lines: (readonly [string, LogFields | undefined])[] = [];
	const keep = (message: string, fields?: LogFields) => void lines.push([message, fields]);
	const log: Logger = { ...silentLogger, warn: keep, error: keep };
	return { hub: new SubscriptionHub({ log }), lines };
}

describe("publishing", () => {
	test("each listener of the topic is told once, in the shape of the interface, and nobody else", () => {
		const { hub } = fixture();
		const [one, two, other] = [new Listener(), new Listener(), new Listener()];
		const id = hub.subscribe(one, "a");
		hub.subscribe(two, "a");
		hub.subscribe(other, "b");
		hub.publish("a", () => ({ hash: "0x1", list: ["x"], to: null }));
		assert.equal(
			one.frames[0],
			`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"${id}","result":{"hash":"0x1","list":["x"],"to":null}}}`,
		);
		assert.deepEqual([one.frames.length, two.frames.length, other.frames.length], [1, 1, 0]);
		assert.notEqual(two.told[0]?.params.subscription, id);
	});

	test("the result is made and serialised once for two hundred listeners, and not at all for none", () => {
		const { hub } = fixture();
		let made = 0;
		let serialised = 0;
		const make = () => {
			made++;
			return {
				toJSON() {
					serialised++;
					return "the result";
				},
			};
		};
		hub.publish("a", make);
		assert.deepEqual([made, serialised], [0, 0]);
		const crowd = Array.from({ length: 200 }, () => new Listener());
		for (const one of crowd) hub.subscribe(one, "a");
		hub.publish("a", make);
		assert.deepEqual([made, serialised], [1, 1]);
		assert.ok(crowd.every((one) => one.told[0]?.params.result === "the result"));
	});

	test("ids are 16 random bytes, and never the same", () => {
		const { hub } = fixture();
		const ids = Array.from({ length: 500 }, () => hub.subscribe(new Listener(), "a"));
		assert.ok(ids.every((id) => /^0x[0-9a-f]{32}$/.test(id)));
		assert.equal(new Set(ids).size, 500);
	});

	test("one connection that is broken stops nobody, and its fault is told without its words", () => {
		const { hub, lines } = fixture();
		const [before, broken, behind] = [new Listener(), new Listener(), new Listener()];
		for (const one of [before, broken, behind]) hub.subscribe(one, "a");
		broken.fault = new Error("0xdeadbeefcafe");
		hub.publish("a", () => 1);
		assert.deepEqual([before.frames.length, broken.frames.length, behind.frames.length], [1, 0, 1]);
		assert.equal(lines.length, 1);
		assert.ok(!JSON.stringify(lines).includes("deadbeef"), JSON.stringify(lines));
	});

	test("a result that can't be made fails nobody who publishes, and is logged", () => {
		const { hub, lines } = fixture();
		const one = new Listener();
		hub.subscribe(one, "a");
		hub.publish("a", () => ({ value: 1n }));
		hub.publish("a", () => {
			throw new Error("0xdeadbeefcafe");
		});
		hub.publish("a", () => undefined);
		assert.deepEqual(
			one.told.map(({ params }) => params.result),
			[null],
		);
		assert.equal(lines.length, 2);
		assert.ok(!JSON.stringify(lines).includes("deadbeef"));
	});

	test("one subscription can be told alone, by its own connection only", () => {
		const { hub } = fixture();
		const [one, two] = [new Listener(), new Listener()];
		const id = hub.subscribe(one, "a");
		hub.subscribe(two, "a");
		hub.notify(one, id, () => "now");
		hub.notify(two, id, () => "not yours");
		assert.deepEqual(one.results, [[id, "now"]]);
		assert.equal(two.frames.length, 0);
	});
});

describe("before the id was told", () => {
	test("nothing is sent; then all of it, in order", () => {
		const { hub } = fixture();
		const one = new Listener();
		const exchange = new OpenExchange();
		const id = hub.subscribe(one, "a", exchange);
		hub.notify(one, id, () => "present");
		hub.publish("a", () => "first");
		hub.publish("a", () => "second");
		assert.equal(one.frames.length, 0);
		exchange.answer();
		hub.publish("a", () => "third");
		assert.deepEqual(
			one.results,
			["present", "first", "second", "third"].map((text) => [id, text]),
		);
	});

	test("others of the same connection, whose ids are known, don't wait", () => {
		const { hub } = fixture();
		const one = new Listener();
		const known = hub.subscribe(one, "a");
		const exchange = new OpenExchange();
		hub.subscribe(one, "a", exchange);
		hub.publish("a", () => 1);
		assert.deepEqual(one.results, [[known, 1]]);
	});

	test("what ends before its id was told is never heard of", () => {
		const { hub } = fixture();
		const one = new Listener();
		const exchange = new OpenExchange();
		const id = hub.subscribe(one, "a", exchange);
		hub.publish("a", () => 1);
		assert.equal(hub.unsubscribe(one, id), true);
		exchange.answer();
		assert.equal(one.frames.length, 0);
	});

	test("a connection that ends meanwhile is sent nothing", () => {
		const { hub } = fixture();
		const one = new Listener();
		const exchange = new OpenExchange();
		hub.subscribe(one, "a", exchange);
		hub.publish("a", () => 1);
		one.end();
		exchange.answer();
		assert.deepEqual([one.frames.length, hub.size], [0, 0]);
	});

	test("who leaves its message open while megabytes come is closed as too slow", () => {
		const { hub } = fixture();
		const one = new Listener();
		hub.subscribe(one, "a", new OpenExchange());
		const mebibyte = "x".repeat(1024 * 1024 - 2);
		for (let sent = 0; sent < 8; sent++) hub.publish("a", () => mebibyte);
		assert.deepEqual(one.closes, []);
		hub.publish("a", () => mebibyte);
		assert.deepEqual(one.closes, [{ code: 1013, reason: "too slow" }]);
		assert.equal(one.frames.length, 0);
	});
});

describe("a connection's own", () => {
	test(`${MAX_SUBSCRIPTIONS} are taken, one more is refused in words, and one that ended makes room`, () => {
		const { hub } = fixture();
		const [one, other] = [new Listener(), new Listener()];
		const ids = Array.from({ length: 16 }, (_, i) => hub.subscribe(one, `topic ${i % 3}`));
		const refused = {
			name: "RpcError",
			code: -32005,
			kind: "limit",
			message: "limit exceeded: 16 subscriptions a connection",
		};
		assert.throws(() => hub.subscribe(one, "b"), refused);
		assert.equal(hub.size, 16);
		hub.subscribe(other, "b");
		assert.equal(hub.unsubscribe(one, ids[3] ?? ""), true);
		hub.subscribe(one, "b");
		assert.throws(() => hub.subscribe(one, "b"), refused);
	});

	test("only one's own subscription can be ended, and only once", () => {
		const { hub } = fixture();
		const [one, two] = [new Listener(), new Listener()];
		const id = hub.subscribe(one, "a");
		hub.subscribe(two, "a");
		assert.equal(hub.unsubscribe(two, id), false);
		assert.equal(hub.unsubscribe(new Listener(), id), false);
		hub.publish("a", () => 1);
		assert.equal(hub.unsubscribe(one, id), true);
		assert.equal(hub.unsubscribe(one, id), false);
		hub.publish("a", () => 2);
		assert.deepEqual([one.frames.length, two.frames.length, hub.size], [1, 2, 1]);
	});

	test("at its end all of it is forgotten", () => {
		const { hub } = fixture();
		const [one, two] = [new Listener(), new Listener()];
		for (const topic of ["a", "a", "b"]) hub.subscribe(one, topic);
		hub.subscribe(two, "a");
		assert.deepEqual([hub.size, hub.isHeard("a"), hub.isHeard("b")], [4, true, true]);
		one.end();
		assert.deepEqual([hub.size, hub.isHeard("a"), hub.isHeard("b")], [1, true, false]);
		hub.publish("a", () => 1);
		assert.deepEqual([one.frames.length, two.frames.length], [0, 1]);
		two.end();
		assert.deepEqual([hub.size, hub.isHeard("a")], [0, false]);
	});

	test("one that has ended before it subscribed leaves nothing behind", () => {
		const { hub } = fixture();
		const gone = new Listener();
		gone.end();
		hub.subscribe(gone, "a");
		assert.deepEqual([hub.size, hub.isHeard("a")], [0, false]);
	});

	test("it is watched once, however often it subscribes and leaves", () => {
		const { hub } = fixture();
		const one = new Listener();
		for (let i = 0; i < 100; i++) hub.unsubscribe(one, hub.subscribe(one, "a"));
		assert.deepEqual([one.watchers, hub.size], [1, 0]);
	});
});
