// Methods about the service itself: how it identifies the client, and that it has no accounts. Also
// the statuses of many transactions, and the OpenRPC document.

import { z } from "zod";
import { networkAddress, UNBELIEVED } from "../../../shared/client.ts";
import { boundedList, hash } from "../../../shared/jsonrpc/method.ts";
import { publicStage } from "../../domain/record.ts";
import { coreMethod, relayMethod } from "../methodDependencies.ts";

export const service_client = relayMethod({
	name: "service_client",
	summary: "Your identity at the relay, which decides limits, cancels and uuids.",
	params: [],
	result: z.object({
		address: z.string().describe("network address"),
		signer: z.string().nullable().describe("address whose key signed the body, or null"),
		vouched: z.boolean().describe("whether a proxy that knows the secret has named the address"),
		unbelieved: z
			.enum(UNBELIEVED)
			.optional()
			.describe("the setting because of which the relay does not trust X-Boost-Auth, if it was sent"),
	}),
	handle: (_params, { client: { address, signer, vouched, unbelieved } }) => ({
		address: networkAddress(address),
		signer,
		vouched,
		...(unbelieved === undefined ? {} : { unbelieved }),
	}),
});

/** Enough for some minutes of a busy proxy; each may cost a disk read. */
const MAX_HASHES = 1_000;
const EXPECTED = `1 to ${MAX_HASHES} hashes`;

const status = z.object({
	hash: z.string(),
	status: z.enum(["INCLUDED", "FAILED", "UNKNOWN"]),
	stage: z.string().nullable().describe("null where the relay has no record"),
	held: z
		.literal(true)
		.optional()
		.describe("it is not sent now: its simulation fails, or it waits for a fee to fall"),
});

export const service_transactionStatuses = coreMethod({
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
		// One after another, because a thousand reads at once would delay other clients.
		for (const wanted of hashes) {
			const record = await records.record(wanted);
			if (record === null) found.push({ hash: wanted, status: "UNKNOWN", stage: null });
			else {
				const status = { hash: wanted, status: statusView(record).status, stage: publicStage(record) };
				found.push(record.stage === "SIMULATION_FAILED" ? { ...status, held: true } : status);
			}
		}
		return found;
	},
});

export const eth_accounts = relayMethod({
	name: "eth_accounts",
	summary: "Returns an empty list: the relay has no keys.",
	params: [],
	result: z.array(z.string()),
	handle: () => [],
});

export const rpc_discover = relayMethod({
	name: "rpc.discover",
	summary: "The OpenRPC document of the relay's own methods (https://spec.open-rpc.org).",
	params: [],
	result: z.record(z.string(), z.unknown()).describe("the document"),
	handle: (_params, _context, { describe }) => describe(),
});
