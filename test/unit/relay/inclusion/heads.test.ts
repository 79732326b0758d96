// The subscription to heads: what it accepts as an announcement, and how it reconnects. And a node
// that leaves reads unanswered.

import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import { fieldsOf, readHash } from "../../../../relay/domain/nodeJson.ts";
import { Recoveries } from "../../../../relay/domain/recoveries.ts";
import { HeadTracker } from "../../../../relay/inclusion/heads.ts";
import { NodeSubscription } from "../../../../relay/inclusion/nodeSubscription.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { Slots } from "../../../../shared/ethereum/slots.ts";
import type { JsonRpcClient } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";

const HASH = `0x${"ab".repeat(32)}`;

let heads: string[];
let logged: string[];
let changes: number;
let subscription: NodeSubscription;

function subscribe(url: string): void {
	subscription = new NodeSubscription(
		{ url, topic: "newHeads" },
		{
			onResult(head) {
				const hash = readHash(fieldsOf(head)?.hash);
				if (hash !== null) heads.push(hash);
			},
			onLive() {
				changes += 1;
			},
			onAway(isNew) {
				if (isNew) changes += 1;
				logged.push(isNew ? "away" : "still away");
			},
			...{ random: () => 0, clock: systemClock },
		},
	);
	subscription.start();
}

beforeEach(() => {
	heads = [];
	logged = [];
	changes = 0;
});

describe("NodeSubscription and a server that is not as expected", () => {
	let server: WebSocketServer;
	let url: string;
	let onMessage: (socket: WebSocket, text: string) => void;
	let connections: number;

	before(async () => {
		server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
		await until("the port", () => server.address() !== null);
		url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
		server.on("connection", (socket) => {
			connections += 1;
			socket.on("message", (data) => onMessage(socket, data.toString()));
		});
	});
	beforeEach(() => {
		connections = 0;
	});
	afterEach(() => subscription.stop());
	after(() => {
		server.close();
	});

	const announce = (params: unknown) =>
		JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params });

	const refusals: readonly [string, object][] = [
		["an error", { error: { code: -32601, message: "no subscriptions here" } }],
		["null", { result: null }],
		["nothing", {}],
	];
	for (const [name, answer] of refusals) {
		test(`answered with ${name} it tries again, and says so once`, async () => {
			onMessage = (socket) => socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, ...answer }));
			subscribe(url);
			await until("three tries", () => connections === 3);
			assert.equal(subscription.live, false);
			assert.equal(changes, 1);
			assert.equal(logged[0], "away");
			assert.ok(logged.slice(1).every((one) => one === "still away"));
		});
	}

	test("takes nothing for an announcement that is none", async () => {
		onMessage = (socket) => {
			socket.send(announce({ subscription: "0x7", result: { hash: `0x${"11".repeat(32)}` } }));
			socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, result: "0x7" }));
			const result = { hash: `0x${"22".repeat(32)}` };
			for (const one of [
				"",
				"nonsense",
				"null",
				"[]",
				"7",
				"{}",
				JSON.stringify({ jsonrpc: "2.0", id: 2, result: HASH }),
				JSON.stringify({ method: "eth_other", params: { subscription: "0x7", result } }),
				announce(null),
				announce([]),
				announce({ subscription: "0x8", result }),
				announce({ subscription: "0x7" }),
				announce({ subscription: "0x7", result: null }),
				announce({ subscription: "0x7", result: {} }),
				announce({ subscription: "0x7", result: { hash: 7 } }),
				announce({ subscription: "0x7", result: { hash: "0x22" } }),
				announce({ subscription: "0x7", result: { hash: `0x${"zz".repeat(32)}` } }),
			]) {
				socket.send(one);
			}
			socket.send(announce({ subscription: "0x7", result: { hash: HASH.toUpperCase().replace("X", "x") } }));
		};
		subscribe(url);
		await until("the real announcement", () => heads.length > 0);
		assert.deepEqual(heads, [HASH]);
		assert.equal(connections, 1);
	});

	test("a message beyond all measure ends the connection, not the process", async () => {
		onMessage = (socket) => {
			socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, result: "0x7" }));
			if (connections === 1) socket.send("x".repeat(2 * 1024 * 1024));
		};
		subscribe(url);
		await until("a second connection", () => connections === 2);
		await until("live", () => subscription.live);
		assert.equal(changes, 3);
	});
});

describe("a node whose connection hangs", () => {
	let clock: ManualClock;
	beforeEach(() => {
		clock = new ManualClock();
	});
	const trackerOf = (call: JsonRpcClient["call"]): HeadTracker => {
		const nextBlock = () => assert.fail("there is no head");
		const recoveries = new Recoveries();
		const node = { call, batch: async () => assert.fail("there is no head") };
		const slots = new Slots({ setMs: 12_000 }, { clock });
		const dependencies = { node, nextBlock, slots, recoveries, chainId: 1n, clock, log: silentLogger };
		return new HeadTracker({ pollMs: 1_000 }, dependencies);
	};

	test("the read is sent again, and the first answer counts", async () => {
		let reads = 0;
		const tracker = trackerOf(async () => {
			reads += 1;
			return reads < 3 ? new Promise<never>(() => {}) : { ok: true as const, result: null };
		});
		await tracker.start();
		await clock.advance(1_000);
		// The third read's null is no block: the check has failed, long before the first read's
		// deadline.
		assert.deepEqual([reads, tracker.isUnavailable], [3, true]);
		await tracker.stop();
	});

	test("an answer that has begun is not asked for again", async () => {
		let reads = 0;
		const tracker = trackerOf((_call, _timeoutMs, _maxBytes, onBegin) => {
			reads += 1;
			if (reads === 2) onBegin?.();
			return new Promise<never>(() => {});
		});
		await tracker.start();
		await clock.advance(4_000);
		assert.deepEqual([reads, tracker.isUnavailable], [2, false]);
		await tracker.stop();
	});
});
