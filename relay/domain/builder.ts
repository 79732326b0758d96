// Parses the rows of the setting BUILDERS, strictly, since a typo in a row could leak a
// transaction.

import { z } from "zod";
import { url } from "../../shared/config.ts";

/** A row of the setting BUILDERS. */
const row = z.strictObject({
	name: z
		.string()
		.regex(/^[\w.-]{1,40}$/, "expected 1 to 40 letters, digits, dots, dashes")
		.describe("shown in events, logs and metrics; unique"),
	url: z
		.string()
		.refine(isSafeUrl, "expected an https URL (http only on loopback)")
		.describe("where it takes JSON-RPC; https, http only on loopback"),
	dialect: z
		.enum(["bundle", "mev-share"])
		.default("bundle")
		.describe("how it accepts bundles: `eth_sendBundle`, or `mev_sendBundle`"),
	fullPrivacy: z.boolean().default(false).describe("whether it may receive transactions of `/fullprivacy`"),
	refund: z.boolean().default(true).describe("whether it pays refunds; without, it gets no backruns"),
	maxRefundPercent: z.int().min(0).max(100).default(99).describe("the largest `refundPercent` it accepts"),
	refundGas: z
		.union([z.int().min(0), z.enum(["usual", "transfer"])], {
			error: "expected a whole number of gas, `usual` or `transfer`",
		})
		.default("usual")
		.describe(
			"gas whose cost it takes off a refund; `transfer`: what sending it costs by the fork's rules; `usual`: the same since Amsterdam, nothing before",
		),
	cancel: z
		.enum(["endpoint", "empty", "both", "none"])
		.default("both")
		.describe("how a bundle is cancelled there: `eth_cancelBundle`, an empty bundle, both, or not at all"),
	privateMethod: z
		.enum(["eth_sendPrivateRawTransaction", "eth_sendPrivateTransaction", "eth_sendRawTransaction"])
		.default("eth_sendPrivateRawTransaction")
		.describe("how it accepts private transactions"),
	requestsPerSecond: z
		.int()
		.min(1)
		.max(100_000)
		.default(30)
		.describe("requests that it takes in a second; searchers' bundles have what users' transactions leave"),
	feeRecipients: z
		.array(z.string().regex(/^0x[0-9a-fA-F]{40}$/, "expected an address, 20 bytes as 0x hex"))
		.default([])
		.transform((list) => list.map((one) => one.toLowerCase()))
		.describe(
			"the coinbases of its blocks; without, nobody has a record there, and half of its slots go by lot",
		),
	dropping: z.boolean().default(false).describe("whether it knows `droppingTxHashes`"),
});

/** A parsed row. */
export type BuilderRow = z.output<typeof row>;
/** A row as configured, with optional fields. */
export type BuilderInput = z.input<typeof row>;

/** Whether bidders have records there: the builder gets bids, and its blocks are known. */
export function hasRecords({ refund, feeRecipients }: BuilderRow): boolean {
	return refund && feeRecipients.length > 0;
}

/** The fields of a row, for the documents. */
export const BUILDER_DOCS: readonly { name: string; fallback: string; help: string }[] = Object.entries(
	z.toJSONSchema(row, { io: "input" }).properties ?? {},
).map(([name, field]) => {
	const { default: fallback, description } = field as { default?: unknown; description?: string };
	return {
		name,
		fallback: fallback === undefined ? "required" : JSON.stringify(fallback),
		help: description ?? "",
	};
});

const rows = z
	.array(row)
	.min(1, "expected at least one builder: nothing could ever be mined")
	.refine((list) => new Set(list.map((one) => one.name)).size === list.length, "expected names to be unique");

/**
 * Parses the rows, or returns what was expected. That text quotes no value, since URLs may contain
 * keys.
 */
export function parseBuilders(
	value: unknown,
): { ok: true; rows: readonly BuilderRow[] } | { ok: false; expected: string } {
	const parsed = rows.safeParse(value);
	if (parsed.success) return { ok: true, rows: parsed.data };
	const issue = parsed.error.issues[0];
	const at = issue === undefined || issue.path.length === 0 ? "the list" : issue.path.join(".");
	return { ok: false, expected: `${at}: ${issue?.message ?? "expected rows of builders"}` };
}

function isSafeUrl(text: string): boolean {
	if (url("http:", "https:")(text) === undefined) return false;
	const { protocol, hostname } = new URL(text);
	if (protocol === "https:") return true;
	return protocol === "http:" && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}
