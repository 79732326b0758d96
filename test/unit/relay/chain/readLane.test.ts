// The lane of reads: how many run, in which order the others follow, and who gives up.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { NodeAccounts } from "../../../../relay/chain/accounts.ts";
import { Passthrough } from "../../../../relay/chain/passthrough.ts";
import { ReadLane } from "../../../../relay/chain/readLane.ts";
import { Background } from "../../../../shared/background.ts";
import { systemClock } from "../../../../shared/clock.ts";
import { JsonRpcClient, UpstreamError } from "../../../../shared/jsonrpc/client.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { type DevChain, startDevChain } from "../../../devnet/devChain.ts";
import { type NodeProxy, startNodeProxy } from "../../../support/nodeProxy.ts";
import { until } from "../../../support/until.ts";

/** Work that ends when it is told to. */
function jobs(lane: ReadLane, timeoutMs = 10_000) {
	const begun: string[] = [];
	const ends = new Map<string, () => void>();
	const fails = new Map<string, () => void>();
	return {
		begun,
		end: (name: string) => ends.get(name)?.(),
		fail: (name: string) => fails.get(name)?.(),
		run: (name: string) =>
			lane.run(timeoutMs, () => {
				begun.push(name);
				return new Promise<string>((resolve, reject) => {
					ends.set(name, () => resolve(name));
					fails.set(name, () => reject(new Error(name)));
				});
			}),
	};
}

describe("ReadLane", () => {
	test("runs so many at once, the others in the order in which they came", async () => {
		const work = jobs(new ReadLane({ atOnce: 2 }, { clock: systemClock }));
		const results = ["a", "b", "c", "d", "e"].map((name) => work.run(name));
		assert.deepEqual(work.begun, ["a", "b"]);
		work.end("b");
		assert.equal(await results[1], "b");
		await until("the next", () => work.begun.length === 3);
		assert.deepEqual(work.begun, ["a", "b", "c"]);
		for (const name of ["a", "c", "d", "e"]) {
			await until(name, () => work.begun.includes(name));
			work.end(name);
		}
		assert.deepEqual(await Promise.all(results), ["a", "b", "c", "d", "e"]);
		assert.deepEqual(work.begun, ["a", "b", "c", "d", "e"]);
	});

	test("one that fails leaves its place like one that ends", async () => {
		const work = jobs(new ReadLane({ atOnce: 1 }, { clock: systemClock }));
		const first = work.run("a");
		const second = work.run("b");
		work.fail("a");
		await assert.rejects(first, { message: "a" });
		await until("the next", () => work.begun.includes("b"));
		work.end("b");
		assert.equal(await second, "b");
		const third = work.run("c");
		work.end("c");
		assert.equal(await third, "c");
	});

	test("whose turn does not come in time is told so, and never begun", async () => {
		const lane = new ReadLane({ atOnce: 1 }, { clock: systemClock });
		const work = jobs(lane);
		const hurried = jobs(lane, 30);
		const first = work.run("a");
		const late = hurried.run("late").then(
			() => false,
			(thrown: unknown) => thrown instanceof UpstreamError && thrown.code === "timeout",
		);
		// Asked again and again, because timers of the clock do not keep a process alive.
		let outcome: boolean | undefined;
		late.then((is) => {
			outcome = is;
		}, assert.ifError);
		assert.equal(await until("the end of its time", () => outcome), true);
		const second = work.run("b");
		work.end("a");
		await until("the next", () => work.begun.includes("b"));
		work.end("b");
		await Promise.all([first, second]);
		assert.deepEqual(hurried.begun, []);
	});

	test("the time spent waiting is gone", async () => {
		let now = 0;
		const lane = new ReadLane({ atOnce: 1 }, { clock: { ...systemClock, monotonic: () => now } });
		const work = jobs(lane);
		const first = work.run("a");
		const left = lane.run(10_000, async (leftMs) => leftMs);
		now = 7_000;
		work.end("a");
		await first;
		assert.equal(await left, 3_000);
	});
});

describe("clients' slow reads", () => {
	let chain: DevChain;
	let proxy: NodeProxy;
	let client: JsonRpcClient;

	before(async () => {
		chain = await startDevChain();
		proxy = await startNodeProxy(chain.url);
		client = new JsonRpcClient({ url: proxy.url, timeoutMs: 5_000, connections: 32 }, { clock: systemClock });
	});
	after(async () => {
		await client.close();
		await proxy.stop();
		await chain.stop();
	});

	test("take neither light reads nor accounts the way to the node", async () => {
		const head = () => null;
		const passthrough = new Passthrough({}, { node: client, head, log: silentLogger });
		const background = new Background({}, { log: silentLogger });
		const accounts = new NodeAccounts({}, { node: client, background, clock: systemClock });
		accounts.setHead(0);
		proxy.setFault({ kind: "hang" }, { methods: ["eth_call"] });
		const calls = Array.from({ length: 100 }, (_, i) =>
			passthrough.call("eth_call", [{ data: `0x${i.toString(16).padStart(4, "0")}` }, "latest"]),
		);
		const ended = Promise.allSettled(calls);
		await until("what runs at once", () => proxy.calls("eth_call").length === 12);
		assert.equal(await passthrough.call("eth_blockNumber", []), "0x0");
		assert.equal((await accounts.get(chain.wallet(0).address)).nonce, 0n);
		assert.equal(proxy.calls("eth_call").length, 12);
		// Its connections end, and so do the reads: nothing waits for their twenty seconds.
		proxy.setFault(null);
		await client.close();
		assert.ok((await ended).every(({ status }) => status === "rejected"));
	});
});
