// How a cancel reaches builders, on a relay with seven builders of all kinds: each one that was
// sent the transaction gets the cancel in its own form, its answer is shown in the events, and what
// a builder mines all the same is shown as mined.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { RecordedRequest } from "../../devnet/builderRecord.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import { GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";
import { type CancelFixture, NOT_PENDING, startCancels } from "../../support/userFixtures.ts";

/** The ways in which each builder takes a cancel of a bundle. */
const WAYS: Readonly<Record<string, readonly string[]>> = {
	dev: ["endpoint", "empty"],
	endpoint: ["endpoint"],
	empty: ["empty"],
	share: ["endpoint", "empty"],
	shareEmpty: ["empty"],
	none: [],
	troubled: ["endpoint"],
};
const NAMES = Object.keys(WAYS);
/** Those that confirm, as long as there is no trouble. */
const CONFIRMING = NAMES.filter((name) => name !== "none");

let fixture: CancelFixture;
before(async () => {
	fixture = await startCancels({
		proxied: true,
		env: { TRUST_PROXY: "1" },
		builders: [
			{ name: "dev", fullPrivacy: true },
			{ name: "endpoint", cancel: "endpoint" },
			{ name: "empty", cancel: "empty" },
			{ name: "share", dialect: "mev-share" },
			{ name: "shareEmpty", dialect: "mev-share", cancel: "empty" },
			{ name: "none", cancel: "none" },
			{ name: "troubled", cancel: "endpoint" },
		],
	});
});
after(() => fixture.system.stop());

/** `builder answer` of each cancel that was answered so far, in order of names. */
async function acks(tx: Signed): Promise<readonly string[]> {
	const events = (await fixture.events(tx)).filter(
		({ type, kind }) => type === "delivered" && kind === "cancel",
	);
	return events.map(({ builder, answer }) => `${builder} ${answer}`).sort();
}

/** Waits until so many cancels have been answered. */
function answered(tx: Signed, count: number): Promise<readonly string[]> {
	return until(`${count} answers to cancels of ${tx.hash}`, async () => {
		const list = await acks(tx);
		return list.length >= count && list;
	});
}

/** The events page's summary of how many builders confirmed. */
async function summary(tx: Signed): Promise<unknown> {
	const page = (await (await fetch(`${fixture.system.client.url}/tx/${tx.hash}/events`)).json()) as {
		cancels?: unknown;
	};
	return page.cancels;
}

function calls(requests: readonly RecordedRequest[]): readonly string[] {
	return requests.map(({ method, params }) => JSON.stringify([method, params])).sort();
}

describe("the cancels that builders get", () => {
	it("are in each builder's dialect, and their acknowledgements are shown: 6 of 7", async () => {
		const { tx } = await fixture.out();
		const block = `0x${((await fixture.head()) + 1).toString(16)}`;
		assert.equal(await fixture.cancel(tx), true);
		const expected = NAMES.flatMap((name) => (WAYS[name] ?? []).map(() => `${name} accepted`)).sort();
		assert.deepEqual(await answered(tx, expected.length), expected);
		for (const [name, ways] of Object.entries(WAYS)) {
			const builder = fixture.builder(name);
			const replacementUuid = fixture.deliveries(builder, tx)[0]?.uuid;
			assert.match(replacementUuid ?? "", /^[0-9a-f-]{36}$/);
			const forms: Readonly<Record<string, unknown>> = {
				endpoint: ["eth_cancelBundle", [{ replacementUuid }]],
				empty: ["eth_sendBundle", [{ txs: [], blockNumber: block, replacementUuid }]],
			};
			const wanted = ways.map((way) => JSON.stringify(forms[way])).sort();
			assert.deepEqual(calls(fixture.cancels(builder, tx)), wanted, name);
			if (name !== "none") assert.equal(fixture.liveOrders(builder, tx), 0, name);
		}
		const [event] = (await fixture.events(tx)).filter(({ type }) => type === "cancelled");
		assert.deepEqual([...((event?.builders as string[]) ?? [])].sort(), [...NAMES].sort());
		const { length } = CONFIRMING;
		const text = `${length} of 7 builders confirmed`;
		assert.deepEqual(await summary(tx), { builders: 7, confirmed: length, summary: text });
	});

	it("name the hash of a private transaction", async () => {
		const { tx } = await fixture.out("/nochecks");
		assert.equal(await fixture.cancel(tx), true);
		await answered(tx, CONFIRMING.length);
		const call = JSON.stringify(["eth_cancelPrivateTransaction", [{ txHash: tx.hash }]]);
		for (const name of NAMES) {
			const expected = name === "none" ? [] : [call];
			assert.deepEqual(calls(fixture.cancels(fixture.builder(name), tx)), expected, name);
		}
		assert.deepEqual(await acks(tx), CONFIRMING.map((name) => `${name} accepted`).sort());
	});

	it("go only to builders that received the transaction: what only one received stays unknown to the others", async () => {
		const { tx } = await fixture.out("/fullprivacy");
		const actor = await fixture.actor();
		const [hidden, behind] = [actor.sign(), actor.sign({ nonce: 1 })];
		await fixture.submit("/fullprivacy", hidden);
		await fixture.submit("/nochecks", behind);
		await fixture.waitUntilSent(behind, { builders: ["dev"] });
		for (const one of [behind, hidden, tx]) assert.equal(await fixture.cancel(one), true);
		for (const one of [behind, hidden, tx]) await answered(one, 1);
		await fixture.fence();
		for (const name of NAMES.filter((one) => one !== "dev")) {
			const text = JSON.stringify(fixture.builder(name).requests());
			for (const one of [tx, hidden, behind]) assert.ok(!text.includes(one.hash.slice(2)), name);
			for (const one of [tx, hidden]) assert.ok(!text.includes(one.raw), name);
		}
		assert.deepEqual(await summary(tx), { builders: 1, confirmed: 1, summary: "1 of 1 builders confirmed" });
	});
});

/** `from` submits it on `path`. */
async function submitFrom(tx: Signed, from: string, path: string): Promise<void> {
	const { url } = fixture.system.client;
	const headers = { "content-type": "application/json", "x-forwarded-for": from };
	const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [tx.raw] });
	const answer = (await (await fetch(url + path, { method: "POST", headers, body })).json()) as WireAnswer;
	assert.equal(answer.result, tx.hash);
}

describe("a builder that submits what it has received", () => {
	it("takes it from no other builder, on any path; its first owner may", async () => {
		const [owner, builder] = ["198.51.100.1", "203.0.113.7"];
		const tx = (await fixture.actor()).sign();
		await submitFrom(tx, owner, "/fast");
		await fixture.waitUntilSent(tx, { builders: NAMES });
		for (const path of ["/fullprivacy", "/noreverts", "/nochecks", "/fullprivacy?builder=dev"])
			await submitFrom(tx, builder, path);
		await fixture.passBlock();
		await fixture.waitUntilSent(tx, { builders: NAMES });
		await fixture.fence();
		assert.deepEqual(await acks(tx), []);
		for (const name of NAMES) assert.equal(fixture.cancels(fixture.builder(name), tx).length, 0, name);
		await submitFrom(tx, owner, "/fullprivacy");
		await fixture.withdrawn(
			tx,
			CONFIRMING.filter((name) => name !== "dev"),
		);
		await fixture.waitUntilSent(tx, { builders: ["dev"] });
	});
});

describe("a builder in trouble", () => {
	for (const [fault, answer] of [
		[{ reject: true }, "rejected"],
		[{ down: true }, "failed"],
		[{ httpError: true }, "failed"],
		[{ hang: true }, "timeout"],
	] as const) {
		it(`that ${JSON.stringify(fault)} delays nobody: 5 of 7 builders confirmed`, async () => {
			const { tx } = await fixture.out();
			const troubled = fixture.builder("troubled");
			troubled.setFaults(fault);
			try {
				assert.equal(await fixture.cancel(tx), true);
				const early = (await acks(tx)).filter((one) => one.startsWith("troubled "));
				if (answer === "timeout") assert.deepEqual(early, [], "the answer waited for the builder");
				await fixture.assertCancelled(tx);
				const all = await answered(tx, Object.values(WAYS).flat().length);
				assert.deepEqual(
					all.filter((one) => !one.endsWith(" accepted")),
					[`troubled ${answer}`],
				);
				const text = "5 of 7 builders confirmed";
				assert.deepEqual(await summary(tx), { builders: 7, confirmed: 5, summary: text });
			} finally {
				troubled.setFaults({});
			}
		});
	}
});

describe("a cancelled transaction that is mined nevertheless", () => {
	it("is INCLUDED, its nonce used; after a reorganisation it is CANCELLED again, and never sent again", async () => {
		const { actor, tx } = await fixture.out();
		fixture.builder("dev").setFaults({ reject: true });
		assert.equal(await fixture.cancel(tx), true);
		await answered(tx, Object.values(WAYS).flat().length);
		fixture.builder("dev").setFaults({});
		const behind = actor.sign({ nonce: 1 });
		await fixture.submit("/fast", behind);
		await fixture.reaches(behind, "QUEUED");
		const block = await fixture.system.nextBlock();
		const { status } = await fixture.reaches(tx, "INCLUDED");
		assert.equal(status, "INCLUDED");
		assert.equal((await fixture.receipt(tx))?.block, block);
		assert.equal((await fixture.byHash(tx))?.blockNumber, `0x${block.toString(16)}`);
		assert.equal(await fixture.cancel(tx), NOT_PENDING);
		await fixture.waitUntilSent(behind);
		assert.equal(await fixture.pendingNonce(actor), 2);
		const sent = fixture.timesSent(tx);

		const release = fixture.system.node?.hold();
		await fixture.system.chain.rpc("anvil_reorg", [1, []]).finally(release);
		await fixture.reaches(tx, "CANCELLED");
		await fixture.assertCancelled(tx);
		await fixture.reaches(behind, "QUEUED");
		assert.equal(await fixture.pendingNonce(actor), 0);
		assert.equal(await fixture.cancel(tx), true);
		assert.equal(await fixture.system.client.send(tx.raw), tx.hash);
		await fixture.fence();
		assert.deepEqual(fixture.timesSent(tx), sent);
		const fresh = actor.sign({ value: 4n, maxFeePerGas: 15n * GWEI });
		await fixture.submit("/fast", fresh);
		await fixture.waitUntilSent(fresh);
		await fixture.reaches(behind, "BROADCAST");
		await fixture.fence();
		await fixture.system.nextBlock();
		for (const one of [fresh, behind]) await fixture.reaches(one, "INCLUDED");
		await fixture.assertCancelled(tx);
		const types = (await fixture.life(tx)).map((event) => event.split(" ")[0]);
		assert.deepEqual(types.slice(-4), ["cancelled", "included", "reorged", "exposed"]);
	});
});
