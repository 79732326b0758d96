// The chain followed while its node fails: unreachable, lagging, or talking nonsense. Blocks are caught up, nothing is
// told that is not so, and an outage is logged once.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { type HeadFixture, startHeadFixture } from "../../support/headFixture.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../support/nodeProxy.ts";
import { until } from "../../support/until.ts";

const OUT = "warn the node does not tell its head";
const BACK = "info the node tells its head again";

describe("a node with faults", () => {
	let chain: DevChain;
	let proxy: NodeProxy;
	let fixture: HeadFixture;
	const ask = (method: string, params: readonly unknown[]) => chain.rpc(method, params);
	const mine = (count: number) => chain.rpc("anvil_mine", [`0x${count.toString(16)}`]);

	before(async () => {
		chain = await startDevChain();
		await mine(5);
		proxy = await startNodeProxy(chain.url);
	});
	afterEach(async () => {
		proxy.setFault(null);
		await fixture.stop();
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

	test("before the node answers for the first time there is no head, and its age is endless", async () => {
		proxy.setFault({ kind: "html", status: 503 });
		fixture = await startHeadFixture(proxy.url, ask, {});
		await until("the outage", () => fixture.logged.includes(OUT));
		assert.equal(fixture.tracker.current(), null);
		assert.equal(fixture.tracker.next(), null);
		assert.equal(fixture.tracker.ageMs(), Infinity);
		proxy.setFault(null);
		await fixture.inStep("the first head");
		assert.ok(fixture.tracker.ageMs() < 60_000);
	});

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

	test("what the fees of the next block are is told by formula where the node cannot", async () => {
		proxy.setFault({ kind: "error", code: -32601, message: "no" }, { methods: ["eth_feeHistory"] });
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.inStep("the head");
		const told = fixture.tracker.next()?.baseFee;
		await mine(1);
		await fixture.inStep("the next block");
		assert.equal(fixture.tracker.current()?.baseFee, told);
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

	test("polling asks little: no block is read in full but a new one", async () => {
		fixture = await startHeadFixture(proxy.url, ask, {});
		await fixture.inStep("the head");
		proxy.reset();
		await until("ten looks", () => proxy.requests >= 10);
		assert.ok(proxy.calls().every(({ method, params }) => method === "eth_getBlockByNumber" && !params[1]));
		proxy.reset();
		await mine(1);
		await fixture.inStep("the block");
		assert.equal(proxy.calls("eth_getBlockByHash").length, 1);
		assert.equal(proxy.calls("eth_feeHistory").length, 1);
	});
});
