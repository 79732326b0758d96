// The chain followed while its node or its subscription fails: unreachable, lagging, silent, ahead, or talking nonsense.
// Blocks are caught up, nothing is told that is not so, and an outage is logged once.

import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, describe, test } from "node:test";
import { WebSocketServer } from "ws";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { type HeadFixture, startHeadFixture } from "../../support/headFixture.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../support/nodes.ts";
import { startTcpProxy } from "../../support/tcpProxy.ts";
import { until } from "../../support/until.ts";

const OUT = "warn the node does not tell its head";
const ANNOUNCED = "info heads are announced by the node";
const NOT_ANNOUNCED = "warn heads are not announced by the node: polling";
const BACK = "info the node tells its head again";

let chain: DevChain;
const ask = (method: string, params: readonly unknown[]) => chain.rpc(method, params);
const mine = (count: number) => chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);

before(async () => {
	chain = await startDevChain();
	await mine(5);
});
after(() => chain.stop());

describe("a node with faults", () => {
	let proxy: NodeProxy;
	let fixture: HeadFixture;

	before(async () => {
		proxy = await startNodeProxy(chain.url);
	});
	afterEach(async () => {
		proxy.setFault(null);
		await fixture.stop();
	});
	after(() => proxy.stop());

	const faults: readonly [string, NodeFault][] = [
		["refuses", { kind: "error", code: -32000, message: "no" }],
		["answers HTML", { kind: "html", status: 502 }],
		["closes connections", { kind: "destroy" }],
		["answers half", { kind: "truncated" }],
		["has no head", { kind: "result", result: null }],
		["answers text", { kind: "result", result: "0x1" }],
		["answers a block without a hash", { kind: "result", result: { number: "0x9", transactions: [] } }],
	];
	for (const [name, fault] of faults) {
		test(`a node that ${name}: logged once, the head stays, and all is caught up`, async () => {
			fixture = await startHeadFixture(proxy.url, ask, {});
			await fixture.inStep("the head");
			const head = fixture.tracker.current();
			proxy.reset();
			proxy.setFault(fault);
			await mine(2);
			await until("five tries", () => proxy.requests >= 5);
			assert.equal(fixture.tracker.current(), head);
			proxy.setFault(null);
			await fixture.inStep("two blocks");
			await until("the end of the outage", () => fixture.logged.includes(BACK));
			assert.deepEqual(fixture.logged, [OUT, BACK]);
			assert.equal(fixture.mirror.updates.at(-1)?.gap, false);
		});
	}

	test("a block that cannot be read whole is not passed over", async () => {
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.inStep("the head");
		proxy.setFault({ kind: "result", result: null }, { methods: ["eth_getBlockByHash"], times: 3 });
		await mine(3);
		await fixture.inStep("three blocks");
		assert.deepEqual(
			fixture.mirror.updates.slice(1).map(({ applied, gap }) => [applied.length, gap]),
			[[3, false]],
		);
	});

	test("a parent that is another block than was asked for is not believed", async () => {
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.inStep("the head");
		const wrong = await ask("eth_getBlockByNumber", ["0x1", true]);
		proxy.setFault({ kind: "result", result: wrong }, { methods: ["eth_getBlockByHash"], times: 2 });
		await mine(2);
		await fixture.inStep("two blocks");
		assert.ok(fixture.logged.includes(OUT));
	});

	test("a balancer's node that lags behind is not taken for a rollback", async () => {
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.inStep("the head");
		const lagging = await ask("eth_getBlockByNumber", ["latest", false]);
		await mine(2);
		await fixture.inStep("two blocks");
		const updates = fixture.mirror.updates.length;
		for (let i = 0; i < 3; i++) {
			proxy.reset();
			proxy.setFault({ kind: "result", result: lagging }, { methods: ["eth_getBlockByNumber"], times: 2 });
			await until("four looks", () => proxy.calls("eth_getBlockByNumber").length >= 4);
		}
		assert.equal(fixture.mirror.updates.length, updates);
		await fixture.inStep("the same head");
	});

	test("a stop does not wait for a node that hangs", async () => {
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.inStep("the head");
		proxy.reset();
		proxy.setFault({ kind: "hang" });
		await until("the request", () => proxy.requests === 1);
		const begun = performance.now();
		await fixture.stop();
		assert.ok(performance.now() - begun < 2_000);
	});
});

describe("a subscription with faults", () => {
	const latestHash = async () =>
		((await ask("eth_getBlockByNumber", ["latest", false])) as { hash: string }).hash;
	const times = (fixture: HeadFixture, line: string) => fixture.logged.filter((one) => one === line).length;

	test("while it is out heads are polled, and announced again afterwards", async () => {
		const wire = await startTcpProxy(chain.port);
		const options = { wsUrl: `ws://127.0.0.1:${wire.port}`, safetyPollMs: 60_000, pollMs: 25 };
		const fixture = await startHeadFixture(chain.url, ask, options);
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			await mine(1);
			await fixture.inStep("an announced block");
			wire.cut();
			await until("the loss", () => fixture.logged.includes(NOT_ANNOUNCED));
			await mine(2);
			await fixture.inStep("polled blocks");
			const tries = wire.accepted;
			await until("two more tries", () => wire.accepted >= tries + 2);
			assert.equal(times(fixture, NOT_ANNOUNCED), 1);
			wire.mend();
			await until("live again", () => times(fixture, ANNOUNCED) === 2);
			await mine(1);
			await fixture.inStep("an announced block");
			assert.ok(fixture.mirror.updates.slice(1).every(({ gap }) => !gap));
		} finally {
			await fixture.stop();
			await wire.stop();
		}
	});

	test("an announced head that the node's other half does not have yet is asked for until it is there", async () => {
		const proxy = await startNodeProxy(chain.url);
		const options = { wsUrl: chain.wsUrl, safetyPollMs: 60_000, pollMs: 25 };
		const fixture = await startHeadFixture(proxy.url, ask, options);
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			await fixture.inStep("the head");
			const lagging = await ask("eth_getBlockByNumber", ["latest", true]);
			proxy.reset();
			proxy.setFault({ kind: "result", result: lagging }, { methods: ["eth_getBlockByNumber"], times: 4 });
			await mine(1);
			await fixture.inStep("the block");
			assert.ok(proxy.calls("eth_getBlockByNumber").length >= 5);
		} finally {
			await fixture.stop();
			await proxy.stop();
		}
	});

	test("one that is up and announces nothing is noticed, and made anew", async () => {
		const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
		let subscriptions = 0;
		server.on("connection", (socket) => {
			socket.on("message", () => {
				subscriptions += 1;
				socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, result: "0x1" }));
			});
		});
		await until("the port", () => server.address() !== null);
		const wsUrl = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
		const fixture = await startHeadFixture(chain.url, ask, { wsUrl, safetyPollMs: 30, pollMs: 60_000 });
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			for (let i = 0; i < 3; i++) {
				await mine(1);
				await fixture.inStep("a block found by asking");
			}
			await until("a new subscription", () => subscriptions === 2);
			assert.ok(fixture.logged.includes("warn the node announces no heads any more: subscribing anew"));
		} finally {
			await fixture.stop();
			server.close();
		}
	});

	test("announcements twice, of old blocks, or of nothing at all do no harm", async () => {
		const { server, wsUrl, say } = await announcer();
		const fixture = await startHeadFixture(chain.url, ask, { wsUrl, safetyPollMs: 60_000, pollMs: 25 });
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			await fixture.inStep("the head");
			const old = fixture.mirror.head?.hash;
			for (let i = 0; i < 3; i++) {
				await mine(1);
				const hash = await latestHash();
				for (const one of [hash, hash, old, "0x12", null, 7, `0x${"9".repeat(64)}`, hash]) say(one);
				await fixture.inStep("the block");
			}
			assert.deepEqual(
				fixture.mirror.updates.slice(1).map(({ applied, reverted }) => [applied.length, reverted.length]),
				[
					[1, 0],
					[1, 0],
					[1, 0],
				],
			);
			assert.equal(times(fixture, NOT_ANNOUNCED), 0);
		} finally {
			await fixture.stop();
			server.close();
		}
	});
});

/** A server that takes subscriptions and announces what it is told to. */
async function announcer() {
	const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
	let send = (_text: string): void => {};
	server.on("connection", (socket) => {
		socket.on("message", () => socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, result: "0x1" })));
		send = (text) => socket.send(text);
	});
	await until("the port", () => server.address() !== null);
	return {
		server,
		wsUrl: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
		say(hash: unknown) {
			const params = { subscription: "0x1", result: { hash } };
			send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
		},
	};
}
