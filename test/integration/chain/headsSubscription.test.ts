// The chain followed by a subscription that fails: lost, silent, ahead of the node, or talking nonsense.

import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { WebSocketServer } from "ws";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { type HeadFixture, startHeadFixture } from "../../support/headFixture.ts";
import { startNodeProxy } from "../../support/nodeProxy.ts";
import { startTcpProxy } from "../../support/tcpProxy.ts";
import { until } from "../../support/until.ts";

const ANNOUNCED = "info heads are announced by the node";
const NOT_ANNOUNCED = "warn heads are not announced by the node: polling";

describe("a subscription with faults", () => {
	let chain: DevChain;
	const ask = (method: string, params: readonly unknown[]) => chain.rpc(method, params);
	const mine = (count: number) => chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);
	const latestHash = async () =>
		((await ask("eth_getBlockByNumber", ["latest", false])) as { hash: string }).hash;
	const times = (fixture: HeadFixture, line: string) => fixture.logged.filter((one) => one === line).length;

	before(async () => {
		chain = await startDevChain();
	});
	after(() => chain.stop());

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
			proxy.reset();
			await mine(1);
			await fixture.inStep("the next block");
			// Announced, so it is asked for whole at once, and then nothing more.
			assert.deepEqual(
				proxy.calls().map(({ method }) => method),
				["eth_getBlockByNumber", "eth_feeHistory"],
			);
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

	test("announcements of what is known already ask nothing of the node", async () => {
		const { server, wsUrl, say } = await announcer();
		const proxy = await startNodeProxy(chain.url);
		const fixture = await startHeadFixture(proxy.url, ask, { wsUrl, safetyPollMs: 60_000, pollMs: 25 });
		try {
			await until("live", () => fixture.logged.includes(ANNOUNCED));
			await fixture.inStep("the head");
			const known = fixture.mirror.head?.hash;
			await mine(1);
			say(await latestHash());
			await fixture.inStep("the block");
			proxy.reset();
			for (const hash of [fixture.mirror.head?.hash, known, fixture.mirror.head?.hash]) say(hash);
			await mine(1);
			say(await latestHash());
			await fixture.inStep("the next block");
			assert.deepEqual(
				proxy.calls().map(({ method }) => method),
				["eth_getBlockByNumber", "eth_feeHistory"],
			);
		} finally {
			await fixture.stop();
			await proxy.stop();
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
