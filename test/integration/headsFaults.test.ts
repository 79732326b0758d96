// The chain followed while its node fails: killed and restarted, unreachable by one road, lagging, or talking
// nonsense. Blocks are caught up, nothing is told that is not so, and an outage is logged once.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { WebSocketServer } from "ws";
import { type AnvilProcess, startAnvil } from "../devnet/anvilProcess.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { type HeadScene, startHeadScene } from "../support/headScene.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../support/nodeProxy.ts";
import { startTcpProxy } from "../support/tcpProxy.ts";
import { until } from "../support/until.ts";

const ANNOUNCED = "info heads are announced by the node";
const NOT_ANNOUNCED = "warn heads are not announced by the node: polling";
const OUT = "warn the node does not tell its head";
const BACK = "info the node tells its head again";

describe("a node that is killed and started again", () => {
	for (const road of ["polling", "subscription"] as const) {
		test(`by ${road}: what was mined meanwhile is caught up block by block`, async () => {
			const folder = mkdtempSync(join(tmpdir(), "leeward-heads-"));
			const args = ["--no-mining", "--state", join(folder, "state.json")];
			let anvil: AnvilProcess = await startAnvil(0, args);
			const { url, port } = anvil;
			const ask = (method: string, params: readonly unknown[]) => post(url, method, params);
			const scene = await startHeadScene(url, ask, {
				pollMs: 25,
				...(road === "subscription" ? { wsUrl: url.replace("http", "ws"), safetyPollMs: 60_000 } : {}),
			});
			try {
				await ask("anvil_mine", ["0x3"]);
				await scene.inStep("three blocks");
				if (road === "subscription") await until("live", () => scene.logged.includes(ANNOUNCED));
				// anvil keeps its state when it is asked to end.
				process.kill(anvil.pid, "SIGTERM");
				await until("the outage in the log", () => scene.logged.includes(OUT));
				await until("the end of the process", () => Promise.race([anvil.gone.then(() => true), false]));
				assert.equal(scene.tracker.current()?.number, 3);
				anvil = await startAnvil(port, args);
				await ask("anvil_mine", ["0x4"]);
				await scene.inStep("four more");
				assert.equal(scene.tracker.current()?.number, 7);
				assert.ok(scene.mirror.updates.slice(1).every(({ gap, reverted }) => !gap && reverted.length === 0));
				if (road === "subscription") {
					await until("live again", () => scene.logged.filter((line) => line === ANNOUNCED).length === 2);
					await ask("anvil_mine", ["0x1"]);
					await scene.inStep("an announced block");
				}
				assert.equal(scene.logged.filter((line) => line === OUT).length, 1);
				assert.equal(scene.logged.filter((line) => line === BACK).length, 1);
			} finally {
				await scene.stop();
				await anvil.stop();
				rmSync(folder, { recursive: true });
			}
		});
	}

	test("another chain on the same port is a gap, never taken for a way", async () => {
		const first = await startAnvil(0, ["--no-mining", "--timestamp", "1700000000"]);
		const ask = (method: string, params: readonly unknown[]) => post(first.url, method, params);
		const scene = await startHeadScene(first.url, ask, {});
		let second: AnvilProcess | null = null;
		try {
			await ask("anvil_mine", ["0x3"]);
			await scene.inStep("three blocks");
			await first.stop();
			second = await startAnvil(first.port, ["--no-mining", "--timestamp", "1700000001"]);
			await scene.inStep("the other chain");
			assert.equal(scene.mirror.updates.at(-1)?.gap, true);
			assert.ok(scene.logged.includes("warn blocks were missed"));
		} finally {
			await scene.stop();
			await first.stop();
			await second?.stop();
		}
	});
});

describe("a node with faults", () => {
	let chain: DevChain;
	let proxy: NodeProxy;
	let scene: HeadScene;
	const ask = (method: string, params: readonly unknown[]) => chain.rpc(method, params);
	const mine = (count: number) => chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);

	before(async () => {
		chain = await startDevChain();
		await mine(5);
		proxy = await startNodeProxy(chain.url);
	});
	afterEach(async () => {
		proxy.setFault(null);
		await scene.stop();
	});
	after(async () => {
		await proxy.stop();
		await chain.stop();
	});

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
			scene = await startHeadScene(proxy.url, ask, {});
			await scene.inStep("the head");
			const head = scene.tracker.current();
			proxy.reset();
			proxy.setFault(fault);
			await mine(2);
			await until("five tries", () => proxy.requests >= 5);
			assert.equal(scene.tracker.current(), head);
			proxy.setFault(null);
			await scene.inStep("two blocks");
			await until("the end of the outage", () => scene.logged.includes(BACK));
			assert.deepEqual(scene.logged, [OUT, BACK]);
			assert.equal(scene.mirror.updates.at(-1)?.gap, false);
		});
	}

	test("before the node answers for the first time there is no head, and its age is endless", async () => {
		proxy.setFault({ kind: "html", status: 503 });
		scene = await startHeadScene(proxy.url, ask, {});
		await until("the outage", () => scene.logged.includes(OUT));
		assert.equal(scene.tracker.current(), null);
		assert.equal(scene.tracker.next(), null);
		assert.equal(scene.tracker.ageMs(), Infinity);
		proxy.setFault(null);
		await scene.inStep("the first head");
		assert.ok(scene.tracker.ageMs() < 60_000);
	});

	test("a block that cannot be read whole is not passed over", async () => {
		scene = await startHeadScene(proxy.url, ask, {});
		await scene.inStep("the head");
		proxy.setFault({ kind: "result", result: null }, { methods: ["eth_getBlockByHash"], times: 3 });
		await mine(3);
		await scene.inStep("three blocks");
		assert.deepEqual(
			scene.mirror.updates.slice(1).map(({ applied, gap }) => [applied.length, gap]),
			[[3, false]],
		);
	});

	test("a parent that is another block than was asked for is not believed", async () => {
		scene = await startHeadScene(proxy.url, ask, {});
		await scene.inStep("the head");
		const wrong = await ask("eth_getBlockByNumber", ["0x1", true]);
		proxy.setFault({ kind: "result", result: wrong }, { methods: ["eth_getBlockByHash"], times: 2 });
		await mine(2);
		await scene.inStep("two blocks");
		assert.ok(scene.logged.includes(OUT));
	});

	test("a balancer's node that lags behind is not taken for a rollback", async () => {
		scene = await startHeadScene(proxy.url, ask, {});
		await scene.inStep("the head");
		const lagging = await ask("eth_getBlockByNumber", ["latest", false]);
		await mine(2);
		await scene.inStep("two blocks");
		const updates = scene.mirror.updates.length;
		for (let i = 0; i < 3; i++) {
			proxy.reset();
			proxy.setFault({ kind: "result", result: lagging }, { methods: ["eth_getBlockByNumber"], times: 2 });
			await until("four looks", () => proxy.calls("eth_getBlockByNumber").length >= 4);
		}
		assert.equal(scene.mirror.updates.length, updates);
		await scene.inStep("the same head");
	});

	test("what the fees of the next block are is told by formula where the node cannot", async () => {
		proxy.setFault({ kind: "error", code: -32601, message: "no" }, { methods: ["eth_feeHistory"] });
		scene = await startHeadScene(proxy.url, ask, {});
		await scene.inStep("the head");
		const told = scene.tracker.next()?.baseFee;
		await mine(1);
		await scene.inStep("the next block");
		assert.equal(scene.tracker.current()?.baseFee, told);
	});

	test("a stop while the node hangs ends within its deadline", async () => {
		scene = await startHeadScene(proxy.url, ask, {});
		await scene.inStep("the head");
		proxy.reset();
		proxy.setFault({ kind: "hang" });
		await until("the request", () => proxy.requests === 1);
		const begun = performance.now();
		await scene.stop();
		assert.ok(performance.now() - begun < 6_500);
	});

	test("polling asks little: no block is read in full but a new one", async () => {
		scene = await startHeadScene(proxy.url, ask, {});
		await scene.inStep("the head");
		proxy.reset();
		await until("ten looks", () => proxy.requests >= 10);
		assert.ok(proxy.calls().every(({ method, params }) => method === "eth_getBlockByNumber" && !params[1]));
		proxy.reset();
		await mine(1);
		await scene.inStep("the block");
		assert.equal(proxy.calls("eth_getBlockByHash").length, 1);
		assert.equal(proxy.calls("eth_feeHistory").length, 1);
	});
});

describe("a subscription with faults", () => {
	let chain: DevChain;
	const ask = (method: string, params: readonly unknown[]) => chain.rpc(method, params);
	const mine = (count: number) => chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);
	const times = (scene: HeadScene, line: string) => scene.logged.filter((one) => one === line).length;

	before(async () => {
		chain = await startDevChain();
	});
	after(() => chain.stop());

	test("while it is out heads are polled, and announced again afterwards", async () => {
		const wire = await startTcpProxy(chain.port);
		const options = { wsUrl: `ws://127.0.0.1:${wire.port}`, safetyPollMs: 60_000, pollMs: 25 };
		const scene = await startHeadScene(chain.url, ask, options);
		try {
			await until("live", () => scene.logged.includes(ANNOUNCED));
			await mine(1);
			await scene.inStep("an announced block");
			wire.cut();
			await until("the loss", () => scene.logged.includes(NOT_ANNOUNCED));
			await mine(2);
			await scene.inStep("polled blocks");
			const tries = wire.accepted;
			await until("two more tries", () => wire.accepted >= tries + 2);
			assert.equal(times(scene, NOT_ANNOUNCED), 1);
			wire.mend();
			await until("live again", () => times(scene, ANNOUNCED) === 2);
			await mine(1);
			await scene.inStep("an announced block");
			assert.ok(scene.mirror.updates.slice(1).every(({ gap }) => !gap));
		} finally {
			await scene.stop();
			await wire.stop();
		}
	});

	test("an announced head that the node's other half does not have yet is asked for until it is there", async () => {
		const proxy = await startNodeProxy(chain.url);
		const options = { wsUrl: chain.wsUrl, safetyPollMs: 60_000, pollMs: 25 };
		const scene = await startHeadScene(proxy.url, ask, options);
		try {
			await until("live", () => scene.logged.includes(ANNOUNCED));
			await scene.inStep("the head");
			const lagging = await ask("eth_getBlockByNumber", ["latest", true]);
			proxy.reset();
			proxy.setFault({ kind: "result", result: lagging }, { methods: ["eth_getBlockByNumber"], times: 4 });
			await mine(1);
			await scene.inStep("the block");
			assert.ok(proxy.calls("eth_getBlockByNumber").length >= 5);
			proxy.reset();
			await mine(1);
			await scene.inStep("the next block");
			// Announced, so it is asked for whole at once, and then nothing more.
			assert.deepEqual(
				proxy.calls().map(({ method }) => method),
				["eth_getBlockByNumber", "eth_feeHistory"],
			);
		} finally {
			await scene.stop();
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
		const scene = await startHeadScene(chain.url, ask, { wsUrl, safetyPollMs: 30, pollMs: 60_000 });
		try {
			await until("live", () => scene.logged.includes(ANNOUNCED));
			for (let i = 0; i < 3; i++) {
				await mine(1);
				await scene.inStep("a block found by asking");
			}
			await until("a new subscription", () => subscriptions === 2);
			assert.ok(scene.logged.includes("warn the node announces no heads any more: subscribing anew"));
		} finally {
			await scene.stop();
			server.close();
		}
	});

	test("announcements twice, of old blocks, or of nothing at all do no harm", async () => {
		const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
		let say = (_hash: unknown): void => {};
		server.on("connection", (socket) => {
			socket.on("message", () => socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, result: "0x1" })));
			say = (hash) => {
				const params = { subscription: "0x1", result: { hash } };
				socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
			};
		});
		await until("the port", () => server.address() !== null);
		const wsUrl = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
		const scene = await startHeadScene(chain.url, ask, { wsUrl, safetyPollMs: 60_000, pollMs: 25 });
		try {
			await until("live", () => scene.logged.includes(ANNOUNCED));
			await scene.inStep("the head");
			const old = scene.mirror.head?.hash;
			for (let i = 0; i < 3; i++) {
				await mine(1);
				const { hash } = (await ask("eth_getBlockByNumber", ["latest", false])) as { hash: string };
				for (const one of [hash, hash, old, "0x12", null, 7, `0x${"9".repeat(64)}`, hash]) say(one);
				await scene.inStep("the block");
			}
			assert.deepEqual(
				scene.mirror.updates.slice(1).map(({ applied, reverted }) => [applied.length, reverted.length]),
				[
					[1, 0],
					[1, 0],
					[1, 0],
				],
			);
			assert.equal(times(scene, NOT_ANNOUNCED), 0);
		} finally {
			await scene.stop();
			server.close();
		}
	});
});

async function post(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
	const headers = { "content-type": "application/json" };
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	const answer = await fetch(url, { method: "POST", headers, body });
	return ((await answer.json()) as { result: unknown }).result;
}
