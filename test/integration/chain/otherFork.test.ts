// A relay whose node is a load balancer in front of nodes that disagree for a moment, or of another
// chain's: what one answers of a block that the relay does not follow ends no transaction.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { request } from "undici";
import { startDevChain } from "../../devnet/devChain.ts";
import { QUIET } from "../../support/boostFixture.ts";
import type { NodeProxy } from "../../support/nodes.ts";
import { RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const SIBLING = `0x${"51".repeat(32)}`;

const hex = (number: number) => `0x${number.toString(16)}`;

let system: TestSystem;
let fixture: RelayFixture;
let node: NodeProxy;
before(async () => {
	system = await startSystem({ ...QUIET.system, proxied: true });
	fixture = new RelayFixture(system);
	node = system.node as NodeProxy;
});
afterEach(() => node?.setRule(null));
after(() => system?.stop());

/**
 * From now on the node that is asked has `tx` in a sibling of block `number`, after which its
 * sender's nonce is `nonce`; how often it was asked for the receipt.
 */
function tellsSibling({ hash, from }: Signed, number: number, nonce: number): () => number {
	let asked = 0;
	node.setRule({
		async answer(method, [subject]) {
			if (method === "eth_getTransactionCount" && subject === from.toLowerCase()) return hex(nonce);
			if (method !== "eth_getTransactionReceipt" || subject !== hash) return undefined;
			asked += 1;
			return {
				...{ transactionHash: hash, blockNumber: hex(number), blockHash: SIBLING },
				...{ transactionIndex: "0x0", status: "0x1" },
			};
		},
	});
	return () => asked;
}

async function hashOf(number: number): Promise<string> {
	return ((await system.chain.rpc("eth_getBlockByNumber", [hex(number), false])) as { hash: string }).hash;
}

/** Hashes of the blocks that included it by the relay's events, in order. */
async function inclusions(tx: Signed): Promise<unknown[]> {
	const events = await fixture.events(tx);
	return events.filter(({ type }) => type === "included").map(({ blockHash }) => blockHash);
}

for (const path of ["/fast", "/noreverts"]) {
	test(`${path}: mined here and in a sibling: it is in the block that the relay follows`, async () => {
		const actor = await fixture.actor();
		const tx = actor.sign();
		await fixture.submit(path, tx);
		await fixture.waitUntilSent(tx);
		const number = (await fixture.head()) + 1;
		const asked = tellsSibling(tx, number, 1);
		await system.nextBlock();
		await fixture.seesHead(number);
		assert.ok(asked() > 1, "it asked again");
		assert.deepEqual(await inclusions(tx), []);
		node.setRule(null);
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		assert.deepEqual(await inclusions(tx), [await hashOf(number)]);
	});

	test(`${path}: mined in a sibling alone: it stays pending, and is mined here`, async () => {
		const actor = await fixture.actor();
		const tx = actor.sign({ nonce: 1 });
		await fixture.submit(path, tx);
		await fixture.publish(actor.sign());
		const number = (await fixture.head()) + 1;
		const asked = tellsSibling(tx, number, 2);
		await system.nextBlock();
		await until("its receipt was asked for", () => asked() > 0);
		node.setRule(null);
		await system.nextBlock();
		await fixture.waitUntilSent(tx);
		assert.deepEqual(await inclusions(tx), []);
		const block = await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		assert.deepEqual(await inclusions(tx), [await hashOf(block)]);
	});
}

test("one request in four goes to another chain's node, which is far ahead: nothing expires, and /readyz says why", async () => {
	const far = await startDevChain({ genesisTimestamp: Math.floor(Date.now() / 1_000) });
	await far.rpc("anvil_mine", ["0x320", 0]);
	const url = system.chain.url;
	node.setTargets(url, url, url, far.url);
	try {
		const txs: Signed[] = [];
		for (let i = 0; i < 5; i += 1) txs.push((await fixture.actor()).sign());
		for (const tx of txs) await fixture.submit("/fast", tx);
		await until("it is not ready, and says why", async () => {
			const { statusCode, body } = await request(`${system.client.url}/readyz`);
			const { checks } = (await body.json()) as { checks: { head: { reason?: string } } };
			return statusCode === 503 && /^the node has answered with block/.test(checks.head.reason ?? "");
		});
		await until("all are mined", async () => {
			await system.nextBlock();
			const all = await Promise.all(txs.map((tx) => fixture.status(tx)));
			assert.ok(all.every(({ stage }) => stage !== "EXPIRED"));
			return all.every(({ stage }) => stage === "INCLUDED");
		});
	} finally {
		node.setTargets(url);
		await far.stop();
	}
});
