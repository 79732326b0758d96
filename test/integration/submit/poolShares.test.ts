// The pool's shares on a running relay: a client that fills its own is told so, across a restart too, and another client
// notices nothing. The clients are told apart by a proxy that is trusted.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ETHER, GWEI, RelayFixture } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/systems.ts";

const MIB = 1024 * 1024;
const POOL_BYTES = 32 * MIB;
const DATA_BYTES = 127 * 1024;

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
	...{ jsonrpc: "2.0", id: 1 },
	error: {
		code: -32005,
		message: "too many pending transactions from this client",
		data: { reason: "CLIENT_FULL", scope: "client" },
	},
};

test("a client has a sixteenth of the pool, with however many keys and behind a restart; others notice nothing", async () => {
	const large = { nonce: 3, gasLimit: 6_000_000, data: Buffer.alloc(DATA_BYTES), maxFeePerGas: 2n * GWEI };
	let taken = 0;
	let last: Answer = {};
	while (last.error === undefined && taken < 100) {
		// Each from a key of its own, behind a gap.
		last = await send((await fixture.actor(ETHER)).sign(large).raw, "192.0.2.1");
		if (last.error === undefined) taken += 1;
	}
	assert.deepEqual(last, FULL);
	assert.equal(taken, Math.floor(POOL_BYTES / 16 / (DATA_BYTES + 640)));
	const check = async () => {
		const honest = (await fixture.actor()).sign();
		assert.equal((await send(honest.raw, "192.0.2.2")).result, honest.hash);
		await fixture.sent(honest);
		assert.deepEqual(await send((await fixture.actor(ETHER)).sign(large).raw, "192.0.2.1"), FULL);
	};
	await check();
	await system.restart();
	await check();
});
