// The rights to cancel: the submitting address, each one of several for itself, and the sender for
// all by a signature. Also the rights to submit a cancelled transaction anew. Answers to strangers
// are in privacy/hiddenTransactions.test.ts.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ethers } from "ethers";
import { SECP256K1_N } from "../../../shared/ethereum/signatures.ts";
import { NOT_CANCELLABLE } from "../../../shared/ownership.ts";
import type { CallOptions } from "../../support/biddingFixture.ts";
import { WsClient } from "../../support/clients.ts";
import { snippet } from "../../support/documents.ts";
import type { WireAnswer } from "../../support/relayClient.ts";
import type { Actor, Signed } from "../../support/relayFixture.ts";
import { cancelSignature } from "../../support/typedSignatures.ts";
import { until } from "../../support/until.ts";
import {
	type CancelFixture,
	cancelBy,
	NEVER_SEEN,
	NOT_PENDING,
	startCancels,
} from "../../support/userFixtures.ts";

const LIFE_BLOCKS = 8;
const HERE = { from: "198.51.100.1" };
const THERE = { from: "198.51.100.2" };
const ELSEWHERE = { from: "198.51.100.3" };
const STRANGER_KEY = `0x${"b2".repeat(32)}`;
const PAGE = "https://app.example";
const STILL_WANTED =
	"-32000 taken back for your address; another address that submitted it still wants it: sign the cancel with the sender's key, or replace it";
/** How many blocks behind its end it is forgotten who submitted a transaction. */
const WATCH_BLOCKS = 64;

let fixture: CancelFixture;
before(async () => {
	const env = { TX_TTL_BLOCKS: String(LIFE_BLOCKS), TRUST_PROXY: "1" };
	fixture = await startCancels({ proxied: true, env });
	await fixture.passBlock();
});
after(() => fixture.system.stop());

/** The hash, or `code message`. */
async function answerTo(
	tx: Signed,
	{ from, origin }: { readonly from: string; readonly origin?: string },
	query = "",
): Promise<string> {
	const response = await fetch(`${fixture.system.client.url}/fast${query}`, {
		method: "POST",
		headers: {
			...{ "content-type": "application/json", "x-forwarded-for": from },
			...(origin === undefined ? {} : { origin }),
		},
		body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [tx.raw] }),
	});
	const { result, error } = (await response.json()) as WireAnswer;
	return error === undefined ? String(result) : `${error.code} ${error.message}`;
}

async function submitBy(tx: Signed, who: typeof HERE): Promise<void> {
	assert.equal(await answerTo(tx, who), tx.hash);
}

async function held(): Promise<{ readonly actor: Actor; readonly tx: Signed }> {
	const actor = await fixture.actor();
	const tx = actor.sign();
	await submitBy(tx, HERE);
	return { actor, tx };
}

const own = (actor: Actor): CallOptions => ({ key: actor.account.keyHex });

describe("clients that may cancel", () => {
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

	it("that address over a websocket", async () => {
		const { tx } = await held();
		const headers = { "x-forwarded-for": HERE.from };
		const client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { headers });
		client.send({ id: 1, method: "eth_cancelTransaction", params: [tx.hash] });
		assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: true });
		client.terminate();
		await fixture.assertCancelled(tx);
	});
});

describe("a cancel whose parameter the sender has signed", () => {
	const call = (hash: string, signature: string, id = 1) => ({
		...{ jsonrpc: "2.0", id, method: "eth_cancelTransaction" },
		params: [hash, signature],
	});
	const post = async (body: unknown, headers: Readonly<Record<string, string>> = {}) => {
		const sent = { "content-type": "application/json", "x-forwarded-for": THERE.from, ...headers };
		const options = { method: "POST", headers: sent, body: JSON.stringify(body) };
		return (await (await fetch(`${fixture.system.client.url}/fast`, options)).json()) as WireAnswer;
	};
	const sign = (actor: Actor, { hash }: Signed, chainId?: number) =>
		cancelSignature(actor.account.keyHex, hash, chainId);

	it("is good from any address, web page and transport, again and again", async () => {
		for (const headers of [{}, { origin: PAGE }, { origin: "null" }]) {
			const { actor, tx } = await held();
			const body = call(tx.hash, await sign(actor, tx));
			assert.equal((await post(body, headers)).result, true);
			assert.equal((await post(body, headers)).result, true);
			await fixture.assertCancelled(tx);
		}
		const { actor, tx } = await held();
		const client = await WsClient.open(`ws://127.0.0.1:${fixture.system.relay.port}/`, { origin: PAGE });
		client.send(call(tx.hash, await sign(actor, tx)));
		assert.deepEqual(await client.next(), { jsonrpc: "2.0", id: 1, result: true });
		client.terminate();
		await fixture.assertCancelled(tx);
	});

	it("is made as docs/wallets.md has it", async () => {
		const { actor, tx } = await held();
		const code = snippet("docs/wallets.md", "const { chainId } = await");
		const run = new Function("ethers", "wallet", "base", "hash", `return (async () => {${code}})()`);
		await run(ethers, new ethers.Wallet(actor.account.keyHex), fixture.system.client.url, tx.hash);
		await fixture.assertCancelled(tx);
	});

	it("in a batch each call has its own signer, and ends the transaction for all owners", async () => {
		const [one, other, third] = [await held(), await held(), await held()];
		await submitBy(one.tx, { from: "198.51.100.3" });
		const answers = (await post([
			call(one.tx.hash, await sign(one.actor, one.tx), 1),
			call(other.tx.hash, await sign(other.actor, other.tx), 2),
			call(third.tx.hash, await sign(other.actor, third.tx), 3),
		])) as unknown as readonly WireAnswer[];
		assert.deepEqual(
			answers.map(({ result, error }) => error?.message ?? result),
			[true, true, NOT_CANCELLABLE],
		);
		await fixture.assertCancelled(one.tx);
		await fixture.assertCancelled(other.tx);
		await fixture.reaches(third.tx, "BROADCAST");
	});

	it("signed for another chain, for another transaction or by another account it is a stranger's", async () => {
		const { actor, tx } = await held();
		const rows: readonly (readonly [string, string])[] = [
			["another chain", await sign(actor, tx, 1)],
			["another transaction", await sign(actor, { ...tx, hash: NEVER_SEEN })],
			["another account", await cancelSignature(STRANGER_KEY, tx.hash)],
			["s in the upper half", highTwin(await sign(actor, tx))],
			["no signature of anybody", `0x${"00".repeat(65)}`],
			["too short", (await sign(actor, tx)).slice(0, -2)],
		];
		const answers = [];
		for (const [name, signature] of rows) {
			const { error } = await post(call(tx.hash, signature));
			answers.push([name, error?.code, error?.message]);
		}
		const nobody =
			"invalid params: signature: expected one over Cancel(bytes32 transaction) on chain 31337, with r, s and v in range";
		assert.deepEqual(answers, [
			["another chain", -32_000, NOT_CANCELLABLE],
			["another transaction", -32_000, NOT_CANCELLABLE],
			["another account", -32_000, NOT_CANCELLABLE],
			["s in the upper half", -32_602, nobody],
			["no signature of anybody", -32_602, nobody],
			["too short", -32_602, "invalid params: signature: expected a signature of 65 bytes as 0x hex"],
		]);
		await fixture.reaches(tx, "BROADCAST");
		const foreign = call(tx.hash, await cancelSignature(STRANGER_KEY, tx.hash));
		assert.equal((await post(foreign, { "x-forwarded-for": HERE.from })).result, true, "its own address's");
	});
});

describe("a transaction's owner", () => {
	it("is each who submits it while it is pending; it lives until the last one cancels", async () => {
		const { tx } = await held();
		assert.equal(await fixture.cancel(tx, THERE), NOT_PENDING);
		await submitBy(tx, THERE);
		assert.equal(await fixture.cancel(tx, THERE), STILL_WANTED);
		assert.equal(await fixture.cancel(tx, THERE), STILL_WANTED, "again");
		await fixture.reaches(tx, "BROADCAST");
		assert.equal(await fixture.cancel(tx, HERE), true);
		await fixture.assertCancelled(tx);
	});

	it("who has cancelled it revives it by no submission; another one does that with again=<its hash> alone", async () => {
		const { actor, tx } = await held();
		assert.equal(await fixture.cancel(tx, HERE), true);
		const page = { ...ELSEWHERE, origin: PAGE };
		const again = `?again=${tx.hash}`;
		const refused = `-32000 transaction was cancelled by another owner; add again=${tx.hash} to submit it anew`;
		for (const [who, query, expected] of [
			[HERE, "", tx.hash],
			[HERE, again, tx.hash],
			[ELSEWHERE, "", refused],
			[ELSEWHERE, `?again=${NEVER_SEEN}`, refused],
			[page, again, `${refused}, not from a web page`],
		] as const)
			assert.equal(await answerTo(tx, who, query), expected, `${who.from} ${query}`);
		await fixture.assertCancelled(tx);
		assert.match(await answerTo(tx, ELSEWHERE, "?again=0x12"), /^-32602 invalid params: again: expected /);
		assert.equal(await answerTo(tx, ELSEWHERE, again), tx.hash);
		await fixture.reaches(tx, "BROADCAST");
		// The first one's wallet sends it again and again.
		assert.equal(await answerTo(tx, HERE, ""), tx.hash);
		assert.equal(await fixture.cancel(tx, HERE), STILL_WANTED);
		assert.equal(await fixture.cancel(tx, own(actor)), true);
		await fixture.assertCancelled(tx);
		for (const who of [ELSEWHERE, THERE]) assert.equal(await answerTo(tx, who, again), tx.hash, who.from);
		await fixture.assertCancelled(tx);
	});

	it("who cancels by the sender's signature ends it for all", async () => {
		const { actor, tx } = await held();
		await submitBy(tx, THERE);
		assert.equal(await fixture.cancel(tx, own(actor)), true);
		await fixture.assertCancelled(tx);
	});

	it("is known after a restart; once it is archived the sender's signature alone counts", async () => {
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
		await until("it is archived", async () => (await fixture.cancel(tx, HERE)) === NOT_PENDING);
		assert.equal(await fixture.cancel(tx, { ...THERE, ...own(actor) }), true);
		assert.equal(await fixture.cancel(tx, { ...HERE, key: STRANGER_KEY }), NOT_PENDING);
		await fixture.assertCancelled(tx);
	});
});

describe("with CANCEL_POLICY=open", () => {
	it("anybody, also a web page, may cancel what is pending; all else is still refused", async () => {
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

/** The same signature with s in the other half of the curve's order, and the other parity. */
function highTwin(signature: string): string {
	const s = SECP256K1_N - BigInt(`0x${signature.slice(66, 130)}`);
	return `${signature.slice(0, 66)}${s.toString(16).padStart(64, "0")}${signature.endsWith("1b") ? "1c" : "1b"}`;
}
