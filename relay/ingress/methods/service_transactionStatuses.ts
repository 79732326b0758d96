// service_transactionStatuses: status and stage of many hashes in one call, in their order. For the rest there is GET
// /tx/{hash}.

import { z } from "zod";
import { boundedList, hash } from "../../../shared/jsonrpc/method.ts";
import { relayMethod } from "../methodDependencies.ts";

/** As many as a journal of some minutes may hold; each may cost a read of the disk. */
const MAX_HASHES = 1_000;
const EXPECTED = `1 to ${MAX_HASHES} hashes`;

const status = z.object({
	hash: z.string(),
	status: z.enum(["INCLUDED", "FAILED", "UNKNOWN"]),
	stage: z.string().nullable().describe("null where the relay has no record"),
});

export const service_transactionStatuses = relayMethod({
	name: "service_transactionStatuses",
	summary: `The status and stage of up to ${MAX_HASHES} transactions by their hashes; the stage is null where nothing is known.`,
	params: [
		{
			name: "hashes",
			schema: boundedList(hash, MAX_HASHES, EXPECTED, 1),
		},
	],
	maxParamsSize: MAX_HASHES * 80,
	result: z.array(status).describe("one for each hash, in their order"),
	weight: 10,
	async handle([hashes], _context, { records, statusView }) {
		const found: z.output<typeof status>[] = [];
		// One after another: a thousand reads at once would be in everybody's way.
		for (const wanted of hashes) {
			const record = await records.record(wanted);
			if (record === null) found.push({ hash: wanted, status: "UNKNOWN", stage: null });
			else found.push({ hash: wanted, status: statusView(record).status, stage: record.stage });
		}
		return found;
	},
});
