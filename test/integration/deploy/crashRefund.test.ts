// SIGKILL after a backrun was sent to the builder and before its block: the restarted relay finds
// the refund in the block and reports it to the user, by the bundle that is on disk, or by the
// block alone where it died before that.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { formatEther } from "ethers";
import { AuctionFixture, bundleOf } from "../../support/bidder.ts";
import { prepareBidding } from "../../support/biddingFixture.ts";
import { peek } from "../../support/engine.ts";
import { sized } from "../../support/length.ts";
import { startNodeProxy } from "../../support/nodes.ts";
import type { RelayProcess } from "../../support/processes.ts";
import { headOf, type ProcessSystem, startProcessSystem, type TestSystem } from "../../support/systems.ts";
import { until } from "../../support/until.ts";

const PERCENT = 50n;
const REFUND_GAS = 21_000;
const BID = 12_345_678_901_234_567n;
/** So late is what must not be answered before a relay is killed. */
const SLOW_MS = 20_000;

let system: ProcessSystem;
let env: { readonly DATA_DIR: string };
/** The one that runs; each test goes on with the one before. */
let relay: RelayProcess;
before(async () => {
	system = await startProcessSystem({
		builders: [{ name: "dev", refundGas: REFUND_GAS }],
		builder: { refundGas: BigInt(REFUND_GAS) },
		env: { REFUND_PERCENT: String(PERCENT), TRUST_PROXY: "1" },
	});
	await prepareBidding(system);
	env = { DATA_DIR: join(system.folder, "relay") };
	relay = await system.start(env);
});
after(() => system.stop());

/** When the block is built, and whether the bundle is on disk before the kill. */
type Case = readonly ["while no relay runs" | "behind the restart", boolean];
const SHORT: readonly Case[] = [
	["while no relay runs", true],
	["behind the restart", false],
];
const CASES = sized(SHORT, [...SHORT, ["behind the restart", true], ["while no relay runs", false]]);
for (const [i, [when, isWritten]] of CASES.entries()) {
	const name = `killed with a backrun at the builder${isWritten ? "" : " that is not on disk yet"}`;
	test(`${name}, with the block ${when}: the refund is reported as it was paid`, async () => {
		const recipient = `0x${(0xfee1_0000 + i).toString(16).padStart(40, "0")}`;
		const fixture = fixtureOf(relay);
		// Accounts of its own.
		for (let used = 0; used < i * 10; used += 1) await fixture.actor(0n);
		const target = await fixture.target(`/fast?refundRecipient=${recipient}`);
		const bidder = await fixture.bidder();
		const backrun = bidder.backrun(BID);
		const arrival = system.delivered([backrun.raw]);
		await bidder.bid(target, backrun);
		await arrival;
		if (isWritten) await written(target.hash, backrun.hash);
		await relay.kill();
		// On a busy machine it may be on disk all the same: then its bids are counted.
		const bids = (await isWrittenIn(target.hash, backrun.hash)) ? 1 : 0;
		assert.ok(bids === 1 || !isWritten);

		const built = when === "while no relay runs" ? await system.builder.buildBlock() : null;
		relay = await system.start(env);
		const { number } = built ?? (await system.builder.buildBlock());
		await until(`block ${number}`, async () => (await headOf(relay.client)) >= number);
		const block = await fixture.block(number);
		const [first, second, third] = block.transactions;
		assert.deepEqual([first?.hash, second?.hash, third?.to], [target.hash, backrun.hash, recipient]);
		const paid = await fixture.balance(recipient);
		const brought = await fixture.brought(backrun, BID);
		const cost = BigInt(REFUND_GAS) * block.baseFee;
		assert.equal(paid, (brought * PERCENT) / 100n - cost);

		const after = fixtureOf(relay);
		const { at: _, ...told } = await after.event(target, "refunded");
		assert.deepEqual(told, {
			...{ type: "refunded", block: number, bundle: bundleOf(target, backrun), backrun: backrun.hash },
			...{ bid: String(BID), brought: String(brought), cost: String(cost) },
			...{ owed: String(paid), paid: String(paid), payer: block.coinbase, recipient },
		});
		const status = await after.reaches(target, "INCLUDED");
		assert.deepEqual(
			[status.refund, status.refundRecipient, status.backruns],
			// How many bids there were is not in the block.
			[Number(formatEther(paid)), recipient, bids],
		);
	});
}

test("killed before the bundle is on disk, and its successor before it has read the refund: the third one reports it", async (t) => {
	const node = await startNodeProxy(system.chain.url);
	t.after(() => node.stop());
	const fixture = fixtureOf(relay);
	for (let used = 0; used < CASES.length * 10; used += 1) await fixture.actor(0n);
	const target = await fixture.target();
	const bidder = await fixture.bidder();
	const backrun = bidder.backrun(BID);
	const arrival = system.delivered([backrun.raw]);
	await bidder.bid(target, backrun);
	await arrival;
	await relay.kill();
	await system.builder.buildBlock();
	node.setDelay(SLOW_MS, ["debug_traceTransaction"]);
	relay = await system.start({ ...env, ETH_RPC_URL: node.url });
	await written(target.hash, '"included"');
	await relay.kill();
	relay = await system.start(env);
	const refunded = await fixtureOf(relay).event(target, "refunded");
	assert.equal(refunded.backrun, backrun.hash);
	assert.ok(refunded.paid !== "0" && refunded.paid === refunded.owed);
});

/**
 * Waits until the record of `target` on disk has `text` in it, which must not wait for the next
 * block: none comes.
 */
async function written(target: string, text: string): Promise<void> {
	await until(`${text} on disk`, () => isWrittenIn(target, text));
}

async function isWrittenIn(target: string, text: string): Promise<boolean> {
	const record = await peek(env, "relay", { prefix: "r/", end: target });
	return record?.toString().includes(text) === true;
}

function fixtureOf({ client }: RelayProcess): AuctionFixture {
	// The fixture uses no more of a relay than its client.
	return new AuctionFixture({ ...system, client } as unknown as TestSystem);
}
