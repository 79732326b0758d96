// A journal that boost of an earlier commit has written: today's boost has every entry of it, or
// refuses it in one line and leaves it as it is. The recordings are of real boosts. This makes one,
// of a commit that is checked out in OLD:
//   git worktree add --detach OLD COMMIT && ln -s "$PWD/node_modules" OLD/node_modules
//   RECORD_JOURNAL=OLD npm test -- test/contract/journalVersions.test.ts

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createBodySigner } from "../../shared/ethereum/signatures.ts";
import { openLmdb } from "../../shared/kv/lmdb.ts";
import { freePort } from "../devnet/freePort.ts";
import { BOOST_SECRET, boostEnv, isWell, statusOf } from "../faults/boostHere.ts";
import { type Signed, signed } from "../support/crashFixture.ts";
import { ROOT } from "../support/documents.ts";
import { IN_FOLDER } from "../support/engine.ts";
import { runBoost, startBoostProcess, startRelayProcess } from "../support/processes.ts";
import { RelayClient } from "../support/relayClient.ts";
import { startProcessSystem } from "../support/systems.ts";
import { testAccount } from "../support/txFactory.ts";
import { until } from "../support/until.ts";
import { startRecordingFallback } from "../support/upstreams.ts";

/**
 * Transactions that boost had acknowledged when it was killed. `held`: the fallback has it, too.
 */
const LIVE = ["held", "pending", "owners", "signed", "replacement"] as const;
/** Transactions that had ended. `cancelling`: the relay hung, and was not notified yet. */
const ENDED = ["mined", "cancelled", "replaced", "cancelling"] as const;
const NAMES = [...LIVE, ...ENDED] as const;
type Name = (typeof NAMES)[number];

interface Recording {
	readonly commit: string;
	/** Its live rows, as boost reported them. */
	readonly depth: number;
	/** The stages of what had ended. */
	readonly stages: Readonly<Record<string, string | undefined>>;
	/** The keys and values (base64) of its store. */
	readonly entries: readonly (readonly [key: string, value: string])[];
}

const RECORDED = new URL("recorded/", import.meta.url);
const RECORDINGS = readdirSync(RECORDED)
	.filter((name) => name.startsWith("journal-"))
	.map((name) => JSON.parse(readFileSync(new URL(name, RECORDED), "utf8")) as Recording);
const FORMAT_KEY = "m/format";
const FORMAT = "5";
/** Fees that replace. */
const HIGHER = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 50_000_000_000n };
const OLD = process.env.RECORD_JOURNAL;

function accountFor(name: Name) {
	return testAccount(52_000 + NAMES.indexOf(name === "replacement" ? "replaced" : name));
}

function transaction(name: Name): Signed {
	return signed({ by: accountFor(name), ...(name === "replacement" ? HIGHER : {}) });
}

function settings(relayUrl: string, fallbackUrl: string, folder: string): Readonly<Record<string, string>> {
	return {
		...boostEnv({ relayUrl, fallbackUrl, folder }),
		...{ BOOST_SECRET, TRUST_PROXY: "1", ...IN_FOLDER },
	};
}

/** Runs the boost in `root` until its journal has all of {@link NAMES}, and kills it. */
async function record(root: string): Promise<Recording> {
	const system = await startProcessSystem({ env: { BOOST_SECRET, ...IN_FOLDER } });
	const fallback = await startRecordingFallback();
	try {
		const PORT = String(await freePort());
		const folder = join(system.folder, "journal");
		let relay = await system.start({ PORT });
		const boost = await startRelayProcess({
			entry: join(root, "boost-proxy/main.ts"),
			env: settings(relay.url, fallback.url, folder),
		});
		const { client } = boost;
		const from = (address: string) => new RelayClient(boost.url, { "x-forwarded-for": address });
		const reaches = (name: Name, stage: string) =>
			until(`${name} is ${stage}`, async () => (await client.stage(transaction(name).hash)) === stage);
		const sendsEach = async (...names: readonly Name[]): Promise<void> => {
			for (const name of names) await client.send(transaction(name).raw);
		};
		const sees = (isClosed: boolean) =>
			until("boost has noticed", async () => (await isWell(boost.url)) === isClosed);
		try {
			await system.chain.fund(NAMES.map(accountFor));
			await sees(true);
			await sendsEach("mined");
			await system.delivered([transaction("mined").raw]);
			await system.nextBlock(relay);
			await reaches("mined", "INCLUDED");

			await relay.kill();
			await sees(false);
			await sendsEach("held");
			relay = await system.start({ PORT });
			await sees(true);

			for (const [address, path] of [
				["198.51.100.1", "/fast?refundRecipient=0x00000000000000000000000000000000000000aa"],
				["198.51.100.2", "/noreverts"],
			] as const)
				await from(address).send(transaction("owners").raw, path);
			const params = [transaction("signed").raw];
			const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params });
			const signature = createBodySigner(accountFor("signed").keyHex).sign(body);
			const headers = { "content-type": "application/json", "x-flashbots-signature": signature };
			await fetch(`${boost.url}/fast`, { method: "POST", headers, body });
			await sendsEach("cancelled", "replaced", "replacement", "pending", "cancelling");
			await client.call("eth_cancelTransaction", [transaction("cancelled").hash], "/fast");
			await reaches("cancelled", "CANCELLED");
			await reaches("replaced", "REPLACED");

			// A transaction that the relay alone has must not get a second holder before the kill.
			fallback.answerWith(() => null);
			relay.signal("SIGSTOP");
			await client.ask("eth_cancelTransaction", [transaction("cancelling").hash], "/fast");
			const { depth } = (await statusOf(boost.url)).journal;
			const stages: Record<string, string | undefined> = {};
			for (const name of ENDED) stages[name] = await client.stage(transaction(name).hash);
			await boost.kill();
			const commit = execFileSync("git", ["-C", root, "rev-parse", "HEAD"], { encoding: "utf8" });
			return { commit: commit.trim().slice(0, 8), depth, stages, entries: await entriesIn(folder) };
		} finally {
			await boost.kill();
		}
	} finally {
		await fallback.stop();
		await system.stop();
	}
}

async function entriesIn(folder: string): Promise<Recording["entries"]> {
	const kv = await openLmdb(join(folder, "boost"));
	const entries: (readonly [string, string])[] = [];
	for await (const [key, value] of kv.range("", "\u{7f}")) entries.push([key, value.toString("base64")]);
	await kv.close();
	return entries;
}

/** A folder with the journal. */
async function folderOf(t: TestContext, { entries }: Recording): Promise<string> {
	const folder = mkdtempSync(join(tmpdir(), "leeward-journal-"));
	t.after(() => rmSync(folder, { recursive: true, force: true }));
	const kv = await openLmdb(join(folder, "boost"));
	await kv.write(entries.map(([key, value]) => ({ key, value: Buffer.from(value, "base64") })));
	await kv.close();
	return folder;
}

/**
 * Starts today's boost with the journal while the relay is down: it has each row, forwards the live
 * ones, and nothing else.
 */
async function assertRead(t: TestContext, recording: Recording): Promise<void> {
	const folder = await folderOf(t, recording);
	const fallback = await startRecordingFallback();
	t.after(() => fallback.stop());
	const env = settings(`http://127.0.0.1:${await freePort()}`, fallback.url, folder);
	const isSent = (name: Name) => fallback.posts.some(({ body }) => body.includes(transaction(name).raw));
	assert.equal(recording.depth, LIVE.length);
	for (const start of ["first", "second"]) {
		const boost = await startBoostProcess({ env });
		t.after(() => boost.kill());
		assert.equal((await statusOf(boost.url)).journal.depth, LIVE.length, start);
		for (const name of LIVE) {
			if (name !== "held") await until(`the fallback has ${name}`, () => isSent(name));
			assert.equal(await boost.client.stage(transaction(name).hash), "HELD", `${name}, ${start}`);
		}
		for (const name of ENDED) {
			assert.equal(await boost.client.stage(transaction(name).hash), recording.stages[name], name);
			assert.equal(isSent(name), false, `${name} was sent, ${start}`);
		}
		assert.doesNotMatch(boost.stdout, /left out/);
		await boost.kill("SIGTERM");
	}
}

async function assertRefused(t: TestContext, recording: Recording): Promise<void> {
	const folder = await folderOf(t, recording);
	const { code, signal, stderr } = await runBoost({ env: settings("http://127.0.0.1:1", "none", folder) });
	assert.deepEqual([code, signal], [1, null]);
	assert.equal(
		stderr,
		`boost: the store was written by another version (format ${formatOf(recording)}, expected ${FORMAT}): drain it with that version, or set DATA_DIR or DATABASE_URL to another one\n`,
	);
	assert.deepEqual(await entriesIn(folder), recording.entries);
}

/** The format that a recording is marked with. */
function formatOf({ entries }: Recording): string {
	const [, value = ""] = entries.find(([key]) => key === FORMAT_KEY) ?? [];
	return Buffer.from(value, "base64").toString();
}

if (OLD === undefined) {
	test("reads every entry of a journal that it has written itself", async (t) => {
		await assertRead(t, await record(ROOT));
	});

	for (const recording of RECORDINGS) {
		const format = formatOf(recording);
		const journal = `the journal of boost of ${recording.commit}, in format ${format}`;
		if (format === FORMAT) test(`reads every entry of ${journal}`, (t) => assertRead(t, recording));
		else test(`refuses ${journal}, in one line, and leaves it as it is`, (t) => assertRefused(t, recording));
	}
} else {
	test("a journal is recorded", async () => {
		const { commit, depth, stages, entries } = await record(OLD);
		const lines = entries.map((entry) => `\t\t${JSON.stringify(entry)}`).join(",\n");
		const head = JSON.stringify({ commit, depth, stages }, null, "\t").slice(0, -2);
		const text = `${head},\n\t"entries": [\n${lines}\n\t]\n}\n`;
		writeFileSync(new URL(`journal-${commit}.json`, RECORDED), text);
	});
}
