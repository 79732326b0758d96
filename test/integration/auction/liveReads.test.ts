// Signed reads of a searcher's own bundles, at the relay, at an edge and through boost, one by one
// and in batches. The body's signature opens settled bundles; typed data that names this relay
// opens all of them.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Wallet } from "ethers";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { BiddingFixture, backrunBy, prepareBidding } from "../../support/biddingFixture.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { snippet } from "../../support/documents.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { READ_SIGNATURE, type ReadOptions, readHeader } from "../../support/typedSignatures.ts";
import { until } from "../../support/until.ts";

type Env = Readonly<Record<string, string>>;
type Fields = Readonly<Record<string, unknown>>;

const NAME = "relay.example:8443";
const DAY = 24 * 3_600;

let fixture: BoostFixture;
let clients: BiddingFixture;
let keys = 0;
let accounts = 0;
before(async () => {
	fixture = await startBoostFixture({ system: { env: { PUBLIC_URL: `https://${NAME}` } } });
	await prepareBidding(fixture.system);
	clients = new BiddingFixture(fixture.system);
});
after(() => fixture?.stop());

/** A key that no other test has used. */
function newKey(): string {
	keys += 1;
	return `0x${String(keys).padStart(64, "7")}`;
}

const live = async (key: string, options: ReadOptions = {}): Promise<Env> => ({
	[READ_SIGNATURE]: await readHeader(key, { relay: NAME, ...options }),
});

/** An account that no other test has used. */
function account(): number {
	accounts += 1;
	return accounts;
}

/** A bid that `key` signs, for `block`; the bundle's hash. */
async function bid(key: string, block: number): Promise<string> {
	const target = await clients.target(account());
	const { raw } = backrunBy(account(), 1_000n);
	const params = [{ txs: [target, raw], blockNumber: `0x${block.toString(16)}` }];
	return String(await clients.call("eth_sendBundle", params, { key }));
}

/** Posts the calls, alone or as a batch. `key` signs the body. */
async function post(
	url: string,
	calls: readonly Fields[],
	headers: Env,
	key?: string,
): Promise<WireAnswer[]> {
	const named = calls.map((call, id) => ({ jsonrpc: "2.0", id, ...call }));
	const body = JSON.stringify(named.length === 1 ? named[0] : named);
	const signature = key && { "x-flashbots-signature": createBodySigner(key).sign(body) };
	const sent = { "content-type": "application/json", ...headers, ...signature };
	const answers = await (await fetch(url, { method: "POST", headers: sent, body })).json();
	return (named.length === 1 ? [answers] : answers) as WireAnswer[];
}

/**
 * Every read that reports the bundle, as `url` answers it, alone and in one batch with a cancel,
 * which boost splits.
 */
async function seen(url: string, bundleHash: string, block: number, headers: Env, key?: string) {
	const inBlock = { bundleHash, blockNumber: `0x${block.toString(16)}` };
	const calls = [
		{ method: "service_bundles", params: [] },
		{ method: "service_searcherStats", params: [] },
		{ method: "flashbots_getBundleStatsV2", params: [inBlock] },
		{ method: "flashbots_getBundleStats", params: [inBlock] },
	];
	const shown = (answers: readonly WireAnswer[]) => {
		const [list, days, stats, older] = answers.map(({ result }) => result) as [
			Fields[],
			Fields[],
			Fields,
			Fields,
		];
		return {
			list: list.filter((one) => one.bundleHash === bundleHash).map(({ stage }) => stage),
			bids: days.reduce((sum, { bids }) => sum + Number(bids), 0),
			isKnown: [stats.receivedAt !== undefined, older.submittedAt !== undefined],
		};
	};
	const alone = [];
	for (const call of calls) alone.push(...(await post(url, [call], headers, key)));
	const cancel = { method: "eth_cancelTransaction", params: [`0x${"ee".repeat(32)}`] };
	const batch = await post(url, [...calls, cancel], headers, key);
	assert.deepEqual(shown(batch), shown(alone));
	const signature = key && { "x-flashbots-signature": createBodySigner(key).sign(bundleHash) };
	const page = await fetch(`${url}/bundle/${bundleHash}`, { headers: { ...headers, ...signature } });
	const { blocks = [] } = (await page.json()) as { blocks?: readonly { blockNumber: number }[] };
	return { ...shown(alone), page: page.status, blocks: blocks.map(({ blockNumber }) => blockNumber) };
}

const NOTHING = { list: [], bids: 0, isKnown: [false, false], page: 404, blocks: [] };

for (const [where, urlOf] of [
	["at the relay", () => fixture.system.client.url],
	["through boost", () => fixture.boost.url],
] as const) {
	describe(where, () => {
		it("a body's signature opens a bundle once its block has arrived, a typed one before", async () => {
			const [key, url, block] = [newKey(), urlOf(), (await clients.head()) + 1];
			const hash = await bid(key, block);
			const open = { list: ["ACCEPTED"], bids: 1, isKnown: [true, true], page: 200, blocks: [block] };
			assert.deepEqual(await seen(url, hash, block, {}, key), NOTHING);
			assert.deepEqual(await seen(url, hash, block, await live(key)), open);
			assert.deepEqual(await seen(url, hash, block, await live(key), key), open, "the typed one decides");
			assert.deepEqual(await seen(url, hash, block, await live(newKey()), key), NOTHING);
			await fixture.system.nextBlock();
			const settled = await until("its outcome", async () => {
				const now = await seen(url, hash, block, {}, key);
				return now.list.join() !== "ACCEPTED" && now;
			});
			assert.deepEqual({ ...settled, list: [] }, { ...open, list: [] });
			assert.deepEqual(await seen(url, hash, block, await live(key)), settled);
		});

		it("of a bundle in several blocks the later ones stay closed, as do bundles behind it in the list", async () => {
			const [key, url, block] = [newKey(), urlOf(), (await clients.head()) + 1];
			const plain = {
				version: "v0.1",
				inclusion: { block: `0x${block.toString(16)}`, maxBlock: `0x${(block + 1).toString(16)}` },
				body: [{ tx: backrunBy(account(), 1_000n).raw, canRevert: false }],
			};
			const { bundleHash } = (await clients.call("mev_sendBundle", [plain], { key })) as {
				bundleHash: string;
			};
			const later = await bid(key, block + 1);
			assert.deepEqual(await seen(url, bundleHash, block, {}, key), NOTHING);
			await fixture.system.nextBlock();
			await until("its block", async () => (await seen(url, bundleHash, block, {}, key)).page === 200);
			assert.deepEqual((await seen(url, bundleHash, block, {}, key)).blocks, [block]);
			assert.deepEqual(await seen(url, later, block + 1, {}, key), { ...NOTHING, bids: 0 });
			const page = { method: "service_bundles", params: [{ before: later }] };
			const [{ error }] = (await post(url, [page], {}, key)) as [WireAnswer];
			assert.match(error?.message ?? "", /page\.before: expected the hash of one of your bundles/);
		});

		it("a typed signature for something else opens nothing, and each refusal says what was expected", async () => {
			const [key, url, block] = [newKey(), urlOf(), (await clients.head()) + 1];
			const hash = await bid(key, block);
			const now = Math.floor(Date.now() / 1_000);
			const rows: readonly (readonly [Env, RegExp])[] = [
				[{ [READ_SIGNATURE]: "nonsense" }, /expected address=0x…, relay=<name>, until=</],
				[await live(key, { relay: "127.0.0.1" }), /relay: expected relay\.example:8443$/],
				[await live(key, { until: now - 60 }), /until: expired, it is \d+ here$/],
				[
					await live(key, { until: now + DAY + 60 }),
					/until: expected at most 86400 seconds from now, it is \d+ here$/,
				],
				[
					await live(key, { scope: "refunds" }),
					/over Read\(relay "relay.example:8443", scope "bundles", until \d+\)/,
				],
				[await live(key, { chainId: 1 }), /on chain 31337$/],
			];
			for (const [headers, expected] of rows) {
				const page = await fetch(`${url}/bundle/${hash}`, { headers });
				assert.equal(page.status, 401);
				assert.match(((await page.json()) as { error: string }).error, expected);
				// A call that asks for no live read does not depend on it.
				const calls = [{ method: "service_bundles" }, { method: "eth_blockNumber" }];
				const [{ error }, other] = (await post(url, calls, headers, key)) as [WireAnswer, WireAnswer];
				assert.equal(error?.code, -32_600);
				assert.match(error.message, expected);
				assert.equal(typeof other.result, "string");
			}
		});
	});
}

it("are signed as docs/searchers.md has it", async () => {
	const [key, block] = [newKey(), (await clients.head()) + 1];
	const hash = await bid(key, block);
	const code = snippet("docs/searchers.md", "const { chainId, name } =").replace("console.log(", "return (");
	const run = new Function("wallet", "base", "hash", `return (async () => {${code}})()`);
	const told = (await run(new Wallet(key), fixture.boost.url, hash)) as {
		blocks: readonly { stage: string }[];
	};
	assert.deepEqual(
		told.blocks.map(({ stage }) => stage),
		["ACCEPTED"],
	);
});

it("the relay's name is in its information", async () => {
	for (const url of [fixture.system.client.url, fixture.boost.url]) {
		const { name } = (await (await fetch(`${url}/info`)).json()) as Fields;
		assert.equal(name, NAME);
	}
});

it("a receipt is the same at both, by address and by signature, and boost says when the relay is down", async () => {
	const by = await fixture.users.actor();
	const tx = by.sign();
	assert.equal(await fixture.boost.result("eth_sendRawTransaction", [tx.raw]), tx.hash);
	await fixture.users.waitUntilSent(tx);
	await fixture.system.nextBlock();
	await fixture.users.reaches(tx, "INCLUDED");
	const call = { method: "service_receipt", params: [tx.hash] };
	const headers = await live(by.account.keyHex, { scope: "receipts" });
	const urls = [fixture.system.client.url, fixture.boost.url];
	const answers = (await Promise.all(urls.map((url) => post(url, [call], headers)))).flat();
	answers.push(...(await post(fixture.boost.url, [call], {})));
	const [first] = answers.map(({ result }) => result as Fields | undefined);
	assert.notEqual(first?.ended ?? null, null);
	for (const { result } of answers) assert.deepEqual(result, first);
	const [refused] = await post(fixture.boost.url, [call], await live(by.account.keyHex));
	assert.deepEqual(
		[refused?.error?.code, /scope "receipts"/.test(refused?.error?.message ?? "")],
		[-32_600, true],
	);
	await fixture.fails();
	const [down] = await post(fixture.boost.url, [call], headers);
	assert.deepEqual(
		[down?.error?.code, /^no relay available: /.test(down?.error?.message ?? "")],
		[-32_603, true],
	);
	await fixture.recovers();
});
