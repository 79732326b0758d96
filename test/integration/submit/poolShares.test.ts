// One client's share of the pool, on a running relay: a client that has filled its share gets an
// error, also after a restart, and another client notices nothing. A trusted proxy's header says
// which client a request is from.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { GWEI, RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";

const MIB = 1024 * 1024;
const POOL_BYTES = 32 * MIB;
const DATA_BYTES = 127 * 1024;
/**
 * Bytes that the pool counts besides the data: 512 for its entry, and about 128 for the
 * transaction's other fields.
 */
const OTHER_BYTES = 640;
const FILLER = "192.0.2.1";
const OTHER = "192.0.2.2";

let system: TestSystem;
let fixture: RelayFixture;
before(async () => {
	const env = { POOL_MAX_BYTES: String(POOL_BYTES), TRUST_PROXY: "1", RATE_LIMIT_RPS: "0" };
	system = await startSystem({ env });
	fixture = new RelayFixture(system);
});
after(() => system.stop());

interface Answer {
	readonly result?: string;
	readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

async function send(raw: string, client: string): Promise<Answer & { readonly status: number }> {
	const response = await fetch(`${system.client.url}/fast`, {
		method: "POST",
		headers: { "content-type": "application/json", "x-forwarded-for": client },
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] }),
	});
	return { status: response.status, ...((await response.json()) as Answer) };
}

const FULL = {
	status: 200,
	jsonrpc: "2.0",
	id: 1,
	error: {
		code: -32005,
		message: "too many pending transactions from this client",
		data: { reason: "CLIENT_FULL", scope: "client" },
	},
};

test("a client address gets a sixteenth of the pool, however many keys it uses, also after a restart", async () => {
	// The nonces before 3 are missing, so the transactions stay in the pool.
	const large = { nonce: 3, gasLimit: 6_000_000, data: Buffer.alloc(DATA_BYTES), maxFeePerGas: 2n * GWEI };
	let taken = 0;
	let last: Answer = {};
	while (last.error === undefined && taken < 100) {
		// Each from a new key.
		last = await send((await fixture.actor()).sign(large).raw, FILLER);
		if (last.error === undefined) taken += 1;
	}
	assert.deepEqual(last, FULL);
	assert.equal(taken, Math.floor(POOL_BYTES / 16 / (DATA_BYTES + OTHER_BYTES)));
	const check = async () => {
		const honest = (await fixture.actor()).sign();
		assert.equal((await send(honest.raw, OTHER)).result, honest.hash);
		await fixture.waitUntilSent(honest);
		assert.deepEqual(await send((await fixture.actor()).sign(large).raw, FILLER), FULL);
	};
	await check();
	await system.restart();
	await check();
});
