// Who may cancel by hash, on a whole relay behind one proxy: hashes are public on the searchers' feed, so the hash
// alone must give nobody any power, nor any knowledge: every refusal is the same, byte for byte.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { CallOptions } from "../../support/biddingFixture.ts";
import {
	type CancelFixture,
	cancelBy,
	NEVER_SEEN,
	NOT_PENDING,
	startCancels,
} from "../../support/cancelFixture.ts";
import { RawConnection, requestText } from "../../support/rawHttp.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { EMITS, REVERTS } from "../../support/simulationContracts.ts";
import type { TxOptions } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";
import { WsClient } from "../../support/wsClient.ts";

const HERE: CallOptions = { from: "198.51.100.1" };
const THERE: CallOptions = { from: "198.51.100.2" };
const STRANGER_KEY = `0x${"b2".repeat(32)}`;
const PAGE = "https://app.example";
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
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

describe("a stranger", () => {
	const STRANGERS: readonly (readonly [string, CallOptions])[] = [
		["another address", THERE],
		["another address with a key", { ...THERE, key: STRANGER_KEY }],
		["a web page in the browser of who submitted it", { ...HERE, origin: PAGE }],
		["a page without encryption there", { ...HERE, origin: "http://app.example" }],
		["a page in a sandboxed frame there", { ...HERE, origin: "null" }],
		["a page there with a key of its own", { ...HERE, origin: PAGE, key: STRANGER_KEY }],
	];
	for (const [name, who] of STRANGERS) {
		it(`${name}: refused, and nothing happens, before the end and behind it`, async () => {
			const { actor, tx } = await held();
			await fixture.sent(tx);
			const life = await fixture.life(tx);
			assert.equal(await fixture.cancel(tx, who), NOT_PENDING);
			assert.equal((await fixture.status(tx)).stage, "BROADCAST");
			assert.deepEqual(await fixture.life(tx), life);
			assert.equal(await fixture.pendingNonce(actor), 1);
			for (const builder of fixture.system.builders) assert.deepEqual(fixture.cancels(builder, tx), []);
			assert.equal(await fixture.cancel(tx, HERE), true);
			assert.equal(await fixture.cancel(tx, who), NOT_PENDING);
		});
	}

	it("by a websocket: another address, and a page in the browser of who submitted it", async () => {
		const { tx } = await held();
		const visitor = { headers: { "x-forwarded-for": HERE.from ?? "" }, origin: PAGE };
		for (const options of [{ headers: { "x-forwarded-for": THERE.from ?? "" } }, visitor]) {
			const client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, options);
			client.send({ id: 1, method: "eth_cancelTransaction", params: [tx.hash] });
			const { error } = await client.next();
			assert.equal(`${error?.code} ${error?.message}`, NOT_PENDING);
			client.terminate();
		}
		assert.notEqual((await fixture.status(tx)).stage, "CANCELLED");
	});

	it("with a signature that does not verify is refused as such, whatever the hash", async () => {
		const { actor, tx } = await held();
		const { system } = fixture;
		const body = (hash: string) =>
			JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_cancelTransaction", params: [hash] });
		const answers: string[] = [];
		for (const hash of [tx.hash, NEVER_SEEN]) {
			const signature = `${actor.address}:0x${"11".repeat(65)}`;
			const headers = { "content-type": "application/json", "x-flashbots-signature": signature };
			const response = await fetch(system.client.url, { method: "POST", headers, body: body(hash) });
			answers.push(await response.text());
		}
		assert.match(answers[0] ?? "", /-32600.*X-Flashbots-Signature/);
		assert.equal(answers[0], answers[1]);
		assert.notEqual((await fixture.status(tx)).stage, "CANCELLED");
	});

	it("is answered the same bytes for every kind of hash", async () => {
		const hashes: Record<string, string> = { unknown: NEVER_SEEN };
		const keep = (what: string, { tx }: { readonly tx: Signed }) => {
			hashes[what] = tx.hash;
		};
		const to = await fixture.place(EMITS);
		for (const path of ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"]) {
			keep(path, await held(path, { to }));
		}
		keep("queued", await held("/fast", { nonce: 3 }));
		keep("failing", await held("/noreverts", { to: await fixture.place(REVERTS) }));
		const replaced = await held();
		keep("replaced", replaced);
		await submitBy(replaced.actor.sign(BUMPED));
		const cancelled = await held();
		keep("cancelled", cancelled);
		assert.equal(await fixture.cancel(cancelled.tx, HERE), true);
		const soft = await held("/noreverts?softCancellations=true");
		keep("cancelled softly", soft);
		const cancelling = soft.actor.sign({ to: soft.actor.address });
		await submitBy(cancelling);
		keep("a soft cancel", { tx: cancelling });
		const mined = await held();
		keep("mined", mined);
		await fixture.sent(mined.tx);
		await fixture.system.nextBlock();
		await fixture.reaches(mined.tx, "INCLUDED");
		keep("pending again", await held());
		const answers = new Map<string, string>();
		for (const [what, hash] of Object.entries(hashes)) answers.set(what, await rawAnswer(hash));
		for (const [what, answer] of answers) assert.equal(answer, answers.get("unknown"), what);
		assert.match(answers.get("unknown") ?? "", /-32000.*transaction not found or no longer pending/);
	});

	/** Status, headers and text of what a stranger is answered; the hash and the date are left out. */
	async function rawAnswer(hash: string): Promise<string> {
		const connection = await RawConnection.open(fixture.system.relay.port);
		const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_cancelTransaction", params: [hash] });
		const headers = { "Content-Type": "application/json", "X-Forwarded-For": THERE.from ?? "" };
		connection.write(requestText("POST", "/", headers, body));
		const { status, headers: answered, body: text } = await connection.answer();
		connection.destroy();
		const { date: _, ...rest } = answered;
		return JSON.stringify([status, rest, text]).replaceAll(hash.slice(2), "HASH");
	}
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
		for (let i = 0; i <= WATCH_BLOCKS; i += 1) await fixture.mineUnseen();
		await fixture.seesHead(await fixture.head());
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
