// Heads that do not lead to the followed chain, on a real chain whose node is sometimes another
// one: which are followed, and what the operator reads.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { Slots } from "../../../../shared/ethereum/slots.ts";
import { type DevChain, startDevChain } from "../../../devnet/devChain.ts";
import { type HeadFixture, startHeadFixture } from "../../../support/headFixture.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { type NodeProxy, startNodeProxy } from "../../../support/nodes.ts";
import { until } from "../../../support/until.ts";

const OTHER_CHAIN = "the node has answered for chain 1, and the relay is for 31337";
const TOO_SOON =
	/^the node has answered with block 8\d\d, too soon after block \d+, and its parents do not lead there$/;

let chain: DevChain;
let far: DevChain;
let proxy: NodeProxy;
let fixture: HeadFixture;
const ask = (method: string, params: readonly unknown[]) => chain.rpc(method, params);
const mine = (count: number, seconds: number) =>
	chain.rpc("anvil_mine", [`0x${count.toString(16)}`, seconds]);
before(async () => {
	chain = await startDevChain();
	await mine(5, 12);
	far = await startDevChain({ genesisTimestamp: Math.floor(Date.now() / 1_000) });
	await far.rpc("anvil_mine", ["0x320", 0]);
});
after(async () => {
	await chain?.stop();
	await far?.stop();
});
afterEach(async () => {
	await fixture?.stop();
	await proxy?.stop();
});

/**
 * Follows by way of `targets` in turn, all of which are for the chain `chainId` of `far` where they
 * are.
 */
async function follow(targets: readonly string[], chainId?: string): Promise<void> {
	proxy = await startNodeProxy(chain.url);
	proxy.setTargets(...targets);
	if (chainId !== undefined)
		proxy.setRule({ answer: async (method) => (method === "eth_chainId" ? chainId : undefined) });
	const slots = new Slots({ setMs: 12_000 }, { clock: new ManualClock() });
	fixture = await startHeadFixture(proxy.url, ask, {}, slots);
}

describe("a node that turns out to be another chain's", () => {
	for (const [what, chainId, trouble] of [
		["which it says", "0x1", new RegExp(`^${OTHER_CHAIN}$`)],
		["which shows by its blocks alone", undefined, TOO_SOON],
	] as const) {
		test(`${what}: its heads are not followed, and the operator reads why`, async () => {
			await follow([chain.url]);
			await fixture.waitUntilInSync("the first head");
			const head = fixture.mirror.head?.hash;
			if (chainId !== undefined)
				proxy.setRule({ answer: async (method) => (method === "eth_chainId" ? chainId : undefined) });
			proxy.setTargets(far.url);
			await until("it is refused", () => fixture.tracker.trouble !== null);
			assert.match(fixture.tracker.trouble ?? "", trouble);
			proxy.setTargets(chain.url);
			proxy.setRule(null);
			await mine(1, 12);
			await fixture.waitUntilInSync("the next head");
			assert.notEqual(fixture.mirror.head?.hash, head);
			assert.ok(
				fixture.mirror.updates.slice(1).every(({ gap }) => !gap),
				"nothing was missed",
			);
		});
	}

	test("in one request of four: the others' heads are followed, and the operator reads why for a slot", async () => {
		await follow([chain.url, chain.url, chain.url, far.url]);
		for (let i = 0; i < 3; i += 1) {
			await mine(1, 12);
			await fixture.waitUntilInSync("the next head");
		}
		await until("one is refused", () => fixture.tracker.trouble !== null);
		assert.match(fixture.tracker.trouble ?? "", TOO_SOON);
		assert.ok(
			fixture.mirror.updates.slice(1).every(({ gap }) => !gap),
			"nothing was missed",
		);
	});

	test("from the start: the first head is one of the relay's chain", async () => {
		await follow([far.url], "0x1");
		await until("it is refused", () => fixture.tracker.trouble === OTHER_CHAIN);
		assert.equal(fixture.tracker.current(), null);
		proxy.setRule(null);
		proxy.setTargets(chain.url);
		await fixture.waitUntilInSync("the first head");
	});
});

for (const [what, count, seconds] of [
	["as many blocks as time allows", 400, 12],
	["more than that, whose parents lead to the tracked head", 250, 0],
] as const) {
	test(`an outage of ${what} is a gap`, async () => {
		await follow([chain.url]);
		await fixture.waitUntilInSync("the first head");
		proxy.setFault({ kind: "destroy" });
		await mine(count, seconds);
		proxy.setFault(null);
		await fixture.waitUntilInSync("the head after the outage");
		assert.equal(fixture.mirror.updates.at(-1)?.gap, true);
		assert.equal(fixture.tracker.trouble, null);
	});
}
