// Authorizations (EIP-7702) use up the rate limit of who sends them, by whatever method, at the
// relay and through boost: who has signed them may have to be recovered.

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { sized } from "../../support/length.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { StoppableClock } from "../../support/stoppableClock.ts";
import { rawTransaction, testAccount } from "../../support/txFactory.ts";

/** Ten seconds' worth is 100. */
const RPS = "10";
/** They weigh 40. */
const MANY = 640;
const FEW = 8;
const HASH = `0x${"ab".repeat(32)}`;
const STRANGER = testAccount(7_000_000);

/** It is stopped while a limit is used up: on a busy machine that would fill up again meanwhile. */
const clock = new StoppableClock();
let fixture: BoostFixture;
let boost: BoostClient;
let clients = 0;
before(async () => {
	fixture = await startBoostFixture({
		system: { clock, env: { RATE_LIMIT_RPS: RPS, TRUST_PROXY: "1" } },
		boost: { TRUST_PROXY: "1" },
		// Its wire knows no websockets.
		unwired: true,
	});
	boost = await fixture.startBoost({ clock });
});
afterEach(() => clock.goOn());
after(() => fixture?.stop());

/** A transaction that is refused for its sender's account, if not before. */
function raw(count: number): string {
	const signed = { by: STRANGER, address: HASH.slice(0, 42) };
	const authorizations = Array.from({ length: count }, () => signed);
	const bytes = rawTransaction({ type: 4, by: STRANGER, nonce: 9, gasLimit: 16_700_000, authorizations });
	return `0x${bytes.toString("hex")}`;
}

const METHODS: Readonly<Record<string, (tx: string) => unknown>> = {
	eth_sendRawTransaction: (tx) => tx,
	eth_sendRawTransactionSync: (tx) => tx,
	eth_sendBundle: (tx) => ({ txs: [HASH, tx] }),
	mev_sendBundle: (tx) => ({
		version: "v0.1",
		inclusion: { block: "0x7fffffff" },
		body: [{ tx, canRevert: false }],
	}),
	eth_callMany: (tx) => ({ txs: [tx], blockNumber: "0x7fffffff", stateBlockNumber: "latest" }),
	eth_callBundle: (tx) => ({ txs: [tx], blockNumber: "0x7fffffff" }),
};

type Ask = (method: string, params: readonly unknown[]) => Promise<WireAnswer>;

/** How a new client asks, by HTTP or a websocket. */
async function newcomer(url: string, isWebsocket: boolean): Promise<{ ask: Ask; end: () => void }> {
	clients += 1;
	const headers = { "x-forwarded-for": `198.51.100.${clients}`, "content-type": "application/json" };
	const text = (method: string, params: readonly unknown[]) =>
		JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
	if (!isWebsocket) {
		const ask: Ask = async (method, params) => {
			const answer = await fetch(`${url}/fast`, { method: "POST", headers, body: text(method, params) });
			return (await answer.json()) as WireAnswer;
		};
		return { ask, end() {} };
	}
	const socket = await WsClient.open(`${url.replace("http", "ws")}/ws`, { headers });
	const ask: Ask = async (method, params) => {
		socket.send(text(method, params));
		return (await socket.next()) as WireAnswer;
	};
	return { ask, end: () => socket.terminate() };
}

/** How many calls with so many authorizations are answered before the rate limit refuses one. */
async function taken(url: string, isWebsocket: boolean, method: string, count: number): Promise<number> {
	const { ask, end } = await newcomer(url, isWebsocket);
	const params = [METHODS[method]?.(raw(count))];
	try {
		for (let calls = 0; calls < 8; calls++) {
			const { error } = await ask(method, params);
			if (error?.code === -32005) return calls;
			assert.notEqual(error?.code, -32603, error?.message);
		}
		return 8;
	} finally {
		end();
	}
}

const WAYS = [
	["at the relay by HTTP", () => fixture.system.client.url, false],
	["through boost by websocket", () => boost.url, true],
	["at the relay by websocket", () => fixture.system.client.url, true],
	["through boost by HTTP", () => boost.url, false],
] as const;

for (const [i, method] of Object.keys(METHODS).entries()) {
	// One method every way, each of the others one way.
	const ways = sized(i === 0 ? WAYS : WAYS.slice(i % WAYS.length).slice(0, 1), WAYS);
	for (const [way, url, isWebsocket] of ways) {
		test(`${method} with many authorizations costs more than with few, ${way}`, async () => {
			clock.stopAfter(0);
			assert.equal(await taken(url(), isWebsocket, method, FEW), 8);
			const many = await taken(url(), isWebsocket, method, MANY);
			assert.ok(many >= 2 && many <= 4, `${many} of ${MANY} authorizations`);
		});
	}
}
