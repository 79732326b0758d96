// A relay whose node is honest over HTTP, while its websocket announces heads of another chain, or
// of one that is far ahead: no transaction ends, each is still sent for the honest chain's next
// block, and the relay stays ready.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { request } from "undici";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { freePort } from "../../devnet/freePort.ts";
import { type MixedHeads, startMixedHeads } from "../../support/mixedHeads.ts";
import { RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const PATHS = ["/fast", "/noreverts", "/nochecks"] as const;
/** Blocks that are built without the transactions, and how many these live. */
const BLOCKS = 6;
const LIFE_BLOCKS = 12;
const FAR = 800;

/** Another chain, and one with the same id that is far ahead. */
let other: DevChain;
let far: DevChain;
let system: TestSystem | undefined;
let heads: MixedHeads | undefined;
before(async () => {
	const genesisTimestamp = Math.floor(Date.now() / 1_000);
	other = await startDevChain({ chainId: 1, genesisTimestamp });
	far = await startDevChain({ genesisTimestamp });
	await far.rpc("anvil_mine", [`0x${FAR.toString(16)}`, "0xc"]);
});
afterEach(async () => {
	await system?.stop();
	await heads?.stop();
});
after(async () => {
	await other?.stop();
	await far?.stop();
});

/** Whose heads are announced, by the websockets of these chains. */
const ROWS: readonly (readonly [string, (own: string) => readonly string[]])[] = [
	["its node's own", (own) => [own]],
	["another chain's", () => [other.wsUrl]],
	["those of a chain that is far ahead", () => [far.wsUrl]],
	["its node's own and those of two other chains", (own) => [other.wsUrl, own, far.wsUrl]],
];

for (const [whose, wsUrlsOf] of ROWS) {
	test(`sends all for its node's next block while the announced heads are ${whose}`, async () => {
		const port = await freePort();
		const announcing = await startMixedHeads(...wsUrlsOf(`ws://127.0.0.1:${port}`));
		heads = announcing;
		system = await startSystem({
			chain: { port },
			env: { ETH_WS_URL: announcing.url, HEAD_POLL_MS: "250", TX_TTL_BLOCKS: String(LIFE_BLOCKS) },
		});
		const fixture = new RelayFixture(system);
		await until("the relay subscribes", () => announcing.subscribed > 0);
		const txs: (readonly [string, Signed])[] = [];
		for (const path of PATHS) {
			const tx = (await fixture.actor()).sign();
			await fixture.submit(path, tx);
			txs.push([path, tx]);
		}
		const blocks: number[] = [];
		for (let i = 0; i <= BLOCKS; i += 1) {
			const next = (await fixture.head()) + 1;
			blocks.push(next);
			for (const [, tx] of txs) await fixture.waitUntilSent(tx, { block: next });
			await isReady(system);
			const { length } = announcing.announced;
			for (const one of [other, far]) await one.rpc("anvil_mine", ["0x3"]);
			if (i < BLOCKS) await fixture.passBlock();
			else await system.nextBlock();
			await until("more heads were announced", () => announcing.announced.length > length);
		}
		const mined = blocks.at(-1) ?? 0;
		for (const [path, tx] of txs) {
			assert.equal((await fixture.reaches(tx, "INCLUDED")).blockNumber, mined);
			assert.equal((await fixture.receipt(tx))?.block, mined);
			const expected = new Set<number | null>(path === "/nochecks" ? [null] : blocks);
			assert.deepEqual(new Set(fixture.blocks(system.builder, tx)), expected);
			const ends = (await fixture.life(tx)).filter((one) => /^(expired|dropped|reorged)/.test(one));
			assert.deepEqual(ends, []);
		}
		await isReady(system);
	});
}

async function isReady({ client }: TestSystem): Promise<void> {
	const { statusCode, body } = await request(`${client.url}/readyz`);
	assert.equal(statusCode, 200, await body.text());
}
