// A relay with 100,000 pending and 50,000 archived transactions is killed in the middle of its
// start, several times. The next start has them all.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SUBMISSION } from "../../../relay/domain/storeKeys.ts";
import { archivedKey } from "../../../shared/kv/archive.ts";
import { openLmdb } from "../../../shared/kv/lmdb.ts";
import { prefixRange } from "../../../shared/kv/port.ts";
import { benchAccounts, fund, startSink } from "../../bench/load.ts";
import { fill, fillArchive } from "../../bench/start.ts";
import { type DevChain, startDevChain } from "../../devnet/devChain.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import { launchRelay, type RelayProcess, startRelayProcess } from "../../support/processes.ts";
import { figureOf, METRICS_TOKEN } from "../../support/relayClient.ts";
import { until } from "../../support/until.ts";

const [PENDING, ARCHIVE] = [100_000, 50_000];
/** The pool takes 64 of each sender. */
const SENDERS = 2_000;
/** When it is killed, in parts of the time that a start takes. */
const KILLS = [0.15, 0.4, 0.65, 0.9];
/** One in so many transactions is asked for. */
const SAMPLE_EVERY = 1_000;

const DATA_DIR = mkdtempSync(join(tmpdir(), "leeward-starts-"));
const STORE = join(DATA_DIR, "relay");

let chain: DevChain;
let sink: Awaited<ReturnType<typeof startSink>>;
let env: Readonly<Record<string, string>>;
let pending: readonly string[];
let archived: readonly string[];
/** Duration of a start without a kill, in ms. */
let startMs = 0;

before(async () => {
	chain = await startDevChain();
	sink = await startSink();
	const accounts = benchAccounts(SENDERS);
	await fund(chain, accounts);
	const others = benchAccounts(SENDERS + 1_000).slice(SENDERS);
	await fillArchive(STORE, others, ARCHIVE);
	await fill(STORE, accounts, PENDING);
	[pending, archived] = [await hashesIn(SUBMISSION), await hashesIn(archivedKey(""))];
	env = {
		...{ PORT: "0", HOST: "127.0.0.1", ETH_RPC_URL: chain.url, DATA_DIR, METRICS_TOKEN, ...IN_FOLDER },
		...{ BUILDERS: JSON.stringify([{ name: "sink", url: sink.url }]), MAX_HEAD_AGE_S: "86400" },
	};
});
after(async () => {
	await sink?.stop();
	await chain?.stop();
	rmSync(DATA_DIR, { recursive: true, force: true });
});

/** The sorted hashes of the entries whose keys begin with `prefix`. */
async function hashesIn(prefix: string): Promise<readonly string[]> {
	const kv = await openLmdb(STORE);
	const hashes: string[] = [];
	for await (const [key] of kv.range(...prefixRange(prefix)))
		hashes.push(key.slice(key.lastIndexOf("/") + 1));
	await kv.close();
	return hashes.sort();
}

/** It has all of them, and so has its store behind its end. */
async function assertComplete(relay: RelayProcess): Promise<void> {
	assert.equal(await figureOf(relay.url, "relay_pending_transactions"), PENDING);
	for (let i = 0; i < PENDING; i += SAMPLE_EVERY)
		assert.equal((await relay.client.status(pending[i] ?? "")).status, "UNKNOWN", pending[i]);
	for (let i = 0; i < ARCHIVE; i += SAMPLE_EVERY)
		assert.equal(await relay.client.stage(archived[i] ?? ""), "CANCELLED", archived[i]);
	await relay.kill("SIGTERM");
	assert.deepEqual(await hashesIn(SUBMISSION), pending);
	assert.deepEqual(await hashesIn(archivedKey("")), archived);
}

test("a start that nobody ends has them all", async () => {
	assert.deepEqual([pending.length, archived.length], [PENDING, ARCHIVE]);
	const begun = performance.now();
	const relay = await startRelayProcess({ env });
	startMs = performance.now() - begun;
	await assertComplete(relay);
});

test("killed in the middle of a start, the next one has them all", async () => {
	for (const part of KILLS) {
		const begun = performance.now();
		const killed = launchRelay({ env });
		await until(`${part} of a start is over`, () => performance.now() - begun > part * startMs);
		assert.equal((await killed.kill()).signal, "SIGKILL", killed.stderr);
	}
	assert.deepEqual(await hashesIn(SUBMISSION), pending);
	await assertComplete(await startRelayProcess({ env }));
});
