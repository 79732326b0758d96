// The time that a stranger's bids, cancels and reads of receipts take reveals no private
// transaction: while the node takes 100 ms for each answer, times for a private transaction and for
// an unknown hash come from one distribution. The answers are in hiddenTransactions.test.ts and
// receipts.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type BiddingFixture, backrunBy, startBidding } from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import {
	assertSameTime,
	holdSecrets,
	NODE_DELAY_MS,
	SECRET_BUILDERS,
	SECRET_ENV,
	type Secrets,
	UNKNOWN,
} from "../../support/secretFixture.ts";

/** Calls before the first one that is measured. */
const WARM_UP = 100;
const NAMES = [
	"on /fullprivacy",
	"on /nochecks",
	"on /fullprivacy, failing",
	"private, in place of a shared one",
];

let fixture: BiddingFixture;
let secrets: Secrets;
let stranger: WsClient;
before(async () => {
	fixture = await startBidding({ builders: SECRET_BUILDERS, proxied: true, env: SECRET_ENV });
	await fixture.system.nextBlock();
	secrets = await holdSecrets(fixture, 0);
	const headers = { "X-Forwarded-For": "198.51.100.2" };
	stranger = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { headers });
	fixture.system.node?.setDelay(NODE_DELAY_MS);
});
after(async () => {
	stranger.terminate();
	await fixture.stop();
});

/** Ms that a call takes, which must fail with `message`. */
async function time(method: string, params: readonly unknown[], message: string): Promise<number> {
	const begun = performance.now();
	stranger.send({ jsonrpc: "2.0", id: 1, method, params });
	const { error } = await stranger.next();
	const took = performance.now() - begun;
	assert.equal(error?.message, message);
	return took;
}

async function assertAlike(ask: (hash: string) => Promise<number>): Promise<void> {
	for (let i = 0; i < WARM_UP; i++) await ask(UNKNOWN);
	for (const name of NAMES) await assertSameTime(name, secrets.hashes[name] ?? "", ask);
}

describe("how long a stranger waits for an answer", () => {
	it("to a bid: as long as for an unknown hash, and less than a bid that asks the node", async () => {
		const backruns = Array.from({ length: 40 }, (_, i) => backrunBy(i + 10, 7_000n).raw);
		const shared = await fixture.target(50);
		const begun = performance.now();
		await fixture.call("eth_sendBundle", [{ txs: [shared, backrunBy(51, 7_000n).raw] }]);
		assert.ok(performance.now() - begun > NODE_DELAY_MS);
		let asked = 0;
		await assertAlike((hash) => {
			asked += 1;
			const txs = [hash, backruns[asked % backruns.length]];
			return time("eth_sendBundle", [{ txs }], "target transaction not found");
		});
	});

	it("to a cancel: as long as for an unknown hash", () =>
		assertAlike((hash) =>
			time(
				"eth_cancelTransaction",
				[hash],
				"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key",
			),
		));

	it("to a read of a receipt: as long as for an unknown hash", () =>
		assertAlike((hash) =>
			time(
				"service_receipt",
				[hash],
				"transaction not found; if you sent it from another network or a web page, sign the read with the sender's key (X-Leeward-Signature, scope receipts)",
			),
		));
});
