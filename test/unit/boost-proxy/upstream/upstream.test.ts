// The headers and bodies that our relay and a third party receive. `nonce too low`, which the
// transaction itself may have caused. And the outcome that the breaker receives for a request that
// found no connection.

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { DialectName } from "../../../../boost-proxy/domain/ports.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { signedTransaction } from "../../../support/txFactory.ts";
import { FarSide, NearSide, refusal, Tap } from "../wire.ts";

const TX = signedTransaction({});
const SENDABLE = { hash: TX.hash, from: TX.from, raw: TX.raw, path: "noreverts", search: "a=b" } as const;
const ASKER = {
	...{ address: "192.0.2.9", signer: "0x00000000000000000000000000000000000000aa" },
	...{ origin: "https://wallet.example", via: null, signature: "0xsig:0x01", requestId: null },
	life: { bytes: 0, onGone: () => {} },
};
const SIGNED = { deadlineMs: 1_000, caller: ASKER };
/** Boost's own request for it. */
const OWN = `{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x${TX.raw.toString("hex")}"]}`;
const TOO_LOW = refusal("nonce too low: next nonce 4, tx nonce 0");

async function fixture(t: TestContext, dialect: DialectName | null, connections = 256) {
	const clock = new ManualClock();
	const far = await new FarSide(dialect === null ? "relay" : "fallback", () => TX.hash).start();
	const near = new NearSide(far, dialect, clock, { boostSecret: "s3cret", connections });
	const tap = new Tap([far]);
	clock.settled = () => tap.settled();
	t.after(async () => {
		await near.end();
		await far.stop();
		tap.close();
	});
	return { near, far, clock };
}

test("our relay gets the client's address, its signer and the secret, with a request of boost's own", async (t) => {
	const { near, far } = await fixture(t, null);
	await near.deliver(SENDABLE, SIGNED);
	const [left] = far.left;
	assert.deepEqual(far.arrived, [OWN]);
	assert.equal(left?.target, "/noreverts?a=b");
	assert.deepEqual(left?.headers, {
		"x-boost-auth": "s3cret",
		"x-forwarded-for": "192.0.2.9",
		origin: "https://wallet.example",
		"x-boost-signer": ASKER.signer,
		"x-boost-transaction": `${TX.hash} ${TX.from}`,
	});
});

test("an unchanged body of reads is sent with its signature", async (t) => {
	const { near, far } = await fixture(t, null);
	far.onCall = () => ({ result: "0x1" });
	const body = '{ "params": [], "id": "x", "method": "eth_gasPrice", "jsonrpc": "2.0" }';
	await near.read(Buffer.from(body), { ...SIGNED, path: "fast", search: "", ids: ["x"], batch: false });
	assert.deepEqual(far.arrived, [body]);
	const [left] = far.left;
	assert.equal(left?.headers["x-flashbots-signature"], ASKER.signature);
	assert.equal(left?.headers["x-boost-signer"], undefined);
});

test("a third party gets nothing of the client", async (t) => {
	const { near, far } = await fixture(t, "mevblocker");
	await near.deliver(SENDABLE, SIGNED);
	assert.deepEqual(far.left[0]?.headers, {});
	assert.deepEqual(far.arrived, [OWN]);
});

for (const known of [true, false]) {
	test(`"nonce too low" of one that is ${known ? "" : "not "}there: it is asked for by its hash, once`, async (t) => {
		const { near, far } = await fixture(t, null);
		far.onSubmission = () => TOO_LOW;
		far.onCall = () => ({ result: known ? { hash: TX.hash.toUpperCase().replace("0X", "0x") } : null });
		const delivery = await near.deliver(SENDABLE, SIGNED);
		assert.equal(delivery?.kind, known ? "acknowledged" : "rejected");
		const calls = far.calls.map(({ method, params }) => [method, ...params]);
		assert.deepEqual(calls, [["eth_getTransactionByHash", TX.hash]]);
	});
}

test("both questions share one deadline", async (t) => {
	const { near, far, clock } = await fixture(t, null);
	far.onSubmission = async () => {
		await new Promise<void>((resolve) => clock.after(300, resolve));
		return TOO_LOW;
	};
	far.onCall = () => "hangs";
	let kind: string | undefined;
	const delivered = near.deliver(SENDABLE, SIGNED).then((delivery) => {
		kind = delivery?.kind;
	});
	await clock.advance(999);
	assert.deepEqual([far.calls.length, kind], [1, undefined]);
	await clock.advance(1);
	await delivered;
	assert.equal(kind, "rejected");
});

test("a request that found no free connection is not counted", async (t) => {
	const { near, far, clock } = await fixture(t, null, 1);
	far.onSubmission = () => "hangs";
	const first = near.deliver(SENDABLE, SIGNED);
	const second = near.deliver(SENDABLE, { ...SIGNED, deadlineMs: 500 });
	await clock.advance(500);
	assert.deepEqual(await second, { kind: "failed", fault: "timeout", sent: false });
	await clock.advance(500);
	assert.deepEqual(await first, { kind: "failed", fault: "timeout", sent: true });
	assert.deepEqual(near.outcomes, ["aborted", "timeout"]);
});
