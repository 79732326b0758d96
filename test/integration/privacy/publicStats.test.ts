// The public statistics reveal nothing of transactions that are pending or not final, not even by
// two looks: every byte stays the same until the day is over, has been for a day, and its blocks
// are final. Then the figures are those of the blocks. Also who gets a page, and who JSON.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { WATCH_BLOCKS } from "../../../relay/domain/transaction.ts";
import { DAY_MS, dayOf, dayText } from "../../../shared/days.ts";
import { type AuctionFixture, startAuction } from "../../support/bidder.ts";
import { REVERTS } from "../../support/contracts.ts";
import { snippet } from "../../support/documents.ts";
import { isEdge } from "../../support/engine.ts";
import { LeapingClock } from "../../support/leapingClock.ts";
import { startSystem } from "../../support/systems.ts";

interface Day {
	readonly day: string;
	readonly transactions: number | null;
	readonly refundedWei: string | null;
	readonly broughtWei: string | null;
	readonly blocksUntilMined: Readonly<Record<string, number>> | null;
	readonly builders: readonly { readonly builder: string; readonly transactions: number }[] | null;
}

const skip = isEdge ? "the core is a process with a clock of its own" : false;
const PATHS = ["/stats", "/stats.json", "/stats/builders.json", "/stats/service.json"];
const clock = new LeapingClock();
let fixture: AuctionFixture;
before(async () => {
	fixture = await startAuction({ clock });
});
after(() => fixture?.system.stop());

const at = (path: string, accept: string, url = fixture.system.client.url) =>
	fetch(`${url}${path}`, { headers: { accept } });

/** All bytes of all forms of the statistics. */
async function look(): Promise<string> {
	const texts = [];
	for (const path of PATHS)
		for (const accept of ["text/html", "application/json"]) texts.push(await (await at(path, accept)).text());
	return texts.join("\n");
}

async function days(): Promise<readonly Day[]> {
	return (await (await at("/stats.json", "*/*")).json()) as readonly Day[];
}

async function mine(count: number): Promise<void> {
	await fixture.system.chain.rpc("anvil_mine", [`0x${count.toString(16)}`, "0x1"]);
	await fixture.seesHead(await fixture.head());
}

/** Moves both clocks to the next day's noon, so that no midnight passes by itself. */
async function passDay(): Promise<void> {
	const noon = (dayOf(clock.now()) + 1.5) * DAY_MS;
	clock.leap(noon - clock.now());
	await fixture.system.chain.rpc("evm_setNextBlockTimestamp", [noon / 1_000]);
	await mine(1);
}

it("do not change by a byte until a day is over, has been for a day, and its blocks are final", {
	skip,
}, async () => {
	await passDay();
	const first = await look();
	const isSame = async (what: string) => assert.equal(await look(), first, what);
	const target = await fixture.target();
	await isSame("a disclosed transaction is pending");
	await fixture.offerOut(target, 10n ** 16n);
	await isSame("it has a bid");
	const hidden = (await fixture.actor()).sign();
	await fixture.submit("/fullprivacy", hidden);
	await fixture.waitUntilSent(hidden);
	await isSame("a hidden one is pending");
	const reverts = (await fixture.actor()).sign({ to: await fixture.placeCode(REVERTS) });
	await fixture.submit("/fast", reverts);
	await fixture.reaches(reverts, "SIMULATION_FAILED");
	await isSame("one fails");
	const cancelled = (await fixture.actor()).sign();
	await fixture.submit("/fast", cancelled);
	await fixture.system.client.call("eth_cancelTransaction", [cancelled.hash]);
	await isSame("one was cancelled");
	await fixture.system.nextBlock();
	await fixture.event(target, "refunded");
	await isSame("two are mined");
	await mine(WATCH_BLOCKS - 2);
	await isSame("their block may still leave the chain");
	const day = dayText(dayOf(clock.now()));
	await mine(4);
	await isSame("their block is final, and their day not over");
	await passDay();
	const [before] = (await days()).slice(-1);
	assert.equal(before?.day, dayText(dayOf(clock.now()) - 2));
	assert.equal(before?.transactions, null, "the day on which the count began");
	await passDay();
	const shown = (await days()).find((one) => one.day === day);
	const { paid, brought } = await fixture.event(target, "refunded");
	assert.deepEqual(shown, {
		...{ day, transactions: 2, refundedWei: paid, broughtWei: brought },
		blocksUntilMined: { 1: 2, 2: 0, 3: 0, 5: 0, 10: 0, 25: 0, more: 0 },
		...{ builders: [{ builder: "dev", transactions: 2 }], otherBuilders: 0, unknownBuilders: 0 },
	});
	const example = JSON.parse(snippet("docs/api.md", '{"day": "2026-11-23"')) as Day;
	assert.deepEqual({ ...example, day, refundedWei: paid, broughtWei: brought }, shown);
	const shares = await (await at("/stats/builders.json", "*/*")).json();
	assert.deepEqual(shares, [{ builder: "dev", mined: 1, backrun: 1, refunded: 1 }]);
	assert.deepEqual(JSON.parse(snippet("docs/api.md", '[{"builder": "dev", "mined"')), shares);
	const later = await look();
	await fixture.system.restart();
	assert.equal(await look(), later, "after a restart");
});

it("are a page for browsers, JSON for others, and with PUBLIC_STATS=false unknown paths", async () => {
	const types = async (accept: string) =>
		Promise.all(PATHS.map(async (path) => (await at(path, accept)).headers.get("content-type")));
	const json = "application/json";
	assert.deepEqual(await types("text/html"), ["text/html; charset=utf-8", json, json, json]);
	assert.deepEqual(await types("application/json"), [json, json, json, json]);
	const off = await startSystem({ env: { PUBLIC_STATS: "false" } });
	try {
		for (const accept of ["text/html", "application/json"]) {
			const unknown = await at("/no-such-path", accept, off.client.url);
			const expected = [404, await unknown.text()];
			for (const path of PATHS) {
				const answer = await at(path, accept, off.client.url);
				assert.deepEqual([answer.status, await answer.text()], expected, path);
			}
		}
	} finally {
		await off.stop();
	}
});
