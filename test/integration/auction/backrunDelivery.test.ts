// What the fan-out hands over, in front of a builder that really builds: a target alone and the same target with a
// backrun and a refund, and what the block then holds.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { BuilderInput } from "../../../relay/domain/builder.ts";
import { word } from "../../support/auctionContracts.ts";
import {
	BID,
	contractAddress,
	type DeliveryFixture,
	PERCENT,
	startDeliveryFixture,
} from "../../support/deliveryFixture.ts";

let fixture: DeliveryFixture;
before(async () => {
	fixture = await startDeliveryFixture();
});
after(() => fixture.close());

/** Ways in which the one builder may be spoken to. */
const ROWS: Readonly<Record<string, Partial<BuilderInput>>> = {
	"the common dialect": {},
	"a builder that knows dropping": { dropping: true },
	"mev-share": { dialect: "mev-share" },
};

/** Backruns that pass in one block and not in another of the same state. */
const FAILING = {
	coinbase: async () => ({ name: "REVERTS_IF_COINBASE", data: word(fixture.net.builder.coinbase) }) as const,
	timestamp: async () =>
		({ name: "REVERTS_AFTER_TIME", data: word((await fixture.headTime()) + 1n) }) as const,
};

for (const [what, row] of Object.entries(ROWS)) {
	test(`target, backrun and refund stand in the block in that order, by ${what}`, async () => {
		const delivery = fixture.delivery(row);
		const [one, recipient] = [await fixture.target(), fixture.newRecipient()];
		const behind = await fixture.backrun("PAYS_AND_EMITS");
		await delivery.send(one);
		delivery.sendBundle(await fixture.bidOn(one, behind, recipient));
		assert.deepEqual([...(await delivery.settled())].sort(), ["backrun accepted", "bundle accepted"]);
		const uuids = fixture.net.builder.bundles().slice(-2);
		assert.equal(new Set(uuids.map(({ uuid }) => uuid)).size, 2, "neither takes the other's place");
		const block = await fixture.net.build();
		const value = await fixture.refundIn(block, [one.tx.hash, behind.hash], recipient);
		assert.equal(value, await fixture.owed(delivery, block, behind.hash));
		assert.equal(await fixture.net.balance(recipient), value);
		assert.deepEqual(
			await fixture.net.statuses(block),
			Object.fromEntries(block.transactions.map((h) => [h, true])),
		);
	});

	for (const [why, path] of [
		["coinbase", "fast"],
		["coinbase", "noreverts"],
		["timestamp", "fast"],
	] as const) {
		test(`a backrun that fails by the block's ${why} leaves /${path} its block, by ${what}`, async () => {
			const delivery = fixture.delivery(row);
			const [one, recipient] = [await fixture.target({}, path), fixture.newRecipient()];
			const { name, data } = await FAILING[why]();
			const behind = await fixture.backrun(name, { data });
			// It is not broken as such: only in the block that this builder makes.
			assert.equal(await fixture.passesElsewhere(behind), true);
			await delivery.send(one);
			delivery.sendBundle(await fixture.bidOn(one, behind, recipient));
			await delivery.settled();
			const block = await fixture.net.build();
			assert.deepEqual(block.transactions, [one.tx.hash]);
			assert.equal(await fixture.net.balance(recipient), 0n);
			assert.deepEqual(await fixture.net.statuses(block), { [one.tx.hash]: true });
		});
	}

	test(`a bid that is out is replaced by the next, dearer or not, by ${what}`, async () => {
		const delivery = fixture.delivery(row);
		const [one, recipient] = [await fixture.target(), fixture.newRecipient()];
		const first = await fixture.backrun("PAYS_COINBASE", { value: 5n * BID });
		const second = await fixture.backrun("PAYS_COINBASE", { value: BID });
		await delivery.send(one);
		delivery.sendBundle(await fixture.bidOn(one, first, recipient));
		await delivery.settled();
		delivery.sendBundle(await fixture.bidOn(one, second, recipient));
		await delivery.settled();
		const block = await fixture.net.build();
		const value = await fixture.refundIn(block, [one.tx.hash, second.hash], recipient);
		assert.equal(value, await fixture.owed(delivery, block, second.hash));
	});
}

for (const cancel of ["endpoint", "empty", "both"] as const) {
	test(`a bid that is cancelled by ${cancel} leaves its target, which is out by itself`, async () => {
		const delivery = fixture.delivery({ cancel });
		const one = await fixture.target();
		const bundle = await fixture.bidOn(one, await fixture.backrun("PAYS_COINBASE"), fixture.newRecipient());
		await delivery.send(one);
		delivery.sendBundle(bundle);
		await delivery.settled();
		delivery.fanout.cancelBundle(bundle.name, bundle.block, ["dev"], () => {});
		const answers = await delivery.settled();
		assert.ok(answers.includes("cancel accepted") && answers.every((line) => line.endsWith("accepted")));
		assert.deepEqual((await fixture.net.build()).transactions, [one.tx.hash]);
	});
}

test("a target that is cancelled does not take its bundle with it", async () => {
	const delivery = fixture.delivery({});
	const [one, recipient] = [await fixture.target(), fixture.newRecipient()];
	const behind = await fixture.backrun("PAYS_COINBASE");
	const bundle = await fixture.bidOn(one, behind, recipient);
	await delivery.send(one);
	delivery.sendBundle(bundle);
	await delivery.settled();
	delivery.fanout.cancel(one, ["dev"], bundle.block);
	await delivery.settled();
	// Whoever ends a target ends its bundle as well: each has an identifier of its own.
	await fixture.refundIn(await fixture.net.build(), [one.tx.hash, behind.hash], recipient);
});

test("the sender of the target is paid where nobody else is named, to the wei", async () => {
	const delivery = fixture.delivery({});
	const one = await fixture.target();
	const behind = await fixture.backrun("PAYS_COINBASE");
	const before = await fixture.net.balance(one.tx.from);
	await delivery.send(one);
	delivery.sendBundle(await fixture.bidOn(one, behind, one.tx.from));
	await delivery.settled();
	const block = await fixture.net.build();
	const value = await fixture.owed(delivery, block, behind.hash);
	const { fee } = await fixture.receipt(one.tx.hash);
	assert.equal(await fixture.net.balance(one.tx.from), before - fee - 1n + value);
});

test("a builder's own percent is what is asked of it", async () => {
	const delivery = fixture.delivery({ maxRefundPercent: 40 });
	const [one, recipient] = [await fixture.target(), fixture.newRecipient()];
	const behind = await fixture.backrun("PAYS_COINBASE");
	await delivery.send(one);
	delivery.sendBundle(await fixture.bidOn(one, behind, recipient));
	await delivery.settled();
	const block = await fixture.net.build();
	const value = await fixture.refundIn(block, [one.tx.hash, behind.hash], recipient);
	assert.equal(delivery.fanout.terms("dev", PERCENT)?.percent, 40);
	assert.equal(value, await fixture.owed(delivery, block, behind.hash));
});

test("a backrun that depends on its target passes behind it alone", async () => {
	const delivery = fixture.delivery({});
	const gate = { to: contractAddress("PAYS_IF_OPEN"), data: word(1) };
	const [one, recipient] = [await fixture.target(gate), fixture.newRecipient()];
	const behind = await fixture.backrun("PAYS_IF_OPEN");
	assert.equal(await fixture.passesElsewhere(behind), false);
	await delivery.send(one);
	delivery.sendBundle(await fixture.bidOn(one, behind, recipient));
	await delivery.settled();
	assert.ok((await fixture.refundIn(await fixture.net.build(), [one.tx.hash, behind.hash], recipient)) > 0n);
});
