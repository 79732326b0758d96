// The core's methods that only relays call. Each returns data that an edge needs for its own
// answer.

import { z } from "zod";
import { bytesToHex, toQuantity } from "../../../shared/ethereum/hex.ts";
import { pendingTransaction } from "../../../shared/ethereum/rpcObjects.ts";
import { address, hash, quantity, readParamsSize } from "../../../shared/jsonrpc/method.ts";
import { coreMethod } from "../methodDependencies.ts";

export const core_pendingTransaction = coreMethod({
	name: "core_pendingTransaction",
	summary: "A pending private transaction as eth_getTransactionByHash shows it, or null.",
	params: [{ name: "hash", schema: hash }],
	result: z.record(z.string(), z.unknown()).nullable(),
	handle([wanted], _context, { pending }) {
		const own = pending.pending(wanted);
		return own === null ? null : pendingTransaction(own.tx);
	},
});

export const core_pendingNonce = coreMethod({
	name: "core_pendingNonce",
	summary: "The account's next nonce, private transactions included.",
	params: [
		{ name: "address", schema: address },
		{ name: "count", schema: quantity },
	],
	result: z.string().describe("the count as 0x hex"),
	handle: ([account, count], _context, { pending }) => toQuantity(pending.pendingNonce(account, count)),
});

export const core_sharedTransaction = coreMethod({
	name: "core_sharedTransaction",
	summary:
		"The bytes of a pending transaction that is shared with searchers, to simulate behind it; or null.",
	params: [{ name: "hash", schema: hash }],
	result: z.string().nullable().describe("0x hex"),
	handle([wanted], _context, { sharedTransaction }) {
		const shared = sharedTransaction(wanted);
		return shared === null ? null : bytesToHex(shared.raw);
	},
});

export const core_readBehind = coreMethod({
	name: "core_readBehind",
	summary: "A read behind the client's own pending transactions; null if it has none.",
	params: [
		{ name: "method", schema: z.string() },
		{ name: "params", schema: z.array(z.unknown()) },
	],
	maxParamsSize: readParamsSize(10),
	result: z.unknown(),
	handle: ([method, params], context, { readBehind }) => readBehind(method, params, context),
});

export const core_facts = coreMethod({
	name: "core_facts",
	summary: "The core's part of GET /info.",
	params: [],
	result: z.object({
		bidding: z.boolean(),
		simulation: z.unknown(),
		receiptSigner: z.string(),
		leaks: z.enum(["seen", "unseen"]),
	}),
	handle: (_params, _context, { facts }) => facts(),
});

export const core_check = coreMethod({
	name: "core_check",
	summary: "The core's part of GET /readyz.",
	params: [{ name: "check", schema: z.enum(["store", "delivery"]) }],
	result: z.object({ ok: z.boolean(), reason: z.string().optional() }),
	handle: ([name], _context, { check }) => check(name),
});

export const core_state = coreMethod({
	name: "core_state",
	summary: "The core's part of the operator's page.",
	params: [],
	result: z.record(z.string(), z.unknown()),
	handle: (_params, _context, { state }) => state(),
});

export const core_refundSums = coreMethod({
	name: "core_refundSums",
	summary: "A page of the operator's sums of refunds.",
	params: [{ name: "from", schema: z.string().nullable() }],
	result: z.object({ lines: z.array(z.array(z.string())), next: z.string().nullable() }),
	handle: ([from], _context, { refundSums }) => refundSums(from),
});

export const core_conductDays = coreMethod({
	name: "core_conductDays",
	summary: "The builders' conduct by day, for the operator.",
	params: [],
	result: z.array(z.record(z.string(), z.unknown())),
	handle: (_params, _context, { conductDays }) => conductDays(),
});

export const core_conductSums = coreMethod({
	name: "core_conductSums",
	summary: "The sums of the builders' conduct, for the operator.",
	params: [],
	result: z.array(z.record(z.string(), z.unknown())),
	handle: (_params, _context, { conductSums }) => conductSums(),
});

export const core_history = coreMethod({
	name: "core_history",
	summary: "The core's figures over time, for the operator's page.",
	params: [],
	result: z.record(z.string(), z.unknown()),
	handle: (_params, _context, { history }) => ({ ...history() }),
});

export const core_report = coreMethod({
	name: "core_report",
	summary: "Accepts the report of a relay, for the operator's page.",
	params: [
		{
			name: "report",
			schema: z.object({
				name: z.string().max(300),
				role: z.enum(["core", "edge"]),
				since: z.string().max(30),
				version: z.string().max(100),
				head: z.number().nullable(),
				subscriptions: z.number(),
				problems: z.array(z.string().max(500)).max(20),
			}),
		},
	],
	result: z.boolean(),
	handle([report], _context, { report: note }) {
		note(report);
		return true;
	},
});

/** All methods between relays. */
export const BETWEEN_RELAYS = [
	core_pendingTransaction,
	core_pendingNonce,
	core_sharedTransaction,
	core_readBehind,
	core_facts,
	core_check,
	core_state,
	core_refundSums,
	core_conductDays,
	core_conductSums,
	core_history,
	core_report,
] as const;
