// Tests rate limits behind boost. They are the clients', never boost's own, at the relay as at
// boost. A client over its limit receives the same answer as at the relay.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import {
	BOOST_SECRET,
	type BoostClient,
	type BoostFixture,
	type Reply,
	startBoostFixture,
} from "../../support/boostFixture.ts";
import type { WireAnswer } from "../../support/relayClient.ts";

type Env = Readonly<Record<string, string>>;

/** Ten seconds' worth, and one a second. */
const RPS = "1";
const BURST = 10;
const CALL = { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] };

let fixture: BoostFixture;
/** Has no limit of its own: the relay's are met. */
let open: BoostClient;
/** Has one of its own, before a relay that has none for it. */
let strict: BoostClient;
let clients = 0;
before(async () => {
	fixture = await startBoostFixture({
		system: { env: { RATE_LIMIT_RPS: RPS } },
		fallback: { RATE_LIMIT_RPS: "0" },
		boost: { TRUST_PROXY: "1" },
	});
	open = fixture.boost;
	strict = await fixture.startBoost({
		env: { RATE_LIMIT_RPS: RPS, RELAY_URL: fixture.fallbackUrl, FALLBACK_URL: "none" },
	});
});
after(() => fixture?.stop());

let here: Env;
let there: Env;
beforeEach(() => {
	here = client();
	there = client();
});

/** Somebody who was not here before. */
function client(): Env {
	clients += 1;
	return { "x-forwarded-for": `198.51.100.${clients}` };
}

/** Statuses of `count` calls one after another. */
async function statuses(count: number, headers: Env, boost = open): Promise<readonly number[]> {
	const seen: number[] = [];
	for (let i = 0; i < count; i++) seen.push((await boost.post(CALL, { headers })).status);
	return seen;
}

/** How many were served; a second or two may pass meanwhile on a machine that is busy. */
function served(codes: readonly number[]): number {
	const good = codes.filter((status) => status === 200).length;
	assert.deepEqual([...new Set(codes)].sort(), [200, 429], "all are served or limited");
	return good;
}

/**
 * Returns the reply that reports the limit, and checks it. On a busy machine a second may pass
 * between two calls, which allows one more call.
 */
async function isLimited(ask: () => Promise<Reply>): Promise<Reply> {
	for (let i = 0; i < BURST / 2; i++) {
		const reply = await ask();
		const { error, ...rest } = reply.json as WireAnswer;
		if (error?.code !== -32005) continue;
		assert.deepEqual([reply.status, rest], [429, { jsonrpc: "2.0", id: 1 }]);
		assert.match(error.message, /^limit exceeded: try again in \d+ s$/);
		assert.match(reply.headers["retry-after"] ?? "", /^[1-9]\d*$/);
		return reply;
	}
	throw new Error("it was not limited");
}

test("at the relay each client of boost has a limit of its own", async () => {
	const good = served(await statuses(BURST + 5, here));
	assert.ok(good >= BURST && good < BURST + 5, `${good}`);
	assert.deepEqual(await statuses(3, there), [200, 200, 200]);
	const { relay } = await open.status();
	assert.equal(relay.state, "closed", "a limit is a verdict");
});

test("a client over the relay's limit gets the relay's error: reads, submissions, cancels, other paths", async () => {
	await statuses(BURST + 3, here);
	const options = { headers: here };
	await isLimited(() => open.post(CALL, options));
	const taken: string[] = [];
	await isLimited(async () => {
		const { raw, hash } = (await fixture.users.actor()).sign();
		taken.push(hash);
		return open.call("eth_sendRawTransaction", [raw], options);
	});
	// The last one was refused.
	const refused = taken.pop() ?? "";
	await isLimited(() => open.call("eth_cancelTransaction", [refused], options));
	await isLimited(() => open.call("eth_getTransactionCount", [`0x${"11".repeat(20)}`, "pending"], options));
	await isLimited(() => open.call("eth_gasPrice", [], { ...options, path: "/fullprivacy" }));
	assert.equal(
		(await open.status()).journal.depth,
		taken.length,
		"nothing of it is kept, or given to the fallback",
	);
	assert.equal(await fixture.system.client.stage(refused), undefined);
});

test("no header makes a client count as another one", async () => {
	await statuses(BURST + 3, here);
	const mine = here["x-forwarded-for"] ?? "";
	const claims: readonly Env[] = [
		{ "x-forwarded-for": `203.0.113.1, ${mine}` },
		{ ...here, "x-boost-auth": BOOST_SECRET },
		{ ...here, "x-boost-auth": BOOST_SECRET, "x-boost-signer": `0x${"ab".repeat(20)}` },
		{ ...here, forwarded: "for=203.0.113.1", "x-real-ip": "203.0.113.1", "x-client-ip": "203.0.113.1" },
		{ ...here, "x-forwarded-host": "other.example", "user-agent": "another", cookie: "a=b" },
	];
	for (const headers of claims) {
		for (const path of ["/fast", "/nochecks"]) {
			await isLimited(() => open.post(CALL, { headers, path }));
		}
	}
});

test("a signature earns no limit of its own: keys cost nothing", async () => {
	await statuses(BURST + 3, here);
	const { account } = await fixture.users.actor();
	const signed = {
		...here,
		"x-flashbots-signature": createBodySigner(account.keyHex).sign(JSON.stringify(CALL)),
	};
	await isLimited(() => open.post(CALL, { headers: signed }));
});

test("boost's own limit is per client too, and calls above it reach no upstream", async () => {
	const good = served(await statuses(BURST + 5, here, strict));
	assert.ok(good >= BURST && good < BURST + 5, `${good}`);
	const limited = await isLimited(() => strict.post(CALL, { headers: here }));
	assert.deepEqual(
		[limited.headers["x-boost-upstream"], limited.headers["x-boost-attempts"]],
		["boost", "0"],
	);
	assert.deepEqual(await statuses(3, there, strict), [200, 200, 200]);
});

test("of a batch above the limit as many calls are served as at the relay", async () => {
	const batch = Array.from({ length: BURST + 5 }, (_, id) => ({ ...CALL, id }));
	const reply = await strict.post(batch, { headers: here });
	const codes = (json: unknown) => (json as readonly WireAnswer[]).map(({ error }) => error?.code);
	assert.deepEqual(codes(reply.json), [...Array(BURST).fill(undefined), ...Array(5).fill(-32005)]);
	assert.equal(reply.status, 200);
	const more = codes((await strict.post(batch, { headers: here })).json);
	assert.ok(more.filter((code) => code === -32005).length >= BURST, `${more}`);
});

test("expensive calls count ten", async () => {
	const heavy = { ...CALL, method: "eth_getLogs", params: [{ fromBlock: "latest" }] };
	assert.equal((await strict.post(heavy, { headers: here })).status, 200);
	await isLimited(() => strict.post(heavy, { headers: here }));
});

test("polls of one's own transactions are free once a second", async () => {
	const { raw, hash } = (await fixture.users.actor()).sign();
	await strict.result("eth_sendRawTransaction", [raw], { headers: here });
	await statuses(BURST + 3, here, strict);
	await isLimited(() => strict.post(CALL, { headers: here }));
	const poll = { ...CALL, method: "eth_getTransactionReceipt", params: [hash] };
	assert.deepEqual((await strict.post(poll, { headers: here })).json, {
		jsonrpc: "2.0",
		id: 1,
		result: null,
	});
	await isLimited(() => strict.post({ ...poll, params: [`0x${"ab".repeat(32)}`] }, { headers: here }));
});
