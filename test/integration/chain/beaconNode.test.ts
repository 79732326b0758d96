// Following a consensus node's event stream: the events that are accepted or ignored, and the
// handling of a stream that breaks, falls silent or is none. The operator is notified once, with a
// hint at the cause, and again when it is over.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { after, afterEach, before, describe, test } from "node:test";
import { BeaconNode, readAttributes } from "../../../relay/chain/beaconNode.ts";
import type { PayloadAttributes } from "../../../relay/domain/chain.ts";
import { type Clock, systemClock } from "../../../shared/clock.ts";
import { type LogFields, type Logger, silentLogger } from "../../../shared/log.ts";
import { freePort } from "../../devnet/freePort.ts";
import {
	type BeaconFault,
	type BeaconServer,
	eventOf,
	startBeaconServer,
} from "../../support/beaconServer.ts";
import { ManualClock } from "../../support/manualClock.ts";
import { until } from "../../support/until.ts";

const word = (digits: string) => `0x${digits.repeat(32)}`;
const HEAD = word("a1");
const GOOD = { parentHash: HEAD, timestamp: 1_800_000_012, prevRandao: word("b2"), beaconRoot: word("c3") };
const LATER = { ...GOOD, timestamp: GOOD.timestamp + 12, prevRandao: word("d4") };
const MARK = { ...GOOD, parentHash: word("ff") };

const CANT = "warn consensus node unusable: simulations have a random PREVRANDAO and beacon root";
const FIRST = "info reading PREVRANDAO and the beacon root of the next slot from the consensus node";
const AGAIN = "info reading PREVRANDAO and the beacon root of the next slot from the consensus node again";

let server: BeaconServer;
let node: BeaconNode | null = null;
let logged: string[] = [];
let hints: string[] = [];
let news = 0;

before(async () => {
	server = await startBeaconServer();
});
after(() => server.stop());
afterEach(async () => {
	await node?.stop();
	node = null;
	server.fail(null);
	await until("its streams are closed", () => server.streams === 0);
});

function follow(url: string, clock: Clock = systemClock): BeaconNode {
	logged = [];
	hints = [];
	news = 0;
	const note =
		(level: string) =>
		(message: string, { hint }: LogFields = {}) => {
			logged.push(`${level} ${message}`);
			if (hint !== undefined) hints.push(hint);
		};
	const log: Logger = { ...silentLogger, info: note("info"), warn: note("warn"), error: note("error") };
	const onAttributes = () => {
		news += 1;
	};
	node = new BeaconNode({ url, slot: { ms: 12_000 } }, { clock, log, onAttributes, random: () => 0 });
	return node;
}

/** A follower of the server, with its stream open and this head. */
async function opened(clock?: Clock): Promise<BeaconNode> {
	const follower = follow(server.url, clock);
	follower.headCame(HEAD);
	await follower.start();
	await until("the stream", () => server.streams === 1);
	return follower;
}

/** Waits until all that was written before is read. */
async function read(follower: BeaconNode): Promise<void> {
	const mark = {
		...MARK,
		timestamp: 1 + Math.max(MARK.timestamp, timeOf(follower.attributesAfter(MARK.parentHash))),
	};
	server.raw("\n\n");
	server.publish(mark);
	await until("it is read", () => timeOf(follower.attributesAfter(MARK.parentHash)) === mark.timestamp);
}

const timeOf = (attributes: PayloadAttributes | null) => attributes?.timestamp ?? 0;

/** The event of {@link GOOD} with another text in the place of a part of it. */
const changed = (from: string | RegExp, to: string) => eventOf(GOOD).replace(from, to);

const NONSENSE: Readonly<Record<string, string | Buffer>> = {
	"no JSON": "event: payload_attributes\ndata: {\n\n",
	"null for an object": "event: payload_attributes\ndata: null\n\n",
	"a list": "event: payload_attributes\ndata: []\n\n",
	"no data": "event: payload_attributes\n\n",
	"an event of another topic": changed("payload_attributes\n", "head\n"),
	"an event without a name": changed("event: payload_attributes\n", ""),
	"no attributes": changed('"payload_attributes":', '"other":'),
	"no parent": changed('"parent_block_hash":', '"other":'),
	"a short parent": changed(HEAD, HEAD.slice(0, -2)),
	"no PREVRANDAO": changed('"prev_randao":', '"other":'),
	"a long PREVRANDAO": changed(GOOD.prevRandao, `${GOOD.prevRandao}00`),
	"a PREVRANDAO that is a number": changed(`"${GOOD.prevRandao}"`, "7"),
	"no beacon root": changed('"parent_beacon_block_root":', '"other":'),
	"no time": changed('"timestamp":', '"other":'),
	"a time as a number": changed(`"${GOOD.timestamp}"`, String(GOOD.timestamp)),
	"a time as hex": changed(`"${GOOD.timestamp}"`, '"0x6b49d20c"'),
	"a time before the epoch": changed(`"${GOOD.timestamp}"`, '"-5"'),
	"a time of many digits": changed(`"${GOOD.timestamp}"`, `"${"9".repeat(30)}"`),
	"too much": changed('"version"', `"filler":"${"x".repeat(70_000)}","version"`),
	"too much in many lines": `event: payload_attributes\n${"data: {}\n".repeat(20_000)}\n`,
	"bytes that are no text": Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a, 0x0a]),
	"an event of another head": eventOf({ ...GOOD, parentHash: word("e5") }),
};

describe("a consensus node's events", () => {
	for (const [title, text] of Object.entries(NONSENSE)) {
		test(`${title} is left out, and what follows is taken`, async () => {
			const follower = await opened();
			server.raw(text);
			await read(follower);
			assert.equal(follower.attributesAfter(HEAD), null);
			server.publish(GOOD);
			await until("it is known", () => follower.attributesAfter(HEAD) !== null);
			assert.deepEqual(follower.attributesAfter(HEAD), GOOD);
			assert.deepEqual(logged, [FIRST]);
		});
	}

	test("of one parent a later slot's are taken, and no other ones", async () => {
		const follower = await opened();
		server.publish(GOOD);
		server.publish({ ...GOOD, prevRandao: word("e5") });
		await read(follower);
		assert.deepEqual(follower.attributesAfter(HEAD), GOOD);
		assert.equal(news, 2, "with the mark");
		server.publish(LATER);
		server.publish(GOOD);
		await read(follower);
		assert.deepEqual(follower.attributesAfter(HEAD), LATER);
	});

	test("what comes before the relay's head, in pieces and behind comments, is there with it", async () => {
		const follower = await opened();
		const next = { ...GOOD, parentHash: word("e5") };
		for (const piece of `: alive\n\n${eventOf(next)}`.match(/[\s\S]{1,50}/g) ?? []) server.raw(piece);
		await until("it is known", () => follower.attributesAfter(next.parentHash) !== null);
		assert.deepEqual(logged, []);
		follower.headCame(next.parentHash);
		assert.deepEqual(logged, [FIRST]);
	});

	test("the last sixteen parents' are kept", async () => {
		const follower = await opened();
		server.publish(GOOD);
		for (let i = 0; i < 16; i += 1) server.publish({ ...GOOD, parentHash: word((0x10 + i).toString(16)) });
		await until("the last", () => follower.attributesAfter(word("1f")) !== null);
		assert.equal(follower.attributesAfter(HEAD), null);
		assert.notEqual(follower.attributesAfter(word("10")), null);
	});

	test("a fork that names no parent's number is read", () => {
		const data = /data: (.*)/.exec(eventOf(GOOD))?.[1] ?? "";
		assert.deepEqual(readAttributes(data.replace('"parent_block_number":"9",', "")), GOOD);
	});
});

/** Waits for something while the time passes. */
const passing = (what: string, clock: ManualClock, question: () => boolean) =>
	until(what, async () => {
		await clock.advance(100);
		return question();
	});

const HTML = { "content-type": "text/html" };
const FAULTS: Readonly<Record<string, readonly [BeaconFault, RegExp]>> = {
	"that wants a key": [{ status: 401 }, /^HTTP 401: it expects other credentials: .* BEACON_URL$/],
	"that is another server": [{ status: 404, headers: HTML }, /^HTTP 404: .*path of BEACON_URL$/],
	"that knows no such topic": [{ status: 400 }, /^HTTP 400: .*BEACON_URL the address of a consensus node\?$/],
	"that is an execution node": [{ status: 405 }, /^HTTP 405: it does not accept GET there: .*BEACON_URL$/],
	"that leads elsewhere": [
		{ status: 302, headers: { location: "https://other.example/key" } },
		/^HTTP 302: a redirect to https:\/\/other\.example, .*BEACON_URL$/,
	],
	"that is a web page": [
		{ status: 200, headers: HTML },
		/^HTTP 200: a web page, not an event stream: .*BEACON_URL$/,
	],
	"that answers JSON": [
		{ status: 200, headers: { "content-type": "application/json" }, body: eventOf(GOOD) },
		/^HTTP 200: not an event stream: .*BEACON_URL$/,
	],
	"that compresses": [
		{ status: 200, headers: { "content-type": "text/event-stream", "content-encoding": "gzip" } },
		/^HTTP 200: it compresses/,
	],
	"that has failed": [
		{ status: 503, headers: HTML },
		/^HTTP 503: it, or a proxy in front of it, has failed$/,
	],
};

describe("a consensus node", () => {
	for (const [title, [fault, hint]] of Object.entries(FAULTS)) {
		test(`${title} is reported once, and asked again until it is healthy`, async () => {
			server.fail(fault);
			const before = server.requests.length;
			const clock = new ManualClock();
			const follower = follow(server.url, clock);
			follower.headCame(HEAD);
			await follower.start();
			await passing("two more tries", clock, () => server.requests.length >= before + 3);
			assert.deepEqual([logged, hints.length], [[CANT], 1]);
			assert.match(hints[0] ?? "", hint);
			server.fail(null);
			await passing("the stream", clock, () => server.streams === 1);
			server.publish(GOOD);
			await until("it is healthy", () => logged.length === 2);
			assert.deepEqual(logged, [CANT, AGAIN]);
		});
	}

	test("that is not there is waited for", async () => {
		const port = await freePort();
		const follower = follow(`http://127.0.0.1:${port}`);
		follower.headCame(HEAD);
		await follower.start();
		await until("it is logged", () => logged.length === 1);
		assert.match(hints[0] ?? "", /^nothing listens there: .*port of BEACON_URL right/);
		const late = await startBeaconServer({ port });
		try {
			await until("the stream", () => late.streams === 1);
			late.publish(GOOD);
			await until("it is healthy", () => logged.length === 2);
			assert.deepEqual(logged, [CANT, AGAIN]);
		} finally {
			await follower.stop();
			await late.stop();
		}
	});

	test("whose stream ends after it published something is only asked again", async () => {
		const follower = await opened();
		for (const published of [GOOD, LATER]) {
			server.publish(published);
			await until("it is known", () => timeOf(follower.attributesAfter(HEAD)) === published.timestamp);
			server.drop();
			await until("it is closed", () => server.streams === 0);
			await until("it is open again", () => server.streams === 1);
		}
		assert.deepEqual(follower.attributesAfter(HEAD), LATER, "it is still so");
		assert.deepEqual(logged, [FIRST]);
	});

	test("that never answers, and one that falls silent, are left and asked again", async () => {
		const mute = createServer();
		mute.listen(0, "127.0.0.1");
		await once(mute, "listening");
		const clock = new ManualClock();
		try {
			const address = mute.address() as { port: number };
			const asked = once(mute, "connection");
			await follow(`http://127.0.0.1:${address.port}`, clock).start();
			const [socket] = await asked;
			socket.on("error", () => {});
			await clock.advance(10_000);
			await until("it is logged", () => logged.length === 1);
			await node?.stop();
		} finally {
			mute.close();
		}
		assert.deepEqual(logged, [CANT]);

		await opened(clock);
		server.publish(GOOD);
		await until("it is healthy", () => logged.length === 1);
		const before = server.requests.length;
		await clock.advance(59_000);
		server.raw(":\n\n");
		await until("the timer is set again", () => clock.timers === 1);
		assert.equal(server.requests.length, before);
		await clock.advance(60_000);
		await until("it is closed", () => server.streams === 0);
		await until("the pause", () => clock.timers === 1);
		await clock.advance(250);
		await until("it is open again", () => server.streams === 1);
		assert.deepEqual(logged, [FIRST]);
	});

	test("of another chain, or that publishes for its own validators alone, is reported after some heads", async () => {
		const follower = await opened();
		server.publish({ ...GOOD, parentHash: word("e5") });
		await until("it is read", () => follower.attributesAfter(word("e5")) !== null);
		for (const digits of ["01", "02"]) follower.headCame(word(digits));
		assert.deepEqual(logged, []);
		for (const digits of ["03", "04", "05"]) follower.headCame(word(digits));
		assert.deepEqual(logged, [CANT]);
		assert.match(hints[0] ?? "", /publishes payload_attributes for each slot\?$/);
		server.publish({ ...GOOD, parentHash: word("05") });
		await until("it is healthy", () => logged.length === 2);
		assert.deepEqual(logged, [CANT, AGAIN]);
	});
});
