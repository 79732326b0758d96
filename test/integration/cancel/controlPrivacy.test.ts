// Leak test for cancels and statuses: transactions with unmistakable bytes are submitted on all five paths, waited
// for, cancelled, replaced, mined, reorganised, and left to expire. Then every answer, page, stream and log line is
// searched for their bytes.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Transaction } from "ethers";
import { createBodySigner } from "../../../shared/ethereum/signatures.ts";
import { createLogger } from "../../../shared/log.ts";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { EventStreamReader } from "../../support/clients.ts";
import { FeedClient } from "../../support/feeds.ts";
import { LeakWatch, type Secret } from "../../support/leakWatch.ts";
import { AUTHORIZED } from "../../support/relayClient.ts";
import { type Actor, GWEI, type Signed } from "../../support/relayFixture.ts";
import { until } from "../../support/until.ts";

const PATHS = ["/fast", "/noreverts", "/fullprivacy", "/maxbackruns", "/nochecks"] as const;
const SOFT_PATHS = ["/noreverts?softCancellations=1", "/fullprivacy?softCancellations=true"] as const;
const CALLDATA = `0x${"5ca1ab1e0ddba11c".repeat(4)}`;
const SIGNING_KEY = `0x${"c0dec0de5ec7e75e".repeat(4)}`;
const STRANGER_KEY = `0x${"b2".repeat(32)}`;
const STRANGER = { "x-forwarded-for": "198.51.100.2" };
const BUMPED = { maxFeePerGas: 40n * GWEI, maxPriorityFeePerGas: 2n * GWEI };
const LIFE_BLOCKS = 4;
/** Connections to a server that takes 16 subscriptions of each. */
const FEEDS = 4;

/** One transaction, and what was told of it as it happened. */
interface Canary {
	readonly what: string;
	readonly path: string;
	readonly actor: Actor;
	readonly tx: Signed;
	readonly stream: EventStreamReader;
}

const watch = new LeakWatch();
const canaries: Canary[] = [];
const signatures: string[] = [];
const logged: string[] = [];
const feeds: FeedClient[] = [];
let fixture: AuctionFixture;

before(async () => {
	fixture = await startAuction({
		builders: [{ name: "vault", fullPrivacy: true }, { name: "plain" }],
		proxied: true,
		env: { TX_TTL_BLOCKS: String(LIFE_BLOCKS), SIGNING_KEY },
		log: createLogger("trace", "relay", { write: (line) => void logged.push(line) }),
	});
	await fixture.passBlock();
	for (let i = 0; i < FEEDS; i++)
		feeds.push(await FeedClient.open(fixture.system.client.url.replace("http", "ws")));
	await scenario();
	await fixture.system.stop();
	watch.saw("log", logged.join(""));
});
after(() => {
	for (const feed of feeds) feed.close();
});

test("the builders received the secrets that the tests search for, and all transactions ended as intended", () => {
	const control = new LeakWatch();
	control.saw("builders", JSON.stringify(fixture.system.builders.map((builder) => builder.requests())));
	const raws = canaries.map(({ tx }, i) => ({ name: String(i), value: tx.raw }));
	assert.equal(control.found(raws).length, raws.length);
	const ends = new Map<string, Set<unknown>>();
	for (const { what, stream } of canaries) {
		const stages = ends.get(what) ?? new Set();
		stages.add(stream.messages.findLast(({ data }) => data.stage !== undefined)?.data.stage);
		ends.set(what, stages);
	}
	assert.deepEqual(
		[...ends].map(([what, stages]) => `${what}: ${[...stages].join()}`),
		[
			"cancelled: CANCELLED",
			"cancelled by signature: CANCELLED",
			"cancelled softly: CANCELLED",
			"replaced: REPLACED",
			"replacement: INCLUDED",
			"mined: INCLUDED",
			"cancelled and mined: INCLUDED",
			"dropped: DROPPED",
			"expired: EXPIRED",
		],
	);
});

test("no output contains a raw transaction or half of a signature", () => {
	const places = [
		"event stream",
		"status subscription",
		"answers to cancels",
		"answers to waits",
		"answers to submissions",
		"status pages",
		"event pages",
		"/metrics",
		"log",
	];
	for (const place of places) assert.ok(watch.places.includes(place), place);
	const secrets = canaries.flatMap(({ tx, what, path }) => secretsOf(tx, `${what} on ${path}`));
	assert.ok(secrets.length > 80, `only ${secrets.length} secrets`);
	assert.deepEqual(watch.found(secrets), []);
});

test("no output contains call data, a key or the signature of a request", () => {
	const keys = canaries.map(({ actor }) => ({ name: "a user's key", value: actor.account.keyHex }));
	const requests = signatures.map((value) => ({ name: "a request's signature", value }));
	assert.ok(requests.length > 0, "requests were signed");
	const others = [
		{ name: "call data", value: CALLDATA },
		{ name: "the relay's key", value: SIGNING_KEY },
	];
	assert.deepEqual(watch.found([...keys, ...requests, ...others]), []);
});

test("the log has only the relay's own lines, and no errors", () => {
	const lines = logged.map((line) => JSON.parse(line) as { level: number; msg: string });
	assert.ok(lines.length > 10, `only ${lines.length} lines`);
	assert.deepEqual(
		lines.filter(({ level }) => level >= 50).map(({ msg }) => msg),
		[],
	);
});

async function scenario(): Promise<void> {
	for (const { tx } of await all("cancelled")) {
		await call("answers to cancels", "eth_cancelTransaction", [tx.hash, tx.raw]);
		await call("answers to cancels", "eth_cancelTransaction", [tx.raw]);
		await call("answers to cancels", "eth_cancelTransaction", [tx.hash], "/", STRANGER);
		await call("answers to cancels", "eth_cancelTransaction", [tx.hash]);
	}
	for (const { tx, actor } of await all("cancelled by signature")) {
		for (const key of [STRANGER_KEY, actor.account.keyHex]) {
			const body = bodyOf("eth_cancelTransaction", [tx.hash]);
			const signature = createBodySigner(key).sign(body);
			signatures.push(signature.split(":")[1] ?? "");
			await post("answers to cancels", body, "/", { ...STRANGER, "x-flashbots-signature": signature });
		}
	}
	const soft = SOFT_PATHS.map((path) => begin("cancelled softly", path));
	for (const { tx, actor } of await Promise.all(soft)) {
		const cancel = actor.sign({ to: actor.address });
		await call("answers to waits", "eth_sendRawTransactionSync", [cancel.raw, 50]);
		await call("answers to waits", "eth_sendRawTransactionSync", [tx.raw, 50]);
	}
	for (const { actor, path } of await all("replaced")) {
		const low = actor.sign({ data: CALLDATA, value: 2n });
		await call("answers to submissions", "eth_sendRawTransaction", [low.raw], path);
		await begin("replacement", path, actor, BUMPED);
	}
	const mined = await all("mined");
	// On their own paths: on another one they would be taken back from the builders first.
	const wait = ({ tx, path }: Canary, ms: number) =>
		call("answers to waits", "eth_sendRawTransactionSync", [tx.raw, ms], path);
	const waits = mined.map((one) => wait(one, 20_000));
	for (const one of mined) await wait(one, 1);
	for (const { tx } of mined) await fixture.waitUntilSent(tx, { builders: ["vault"] });
	await fixture.system.nextBlock();
	await Promise.all(waits);
	await reach("replacement", "INCLUDED");
	await lookAround();

	// Sealed already when their user took them back, and dropped for others that were mined elsewhere: twice.
	for (const { tx } of await all("cancelled and mined")) {
		await call("answers to cancels", "eth_cancelTransaction", [tx.hash]);
	}
	await all("dropped");
	await all("expired");
	await mineElsewhere();
	await reach("dropped", "DROPPED");
	const release = fixture.system.node?.hold();
	await fixture.system.chain.rpc("anvil_reorg", [1, []]).finally(release);
	await reach("cancelled and mined", "CANCELLED");
	await lookAround();
	await mineElsewhere();
	for (let i = 0; i < LIFE_BLOCKS; i++) await fixture.passBlock();
	await reach("cancelled and mined", "INCLUDED");
	await reach("dropped", "DROPPED");
	await reach("expired", "EXPIRED");
	for (const { tx } of canaries) {
		await call("answers to cancels", "eth_cancelTransaction", [tx.hash], "/", STRANGER);
		await call("answers to submissions", "eth_sendRawTransaction", [`${tx.raw}00`]);
	}
	await lookAround();
	for (const { tx, stream } of canaries) {
		await until("the stream is level with the page", async () => {
			return stream.messages.length === (await fixture.events(tx)).length;
		});
		watch.saw("event stream", `${JSON.stringify(stream.headers)} ${stream.text}`);
		stream.leave();
	}
	watch.saw("status subscription", feeds.flatMap(({ texts }) => texts).join("\n"));
}

/** One on each path. */
const all = (what: string) => Promise.all(PATHS.map((path) => begin(what, path)));

/** A block with what users had cancelled, and with others in the place of what is dropped. */
async function mineElsewhere(): Promise<void> {
	for (const { what, tx, actor } of canaries) {
		if (what === "cancelled and mined") await fixture.publish(tx);
		if (what === "dropped") await fixture.publish(actor.sign({ value: 1n }));
	}
	await fixture.passBlock();
}

/** Submits one and follows it in every way. */
async function begin(what: string, path: string, actor?: Actor, options: object = {}): Promise<Canary> {
	const by = actor ?? (await fixture.actor());
	const tx = by.sign({ data: CALLDATA, ...options });
	await call("answers to submissions", "eth_sendRawTransaction", [tx.raw], path);
	const stream = await EventStreamReader.open(`${fixture.system.client.url}/tx/${tx.hash}/events`, {
		"x-forwarded-for": `203.0.113.${canaries.length}`,
	});
	assert.equal(stream.status, 200);
	const canary = { what, path, actor: by, tx, stream };
	canaries.push(canary);
	const feed = feeds[canaries.length % feeds.length];
	await feed?.subscribe("service_transactionStatus", tx.hash);
	await fixture.reaches(tx, "BROADCAST");
	await fixture.waitUntilSent(tx, { builders: ["vault"] });
	return canary;
}

async function reach(what: string, stage: string): Promise<void> {
	for (const one of canaries) if (one.what === what) await fixture.reaches(one.tx, stage);
}

const bodyOf = (method: string, params: readonly unknown[]) =>
	JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });

function call(
	place: string,
	method: string,
	params: readonly unknown[],
	path = "/",
	headers: Readonly<Record<string, string>> = {},
): Promise<string> {
	return post(place, bodyOf(method, params), path, headers);
}

function post(
	place: string,
	body: string,
	path: string,
	more: Readonly<Record<string, string>>,
): Promise<string> {
	const headers = { "content-type": "application/json", ...more };
	return watch.fetched(place, `${fixture.system.client.url}${path}`, { method: "POST", headers, body });
}

/** All that tells something of itself, and the pages of each. */
async function lookAround(): Promise<void> {
	const { url } = fixture.system.client;
	for (const page of ["/metrics", "/readyz", "/info"])
		await watch.fetched(page, `${url}${page}`, { headers: AUTHORIZED });
	for (const { tx } of canaries) {
		await watch.fetched("status pages", `${url}/tx/${tx.hash}`);
		await watch.fetched("event pages", `${url}/tx/${tx.hash}/events`);
	}
}

/** Its end, which is the signature, and both halves of that. */
function secretsOf({ raw }: Signed, what: string): Secret[] {
	const { signature } = Transaction.from(raw);
	return [
		{ name: `${what}: raw`, value: raw },
		{ name: `${what}: r`, value: signature?.r ?? "" },
		{ name: `${what}: s`, value: signature?.s ?? "" },
	];
}
