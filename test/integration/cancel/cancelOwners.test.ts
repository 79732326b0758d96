// Who may cancel by hash, on a whole relay behind one proxy: the address that submitted it, and the sender by a signature.
// What everybody else is answered, and that nothing comes of it, is in cancelOracle.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { CallOptions } from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import type { TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";
import {
	type CancelFixture,
	cancelBy,
	NEVER_SEEN,
	NOT_PENDING,
	startCancels,
} from "../../support/userFixtures.ts";

const HERE: CallOptions = { from: "198.51.100.1" };
const THERE: CallOptions = { from: "198.51.100.2" };
const STRANGER_KEY = `0x${"b2".repeat(32)}`;
const PAGE = "https://app.example";
/** How many blocks behind its end it is forgotten who submitted a transaction. */
const WATCH_BLOCKS = 64;

let fixture: CancelFixture;
before(async () => {
	fixture = await startCancels({ env: { TRUST_PROXY: "1" } });
});
after(() => fixture.system.stop());

/** Submitted by `who`. */
async function submitBy(tx: Signed, who: CallOptions = HERE, path = "/fast"): Promise<void> {
	const response = await fetch(`${fixture.system.client.url}${path}`, {
		method: "POST",
		headers: { "content-type": "application/json", "x-forwarded-for": who.from ?? "" },
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [tx.raw] }),
	});
	assert.equal(((await response.json()) as { result: string }).result, tx.hash);
}

async function held(
	path = "/fast",
	options: Omit<TxOptions, "by"> = {},
): Promise<{ readonly actor: Actor; readonly tx: Signed }> {
	const actor = await fixture.actor();
	const tx = actor.sign(options);
	await submitBy(tx, HERE, path);
	return { actor, tx };
}

const own = (actor: Actor): CallOptions => ({ key: actor.account.keyHex });

describe("one who may", () => {
	const MAY: readonly (readonly [string, (actor: Actor) => CallOptions])[] = [
		["the address that submitted it", () => HERE],
		["that address written otherwise", () => ({ from: "::ffff:198.51.100.1" })],
		[
			"an extension at that address",
			() => ({ ...HERE, origin: "chrome-extension://nkbihfbeogaeaoehlefnkodb" }),
		],
		["another extension there", () => ({ ...HERE, origin: "moz-extension://0" })],
		["the sender's signature from elsewhere", (actor) => ({ ...THERE, ...own(actor) })],
		["the sender's signature in a web page", (actor) => ({ ...THERE, ...own(actor), origin: PAGE })],
		["the sender's signature in a sandboxed frame", (actor) => ({ ...THERE, ...own(actor), origin: "null" })],
		["another's signature from the address that submitted it", () => ({ ...HERE, key: STRANGER_KEY })],
	];
	for (const [name, who] of MAY) {
		it(`${name}: true, and true again`, async () => {
			const { actor, tx } = await held();
			assert.equal(await fixture.cancel(tx, who(actor)), true);
			assert.equal(await fixture.cancel(tx, who(actor)), true);
			await fixture.assertCancelled(tx);
		});
	}

	it("that address by a websocket", async () => {
		const { tx } = await held();
		const headers = { "x-forwarded-for": HERE.from ?? "" };
		const client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { headers });
		client.send({ id: 1, method: "eth_cancelTransaction", params: [tx.hash] });
		assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: true });
		client.terminate();
		await fixture.assertCancelled(tx);
	});
});

describe("whose it is", () => {
	it("is whose first submission it was: who sends the same bytes again gains nothing", async () => {
		const { actor, tx } = await held();
		await submitBy(tx, THERE);
		assert.equal(await fixture.cancel(tx, THERE), NOT_PENDING);
		assert.equal(await fixture.cancel(tx, HERE), true);
		await submitBy(tx, THERE);
		assert.equal(await fixture.cancel(tx, THERE), NOT_PENDING);
		assert.equal(await fixture.cancel(tx, own(actor)), true);
	});

	it("is known after a restart; once it is settled the sender's signature alone counts", async () => {
		const { actor, tx } = await held();
		const { actor: other, tx: pending } = await held();
		assert.equal(await fixture.cancel(tx, HERE), true);
		await fixture.system.restart();
		assert.equal(await fixture.cancel(tx, THERE), NOT_PENDING);
		assert.equal(await fixture.cancel(tx, HERE), true);
		assert.equal(await fixture.cancel(pending, THERE), NOT_PENDING);
		assert.equal(await fixture.cancel(pending, { ...THERE, ...own(other) }), true);
		const { chain } = fixture.system;
		await chain.rpc("anvil_mine", [`0x${WATCH_BLOCKS.toString(16)}`, `0x${chain.slotSeconds.toString(16)}`]);
		await fixture.passBlock();
		await until("it is settled", async () => (await fixture.cancel(tx, HERE)) === NOT_PENDING);
		assert.equal(await fixture.cancel(tx, { ...THERE, ...own(actor) }), true);
		assert.equal(await fixture.cancel(tx, { ...HERE, key: STRANGER_KEY }), NOT_PENDING);
		await fixture.assertCancelled(tx);
	});
});

describe("with CANCEL_POLICY=open", () => {
	it("anybody may, a page too, what is pending; the rest is refused all the same", async () => {
		const open = await startCancels({ env: { TRUST_PROXY: "1", CANCEL_POLICY: "open" } });
		try {
			const { system } = open;
			for (const who of [THERE, { ...HERE, origin: PAGE }, { ...THERE, key: STRANGER_KEY }]) {
				const { tx } = await open.out("/fullprivacy");
				assert.equal(await cancelBy(system, tx, who), true);
				assert.equal(await cancelBy(system, tx, THERE), true);
				await open.withdrawn(tx);
			}
			const { tx } = await open.out();
			await system.nextBlock();
			await open.reaches(tx, "INCLUDED");
			for (const one of [tx, { hash: NEVER_SEEN }]) {
				assert.equal(await cancelBy(system, one, HERE), NOT_PENDING);
			}
		} finally {
			await open.system.stop();
		}
	});
});
