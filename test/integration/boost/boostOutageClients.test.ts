// Tests what clients' libraries make of it that nothing can serve them now: each says why, and goes
// on when boost does.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { JsonRpcProvider } from "ethers";
import { createPublicClient, http } from "viem";
import { Web3 } from "web3";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";

let fixture: BoostFixture;
before(async () => {
	fixture = await startBoostFixture();
});
after(() => fixture.stop());
afterEach(() => fixture.recovers());

interface Client {
	/** Reads the head once; a batch where the client makes such. */
	ask(): Promise<unknown>;
	close(): void;
}
const CLIENTS: Readonly<Record<string, (url: string) => Client>> = {
	ethers(url) {
		const provider = new JsonRpcProvider(url);
		return { ask: () => provider.send("eth_blockNumber", []), close: () => provider.destroy() };
	},
	"ethers, a batch": (url) => {
		const provider = new JsonRpcProvider(url);
		const ask = () => Promise.all([provider.send("eth_blockNumber", []), provider.send("eth_gasPrice", [])]);
		return { ask, close: () => provider.destroy() };
	},
	viem(url) {
		const client = createPublicClient({ transport: http(url, { retryDelay: 1 }), cacheTime: 0 });
		return { ask: () => client.getBlockNumber(), close() {} };
	},
	"web3.js": (url) => {
		const web3 = new Web3(url);
		return { ask: () => web3.eth.getBlockNumber(), close() {} };
	},
};

for (const [name, open] of Object.entries(CLIENTS)) {
	// `/fast` is boost's own, the other is streamed to the relay.
	for (const path of ["/fast", "/fullprivacy"]) {
		test(`${name} on ${path} says why nothing serves it, and goes on when something does`, async (t) => {
			const client = open(`${fixture.boost.url}${path}`);
			t.after(() => client.close());
			await client.ask();
			await fixture.wires.fallback.set({ kind: "refuse" });
			await fixture.fails();
			await fixture.boost.reaches("both are down", ({ fallback }) => fallback?.state !== "closed");
			await assert.rejects(client.ask(), /no relay available: /);
			await fixture.recovers();
			await client.ask();
		});
	}
}
