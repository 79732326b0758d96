// Calls behind one's own pending transactions through boost: the relay knows boost's client by its
// address. A fallback knows nothing about the client, so during an outage boost itself judges by
// its journal.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { RelayClient, type WireAnswer } from "../../support/relayClient.ts";
import type { Signed } from "../../support/relayFixture.ts";
import { SwapFixture, type Swapper } from "../../support/swapFixture.ts";
import { until } from "../../support/until.ts";

type Env = Readonly<Record<string, string>>;

const HERE: Env = { "x-forwarded-for": "198.51.100.1" };
const THERE: Env = { "x-forwarded-for": "198.51.100.2" };
const PAGE: Env = { ...HERE, origin: "https://app.example" };

let fixture: BoostFixture;
/** Behind one proxy, which names the client. */
let boost: BoostClient;
let market: SwapFixture;
before(async () => {
	fixture = await startBoostFixture({ boost: { TRUST_PROXY: "1" } });
	boost = fixture.boost;
	market = await SwapFixture.open(fixture.users);
});
after(() => fixture?.stop());

/** A user whose approval, submitted from `HERE`, is pending. */
async function approved(): Promise<Swapper & { readonly approval: Signed }> {
	const user = await market.swapper();
	const approval = user.approve();
	assert.equal(
		await boost.result("eth_sendRawTransaction", [approval.raw], { headers: HERE }),
		approval.hash,
	);
	return { ...user, approval };
}

function endOf(answer: unknown): string {
	const { error } = answer as WireAnswer;
	return error === undefined ? "runs" : error.code === 3 ? "reverts" : `${error.code} ${error.message}`;
}

/** How the swap ends as an estimate and as a call, alone and in a batch; `key` signs each body. */
async function ends({ swap }: Swapper, headers: Env, key?: string): Promise<readonly string[]> {
	const calls = [
		{ jsonrpc: "2.0", id: 1, method: "eth_estimateGas", params: [swap] },
		{ jsonrpc: "2.0", id: 2, method: "eth_call", params: [swap, "pending"] },
	];
	const post = async (body: unknown): Promise<unknown> => {
		const signature = key && { "x-flashbots-signature": createBodySigner(key).sign(JSON.stringify(body)) };
		return (await boost.post(body, { headers: { ...headers, ...signature } })).json;
	};
	const alone = [await post(calls[0]), await post(calls[1])];
	return [...alone, ...((await post(calls)) as unknown[])].map(endOf);
}

const all = (end: string) => Array.from({ length: 4 }, () => end);

it("run for the address that submitted through boost, and for nobody else who signs as the sender", async () => {
	const user = await approved();
	const key = user.account.keyHex;
	assert.deepEqual(await ends(user, HERE), all("runs"));
	assert.deepEqual(await ends(user, HERE, key), all("runs"));
	for (const who of [THERE, PAGE]) {
		assert.deepEqual(await ends(user, who), all("reverts"));
		assert.deepEqual(await ends(user, who, key), all("reverts"));
	}
});

it("do so at the fallback that took them over, which knows boost alone: boost asks it for nobody else", async (t) => {
	const user = await approved();
	const key = user.account.keyHex;
	t.after(() => fixture.recovers());
	await fixture.fails();
	const fallback = new RelayClient(fixture.fallbackUrl);
	await until("the fallback has it", async () => (await fallback.stage(user.approval.hash)) !== undefined);
	assert.deepEqual(await ends(user, HERE), all("runs"));
	assert.deepEqual(await ends(user, THERE, key), all("reverts"));
	assert.deepEqual(await ends(user, THERE), all("reverts"));
	assert.deepEqual(await ends(user, PAGE), all("reverts"));
	// One of them is somebody else's, and the fallback cannot tell.
	const other = user.sign({ value: 1n, nonce: 2 });
	assert.equal(await boost.result("eth_sendRawTransaction", [other.raw], { headers: THERE }), other.hash);
	assert.deepEqual(await ends(user, HERE), all("reverts"));
	await fixture.recovers();
	assert.deepEqual(await ends(user, HERE), all("runs"));
	assert.deepEqual(await ends(user, THERE), all("reverts"));
});

it("see the chain alone at a relay that does not believe boost, and so takes all its clients for one", async () => {
	const unbelieved = await fixture.startBoost({ env: { BOOST_SECRET: "another one" } });
	const user = await market.swapper();
	const approval = user.approve();
	await unbelieved.result("eth_sendRawTransaction", [approval.raw], { headers: HERE });
	for (const headers of [HERE, THERE]) {
		const reply = await unbelieved.call("eth_estimateGas", [user.swap], { headers });
		assert.equal(endOf(reply.json), "reverts");
	}
});
