// Account states when the node fails, lags or is asked too much: an error in time, or the state after all.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { NodeAccounts } from "../../../../relay/chain/accounts.ts";
import { NodeReader } from "../../../../relay/chain/nodeReader.ts";
import { Background } from "../../../../shared/background.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { JsonRpcClient, UpstreamError, type UpstreamFault } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { type DevChain, startDevChain } from "../../../devnet/devChain.ts";
import { type NodeFault, type NodeProxy, startNodeProxy } from "../../../support/nodeProxy.ts";
import { until } from "../../../support/until.ts";

describe("NodeAccounts and a node that fails", () => {
	let chain: DevChain;
	let proxy: NodeProxy;
	let client: JsonRpcClient;
	let background: Background;
	const newAccounts = (options: { timeoutMs?: number }) => {
		const node = new NodeReader({ timeoutMs: 5_000 }, { client, clock: systemClock, log: silentLogger });
		return new NodeAccounts(options, { node, background, clock: systemClock });
	};
	const account = (i: number) => chain.accounts[i]?.address.toLowerCase() ?? "";
	const mine = async () => {
		await chain.rpc("anvil_mine", ["0x1"]);
		return Number(await chain.rpc("eth_blockNumber"));
	};
	const fails = (code: UpstreamFault) => (thrown: unknown) =>
		thrown instanceof UpstreamError && thrown.code === code;

	before(async () => {
		chain = await startDevChain();
		proxy = await startNodeProxy(chain.url);
		client = new JsonRpcClient({ url: proxy.url, timeoutMs: 5_000 }, { clock: systemClock });
		background = new Background({ onFault: (task) => assert.fail(task) }, { log: silentLogger });
	});
	afterEach(async () => {
		proxy.setFault(null);
		await background.join();
		proxy.reset();
	});
	after(async () => {
		await client.close();
		await proxy.stop();
		await chain.stop();
	});

	test("a block that the node does not have yet is waited for, as behind a balancer", async () => {
		const head = await mine();
		const accounts = newAccounts({ timeoutMs: 5_000 });
		accounts.setHead(head + 1);
		const asked = accounts.get(account(7), "a");
		await until("the second try", () => proxy.requests >= 2);
		await mine();
		assert.equal((await asked).block, head + 1);
	});

	test("before the first head there is no state", async () => {
		await assert.rejects(newAccounts({ timeoutMs: 150 }).get(account(0), "a"), fails("unreachable"));
		assert.equal(proxy.requests, 0);
	});

	test("a head set in time serves who was waiting for the first one", async () => {
		const head = await mine();
		const accounts = newAccounts({ timeoutMs: 5_000 });
		const asked = accounts.get(account(0), "a");
		accounts.setHead(head);
		assert.equal((await asked).block, head);
	});

	const faults: readonly [string, NodeFault, UpstreamFault][] = [
		["hangs", { kind: "hang" }, "timeout"],
		["closes connections", { kind: "destroy" }, "unreachable"],
		["answers HTML", { kind: "html", status: 502 }, "httpStatus"],
		["answers half", { kind: "truncated" }, "notJsonRpc"],
		["refuses", { kind: "error", code: -32000, message: "header not found" }, "notJsonRpc"],
		["answers null", { kind: "result", result: null }, "notJsonRpc"],
		["answers numbers", { kind: "result", result: 7 }, "notJsonRpc"],
		["answers nonsense", { kind: "result", result: "0xzz" }, "notJsonRpc"],
	];
	for (const [name, fault, code] of faults) {
		test(`a node that ${name}: an error in time, and nothing of it stays`, async () => {
			const accounts = newAccounts({ timeoutMs: 300 });
			accounts.setHead(await mine());
			proxy.setFault(fault);
			const begun = performance.now();
			await assert.rejects(accounts.get(account(8), "a"), fails(code));
			assert.ok(performance.now() - begun < 2_000);
			proxy.setFault(null);
			assert.equal((await accounts.get(account(8), "a")).nonce, 0n);
		});
	}

	test("a fault that passes within the second is not noticed", async () => {
		const accounts = newAccounts({ timeoutMs: 5_000 });
		accounts.setHead(await mine());
		proxy.setFault({ kind: "html", status: 503 }, { times: 2 });
		assert.equal((await accounts.get(account(9), "a")).nonce, 0n);
	});

	test("one account's trouble is not another's", async () => {
		const accounts = newAccounts({ timeoutMs: 300 });
		accounts.setHead(await mine());
		const outcomes = await Promise.allSettled([accounts.get("0x1234", "a"), accounts.get(account(0), "a")]);
		assert.deepEqual(
			outcomes.map(({ status }) => status),
			["rejected", "fulfilled"],
		);
	});

	test("a node that takes single calls only is served too", async () => {
		const accounts = newAccounts({ timeoutMs: 5_000 });
		accounts.setHead(await mine());
		proxy.setFault({ kind: "batchLimit", calls: 1, how: "oneError" });
		const states = await Promise.all(chain.accounts.map(({ address }) => accounts.get(address, "a")));
		assert.equal(states.length, 10);
		assert.ok(states.every(({ code }) => code === "none"));
	});
});
