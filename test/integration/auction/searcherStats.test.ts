// A searcher's view of its own bundles on a running relay: the list and the figures by day, by HTTP
// and websocket, for the client that made them and nobody else, across a restart. Also Flashbots'
// unmodified ethers-provider-bundle, which reads the same in Flashbots' shapes, bids, simulates and
// cancels.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FlashbotsBundleProvider } from "@flashbots/ethers-provider-bundle";
import { JsonRpcProvider, Wallet } from "ethers";
import {
	type BiddingFixture,
	backrunBy,
	type CallOptions,
	startBidding,
} from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { bundleHashOf } from "../../support/secretFixture.ts";
import { until } from "../../support/until.ts";

type Fields = Readonly<Record<string, unknown>>;

let fixture: BiddingFixture;
let accounts = 0;
let addresses = 0;
before(async () => {
	fixture = await startBidding({
		env: { TRUST_PROXY: "1" },
		chain: { slotSeconds: 12 },
	});
});
after(() => fixture.stop());

/** An account that no other test has used. */
function fresh(): number {
	accounts += 1;
	return accounts;
}

/** A client that no other test has been. */
function somebody(): { readonly from: string } {
	addresses += 1;
	return { from: `198.51.100.${addresses}` };
}

/** A bid of `value` wei by `who`; the bundle's hash. */
async function bid(target: string, who: CallOptions, value: bigint, more: object = {}): Promise<string> {
	const { raw } = backrunBy(fresh(), value);
	return String(await fixture.call("eth_sendBundle", [{ txs: [target, raw], ...more }], who));
}

/** Like {@link bid}, and waits until the builder has it. */
async function bidOut(target: string, who: CallOptions, value: bigint): Promise<string> {
	const { raw } = backrunBy(fresh(), value);
	const hash = String(await fixture.call("eth_sendBundle", [{ txs: [target, raw] }], who));
	await isOut(raw);
	return hash;
}

const bundles = (who: CallOptions, ...page: readonly object[]) =>
	fixture.call("service_bundles", page, who) as Promise<readonly Fields[]>;
const stats = (who: CallOptions, ...page: readonly object[]) =>
	fixture.call("service_searcherStats", page, who) as Promise<readonly Fields[]>;

/** All days together: the test may run at midnight. */
async function figures(who: CallOptions) {
	const days = (await stats(who)) as readonly (Record<string, number> & { lost: object; paid: string })[];
	const sum = (name: string) => days.reduce((all, one) => all + (one[name] ?? 0), 0);
	return {
		...{ bids: sum("bids"), bundles: sum("bundles"), places: sum("places"), landed: sum("landed") },
		withdrawn: sum("withdrawn"),
		paid: days.reduce((all, { paid }) => all + Number(paid), 0),
		lost: Object.assign({}, ...days.map(({ lost }) => lost)) as object,
	};
}

/** Waits until the builder has a bundle with this raw transaction. */
function isOut(raw: string): Promise<unknown> {
	return fixture.system.builder.waitForRequest(({ params }) => JSON.stringify(params).includes(raw));
}

/**
 * One client wins a target with `value` wei, another loses it; resolves when what was paid is
 * known. They differ by what the builder sees in its tenth.
 */
async function auction(winner: CallOptions, loser: CallOptions, value = 5_000n) {
	const target = await fixture.target(fresh());
	const won = await bidOut(target, winner, value);
	const lost = await bidOut(target, loser, value - 20n);
	const block = await fixture.system.nextBlock();
	await until("the payment is known", async () => {
		const row = (await bundles(loser)).find(({ bundleHash }) => bundleHash === lost);
		return row?.paid !== null;
	});
	return { target, won, lost, block };
}

test("a client lists its bundles, the last first: how each stands, what it paid, and what another one paid", async () => {
	const [winner, loser] = [somebody(), somebody()];
	const { target, won, lost, block } = await auction(winner, loser);
	const open = await bid(await fixture.target(fresh()), winner, 7n);
	const rows = await bundles(winner);
	assert.deepEqual(
		rows.map(({ bundleHash }) => bundleHash),
		[open, won],
	);
	const { receivedAt, at, blockHash, ...told } = rows[1] ?? {};
	assert.deepEqual(told, {
		...{ bundleHash: won, target, blockNumber: block, stage: "INCLUDED", reason: null },
		...{ bid: "5000", paid: "5000" },
	});
	const inBlock = (await fixture.system.chain.rpc("eth_getBlockByNumber", [
		`0x${block.toString(16)}`,
		false,
	])) as Fields;
	assert.equal(blockHash, inBlock.hash);
	for (const time of [receivedAt, at]) assert.match(String(time), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
	const [theirs = {}] = await bundles(loser);
	assert.deepEqual(
		[theirs.bundleHash, theirs.stage, theirs.reason, theirs.bid, theirs.paid, theirs.blockHash],
		[lost, "LOST", null, "4980", "5000", null],
	);
	// The page of one bundle says the same in the block.
	const { body } = await fixture.bundle(lost, loser);
	const [{ builders: _, ...status } = { builders: [] }] = (body as { blocks: { builders: unknown }[] })
		.blocks;
	const { bundleHash: _hash, target: _target, receivedAt: _time, ...row } = theirs;
	assert.deepEqual(row, status);
});

test("the list comes in pages; what is wrong with one is said", async () => {
	const who = somebody();
	const target = await fixture.target(fresh());
	const all: string[] = [];
	for (let i = 0; i < 5; i += 1) all.unshift(await bid(target, who, BigInt(100 + i)));
	const hashes = async (page: object) => (await bundles(who, page)).map(({ bundleHash }) => bundleHash);
	assert.deepEqual(await hashes({}), all);
	assert.deepEqual(await hashes({ limit: 2 }), all.slice(0, 2));
	assert.deepEqual(await hashes({ limit: 2, before: all[1] }), all.slice(2, 4));
	assert.deepEqual(await hashes({ before: all[3]?.toUpperCase().replace("0X", "0x") }), all.slice(4));
	assert.deepEqual(await hashes({ before: all[4] }), []);
	const limit = "-32602 invalid params: page.limit: expected a whole number from 1 to";
	for (const [method, page, error] of [
		["service_bundles", { limit: 0 }, `${limit} 500`],
		["service_bundles", { limit: 501 }, `${limit} 500`],
		["service_bundles", { limit: "5" }, `${limit} 500`],
		[
			"service_bundles",
			{ before: "0x12" },
			"-32602 invalid params: page.before: expected a hash of 32 bytes as 0x hex",
		],
		[
			"service_bundles",
			{ before: `0x${"77".repeat(32)}` },
			"-32602 invalid params: page.before: expected the hash of one of your bundles that the relay still has",
		],
		["service_bundles", { after: all[0] }, "-32602 invalid params: page.after: unknown key"],
		["service_bundles", 5, "-32602 invalid params: page: expected {limit, before}"],
		["service_searcherStats", { limit: 1_001 }, `${limit} 1000`],
		["service_searcherStats", [], "-32602 invalid params: page: expected {limit, byBlock}"],
		[
			"service_searcherStats",
			{ byBlock: 501 },
			"-32602 invalid params: page.byBlock: expected a whole number from 0 to 500",
		],
	] as const) {
		await assert.rejects(fixture.call(method, [page], who), new Error(error));
	}
});

test("bundles and figures are those of the client that made them: a signer's, an address's, a web page's", async () => {
	const here = somebody();
	const signed = { ...here, key: `0x${"a1".repeat(32)}`, live: true };
	const page = { ...here, origin: "https://app.example" };
	const target = await fixture.target(fresh());
	const clients = [here, signed, page, { ...here, key: `0x${"b2".repeat(32)}`, live: true }, somebody()];
	const [mine, theirs, the] = [
		await bid(target, here, 9n),
		await bid(target, signed, 8n),
		await bid(target, page, 7n),
	];
	const seen = await Promise.all(
		clients.map(async (who) => {
			const [day] = await stats(who);
			return [(await bundles(who)).map(({ bundleHash }) => bundleHash), day?.bids];
		}),
	);
	assert.deepEqual(seen, [
		[[mine], 1],
		[[theirs], 1],
		[[the], 1],
		[[], undefined],
		[[], undefined],
	]);
	// From anywhere, by the key.
	assert.equal((await bundles({ ...somebody(), key: signed.key, live: true }))[0]?.bundleHash, theirs);
	const headers = { "x-forwarded-for": here.from };
	const socket = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { headers });
	for (const method of ["service_bundles", "service_searcherStats"]) {
		socket.send({ id: 1, method });
		assert.deepEqual((await socket.next()).result, await fixture.call(method, [], here));
	}
	socket.terminate();
});

test("through an unknown proxy, whose address many may share, bundles are returned to signed requests only", async () => {
	// A header that holds no address is ignored, as where TRUST_PROXY is too low.
	const crowd = { from: "unknown" };
	const key = `0x${"c7".repeat(32)}`;
	const target = await fixture.target(fresh());
	await bid(target, crowd, 3_000n);
	const mine = await bid(target, { ...crowd, key }, 4_000n);
	for (const told of [bundles, stats]) await assert.rejects(told(crowd), /expected a signed request/);
	const listed = await bundles({ ...crowd, key, live: true });
	assert.deepEqual(
		listed.map(({ bundleHash }) => bundleHash),
		[mine],
	);
});

test("the figures of a day: bids, places, what landed and paid, what was lost; a restart keeps them", async () => {
	const [me, other] = [somebody(), somebody()];
	await auction(me, other);
	await auction(other, me, 50n);
	const target = await fixture.target(fresh());
	await bid(target, me, 1n, { replacementUuid: "one" });
	await bid(target, me, 2n, { replacementUuid: "one" });
	await fixture.call("eth_cancelBundle", [{ replacementUuid: "one" }], me);
	const { raw } = backrunBy(fresh(), 1n);
	const next = `0x${((await fixture.head()) + 1).toString(16)}`;
	const plain = { version: "v0.1", inclusion: { block: next }, body: [{ tx: raw, canRevert: false }] };
	const { bundleHash } = (await fixture.call("mev_sendBundle", [plain], me)) as { bundleHash: string };
	await isOut(raw);
	await fixture.system.nextBlock();
	await until("the bundle landed", async () => (await fixture.stages(bundleHash, me)).join() === "INCLUDED");
	const days = await stats(me);
	for (const { day } of days) assert.match(String(day), /^\d{4}-\d\d-\d\d$/);
	const { places, ...rest } = await figures(me);
	assert.deepEqual(rest, {
		...{ bids: 4, bundles: 1, landed: 2, withdrawn: 2, paid: 5_000 },
		lost: { LOST: 1 },
	});
	// The two that were withdrawn may have had a place before, or not.
	assert.ok(places >= 3 && places <= 5, String(places));
	assert.deepEqual(await stats(me, { limit: 1 }), days.slice(0, 1));
	await fixture.system.restart();
	assert.deepEqual(await stats(me), days);
	assert.deepEqual(await bundles(me), [], "bundles are in memory only");
	await auction(me, other, 60n);
	const later = await figures(me);
	assert.deepEqual([later.bids, later.landed, later.paid], [5, 3, 5_060]);
});

test("an unsigned bidder has its record by its network address, also behind a restart", async () => {
	const [winner, loser] = [somebody(), somebody()];
	await auction(winner, loser);
	const hasRecord = async (who: CallOptions) => [
		((await fixture.call("flashbots_getUserStatsV2", [], who)) as Fields).isHighPriority,
		((await fixture.call("flashbots_getUserStats", [], who)) as Fields).is_high_priority,
	];
	const both = [true, true];
	await until("the record", async () => (await hasRecord(winner)).join() === both.join());
	const others = [loser, somebody(), { ...winner, key: `0x${"d1".repeat(32)}` }];
	for (const other of others) assert.deepEqual(await hasRecord(other), [false, false]);
	await fixture.system.restart();
	assert.deepEqual(await hasRecord(winner), both);
});

test("ethers-provider-bundle 1.0.0 reads a bundle and its searcher's figures, by all four of its calls", async () => {
	const key = `0x${"f1".repeat(32)}`;
	const wallet = new Wallet(key);
	const { url } = fixture.system.client;
	const node = new JsonRpcProvider(url);
	const library = await FlashbotsBundleProvider.create(node as never, wallet as never, url, "any");
	const stranger = await FlashbotsBundleProvider.create(
		node as never,
		Wallet.createRandom() as never,
		url,
		"any",
	);
	const target = await fixture.target(fresh());
	const { raw, hash } = backrunBy(fresh(), 6_000n);
	const next = (await fixture.head()) + 1;
	// The bid is taken; then the library takes the target's hash for a transaction.
	await assert.rejects(library.sendRawBundle([target, raw], next));
	const bundleHash = FlashbotsBundleProvider.generateBundleHash([target, hash]);
	assert.equal(bundleHash, bundleHashOf(target, hash));
	await isOut(raw);
	const early = (await library.getBundleStatsV2(bundleHash, next)) as unknown as Fields;
	assert.deepEqual(
		[early.isSimulated, early.isHighPriority, early.consideredByBuildersAt],
		[false, false, []],
		"its signature opens only what is settled",
	);
	await fixture.system.nextBlock();
	const considered = await until("a builder had it", async () => {
		const told = (await library.getBundleStatsV2(bundleHash, next)) as unknown as Fields;
		const isKnown = (told.consideredByBuildersAt as Fields[]).length > 0;
		return isKnown && told.isHighPriority === true && told;
	});
	const [builder = {}] = considered.consideredByBuildersAt as Fields[];
	assert.deepEqual([builder.pubkey, builder.builder], ["0x", fixture.system.builder.name]);
	const times = [considered.receivedAt, considered.simulatedAt, builder.timestamp].map((time) =>
		Date.parse(String(time)),
	);
	assert.deepEqual(
		times,
		times.toSorted((a, b) => a - b),
	);
	const { consideredByBuildersAt: _c, receivedAt, simulatedAt: _s, ...rest } = considered;
	assert.deepEqual(rest, { isSimulated: true, isHighPriority: true, sealedByBuildersAt: [] });
	const older = (await library.getBundleStats(bundleHash, next)) as unknown as Fields;
	assert.deepEqual([older.submittedAt, older.isSentToMiners], [receivedAt, true]);
	assert.ok(Date.parse(String(older.sentToMinersAt)) >= Date.parse(String(receivedAt)));
	for (const wrong of [
		library.getBundleStatsV2(bundleHash, next + 1),
		stranger.getBundleStats(bundleHash, next),
	])
		assert.deepEqual(
			[((await wrong) as unknown as Fields).isSimulated, ((await wrong) as unknown as Fields).isHighPriority],
			[false, false],
		);
	const paid = await until("its record", async () => {
		const told = (await library.getUserStatsV2()) as unknown as Fields;
		return told.isHighPriority === true && told;
	});
	const { last1dValidatorPayments, ...longer } = paid;
	// At midnight another day begins.
	assert.match(String(last1dValidatorPayments), /^(6000|0)$/);
	assert.deepEqual(longer, {
		isHighPriority: true,
		...{ allTimeValidatorPayments: "6000", last7dValidatorPayments: "6000" },
		...{ allTimeGasSimulated: "0", last7dGasSimulated: "0", last1dGasSimulated: "0" },
	});
	const first = (await library.getUserStats()) as unknown as Fields;
	assert.deepEqual([first.is_high_priority, first.last_7d_miner_payments], [true, "6000"]);
	const none = (await stranger.getUserStatsV2()) as unknown as Fields;
	assert.deepEqual([none.isHighPriority, none.allTimeValidatorPayments], [false, "0"]);
	node.destroy();
});

test("ethers-provider-bundle 1.0.0 bids, simulates and cancels", async () => {
	const key = `0x${"f2".repeat(32)}`;
	const { url } = fixture.system.client;
	const node = new JsonRpcProvider(url);
	const library = await FlashbotsBundleProvider.create(node as never, new Wallet(key) as never, url, "any");
	const target = await fixture.target(fresh());
	const { raw, hash } = backrunBy(fresh(), 5_000n);
	const next = (await fixture.head()) + 1;
	const simulated = await library.simulate([raw], next);
	assert.ok("ethSentToCoinbase" in simulated);
	assert.equal(simulated.ethSentToCoinbase, 5_000n);
	await assert.rejects(library.sendRawBundle([target, raw], next, { replacementUuid: "mine" }));
	const bundleHash = FlashbotsBundleProvider.generateBundleHash([target, hash]);
	assert.deepEqual(await library.cancelBundles("mine"), { bundleHashes: 200 });
	assert.deepEqual(await fixture.stages(bundleHash, { key }), ["CANCELLED"]);
	const failed = await library.sendRawBundle([target, raw], next + 100);
	assert.match("error" in failed ? failed.error.message : "", /too far ahead/);
	node.destroy();
});
