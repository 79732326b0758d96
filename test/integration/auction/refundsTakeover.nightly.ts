// The core of two relays is killed: the other one returns the same refunds, totals and receipts.
// The short forms are in refunds.test.ts and receipts.test.ts, where a relay that starts again on
// the same store returns them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { WATCH_BLOCKS } from "../../../relay/domain/transaction.ts";
import { freePort } from "../../devnet/freePort.ts";
import { AuctionFixture } from "../../support/bidder.ts";
import { prepareBidding } from "../../support/biddingFixture.ts";
import { startPostgres } from "../../support/postgresServer.ts";
import { readyStatus } from "../../support/processes.ts";
import { receiptOf } from "../../support/receipts.ts";
import { askRefunds, askTotals, type Refunds } from "../../support/refunds.ts";
import { RelayClient } from "../../support/relayClient.ts";
import { seesHead, startProcessSystem, type TestSystem } from "../../support/systems.ts";
import { testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

test("the next core returns the same refunds and totals, those that are final and those that are not", async (t) => {
	const system = await startProcessSystem({ env: { TRUST_PROXY: "1" } });
	t.after(() => system.stop());
	await prepareBidding(system);
	const postgres = await startPostgres();
	t.after(() => postgres.stop());
	const database = await postgres.newDatabase();
	const start = async () => {
		const port = await freePort();
		const base = `http://127.0.0.1:${port}`;
		const env = { PORT: String(port), INTERNAL_URL: base, DATABASE_URL: database };
		const relay = system.launch(env);
		await until("it is ready", async () => (await readyStatus(base)) === 200);
		return { base, relay, client: new RelayClient(base) };
	};
	const core = await start();
	const edge = await start();
	// The fixture uses no more of a relay than its client.
	const auction = new AuctionFixture({
		...system,
		client: edge.client,
		seesHead: (number: number) => seesHead(core.client, number),
	} as unknown as TestSystem);
	const recipient = testAccount(7_201);
	const mine = async () => {
		const target = await auction.target(`/fast?refundRecipient=${recipient.address}`);
		await auction.offerOut(target, 10n ** 16n);
		await system.builder.buildBlock();
		await auction.event(target, "refunded");
		return target;
	};
	await mine();
	for (let left = WATCH_BLOCKS; left > 0; left -= 1) await auction.passBlock();
	const last = await mine();
	const receipt = await receiptOf(edge.base, last, last.user.account);
	const [refunds, sums] = [await askRefunds(edge.base, recipient), await askTotals(edge.base)];
	const told = (await refunds.json()) as Refunds;
	assert.equal(told.refunds.length, 2);
	assert.equal(String(await auction.balance(recipient.address)), told.paid);
	assert.deepEqual([sums.transactions, sums.refundedWei], [2, told.paid]);
	await core.relay.kill();
	await until("the edge is the core", async () => {
		const info = (await (await fetch(`${edge.base}/info`)).json()) as { role: string };
		return info.role === "core";
	});
	// Everything of its last block that the killed core had not written is read from the chain again.
	const again = async () => [
		await (await askRefunds(edge.base, recipient)).json(),
		await askTotals(edge.base),
		await receiptOf(edge.base, last, last.user.account),
	];
	await until("all is there again", async () => isDeepStrictEqual(await again(), [told, sums, receipt]));
});
