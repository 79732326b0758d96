// A relay beside a consensus node: backruns that pay five ether where PREVRANDAO is not the
// published one, and one wei where it is, as in the block. They are judged by the published value,
// whether they come before or after it: the higher of a client's two bids has its slot. Without it
// each simulation draws a value.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { type LogFields, type Logger, silentLogger } from "../../../shared/log.ts";
import { type BeaconServer, startBeaconServer } from "../../support/beaconServer.ts";
import { type AuctionFixture, type Bidder, type Placed, startAuction } from "../../support/bidder.ts";
import { code } from "../../support/contracts.ts";
import { ETHER } from "../../support/relayFixture.ts";
import { payingWhere } from "../../support/simulationCheats.ts";
import { until } from "../../support/until.ts";

const MUCH = 5n * ETHER;
/**
 * Pays much where PREVRANDAO is not the calldata's first word. CALLDATALOAD(0) PREVRANDAO EQ ISZERO
 */
const OPPOSITE = payingWhere("5f 35 44 14 15");
/** Pays much where the time is not the calldata's first word. */
const OTHER_TIME = payingWhere("5f 35 42 14 15");
/** Nothing may print it. */
const SECRET = "beacon-canary";

const drawn = () => `0x${randomBytes(32).toString("hex")}`;

let beacon: BeaconServer;
let fixture: AuctionFixture;
const lines: string[] = [];

before(async () => {
	beacon = await startBeaconServer({ prefix: `/${SECRET}`, credentials: `me:${SECRET}` });
	const note = (message: string, fields: LogFields = {}) =>
		lines.push(`${message} ${JSON.stringify(fields)}`);
	const log: Logger = {
		...{ trace: note, debug: note, info: note, warn: note, error: note },
		child: () => log,
	};
	const BEACON_URL = `${beacon.url.replace("//", `//me:${SECRET}@`)}?key=${SECRET}`;
	fixture = await startAuction({ log, env: { BEACON_URL } });
	await until("the stream", () => beacon.streams === 1);
});
after(async () => {
	await fixture?.system.stop();
	await beacon?.stop();
});

async function headOf() {
	const head = (await fixture.system.chain.rpc("eth_getBlockByNumber", ["latest", false])) as Record<
		string,
		string
	>;
	return { hash: String(head.hash), number: Number(head.number), timestamp: Number(head.timestamp) };
}

/** `/info`'s word on the next block. */
async function randomness(): Promise<unknown> {
	const info = (await (await fetch(`${fixture.system.client.url}/info`)).json()) as Record<string, unknown>;
	return info.randomness;
}

/** Publishes what follows the head, and waits until the relay has it. */
async function publish({ slots = 1, prevRandao = drawn(), beaconRoot = drawn() } = {}) {
	const { hash, number, timestamp } = await headOf();
	const published = {
		...{ parentHash: hash, parentNumber: number, timestamp: timestamp + 12 * slots },
		...{ prevRandao, beaconRoot },
	};
	beacon.publish(published);
	await until("the relay has it", async () => (await randomness()) === "real");
	return published;
}

/**
 * The value that a backrun sees in its simulation: it pays the last five bytes of PREVRANDAO (44)
 * or TIMESTAMP (42).
 */
async function seen(what: "44" | "42"): Promise<bigint> {
	const target = await fixture.target("/maxbackruns");
	const to = await fixture.placeCode(code("5f 5f 5f 5f 64ffffffffff", what, "16 41 5a f1 00"));
	const { bidder, hash } = await fixture.offer(target, 1n << 41n, { to });
	return BigInt((await bidder.blocks(hash))[0]?.bid ?? 0);
}

/** As {@link seen} shows a PREVRANDAO. */
const lastOf = (prevRandao: string) => BigInt(prevRandao) & 0xffffffffffn;
const asWord = (value: number) => `0x${value.toString(16).padStart(64, "0")}`;

/** A searcher with the network address of another. */
async function besides({ bidder: { from } }: Placed): Promise<Bidder> {
	return Object.assign(await fixture.bidder(), { from });
}

describe("a relay beside a consensus node", () => {
	it("simulates with what is published of its head alone, and says so", async () => {
		await fixture.system.nextBlock();
		assert.equal(await randomness(), "random");
		assert.notEqual(await seen("44"), await seen("44"), "drawn anew for each simulation");
		const published = await publish();
		assert.equal(await seen("44"), lastOf(published.prevRandao));
		assert.equal(await seen("42"), BigInt(published.timestamp));
		beacon.publish({ ...published, parentHash: drawn(), prevRandao: drawn(), timestamp: 2_000_000_000 });
		beacon.publish({ ...published, prevRandao: drawn() });
		assert.equal(await seen("44"), lastOf(published.prevRandao));
		await fixture.system.nextBlock();
		assert.equal(await randomness(), "random");
		assert.notEqual(await seen("44"), lastOf(published.prevRandao));
	});

	it("simulates in the time of the next slot when one has passed without a block", async () => {
		await fixture.system.nextBlock();
		const { timestamp } = await headOf();
		await publish();
		await publish({ slots: 3 });
		await until("the later time", async () => (await seen("42")) === BigInt(timestamp + 36));
		await publish({ slots: 2 });
		assert.equal(await seen("42"), BigInt(timestamp + 36), "an earlier slot is over");
	});

	it("judges a bid by the published PREVRANDAO, if that is known before", async () => {
		await fixture.system.nextBlock();
		const target = await fixture.target("/maxbackruns");
		const { prevRandao } = await publish();
		const honest = await fixture.offer(target, ETHER / 10n);
		const cheat = await fixture.offer(target, MUCH, {
			bidder: await besides(honest),
			to: await fixture.placeCode(OPPOSITE),
			data: prevRandao,
		});
		assert.deepEqual(
			(await cheat.bidder.blocks(cheat.hash)).map(({ bid }) => bid),
			["1"],
		);
		const other = await fixture.offer(target, 1n);
		await fixture.out(target, [honest.backrun, other.backrun]);
	});

	it("judges a bid again by what is published after it came", async () => {
		await fixture.system.nextBlock();
		const prevRandao = drawn();
		const target = await fixture.target("/maxbackruns");
		const honest = await fixture.offer(target, ETHER / 10n);
		const cheat = await fixture.offer(target, MUCH, {
			bidder: await besides(honest),
			to: await fixture.placeCode(OPPOSITE),
			data: prevRandao,
		});
		// It can't know better.
		await fixture.out(target, cheat.backrun);
		await publish({ prevRandao });
		await fixture.out(target, honest.backrun);
	});

	it("judges a bid by the time of the slot that is really next", async () => {
		await fixture.system.nextBlock();
		const { timestamp } = await headOf();
		const target = await fixture.target("/maxbackruns");
		await publish();
		const to = await fixture.placeCode(OTHER_TIME);
		const honest = await fixture.offer(target, ETHER / 10n);
		const data = asWord(timestamp + 24);
		const cheat = await fixture.offer(target, MUCH, { bidder: await besides(honest), to, data });
		await fixture.out(target, cheat.backrun);
		await publish({ slots: 2 });
		await fixture.out(target, honest.backrun);
	});

	it("prints nothing of the consensus node's URL but its host", async () => {
		beacon.fail({ status: 403, headers: { "content-type": "text/plain" }, body: SECRET });
		beacon.drop();
		await until("a line", () => lines.some((line) => line.includes("HTTP 403")));
		beacon.fail(null);
		await until("the stream", () => beacon.streams === 1);
		await fixture.system.nextBlock();
		await publish();
		await until("it is up again", () => lines.some((line) => line.includes("from the consensus node again")));
		assert.deepEqual(
			lines.filter((line) => line.includes(SECRET)),
			[],
		);
		assert.deepEqual(
			beacon.requests.map(({ url }) => url).filter((url, i, all) => all.indexOf(url) === i),
			[`/${SECRET}/eth/v1/events?key=${SECRET}&topics=payload_attributes`],
		);
	});
});

describe("a relay without a consensus node", () => {
	it("draws PREVRANDAO for each simulation, and says so", async () => {
		const before = fixture;
		fixture = await startAuction({ log: silentLogger });
		try {
			assert.equal(await randomness(), "random");
			assert.notEqual(await seen("44"), await seen("44"));
		} finally {
			await fixture.system.stop();
			fixture = before;
		}
	});
});
