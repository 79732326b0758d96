// Tests service_transactionStatuses over records of every stage: the answer's order, and each entry.

import assert from "node:assert/strict";
import { test } from "node:test";
import { newRecord, STAGES, type TransactionRecord } from "../../../../../relay/domain/record.ts";
import type { MethodDependencies } from "../../../../../relay/ingress/methodDependencies.ts";
import { service_transactionStatuses } from "../../../../../relay/ingress/methods/service.ts";
import { statusReport } from "../../../../../relay/status/report.ts";
import { type CallContext, callContext } from "../../../../../shared/http/callContext.ts";
import { methodTable } from "../../../../../shared/jsonrpc/method.ts";
import { privateTransaction } from "../../../../support/txFactory.ts";

const CONTEXT = callContext(
	{ path: "/", search: "" },
	{ address: "192.0.2.1", signer: null, vouched: false },
	null,
	null,
);
const NEVER_SEEN = `0x${"Ab".repeat(32)}`;

/** One record in each stage. */
const RECORDS: readonly TransactionRecord[] = STAGES.map((stage, nonce) => {
	const record = newRecord(privateTransaction({ nonce }));
	record.stage = stage;
	return record;
});

function ask(hashes: readonly string[]): Promise<unknown> {
	const byHash = new Map(RECORDS.map((record) => [record.hash, record]));
	const needs: Pick<MethodDependencies, "records" | "statusView"> = {
		records: { record: async (hash) => byHash.get(hash) ?? null },
		statusView: statusReport,
	};
	// The other needs are other methods'.
	const table = methodTable<MethodDependencies, CallContext>(
		[service_transactionStatuses],
		needs as MethodDependencies,
	);
	return Promise.resolve(table.get("service_transactionStatuses")?.call([hashes], CONTEXT));
}

test("each hash is answered in its place, with the status and stage of its record; what is not known has none", async () => {
	const expected = RECORDS.map((record) => ({
		hash: record.hash,
		status: statusReport(record).status,
		stage: record.stage,
	}));
	const blank = { hash: NEVER_SEEN.toLowerCase(), status: "UNKNOWN", stage: null };
	const hashes = RECORDS.map(({ hash }) => hash);
	assert.deepEqual(await ask([NEVER_SEEN, ...hashes, NEVER_SEEN]), [blank, ...expected, blank]);
	assert.deepEqual(await ask([...hashes].reverse()), [...expected].reverse());
});
