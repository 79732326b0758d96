// Tests the parts of a long list of refunds as a client follows them, in both formats, and for how
// long one count of the totals is returned. test/integration/auction/refunds.test.ts tests who may
// ask, and what is reported of a chain.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { RefundRow } from "../../../../relay/domain/refundRow.ts";
import { readVerifier } from "../../../../relay/ingress/readSignatures.ts";
import { refundsRoute, totalsRoute } from "../../../../relay/ingress/refundViews.ts";
import { recordRoutesOf } from "../../../../relay/ingress/routes.ts";
import { PAGE_ROWS, RefundTable } from "../../../../relay/transactions/refundTable.ts";
import type { HttpAnswer } from "../../../../shared/http/messages.ts";
import { readCsv } from "../../../support/csv.ts";
import { ManualClock } from "../../../support/manualClock.ts";
import { testAccount } from "../../../support/txFactory.ts";
import { READ_SIGNATURE, readHeader } from "../../../support/typedSignatures.ts";
import { UNDAMAGED } from "../../../support/undamaged.ts";
import { FakeDisk } from "../fakeDisk.ts";

const { address, keyHex } = testAccount(1);
const OTHER = `0x${"cb".repeat(20)}`;

/** The routes over so many refunds, one a block. */
async function routesOver(count: number) {
	const clock = new ManualClock();
	const kv = new FakeDisk();
	for (let block = 1; block <= count; block += 1) {
		const hash = `0x${block.toString(16).padStart(64, "0")}`;
		const row: RefundRow = {
			...{ block, blockHash: hash, hash, sender: OTHER, recipient: address, payer: OTHER },
			...{ owed: "3", paid: "2" },
		};
		const key = `f/${address}/${String(999_999_999_999 - block).padStart(12, "0")}/${hash}`;
		kv.map.set(key, Buffer.from(JSON.stringify(row)));
	}
	const refunds = new RefundTable({
		kv,
		damaged: UNDAMAGED,
		records: { mined: () => [], isSettled: () => false },
	});
	await refunds.load(clock.now());
	const verifyRead = readVerifier({ chainId: 1n, name: null, clock });
	const dependencies = { refunds, verifyRead, clock };
	const route = refundsRoute(dependencies);
	const until = Math.floor(clock.now() / 1_000) + 60;
	const header = await readHeader(keyHex, { scope: "refunds", chainId: 1, until });
	const get = async (path: string): Promise<HttpAnswer> => {
		const { pathname, searchParams: query } = new URL(path, "http://relay");
		return route.handle({
			...{ path: pathname, query, params: { address: pathname.split("/")[2] ?? "" } },
			...{ headers: { [READ_SIGNATURE]: header }, address: "192.0.2.1" },
		});
	};
	return { get, clock, refunds, dependencies, first: `/refunds/${address}?` };
}

interface Part {
	readonly owed: string;
	readonly paid: string;
	readonly refunds: readonly { readonly block: number }[];
	readonly next: string | null;
}

test("a list that is longer than a part goes on at next, with the same signature, to its end", async () => {
	const count = 2 * PAGE_ROWS + 1;
	const { get, first } = await routesOver(count);
	const blocks: number[] = [];
	const sums: string[] = [];
	for (let next: string | null = `${first}&fromBlock=1`; next !== null; ) {
		const answer = await get(next);
		assert.equal(answer.status, 200);
		const part = JSON.parse(String(answer.body)) as Part;
		blocks.push(...part.refunds.map(({ block }) => block));
		sums.push(`${part.owed} ${part.paid}`);
		next = part.next;
		assert.ok(next === null || next.includes("fromBlock=1"), "what was asked else stays");
	}
	assert.deepEqual(
		blocks,
		Array.from({ length: count }, (_, i) => count - i),
	);
	assert.deepEqual(sums, ["3000 2000", "3000 2000", "3 2"]);
});

test("as CSV it goes on at the header Link", async () => {
	const { get, first } = await routesOver(PAGE_ROWS + 1);
	const whole = await get(`${first}&format=csv`);
	const [, next = ""] = /^<([^>]+)>; rel="next"$/.exec(whole.headers?.link ?? "") ?? [];
	assert.equal(readCsv(String(whole.body)).length, PAGE_ROWS + 1);
	const last = await get(next);
	assert.deepEqual(
		readCsv(String(last.body)).map(([block]) => block),
		["block", "1"],
	);
	assert.equal(last.headers?.link, undefined);
});

test("the totals are counted once a second, however many ask", async () => {
	const { clock, dependencies, refunds } = await routesOver(0);
	let counts = 0;
	const counted = {
		refundsOf: () => Promise.reject(new Error("not asked")),
		since: 0,
		totals(now: number) {
			counts += 1;
			return refunds.totals(now);
		},
	};
	const { handle } = totalsRoute({ ...dependencies, refunds: counted });
	const request = { path: "/totals", query: new URLSearchParams(), params: {}, headers: {}, address: "::1" };
	for (let asked = 0; asked < 3; asked += 1) assert.equal((await handle(request)).status, 200);
	assert.equal(counts, 1);
	await clock.advance(1_000);
	await handle(request);
	assert.equal(counts, 2);
});

test("who asks for lists of refunds has it in his rate limit as reads of logs are", () => {
	const routes = recordRoutesOf(
		true,
		() => null,
		() => Promise.reject(new Error("not asked")),
	);
	const weights = new Map(routes.map(({ path, weight = 1 }) => [path, weight]));
	assert.deepEqual([weights.get("/refunds/{address}"), weights.get("/totals")], [10, 1]);
});
