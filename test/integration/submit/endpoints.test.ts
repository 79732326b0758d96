// Tests each row of the table of submission endpoints before builders of three kinds: what each builder's own record
// says it was sent, when and how.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Delivery, RelayFixture, type Signed } from "../../support/relayFixture.ts";
import { startSystem, type TestSystem } from "../../support/startSystem.ts";
import { accountOf } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

const SIGNING_KEY = `0x${"5e".repeat(32)}`;
const ALL = ["vault", "plain", "share"];
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const LIFE_BLOCKS = 25;

let system: TestSystem;
let fixture: RelayFixture;

before(async () => {
	system = await startSystem({
		builders: [
			{ name: "vault", fullPrivacy: true },
			{ name: "plain", privateMethod: "eth_sendPrivateTransaction" },
			{ name: "share", dialect: "mev-share", privateMethod: "eth_sendRawTransaction" },
		],
		env: { SIGNING_KEY },
	});
	fixture = new RelayFixture(system);
});
after(() => system.stop());

/** The param of a delivery of `tx` to a builder of the name, as the interface and the decisions want it. */
function expectedParam(builder: string, tx: Signed, block: number, mayRevert: boolean, uuid: string | null) {
	const number = `0x${block.toString(16)}`;
	if (builder === "share") {
		return {
			version: "v0.1",
			inclusion: { block: number, maxBlock: number },
			body: [{ tx: tx.raw, canRevert: mayRevert }],
			validity: { refund: [], refundConfig: [] },
			privacy: { hints: [] },
			replacementUuid: uuid,
		};
	}
	const revertingTxHashes = mayRevert ? [tx.hash] : [];
	return { txs: [tx.raw], blockNumber: number, revertingTxHashes, replacementUuid: uuid };
}

/** A transaction of another account that has reached every builder: whatever was to be sent before it is there too. */
async function fence(): Promise<void> {
	const tx = (await fixture.actor()).sign();
	await fixture.submit("/fast", tx);
	await fixture.sent(tx);
}

function paramsOf(deliveries: readonly Delivery[]): readonly unknown[] {
	return deliveries.map(({ request }) => request.params);
}

const BUNDLE_ROWS = [
	{ path: "/", mayRevert: true, again: false, builders: ALL, fastMode: true },
	{ path: "/fast", mayRevert: true, again: false, builders: ALL, fastMode: true },
	{ path: "/noreverts", mayRevert: false, again: true, builders: ALL, fastMode: false },
	{ path: "/fullprivacy", mayRevert: false, again: true, builders: ["vault"], fastMode: false },
	{ path: "/maxbackruns", mayRevert: true, again: false, builders: ALL, fastMode: false },
] as const;

describe("paths that send bundles", () => {
	for (const { path, mayRevert, again, builders, fastMode } of BUNDLE_ROWS) {
		it(`${path}: to ${builders.join(", ")}, on arrival and again for each block, until it is mined`, async () => {
			const tx = (await fixture.actor()).sign();
			const first = (await fixture.head()) + 1;
			await fixture.submit(path, tx);
			await fixture.sent(tx, { builders });
			for (let i = 0; i < 2; i += 1) {
				await fixture.passBlock();
				await fixture.sent(tx, { builders });
			}
			const pending = await fixture.status(tx);
			assert.deepEqual([pending.status, pending.stage, pending.fastMode], ["UNKNOWN", "BROADCAST", fastMode]);
			await system.nextBlock();
			assert.deepEqual(await fixture.receipt(tx).then((found) => found?.ok), true);
			await fence();
			for (const name of builders) {
				const deliveries = fixture.deliveries(fixture.builder(name), tx);
				const uuid = deliveries[0]?.uuid ?? null;
				assert.match(String(uuid), UUID_V4);
				const method = name === "share" ? "mev_sendBundle" : "eth_sendBundle";
				assert.deepEqual(
					deliveries.map((one) => one.method),
					[method, method, method],
				);
				const expected = [0, 1, 2].map((i) => [expectedParam(name, tx, first + i, mayRevert, uuid)]);
				assert.deepEqual(paramsOf(deliveries), expected);
			}
			for (const name of ALL.filter((one) => !builders.some((known) => known === one))) {
				assert.deepEqual(fixture.deliveries(fixture.builder(name), tx), [], `${name} has it`);
			}
			const record = await fixture.reaches(tx, "INCLUDED");
			assert.deepEqual([record.status, record.fastMode], ["INCLUDED", fastMode]);
			const simulated = (block: number) => (again ? [`simulated ${block}`] : []);
			assert.deepEqual(await fixture.life(tx), [
				`received ${first - 1}`,
				...(path === "/maxbackruns" ? ["shared"] : []),
				`ready ${first}`,
				`simulated ${first}`,
				`broadcast ${first}`,
				...[first + 1, first + 2].flatMap((block) => [...simulated(block), `broadcast ${block}`]),
				`included ${first + 2}`,
			]);
		});
	}
});

describe("/nochecks", () => {
	it("goes as a private transaction by each builder's own method, again for each block, until it is mined", async () => {
		const tx = (await fixture.actor()).sign();
		const first = (await fixture.head()) + 1;
		await fixture.submit("/nochecks", tx);
		await fixture.sent(tx);
		await fixture.passBlock();
		for (const builder of system.builders) {
			await until("sent again", () => fixture.deliveries(builder, tx).length === 2);
		}
		await system.nextBlock();
		await fixture.reaches(tx, "INCLUDED");
		await fence();
		const lastBlock = `0x${(first + LIFE_BLOCKS - 1).toString(16)}`;
		const expected = [
			["vault", "eth_sendPrivateRawTransaction", [tx.raw]],
			["plain", "eth_sendPrivateTransaction", [{ tx: tx.raw, maxBlockNumber: lastBlock }]],
			["share", "eth_sendRawTransaction", [tx.raw]],
		] as const;
		for (const [name, method, params] of expected) {
			const sent = fixture.deliveries(fixture.builder(name), tx).map(({ request }) => request);
			assert.deepEqual(
				sent.map((request) => [request.method, request.params]),
				[
					[method, params],
					[method, params],
				],
			);
		}
	});
});

describe("what is common to all paths", () => {
	it("the same bytes on another path answer the hash, and are treated as they were the first time", async () => {
		const tx = (await fixture.actor()).sign();
		const first = (await fixture.head()) + 1;
		await fixture.submit("/fullprivacy", tx);
		await fixture.sent(tx, { builders: ["vault"] });
		for (const path of ["/nochecks", "/fast", "/fullprivacy"]) await fixture.submit(path, tx);
		await fixture.passBlock();
		await fixture.sent(tx, { builders: ["vault"] });
		await fence();
		for (const name of ["plain", "share"]) {
			assert.deepEqual(fixture.deliveries(fixture.builder(name), tx), []);
		}
		assert.deepEqual(fixture.blocks(fixture.builder("vault"), tx), [first, first + 1]);
		await system.nextBlock();
		assert.equal((await fixture.reaches(tx, "INCLUDED")).fastMode, false);
		await fixture.submit("/nochecks", tx);
	});

	it("every request is signed by the relay's key over its body, and taken by the builder", async () => {
		await fence();
		const { address } = accountOf(SIGNING_KEY);
		for (const builder of system.builders) {
			const requests = builder.requests();
			assert.ok(requests.length > 0);
			for (const { signer, headers, answer } of requests) {
				assert.equal(signer?.toLowerCase(), address);
				assert.equal(
					String(headers["x-flashbots-signature"]).toLowerCase().startsWith(`${address}:0x`),
					true,
				);
				assert.ok(answer !== null && "result" in answer, "a builder has refused it");
			}
		}
	});
});

describe("query parameters", () => {
	it("refundRecipient and referrer are in the record once it is not UNKNOWN", async () => {
		const tx = (await fixture.actor()).sign();
		const recipient = `0x${"Ab".repeat(20)}`;
		await fixture.submit(`/fast?referrer=a%20wallet%26co&refundRecipient=${recipient}&unknown=1`, tx);
		await fixture.sent(tx);
		const pending = await fixture.status(tx);
		assert.deepEqual([pending.referrer, pending.refundRecipient, pending.rpc_timestamp], [null, null, null]);
		await system.nextBlock();
		const record = await fixture.reaches(tx, "INCLUDED");
		assert.deepEqual([record.referrer, record.refundRecipient], ["a wallet&co", recipient.toLowerCase()]);
	});

	it("both spellings are taken on the paths where they count, and a bad value is refused and nothing kept", async () => {
		for (const query of ["softCancellations=true", "softcancel=1"]) {
			const tx = (await fixture.actor()).sign();
			await fixture.submit(`/noreverts?${query}`, tx);
			await fixture.sent(tx);
		}
		const tx = (await fixture.actor()).sign();
		for (const query of ["softCancellations=yes", "refundRecipient=0x12", `referrer=${"x".repeat(65)}`]) {
			const { error } = await system.client.ask("eth_sendRawTransaction", [tx.raw], `/noreverts?${query}`);
			assert.equal(error?.code, -32602, query);
		}
		assert.equal((await fixture.status(tx)).stage, undefined);
	});
});
