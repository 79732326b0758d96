// Tests the operator's list of refunds as a route: its pages, its refusals, and a core that does
// not answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { operatorTables, type ReadRefundSums } from "../../../../relay/ingress/operatorTables.ts";
import { RpcError } from "../../../../shared/jsonrpc/errors.ts";
import { readCsv } from "../../../support/csv.ts";

const PATH = "/operator/refunds.csv";
const TOKEN = "token";
const LINE = ["2026-01", "0x1", "0x2", 'a "b"', "dev", "1", "3", "2", "1"];
const PLACE = `unpaid/0x${"ab".repeat(20)}/999999999991/0x${"cd".repeat(32)}`;

const NOT_ASKED = () => assert.fail("not asked");

/** The answer to a request for `path`. */
async function get(path: string, read: ReadRefundSums, token = TOKEN) {
	const { pathname, searchParams: query } = new URL(path, "http://relay");
	const tables = { refundSums: read, days: NOT_ASKED, sums: NOT_ASKED };
	const route = operatorTables(TOKEN, tables).find((one) => one.path === pathname);
	return route?.handle({
		...{ path: pathname, query, params: {}, address: "192.0.2.1" },
		headers: { authorization: `Bearer ${token}` },
	});
}

test("a page names the next one, on its own path", async () => {
	for (const path of [PATH, `/relay${PATH}`]) {
		const asked: (string | null)[] = [];
		const read: ReadRefundSums = async (from) => {
			asked.push(from);
			return { lines: [LINE], next: from === null ? PLACE : null };
		};
		const first = await get(path, read);
		const [names, ...lines] = readCsv(String(first?.body));
		assert.equal(names?.join(), "month,recipient,sender,referrer,builder,refunds,owed,paid,unpaid");
		assert.deepEqual(lines, [LINE]);
		const [, next = ""] = /^<([^>]+)>; rel="next"$/.exec(first?.headers?.link ?? "") ?? [];
		assert.ok(next.startsWith(`${path}?from=`), next);
		const last = await get(next, read);
		assert.equal(last?.headers?.link, undefined);
		assert.deepEqual(asked, [null, PLACE]);
	}
});

test("a bad place, a wrong token and a missing core are refused with their reason", async () => {
	const unavailable: ReadRefundSums = async () => {
		throw new RpcError("unavailable", "internal error: no core reachable, try again");
	};
	for (const [path, token, status, error] of [
		[`${PATH}?from=all`, TOKEN, 400, "from: expected the value in the Link header of the page before"],
		[PATH, "other", 401, "expected Authorization: Bearer with the token of ADMIN_TOKEN"],
		[PATH, TOKEN, 503, "internal error: no core reachable, try again"],
	] as const) {
		const answer = await get(path, unavailable, token);
		assert.deepEqual([answer?.status, JSON.parse(String(answer?.body))], [status, { error }]);
	}
});
