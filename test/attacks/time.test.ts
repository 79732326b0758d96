// Ages go by the chain's time: a machine whose clock is days ahead, or behind, for a while expires
// nothing, revives nothing and forgets nothing.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { readRelayConfig } from "../../relay/config.ts";
import { createRelay } from "../../relay/relay.ts";
import { type Clock, systemClock } from "../../shared/clock.ts";
import { openStore } from "../../shared/kv/openStore.ts";
import type { Server } from "../../shared/lifecycle.ts";
import { silentLogger } from "../../shared/log.ts";
import { type DevChain, startDevChain } from "../devnet/devChain.ts";
import { type PlainBuilder, startPlainBuilder } from "../support/plainBuilder.ts";
import { readyStatus } from "../support/processes.ts";
import { RelayClient } from "../support/relayClient.ts";
import { rawTransaction, signedTransaction, testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";

const METRICS_TOKEN = "a token of the operator's";
const DAY_MS = 24 * 3600 * 1000;
/** After so many blocks, and one more, what has ended is archived. */
const ARCHIVED_BLOCKS = 66;
const ETHER = 10n ** 18n;

let chain: DevChain;
let builder: PlainBuilder;
let relay: Server;
let client: RelayClient;
let folder: string;
let accounts = 0;
/** The error of the machine's clock, in ms. */
let wrongBy = 0;
const clock: Clock = { ...systemClock, now: () => systemClock.now() + wrongBy };

before(async () => {
	chain = await startDevChain();
	builder = await startPlainBuilder();
});
after(async () => {
	await builder.stop();
	await chain.stop();
});

beforeEach(async () => {
	folder = mkdtempSync(join(tmpdir(), "leeward-test-"));
	wrongBy = 0;
	const config = readRelayConfig({
		...{ PORT: "0", HOST: "127.0.0.1", ETH_RPC_URL: chain.url, HEAD_POLL_MS: "20", DATA_DIR: folder },
		...{
			BUILDERS: JSON.stringify([{ name: "plain", url: builder.url }]),
			MAX_HEAD_AGE_S: "86400",
			METRICS_TOKEN,
		},
	});
	relay = createRelay(config, { log: silentLogger, clock, drainMs: 0, openStore });
	await relay.start();
	client = new RelayClient(`http://127.0.0.1:${relay.port}`);
	await until("it is ready", async () => (await readyStatus(client.url)) === 200);
});
afterEach(async () => {
	await relay.stop();
	rmSync(folder, { recursive: true, force: true });
});

/** A transaction of a fresh account with an ether. */
async function transaction(nonce = 0): Promise<{ readonly raw: string; readonly hash: string }> {
	const by = testAccount(800_000 + accounts++);
	await chain.fund([by], ETHER);
	return {
		raw: `0x${rawTransaction({ by, nonce }).toString("hex")}`,
		hash: signedTransaction({ by, nonce }).hash,
	};
}

/** Waits until the relay has taken up the chain's head. */
async function seesHead(): Promise<void> {
	const head = Number(await chain.rpc("eth_blockNumber"));
	const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
	await until(`head ${head}`, async () => {
		const text = await (await fetch(`${client.url}/metrics`, { headers })).text();
		return text.includes(`\nrelay_head_number ${head}\n`);
	});
}

/**
 * Mines an empty block, and waits until the relay has processed it: the witness is sent for the
 * next block.
 */
async function passBlock(witness: { readonly raw: string }): Promise<void> {
	builder.reset();
	const head = (await chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
	await chain.rpc("evm_mine", [{ timestamp: Number(head.timestamp) + chain.slotSeconds }]);
	const next = `"0x${(Number(head.number) + 2).toString(16)}"`;
	await until("the next block's bundle", () =>
		builder.bodies.some((body) => body.includes(witness.raw) && body.includes(next)),
	);
}

for (const [name, days] of [
	["ahead", 8],
	["behind", -8],
] as const) {
	describe(`a clock that is 8 days ${name} for a block`, () => {
		it("revives no cancelled transaction, and ends no waiting one", async () => {
			const [cancelled, pending, waiting] = [await transaction(), await transaction(), await transaction(5)];
			await client.send(cancelled.raw);
			assert.equal(await client.call("eth_cancelTransaction", [cancelled.hash]), true);
			const slot = `0x${chain.slotSeconds.toString(16)}`;
			await chain.rpc("anvil_mine", [`0x${ARCHIVED_BLOCKS.toString(16)}`, slot]);
			await seesHead();
			for (const { raw } of [pending, waiting]) await client.send(raw);
			await passBlock(pending);
			wrongBy = days * DAY_MS;
			// The work of a head may still be under way when its bundles are sent. By the second block it
			// is over.
			await passBlock(pending);
			await passBlock(pending);
			wrongBy = 0;
			await passBlock(pending);
			builder.reset();
			// Wallets send what they think pending again.
			assert.equal(await client.send(cancelled.raw), cancelled.hash);
			await passBlock(pending);
			assert.ok(!builder.raws().has(cancelled.raw), "the builder has what was cancelled");
			const stages = [cancelled, pending, waiting].map(({ hash }) => client.stage(hash));
			assert.deepEqual(await Promise.all(stages), ["CANCELLED", "BROADCAST", "QUEUED"]);
		});
	});
}
