// Tests a relay and a boost instance whose data.mdb has a damaged page. They listen, say in /readyz
// and in the log what is damaged and what to do, and serve the salvaged data as soon as the salvage
// is done.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { request } from "undici";
import { freePort } from "../../devnet/freePort.ts";
import { BOOST_SECRET, type BoostStatus, boostEnv } from "../../faults/boostHere.ts";
import { snippet } from "../../support/documents.ts";
import { IN_FOLDER } from "../../support/engine.ts";
import {
	launchBoost,
	launchRelay,
	runBoost,
	runRelay,
	startBoostProcess,
	startRelayProcess,
} from "../../support/processes.ts";
import { AUTHORIZED, RelayClient } from "../../support/relayClient.ts";
import { type ProcessSystem, startProcessSystem } from "../../support/systems.ts";
import { rawTransaction, signedTransaction, testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const PAGE = 4_096;
const COUNT = 100;

const COMMANDS = snippet("docs/operators.md", "npm run relay -- --salvage").split("\n");

let system: ProcessSystem;
before(async () => {
	system = await startProcessSystem({ env: { BOOST_SECRET } });
});
after(() => system?.stop());

/** Offset of the flags in a page, and the flags of a page with entries. */
const [FLAGS_OFFSET, LEAF] = [18, 2];

/** Overwrites the page of entries that has the most of `keys`. */
function damage(file: string, keys: readonly string[]): void {
	const data = readFileSync(file);
	let [most, worst] = [0, 0];
	for (let n = 2; n < data.length / PAGE; n += 1) {
		const page = data.subarray(n * PAGE, (n + 1) * PAGE);
		if (page.readUInt16LE(FLAGS_OFFSET) !== LEAF) continue;
		const text = page.toString("latin1");
		const count = keys.filter((key) => text.includes(key)).length;
		if (count > most) [most, worst] = [count, n];
	}
	data.fill(0, worst * PAGE, (worst + 1) * PAGE);
	writeFileSync(file, data);
}

async function readiness(url: string): Promise<{ readonly status: number; readonly text: string }> {
	const { statusCode, body } = await request(`${url}/readyz`);
	return { status: statusCode, text: await body.text() };
}

/** How many of the transactions it has. */
async function served(name: string, url: string, hashes: readonly string[]): Promise<number> {
	if (name === "boost") {
		const { body } = await request(`${url}/status`, { headers: AUTHORIZED });
		return ((await body.json()) as BoostStatus).journal.depth;
	}
	const client = new RelayClient(url);
	const stages = await Promise.all(hashes.map(async (hash) => (await client.status(hash)).stage));
	return stages.filter((stage) => stage !== undefined).length;
}

for (const [name, path] of [
	["relay", "/nochecks"],
	["boost", "/fast"],
] as const) {
	test(`${name}: not ready with the reason; after a salvage it serves what was kept`, async (t) => {
		const DATA_DIR = join(system.folder, name);
		const port = await freePort();
		const url = `http://127.0.0.1:${port}`;
		const own = { DATA_DIR, PORT: String(port), ...IN_FOLDER };
		const relayUrl = name === "relay" ? url : (await system.start(IN_FOLDER)).url;
		const env =
			name === "relay"
				? { ...system.env, ...own }
				: { ...boostEnv({ relayUrl, fallbackUrl: "none", folder: DATA_DIR }), BOOST_SECRET, ...own };
		const first = await (name === "relay" ? startRelayProcess : startBoostProcess)({ env });
		const accounts = Array.from({ length: COUNT }, (_, i) => testAccount(60_000 + i));
		await system.chain.fund(accounts);
		const hashes: string[] = [];
		for (const by of accounts) {
			const raw = `0x${rawTransaction({ by, nonce: 0 }).toString("hex")}`;
			await first.client.send(raw, path);
			hashes.push(signedTransaction({ by, nonce: 0 }).hash);
		}
		await first.kill("SIGTERM");
		damage(join(DATA_DIR, name, "data.mdb"), hashes);

		const next = (name === "relay" ? launchRelay : launchBoost)({ env });
		t.after(() => next.kill());
		await until("it says why", async () => {
			const { status, text } = await readiness(url).catch(() => ({ status: 0, text: "" }));
			return (
				status === 503 &&
				/data\.mdb is damaged: \d+ of \d+ entries can be read: expected a backup/.test(text) &&
				text.includes(`npm run ${name} -- --salvage`)
			);
		});
		const run = name === "relay" ? runRelay : runBoost;
		const command = COMMANDS.find((one) => one.startsWith(`npm run ${name} -- `)) ?? "";
		const { code, stdout } = await run({ env, args: command.split(" ").slice(4) });
		assert.equal(code, 0);
		assert.match(
			stdout,
			/^\d+ entries are kept, \d+ are lost, and \d+ are set aside, .*; the damaged file is .*\n$/,
		);
		await until("it is ready", async () => (await readiness(url)).status === 200);
		assert.ok((await served(name, url, hashes)) >= COUNT / 2);
	});
}
