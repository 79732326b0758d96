// Tests the ownership of a transaction that several of boost's clients submit. With the relay up,
// down and back it ends as at the relay alone. The strictest path applies, nobody redirects
// another's refund, and a cancel withdraws one client's submission.

import assert from "node:assert/strict";
import { after, afterEach, before, it } from "node:test";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { type BoostClient, type BoostFixture, startBoostFixture } from "../../support/boostFixture.ts";
import { RelayClient, type WireAnswer, type WireStatus } from "../../support/relayClient.ts";
import type { Signed } from "../../support/relayFixture.ts";
import { testAccount } from "../../support/txFactory.ts";
import { until } from "../../support/until.ts";

type Env = Readonly<Record<string, string>>;

const HERE: Env = { "x-forwarded-for": "198.51.100.1" };
const THERE: Env = { "x-forwarded-for": "198.51.100.2" };
const ELSEWHERE: Env = { "x-forwarded-for": "198.51.100.3" };
const NOT_PENDING =
	"transaction not found or no longer pending; if you sent it from another network or a web page, sign the request with the sender's key";
const STILL_WANTED =
	"taken back for your address; another address that submitted it still wants it: sign the cancel with the sender's key, or replace it";
const [R, S] = [testAccount(71).address, testAccount(72).address];

/** Fees that replace. */
const DEAR = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 50_000_000_000n };

let fixture: BoostFixture;
let boost: BoostClient;
before(async () => {
	fixture = await startBoostFixture({ boost: { TRUST_PROXY: "1" } });
	boost = fixture.boost;
});
after(() => fixture?.stop());
afterEach(() => fixture.comesBack());

async function fresh(): Promise<{ readonly tx: Signed; readonly key: string }> {
	const actor = await fixture.users.actor();
	return { tx: actor.sign(), key: actor.account.keyHex };
}

const bring = (tx: Signed, headers: Env, path: string) =>
	boost.result("eth_sendRawTransaction", [tx.raw], { path, headers });

async function cancel(tx: Signed, headers: Env, key?: string): Promise<unknown> {
	const body = { jsonrpc: "2.0", id: 1, method: "eth_cancelTransaction", params: [tx.hash] };
	const signature =
		key === undefined ? {} : { "x-flashbots-signature": createBodySigner(key).sign(JSON.stringify(body)) };
	const { result, error } = (await boost.post(body, { headers: { ...headers, ...signature } }))
		.json as WireAnswer;
	return error?.message ?? result;
}

async function statusAt(url: string, { hash }: Signed): Promise<WireStatus> {
	return new RelayClient(url).status(hash);
}

/** At the relay itself. */
const atRelay = (tx: Signed) => statusAt(fixture.system.client.url, tx);

/**
 * Waits until the relay treats it as on `/noreverts`, or as on `/fast`, and asserts that it may
 * still be sent.
 */
async function reachesRelay(tx: Signed, isFast = false): Promise<void> {
	await until(`${tx.hash} is ${isFast ? "fast" : "strict"} at the relay`, async () => {
		const { stage, fastMode } = await atRelay(tx);
		return stage !== undefined && fastMode === isFast;
	});
	await assertLives(tx);
}

async function assertLives(tx: Signed): Promise<void> {
	const { status, stage } = await atRelay(tx);
	assert.equal(status, "UNKNOWN", `${stage}`);
}

/**
 * Each of the two takes it back, and only then it is over, with the refund for nobody but the
 * sender. `isFallbackOut`: the fallback has it and does not answer, so the end is not sure before
 * it is back.
 */
async function assertEndsByBoth(tx: Signed, first: Env, second: Env, isFallbackOut = false): Promise<void> {
	assert.equal(await cancel(tx, ELSEWHERE), NOT_PENDING);
	assert.equal(await cancel(tx, first), STILL_WANTED);
	await assertLives(tx);
	assert.equal(await cancel(tx, first), STILL_WANTED, "again");
	await assertLives(tx);
	const ended = await cancel(tx, second);
	if (isFallbackOut) assert.match(String(ended), /the upstream that has it does not answer/);
	else assert.equal(ended, true);
	await fixture.users.reaches(tx, "CANCELLED");
	assert.equal((await atRelay(tx)).refundRecipient, null);
	if (isFallbackOut) await fixture.comesBack();
	for (const who of [first, second])
		await until("it has ended everywhere", async () => (await cancel(tx, who)) === true);
	assert.equal(await cancel(tx, ELSEWHERE), NOT_PENDING);
}

const PATHS = ["/fast?refundRecipient=", "/noreverts?refundRecipient="] as const;
for (const [name, paths] of [
	["the strict one second", PATHS],
	["the strict one first", [...PATHS].reverse()],
] as const) {
	// A fallback sends what it has accepted at once, and then the second one changes nothing any
	// more.
	const isFast = paths === PATHS;
	const brought = async (between: (tx: Signed) => Promise<void>): Promise<Signed> => {
		// Behind a gap, so that no builder of the relay has it before both have brought it.
		const tx = (await fixture.users.actor()).sign({ nonce: 1 });
		await bring(tx, HERE, `${paths[0]}${R}`);
		await between(tx);
		await bring(tx, THERE, `${paths[1]}${S}`);
		return tx;
	};

	it(`with the relay well, ${name}`, async () => {
		const tx = await brought(async () => {});
		await reachesRelay(tx);
		await assertEndsByBoth(tx, HERE, THERE);
	});

	it(`with the relay up for one, down for the other, and back, ${name}`, async () => {
		const tx = await brought(async (one) => {
			await fixture.goesOut();
			await until("the fallback has it", async () => (await statusAt(fixture.fallbackUrl, one)).stage);
		});
		await fixture.comesBack();
		await reachesRelay(tx, isFast);
		await until("the relay knows both", async () => (await events(tx)).includes("joined"));
		await assertEndsByBoth(tx, THERE, HERE);
	});

	it(`with the relay down for both, and then the fallback instead, ${name}`, async () => {
		await fixture.goesOut();
		const tx = await brought(async () => {});
		assert.equal((await statusAt(fixture.fallbackUrl, tx)).fastMode, isFast);
		await fixture.comesBack();
		await fixture.goesOut("fallback");
		await reachesRelay(tx, isFast);
		await until("the relay knows both", async () => (await events(tx)).includes("joined"));
		await assertEndsByBoth(tx, HERE, THERE, true);
	});

	it(`one client cancels while the relay is down, ${name}: it lives, and the relay is notified`, async () => {
		const tx = await brought(async () => {});
		await fixture.goesOut();
		assert.match(
			String(await cancel(tx, ELSEWHERE)),
			/^transaction not found .*; the relay, which may know it, is down/,
		);
		assert.equal(await cancel(tx, THERE), STILL_WANTED);
		await until("the fallback has it", async () => (await statusAt(fixture.fallbackUrl, tx)).stage);
		assert.equal((await statusAt(fixture.fallbackUrl, tx)).status, "UNKNOWN");
		await fixture.comesBack();
		await until("the relay knows", async () => (await events(tx)).includes("left"));
		await assertLives(tx);
		assert.equal(await cancel(tx, HERE), true);
		await fixture.users.reaches(tx, "CANCELLED");
	});

	it(`both clients cancel while the relay is down, ${name}: it ends there too`, async () => {
		const tx = await brought(async () => {});
		await fixture.goesOut();
		assert.equal(await cancel(tx, HERE), STILL_WANTED);
		// The relay can't be reached, as boost says; it receives the cancel when it is back.
		await cancel(tx, THERE);
		await fixture.comesBack();
		await fixture.users.reaches(tx, "CANCELLED");
	});
}

async function events(tx: Signed): Promise<readonly string[]> {
	return (await fixture.users.events(tx)).map(({ type }) => String(type));
}

for (const [state, before] of [
	["well", async () => {}],
	["out", () => fixture.goesOut()],
] as const) {
	it(`with the relay ${state}, a wallet's cancel is to be mined though a stranger asked for soft ones`, async () => {
		await before();
		const actor = await fixture.users.actor();
		const [tx, cancelling] = [
			actor.sign({ nonce: 0 }),
			actor.sign({ nonce: 0, to: actor.account.address, ...DEAR }),
		];
		await bring(tx, HERE, "/fast");
		await bring(tx, THERE, "/noreverts?softCancellations=true");
		await bring(cancelling, HERE, "/fast");
		const { url } = state === "well" ? fixture.system.client : { url: fixture.fallbackUrl };
		await until("it has replaced the other", async () => (await statusAt(url, tx)).stage === "REPLACED");
		assert.equal((await statusAt(url, cancelling)).status, "UNKNOWN");
	});
}

it("the sender's signature goes over all owners, those of the relay's own clients too, also with the relay out", async () => {
	for (const isOut of [false, true]) {
		// Otherwise boost would bring it to the fallback alone, and not know that the relay has it.
		await fixture.recovers();
		const { tx, key } = await fresh();
		await bring(tx, HERE, "/fast");
		await bring(tx, THERE, "/noreverts");
		await fixture.users.submit("/fullprivacy", tx);
		await assertLives(tx);
		if (isOut) await fixture.goesOut();
		await cancel(tx, ELSEWHERE, key);
		if (isOut) await fixture.comesBack();
		await fixture.users.reaches(tx, "CANCELLED");
	}
});

for (const isOut of [false, true]) {
	it(`with the relay ${isOut ? "out" : "well"}, what one address has cancelled another one submits anew with again=<its hash> alone`, async () => {
		if (isOut) await fixture.goesOut();
		const { tx, key } = await fresh();
		const refused = `transaction was cancelled by another owner; add again=${tx.hash} to submit it anew`;
		const answerTo = async (headers: Env, query = ""): Promise<unknown> => {
			const path = `/fast${query}`;
			const { result, error } = (await boost.call("eth_sendRawTransaction", [tx.raw], { path, headers }))
				.json as WireAnswer;
			return error?.message ?? result;
		};
		await bring(tx, HERE, "/fast");
		assert.equal(await cancel(tx, HERE), true);
		const again = `?again=${tx.hash}`;
		const page = { ...THERE, origin: "https://app.example" };
		for (const [who, query, expected] of [
			[HERE, "", tx.hash],
			[HERE, again, tx.hash],
			[THERE, "", refused],
			[page, again, `${refused}, not from a web page`],
		] as const)
			assert.equal(await answerTo(who, query), expected, `${JSON.stringify(who)} ${query}`);
		const { url } = isOut ? { url: fixture.fallbackUrl } : fixture.system.client;
		assert.equal((await statusAt(url, tx)).stage, "CANCELLED");
		const before = fixture.wires.fallback.requests().length;
		assert.equal(await answerTo(THERE, again), tx.hash);
		// The fallback never receives it: a transaction that it has cancelled for boost stays so there.
		if (isOut) await fixture.comesBack();
		await until("it is at the relay", async () => (await atRelay(tx)).stage === "BROADCAST");
		for (const { target } of fixture.wires.fallback.requests().slice(before))
			assert.doesNotMatch(target, /again/i);
		// The first one's wallet sends it again and again.
		assert.equal(await answerTo(HERE), tx.hash);
		assert.equal(await cancel(tx, HERE), STILL_WANTED);
		assert.equal(await cancel(tx, ELSEWHERE, key), true);
		await fixture.users.reaches(tx, "CANCELLED");
		assert.equal(await answerTo(ELSEWHERE, again), tx.hash, "ended by its sender");
		await fixture.users.reaches(tx, "CANCELLED");
	});
}

it("an owner at the relay alone takes back its own wish through boost, and boost's client keeps its own", async () => {
	const { tx } = await fresh();
	await bring(tx, HERE, "/fast");
	// On a path that boost does not serve itself it is streamed to the relay, and is in no row.
	await bring(tx, THERE, "/fullprivacy");
	assert.equal(await cancel(tx, THERE), STILL_WANTED);
	await assertLives(tx);
	await fixture.goesOut();
	await until("it is failed over", async () => (await statusAt(fixture.fallbackUrl, tx)).stage);
	await fixture.comesBack();
	assert.equal(await cancel(tx, HERE), true);
	await fixture.users.reaches(tx, "CANCELLED");
});

// Whom the relay knows alone is in none of boost's rows: `/fullprivacy` is streamed, and the relay
// has clients of its own.
for (const [name, bringsToRelay] of [
	["by another path of boost", (tx: Signed) => bring(tx, HERE, "/fullprivacy")],
	["at the relay itself", (tx: Signed) => fixture.users.submit("/fullprivacy", tx)],
] as const) {
	it(`the sender's signature ends what came ${name}, though another has brought and taken back the same`, async () => {
		const { tx, key } = await fresh();
		await bringsToRelay(tx);
		await bring(tx, THERE, "/fast");
		assert.equal(await cancel(tx, THERE), STILL_WANTED);
		await assertLives(tx);
		assert.equal(await cancel(tx, ELSEWHERE, key), true);
		await fixture.users.reaches(tx, "CANCELLED");
		assert.equal(await cancel(tx, ELSEWHERE, key), true, "again");
	});

	it(`the same ${name}, with the relay out`, async () => {
		const { tx, key } = await fresh();
		await bringsToRelay(tx);
		await bring(tx, THERE, "/fast");
		assert.equal(await cancel(tx, THERE), STILL_WANTED);
		await fixture.goesOut();
		assert.match(String(await cancel(tx, ELSEWHERE, key)), /cancels it there as soon as possible/);
		await fixture.comesBack();
		await fixture.users.reaches(tx, "CANCELLED");
	});
}

it("an owner at the relay may cancel after another client's submission during an outage", async () => {
	for (const signs of [false, true]) {
		const { tx, key } = await fresh();
		await fixture.goesOut();
		await bring(tx, THERE, "/fast");
		await fixture.comesBack();
		await bring(tx, HERE, "/fullprivacy");
		assert.equal(await cancel(tx, ELSEWHERE), NOT_PENDING);
		assert.equal(await cancel(tx, HERE, signs ? key : undefined), true);
		await fixture.users.reaches(tx, "CANCELLED");
		const { stage } = await statusAt(fixture.fallbackUrl, tx);
		assert.equal(stage === "CANCELLED", signs, `at the fallback it is ${stage}`);
	}
});
