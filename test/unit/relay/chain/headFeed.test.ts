// New heads for subscribers: the node's headers without bodies, in order, and the relay's own data where the
// node fails. Without subscribers nothing is asked.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createHeadFeed } from "../../../../relay/chain/feeds.ts";
import { NEW_HEADS } from "../../../../relay/domain/endpoints.ts";
import { readBlock } from "../../../../relay/inclusion/blockReader.ts";
import { SubscriptionHub } from "../../../../relay/ingress/subscriptions.ts";
import { Background } from "../../../../shared/background.ts";
import { silentLogger } from "../../../../shared/log.ts";
import { Listener } from "../../../support/feeds.ts";
import type { NodeFault } from "../../../support/nodes.ts";
import { until } from "../../../support/until.ts";
import { startProxiedChain } from "./nodeFixture.ts";

type Header = Readonly<Record<string, unknown>>;

const BLOCKS = 80;
const { chain, proxy, reader, mine } = await startProxiedChain();
await mine(BLOCKS);
const calls = Array.from({ length: BLOCKS }, (_, i) => ({
	method: "eth_getBlockByNumber",
	params: [`0x${(i + 1).toString(16)}`, true],
}));
const blocks = (await chain.batch(calls)).map((outcome) => {
	assert.ok("result" in outcome);
	return readBlock(outcome.result, () => null);
});

function fixture() {
	const failed: string[] = [];
	const background = new Background({ onFault: (task) => failed.push(task) }, { log: silentLogger });
	const hub = new SubscriptionHub({ log: silentLogger });
	const feed = createHeadFeed({ node: reader(), publisher: hub, background, log: silentLogger });
	const listener = new Listener();
	const listen = () => hub.subscribe(listener, NEW_HEADS);
	const heads = () => listener.told.map(({ params }) => params.result as Header);
	return { feed, hub, background, listen, heads, failed };
}

const numbers = (heads: readonly Header[]) => heads.map(({ number }) => Number(number));

test("come in order, each once, also those that came while others were being asked for", async () => {
	const { feed, background, listen, heads } = fixture();
	feed.onHeads(blocks.slice(0, 1));
	await background.join();
	assert.equal(proxy.requests, 0, "nobody listens, so nothing is asked");
	listen();
	const release = proxy.hold();
	feed.onHeads(blocks.slice(0, 2));
	await until("the node is asked", () => proxy.requests === 1);
	feed.onHeads(blocks.slice(2, 3));
	feed.onHeads(blocks.slice(3, 6));
	feed.onHeads([]);
	assert.deepEqual(heads(), []);
	release();
	await background.join();
	assert.deepEqual(numbers(heads()), [1, 2, 3, 4, 5, 6]);
	assert.equal(proxy.requests, 2, "those that waited are asked for together");
});

test("no more than 64 wait: of more, the newest are told", async () => {
	const { feed, background, listen, heads } = fixture();
	listen();
	const release = proxy.hold();
	feed.onHeads(blocks.slice(0, 1));
	await until("the node is asked", () => proxy.requests === 1);
	for (const block of blocks.slice(1)) feed.onHeads([block]);
	release();
	await background.join();
	assert.deepEqual(numbers(heads()), [1, ...Array.from({ length: 64 }, (_, i) => BLOCKS - 63 + i)]);
});

const FAULTS: Readonly<Record<string, NodeFault>> = {
	"is gone": { kind: "destroy" },
	refuses: { kind: "error", code: -32000, message: "secret-of-the-node" },
	"answers another block": { kind: "result", result: { hash: `0x${"99".repeat(32)}`, number: "0x1" } },
	"never answers": { kind: "hang" },
};
for (const [name, fault] of Object.entries(FAULTS)) {
	test(`are told as far as the relay knows them where the node ${name}`, async () => {
		const { feed, background, listen, heads, failed } = fixture();
		listen();
		proxy.setFault(fault);
		feed.onHeads(blocks.slice(7, 9));
		await background.join();
		proxy.setFault(null);
		feed.onHeads(blocks.slice(9, 10));
		await background.join();
		const [short, , full] = heads();
		const known = (await chain.rpc("eth_getBlockByNumber", ["0x8", false])) as Header;
		const fields = [
			...["number", "hash", "parentHash", "miner", "gasLimit", "gasUsed", "timestamp", "baseFeePerGas"],
			...["blobGasUsed", "excessBlobGas"],
		];
		assert.deepEqual(short, Object.fromEntries(fields.map((field) => [field, known[field]])));
		assert.deepEqual(numbers(heads()), [8, 9, 10]);
		assert.equal(typeof full?.stateRoot, "string", "the next one is whole again");
		assert.deepEqual(failed, []);
		assert.ok(!JSON.stringify(heads()).includes("secret-of-the-node"));
	});
}
