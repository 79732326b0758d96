// Tests the requests that a web page has its visitor's browser send, at relay and boost. They use
// up the limits of all web pages at that address and never those of a wallet there. The page's
// submissions do not belong to the address.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { startBrowser } from "../../support/browser.ts";
import { WsClient } from "../../support/clients.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { GWEI } from "../../support/relayFixture.ts";
import { startSystem } from "../../support/systems.ts";

type Env = Readonly<Record<string, string>>;

/** Ten seconds' worth, and one a second. */
const RPS = "1";
const BURST = 10;
/** That many times as much for a system whose other processes share the wallet's address. */
const ROOM = 5;
const MIB = 1024 * 1024;
const DATA_BYTES = 127 * 1024;
const MAX_CONNECTIONS = 24;

let fixture: BoostFixture;
let unlimited: BoostFixture;
/** Has a limit of its own, before a relay that has none for it. */
let strict: BoostClient;
let clients = 0;
before(async () => {
	fixture = await startBoostFixture({
		system: { env: { RATE_LIMIT_RPS: RPS, TRUST_PROXY: "1" } },
		fallback: { RATE_LIMIT_RPS: "0" },
		boost: { TRUST_PROXY: "1" },
	});
	unlimited = await startBoostFixture({
		system: {
			env: {
				TRUST_PROXY: "1",
				POOL_MAX_BYTES: String(32 * MIB),
				MAX_CONNECTIONS_PER_CLIENT: String(MAX_CONNECTIONS),
			},
		},
		boost: { TRUST_PROXY: "1" },
	});
	strict = await fixture.startBoost({
		env: { RATE_LIMIT_RPS: RPS, RELAY_URL: fixture.fallbackUrl, FALLBACK_URL: "none" },
	});
});
after(async () => {
	await unlimited?.stop();
	await fixture?.stop();
});

/** The headers of an address that was not here before. */
function newcomer(): Env {
	clients += 1;
	return { "x-forwarded-for": `198.51.100.${clients}` };
}

const DOORS = {
	"the relay": () => fixture.system.client.url,
	boost: () => fixture.boost.url,
	"a boost instance with limits of its own": () => strict.url,
} as const;

const EXTENSION = "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn";

interface Reply extends WireAnswer {
	readonly status: number;
}

async function call(url: string, method: string, params: readonly unknown[], headers: Env): Promise<Reply> {
	const answer = await fetch(`${url}/fast`, {
		method: "POST",
		headers: { "content-type": "application/json", ...headers },
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
	});
	return { status: answer.status, ...((await answer.json()) as WireAnswer) };
}

const price = (url: string, headers: Env) => call(url, "eth_gasPrice", [], headers);

/** Calls with each of `headers` in turn until one is refused. */
async function untilLimited(url: string, ...headers: readonly Env[]): Promise<number> {
	for (let count = 0; ; count++) {
		const { status } = await price(url, headers[count % headers.length] ?? {});
		if (status === 429) return count;
		assert.ok(count < 5 * BURST, "it was never limited");
	}
}

for (const [door, url] of Object.entries(DOORS)) {
	test(`all pages in a browser have one rate limit at ${door}, and the wallet there its own`, async () => {
		const wallet = newcomer();
		const pages = ["https://a.example", "http://b.example:8080", "null"].map((origin) => ({
			...wallet,
			origin,
		}));
		await untilLimited(url(), ...pages);
		for (let i = 0; i < BURST; i++) {
			const own = i % 2 === 0 ? wallet : { ...wallet, origin: EXTENSION };
			assert.equal((await price(url(), own)).status, 200, `the wallet's call ${i}`);
		}
		assert.ok(
			(await untilLimited(url(), { ...wallet, origin: "https://c.example" })) < BURST,
			"a further page",
		);
	});
}

/** Doors without a rate limit. */
const UNLIMITED = {
	"the relay": () => unlimited.system.client.url,
	boost: () => unlimited.boost.url,
} as const;

const submit = (url: string, raw: string, headers: Env) =>
	call(url, "eth_sendRawTransaction", [raw], headers);

for (const [door, url] of Object.entries(UNLIMITED)) {
	test(`a page that has filled its share of the pool at ${door} leaves the wallet's alone`, async () => {
		const wallet = newcomer();
		// The nonces before 3 are missing, so the transactions stay in the pool.
		const large = { nonce: 3, gasLimit: 6_000_000, data: Buffer.alloc(DATA_BYTES), maxFeePerGas: 2n * GWEI };
		const sends = async (headers: Env) =>
			submit(url(), (await unlimited.users.actor()).sign(large).raw, headers);
		let refused: Reply | null = null;
		for (let i = 0; i < 40 && refused === null; i++) {
			const reply = await sends({ ...wallet, origin: `https://${i}.example` });
			if (reply.error !== undefined) refused = reply;
		}
		assert.match(refused?.error?.message ?? "", /^too many pending transactions from this client/);
		assert.equal((await sends(wallet)).error, undefined);
		const own = (await unlimited.users.actor()).sign();
		assert.equal((await submit(url(), own.raw, { ...wallet, origin: EXTENSION })).result, own.hash);
	});

	test(`what a page submits at ${door} may be cancelled by its sender's key alone`, async () => {
		const wallet = newcomer();
		const page = { ...wallet, origin: "https://a.example" };
		const actor = await unlimited.users.actor();
		// Held, so that no block takes it.
		const held = actor.sign({ maxFeePerGas: GWEI / 2n, maxPriorityFeePerGas: 0n });
		assert.equal((await submit(url(), held.raw, page)).result, held.hash);
		for (const who of [page, wallet, { ...wallet, origin: EXTENSION }]) {
			const { error } = await call(url(), "eth_cancelTransaction", [held.hash], who);
			assert.equal(
				error?.message,
				"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key",
				JSON.stringify(who),
			);
		}
		const body = JSON.stringify({
			jsonrpc: "2.0",
			id: 1,
			method: "eth_cancelTransaction",
			params: [held.hash],
		});
		const signature = createBodySigner(actor.account.keyHex).sign(body);
		const headers = { "content-type": "application/json", "x-flashbots-signature": signature, ...page };
		const answer = await fetch(`${url()}/fast`, { method: "POST", headers, body });
		assert.equal(((await answer.json()) as WireAnswer).result, true);
	});
}

test("a page's websockets leave the wallet its connections", async () => {
	const { system } = unlimited;
	const open: WsClient[] = [];
	try {
		const url = `ws://127.0.0.1:${system.relay.port}/ws`;
		const wallet = newcomer();
		const page = { origin: "https://a.example", headers: wallet };
		for (let i = 0; i < MAX_CONNECTIONS; i++) open.push(await WsClient.open(url, page));
		assert.equal((await WsClient.refused(url, page)).status, 429);
		for (let i = 0; i < MAX_CONNECTIONS / 2; i++) open.push(await WsClient.open(url, { headers: wallet }));
		assert.equal((await price(system.client.url, wallet)).status, 200);
	} finally {
		for (const one of open) one.socket.terminate();
	}
});

test("a page in a real browser uses up all that it can, links and images included, and the wallet is served", async () => {
	// One of its own: boosts ask the others from the same address. Its start is observed from there
	// too, and must leave the wallet enough.
	const system = await startSystem({ env: { RATE_LIMIT_RPS: String(ROOM * Number(RPS)) } });
	const { url } = system.client;
	// Another port of the same host: another origin, although the same site.
	const site = createServer((_request, response) => {
		response.setHeader("content-type", "text/html");
		response.end("<!doctype html><title>a page</title><link rel=icon href=data:>");
	});
	await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
	const browser = await startBrowser();
	try {
		const page = await (await browser.newContext()).newPage();
		await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
		const statuses = await page.evaluate(flood, { url, count: 3 * ROOM * BURST });
		assert.ok(statuses.includes(200) && statuses.includes(429), statuses.join());
		for (let i = 0; i < BURST; i++)
			assert.equal((await price(url, {})).status, 200, `the wallet's call ${i}`);
	} finally {
		await browser.close();
		site.closeAllConnections();
		await new Promise((resolve) => site.close(resolve));
		await system.stop();
	}
});

/** Runs in the page: the statuses of its calls; of what it asks otherwise it sees none. */
async function flood({ url, count }: { url: string; count: number }): Promise<readonly number[]> {
	const statuses: number[] = [];
	for (let i = 0; i < count; i++) {
		const hash = `0x${"ab".repeat(32)}`;
		await fetch(`${url}/tx/${hash}?${i}`, { mode: "no-cors" });
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] });
		const headers = { "content-type": "application/json" };
		statuses.push((await fetch(url, { method: "POST", headers, body })).status);
	}
	return statuses;
}
