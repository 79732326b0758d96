// A signed bid, replacement or cancel that another client repeats to the byte: refused, and the
// first one's bundle stays as it was. At the relay, at an edge, and through boost, which rewrites a
// batch.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { BiddingFixture, backrunBy, prepareBidding } from "../../support/biddingFixture.ts";
import { type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import type { WireAnswer } from "../../support/relayClient.ts";

const KEY = `0x${"c3".repeat(32)}`;
const MINE = "198.51.100.1";
const THEIRS = "198.51.100.2";
const REPEATED = {
	code: -32_600,
	message: "this signed request was already sent from another address: change its id",
};

let fixture: BoostFixture;
let clients: BiddingFixture;
let accounts = 0;
before(async () => {
	const behindProxy = { TRUST_PROXY: "1" };
	fixture = await startBoostFixture({ system: { env: behindProxy }, boost: behindProxy });
	await prepareBidding(fixture.system);
	clients = new BiddingFixture(fixture.system);
});
after(() => fixture?.stop());

const SERVERS = {
	relay: () => fixture.system.client.url,
	boost: () => fixture.boost.url,
} as const;
type ServerName = keyof typeof SERVERS;

/** Posts a signed body: the result or error of each of its calls. */
async function post(server: ServerName, from: string, body: string): Promise<readonly unknown[]> {
	const signature = createBodySigner(KEY).sign(body);
	const headers = {
		...{ "content-type": "application/json", "x-forwarded-for": from },
		"x-flashbots-signature": signature,
	};
	const answers = (await (await fetch(SERVERS[server](), { method: "POST", headers, body })).json()) as
		| WireAnswer
		| readonly WireAnswer[];
	return [answers].flat().map((one) => (one as WireAnswer).error ?? (one as WireAnswer).result);
}

function fresh(): number {
	accounts += 1;
	return accounts;
}

/** A call with Flashbots' own constant id. */
const call = (method: string, param: object) => ({ jsonrpc: "2.0", id: 69, method, params: [param] });
const stages = (hash: unknown) => clients.stages(String(hash), { key: KEY });

/** A bid under `uuid`, alone or beside a cancel, for which boost takes the batch apart. */
async function bidBody(uuid: string, isBatch = false): Promise<string> {
	const target = await clients.target(fresh());
	const bid = call("eth_sendBundle", {
		txs: [target, backrunBy(fresh(), 1_000n).raw],
		replacementUuid: uuid,
	});
	const other = { ...call("eth_cancelTransaction", {}), id: 1, params: [`0x${"ee".repeat(32)}`] };
	return JSON.stringify(isBatch ? [bid, other] : bid);
}

for (const [first, other, isBatch] of [
	["relay", "relay", false],
	["boost", "boost", false],
	["boost", "relay", true],
	["relay", "boost", true],
] as const) {
	it(`${isBatch ? "a batch" : "a bid"} at the ${first}, repeated at the ${other}: for its own client it counts each time`, async () => {
		const uuid = `${first} ${other}`;
		const cancel = JSON.stringify(call("eth_cancelBundle", { replacementUuid: uuid }));
		const empty = JSON.stringify(call("eth_sendBundle", { txs: [], replacementUuid: uuid }));
		const body = await bidBody(uuid, isBatch);
		const [hash] = await post(first, MINE, body);
		assert.deepEqual((await post(other, THEIRS, body))[0], REPEATED);
		assert.deepEqual(await stages(hash), ["ACCEPTED"]);
		for (const way of [cancel, empty]) {
			await post(first, MINE, way);
			assert.deepEqual(await stages(hash), ["CANCELLED"]);
			assert.equal((await post(other, MINE, body))[0], hash);
			assert.deepEqual(await stages(hash), ["ACCEPTED"]);
			assert.deepEqual((await post(other, THEIRS, way))[0], REPEATED);
			assert.deepEqual(await stages(hash), ["ACCEPTED"]);
		}
		const better = await bidBody(uuid);
		const [now] = await post(other, MINE, better);
		assert.deepEqual(await stages(hash), ["REPLACED"]);
		assert.deepEqual((await post(first, THEIRS, body))[0], REPEATED, "an old bid");
		assert.deepEqual(await stages(now), ["ACCEPTED"]);
	});
}

it("a plain bundle is one client's, too; a web page is no client of its visitor's, and an unsigned one is anybody's", async () => {
	const block = `0x${((await clients.head()) + 1).toString(16)}`;
	const body = [{ tx: backrunBy(fresh(), 1_000n).raw, canRevert: false }];
	const plain = call("mev_sendBundle", { version: "v0.1", inclusion: { block }, body });
	const text = JSON.stringify(plain);
	const [sent] = await post("relay", MINE, text);
	assert.match((sent as { bundleHash: string }).bundleHash, /^0x/);
	assert.deepEqual(await post("boost", THEIRS, text), [REPEATED]);
	const headers = {
		...{ "content-type": "application/json", "x-forwarded-for": MINE, origin: "https://app.example" },
		"x-flashbots-signature": createBodySigner(KEY).sign(text),
	};
	const page = await fetch(SERVERS.relay(), { method: "POST", headers, body: text });
	assert.deepEqual(((await page.json()) as WireAnswer).error, REPEATED);
	for (const from of [MINE, THEIRS]) {
		const { error } = await clients.ask("mev_sendBundle", plain.params, { from });
		assert.equal(error, undefined);
	}
});
