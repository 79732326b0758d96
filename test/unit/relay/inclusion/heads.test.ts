// The subscription to heads on its own: what it takes for an announcement, when it gives a connection up, and how
// it comes back.

import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";
import { HeadSubscription } from "../../../../relay/inclusion/headSubscription.ts";
import { HeadTracker } from "../../../../relay/inclusion/heads.ts";
import { type Clock, systemClock } from "../../../../shared/clock.ts";
import { UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { type Logger, silentLogger } from "../../../../shared/log.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { until } from "../../../support/until.ts";

const HASH = `0x${"ab".repeat(32)}`;

let heads: string[];
let logged: string[];
let changes: number;
let subscription: HeadSubscription;
/** Timers that are set. */
const timers = new Set<symbol>();
const clock: Clock = {
	...systemClock,
	after(ms, fn) {
		const name = Symbol("timer");
		timers.add(name);
		const timer = systemClock.after(ms, () => {
			timers.delete(name);
			fn();
		});
		return {
			cancel() {
				timers.delete(name);
				timer.cancel();
			},
		};
	},
};

function subscribe(url: string, options: { pingMs?: number } = {}): HeadSubscription {
	const note = (message: string) => logged.push(message);
	const log: Logger = { ...silentLogger, info: note, warn: note, error: note };
	const onHead = (hash: string) => heads.push(hash);
	const onChange = () => {
		changes += 1;
	};
	subscription = new HeadSubscription({ url, ...options }, { onHead, onChange, random: () => 0, clock, log });
	subscription.start();
	return subscription;
}

beforeEach(() => {
	heads = [];
	logged = [];
	changes = 0;
});

describe("HeadSubscription and a server that is not as expected", () => {
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
			assert.equal(changes, 0);
			assert.deepEqual(logged, ["heads are not announced by the node: polling"]);
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
		await until("the one that is", () => heads.length > 0);
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
	type Answer = "hang" | "refuse" | { readonly ok: true; readonly result: unknown };

	/** A tracker of a node that answers the questions one after the other so, and every further one by the last. */
	async function follow(answers: readonly Answer[]) {
		const clock = new ManualClock();
		const deadlines: number[] = [];
		const node = {
			call: (_call: unknown, deadlineMs = 0) => {
				const answer = answers[Math.min(deadlines.length, answers.length - 1)] ?? "hang";
				deadlines.push(deadlineMs);
				return new Promise<never>((resolve, reject) => {
					if (answer === "refuse") reject(new UpstreamError("unreachable"));
					else if (answer === "hang") clock.after(deadlineMs, () => reject(new UpstreamError("timeout")));
					else resolve(answer as never);
				});
			},
		};
		const tracker = new HeadTracker(
			{ pollMs: 1_000, slotSeconds: 12 },
			{
				node,
				nextBlock: () => Promise.reject(new UpstreamError("unreachable")),
				authorityOf: () => null,
				clock,
				log: silentLogger,
			},
		);
		await tracker.start();
		await clock.advance(0);
		return { clock, deadlines, tracker };
	}

	test("the first answer counts, whichever question it is to", async () => {
		const { clock, deadlines, tracker } = await follow(["hang", "hang", { ok: true, result: null }]);
		await clock.advance(1_000);
		// Null is no block: the look has failed, long before the first question's deadline.
		assert.equal(tracker.isUnavailable, true);
		assert.equal(deadlines.length, 3);
		await tracker.stop();
	});
});
